/* flow.h - whose mail it is: all messages of one flow that are being worked on.
 *
 * Its name was decided when the message was accepted, and is in the envelope. Flows share what is scarce by their weights: the places of a
 * site (backlog.h), the connections of a transport (claim.h).
 *
 * OWNERSHIP  The scheduler's table. A flow is there while it has work, or a queue remembers it.
 * THREAD     qmgr.
 * SEE        docs/decisions/0129.
 */
#ifndef QMGR_SCHED_FLOW_H
#define QMGR_SCHED_FLOW_H

#include "base/keyed_hash.h"
#include "base/list.h"
#include "qmgr/sched/scheduler.h"

#include <stdint.h>

/* A step of virtual time is this, by the weight: the numbers last for 10^13 transactions of a queue that never empties. */
#define FLOW_UNIT (INT64_C(1) << 20)

struct flow {
	char *name;
	int64_t weight;	    /* from 1 */
	int64_t nwork;	    /* messages being worked on */
	int64_t nowing;	    /* queues that remember it, though it has nothing there */
	struct list claims; /* struct claim, one a transport */
	UT_hash_handle hh;
};

struct flow *flow_join(struct scheduler *,
		       const char *name);	   /* one message more; made at first use */
void flow_part(struct scheduler *, struct flow *); /* one less; the last frees it */

void flow_owe(struct flow *); /* a queue remembers it */
void flow_owe_no_more(struct scheduler *, struct flow *);

void flows_configure(struct scheduler *);
/* Weights are those of the scheduler's configuration from now on. */

static inline uint64_t flow_step(const struct flow *f) /* of virtual time, for one transaction */
{
	return (uint64_t)(FLOW_UNIT / f->weight);
}

#endif
