/* SPDX-License-Identifier: ISC */
#include "qmgr/flow_tally.h"

#include "base/mem.h"
#include "base/words.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void flow_tallies_init(struct flow_tallies *all)
{
	*all = (struct flow_tallies){0};
	list_init(&all->by_time);
}

static void tally_drop(struct flow_tallies *all, struct flow_tally *t)
{
	assert(all->n > 0);
	all->n--;
	if (all->latest == t)
		all->latest = NULL;
	list_remove(&t->by_time);
	HASH_DEL(all->table, t);
	free(t->flow);
	free(t);
}

void flow_tallies_forget(struct flow_tallies *all, const struct flow_tally *t)
{
	struct flow_tally *own;
	HASH_FIND_STR(all->table, t->flow, own);
	assert(own == t);
	tally_drop(all, own);
	all->changed = true;
}

void flow_tallies_fini(struct flow_tallies *all)
{
	struct flow_tally *t, *tmp;
	HASH_ITER(hh, all->table, t, tmp)
	tally_drop(all, t);
	assert(all->n == 0 && list_empty(&all->by_time));
	assert(!all->table && !all->latest);
}

/* --- the last hour */

static void hour_turn(struct flow_hour *h, int64_t now_ms)
{
	uint32_t step = (uint32_t)(now_ms / FIGURES_SLOT_MS);
	uint32_t gone = step > h->step ? step - h->step : 0;
	h->step = step;
	if (gone == 0)
		return;
	size_t stay = gone < FLOW_STEPS ? FLOW_STEPS - gone : 0;
	memmove(h->n[FLOW_STEPS - stay], h->n[0], stay * sizeof h->n[0]);
	memset(h->n[0], 0, (FLOW_STEPS - stay) * sizeof h->n[0]);
}

int64_t flow_hour_sum(const struct flow_hour *h, enum flow_figure which)
{
	assert(which < FLOW_FIGURES);
	int64_t sum = 0;
	for (int i = 0; i < FLOW_STEPS; i++)
		sum += h->n[i][which];
	return sum;
}

/* --- counting */

static struct flow_tally *tally_find(const struct flow_tallies *all, const char *flow)
{
	struct flow_tally *t;
	HASH_FIND_STR(all->table, flow, t);
	return t;
}

static void tally_turn(struct flow_tally *t, int64_t now_ms)
{
	figures_turn(&t->days, now_ms);
	hour_turn(&t->hour, now_ms);
}

const struct flow_tally *flow_tallies_find(struct flow_tallies *all, const char *flow,
					   int64_t now_ms)
{
	struct flow_tally *t = tally_find(all, flow);
	if (t)
		tally_turn(t, now_ms);
	return t;
}

static struct flow_tally *tally_get(struct flow_tallies *all, const char *flow)
{
	struct flow_tally *t = all->latest;
	if (t && strcmp(t->flow, flow) == 0)
		return t;
	t = all->latest = tally_find(all, flow);
	if (t)
		return t;
	if (all->n == FLOW_TALLIES)
		tally_drop(all, list_entry(list_first(&all->by_time), struct flow_tally, by_time));
	t = mem_zalloc(sizeof *t);
	t->flow = mem_strdup(flow);
	list_init(&t->by_time);
	HASH_ADD_KEYPTR(hh, all->table, t->flow, strlen(t->flow), t);
	all->n++;
	assert(all->n <= FLOW_TALLIES);
	return t;
}

static void tally_touch(struct flow_tallies *all, struct flow_tally *t, int64_t now_ms)
{
	t->last_ms = now_ms;
	list_remove(&t->by_time);
	list_append(&all->by_time, &t->by_time);
}

static enum flow_figure figure_of(enum verdict_class class)
{
	return class == VERDICT_SENT	 ? FLOW_SENT
	       : class == VERDICT_FAILED ? FLOW_REFUSED
					 : FLOW_DEFERRED;
}

void flow_tallies_count(struct flow_tallies *all, const char *flow, enum verdict_class class,
			int64_t now_ms)
{
	struct flow_tally *t = tally_get(all, flow);
	enum flow_figure figure = figure_of(class);
	tally_turn(t, now_ms);
	figures_count(&t->days, (int)figure, 1, now_ms);
	t->hour.n[0][figure]++;
	tally_touch(all, t, now_ms);
	all->changed = true;
}

/* --- as text */

static void write_hour(const struct flow_hour *h, struct buf *to)
{
	buf_printf(to, " %" PRIu32, h->step);
	for (int i = 0; i < FLOW_STEPS; i++)
		for (int j = 0; j < FLOW_FIGURES; j++)
			buf_printf(to, " %" PRIu32, h->n[i][j]);
}

void flow_tallies_write(const struct flow_tallies *all, struct buf *to)
{
	list_each (link, tmp, &all->by_time) {
		const struct flow_tally *t = list_entry(link, struct flow_tally, by_time);
		if (strchr(t->flow, '\n'))
			continue;
		buf_printf(to, "%" PRId64 " ", t->last_ms);
		figures_write(&t->days, to);
		write_hour(&t->hour, to);
		buf_printf(to, " %s\n", t->flow);
	}
}

static bool read_hour(struct flow_hour *h, const char **text)
{
	int64_t n;
	if (!figures_number(text, UINT32_MAX, &n))
		return false;
	h->step = (uint32_t)n;
	for (int i = 0; i < FLOW_STEPS; i++)
		for (int j = 0; j < FLOW_FIGURES; j++) {
			if (!figures_number(text, UINT32_MAX, &n))
				return false;
			h->n[i][j] = (uint32_t)n;
		}
	return true;
}

static void read_line(struct flow_tallies *all, const char *line)
{
	struct figures days;
	struct flow_hour hour;
	int64_t last_ms;
	bool ok = figures_number(&line, INT64_MAX, &last_ms) && figures_read(&days, &line) &&
		  read_hour(&hour, &line) && line[0] == ' ' && line[1] != '\0';
	if (!ok)
		return;
	struct flow_tally *t = tally_get(all, line + 1);
	t->days = days;
	t->hour = hour;
	tally_touch(all, t, last_ms);
}

void flow_tallies_read(struct flow_tallies *all, const char *text)
{
	for (char *line; (line = words_line(&text)); free(line))
		read_line(all, line);
}
