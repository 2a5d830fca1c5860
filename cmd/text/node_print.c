/* SPDX-License-Identifier: ISC */
#include "cmd/text/node_print.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int widest(const struct cluster_view *v)
{
	size_t most = strlen("node");
	for (int i = 0; i < v->n; i++)
		if (strlen(v->node[i].name) > most)
			most = strlen(v->node[i].name);
	return (int)most;
}

static int64_t queued(const struct node_text *n)
{
	return n->count[NODE_INCOMING] + n->count[NODE_ACTIVE] + n->count[NODE_WAITING] +
	       n->count[NODE_HELD];
}

void node_print_list(struct buf *to, const struct cluster_view *v)
{
	int width = widest(v);
	buf_printf(to, "%-*s  %-8s %-10s %8s %10s %10s\n", width, "node", "state", "version",
		   "seen", "received", "queued");
	for (int i = 0; i < v->n; i++) {
		const struct node_text *n = &v->node[i];
		buf_printf(to, "%-*s  %-8s %-10s %7.1fs %10" PRId64 " %10" PRId64 "\n", width,
			   n->name, n->state, n->version, (double)n->seen_ms / 1000,
			   n->count[NODE_RECEIVED], queued(n));
	}
	if (!v->redis)
		buf_puts(to, "Redis is away: of other nodes nothing is known now\n");
}

void node_print_json(struct buf *to, const struct cluster_view *v)
{
	for (int i = 0; i < v->n; i++) {
		const struct node_text *n = &v->node[i];
		buf_puts(to, "{\"node\":");
		log_json_string(to, n->name);
		buf_puts(to, ",\"state\":");
		log_json_string(to, n->state);
		buf_puts(to, ",\"version\":");
		log_json_string(to, n->version);
		buf_printf(to, ",\"seen\":%.3f", (double)n->seen_ms / 1000);
		for (int k = 0; k < NODE_COUNTER_COUNT; k++)
			buf_printf(to, ",\"%s\":%" PRId64, node_counter_name((enum node_counter)k),
				   n->count[k]);
		buf_puts(to, "}\n");
	}
}
