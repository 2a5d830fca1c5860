/* SPDX-License-Identifier: ISC */
#include "cmd/text/node_rows.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Both are in order: the next of either, or of both. */
static struct node_row next_row(const struct node_text *redis, const struct node_epoch *nats)
{
	int which = !nats ? -1 : !redis ? 1 : strcmp(redis->name, nats->name);
	return (struct node_row){.name = which <= 0 ? redis->name : nats->name,
				 .redis = which <= 0 ? redis : NULL,
				 .nats = which >= 0 ? nats : NULL};
}

void node_rows_init(struct node_rows *all, const struct cluster_view *redis,
		    const struct node_view *nats)
{
	int nredis = redis ? redis->n : 0, nnats = nats ? nats->n : 0;
	*all = (struct node_rows){.redis_away = redis && !redis->redis,
				  .nats_away = nats && !nats->there};
	all->row = mem_zalloc((size_t)(nredis + nnats) * sizeof *all->row + 1);
	for (int i = 0, k = 0; i < nredis || k < nnats;) {
		struct node_row *r = &all->row[all->n++];
		*r = next_row(i < nredis ? &redis->node[i] : NULL,
			      k < nnats ? &nats->node[k] : NULL);
		i += r->redis != NULL;
		k += r->nats != NULL;
	}
	for (int i = 0; i < nredis; i++)
		for (int k = 0; k < NODE_COUNTER_COUNT; k++)
			all->sum.count[k] += redis->node[i].count[k];
}

void node_rows_fini(struct node_rows *all)
{
	free(all->row);
	all->row = NULL;
}

int64_t node_rows_queued(const struct node_text *n)
{
	return n->count[NODE_INCOMING] + n->count[NODE_ACTIVE] + n->count[NODE_WAITING] +
	       n->count[NODE_HELD];
}

const char *node_row_state(const struct node_row *r)
{
	return r->redis ? r->redis->state : r->nats->state;
}

int64_t node_row_seen_ms(const struct node_row *r)
{
	return r->redis ? r->redis->seen_ms : clock_up_ms() - r->nats->since_ms;
}
