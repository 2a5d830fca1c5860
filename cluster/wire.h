/* wire.h - one connection to Redis, from connect to its end.
 *
 *	connecting -> (tls ->) hello -> ready
 *		 \_________\________\______\____ closed() once; then only wire_free()
 *
 * Connecting may take cluster.redis_timeout, TLS and hello together twice that.
 *
 * hello is AUTH, SELECT and PING, sent together: ready() comes when all were answered well. From then on each
 * reply is passed on by heard().
 *
 * In a simulation a model of Redis is at its other end, and no socket.
 *
 * OWNERSHIP  wire_open() to wire_free(), which may be called from closed(), and not from heard() or ready().
 * THREAD     The loop's.
 * ERRORS     closed(), and why, a clause; always from the loop.
 */
#ifndef CLUSTER_WIRE_H
#define CLUSTER_WIRE_H

#include "base/conf.h"
#include "base/loop.h"
#include "base/resolve.h"

struct redisReply; /* hiredis */
struct wire;

struct wire_hooks {
	void (*ready)(void *owner, struct wire *);
	void (*heard)(void *owner, struct wire *, const struct redisReply *);
	void (*closed)(void *owner, struct wire *, const char *why);
};

/* The peer at the other end, instead of a socket. */
struct wire_far {
	void *(*opened)(void *owner, struct wire *); /* what the others are called with */
	void (*flushed)(void *end, struct buf *out); /* takes all of out */
	void (*closed)(void *end);
	void *owner;
};

struct wire *wire_open(struct loop *, const struct conf_cluster *, const char *host,
		       const union address *, const struct wire_far *, const struct wire_hooks *,
		       void *owner);
/* host: whom its certificate must name. far: NULL for a socket. All but the address stay until wire_free(). */

void wire_reached(struct wire *);
void wire_heard(struct wire *, const void *data, size_t len);
void wire_broken(struct wire *, const char *why);
/* From the other end, and never from within a call of struct wire_far. */

void wire_free(struct wire **);

struct buf *wire_out(struct wire *); /* commands, once it is ready */
void wire_flush(struct wire *);
void wire_doom(struct wire *, const char *why);
/* From ready() or heard(): it is closed once that returns. */

bool wire_ready(const struct wire *); /* NULL is not */

#endif
