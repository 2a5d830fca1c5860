/* leased.h - connections to a host with a limit, configured or learnt, that the nodes of a cluster share.
 *
 *	a site finds no host with room --> leased_want() --> SHARING_NEED --> [ cluster ]
 *	hold, and who waits looks again <-- leased_heard() <-- SHARING_LEASED <--+
 *
 * Where there is not one for each of the nodes that want some, a connection ends as soon as it is idle.
 *
 * A connection is begun only while fewer than `hold` are there. More than the cluster thinks fair end: idle ones at once,
 * others when what they carry is done; then others get them. Without a limit nothing is asked; without a
 * cluster there is nothing of this.
 *
 * OWNERSHIP  Embedded in struct host.
 * THREAD     qmgr.
 * ERRORS     None.
 * SEE        base/sharing.h, cluster/lease.h.
 */
#ifndef QMGR_DEST_LEASED_H
#define QMGR_DEST_LEASED_H

#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

struct destdb;
struct host;
struct sharing_leased;

struct leased {
	bool shared;	       /* there is a cluster */
	int64_t limit;	       /* of all nodes, as was told last; 0: nothing was told */
	int64_t hold;	       /* so many connections it may have */
	int64_t want;	       /* was told last */
	int64_t fair;	       /* so many, and no more, since others wait */
	int64_t others;	       /* other nodes have so many */
	bool scarce;	       /* there is not one for each node: none is kept idle */
	struct list in_scarce; /* of destdb, of those in which one is idle */
	uint64_t heard;	       /* number of the last SHARING_LEASED */
};

bool leased_room(const struct host *, int64_t host_limit, int64_t now_ms);
/* For one more connection, in a cluster: host_limit is the configured one, 0 for none. */

void leased_want(struct destdb *, struct host *, int64_t host_limit, int64_t more);
/* So many more would be used than there are: ask for them, where there is a limit, and nobody has. */

void leased_lower(struct destdb *, struct host *);
/* Down to what is fair, and to what is wanted, but never below what there is. */

void leased_closed(struct destdb *, struct host *);
/* A connection has ended: what nobody waits for goes back. */

void leased_idle(struct destdb *, struct host *); /* a connection is idle */

void leased_end(struct destdb *, struct host *); /* the record is about to be freed */

/* leased_heard.c */

void leased_heard(struct destdb *, struct sharing_leased *); /* takes it */

void leased_flush(struct destdb *);
/* Once a wake-up, when all mail has found its place: what is still idle ends where others wait for it. */

#endif
