/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/flow.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct flow *flow_new(struct scheduler *sched, const char *name)
{
	struct flow *f = mem_zalloc(sizeof *f);
	f->name = mem_strdup(name);
	f->scheduler = sched;
	f->settings = conf_flow_find(sched->conf, name);
	f->barred = flow_shares_rate(f); /* nothing is reserved yet */
	list_init(&f->claims);
	list_init(&f->backlogs);
	list_init(&f->unrouted);
	list_init(&f->in_unrouted);
	HASH_ADD_KEYPTR(hh, sched->flows, f->name, strlen(f->name), f);
	return f;
}

struct flow *flow_join(struct scheduler *sched, const char *name)
{
	struct flow *f = sched->joined;
	if (!f || strcmp(f->name, name) != 0)
		HASH_FIND_STR(sched->flows, name, f);
	if (!f)
		f = flow_new(sched, name);
	sched->joined = f;
	f->nwork++;
	return f;
}

static void flow_free(struct flow *f)
{
	assert(list_empty(&f->claims) && list_empty(&f->backlogs) && f->unselected == 0);
	assert(list_empty(&f->unrouted) && list_empty(&f->in_unrouted));
	HASH_DEL(f->scheduler->flows, f);
	if (f->scheduler->joined == f)
		f->scheduler->joined = NULL;
	timer_stop(&f->scheduler->loop->timers, &f->due);
	free(f->name);
	free(f);
}

void flow_free_unused(struct flow *f)
{
	if (f->nwork == 0 && f->nowing == 0 && !timer_active(&f->due))
		flow_free(f);
}

void flow_part(struct flow *f)
{
	assert(f->nwork > 0);
	f->nwork--;
	flow_free_unused(f);
}

void flow_owe(struct flow *f)
{
	f->nowing++;
}

void flow_owe_no_more(struct flow *f)
{
	assert(f->nowing > 0);
	f->nowing--;
	flow_free_unused(f);
}

void flows_configure(struct scheduler *sched)
{
	for (struct flow *f = sched->flows; f; f = f->hh.next)
		f->settings = conf_flow_find(sched->conf, f->name);
}

void flows_free(struct scheduler *sched)
{
	struct flow *f, *next;
	HASH_ITER(hh, sched->flows, f, next)
	{
		assert(f->nwork == 0 && f->nowing == 0);
		flow_free(f);
	}
}
