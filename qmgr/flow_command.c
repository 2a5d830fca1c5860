/* SPDX-License-Identifier: ISC */
#include "qmgr/flow_command.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/text_note.h"
#include "qmgr/dest/suspend.h"
#include "qmgr/flow_mail.h"
#include "qmgr/sched/claim.h"
#include "qmgr/sched/flow_rate.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int64_t under_way(const struct flow *f)
{
	int64_t n = 0;
	for (const struct list *l = f->claims.next; l != &f->claims; l = l->next)
		n += list_entry(l, struct claim, in_flow)->under_way;
	return n;
}

static struct flow *flow_find(const struct qmgr *q, const char *name)
{
	struct flow *f;
	HASH_FIND_STR(q->sched.flows, name, f);
	return f;
}

static int64_t wall_due_ms(const struct qmgr *q, const struct flow *f)
{
	int64_t due_ms = flow_rate_due_ms(f);
	return due_ms ? clock_wall_ms() + due_ms - scheduler_now_ms(&q->sched) : 0;
}

static struct flow_span span_of_day(const uint32_t figure[FIGURES])
{
	return (struct flow_span){figure[FLOW_SENT], figure[FLOW_DEFERRED], figure[FLOW_REFUSED]};
}

static struct flow_span span_of_hour(const struct flow_hour *h)
{
	return (struct flow_span){flow_hour_sum(h, FLOW_SENT), flow_hour_sum(h, FLOW_DEFERRED),
				  flow_hour_sum(h, FLOW_REFUSED)};
}

static bool has_tally(const struct qmgr *q, const char *name)
{
	const struct flow_tally *t;
	HASH_FIND_STR(q->tallies.table, name, t);
	return t;
}

static void add_row(struct qmgr *q, struct flow_command *c, const char *name)
{
	const struct flow *f = flow_find(q, name);
	const struct flow_tally *t = flow_tallies_find(&q->tallies, name, clock_wall_ms());
	const struct conf_flow *settings = conf_flow_find(q->sched.conf, name);
	c->row = mem_realloc(c->row, ((size_t)c->nrow + 1) * sizeof *c->row);
	struct flow_row *row = &c->row[c->nrow++];
	*row = (struct flow_row){.name = mem_strdup(name),
				 .suspended = suspend_covers_flow(&q->db, name),
				 .until_ms = suspend_flow_until_ms(&q->db, name),
				 .weight = settings->weight,
				 .rate = settings->rate,
				 .lifetime = settings->lifetime,
				 .transport =
					 settings->by ? mem_strdup(settings->transport) : NULL};
	if (f) {
		row->messages = f->nwork;
		row->sending = under_way(f);
		row->due_ms = wall_due_ms(q, f);
	}
	if (t) {
		row->today = span_of_day(t->days.today);
		row->yesterday = span_of_day(t->days.yesterday);
		row->hour = span_of_hour(&t->hour);
		row->last_ms = t->last_ms;
	}
}

static bool is_wanted(const struct flow_command *c, const char *name)
{
	return !c->name || strcmp(c->name, name) == 0;
}

/* Each flow once: that had verdicts, that has mail, that is suspended. */
static void add_rows(struct qmgr *q, struct flow_command *c)
{
	for (const struct flow_tally *t = q->tallies.table; t; t = t->hh.next)
		if (is_wanted(c, t->flow))
			add_row(q, c, t->flow);
	for (const struct flow *f = q->sched.flows; f; f = f->hh.next) {
		c->sending += under_way(f);
		if (is_wanted(c, f->name) && !has_tally(q, f->name))
			add_row(q, c, f->name);
	}
	for (const struct suspended *n = q->db.suspended; n; n = n->hh.next)
		if (n->kind == SUSPEND_FLOW && is_wanted(c, n->name) && !flow_find(q, n->name) &&
		    !has_tally(q, n->name))
			add_row(q, c, n->name);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct flow_row *)a)->name, ((const struct flow_row *)b)->name);
}

static void note_oldest(const struct qmgr *q, struct flow_command *c)
{
	for (const struct list *l = q->sched.active.next; l != &q->sched.active; l = l->next) {
		const struct work *w = list_entry(l, struct work, in_active);
		struct flow_row key = {.name = w->flow->name};
		struct flow_row *row = bsearch(&key, c->row, (size_t)c->nrow, sizeof key, by_name);
		int64_t at_ms = w->envelope->arrived_ms;
		if (row && (row->oldest_ms == 0 || at_ms < row->oldest_ms))
			row->oldest_ms = at_ms;
	}
}

static void list_flows(struct qmgr *q, struct flow_command *c)
{
	add_rows(q, c);
	if (c->nrow > 0) {
		qsort(c->row, (size_t)c->nrow, sizeof *c->row, by_name);
		note_oldest(q, c);
	}
	c->found = c->nrow;
}

static void reset_tally(struct qmgr *q, struct flow_command *c)
{
	const struct flow_tally *t = flow_tallies_find(&q->tallies, c->name, clock_wall_ms());
	if (t)
		flow_tallies_forget(&q->tallies, t);
	c->found = t || flow_find(q, c->name);
}

void flow_save(struct qmgr *q)
{
	if (!q->tallies.changed || !q->db.edges.to_main)
		return;
	struct buf text = {0};
	flow_tallies_write(&q->tallies, &text);
	q->db.edges.to_main(q->db.edges.context, text_note_new(FLOW_SAVE, &text));
	q->tallies.changed = false;
}

void flow_execute(struct qmgr *q, struct flow_command *c)
{
	assert(c->nrow == 0);
	if (c->op == ORDER_SUSPEND) {
		if (suspend_begin(&q->db, c->name, SUSPEND_FLOW, c->until_ms))
			flow_mail_stop(q, c->name);
		c->found = 1; /* it may be named in advance */
	} else if (c->op == ORDER_RESUME) {
		c->found = suspend_end_one(&q->db, c->name, SUSPEND_FLOW);
	} else if (c->op == ORDER_RESET) {
		reset_tally(q, c);
	} else {
		list_flows(q, c);
	}
	if (order_changes(c->op))
		qmgr_thread_save(q); /* before the answer, so that it is on disk by then */
	if (c->op == ORDER_RESET)
		flow_save(q);
	loop_post(c->reply_to, &c->note);
}

struct flow_command *flow_command_new(enum order op, const char *name, struct loop *reply_to,
				      void *owner)
{
	struct flow_command *c = mem_zalloc(sizeof *c);
	c->note.type = FLOW_COMMAND;
	c->op = op;
	c->name = mem_strdup(name);
	c->reply_to = reply_to;
	c->owner = owner;
	return c;
}

void flow_command_free(struct flow_command **cp)
{
	struct flow_command *c = *cp;
	if (!c)
		return;
	for (int i = 0; i < c->nrow; i++) {
		free(c->row[i].name);
		free(c->row[i].transport);
	}
	free(c->row);
	free(c->name);
	free(c);
	*cp = NULL;
}
