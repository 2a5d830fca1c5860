/* SPDX-License-Identifier: ISC */
#include "qmgr/snapshot_flows.h"

#include "base/clock.h"
#include "base/mem.h"
#include "qmgr/message.h"
#include "qmgr/sched/flow.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int64_t verdicts_of(const struct snapshot_flow *f)
{
	return f->sent + f->deferred + f->refused;
}

static bool is_busier(const struct snapshot_flow *a, const struct snapshot_flow *b)
{
	if (a->messages != b->messages)
		return a->messages > b->messages;
	if (verdicts_of(a) != verdicts_of(b))
		return verdicts_of(a) > verdicts_of(b);
	return strcmp(a->name, b->name) < 0;
}

/* The name is the flow's own, until all are chosen. */
static struct snapshot_flow look_at(struct qmgr *q, char *name, const struct flow *f)
{
	const struct flow_tally *t = flow_tallies_find(&q->tallies, name, clock_wall_ms());
	struct snapshot_flow one = {.name = name, .messages = f ? f->nwork : 0};
	if (t) {
		one.sent = t->days.today[FLOW_SENT];
		one.deferred = t->days.today[FLOW_DEFERRED];
		one.refused = t->days.today[FLOW_REFUSED];
	}
	return one;
}

/* Each is put in its place, and the last falls out. */
static void rank_flow(struct snapshot_flows *to, const struct snapshot_flow *one)
{
	int at = to->n;
	if (one->messages == 0 && verdicts_of(one) == 0)
		return;
	if (to->n == SNAPSHOT_FLOWS_MAX && !is_busier(one, &to->flow[--at]))
		return;
	to->n = at + 1;
	assert(to->n <= SNAPSHOT_FLOWS_MAX);
	for (; at > 0 && is_busier(one, &to->flow[at - 1]); at--)
		to->flow[at] = to->flow[at - 1];
	to->flow[at] = *one;
}

static bool is_at_work(const struct qmgr *q, const char *name)
{
	const struct flow *f;
	HASH_FIND_STR(q->sched.flows, name, f);
	return f;
}

void snapshot_flows_take(struct qmgr *q, struct snapshot_flows *to)
{
	to->n = 0;
	for (const struct flow *f = q->sched.flows; f; f = f->hh.next) {
		struct snapshot_flow one = look_at(q, f->name, f);
		rank_flow(to, &one);
	}
	for (const struct flow_tally *t = q->tallies.table; t; t = t->hh.next) {
		struct snapshot_flow one = look_at(q, t->flow, NULL);
		if (!is_at_work(q, t->flow))
			rank_flow(to, &one);
	}
	for (int i = 0; i < to->n; i++)
		to->flow[i].name = mem_strdup(to->flow[i].name);
}

void snapshot_flows_fini(struct snapshot_flows *s)
{
	for (int i = 0; i < s->n; i++)
		free(s->flow[i].name);
	s->n = 0;
}
