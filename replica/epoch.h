/* epoch.h - who may answer for a node's queue, and from when on: decisions only, by what the bucket says.
 *
 *	owner     asks for its row to be written anew at t0, by the revision that it wrote last -- done -->
 *	          its fence is open until t0 + lease
 *	another   sees that revision first at s (after t0, or it could not be there); still the same
 *	          at s + 2 * lease --> writes the row as its own, by that revision: one of all who try is
 *	          first, and an owner who was slow fails when it writes the next time; one whose fence has closed
 *	          asks no more. A while later it writes the row once more by that revision (roster.h)
 *
 * So between the end of what the owner may do and the beginning of what another does there is at least one lease:
 * (and another one before what was adopted is worked on: node_adopt.c)
 * the margin for what is on its way to a next hop, and for clocks that do not go alike. The lease is half of the
 * owner's adopt_after, and stands in its row, so that nodes with other settings do no harm. All times are
 * the reader's own, since its boot, time asleep included; no wall clock is compared.
 *
 *	        +--> UP ----------> ADOPTING --> ADOPTED --+
 *	        |    |  ^ restart       ^                  | the node comes back, its old segments
 *	        |    v  |               | at once          | put aside
 *	        |   DRAINED ------------+                  |
 *	        +------------------------------------------+      any but UP, with nothing left --> RETIRED
 *
 * OWNERSHIP  Embedded; the caller's.
 * THREAD     Any. No clock, no I/O.
 * ERRORS     None.
 */
#ifndef REPLICA_EPOCH_H
#define REPLICA_EPOCH_H

#include "replica/format.h"

/* What one node has seen of a row. */
struct sighting {
	uint64_t revision; /* 0: none */
	int64_t since_ms;  /* up-clock: when this revision was first seen */
};

void sighting_note(struct sighting *, uint64_t revision, int64_t now_ms);

/* A node's own, from the folder of its queue. */
struct epoch_own {
	uint64_t life;
	uint64_t epoch; /* the last that this folder had; 0: none */
};

enum epoch_start {
	EPOCH_TAKE, /* write the row as up, with the next epoch */
	EPOCH_WAIT, /* another has the queue of this name, or is taking it */
	EPOCH_PAST, /* what lies in this folder is another's: put it aside, then ask again */
	EPOCH_NEVER /* the name is retired */
};

enum epoch_start epoch_start(const struct replica_epoch *row, const struct epoch_own *);
/* row NULL: there is none. */

enum epoch_adopt {
	EPOCH_MAY,     /* take it over, by the revision that was seen */
	EPOCH_NOT_YET, /* it may still answer; ask again */
	EPOCH_NOT      /* there is nothing to adopt, or another is at it */
};

enum epoch_adopt epoch_adopt(const struct replica_epoch *row, const struct sighting *, bool ordered,
			     int64_t now_ms);
/* ordered: by the operator, who does not wait for the second lease. */

int64_t epoch_lease_ms(int64_t adopt_after_ms);
int64_t epoch_renew_ms(int64_t lease_ms);		    /* how often the owner writes its row */
int64_t epoch_fence_ms(int64_t asked_ms, int64_t lease_ms); /* for fence_set() */

#endif
