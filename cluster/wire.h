/* wire.h - one connection to Redis, from connect to its end.
 *
 *	connecting -> (tls ->) hello -> ready
 *		 \_________\________\______\____ closed() once; then only wire_free()
 *
 * hello is AUTH, SELECT and PING, sent together: ready() comes when all were answered well. From then on each
 * reply is passed on by heard().
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

#include <hiredis/hiredis.h>

struct wire;

struct wire_hooks {
	void (*ready)(void *owner, struct wire *);
	void (*heard)(void *owner, struct wire *, const redisReply *);
	void (*closed)(void *owner, struct wire *, const char *why);
};

struct wire *wire_open(struct loop *, const struct conf_cluster *, const char *host,
		       const union address *, const struct wire_hooks *, void *owner);
/* host: whom its certificate must name. All but the address stay until wire_free(). */

void wire_free(struct wire **);

struct buf *wire_out(struct wire *); /* commands, once it is ready */
void wire_flush(struct wire *);
void wire_doom(struct wire *, const char *why);
/* From ready() or heard(): it is closed once that returns. */

bool wire_ready(const struct wire *); /* NULL is not */

#endif
