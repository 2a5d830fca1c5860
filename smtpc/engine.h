/* engine.h - the client side of SMTP without I/O: replies in, commands and content out.
 *
 *	engine_give() -> [ transactions ] -> commands, content -> *out
 *	                     ^                     | one entry a command
 *	engine_take() <-- verdicts <-- reply <-- [ expected ]  <-- engine_input()
 *
 * Pipelining is only how long the queue of expected replies may get. After each call the owner
 * looks at the state, takes what is done with engine_take(), and sends what lies in *out. A handler
 * notes what a reply means; what is to be said next is decided in one place, when it has been
 * checked that the host has said no more than it was asked.
 *
 *	host offers nothing	MAIL, RCPT, ..., DATA, content: each waits for the reply before it
 *	host offers PIPELINING	MAIL RCPT ... DATA together; then content, dot, and the next
 *				MAIL RCPT ... DATA together: one round trip a message
 *	CHUNKING too		MAIL RCPT ... BDAT content, RSET MAIL RCPT ... BDAT content, and
 *				so on, for as many as are given that may go ahead: no round trip
 *				a message. One that may not waits for the replies to its envelope.
 *				One more than may be in flight is given: it begins with the first
 *				answer, without a word from qmgr.
 *	CONNECTION_APART	the same, but nothing behind the end of a message before its answer
 *
 * A refusal that came ahead of its turn is not believed as such: see engine_turn.c.
 *
 * RSET goes before each MAIL behind a chunk that has no answer yet: a host that has refused all
 * recipients may hold on to the envelope, and would take the next recipients into it. Its reply also
 * shows that the one before it was the chunk's: see engine_step.c.
 *
 * OWNERSHIP  Owns the deliveries given until they are taken. What engine_setup points at, and the
 *            out buffer, stay the caller's, and must outlive the engine.
 * THREAD     One; no clock but for stamping began_us and ended_us.
 * STATES     ENGINE_STATES below.
 * ERRORS     As verdicts, and as engine_why() when it is closed.
 * SEE        RFC 5321 3, 4.3; RFC 2920; RFC 3030; RFC 3207; base/delivery.h.
 */
#ifndef SMTPC_ENGINE_H
#define SMTPC_ENGINE_H

#include "base/note_queue.h"
#include "smtpc/expected.h"
#include "smtpc/sasl_client.h"
#include "smtpc/session_limits.h"
#include "smtpc/capability.h"

#define ENGINE_TO(state) (1u << ENGINE_##state)

/* X(state, text, what is said when it is our turn, states that may follow) */
#define ENGINE_STATES(X)                                                                           \
	X(GREETING, "greeting", nothing, ENGINE_TO(HELLO) | ENGINE_TO(CLOSED))                     \
	X(HELLO, "hello", hello,                                                                   \
	  ENGINE_TO(STARTTLS) | ENGINE_TO(AUTH) | ENGINE_TO(READY) | ENGINE_TO(CLOSED))            \
	X(STARTTLS, "starttls", starttls, ENGINE_TO(HANDSHAKE) | ENGINE_TO(CLOSED))                \
	X(HANDSHAKE, "handshake", nothing, ENGINE_TO(HELLO) | ENGINE_TO(CLOSED))                   \
	X(AUTH, "auth", auth, ENGINE_TO(READY) | ENGINE_TO(CLOSED))                                \
	X(READY, "ready", transactions,                                                            \
	  ENGINE_TO(LISTENING) | ENGINE_TO(QUITTING) | ENGINE_TO(CLOSED))                          \
	X(LISTENING, "listening", nothing, ENGINE_TO(CLOSED)) /* behind a 421: engine_told.c */    \
	X(QUITTING, "quitting", nothing, ENGINE_TO(CLOSED))                                        \
	X(CLOSED, "closed", nothing, 0u)

enum engine_state {
#define X(state, ...) ENGINE_##state,
	ENGINE_STATES(X)
#undef X
};

/* As whom to log in. */
struct engine_login {
	struct Gsasl *context;
	const char *login, *secret; /* a password, or a token */
	bool token;
	bool clear;    /* without TLS too */
	bool unproven; /* to whoever it is */
};

struct engine_setup {
	const char *hostname; /* ours, for EHLO */
	const char *peer;     /* "name[address]:port", for verdicts */
	const struct conf_transport *transport;
	enum transport_tls tls;
	bool spared_tls;	   /* it is wished for, and left out, since it has failed */
	enum connection_mode mode; /* not more than this, whatever the host announces */
	bool requiretls;	   /* it must hand mail on as RFC 8689 has it; not where local */
	bool local;		   /* nobody is on the way to the host: as good as TLS */
	const struct engine_login *login; /* or NULL: as nobody */
};

