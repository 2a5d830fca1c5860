/* filter_changes.h - the changes that a filter wants in a message, and how they are made.
 *
 *	filter_changes_add()	checked and kept; a body goes to the draft at once, beside the one there is
 *	filter_changes_make()	the filter has said its last word: all of it, in its order
 *
 * A header field is inserted by its place among all of them, our own Received included, and changed or
 * deleted by its number among those of its name, our own not counted, as Sendmail and Postfix do. What
 * is added beyond the last goes to the end.
 *
 * A recipient that is added is rewritten, and stands for others, as one of RCPT. One that is deleted
 * may be named as the client did, and goes with all that it stood for, but for those whom another that stays stands for,
 * too; or as it was rewritten. Copies stay, since of several recipients who share one only the first has it, unless nobody
 * else is left. However many are added and deleted in turn, the envelope is gone through twice.
 *
 * OWNERSHIP  Embedded; filter_changes_fini().
 * THREAD     The chain's.
 * ERRORS     filter_changes_add() says what can not be.
 * SEE        Sendmail's libmilter, "Modification functions"; POSTFIX cleanup_milter.c.
 */
#ifndef SMTPD_FILTER_CHANGES_H
#define SMTPD_FILTER_CHANGES_H

#include "smtpd/alias.h"
#include "smtpd/content_in.h"
#include "smtpd/milter/milter_engine.h"
#include "stages/draft.h"

enum { FILTER_CHANGES_BYTES = 1 << 20 };

struct filter_changes {
	struct conf *conf;	   /* whose tables rewrite what is added; the owner's */
	struct alias_heard *heard; /* what servers have said of it; the owner's */
	struct draft *draft;
	int received; /* where our own Received field is, the topmost; -1: there is none */
	int n;
	struct filter_change *change;
	size_t bytes;
	bool body;		 /* another is being written */
	struct content_in lines; /* of it */
	int ngiven;
	struct filter_given {
		char *address;		 /* as the client gave it */
		struct alias_added what; /* became of it in the envelope */
		int turn; /* the number of the change that added it, from 1; 0: before */
	} * given;
};

void filter_changes_fini(struct filter_changes *);

void filter_changes_given(struct filter_changes *, const char *address, struct alias_added *);
/* Takes what hangs on that. */

void filter_changes_reset(struct filter_changes *); /* of a message: nobody is given */

void filter_changes_begin(struct filter_changes *,
			  struct draft *); /* all of its content has come */

const char *filter_changes_add(struct filter_changes *, const struct milter_answer *);
/* NULL: it is kept. */

bool filter_changes_known(const struct filter_changes *);
/* No server of aliases must be asked before they are made; else all that is wanted is (alias_heard.h). */

bool filter_changes_make(struct filter_changes *, struct buf *what);
/* what: for the log. True: the draft has another body, and is to be settled before it is read again. */

void filter_changes_forget(struct filter_changes *);

#endif
