/* verification.h - the contract between smtpd or the operator, and qmgr: does the next hop take a recipient?
 *
 *	smtpd worker, main -- VERIFY_ASK --> qmgr -- VERIFY_ANSWER, the same object --> reply_to
 *
 * OWNERSHIP  Given away by posting; whoever holds it calls verify_free().
 * THREAD     Whoever holds it.
 * ERRORS     As results. At the end of the program qmgr frees what it has without an answer.
 */
#ifndef BASE_VERIFICATION_H
#define BASE_VERIFICATION_H

#include "base/conf.h"
#include "base/loop.h"
#include "base/verdict.h"

#include <stdbool.h>
#include <stdint.h>

enum verify_note { VERIFY_ASK = NOTES_FROM(NOTES_OF_VERIFICATION), VERIFY_ANSWER };

enum verify_result {
	VERIFY_UNWANTED, /* only_routed, the route does not say verify, and nothing is known against it */
	VERIFY_TAKES,	 /* the next hop takes it, or there is none to ask */
	VERIFY_REFUSES,	 /* it does not, for good */
	VERIFY_UNLISTED, /* no file of its route has it, and the servers of that were not asked */
	VERIFY_UNKNOWN, /* it could not be asked, has put it off, or too many are being asked about */
};

struct verify {
	struct note note;
	struct loop *reply_to;
	uint64_t cookie;  /* the asker's own */
	void *owner;	  /* likewise */
	char *address;	  /* as an envelope keeps it */
	char *sender;	  /* for MAIL; NULL: that of the settings */
	char *from;	  /* whose mail it would be, for its route; NULL: as sender */
	bool only_routed; /* only where its route says verify */
	int64_t suppress_ms; /* how long the word of a host counts that there is no such recipient; 0: not at all */
	bool fresh;  /* ask, whatever is remembered */
	bool listed; /* the servers of its route's recipients need not be asked */
	/* the answer: */
	enum verify_result result;
	bool remembered;
	bool ours;   /* the verdict is in our own words: no host was asked */
	bool learnt; /* from what hosts and names have said before: whoever sends can't know that */
	struct conf_list servers; /* UNLISTED: tables of recipients that are to be asked */
	struct verdict *verdict;  /* what was said, a reference; NULL: nothing was */
};

struct verify *verify_new(const char *address, const char *sender, struct loop *reply_to);
void verify_free(struct verify **);

#endif
