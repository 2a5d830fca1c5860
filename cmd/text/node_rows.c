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

static bool is_of_queue(enum node_counter k)
{
	return k == NODE_INCOMING || k == NODE_ACTIVE || k == NODE_WAITING || k == NODE_HELD;
}

/* Until it comes back, Redis has what it said before another took its queue. */
static bool has_another_its_queue(const struct node_row *r)
{
	return r->nats &&
	       (strcmp(r->nats->state, "adopted") == 0 || strcmp(r->nats->state, "retired") == 0);
}

bool node_row_counts(const struct node_row *r, enum node_counter k)
{
	return r->redis && !(is_of_queue(k) && has_another_its_queue(r));
}

static void add_row(struct node_text *sum, const struct node_row *r)
{
	for (int k = 0; k < NODE_COUNTER_COUNT; k++)
		if (node_row_counts(r, (enum node_counter)k))
			sum->count[k] += r->redis->count[k];
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
	for (int i = 0; i < all->n; i++)
		add_row(&all->sum, &all->row[i]);
}

void node_rows_fini(struct node_rows *all)
{
	mem_free(&all->row);
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
