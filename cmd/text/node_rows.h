/* node_rows.h - the nodes of the cluster: what each engine says of one is a row.
 *
 * OWNERSHIP  Embedded; refers to the views that it was made of.
 * THREAD     Any.
 * ERRORS     None.
 */
#ifndef CMD_TEXT_NODE_ROWS_H
#define CMD_TEXT_NODE_ROWS_H

#include "cluster/cluster.h"
#include "replica/node_view.h"

struct node_row {
	const char *name;
	const struct node_text *redis; /* NULL: Redis does not know it */
	const struct node_epoch *nats; /* NULL: NATS does not know it */
};

struct node_rows {
	int n;
	struct node_row *row; /* by name */
	/* Of all counters; mail of a queue that another node has counts there. */
	struct node_text sum;
	bool redis_away, nats_away;
};

void node_rows_init(struct node_rows *, const struct cluster_view *, const struct node_view *);
/* NULL: without that engine. */

void node_rows_fini(struct node_rows *);

int64_t node_rows_queued(const struct node_text *);
bool node_row_counts(const struct node_row *, enum node_counter);
/* False: it is not known, or past. */

const char *node_row_state(const struct node_row *); /* by its heartbeat; else of its queue */
int64_t node_row_seen_ms(const struct node_row *);   /* ago */

#endif
