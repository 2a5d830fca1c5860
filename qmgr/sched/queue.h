/* queue.h - a destination as the scheduler sees it: Postfix's queue.
 *
 * The peers that wait for it, in the scheduler's order, and whether one of them could be served. Which
 * of the states it is in, the site says that it is a part of (site.h).
 *
 *	QUIET	nothing waits that can be selected, or nothing can be done about it now
 *	PLACED	a slot is free: an entry can be taken at once
 *	BARE	it would have a slot opened, and has none at all
 *	HUNGRY	it would have another slot opened
 *
 * OWNERSHIP  Embedded in struct site. Peers refer to it.
 * THREAD     qmgr.
 * STATES     As above; selection_set() is the one mover.
 */
#ifndef QMGR_SCHED_QUEUE_H
#define QMGR_SCHED_QUEUE_H

#include "qmgr/sched/heap.h"
#include "qmgr/sched/scheduler.h"

enum queue_state { QUEUE_QUIET, QUEUE_PLACED, QUEUE_BARE, QUEUE_HUNGRY, QUEUE_STATES };

struct queue {
	struct transport *transport;
	struct list peers;   /* struct peer with entries that wait */
	int64_t waiting;     /* entries in them */
	struct list granted; /* struct peer with entries that are granted */
	int64_t ngranted;    /* such entries */
	struct list in_dirty;
	struct list in_parked; /* job->parked: its message may not have another slot */

	/* selection.h */
	enum queue_state state;

	/* backlog.h */
	struct heap backlogs, owing; /* struct backlog */
	struct backlog *stands;	     /* in the order of the transport, for the queue; or NULL */
	struct list all_backlogs;
	int nbacklog;
	struct backlog *by_flow; /* those beyond the first few */
	uint64_t virtual_time, era;
};

static inline bool queue_wants_slot(const struct queue *queue)
{
	return queue->state == QUEUE_BARE || queue->state == QUEUE_HUNGRY;
}

/* A next hop leads to a queue, to another one later perhaps. */
struct way {
	struct queue *queue;	     /* NULL until known */
	int peers;		     /* that go by it */
	struct tls_subject *subject; /* for whom its TLS is reported; NULL: it is not */
};

#endif
