/* work.h - a message as the scheduler sees it: its age, its jobs, and how much of it is in memory.
 *
 * OWNERSHIP  Embedded in struct message (message.h), whose envelope and content it shows.
 * THREAD     qmgr.
 */
#ifndef QMGR_SCHED_WORK_H
#define QMGR_SCHED_WORK_H

#include "base/content.h"
#include "base/envelope.h"
#include "qmgr/sched/scheduler.h"

struct work {
	uint64_t id; /* of the message */
	struct envelope *envelope;
	struct content *content;
	uint64_t order;		 /* in which messages were taken up: its age */
	uint64_t rank;		 /* its place among the mail of its flow */
	int64_t taken_steady_ms; /* steady clock: when that was */
	bool verification;	 /* nothing is sent: base/delivery.h */
	bool cancelled;		 /* the operator wants it: nothing more is tried */
	struct flow *flow;
	struct list jobs;
	struct list in_active; /* scheduler->active */

	/* pool.h */
	int64_t unread; /* recipients that a round is to work on and that are not in memory */
	int64_t rcpt_count, rcpt_limit; /* recipients in memory; slots */
};

void work_begin(struct work *, struct scheduler *, struct envelope *, struct content *);
/* The work is the youngest. */

void work_end(struct work *, struct scheduler *);
/* Nothing of it is in memory. Frees its jobs. */

#endif
