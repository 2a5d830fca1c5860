/* SPDX-License-Identifier: ISC */
#include "spool/gather.h"

#include "base/number.h"

#include <assert.h>

enum {
	COMMITS_MOST = 3,     /* that a client waits for others */
	IDLE_SHARE = 8,	      /* one part of so many is the disk busy with what nobody waits for */
	IDLE_MOST_US = 10000, /* and a crash must not repeat what was delivered longer ago */
	SMOOTHING = 8,
	PAUSE_MOST = 8, /* commits: a longer pause says no more than that nobody came */
};

static void smooth_mean(int64_t *mean, int64_t sample)
{
	*mean += (sample - *mean) / SMOOTHING;
}

void gather_init(struct gather *g, int64_t now_us)
{
	*g = (struct gather){.committed_us = now_us, .counted_us = now_us};
}

void gather_came(struct gather *g, int64_t now_us, int64_t posted_us, int64_t answered_us,
		 bool large)
{
	g->large += large;
	if (g->stores++ == 0) {
		g->began_us = now_us;
		/* Nothing was in its way but other threads. */
		if (!large && posted_us > g->answered_us)
			smooth_mean(&g->waking_us,
				    number_min(now_us - posted_us, PAUSE_MOST * g->commit_us));
	}
	if (!answered_us || large)
		return;
	smooth_mean(&g->back_us, number_min(posted_us - answered_us, PAUSE_MOST * g->commit_us));
	g->absent -= g->absent > 0 && posted_us >= g->answered_us;
}

static int64_t cost_of(const struct gather *g)
{
	return g->commit_us + g->waking_us;
}

/* A client alone brings its next message when the commit of the last has ended: so at that pace, or
 * nearly, nobody else comes. */
static int64_t wait_for_pace(const struct gather *g, int under_way)
{
	return under_way > 0 && g->gap_us < cost_of(g) - cost_of(g) / 4 ? under_way * g->gap_us : 0;
}

static int64_t wait_for_return(const struct gather *g)
{
	int64_t until_us = g->answered_us + 2 * g->back_us;
	return g->absent > 0 && 2 * g->back_us < cost_of(g) ? until_us - g->began_us : 0;
}

int64_t gather_wait_us(const struct gather *g, int64_t now_us, int under_way)
{
	int64_t until_us = g->committed_us + number_min(IDLE_SHARE * g->commit_us, IDLE_MOST_US);
	if (g->stores > 0) {
		int64_t pace_us = wait_for_pace(g, under_way), return_us = wait_for_return(g);
		until_us = g->began_us + number_min(pace_us > return_us ? pace_us : return_us,
						    COMMITS_MOST * cost_of(g));
	}
	return until_us > now_us ? until_us - now_us : 0;
}

int gather_awaited(const struct gather *g, int under_way)
{
	int n = under_way > g->absent ? under_way : g->absent;
	return g->stores > 0 && n > 0 ? n : 1;
}

void gather_commit(struct gather *g, int64_t now_us)
{
	g->committed_us = now_us;
	if (g->stores == 0)
		return;
	smooth_mean(&g->gap_us,
		    number_min((now_us - g->counted_us) / g->stores, PAUSE_MOST * g->commit_us));
	g->counted_us = now_us;
	assert(g->large <= g->stores);
	g->absent = g->stores - g->large;
	g->stores = g->large = 0;
}

void gather_synced(struct gather *g, int64_t now_us, int64_t took_us)
{
	if (g->commit_us == 0)
		g->commit_us = took_us;
	smooth_mean(&g->commit_us, took_us);
	if (g->counted_us == g->committed_us)
		g->answered_us = now_us;
}
