/* sweep.h - many random destinations, each run as sluice, as Postfix, and by an oracle.
 *
 *	seed --> sweep_write(): one site, one or two hosts, arrivals --> [ sim_run: early, late ]
 *	                                                             --> [ oracle ]
 *
 * Early binding with its cache of connections, and a site that has died tried again after
 * minimal_backoff_time, is what Postfix does; its windows and retries are ours, which are its own.
 *
 * OWNERSHIP  sweep_run() to sweep_fini().
 * THREAD     main.
 * ERRORS     Faults of the scheduler are counted.
 */
#ifndef SIM_SWEEP_H
#define SIM_SWEEP_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct sweep_case {
	uint64_t seed;
	char *what;			      /* the destination in a line */
	double late_ms, early_ms, oracle_ms;  /* mean delays */
	double late_deferred, early_deferred; /* per cent */
	int64_t faults;
};

struct sweep {
	int n;
	struct sweep_case *of; /* by seed */
};

void sweep_run(struct sweep *, int n, uint64_t seed);
/* With this seed and those that follow it. */

void sweep_fini(struct sweep *);
int64_t sweep_faults(const struct sweep *);

bool sweep_worse(const struct sweep_case *); /* than Postfix, beyond noise */
bool sweep_far(const struct sweep_case *);   /* more than half as long again as the oracle */

void sweep_report(struct sweep *, struct buf *to);
void sweep_json(const struct sweep *, struct buf *to); /* an object a line */

void sweep_write(uint64_t seed, struct buf *scenario, struct buf *what);
/* The text of a scenario, and a line about it. */

#endif
