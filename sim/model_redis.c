/* SPDX-License-Identifier: ISC */
#include "sim/model_redis.h"

#include "base/mem.h"

#include <stdlib.h>

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

void model_lease_init(struct model_lease *m, int nodes)
{
	m->nodes = nodes;
	m->row = mem_zalloc((size_t)nodes * sizeof *m->row);
}

void model_lease_fini(struct model_lease *m)
{
	free(m->row);
}

static bool alive(const struct model_lease_row *r, int64_t now_ms)
{
	return r->until_ms > now_ms;
}

int64_t model_lease_sum(const struct model_lease *m, int64_t now_ms)
{
	int64_t sum = 0;
	for (int i = 0; i < m->nodes; i++)
		sum += alive(&m->row[i], now_ms) ? m->row[i].hold : 0;
	return sum;
}

int64_t model_lease_rows(const struct model_lease *m, int64_t now_ms)
{
	int64_t n = 0;
	for (int i = 0; i < m->nodes; i++)
		n += alive(&m->row[i], now_ms) && (m->row[i].hold > 0 || m->row[i].want > 0);
	return n;
}

/* Where there is not one for each: is it this one's turn? rank: its place among those that want some. */
static bool has_turn(int64_t rank, int64_t wanting, int64_t limit, int64_t now_ms)
{
	int64_t at = (rank - now_ms / LEASE_TURN_MS * limit) % wanting;
	return (at < 0 ? at + wanting : at) < limit;
}

struct want {
	int64_t n;
	int node;
};

static int by_want(const void *a, const void *b)
{
	const struct want *x = a, *y = b;
	return x->n != y->n ? (x->n < y->n ? -1 : 1) : x->node - y->node;
}

static int64_t share_out(struct want *w, int64_t wanting, int64_t limit, int node)
{
	int64_t left = limit;
	qsort(w, (size_t)wanting, sizeof *w, by_want);
	for (int64_t i = 0; i < wanting; i++) {
		int64_t n = least(w[i].n, left / (wanting - i));
		if (w[i].node == node)
			return n;
		left -= n;
	}
	return 0;
}

void model_lease_eval(struct model_lease *m, int node, const struct lease_ask *ask, int64_t now_ms,
		      struct lease_answer *a)
{
	struct want *w = mem_zalloc((size_t)m->nodes * sizeof *w);
	int64_t rank = 0;
	*a = (struct lease_answer){0};
	for (int i = 0; i < m->nodes; i++) {
		int64_t want = i == node		   ? ask->want
			       : alive(&m->row[i], now_ms) ? m->row[i].want
							   : 0;
		if (i != node && alive(&m->row[i], now_ms))
			a->others += m->row[i].hold;
		rank += i < node && want > 0;
		if (want > 0)
			w[a->wanting++] = (struct want){want, i};
	}
	if (a->wanting > ask->limit)
		a->fair = ask->want > 0 && has_turn(rank, a->wanting, ask->limit, now_ms);
	else
		a->fair = share_out(w, a->wanting, ask->limit, node);
	a->granted = ask->hold;
	if (ask->want > ask->hold)
		a->granted =
			most(ask->hold, least(ask->want, least(a->fair, ask->limit - a->others)));
	m->row[node] = (struct model_lease_row){
		.hold = a->granted, .want = ask->want, .until_ms = now_ms + LEASE_TTL_MS};
	free(w);
}

void model_rate_eval(struct model_rate *m, const struct reserve_ask *ask, int64_t now_us,
		     struct reserve_answer *a)
{
	int64_t at = ask->forget ? 0 : m->at_us, ahead = now_us + ask->ahead_us;
	at = least(most(at, now_us) + ask->spent * ask->interval_us, now_us + ask->most_us);
	a->from_us = at - now_us;
	a->granted = at <= ahead ? ask->want : 0;
	m->at_us = at + a->granted * ask->interval_us;
	a->next_us = m->at_us - now_us;
}
