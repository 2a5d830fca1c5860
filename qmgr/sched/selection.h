/* selection.h - which entry is next: the scheduler's order of jobs, and who slips past.
 *
 *	order:  jobs by priority and age of their message, and in front of each who slipped past it, of the same priority
 *
 *	transport --- claims with such queues       (heap, who holds least: claim.h)
 *	                 |
 *	                 +--- queues with a place          (heap, by their first peer)
 *	                 +--- queues without a connection, queues that want to grow     (heaps, likewise)
 *	                         |
 *	                         +--- first backlog, whose turn it is there   (heap, by virtual time: backlog.h)
 *	                                 |
 *	                                 +--- peers that can be selected   (heap, by the order of their jobs,
 *	                                                                    those of one job in turn)
 *	                                 +--- shelves: the same peers by the number of entries of their jobs, by age
 *
 * Among the mail of one flow:
 *
 * The current job is the first whose peer leads to one of those queues; all jobs before it are
 * blockers. Nothing is walked: what POSTFIX finds by going along the job list past blockers is the
 * top of a heap here, and a queue that frees a place unblocks all its jobs by entering one.
 *
 * The candidates to slip past the current job lie on shelves: shelf.h.
 *
 * STATES     Of a queue: queue.h.
 * THREAD     qmgr.
 * SEE        POSTFIX SCHEDULER_README, "How the entry selection works"; POSTFIX qmgr_job.c.
 */
#ifndef QMGR_SCHED_SELECTION_H
#define QMGR_SCHED_SELECTION_H

#include "qmgr/sched/job.h"

void selection_init(struct transport *);
void selection_fini(struct transport *);

void selection_init_queue(struct queue *, struct transport *);
void selection_fini_queue(struct queue *); /* no peer is left */

void selection_update(struct peer *);
/* The number of its entries that can be selected has changed. */

void selection_retire(struct job *);
/* The job leaves the stack. Harmless on one that is not in it. */

void selection_set(struct queue *, enum queue_state);

struct peer *selection_next(struct transport *, enum queue_state up_to);
/* Whose turn it is. May let a job slip past the current one. up_to: as for claim_first().
 * NULL: nobody's. */

void selection_took_turn(struct peer *);
/* One of its entries was selected: other peers of the job come before it. */

struct peer *selection_first(const struct queue *); /* the first at this queue, or NULL */

struct peer *selection_other(const struct queue *, bool (*fits)(const struct peer *));
/* The first at this queue, or one of the first, that fits. */

#endif
