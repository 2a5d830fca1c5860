/* channel.h - packets to the name servers and back: c-ares on the loop.
 *
 *	channel_send(bytes) --> c-ares: which server, UDP or TCP, when again
 *	                           --> replied(bytes or why)
 *
 * c-ares chooses the server, repeats, changes to TCP for a truncated reply, and takes a reply only
 * from the server that was asked, with the id and the question that were asked. What it gives up before the time of the settings
 * is over is asked again (decision 0213), and a server that is silent goes behind one that answers (0225).
 *
 * OWNERSHIP  The sender owns its struct channel_query, which must live until replied() is called.
 *            channel_free() calls it for all that are under way, with CHANNEL_CLOSED.
 * THREAD     dns.
 * ERRORS     As events, and logged. replied() may be called before channel_send() returns. A channel that
 *            can't be set up answers CHANNEL_FAILED, and is set up again at the next second's
 *            query.
 * SEE        cares.h, ares_init_options(3).
 */
#ifndef DNS_CHANNEL_H
#define DNS_CHANNEL_H

#include "base/conf.h"
#include "base/loop.h"
#include "base/resolve.h"

#include <stddef.h>
#include <stdint.h>

enum channel_event {
	CHANNEL_REPLY,	 /* bytes came; they are only lent */
	CHANNEL_TIMEOUT, /* no server answered */
	CHANNEL_FAILED,	 /* the servers refused, failed, or can't be reached */
	CHANNEL_CLOSED,	 /* the channel is being freed */
};

struct channel_query {
	void (*replied)(struct channel_query *, enum channel_event, const void *bytes, size_t len);
};

struct channel;

struct channel *channel_new(struct loop *, const struct conf_dns *, const struct channel *before,
			    void (*worked)(void *owner), void *owner);
/* before: the one that it replaces, or NULL; where resolv.conf can't be read any more, its servers
 * stay. worked() is called when sockets or time-outs may have brought replies. The settings are only
 * lent. */

struct channel *channel_new_single(struct loop *, const struct conf_dns *,
				   const union address *server, void (*worked)(void *owner),
				   void *owner);
/* One server, whatever the settings name; and all that it says is a reply, also SERVFAIL, NOTIMP and
 * REFUSED. */

void channel_free(struct channel **);

int channel_servers(const struct channel *, union address *server, int max);
/* Where questions go, without the ports; the number of them. */

void channel_count(enum channel_event, const unsigned char *bytes, size_t len);
/* Count an answer, also of others than the channel, by what came of the question. */

void channel_send(struct channel *, const void *bytes, size_t len, struct channel_query *);

#endif
