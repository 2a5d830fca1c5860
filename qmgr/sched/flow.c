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
	f->weight = conf_flow_find(sched->conf, name)->weight;
	list_init(&f->claims);
	HASH_ADD_KEYPTR(hh, sched->flows, f->name, strlen(f->name), f);
	return f;
}

struct flow *flow_join(struct scheduler *sched, const char *name)
{
	struct flow *f;
	HASH_FIND_STR(sched->flows, name, f);
	if (!f)
		f = flow_new(sched, name);
	f->nwork++;
	return f;
}

static void free_unused(struct scheduler *sched, struct flow *f)
{
	if (f->nwork > 0 || f->nowing > 0)
		return;
	assert(list_empty(&f->claims));
	HASH_DEL(sched->flows, f);
	free(f->name);
	free(f);
}

void flow_part(struct scheduler *sched, struct flow *f)
{
	assert(f->nwork > 0);
	f->nwork--;
	free_unused(sched, f);
}

void flow_owe(struct flow *f)
{
	f->nowing++;
}

void flow_owe_no_more(struct scheduler *sched, struct flow *f)
{
	assert(f->nowing > 0);
	f->nowing--;
	free_unused(sched, f);
}

void flows_configure(struct scheduler *sched)
{
	for (struct flow *f = sched->flows; f; f = f->hh.next)
		f->weight = conf_flow_find(sched->conf, f->name)->weight;
}
