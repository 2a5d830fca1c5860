/* flow_rate.h - how many deliveries of a flow in a time, at all sites together.
 *
 * What was selected is counted as a delivery, and what comes back unselected is not. A flow whose next is not due is barred: its
 * backlogs leave the order of their queues, so that others are not even asked to wait, and come back when it is, all by one timer. Of
 * rates above 20 a second up to 50 ms are made up for (pace.h); then it is barred until the rate is kept again, which is as often as
 * 20 times a second at most.
 *
 * Nothing is kept over a restart, and each node counts for itself.
 *
 * THREAD     qmgr.
 * SEE        docs/decisions/0141.
 */
#ifndef QMGR_SCHED_FLOW_RATE_H
#define QMGR_SCHED_FLOW_RATE_H

#include "qmgr/sched/flow.h"

void flow_rate_count(struct flow *);   /* an entry of it was selected */
void flow_rate_uncount(struct flow *); /* one that was waits again */

void flow_rates_configure(struct scheduler *);
/* Rates are those of the scheduler's configuration from now on. */

int64_t flow_rate_due_ms(const struct flow *); /* steady clock: barred until then */

#endif