struct engine {
	struct engine_setup setup;
	enum engine_state state;
	struct buf *out;
	uint64_t produced; /* bytes put into out so far */
	struct reply reply;
	enum expected_kind answering; /* what the reply at hand is to */
	struct reply told;	      /* LISTENING: the 421, and what it was said to: */
	struct expected told_to;
	struct expected_queue expected;
	struct capability can;
	struct session_domains domains;
	struct sasl_client *sasl;     /* while it logs in */
	struct sasl_setup sasl_setup; /* binding: the owner's, before engine_secured() */
	enum sasl_mechanism mechanism;
	struct buf response; /* to be sent */
	struct list transactions;
	struct note_queue done; /* deliveries */
	struct verdict *why;
	uint64_t turn;	/* changes whenever the wait for something begins anew */
	int answered;	/* deliveries that were not returned */
	int carried;	/* transactions whose MAIL was accepted */
	int enough;	/* closed for renewal because so many are all it takes; 0: not for that */
	bool hung_up;	/* the host closes or resets the connection: set before engine_lost() */
	bool renew;	/* closed, to go on on a fresh connection */
	bool apart;	/* nothing goes behind the end of a message before its answer */
	bool secure;	/* TLS stands */
	bool proven;	/* with whom it should: the owner's, before engine_secured() */
	bool helo;	/* EHLO was refused */
	bool quit;	/* QUIT when there is nothing left to do */
	bool try_plain; /* closed, because TLS failed that was only wished for */
	bool wants_tls; /* the host has refused mail for that spared_tls */
	bool owes_rset; /* before the next MAIL */
	bool owes_dot;	/* 354, but there is nobody to send to */
	bool login_refused; /* closed, because AUTH was answered with 5xx, or is not possible */
	bool unfit;	    /* closed, because it can't do what setup.requiretls wants */
	bool lacks_tls; /* closed, because it does not offer STARTTLS where that is required, or refuses it */
	bool refused;  /* closed, because the host greeted with 5xx, or answered EHLO and HELO so */
	bool confused; /* closed, because the host has lost count: next time ask in mode, too */
	enum connection_mode mode;
	int64_t hello_us;      /* steady clock: EHLO was said */
	int64_t round_trip_us; /* until it was answered; the least; 0: not yet */
};

void engine_init(struct engine *, const struct engine_setup *, struct buf *out);
void engine_fini(struct engine *); /* all deliveries must have been taken */

void engine_input(struct engine *, struct buf *in);
/* Consume what came. HANDSHAKE afterwards: shake hands, in is empty; then engine_secured(). */

void engine_secured(struct engine *);
void engine_untrusted(struct engine *, const char *why);
/* Instead of that: it is not who it should be. Nothing goes in clear, and nothing is bounced. */
void engine_unshaken(struct engine *, const char *why);
/* Or: there will be no TLS with it, the next time neither (stream_tls_impossible()). */

void engine_resume(struct engine *); /* out has room again: more content */
void engine_give(struct engine *, struct delivery *);
void engine_quit(struct engine *);

void engine_lost(struct engine *, const char *how);
/* The connection has ended: how is a clause such as "connection lost". */

void engine_left(struct engine *, const char *how);
/* The same, but we end it for another's sake: that it has carried mail before is no excuse. */

void engine_expired(struct engine *); /* engine_timeout_ms() has passed since turn last changed */
void engine_drop(struct engine *);    /* we end: what is under way comes back as it stands */

struct delivery *engine_take(struct engine *); /* one that is done or returned, or NULL */
int64_t engine_timeout_ms(const struct engine *);
int engine_depth(const struct engine *);      /* how many transactions may be given at once */
int engine_depth_most(const struct engine *); /* the same on a host that has proved good */
bool engine_idle(const struct engine *);      /* ready, and nothing is under way */
bool engine_sending(const struct engine *);   /* there is content left to write */
bool engine_owed(const struct engine *);      /* the host has to answer, or to take content */
bool engine_awaited(
	const struct engine *); /* the host has all of a message, and may have taken it */

struct verdict *engine_why(struct engine *);
/* When closed: a reference to what ended it, or NULL for an orderly end. */

const char *engine_state_name(const struct engine *);

#endif
