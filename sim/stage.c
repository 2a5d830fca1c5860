/* SPDX-License-Identifier: ISC */
#include "sim/stage.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cluster/cluster.h"

void stage_touch(struct stage *st)
{
	int64_t now_ms = clock_steady_ms();
	qmgr_loop(st->q)->now_ms = now_ms;
	if (st->cluster)
		cluster_loop(st->cluster)->now_ms = now_ms;
	if (list_empty(&st->touched))
		list_append(&st->world->touched, &st->touched);
}

void stage_post(struct stage *st, struct note *note)
{
	loop_post(qmgr_loop(st->q), note);
	stage_touch(st);
}

void stage_feed(struct stage *st, const char *site)
{
	if (st->nfed == st->fed_cap) {
		st->fed_cap = st->fed_cap ? st->fed_cap * 2 : 16;
		st->fed = mem_realloc(st->fed, (size_t)st->fed_cap * sizeof *st->fed);
	}
	st->fed[st->nfed++] = site;
}
