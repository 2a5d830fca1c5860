/* flow_groups.h - flows by groups, as a reader wants them: tenant-1 to tenant-200 are tenant.
 *
 * The name of a group is that of a flow up to the first digit or -.
 *
 * OWNERSHIP  Embedded; names lie in the tally's. numbers are the caller's to free.
 * THREAD     main. Pure.
 * ERRORS     Beyond FLOW_GROUPS_MAX the rest is one group, "others".
 */
#ifndef SIM_FLOW_GROUPS_H
#define SIM_FLOW_GROUPS_H

#include "sim/tally.h"

enum { FLOW_GROUPS_MAX = 5 };

struct flow_groups {
	int n;
	char name[FLOW_GROUPS_MAX + 1][64];
};

void flow_groups_find(struct flow_groups *, const struct tally *);
int flow_groups_of(const struct flow_groups *, const struct tally_flow *); /* its group */

/* Of what came in a time. */
struct flow_period {
	struct numbers waits; /* ms until sent */
	int64_t queued;	      /* of it is in the queue at the end */
};

void flow_groups_count(const struct flow_groups *, const struct tally *, int group,
		       const struct scenario_span *, struct flow_period *);

#endif
