/* shelf.h - the candidates to slip past the current job, by size and age.
 *
 *	backlog --- shelf (one a class of sizes) --- peers that can be selected, by priority and age
 *	claim --- by class and state of the queue: the jobs that are first on shelves of backlogs that stand for their queues, likewise
 *
 * The oldest of a class is the best of its class; so the search looks at one job a class, or at some where that can't slip
 * past: at jobs, not at shelves, of which a list to ten thousand sites leads as many. DIFFERS:
 * a class holds jobs of equal numbers of entries up to 16, and of about equal ones (within an
 * eighth) above; from each only the oldest is considered.
 *
 * OWNERSHIP  A backlog owns its shelves; they come and go with the peers on them.
 * THREAD     qmgr.
 * SEE        POSTFIX qmgr_job.c, qmgr_job_candidate.
 */
#ifndef QMGR_SCHED_SHELF_H
#define QMGR_SCHED_SHELF_H

#include "qmgr/sched/job.h"

struct backlog;

void shelf_add(struct peer *);
void shelf_remove(struct peer *);

void shelf_resize(struct job *);
/* The number of all its entries has changed. */

void shelf_offer(struct backlog *); /* it stands for its queue: what is on its shelves counts */
void shelf_withdraw(struct backlog *);

struct job *shelf_candidate(const struct job *current, enum queue_state up_to);
/* The best of its flow that the current job could still pay for, or NULL. Kept until what it was chosen from
 * changes, or a second has passed. up_to: as for claim_first(). */

#endif
