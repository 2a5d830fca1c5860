/* dovecot.h - a Dovecot that knows the users: one connection to its auth service, for many sessions.
 *
 *	dovecot_use()   --> RESTING --> CONNECTING: VERSION CPID ... DONE --> READY
 *	dovecot_ask()   --> AUTH id mechanism ...    OK, FAIL, CONT id --> struct dovecot_answer
 *	dovecot_go_on() --> CONT id response
 *
 * Whatever happens, each question is answered once, by a note in the worker's mailbox: when the
 * connection is lost, with AWAY. Who asks bounds the time by himself, and cancels. A question that
 * comes while the connection is being made waits for it; while it rests after a failure, 100 ms, then
 * twice as long, up to 5 s, there is nobody to ask.
 *
 * What it says is not believed further than it must be: lines and numbers are bounded, answers to
 * what was not asked are passed over, and after what is no line of the protocol it is left.
 *
 * OWNERSHIP  The worker's. Answers are freed by wait.c.
 * THREAD     The worker's.
 * STATES     OFF, RESTING, CONNECTING, READY; moved by dovecot.c alone.
 * ERRORS     As answers; event dovecot when it goes and when it comes back, once for all workers.
 * SEE        Dovecot's "Authentication Protocol", 1.2.
 */
#ifndef SMTPD_DOVECOT_H
#define SMTPD_DOVECOT_H

#include "base/mechanism.h"
#include "base/resolve.h"
#include "smtpd/wait.h"

struct dovecot;

enum dovecot_outcome {
	DOVECOT_OK,
	DOVECOT_CONTINUE,
	DOVECOT_WRONG,
	DOVECOT_DISABLED,  /* the name is right, the password perhaps: not for the client's ears */
	DOVECOT_SUSPENDED, /* both are right, but the login is disabled */
	DOVECOT_EXPIRED,   /* both are right, but the password is too old */
	DOVECOT_AWAY,
};

struct dovecot_answer {
	struct wait_answer answer; /* first */
	enum dovecot_outcome outcome;
	char *user;	 /* the user's name as Dovecot has it, or NULL */
	char *challenge; /* CONTINUE: in base64 */
};

struct dovecot_question {
	enum mechanism mechanism;
	const char *initial; /* in base64, NULL for none */
	bool secured;	     /* there is TLS */
	const union address *client, *local;
	uint64_t cookie;
};

struct dovecot *dovecot_new(struct loop *);
void dovecot_free(struct dovecot **);

void dovecot_use(struct dovecot *, const char *where, int64_t timeout_ms);
/* An absolute path, or inet:HOST:PORT; "" for none. Connects from the loop, within that time. The same
 * again changes nothing but the time. */

bool dovecot_can(const struct dovecot *, enum mechanism);
/* By what it has announced last; before it ever has, anything but -PLUS. */

uint32_t dovecot_ask(struct dovecot *, const struct dovecot_question *);
/* The id of the exchange; 0: there is nobody to ask, and no answer. */

bool dovecot_go_on(struct dovecot *, uint32_t id, uint64_t cookie, const char *response);
/* After CONTINUE, in base64. False: the exchange is over, because the connection was lost. */

void dovecot_cancel(struct dovecot *, uint32_t id); /* one that is over is allowed */

#endif
