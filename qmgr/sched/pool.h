/* pool.h - how many recipients are in memory, and whose turn it is to have more.
 *
 * A recipient is in memory from the time that it is read from its message's envelope (reader.h) to
 * its verdict. Each transport has recipient_limit slots, and lends all that are unused to the first
 * job on its list, by age, whose message has unread recipients; when that is read, what it did not
 * use goes on along the list. A job lends its slots to its message as a whole, so one job may
 * sponsor another. An unread job that slips past others gets half of what is left of the extra pool.
 *
 *	transport: rcpt_unused --- slots ---> job: rcpt_limit ---> work: rcpt_limit
 *	           (below 0: from extra_recipient_limit)            = message_recipient_minimum + slots
 *
 * Two bounds hold at all times, and pool_check() asserts them:
 *
 *	of a transport: max(message_recipient_minimum * message_active_limit + recipient_limit +
 *	                    extra_recipient_limit, message_recipient_limit)
 *	of all: the same, with the sum over the transports in use
 *
 * DIFFERS: with POSTFIX they follow from the rules only nearly: the first batches and the minimum
 * add up, and sponsored slots are another transport's. Here a recipient that would exceed one is
 * not read before there is room.
 *
 * THREAD     qmgr.
 * SEE        POSTFIX SCHEDULER_README, "Dealing with memory resource limits".
 */
#ifndef QMGR_SCHED_POOL_H
#define QMGR_SCHED_POOL_H

#include "qmgr/sched/job.h"

void pool_enter(struct job *); /* a new job, in its place on the list */
void pool_leave(struct job *); /* gives back all it has; nothing of it is in memory */

void pool_take(struct job *);		 /* one recipient of it was read */
void pool_free(struct job *, int64_t n); /* so many had their verdicts */

void pool_return(struct job *);
/* The places that the job does not use go to the first unread job, unless that is itself, or to the transport. */

void pool_preempted(struct job *);
/* The job slipped past another: if it is unread, it gets a part of the extra pool. */

int64_t pool_room(struct scheduler *); /* recipients that may be read, by the bound of all */
int64_t pool_transport_room(const struct transport *);

void pool_check(struct scheduler *);
/* Assert the bounds, and count all recipients and slots again. For tests; walks everything. */

#endif
