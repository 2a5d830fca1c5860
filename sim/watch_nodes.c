/* SPDX-License-Identifier: ISC */
#include "sim/watch_nodes.h"

#include "base/mem.h"
#include "qmgr/dest/host.h"
#include "qmgr/qmgr_thread.h"
#include "sim/calendar.h"
#include "sim/model_host.h"

#include <assert.h>

static bool is_told(const struct model_host *h)
{
	return h->limit > 0 || h->is->nspan > 0;
}

void watch_nodes_begin(struct world *w)
{
	struct tally_nodes *t = &w->tally->nodes;
	t->nodes = w->nstage;
	t->nhost = model_host_count(w);
	t->host = mem_zalloc((size_t)t->nhost * sizeof *t->host + 1);
	for (int i = 0; i < t->nhost; i++) {
		const struct scenario_host *is = &w->scenario->host[i];
		t->host[i].name = is->title;
		if (is->nspan > 0 && w->nwatched < WORLD_WATCHED_MAX)
			w->watched[w->nwatched++] = i;
		t->host[i].out_ms = is->nspan > 0 ? is->span[0].from_ms : 0;
		t->host[i].back_ms = is->nspan > 0 ? is->span[0].to_ms : 0;
	}
}

static void count_from_here(struct world *w, int64_t at_ms)
{
	struct tally_nodes *t = &w->tally->nodes;
	t->began_ms = at_ms;
	t->done_before = w->tally->done;
	for (int i = 0; i < t->nhost; i++) {
		struct model_host *h = model_host_number(w, i);
		h->open_most = h->open;
		h->turned_away = 0;
	}
}

void watch_nodes(struct world *w, int64_t at_ms)
{
	struct tally_nodes *t = &w->tally->nodes;
	int64_t settle_ms = w->scenario->simulation.settle;
	if (at_ms < settle_ms)
		return;
	if (at_ms < settle_ms + w->sample_us / 1000)
		count_from_here(w, at_ms);
	for (int i = 0; i < t->nhost; i++) {
		const struct model_host *h = model_host_number(w, i);
		if (h->wanted_ms != at_ms || h->limit == 0 || calendar_out(h->is, at_ms))
			continue;
		t->host[i].samples++;
		t->host[i].open += h->open;
	}
}

static void note_knowing(struct world *w, struct tally_host *t, struct model_host *h, bool now)
{
	int64_t now_ms = w->now_us / 1000;
	h->knowing += now ? 1 : -1;
	assert(h->knowing >= 0 && h->knowing <= w->nstage);
	t->knew = h->knowing > t->knew ? h->knowing : t->knew;
	if (now && t->first_out_ms == 0)
		t->first_out_ms = now_ms;
	if (now && h->knowing == w->nstage && t->all_out_ms == 0)
		t->all_out_ms = now_ms;
	if (!now && now_ms >= t->back_ms && t->first_back_ms == 0)
		t->first_back_ms = now_ms;
	if (!now && h->knowing == 0 && t->all_back_ms == 0)
		t->all_back_ms = now_ms;
}

void watch_knowing(struct stage *st)
{
	struct world *w = st->world;
	for (int i = 0; i < w->nwatched; i++) {
		struct model_host *h = model_host_number(w, w->watched[i]);
		const struct host *known = NULL;
		if (h->key)
			HASH_FIND_STR(st->q->db.hosts, h->key, known);
		bool is = known && known->state != HOST_UP, was = st->knows >> i & 1;
		if (is != was) {
			st->knows ^= UINT64_C(1) << i;
			note_knowing(w, &w->tally->nodes.host[w->watched[i]], h, is);
		}
	}
}

void watch_nodes_end(struct world *w)
{
	tally_end_windows(w->tally);
	struct tally_nodes *t = &w->tally->nodes;
	int n = 0;
	for (int i = 0; i < t->nhost; i++) {
		const struct model_host *h = model_host_number(w, i);
		if (!is_told(h))
			continue;
		t->host[n] = t->host[i];
		t->host[n].limit = h->limit;
		t->host[n].own = h->own;
		t->host[n].most = h->open_most;
		t->host[n].turned_away = h->turned_away;
		t->host[n].tried_out = h->tried_out;
		n++;
	}
	t->nhost = n;
}
