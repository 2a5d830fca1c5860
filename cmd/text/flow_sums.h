/* flow_sums.h - the flows of all nodes, each once, and which nodes have not said theirs.
 *
 * OWNERSHIP  flow_sums_init() to flow_sums_fini(); it refers to what was said.
 * THREAD     Any.
 * ERRORS     A line that makes no sense is passed over.
 * SEE        sluice(8), "Flows"; flow_tell.h.
 */
#ifndef CMD_TEXT_FLOW_SUMS_H
#define CMD_TEXT_FLOW_SUMS_H

#include "base/keyed_hash.h"
#include "cluster/cluster.h"
#include "qmgr/flow_command.h"

struct flow_at {
	const char *node;
	bool suspended;
};

struct flow_sum {
	struct flow_row row; /* until_ms: when the last of its suspensions ends; 0: one does not */
	bool endless;
	int nat;
	struct flow_at *at; /* nodes that know it, by name */
	UT_hash_handle hh;
};

struct flow_sums {
	struct flow_sum *table; /* the order is that of `flow list` */
	const struct cluster_inquiry *said;
	int64_t sending; /* of all flows */
	int answered;	 /* nodes */
	int64_t left;	 /* flows of theirs that had no room */
};

void flow_sums_init(struct flow_sums *, const struct cluster_inquiry *);
void flow_sums_fini(struct flow_sums *);

void flow_sums_list(struct buf *, const struct flow_sums *, int64_t now_ms);
void flow_sums_json(struct buf *, const struct flow_sums *);
/* Each flow, and then each node: in the text only those that have not answered. */

#endif
