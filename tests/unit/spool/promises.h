/* promises.h - what the queue has promised, kept beside it, and whether what it holds agrees.
 *
 * For each message: what was given away with it, each later envelope, each verdict recorded, and
 * its end; and which of these are firm, that is must survive whatever happens:
 *
 *	a message			once SPOOL_STORED has said so
 *	verdicts			once a store posted behind them was answered; or a little later
 *	envelopes, ends			once time has passed, or a deletion behind them was answered
 *
 * What is not firm may be lost, or not. After a start they are told what is there
 * (promises_seen()), and what is not (promises_absent()); what a power cut has left is firm from then on.
 *
 * OWNERSHIP  A plain struct without pointers: a copy is the state of that moment.
 * THREAD     One at a time.
 * ERRORS     What does not agree comes back as a sentence; NULL: all is well.
 */
#ifndef TESTS_UNIT_SPOOL_PROMISES_H
#define TESTS_UNIT_SPOOL_PROMISES_H

#include "base/content.h"
#include "base/envelope.h"

enum { PROMISES = 48, PROMISE_RCPT = 3, PROMISE_VERSIONS = 6, PROMISE_SAID = 4 };

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
	struct fate rcpt[PROMISE_RCPT];
};

struct said {
	uint32_t seq, rcpt;
	int class, serial;
	bool firm;
};

struct promise {
	uint64_t id;
	uint64_t salt;	   /* all of envelope and content follows from it */
	uint64_t replaces; /* another, which is gone some time after this one is stored; or 0 */
	int64_t arrived_ms;
	enum { PROMISE_OFFERED, PROMISE_STORED, PROMISE_REFUSED, PROMISE_GONE } state;
	bool seen;	   /* since the last start */
	uint32_t since;	   /* seq of that */
	bool deleting;	   /* by the operator: it may be gone from now on */
	uint32_t answered; /* when it was heard that it is stored; 0: not yet */
	uint32_t finish;   /* seq of its end, 0: none was posted */
	bool delivers;	   /* that says that it was delivered, and is synced as a verdict is */
	bool finished;	   /* firmly */
	struct version version[PROMISE_VERSIONS];
	int nversion, firm;
	struct said said[PROMISE_SAID];
	int nsaid;
};

struct promises {
	struct promise promise[PROMISES];
	int n;
	uint32_t seq;
	int serial;
	bool after_cut; /* the last start followed a power cut: what it found is firm */
	bool vague;	/* not all could be read: only that nothing is lost is certain */
	bool spoiled;	/* something is damaged, and not by a power cut alone */
	bool tail_left; /* refused mail may come back */
};

struct promise *promises_new_promise(struct promises *, uint64_t id, int64_t arrived_ms,
				     uint64_t salt);
struct promise *promises_find(struct promises *, uint64_t id); /* or NULL */

struct envelope *promise_envelope(const struct promise *); /* as it is first stored */
struct content *promise_content(const struct promise *);
size_t promise_size(const struct promise *);
bool promise_large(const struct promise *); /* in a file of its own */
bool promise_held(const struct promise *);  /* it comes on hold */

struct verdict *promises_verdict(struct promises *, enum verdict_class);
void promises_said(struct promises *, struct promise *, uint32_t rcpt, const struct verdict *);
bool promises_kept(struct promises *, struct promise *,
		   const struct envelope *); /* false: no room for it */
bool promises_room(const struct promise *);
void promises_finish(struct promises *, struct promise *, bool delivers);

void promises_firm_verdicts(struct promises *, uint32_t before);
void promises_firm_all(struct promises *, uint32_t before);

const char *promises_check(const struct promises *, const struct promise *,
			   const struct envelope *);
/* What is shown of a message, at any time. */

extern const char promises_unreadable[]; /* what it says when the disk fails */
const char *promises_check_content(const struct promise *, const struct content *);

void promises_started(struct promises *, bool after_cut);
const char *promises_seen(struct promises *, struct promise *, const struct envelope *);
const char *promises_absent(struct promises *, struct promise *);

#endif
