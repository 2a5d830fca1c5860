/* SPDX-License-Identifier: ISC */
#include "qmgr/flow_tally.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void flow_tallies_init(struct flow_tallies *all)
{
	*all = (struct flow_tallies){0};
	list_init(&all->by_time);
}

struct flow_tally *flow_tallies_find(const struct flow_tallies *all, const char *flow)
{
	struct flow_tally *t;
	HASH_FIND_STR(all->table, flow, t);
	return t;
}

void flow_tallies_forget(struct flow_tallies *all, struct flow_tally *t)
{
	assert(all->n > 0);
	all->n--;
	list_remove(&t->by_time);
	HASH_DEL(all->table, t);
	free(t->flow);
	free(t);
}

void flow_tallies_fini(struct flow_tallies *all)
{
	struct flow_tally *t, *tmp;
	HASH_ITER(hh, all->table, t, tmp)
	flow_tallies_forget(all, t);
}

static struct flow_tally *tally_new(struct flow_tallies *all, const char *flow)
{
	if (all->n == FLOW_TALLIES)
		flow_tallies_forget(
			all, list_entry(list_first(&all->by_time), struct flow_tally, by_time));
	struct flow_tally *t = mem_zalloc(sizeof *t);
	t->flow = mem_strdup(flow);
	list_init(&t->by_time);
	HASH_ADD_KEYPTR(hh, all->table, t->flow, strlen(t->flow), t);
	all->n++;
	return t;
}

void flow_tallies_count(struct flow_tallies *all, const char *flow, enum verdict_class class,
			int64_t now_ms)
{
	struct flow_tally *t = flow_tallies_find(all, flow);
	assert((int)class < FLOW_VERDICTS);
	if (!t)
		t = tally_new(all, flow);
	t->n[class]++;
	t->last_ms = now_ms;
	list_remove(&t->by_time);
	list_append(&all->by_time, &t->by_time);
}
