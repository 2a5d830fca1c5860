/* SPDX-License-Identifier: ISC */
#include "cmd/text/node_print.h"

#include "cmd/text/json_put.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NUMBER_SIZE = 24 };

static int name_width(const struct node_rows *all)
{
	size_t most = strlen("node");
	for (int i = 0; i < all->n; i++)
		if (strlen(all->row[i].name) > most)
			most = strlen(all->row[i].name);
	return (int)most;
}

/* "-" where the engine does not know. */
static const char *number_or_dash(char to[NUMBER_SIZE], bool known, int64_t n)
{
	snprintf(to, NUMBER_SIZE, "%" PRId64, n);
	return known ? to : "-";
}

static void put_row(struct buf *to, int width, const struct node_row *r)
{
	char received[NUMBER_SIZE], queued[NUMBER_SIZE], epoch[NUMBER_SIZE];
	buf_printf(
		to, "%-*s  %-8s %-10s %7.1fs %10s %10s %7s %-8s %s\n", width, r->name,
		node_row_state(r), r->redis ? r->redis->version : "-",
		(double)node_row_seen_ms(r) / 1000,
		number_or_dash(received, r->redis, r->redis ? r->redis->count[NODE_RECEIVED] : 0),
		number_or_dash(queued, node_row_counts(r, NODE_ACTIVE),
			       r->redis ? node_rows_queued(r->redis) : 0),
		number_or_dash(epoch, r->nats, r->nats ? (int64_t)r->nats->epoch : 0),
		r->nats ? r->nats->state : "-", r->nats ? r->nats->by : "-");
}

void node_print_list(struct buf *to, const struct node_rows *all)
{
	char received[NUMBER_SIZE], queued[NUMBER_SIZE], nodes[NUMBER_SIZE];
	int width = name_width(all);
	bool known = false;
	buf_printf(to, "%-*s  %-8s %-10s %8s %10s %10s %7s %-8s %s\n", width, "node", "state",
		   "version", "seen", "received", "queued", "epoch", "queue", "by");
	for (int i = 0; i < all->n; i++) {
		put_row(to, width, &all->row[i]);
		known |= all->row[i].redis != NULL;
	}
	snprintf(nodes, sizeof nodes, "-- %d", all->n);
	buf_printf(to, "%-*s  %-8s %-10s %8s %10s %10s\n", width, nodes, "", "", "",
		   number_or_dash(received, known, all->sum.count[NODE_RECEIVED]),
		   number_or_dash(queued, known, node_rows_queued(&all->sum)));
	if (all->redis_away)
		buf_puts(to, "Redis is away: it says nothing of other nodes now\n");
	if (all->nats_away)
		buf_puts(to, "NATS is away: whose queue is whose is as it said last\n");
}

static void put_redis(struct buf *to, const struct node_row *r)
{
	const struct node_text *n = r->redis;
	json_put_text(to, "version", n ? n->version : NULL);
	if (n)
		buf_printf(to, "\"seen\":%.3f,", (double)n->seen_ms / 1000);
	else
		json_put_text(to, "seen", NULL);
	for (int k = 0; k < NODE_COUNTER_COUNT; k++)
		if (node_row_counts(r, (enum node_counter)k))
			json_put_number(to, node_counter_name((enum node_counter)k), n->count[k]);
		else
			json_put_text(to, node_counter_name((enum node_counter)k), NULL);
}

static void put_nats(struct buf *to, const struct node_row *r)
{
	static const char *const names[] = {"epoch", "silent_ms", "number"};
	json_put_text(to, "queue", r->nats ? r->nats->state : NULL);
	json_put_text(to, "by", r->nats ? r->nats->by : NULL);
	for (size_t i = 0; !r->nats && i < sizeof names / sizeof names[0]; i++)
		json_put_text(to, names[i], NULL);
	if (!r->nats)
		return;
	const struct node_row alone = {.name = r->name, .nats = r->nats};
	json_put_number(to, "epoch", (int64_t)r->nats->epoch);
	json_put_number(to, "silent_ms", node_row_seen_ms(&alone));
	json_put_number(to, "number", r->nats->number);
}

void node_print_json(struct buf *to, const struct node_rows *all)
{
	for (int i = 0; i < all->n; i++) {
		const struct node_row *r = &all->row[i];
		buf_puts(to, "{");
		json_put_text(to, "node", r->name);
		json_put_text(to, "state", node_row_state(r));
		put_redis(to, r);
		put_nats(to, r);
		json_put_line(to);
	}
}
