/* session.h - one client, as all that serves it knows it: its state, its replies, its refusals.
 *
 *	session_run.[ch]	from its connection to its end
 *	session_read.[ch]	a piece of its input --> a verb, the content, a login
 *	verb_X.c ...		what it asks for: they reply here, and move it on
 *	session.[ch]		calls none of these
 *
 * What a verb can't answer at once it waits for: wait.h.
 *
 * OWNERSHIP  session_run.c makes and frees sessions, the worker's list has them. What hangs on one is
 *            of the module that it is named after: tx of reception.c, auth of auth.c, and so on; each
 *            clears its pointer when it is done.
 * THREAD     Its worker's.
 * STATES     session_table.h; only session_move() changes them.
 * ERRORS     A refusal is a reply, counted; the session ends by moving to CLOSED.
 * SEE        RFC 5321 4.1.4, 4.2.
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

void session_move(struct session *, enum session_state);

void session_count(const struct session *, int n);
/* So many more, or fewer, are in its state; session_move() keeps that while there is a client. */

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

void session_end(struct session *, enum response why); /* the same, of one that has its reply */

void session_count_junk(struct session *);
/* Noise, of which so much is allowed; each beyond is an error. */

void session_log_reject(struct session *, enum response, const char *to);
const char *session_protocol(const struct session *); /* "ESMTPS", as in RFC 3848 and RFC 6531 */

#endif
