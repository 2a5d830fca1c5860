/* SPDX-License-Identifier: ISC */
#include "spool/survey.h"

#include "base/mem.h"

#include <stdlib.h>

static void add_region(struct survey *v, const struct scan *scan)
{
	v->region = mem_realloc(v->region, (v->n + 1) * sizeof *v->region);
	v->region[v->n++] =
		(struct region){.from = scan->from, .to = scan->to, .id = scan->damaged};
}

/* Up to where all of it had been on stable storage, before whatever ended the start that wrote it. */
static uint64_t was_synced(const struct replay *r, size_t i, const struct scan *scan)
{
	if (scan->sealed)
		return UINT64_MAX;
	if (r->segment[i]->head.version > 1)
		return scan->synced;
	/* Version 1 had one lane, and closed a segment by making the next. */
	return i + 1 < r->nsegment && !r->segment[i + 1]->head.first ? UINT64_MAX : 0;
}

static void judge_regions(struct survey *v, const struct segment *g)
{
	for (size_t i = 0; i < v->n; i++) {
		struct region *w = &v->region[i];
		w->followed = w->to <= v->end;
		w->damage = w->from < g->said || (g->head.version == 1 && w->followed);
	}
}

/* Damage at the end was there before: there is nothing to tell. */
static bool of_earlier_life(const struct segment *g, const struct scan *scan)
{
	return g->head.reused && !scan->begun && scan->from >= g->said;
}

void survey_segment(struct survey *v, struct replay *r, size_t i)
{
	struct segment *g = r->segment[i];
	struct scan scan;
	enum scan_result result;
	*v = (struct survey){.n = 0};
	scan_init(&scan, g->file->fd, g->seed, g->size);
	while ((result = scan_next(&scan)) == SCAN_RECORD || result == SCAN_DAMAGE) {
		if (result == SCAN_RECORD)
			replay_record(r, g, &scan);
		else
			add_region(v, &scan);
	}
	v->end = scan.from;
	g->said = was_synced(r, i, &scan);
	if (result == SCAN_TORN && !of_earlier_life(g, &scan))
		add_region(v, &scan);
	v->sealed = scan.sealed;
	v->unreadable = scan.unreadable;
	v->cut_short = !scan.sealed && g->size < g->head.size;
	judge_regions(v, g);
	replay_said(r, g);
	scan_fini(&scan);
}

void survey_fini(struct survey *v)
{
	free(v->region);
	*v = (struct survey){.n = 0};
}
