/* nodes.h - who is there: a hash of all nodes in Redis, and a heartbeat a second.
 *
 *	PREFIX nodes	NAME -> "SEEN<TAB>", node_text.h, and "<TAB>run=" of the process; SEEN by Redis' clock, in milliseconds
 *
 * All are looked at every two seconds, and where there are more than a hundred nodes so much less often that a second has
 * fifty looks, of all of them together.
 *
 * A node that has not been seen for NODE_GONE_MS is gone; one that has been gone for a week is forgotten. More than
 * NODES_MAX are not looked at.
 *
 * The heartbeat is a write, so it is what finds out that Redis is full, its memory or its disk: that is said once, and once when it has
 * not been for a while. It also finds out when two nodes have one name, which is said, too; and, since it is told what stood there before,
 * that Redis has lost data, under a standing connection or while it was away.
 *
 * OWNERSHIP  One of a cluster.
 * THREAD     cluster's.
 * ERRORS     What makes no sense is passed over.
 */
#ifndef CLUSTER_NODES_H
#define CLUSTER_NODES_H

#include "cluster/cluster.h"
#include "cluster/link.h"

enum { NODES_MAX = 1000, HEARTBEAT_MS = 1000 };

struct nodes;

struct nodes *nodes_new(struct loop *, struct link *, const char *name, const char *version,
			const struct cluster_edges *);
void nodes_start(struct nodes *);
void nodes_free(struct nodes **);

int nodes_alive(const struct nodes *);
/* When Redis was last heard of, with this one: at least 1. Who is not seen any more counts for NODE_GONE_MS. */

bool nodes_look(struct nodes *, void (*seen)(void *owner, const struct cluster_view *),
		void *owner);
/* Who is there now? The view is lent for the call; NULL: there is no answer. False: Redis is away, and seen() is not called. */

extern const char nodes_beat_script[], nodes_look_script[];

#endif
