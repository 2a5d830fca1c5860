/* session.h - one client, from its connection to its end.
 *
 *	stream --> session_run(): by state --> command -> verb_X.c     replies --> stream
 *	                                   --> content -> reception        one write a batch
 *
 * Replies gather in the stream and are sent when all input that has come is used up, so that a
 * pipelined group is answered by one write.
 *
 * What a verb can't answer at once it waits for: wait.h.
 *
 * OWNERSHIP  The worker's list owns sessions. While its socket lingers, or the spool has its message,
 *            a session stays though its client has gone: stream is NULL then.
 * THREAD     Its worker's.
 * STATES     session_table.h; only session_move() changes them.
 * ERRORS     A refusal is a reply, counted; the session ends by moving to CLOSED.
 * SEE        RFC 5321 4.1.4, 4.5.3.2; RFC 2920.
 */
#ifndef SMTPD_SESSION_H
#define SMTPD_SESSION_H

#include "base/access_value.h"
#include "base/magic.h"
#include "base/stream.h"
#include "smtpd/response.h"
#include "smtpd/session_table.h"
#include "smtpd/smtpd_worker.h"
#include "smtpd/wait.h"

struct auth;
struct filtering;
struct consult;
struct reception;

enum { SESSION_MAGIC = 0x5e551025 };

struct session {
	unsigned magic;
	struct list link;
	struct smtpd_worker *worker;
	struct service *service;
	atomic_long *connections;    /* of the listener, shared */
	struct stream *stream;	     /* NULL: the client has gone */
	struct reception *tx;	     /* NULL outside of one */
	struct wait wait;	     /* WAIT: for what */
	struct consult *consult;     /* NULL: in no table */
	struct auth *auth;	     /* NULL outside of an exchange */
	char *client_name;	     /* as a proxy has said, or NULL */
	char *login;		     /* who it is; NULL: nobody has logged in */
	const char *mechanism;	     /* how it has logged in; NULL: not by AUTH */
	struct filtering *filtering; /* NULL: there are no filters */
	char *helo;		     /* NULL until the client has said its name */
	const char *stage;	     /* the verb at work, for the log */
	uint64_t number;
	uint64_t chunk_left; /* CHUNK: bytes to come */
	int64_t begun_ms;    /* steady clock: of what must end in time; 0: nothing */
	int64_t answered_us; /* steady clock: its last message, or 0 */
	size_t swallowed;    /* bytes of a line too long, read away */
	union address peer;
	enum session_state state;
	enum response chunk_refusal; /* CHUNK: its answer, or RESPONSE_OK */
	enum response ending;	     /* CLOSED: why */
	int listener, errors, junk, messages, auth_failures;
	bool proxy; /* it may say XCLIENT */
	bool chunk_last, esmtp, tls, eof, unread;
};

void session_open(struct listener *, int fd, const union address *peer);
/* Takes the socket. */

bool session_run(struct session *);
/* Use what input there is, and send the replies. False: the session is gone. */

void session_go_on(struct session *);
/* It waits no more: use the input that came meanwhile. One without a client ends, unless it waits
 * again. */

void session_abandon(struct session *); /* the thread has ended: close at once */
void session_hurry(struct session *);	/* the worker closes: end a pause, and say so */

void session_move(struct session *, enum session_state);
void session_greet(struct session *); /* 220, or what filters say to this client */
void session_reset(struct session *);
/* Forget the transaction, and be ready for another. */

void session_reply(struct session *, enum response, ...);
/* Like all that refuse, it tells nothing to a client that has gone. */

void session_refuse(struct session *, enum response, const char *to);
/* Reply, log, count. to: the recipient it is about, as the client wrote it, or NULL. */

void session_refuse_with(struct session *, enum response, const char *to, ...);
/* The same, with the arguments of the reply. */

void session_refuse_as(struct session *, const struct access_value *, const char *to);
/* The same, with a reply of the operator's. */

void session_refuse_by(struct session *, const char *reply, const char *to);
/* The same, with a reply that somebody else has given: "550 5.7.1 text", perhaps of several lines, the
 * last without its end. The session ends with 421. */

void session_close(struct session *, enum response);
/* Reply, and end when that is sent. */

void session_log_reject(struct session *, enum response, const char *to);
const char *session_protocol(const struct session *); /* "ESMTPS", as in RFC 3848 and RFC 6531 */

/* session_read.c */
bool session_step(struct session *); /* one step of input; false: there is too little of it */
void session_count_junk(struct session *);
/* Noise, of which so much is allowed; each beyond is an error. */

#endif
