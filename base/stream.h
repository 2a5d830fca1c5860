/* stream.h - one TCP connection, plain or TLS, that never blocks.
 *
 * Bytes that arrived lie in s->in; the owner consumes what it can use. Bytes to send are appended
 * to s->out and go out at stream_flush() (or by themselves when the socket has room again). One
 * callback says what happened:
 *
 *	STREAM_CONNECTED   the TCP connection stands (client side)
 *	STREAM_DATA        s->in has more
 *	STREAM_DRAINED     s->out went below STREAM_LOW after stream_flush() had left something
 *	STREAM_TLS         the handshake is done
 *	STREAM_EOF         the peer has ended; nothing more will come
 *	STREAM_ERROR       reset, TLS failure, ...: stream_error() says why
 *	STREAM_TIMEOUT     the deadline set with stream_deadline() has passed
 *
 * A peer may send STREAM_IDLE_RECORDS records of TLS that hold nothing for the owner (its handshake, KeyUpdate,
 * tickets, alerts); further ones are STREAM_ERROR. Each costs it little, and OpenSSL much, which reads on
 * until there is something to hand on.
 *
 * The callback may free the stream. While s->in holds STREAM_IN_MAX bytes nothing more is read, so
 * a peer can't make it grow; reading goes on when the owner has consumed some and returned, or
 * calls stream_resume().
 *
 * STATES     plain -> (stream_start_tls) handshake -> tls. Plain bytes that are in s->in when the
 *            handshake starts are the owner's error to deal with: it must be empty. From the first
 *            byte of the handshake on nothing is read or sent but by OpenSSL, whatever state that
 *            is in: in the middle of a message that follows a handshake (KeyUpdate, a ticket) its
 *            own handshake counts as unfinished. Once TLS has ended (close_notify) nothing is read
 *            again: STREAM_EOF.
 * OWNERSHIP  stream_free() closes the socket. The SSL_CTX is referenced, not taken.
 * THREAD     The loop's. OpenSSL writes without MSG_NOSIGNAL: SIGPIPE must be ignored, or blocked
 *            as loop_start() does.
 * ERRORS     As events; never from a call.
 */
#ifndef BASE_STREAM_H
#define BASE_STREAM_H

#include "base/buf.h"
#include "base/loop.h"
#include "base/resolve.h"

#include <openssl/types.h>
#include <stdbool.h>

enum { STREAM_IN_MAX = 32 << 10, STREAM_LOW = 32 << 10 }; /* bytes */
enum { STREAM_IDLE_RECORDS = 256 }; /* a certificate of 100 KB in records of 512 bytes fits */

enum stream_event {
	STREAM_CONNECTED,
	STREAM_DATA,
	STREAM_DRAINED,
	STREAM_TLS,
	STREAM_EOF,
	STREAM_ERROR,
	STREAM_TIMEOUT,
};

struct stream;
struct ssl_session_st; /* SSL_SESSION */

struct stream *stream_accepted(struct loop *, int fd, void (*event)(void *owner, enum stream_event),
			       void *owner);
/* Takes a connected socket that doesn't block. */

void stream_nodelay(int fd);
/* Set TCP_NODELAY on a listening socket: those that are accepted from it inherit that. */

struct stream *stream_connect(struct loop *, const union address *to, const union address *from,
			      void (*event)(void *owner, enum stream_event), void *owner);
/* from may be NULL. A failure, even an immediate one, comes as STREAM_ERROR from the loop. */

void stream_free(struct stream **);

struct buf *stream_in(struct stream *);
struct buf *stream_out(struct stream *);
void stream_flush(struct stream *);
/* Send what is in s->out as far as the socket takes it. Failure comes as STREAM_ERROR later, from
 * the loop. */

void stream_flush_soon(struct stream *);
/* The same at the end of this turn of the loop, after what the others of the loop have to say: a peer that is woken at
 * once would take the processor from whoever answers the next one. Of much, or after stream_behind(), at once. */

void stream_send_gathered(struct loop *); /* the turn has ended */

bool stream_behind(const struct stream *);
/* The peer has not taken all that it was sent. */

void stream_secret(struct stream *, bool secret);
/* While it is set, what comes may be a password: it is overwritten wherever it has passed on its way to
 * s->in. There it is the owner's to wipe. Of TLS: with SSL_OP_CLEANSE_PLAINTEXT. */

void stream_pause(struct stream *); /* read nothing more until stream_resume() */
void stream_resume(struct stream *);
/* Read on; what lies in s->in is offered again, from the loop. */

bool stream_quiet(struct stream *);
/* Nothing lies here or in the socket that the owner does not know of, and the peer has not ended. */

void stream_deadline(struct stream *, int64_t delay_ms);
/* STREAM_TIMEOUT after delay_ms from now, once; 0 stops it. */

void stream_start_tls(struct stream *, SSL_CTX *, bool server, const char *sni,
		      struct ssl_session_st *resume);
/* Begin the handshake. sni and resume may be NULL (client side only). s->out must have been flushed
 * out completely (server: the 220) - what is left is sent first. Bytes in s->in are a bug: it
 * asserts. */

void stream_watch_handshake(struct stream *,
			    void (*message)(void *owner, bool sent, const void *bytes, size_t len));
/* Called for each message of a handshake, from inside of OpenSSL: to look at it. The callback for messages of the
 * SSL itself is the stream's. */

SSL *stream_ssl(const struct stream *);		 /* NULL when plain */
const char *stream_error(const struct stream *); /* a sentence, without the peer's name */
bool stream_starved(const struct stream *);	 /* the system had no socket for stream_connect() */
bool stream_tls_impossible(const struct stream *);
/* The error is what TLS makes of the two: an alert, nothing in common, bytes that are no TLS. An end or a reset, which
 * may be chance, is none. */
void stream_local(const struct stream *, union address *);

void stream_when_closed(struct stream *, void (*closed)(void *owner), void *owner);
/* Called when the socket is closed, whatever closes it: a connection that lingers goes on counting. */

void stream_linger_close(struct stream **);
/* Send what is in s->out, shut down, and read away what the peer still sends for a moment, so that
 * the last reply is not lost to a reset; then free. No further event. */

void stream_close_quietly(struct stream **);
/* The same for a peer that has ended, or has said that it will send nothing more: as soon as s->out is
 * sent, which is mostly at once, the socket is closed. No further event. */

void stream_end_lingering(struct loop *);
/* Free those that are left when their loop ends. */

const char *address_text(const union address *, char text[64]);
/* "192.0.2.1" or "2001:db8::1", without the port. */
int address_port(const union address *);
socklen_t address_size(const union address *);

#endif
