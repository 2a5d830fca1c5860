/* SPDX-License-Identifier: ISC */
#include "cmd/text/flow_sums.h"

#include "base/conf_units.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cmd/text/flow_print.h"
#include "cmd/text/flow_tell.h"
#include "cmd/text/json_put.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct flow_sum *sum_of(struct flow_sums *all, const char *name)
{
	struct flow_sum *sum;
	HASH_FIND_STR(all->table, name, sum);
	if (sum)
		return sum;
	sum = mem_zalloc(sizeof *sum);
	sum->row.name = mem_strdup(name);
	HASH_ADD_KEYPTR(hh, all->table, sum->row.name, strlen(sum->row.name), sum);
	return sum;
}

/* A node says each of its flows once. */
static void add_row(struct flow_sums *all, const struct flow_row *row, const char *node)
{
	struct flow_sum *sum = sum_of(all, row->name);
	if (sum->nat > 0 && sum->at[sum->nat - 1].node == node)
		return;
	flow_told_add(&sum->row, row);
	sum->endless |= row->suspended && row->until_ms == 0;
	sum->at = mem_realloc(sum->at, ((size_t)sum->nat + 1) * sizeof *sum->at);
	sum->at[sum->nat++] = (struct flow_at){node, row->suspended};
}

static void add_line(struct flow_sums *all, char *line, const char *node)
{
	struct flow_told told;
	if (!flow_told_read(&told, line))
		return;
	if (told.row.name) {
		add_row(all, &told.row, node);
	} else {
		all->sending += told.row.sending;
		all->left += told.left;
	}
	flow_told_fini(&told);
}

static int suspended_at(const struct flow_sum *sum)
{
	int n = 0;
	for (int i = 0; i < sum->nat; i++)
		n += sum->at[i].suspended;
	return n;
}

/* Suspended by all who have answered. */
static void end_sum(const struct flow_sums *all, struct flow_sum *sum)
{
	int n = suspended_at(sum);
	sum->row.suspended = n > 0 && n == all->answered;
	if (sum->endless)
		sum->row.until_ms = 0;
}

static int busier_sum(const void *a, const void *b)
{
	const struct flow_sum *x = a, *y = b;
	bool x_stops = suspended_at(x) > 0, y_stops = suspended_at(y) > 0;
	if (x_stops != y_stops)
		return y_stops - x_stops;
	if (x->row.messages != y->row.messages)
		return x->row.messages < y->row.messages ? 1 : -1;
	return strcmp(x->row.name, y->row.name);
}

void flow_sums_init(struct flow_sums *all, const struct cluster_inquiry *said)
{
	*all = (struct flow_sums){.said = said};
	for (int i = 0; i < said->n; i++) {
		struct cluster_said *node = &said->said[i];
		if (!node->answered)
			continue;
		all->answered++;
		char *copy = mem_strdup(buf_cstr(&node->text));
		char *rest = copy;
		for (char *line; (line = strsep(&rest, "\n")) != NULL;)
			add_line(all, line, node->node);
		free(copy);
	}
	for (struct flow_sum *sum = all->table; sum; sum = sum->hh.next)
		end_sum(all, sum);
	HASH_SORT(all->table, busier_sum);
}

void flow_sums_fini(struct flow_sums *all)
{
	hash_each (struct flow_sum, sum, all->table) {
		HASH_DEL(all->table, sum);
		free(sum->row.name);
		free(sum->at);
		free(sum);
	}
}

static const char *sum_state(const struct flow_sum *sum)
{
	return sum->row.suspended ? "suspended" : suspended_at(sum) > 0 ? "partly" : "active";
}

static void put_suspended(struct buf *to, const struct flow_sum *sum)
{
	const char *before = " suspended_at=";
	for (int i = 0; i < sum->nat; i++)
		if (sum->at[i].suspended) {
			buf_printf(to, "%s%s", before, sum->at[i].node);
			before = ",";
		}
}

/* Without the quotation marks that it has in a configuration. */
static void put_rate(struct buf *to, const struct conf_rate *rate)
{
	struct buf text = {0};
	conf_rate_print(rate, &text);
	if (rate->events > 0)
		buf_printf(to, " rate=%.*s", (int)buf_len(&text) - 2, buf_data(&text) + 1);
	buf_fini(&text);
}

static void put_sum(struct buf *to, const struct flow_sums *all, const struct flow_sum *sum,
		    int64_t now_ms)
{
	utf8_put(to, sum->row.name);
	buf_printf(to, " %s", sum_state(sum));
	flow_print_figures(to, &sum->row, all->sending, now_ms);
	put_rate(to, &sum->row.rate);
	buf_printf(to, " nodes=%d", sum->nat);
	if (!sum->row.suspended)
		put_suspended(to, sum);
	buf_puts(to, "\n");
}

void flow_sums_list(struct buf *to, const struct flow_sums *all, int64_t now_ms)
{
	for (const struct flow_sum *sum = all->table; sum; sum = sum->hh.next)
		put_sum(to, all, sum, now_ms);
	buf_printf(to, "-- %d of %d nodes have answered\n", all->answered, all->said->n);
	for (int i = 0; i < all->said->n; i++) {
		const struct cluster_said *node = &all->said->said[i];
		if (!node->answered)
			buf_printf(to, "%s has not answered: %s, seen %.1fs before\n", node->node,
				   node->state, (double)node->seen_ms / 1000);
	}
	if (all->left > 0)
		buf_printf(to, "%" PRId64 " times a node has left out a flow: it knows too many\n",
			   all->left);
}

static void put_nodes(struct buf *to, const struct flow_sum *sum, const char *name,
		      bool only_suspended)
{
	const char *before = "";
	buf_printf(to, "\"%s\":[", name);
	for (int i = 0; i < sum->nat; i++)
		if (!only_suspended || sum->at[i].suspended) {
			buf_puts(to, before);
			log_json_string(to, sum->at[i].node);
			before = ",";
		}
	buf_puts(to, "],");
}

static void put_node(struct buf *to, const struct cluster_said *node)
{
	buf_puts(to, "{");
	json_put_text(to, "node", node->node);
	json_put_flag(to, "answered", node->answered);
	json_put_text(to, "state", node->state);
	buf_printf(to, "\"seen\":%.3f}\n", (double)node->seen_ms / 1000);
}

void flow_sums_json(struct buf *to, const struct flow_sums *all)
{
	for (const struct flow_sum *sum = all->table; sum; sum = sum->hh.next) {
		buf_puts(to, "{");
		flow_print_members(to, &sum->row, all->sending);
		put_nodes(to, sum, "nodes", false);
		put_nodes(to, sum, "suspended_at", true);
		json_put_line(to);
	}
	for (int i = 0; i < all->said->n; i++)
		put_node(to, &all->said->said[i]);
}
