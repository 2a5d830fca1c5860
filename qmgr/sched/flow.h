/* flow.h - whose mail it is: all messages of one flow that are being worked on.
 *
 * Its name was decided when the message was accepted, and is in the envelope. Flows share what is scarce by their weights: the places of a
 * site (backlog.h), the connections of a transport (claim.h). What one may send in a time: flow_rate.h.
 *
 * OWNERSHIP  The scheduler's table. A flow is there while it has work, or a queue remembers it, or its next delivery is not due.
 * THREAD     qmgr.
 * SEE        docs/decisions/0129.
 */
#ifndef QMGR_SCHED_FLOW_H
#define QMGR_SCHED_FLOW_H

#include "base/keyed_hash.h"
#include "base/list.h"
#include "qmgr/sched/pace.h"
#include "qmgr/sched/scheduler.h"

#include <stdint.h>

/* A step of virtual time is this, by the weight: the numbers last for 10^13 transactions of a queue that never empties. */
#define FLOW_UNIT (INT64_C(1) << 20)

struct flow {
	char *name;
	struct scheduler *scheduler;
	const struct conf_flow *settings; /* of the scheduler's configuration */
	int64_t nwork;			  /* messages being worked on */
	int64_t nowing;			  /* queues that remember it, though it has nothing there */
	int64_t unselected;		  /* entries of its messages */
	struct list claims;		  /* struct claim, one a transport */

	/* the queue manager's: messages whose next hops are to be looked up, and where such flows take turns */
	struct list unrouted, in_unrouted;
	int64_t turns; /* left */

	/* flow_rate.h */
	struct pace pace;
	bool barred;	      /* the next is not due: its backlogs are in no queue's order */
	struct timer due;     /* then it is */
	struct list backlogs; /* struct backlog with peers that can be selected */
	UT_hash_handle hh;
};

struct flow *flow_join(struct scheduler *,
		       const char *name); /* one message more; made at first use */
void flow_part(struct flow *);		  /* one less; the last frees it */

void flow_free_unused(struct flow *); /* unless somebody has a use for it */

void flow_owe(struct flow *); /* a queue remembers it */
void flow_owe_no_more(struct flow *);

void flows_configure(struct scheduler *);
/* Their settings are those of the scheduler's configuration, from now on. */

void flows_free(struct scheduler *); /* at the end: no work is left */

static inline bool flow_shares_rate(const struct flow *f) /* with other nodes */
{
	return f->scheduler->share && f->settings->rate.events > 0;
}

static inline uint64_t flow_step(const struct flow *f) /* of virtual time, for one transaction */
{
	return (uint64_t)(FLOW_UNIT / f->settings->weight);
}

#endif
