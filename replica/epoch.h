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
 * The bucket may lose what it has acknowledged. So the stream of the queue says who has it, too, and what is later there is
 * written into the bucket anew: epoch_is_later().
 *
 * OWNERSHIP  Embedded; the caller's.
 * THREAD     Any. No clock, no I/O.
 * ERRORS     None.
 */
#ifndef REPLICA_EPOCH_H
#define REPLICA_EPOCH_H

#include "replica/format.h"

/* A row as one node has seen it. */
struct sighting {
	uint64_t revision; /* 0: none */
	int64_t since_ms;  /* up-clock: when this revision was first seen, */
	int64_t gap_ms;	   /* and how long before an older one was; -1: none was */
	int64_t read_ms;   /* up-clock: when any was seen last */
};

void sighting_note(struct sighting *, uint64_t revision, int64_t now_ms);

enum epoch_bond {
	EPOCH_MEMBER,
	EPOCH_DRAINED, /* its queue was handed over, to whoever takes it */
	EPOCH_LEFT     /* by order: the queue has been worked on without the others since */
};

/* A node's own, from the folder of its queue. */
struct epoch_own {
	/* Under which it has had its epoch; "": not written down. */
	char name[REPLICA_NODE_MAX + 1];
	enum epoch_bond bond;
	uint64_t life;
	uint64_t
		epoch; /* the last that this folder was to have, noted before it is taken; 0: none */
	uint32_t beat; /* of what it has sent since: format.h */
};

enum epoch_start {
	EPOCH_TAKE,  /* write the row as up, with the next epoch */
	EPOCH_WAIT,  /* another has the queue of this name, or is taking it */
	EPOCH_PAST,  /* what lies in this folder is another's: put it aside, then ask again */
	EPOCH_DOUBT, /* folder and row contradict each other: one of them is older than it seems. The
		      * operator is to say which; nothing is put aside, or sent, before */
	EPOCH_NEVER  /* the name is retired, and no queue of it lies here */
};

enum epoch_start epoch_start(const struct replica_epoch *row, const struct epoch_own *);
/* row NULL: there is none. */

bool epoch_is_left(const struct replica_epoch *row, const struct epoch_own *);
/* The node has left, and its row has gone on without it: what lies in the folder is no part of what others have, and begins
 * a life of its own. */

uint64_t epoch_next(const struct replica_epoch *row, const struct epoch_own *);
/* To take: later than any that row and folder know of. */

bool epoch_is_behind(const struct epoch_own *, uint64_t epoch, uint32_t beat);
/* The stream has what a later state of this folder has sent: the folder comes from a backup, or is a copy. */

/* The judgement of a node that is up on its row, as it was read. */
enum epoch_row {
	EPOCH_HOLDS,
	EPOCH_OLDER, /* it is one before the last that was acknowledged to us: the bucket has lost that, or
		      * another server is behind. Our own is to be written again, by that revision */
	EPOCH_TAKEN,  /* another has its queue */
	EPOCH_STRANGE /* a twin of ours, or somebody's hand: nobody is known to have the queue */
};

enum epoch_row epoch_row(const struct replica_epoch *row, uint64_t revision,
			 const struct replica_epoch *ours, uint64_t written);
/* written: the revision of ours. */

bool epoch_is_later(const struct replica_epoch *claim, const struct replica_epoch *row);
/* The claim in the stream of a queue is later than the row in the bucket: that has lost some. Of two who have
 * the same epoch, since the bucket had lost the one's, the stream knows who was first. */

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
