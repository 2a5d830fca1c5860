/* SPDX-License-Identifier: ISC */
#include "qmgr/flow_sites.h"

#include "base/keyed_hash.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "qmgr/dest/conn.h"
#include "qmgr/message.h"
#include "qmgr/sched/flow.h"
#include "qmgr/sched/job.h"

#include <stdlib.h>

struct found {
	const void *site;
	UT_hash_handle hh;
};

struct flow_sites {
	struct found *found;
};

static void add_site(struct flow_sites *all, const void *site)
{
	struct found *f;
	HASH_FIND_PTR(all->found, &site, f);
	if (f)
		return;
	f = mem_zalloc(sizeof *f);
	f->site = site;
	HASH_ADD_PTR(all->found, site, f);
}

static void add_waiting(struct flow_sites *all, const struct work *w)
{
	for (const struct list *l = w->jobs.next; l != &w->jobs; l = l->next) {
		const struct job *job = list_entry(l, struct job, in_message);
		for (const struct list *k = job->peers.next; k != &job->peers; k = k->next) {
			const struct peer *p = list_entry(k, struct peer, in_job);
			if (p->waiting > 0)
				add_site(all, site_of_queue(p->queue));
		}
	}
}

static void add_carried(struct flow_sites *all, const struct conn *c, const char *flow)
{
	for (const struct list *l = c->carried.next; l != &c->carried; l = l->next) {
		const struct entry *e = list_entry(l, struct entry, in_peer);
		if (name_key_same(e->peer->job->work->flow->name, flow))
			add_site(all, c->site);
	}
}

struct flow_sites *flow_sites_find(const struct qmgr *q, const char *flow)
{
	struct flow_sites *all = mem_zalloc(sizeof *all);
	for (const struct list *l = q->sched.active.next; l != &q->sched.active; l = l->next) {
		const struct work *w = list_entry(l, struct work, in_active);
		if (name_key_same(w->flow->name, flow))
			add_waiting(all, w);
	}
	for (const struct conn *c = q->db.conns; c; c = c->hh.next)
		add_carried(all, c, flow);
	return all;
}

bool flow_sites_have(const struct flow_sites *all, const struct site *site)
{
	const void *of = site;
	struct found *f;
	HASH_FIND_PTR(all->found, &of, f);
	return f;
}

void flow_sites_free(struct flow_sites **allp)
{
	struct flow_sites *all = *allp;
	struct found *f, *tmp;
	if (!all)
		return;
	HASH_ITER(hh, all->found, f, tmp)
	{
		HASH_DEL(all->found, f);
		free(f);
	}
	free(all);
	*allp = NULL;
}
