/* model_redis.h - Redis as nodes of a cluster see it: what the scripts of cluster/ do, in C.
 *
 * tests/unit/cluster/test_scripts.c holds it beside a real one.
 *
 * OWNERSHIP  The model owns what it keeps.
 * THREAD     One.
 * ERRORS     None.
 */
#ifndef SIM_MODEL_REDIS_H
#define SIM_MODEL_REDIS_H

#include "cluster/lease.h"
#include "cluster/reserve.h"

/* One host: what each node has said. */
struct model_lease {
	int nodes;
	struct model_lease_row {
		int64_t hold, want, until_ms;
		bool there, more; /* more: one of those that may have one more than `part` */
	} * row;     /* by the number of the node, which is also the order of their names */
	int rows;    /* that are there */
	bool summed; /* with: */
	int64_t at_ms, held, wanting, part;
	int64_t scanned; /* rows that the last evaluation has looked at */
};

void model_lease_init(struct model_lease *, int nodes);
void model_lease_fini(struct model_lease *);
void model_lease_eval(struct model_lease *, int node, const struct lease_ask *, int64_t now_ms,
		      int64_t scan_ms, struct lease_answer *);

/* One rate. */
struct model_rate {
	int64_t at_us;
};

void model_rate_eval(struct model_rate *, const struct reserve_ask *, int64_t now_us,
		     struct reserve_answer *);

#endif
