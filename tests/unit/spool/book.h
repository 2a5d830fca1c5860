/* book.h - what the queue has promised, kept beside it, and whether what it holds agrees.
 *
 * For each message: what was given away with it, each later envelope, each verdict recorded, and
 * its end; and which of these are firm, that is must survive whatever happens:
 *
 *	a message			once SPOOL_STORED has said so
 *	verdicts			once a store posted behind them was answered; or a little later
 *	envelopes, ends			once time has passed, or a deletion behind them was answered
 *
 * What is not firm may be lost, or not. After a start the book is told what is there
 * (book_seen()), and what is not (book_absent()); what a power cut has left is firm from then on.
 *
 * OWNERSHIP  A plain struct without pointers: a copy is the state of that moment.
 * THREAD     One at a time.
 * ERRORS     What does not agree comes back as a sentence; NULL: all is well.
 */
#ifndef TESTS_UNIT_SPOOL_BOOK_H
#define TESTS_UNIT_SPOOL_BOOK_H

#include "base/content.h"
#include "base/envelope.h"

enum { LETTERS = 48, LETTER_RCPT = 3, LETTER_VERSIONS = 6, LETTER_SAID = 4 };

struct fate {
	bool done;
	int class, serial; /* of the last verdict; serial 0: none */
	uint32_t tries;
};

struct version {
	uint32_t seq;
	uint32_t rounds;
	int64_t due_ms;
	bool warned;
	struct fate rcpt[LETTER_RCPT];
};

struct said {
	uint32_t seq, rcpt;
	int class, serial;
	bool firm;
};

struct letter {
	uint64_t id;
	uint64_t salt;	   /* all of envelope and content follows from it */
	uint64_t replaces; /* another, which is gone some time after this one is stored; or 0 */
	int64_t arrived_ms;
	enum { LETTER_OFFERED, LETTER_STORED, LETTER_REFUSED, LETTER_GONE } state;
	bool seen;	   /* since the last start */
	uint32_t since;	   /* seq of that */
	bool deleting;	   /* by the operator: it may be gone from now on */
	uint32_t answered; /* when it was heard that it is stored; 0: not yet */
	uint32_t finish;   /* seq of its end, 0: none was posted */
	bool finished;	   /* firmly */
	struct version version[LETTER_VERSIONS];
	int nversion, firm;
	struct said said[LETTER_SAID];
	int nsaid;
};

struct book {
	struct letter letter[LETTERS];
	int n;
	uint32_t seq;
	int serial;
	bool after_cut; /* the last start followed a power cut: what it found is firm */
	bool vague;	/* not all could be read: only that nothing is lost is certain */
	bool spoiled;	/* something is damaged, and not by a power cut alone */
	bool tail_left; /* refused mail may come back */
};

struct letter *book_new_letter(struct book *, uint64_t id, int64_t arrived_ms, uint64_t salt);
struct letter *book_find(struct book *, uint64_t id); /* or NULL */

struct envelope *letter_envelope(const struct letter *); /* as it is first stored */
struct content *letter_content(const struct letter *);
size_t letter_size(const struct letter *);
bool letter_large(const struct letter *); /* in a file of its own */
bool letter_held(const struct letter *);  /* it comes on hold */

struct verdict *book_verdict(struct book *, enum verdict_class);
void book_said(struct book *, struct letter *, uint32_t rcpt, const struct verdict *);
bool book_kept(struct book *, struct letter *, const struct envelope *); /* false: no room for it */
bool book_room(const struct letter *);
void book_finish(struct book *, struct letter *);

void book_firm_verdicts(struct book *, uint32_t before);
void book_firm_all(struct book *, uint32_t before);

const char *book_check(const struct book *, const struct letter *, const struct envelope *);
/* What is shown of a message, at any time. */

extern const char book_unreadable[]; /* what it says when the disk fails */
const char *book_check_content(const struct letter *, const struct content *);

void book_started(struct book *, bool after_cut);
const char *book_seen(struct book *, struct letter *, const struct envelope *);
const char *book_absent(struct book *, struct letter *);

#endif
