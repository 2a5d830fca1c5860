/* SPDX-License-Identifier: ISC */
#include "cmd/text/flow_print.h"

#include "base/conf_units.h"
#include "base/utf8.h"
#include "cmd/text/json_put.h"
#include "cmd/text/moment.h"
#include "cmd/text/queue_print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *state_of(const struct flow_row *row)
{
	return row->suspended ? "suspended" : "active";
}

/* Of what is being sent by all flows, in percent. */
static int64_t share_of(const struct flow_row *row, int64_t sending)
{
	return sending > 0 ? (row->sending * 100 + sending / 2) / sending : 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct flow_row *x = a, *y = b;
	if (x->suspended != y->suspended)
		return y->suspended - x->suspended;
	if (x->messages != y->messages)
		return x->messages < y->messages ? 1 : -1;
	return strcmp(x->name, y->name);
}

void flow_print_sort(struct flow_command *c)
{
	if (c->nrow > 0)
		qsort(c->row, (size_t)c->nrow, sizeof *c->row, compare_rows);
}

void flow_print_figures(struct buf *to, const struct flow_row *row, int64_t sending, int64_t now_ms)
{
	char span[16];
	buf_printf(to,
		   " weight=%" PRId64 " messages=%" PRId64 " sending=%" PRId64 " share=%" PRId64
		   "%% sent=%" PRId64 " deferred=%" PRId64 " refused=%" PRId64,
		   row->weight, row->messages, row->sending, share_of(row, sending),
		   row->today.sent, row->today.deferred, row->today.refused);
	buf_printf(to, " sent_hour=%" PRId64 " deferred_hour=%" PRId64 " refused_hour=%" PRId64,
		   row->hour.sent, row->hour.deferred, row->hour.refused);
	if (row->oldest_ms)
		buf_printf(to, " oldest=%s", queue_time_span(now_ms - row->oldest_ms, span));
	if (row->until_ms) {
		buf_puts(to, " until=\"");
		moment_put(to, row->until_ms, false);
		buf_puts(to, "\"");
	}
}

void flow_print_list(struct buf *to, const struct flow_command *c, int64_t now_ms)
{
	for (int i = 0; i < c->nrow; i++) {
		utf8_put(to, c->row[i].name);
		buf_printf(to, " %s", state_of(&c->row[i]));
		flow_print_figures(to, &c->row[i], c->sending, now_ms);
		buf_puts(to, "\n");
	}
}

static void put_settings(struct buf *to, const struct flow_row *row, int64_t now_ms)
{
	if (row->rate.events > 0) {
		buf_puts(to, "\nrate:     ");
		conf_rate_print(&row->rate, to);
	}
	if (row->due_ms) {
		buf_puts(to, ", the next is due ");
		moment_put_due(to, row->due_ms, now_ms, false);
	}
	if (row->lifetime > 0) {
		buf_puts(to, "\nlifetime: ");
		moment_put_span(to, row->lifetime);
	}
	if (row->transport)
		buf_printf(to, "\ntransport: %s", row->transport);
}

static void put_span(struct buf *to, const char *when, const struct flow_span *s)
{
	buf_printf(to, "%s %" PRId64 " sent, %" PRId64 " deferred, %" PRId64 " refused\n", when,
		   s->sent, s->deferred, s->refused);
}

static void put_full(struct buf *to, const struct flow_command *c, const struct flow_row *row,
		     int64_t now_ms)
{
	buf_puts(to, "flow:     ");
	utf8_put(to, row->name);
	buf_printf(to, "\nstate:    %s", state_of(row));
	if (row->until_ms) {
		buf_puts(to, " until ");
		moment_put_due(to, row->until_ms, now_ms, false);
	}
	buf_printf(to, "\nweight:   %" PRId64, row->weight);
	put_settings(to, row, now_ms);
	buf_printf(to, "\nmessages: %" PRId64 " being worked on", row->messages);
	if (row->oldest_ms) {
		buf_puts(to, ", the oldest came ");
		moment_put_span(to, now_ms - row->oldest_ms);
		buf_puts(to, " ago");
	}
	buf_printf(to, "\nsending:  %" PRId64 ", of all flows %" PRId64 ": %" PRId64 " %%\n",
		   row->sending, c->sending, share_of(row, c->sending));
	put_span(to, "today:    ", &row->today);
	put_span(to, "hour:     ", &row->hour);
	put_span(to, "yesterday:", &row->yesterday);
	if (row->last_ms) {
		buf_puts(to, "last:     ");
		moment_put(to, row->last_ms, false);
		buf_puts(to, "\n");
	}
}

void flow_print_full(struct buf *to, const struct flow_command *c, int64_t now_ms)
{
	for (int i = 0; i < c->nrow; i++) {
		put_full(to, c, &c->row[i], now_ms);
		buf_puts(to, i + 1 < c->nrow ? "\n" : "");
	}
}

static void put_time(struct buf *to, const char *key, int64_t wall_ms)
{
	if (wall_ms > 0)
		json_put_time(to, key, wall_ms);
}

static void put_json_settings(struct buf *to, const struct flow_row *row)
{
	if (row->rate.events > 0) {
		buf_puts(to, "\"rate\":");
		conf_rate_print(&row->rate, to);
		buf_puts(to, ",");
	}
	if (row->lifetime > 0)
		json_put_seconds(to, "lifetime", row->lifetime);
	if (row->transport)
		json_put_text(to, "transport", row->transport);
	put_time(to, "due", row->due_ms);
}

static void put_json_span(struct buf *to, const struct flow_span *s)
{
	json_put_number(to, "sent", s->sent);
	json_put_number(to, "deferred", s->deferred);
	json_put_number(to, "refused", s->refused);
}

static void put_json_past(struct buf *to, const char *name, const struct flow_span *s)
{
	buf_printf(to, "\"%s\":{", name);
	put_json_span(to, s);
	json_put_end(to, '}');
}

void flow_print_members(struct buf *to, const struct flow_row *row, int64_t sending)
{
	json_put_text(to, "flow", row->name);
	json_put_flag(to, "suspended", row->suspended);
	json_put_number(to, "weight", row->weight);
	json_put_number(to, "messages", row->messages);
	json_put_number(to, "sending", row->sending);
	json_put_number(to, "sending_all", sending);
	put_json_span(to, &row->today);
	put_json_past(to, "hour", &row->hour);
	put_json_past(to, "yesterday", &row->yesterday);
	put_json_settings(to, row);
	put_time(to, "until", row->until_ms);
	put_time(to, "oldest", row->oldest_ms);
	put_time(to, "last", row->last_ms);
}

void flow_print_json(struct buf *to, const struct flow_command *c)
{
	for (int i = 0; i < c->nrow; i++) {
		buf_puts(to, "{");
		flow_print_members(to, &c->row[i], c->sending);
		json_put_line(to);
	}
}

void flow_print_done(struct buf *to, const struct flow_command *c)
{
	utf8_put(to, c->name);
	buf_printf(to, " %s", order_done(c->op));
	if (c->until_ms) {
		buf_puts(to, " until ");
		moment_put(to, c->until_ms, false);
	}
	buf_puts(to, "\n");
}
