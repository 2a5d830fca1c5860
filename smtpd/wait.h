/* wait.h - how a session waits for anything: one way, for every verb.
 *
 *	verb_x():  cookie = wait_begin(s, &kind, timeout_ms)		any state --> WAIT
 *		   ask->answer.cookie = cookie, and post the question	return
 *	elsewhere: wait_answer_post(&ask->answer)			at most once
 *	worker:	   kind.answered(s, &ask->answer)	WAIT --> the state that it waited from
 *	      or:  kind.expired(s)			likewise, at the deadline
 *
 * In both the session is as it was before the wait; they reply, move it on, or wait again. After
 * that the input that came meanwhile is used. Nothing of it is read before: a verb that has replies
 * to give after its answer need not fear those behind it. The line that the verb was called with is
 * gone by then: copy what is wanted of it, into what is asked or into the session.
 *
 * An answer that nobody waits for, because it comes late or twice, or after the client has gone, is
 * freed and does nothing. Whoever is asked may therefore keep a cookie as long as it likes, and need
 * not answer.
 *
 * A client that goes ends the wait, and its session is freed, unless the kind outlives it: then the
 * session stays, with stream NULL, until it is answered or expires. A client that has only ended its
 * side is still waited for, since it may read the reply.
 *
 * OWNERSHIP  struct wait is embedded in the session, struct waits in the worker. Kinds are constant.
 *            An answer is whoever posts it's until then; wait.c frees it.
 * THREAD     The session's worker; wait_answer_post(): any.
 * STATES     SESSION_WAIT while kind is set.
 * ERRORS     Misuse asserts: a second wait at once, a deadline without expired().
 */
#ifndef SMTPD_WAIT_H
#define SMTPD_WAIT_H

#include "base/loop.h"
#include "smtpd/session_table.h"

#include <stdbool.h>
#include <stdint.h>

struct session;
struct smtpd_worker;

/* An answer that may be waited for; each use has one of its own. */
struct wait_kind {
	const char *text; /* for whoever debugs */
	void (*answered)(struct session *, void *answer);
	/* The answer is freed afterwards. NULL: nobody is asked. */
	void (*expired)(struct session *); /* the deadline has come */
	void (*ended)(struct session *);
	/* Neither came, nor will: the client has gone, or the thread ends. NULL: whoever was asked need
	 * not know. */
	bool outlives; /* the client; then each of these may find stream NULL */
	bool pause;    /* the deadline is all that is waited for; a relay that stops does not */
};

struct wait {
	const struct wait_kind *kind; /* NULL: the session does not wait */
	void (*over)(struct session *);
	struct timer deadline;
	uint64_t cookie;
	enum session_state from;
};

/* Questions, and answers that are posted back, begin with this. */
struct wait_answer {
	struct note note;
	struct loop *reply_to; /* the worker's */
	uint64_t cookie;
	void (*free)(struct wait_answer *); /* all of it; NULL: free() */
};

/* Those of one worker. A cookie is a slot and how often it was used: it is never given twice. */
struct waits {
	struct wait_slot {
		struct session *session; /* NULL: free */
		uint32_t used, next_free;
	} * slot;
	uint32_t n, first_free; /* first_free is n: none */
};

void wait_init(struct session *, void (*over)(struct session *));
/* over: called behind each answered() and expired(). The session goes on, or is freed. */

uint64_t wait_begin(struct session *, const struct wait_kind *, int64_t timeout_ms);
/* 0: no deadline, of what is sure to be answered. */

void wait_answer_post(struct wait_answer *);
/* Gives it to the worker of reply_to. */

void wait_answered(struct smtpd_worker *, uint64_t cookie, void *answer);
/* The same in the worker's thread, for answers that are not a struct wait_answer. They stay the
 * caller's. */

void wait_receive(struct smtpd_worker *, struct wait_answer *); /* from the mailbox */

void wait_cancel(struct session *);
/* End it with neither, if there is one: back to the state before. */

bool wait_hurry(struct session *);
/* Expire now, if it is a pause. False: it is none. */

bool wait_outlives(const struct session *); /* the session must stay, whatever its client does */

void waits_fini(struct waits *); /* no session waits any more */

#endif
