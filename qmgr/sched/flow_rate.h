/* flow_rate.h - how many deliveries of a flow in a time, at all sites together.
 *
 * What was selected is counted as a delivery, and what comes back unselected is not. A flow whose next is not due is barred: its
 * backlogs leave the order of their queues, so that others are not even asked to wait, and come back when it is, all by one timer. Of
 * rates above 20 a second up to 50 ms are made up for (pace.h); then it is barred until the rate is kept again, which is as often as
 * 20 times a second at most.
 *
 * In a cluster the nodes share the rate: what is selected was reserved before (base/sharing.h), for no more than waits, and what comes back
 * unselected is this node's to use still. What is reserved is not lost while the flow has work: its mail may wait for a place.
 *
 * Nothing is kept over a restart.
 *
 * THREAD     qmgr.
 * SEE        docs/decisions/0141, 0160.
 */
#ifndef QMGR_SCHED_FLOW_RATE_H
#define QMGR_SCHED_FLOW_RATE_H

#include "qmgr/sched/flow.h"

struct sharing_want;

void flow_rate_wait(struct flow *); /* an entry of it has come */

bool flow_rate_reserved(struct scheduler *, struct sharing_want *);
/* The answer; takes it. False: it is of no flow. */

void flow_rate_count(struct flow *);   /* an entry of it was selected */
void flow_rate_uncount(struct flow *); /* one that was waits again */

void flow_rates_configure(struct scheduler *);
/* Rates are those of the scheduler's configuration from now on. */

int64_t flow_rate_due_ms(const struct flow *); /* steady clock: barred until then */

#endif
