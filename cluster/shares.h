/* shares.h - limits that nodes share: what other threads ask of the cluster (base/sharing.h), and Redis' answers.
 *
 *	SHARING_NEED --> lease_table --> [ struct lease, one a host ] --+
 *	                                                                +--> a script, by the link
 *	SHARING_WANT, SHARING_SPENT --> reserve_table --> [ struct reserve, one a name ] --+
 *
 * Where Redis is away, does not answer or can't (it is out of memory, or is a replica), each node has its part: the limit
 * divided by the nodes seen last.
 *
 * OWNERSHIP  Whoever makes it frees it, after the link, which answers what is awaited.
 * THREAD     The loop's; shares_new() and shares_watch(): before it runs.
 * ERRORS     None: an answer comes in any case.
 */
#ifndef CLUSTER_SHARES_H
#define CLUSTER_SHARES_H

#include "base/sharing.h"
#include "cluster/link.h"
#include "cluster/nodes.h"

struct shares;

struct shares *shares_new(struct loop *, struct link *, const char *node, const struct nodes *seen);
/* node: its name, no other's. It watches the link. seen: how many share. */

void shares_stop(
	struct shares *); /* the link is about to go: nothing is asked or answered any more */

void shares_free(struct shares **);

void shares_watch(struct shares *, struct loop *);
/* Gets SHARING_PARTS, whenever it is another number; 1 at first. */

bool shares_take(struct shares *, struct note *);
/* True: it was one of base/sharing.h, and is taken. */

#endif
