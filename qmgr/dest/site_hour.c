/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/site_hour.h"

#include "base/mem.h"
#include "qmgr/dest/site.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct site_hour {
	struct site *site;
	struct list by_use;
	int64_t first, last;				  /* steps of the steady clock */
	int64_t began_ms;				  /* steady clock */
	uint32_t step[SITE_HOUR_STEPS][SITE_HOUR_COUNTS]; /* a ring */
};

void site_hours_init(struct site_hours *all)
{
	*all = (struct site_hours){0};
	list_init(&all->by_use);
}

void site_hour_free(struct site *s)
{
	struct site_hour *h = s->hour;
	if (!h)
		return;
	assert(h->site == s && s->db->hours.n > 0);
	s->hour = NULL;
	s->db->hours.n--;
	list_remove(&h->by_use);
	free(h);
}

static int64_t step_now(const struct site *s)
{
	return destdb_now_ms(s->db) / SITE_HOUR_STEP_MS;
}

static struct site_hour *hour_new(struct site *s)
{
	struct site_hours *all = &s->db->hours;
	if (all->n == SITE_HOURS)
		site_hour_free(
			list_entry(list_first(&all->by_use), struct site_hour, by_use)->site);
	assert(!s->hour && all->n < SITE_HOURS);
	struct site_hour *h = mem_zalloc(sizeof *h);
	h->site = s;
	h->first = h->last = step_now(s);
	h->began_ms = destdb_now_ms(s->db);
	list_init(&h->by_use);
	all->n++;
	return h;
}

static int64_t oldest_kept(int64_t first, int64_t now)
{
	return now - first < SITE_HOUR_STEPS ? first : now - SITE_HOUR_STEPS + 1;
}

/* Steps that have passed with nothing to count are empty. */
static void move_on(struct site_hour *h, int64_t now)
{
	for (int64_t i = oldest_kept(h->last + 1, now); i <= now; i++)
		memset(h->step[i % SITE_HOUR_STEPS], 0, sizeof h->step[0]);
	h->last = now;
}

void site_hour_add(struct site *s, enum site_hour_count what)
{
	assert(what < SITE_HOUR_COUNTS);
	if (!s->hour)
		s->hour = hour_new(s);
	struct site_hour *h = s->hour;
	move_on(h, step_now(s));
	h->step[h->last % SITE_HOUR_STEPS][what]++;
	list_move(&s->db->hours.by_use, &h->by_use);
}

void site_hour_verdict(struct site *s, enum verdict_class class)
{
	site_hour_add(s, class == VERDICT_SENT	   ? SITE_HOUR_SENT
			 : class == VERDICT_FAILED ? SITE_HOUR_BOUNCED
						   : SITE_HOUR_DEFERRED);
}

/* The hour may have been counted last some steps ago. */
static uint32_t counted_in_step(const struct site_hour *h, int64_t step, enum site_hour_count what)
{
	bool kept = step <= h->last && step >= oldest_kept(h->first, h->last);
	return kept ? h->step[step % SITE_HOUR_STEPS][what] : 0;
}

void site_hour_copy(const struct site *s, struct site_past *to)
{
	const struct site_hour *h = s->hour;
	int64_t now = step_now(s);
	*to = (struct site_past){.ago_ms = destdb_now_ms(s->db) - now * SITE_HOUR_STEP_MS};
	for (int64_t i = h ? oldest_kept(h->first, now) : now + 1; i <= now; i++, to->n++)
		for (int what = 0; what < SITE_HOUR_COUNTS; what++)
			to->step[to->n][what] = counted_in_step(h, i, (enum site_hour_count)what);
	assert(to->n <= SITE_HOUR_STEPS);
}

int64_t site_hour_lately(const struct site *s, enum site_hour_count what, int64_t *over_ms)
{
	const struct site_hour *h = s->hour;
	int64_t now_ms = destdb_now_ms(s->db), now = step_now(s);
	int64_t from_ms = (now - 1) * SITE_HOUR_STEP_MS;
	*over_ms = h ? now_ms - (h->began_ms > from_ms ? h->began_ms : from_ms) : 0;
	return h ? (int64_t)counted_in_step(h, now, what) + counted_in_step(h, now - 1, what) : 0;
}
