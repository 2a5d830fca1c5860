/* snapshot_flows.h - the busiest flows, in a summary of the scheduler.
 *
 * A flow is busier than another when more of its messages are being worked on; then when more of its recipients had a verdict
 * today; then by its name.
 *
 * OWNERSHIP  Embedded in struct snapshot. It holds copies only; snapshot_flows_fini().
 * THREAD     snapshot_flows_take(): qmgr. Else whoever holds it.
 * ERRORS     None.
 */
#ifndef QMGR_SNAPSHOT_FLOWS_H
#define QMGR_SNAPSHOT_FLOWS_H

#include <stdint.h>

enum { SNAPSHOT_FLOWS_MAX = 50 };

struct snapshot_flow {
	char *name;
	int64_t messages;		 /* being worked on */
	int64_t sent, deferred, refused; /* recipients, today: flow_tally.h */
};

struct snapshot_flows {
	int n;
	struct snapshot_flow flow[SNAPSHOT_FLOWS_MAX]; /* the busiest first */
};

struct qmgr;
void snapshot_flows_take(struct qmgr *, struct snapshot_flows *);
void snapshot_flows_fini(struct snapshot_flows *);

#endif
