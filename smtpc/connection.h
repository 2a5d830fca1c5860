/* connection.h - one connection to one host: a stream, an engine, and the clock between them.
 *
 *	stream events, deadline, age -> [ connection ] -> engine -> settle: send, post,
 *	                                                            shake hands, end
 *
 * A deadline runs for the whole of a reply, from the moment its group of commands went out or the
 * reply before it came; while content is sent, for each piece that the host takes.
 *
 * OWNERSHIP  The worker's; it frees itself when it is over, after CONNECTION_CLOSED is posted.
 * THREAD     The worker's.
 * STATES     waiting for a secret, where it is to log in; connecting, then those of the engine. Without a word to qmgr it starts again: once, in
 *            the clear, where TLS is only wished for and fails; and with what it was given, where the
 *            host refuses more mail on a connection that has carried some. Only what the host says
 *            to the first MAIL of a fresh connection is about the message. Where that is taken, the
 *            number carried before is the host's limit (delivery.messages_most).
 *            A ClientHello with a hybrid group (base/tls_groups.h), or with a large ticket, takes two TCP segments, and there are
 *            hosts, and machines on the way to them, that drop or break what follows. So if a large one is not answered by a
 *            ServerHello, the host gets a small one on another connection, with classical groups only, before anything goes in the
 *            clear and before the host has failed. Silence counts after HELLO_PATIENCE_MS (and starttls_timeout, where that is
 *            shorter): in five seconds two lost segments have been sent again, and a host that was only slow has lost
 *            nothing but its hybrid group. If the small one helps, qmgr is told, and remembers it (CONNECTION_SMALL_HELLO);
 *            else all is as if it had been the first.
 *            A TLS session that is resumed, and whose certificate is good for what is wanted no more, is forgotten: once more, with
 *            a handshake that shows what the host has now.
 * ERRORS     As connection_open.why.
 * SEE        engine.h; base/delivery.h; RFC 5321 4.5.3.2; RFC 7435 (opportunistic security).
 */
#ifndef SMTPC_CONNECTION_H
#define SMTPC_CONNECTION_H

#include "base/delivery.h"
#include "smtpc/secrets.h"

#include <openssl/ssl.h>

struct connection;
struct worker;

bool connection_start(struct worker *, struct connection_open *);
/* Takes the note; gives it back as CONNECTION_CLOSED. False: there is no descriptor for it, and nothing
 * has happened. */

void connection_have_secret(struct connection *, struct secret_ask *);
/* The answer to what connection_start() has asked. Takes it. */

void connection_give(struct connection *, struct delivery *);
void connection_close(struct connection *);
/* QUIT when what it carries is done. */

void connection_leave(struct connection *);
/* Another destination wants it, and the host owes us an answer: it ends with that as the reason, unless the host has all of a
 * message. Then it is closed once that is answered. */

void connection_drop(struct connection *);
/* At once; what was under way comes back as it stands. */

void connection_part(struct connection *);
/* As the relay ends: it is dropped, unless the host has all of a message. Then it is closed once that is answered: dropped now, the
 * message would be in doubt, and come to its recipients twice. */

int connection_new_session(SSL *, SSL_SESSION *);
/* OpenSSL's callback of the worker's context. */

#endif
