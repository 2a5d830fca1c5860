/* stream_impl.h - what stream.c (states and events) and stream_io.c (bytes, plain or TLS) share.
 *
 *	on_ready, on_kick -> go_on() -> by state -> stream_read(), stream_write(),
 *	                                            stream_handshake()
 *
 * OWNERSHIP  stream.c makes and frees; the callback may call stream_free() at any time, so that
 *            after emit_event() has returned false, a stream must not be touched.
 * THREAD     The loop's.
 * SEE        stream.h.
 */
#ifndef BASE_STREAM_IMPL_H
#define BASE_STREAM_IMPL_H

#include "base/magic.h"
#include "base/stream.h"

#include <openssl/types.h>

#define STREAM_TO(state) (1U << STREAM_##state)

/* S(state, states that may follow)
 * STARTING: the last plain bytes go out, then the handshake. LINGERING: it has no owner any more. */
#define STREAM_STATES(S)                                                                           \
	S(CONNECTING, STREAM_TO(PLAIN))                                                            \
	S(PLAIN, STREAM_TO(STARTING) | STREAM_TO(LINGERING))                                       \
	S(STARTING, STREAM_TO(HANDSHAKE) | STREAM_TO(LINGERING))                                   \
	S(HANDSHAKE, STREAM_TO(SECURE))                                                            \
	S(SECURE, STREAM_TO(LINGERING))                                                            \
	S(LINGERING, 0U)

enum stream_state {
#define S(state, ...) STREAM_##state,
	STREAM_STATES(S)
#undef S
};

enum { STREAM_MAGIC = 0x57e3a901 };

struct stream {
	unsigned magic;
	struct loop *loop;
	void (*event)(void *owner, enum stream_event);
	void *owner;
	void (*closed)(void *owner); /* or NULL */
	void *closed_owner;
	void (*handshake)(void *owner, bool sent, const void *message, size_t len); /* or NULL */
	int fd;
	enum stream_state state;
	struct buf in, out;
	SSL *ssl; /* NULL when plain */
	ev_io reader, writer;
	ev_io kick; /* never started, only fed: what is to come from the loop */
	struct timer deadline;
	struct list in_gathered;  /* loop->gathered */
	struct list in_lingering; /* loop->lingering */
	char *error;		  /* what stream_error() says, or NULL */
	size_t lingered;	  /* bytes read away */
	int idle_records;	  /* of TLS, without a byte for the owner */
	int depth;		  /* callbacks under way */
	bool dead;		  /* freed by the owner; the memory goes when depth is 0 */
	bool begun_tls;		  /* the descriptor is OpenSSL's from here to the end */
	bool connected, paused;
	bool secret; /* see stream_secret() */
	bool offer;  /* s->in is offered again at the next kick */
	bool gathered;
	bool behind; /* the socket did not take all when it was last sent to */
	bool left;   /* a flush left something: STREAM_DRAINED is owed */
	bool eof, eof_told;
	bool starved;
	bool tls_impossible;
	bool failed, write_failed, error_told;
	bool ending;				 /* lingering: all is sent and shut down */
	bool read_wants_write, write_wants_read; /* TLS */
};

enum stream_io { STREAM_IO_DONE, STREAM_IO_WAIT, STREAM_IO_END, STREAM_IO_FAILED };

enum stream_io stream_read(struct stream *, void *to, size_t len, size_t *got);
enum stream_io stream_write(struct stream *, const void *from, size_t len, size_t *sent);
enum stream_io stream_handshake(struct stream *);
/* One attempt. FAILED has called stream_fail(). */

bool stream_make_ssl(struct stream *, SSL_CTX *, bool server, const char *sni,
		     struct ssl_session_st *resume);
void stream_shut(struct stream *);
/* close_notify if there is TLS, then no more is sent. */

int stream_open_socket(struct stream *, const union address *to, const union address *from);
/* A socket on its way to be connected, or -1 and stream_fail() called. */

void stream_move(struct stream *, enum stream_state);
void stream_set_watchers(struct stream *); /* wait for what the state needs, and nothing else */
void stream_send_out(struct stream *);	   /* as much of s->out as the socket takes */
void stream_ungather(struct stream *);	   /* it does not wait for the end of the turn any more */
void stream_bury(struct stream *);	   /* give a dead one's memory back, if no callback runs */

void stream_on_ready(struct ev_loop *, ev_io *, int revents);
void stream_on_kick(struct ev_loop *, ev_io *, int revents);
void stream_on_deadline(void *owner);

void stream_fail(struct stream *, const char *what, const char *why);
/* Remember the first fault; STREAM_ERROR follows from the loop. */

#endif
