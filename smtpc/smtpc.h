/* smtpc.h - the client side of SMTP.
 *
 *	qmgr -- base/delivery.h --> [ connection: stream + engine ] <--> MX host
 *
 *	smtpc.c			the workers, from start to stop
 *	worker.c		one thread: its mailbox, and its connections by their numbers
 *	connection.c		one connection: stream, engine, and the clock between them
 *	connection_post.c	what it says to qmgr
 *	connection_tls.c	handshake; sessions.c: TLS sessions to be resumed
 *	connection_report.c	its result, for reports on TLS
 *	connection_stall.c	does the host owe us something for long?
 *	engine.c		the protocol without I/O: replies come in, in order, one turn each
 *	engine_hello.c		greeting, EHLO, STARTTLS, QUIT
 *	engine_auth.c		AUTH; sasl_client.c: the exchange itself
 *	secrets.c		passwords and tokens for it, by a thread of its own; secret_file.c: from files
 *	tokens.c		OAuth tokens, fetched and kept; token.c: the messages, token_device.c: those of
 *				`sluice login`; token_store.c: refresh tokens on the disk
 *	engine_mail.c		what is sent of a transaction, and when
 *	engine_replies.c	what the replies to it mean
 *	engine_chunk.c		messages by BDAT, several in flight
 *	engine_each.c		LMTP: a reply to the content for each recipient
 *	engine_step.c		has the host lost count?
 *	engine_turn.c		is a refusal to be believed, or asked again in its turn?
 *	engine_answer.c		the answer to a whole message
 *	engine_told.c		421, and what may be answered behind it
 *	engine_end.c		how it closes
 *	engine_connection.c	what the connection does: TLS, lost, too late, dropped
 *	engine_core.c		what all of these do: engine_impl.h says who calls whom
 *	expected.c		the replies that are expected: a queue, and a row for each kind
 *	transaction.c		one delivery: which recipients were accepted, which have a verdict
 *	session_limits.c	which recipients fit the limits that a host announces
 *	envelope_out.c		MAIL and RCPT as text; what cannot be expressed in them
 *	content_out.c		content as it goes on the wire: dots doubled or a chunk, CRLF only
 *	seven_bit.c		converts 8-bit content for hosts without 8BITMIME; mime_type.c: a part's header
 *	capability.c		what EHLO announced
 *
 * n workers, each a loop of its own. A connection belongs to one worker for its life; qmgr says
 * which, and gives it transactions only when it is ready.
 *
 * OWNERSHIP  Each worker owns its connections and what it was given, until that is posted back.
 * THREAD     smtpc_new() to smtpc_free(): main. smtpc_worker(): any.
 * ERRORS     None here; whatever goes wrong becomes a verdict.
 * SEE        base/delivery.h; RFC 5321 4.5.3.2, RFC 2920, RFC 3030.
 */
#ifndef SMTPC_SMTPC_H
#define SMTPC_SMTPC_H

#include "base/conf.h"

struct smtpc;

struct smtpc *smtpc_new(struct conf *);
void smtpc_start(struct smtpc *);
void smtpc_part(struct smtpc *);
/* Posts: connections are dropped, but for those whose hosts have all of a message; these close when it is answered. None is
 * opened any more. */

void smtpc_stop(struct smtpc *);
/* Connections are dropped; what was under way comes back as it stands. */
void smtpc_free(struct smtpc **);

int smtpc_workers(const struct smtpc *);
struct loop *smtpc_worker(struct smtpc *, int worker); /* post CONNECTION_OPEN and the rest here */

#endif
