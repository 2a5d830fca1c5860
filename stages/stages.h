/* stages.h - what happens to a message between its last byte and the queue.
 *
 *	smtpd: end of content --+
 *	maildrop: a file taken -+-> [ passage: stage 0, stage 1, ... ] --> draft settled --> SPOOL_STORE
 *	qmgr: a report ---------+
 *
 * One stage after the other looks at the draft and may change it: header fields, body, sender,
 * recipients, whether it is held; or refuse or discard it. Filters come first; what signs comes last, since it must
 * see the bytes that the receiver will get.
 *
 *	stages.[ch]		a passage: one message on its way
 *	draft.[ch]		the message, as long as it may be changed
 *	archive.[ch]		the stage that makes a copy for the archive
 *	archive_report.[ch]	what that says
 *	archive_mark.[ch]	how a copy is known again
 *	budget.[ch]		the memory that all of this takes, with what clients are just sending
 *
 * A stage that takes time keeps the passage and continues it later: in the passage's loop, or, for
 * work of the pool, by passage_give(). A session waits meanwhile, once for all stages (smtpd/wait.h).
 * A report, for which no loop waits, has a passage without a loop: a thread of the pool does all of it.
 *
 * OWNERSHIP  A passage is its maker's, who frees it in ended() or later. passage_cancel() gives it up
 *            at any time: it then frees itself when nobody works on it any more.
 * THREAD     That of its loop, except while the pool has it; without a loop, the pool's.
 * STATES     UNDER_WAY until it has come to its end, enum passage_end.
 * ERRORS     In enum passage_end: after PASSAGE_FAILED, a fault of the machine, try the message again.
 */
#ifndef STAGES_STAGES_H
#define STAGES_STAGES_H

#include "base/loop.h"
#include "base/magic.h"
#include "base/thread_pool.h"
#include "stages/draft.h"

enum { PASSAGE_MAGIC = 0x9a55a6e0 };
enum { PASSAGE_STAGES_MAX = 16 };

/* A note of the passage's loop: for passage_resume(). */
enum { PASSAGE_RESUME = NOTES_FROM(NOTES_OF_PASSAGE) };

struct passage;

/* One kind of stage. Its functions are called in the passage's thread. */
struct passage_stage {
	void (*begin)(struct passage *);
	/* Now or later it ends with passage_next(), passage_refuse(), passage_discard() or
	 * passage_fail(). */
	void (*worked)(struct passage *);
	/* The pool has done what passage_give() gave it. Ends likewise. NULL: it is never asked to. */
	void (*cancel)(struct passage *);
	/* The message is not wanted any more, or the pool stops: free what at_work refers to. NULL: there
	 * is nothing to free. */
};

enum passage_end {
	PASSAGE_UNDER_WAY,
	PASSAGE_DONE,	   /* the draft is settled: store it */
	PASSAGE_REFUSED,   /* by `reply` */
	PASSAGE_DISCARDED, /* taken, and dropped; `reply` says why, for the log */
	PASSAGE_FAILED,	   /* to be tried again; `error` is an errno */
};

struct passage {
	struct note note; /* PASSAGE_RESUME */
	unsigned magic;
	struct loop *loop; /* or NULL */
	struct thread_pool *pool;
	struct conf *conf; /* a reference */
	struct draft draft;
	char *login;	 /* of the client; NULL: none */
	char *own;	 /* an address that the login was found to own; or NULL */
	char *client;	 /* who has brought it, in words; NULL: ourselves */
	bool stranger;	 /* a client that may not relay */
	char *signed_by; /* for the log: what signatures it has got; or NULL */

	struct {
		const struct passage_stage *kind;
		void *context; /* the stage's own */
	} stage[PASSAGE_STAGES_MAX];
	int nstage, at;
	void *at_work; /* the stage's own, from begin() to its end */
	bool ready;    /* for the next stage */
	bool running;  /* somewhere below, stages are being run */

	enum passage_end end;
	char *reply; /* "550 5.7.1 text" */
	int error;
	void (*ended)(struct passage *);
	void *owner;

	struct thread_pool_job job;
	void (*work)(struct passage *);
	bool given, cancelled;
};

struct passage *passage_new(struct conf *, struct loop *, struct thread_pool *, struct spool *,
			    uint64_t id);
/* Then set what is known of the client, and the draft's envelope and content; then passage_add(). */

void passage_free(struct passage **); /* not while it is under way; NULL is allowed */

void passage_add(struct passage *, const struct passage_stage *, void *context);

bool passage_run(struct passage *, void (*ended)(struct passage *), void *owner);
/* All stages, and settle the draft. True: it has ended already, and ended() is not called. False: it
 * will be, once, in the passage's thread. */

enum passage_end passage_run_here(struct passage *);
/* The same in this thread, one of the pool's: for a message that is made beside another. It has no loop. */

void passage_cancel(struct passage **); /* ended() will not be called; NULL is allowed */

void passage_resume(struct passage *); /* PASSAGE_RESUME has come to its loop */

/* For stages. */

void *passage_context(const struct passage *); /* of the stage at work */

void passage_next(struct passage *);
void passage_refuse(struct passage *, const char *reply);
void passage_discard(struct passage *, const char *why);
void passage_fail(struct passage *, int error);

bool passage_give(struct passage *, void (*work)(struct passage *));
/* work() is done by the pool, then worked() in the passage's thread. The draft is the pool's meanwhile. */

#endif
