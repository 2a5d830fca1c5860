/* SPDX-License-Identifier: ISC */
#include "sim/model_redis.h"

#include "base/mem.h"
#include "base/number.h"

#include <assert.h>
#include <stdlib.h>

void model_lease_init(struct model_lease *m, int nodes)
{
	*m = (struct model_lease){.nodes = nodes,
				  .row = mem_zalloc((size_t)nodes * sizeof *m->row)};
}

void model_lease_fini(struct model_lease *m)
{
	free(m->row);
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

/* Not one for each. */
static void take_turns(struct model_lease *m, const struct want *w, int64_t limit, int64_t now_ms)
{
	m->part = 0;
	for (int64_t i = 0; i < m->wanting; i++)
		m->row[w[i].node].more = has_turn(i, m->wanting, limit, now_ms);
}

/* As much for each as can be. */
static void share_out(struct model_lease *m, struct want *w, int64_t limit)
{
	int64_t left = limit;
	bool cut = false;
	m->part = limit;
	qsort(w, (size_t)m->wanting, sizeof *w, by_want);
	for (int64_t i = 0; i < m->wanting; i++) {
		int64_t n = left / (m->wanting - i);
		if (w[i].n > n && !cut)
			m->part = n;
		cut |= w[i].n > n;
		m->row[w[i].node].more = w[i].n > n && n > m->part;
		left -= number_min(w[i].n, n);
	}
}

/* Look at all rows, of which the dead ones go. */
static void scan_rows(struct model_lease *m, int node, const struct lease_ask *ask, int64_t now_ms)
{
	struct want *w = mem_zalloc((size_t)m->nodes * sizeof *w);
	m->scanned = m->rows;
	m->held = m->wanting = 0;
	for (int i = 0; i < m->nodes; i++) {
		struct model_lease_row *r = &m->row[i];
		bool live = r->there && r->until_ms > now_ms, mine = i == node;
		int64_t want = mine ? ask->want : live ? r->want : 0;
		m->rows -= r->there && !live;
		r->there = live;
		r->more = false;
		m->held += live && !mine ? r->hold : 0;
		if (want > 0)
			w[m->wanting++] = (struct want){want, i};
	}
	if (m->wanting > ask->limit)
		take_turns(m, w, ask->limit, now_ms);
	else
		share_out(m, w, ask->limit);
	m->at_ms = now_ms;
	free(w);
	assert(m->rows >= 0 && m->wanting <= m->nodes);
}

static void keep_row(struct model_lease *m, struct model_lease_row *mine, int64_t has, int64_t want,
		     int64_t now_ms)
{
	bool there = has > 0 || want > 0;
	m->rows += there - mine->there;
	assert(m->rows >= 0 && m->rows <= m->nodes);
	mine->there = there;
	mine->hold = has;
	mine->want = want;
	mine->until_ms = now_ms + LEASE_TTL_MS;
}

static int count_fields(const struct model_lease *m)
{
	return m->rows + (m->summed ? 2 : 0);
}

void model_lease_eval(struct model_lease *m, int node, const struct lease_ask *ask, int64_t now_ms,
		      int64_t scan_ms, struct lease_answer *a)
{
	assert(node >= 0 && node < m->nodes);
	struct model_lease_row *mine = &m->row[node];
	bool all = !m->summed || now_ms >= m->at_ms + scan_ms || count_fields(m) <= LEASE_SCAN_ROWS;
	m->scanned = 0;
	if (all) {
		scan_rows(m, node, ask, now_ms);
	} else {
		m->held -= mine->there ? mine->hold : 0;
		m->wanting += (ask->want > 0) - (mine->there && mine->want > 0);
	}
	assert(m->held >= 0 && m->wanting >= 0);
	a->fair = number_min(ask->want, m->part + mine->more);
	a->others = m->held;
	a->wanting = m->wanting;
	a->granted = ask->hold;
	bool back = mine->there && ask->hold < mine->hold;
	int64_t each = a->wanting > ask->limit && !back ? 1 : a->fair;
	if (ask->want > ask->hold)
		a->granted = number_max(
			ask->hold, number_min(ask->want, number_min(each, ask->limit - a->others)));
	if (a->granted > ask->hold)
		a->fair = number_max(a->fair, a->granted);
	keep_row(m, mine, a->granted, ask->want, now_ms);
	m->held += a->granted;
	m->summed = !all || count_fields(m) > LEASE_SCAN_ROWS;
}

void model_rate_eval(struct model_rate *m, const struct reserve_ask *ask, int64_t now_us,
		     struct reserve_answer *a)
{
	int64_t at = ask->forget ? 0 : m->at_us, ahead = now_us + ask->ahead_us;
	at = number_min(number_max(at, now_us) + ask->spent * ask->interval_us,
			now_us + ask->most_us);
	a->from_us = at - now_us;
	a->granted = at <= ahead ? ask->want : 0;
	m->at_us = at + a->granted * ask->interval_us;
	a->next_us = m->at_us - now_us;
}
