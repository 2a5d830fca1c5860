/* SPDX-License-Identifier: ISC */
#include "sim/arrivals.h"

#include "base/mem.h"
#include "sim/trace.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DAY_MS 86400000.0

struct arrival *arrivals_add(struct arrivals *a, int64_t at_us, uint64_t size, uint32_t nrcpt)
{
	a->item = mem_room(a->item, (size_t)a->n, sizeof *a->item);
	a->item[a->n] = (struct arrival){.at_us = at_us,
					 .size = size,
					 .nrcpt = nrcpt,
					 .domain = mem_zalloc(nrcpt * sizeof *a->item->domain)};
	return &a->item[a->n++];
}

const char *arrivals_keep(struct arrivals *a, char *word)
{
	a->word = mem_realloc(a->word, (size_t)(a->nword + 1) * sizeof *a->word);
	return a->word[a->nword++] = word;
}

const char *arrivals_domain(struct arrivals *a, const struct spread *s, struct dice *dice,
			    uint32_t number)
{
	const char *word = spread_word(s, dice), *mark = strchr(word, '#');
	if (!mark)
		return word;
	return arrivals_keep(a, mem_printf("%.*s%u%s", (int)(mark - word), word, number, mark + 1));
}

/* How many come then, as part of how many come on average. */
static double season_weight(const struct scenario_arrival *s, double at_ms)
{
	double day = floor(at_ms / DAY_MS), part = at_ms / DAY_MS - day;
	double weight = s->nhour > 0 ? s->hour[(int)(part * s->nhour)] : 1;
	return s->nweekday > 0 ? weight * s->weekday[(int)fmod(day, 7)] : weight;
}

static double busiest_weight(const double *weight, int n)
{
	double most = n > 0 ? weight[0] : 1;
	for (int i = 1; i < n; i++)
		most = fmax(most, weight[i]);
	return most;
}

/* A Poisson process whose rate has seasons: that of the busiest, of which so many are left out (Lewis, Shedler 1979). */
static double next_in_season(const struct scenario_arrival *s, struct dice *dice, double last,
			     double gap)
{
	double most = busiest_weight(s->hour, s->nhour) * busiest_weight(s->weekday, s->nweekday);
	do
		last += dice_gap(dice, gap / most);
	while (dice_part(dice) * most >= season_weight(s, last));
	return last;
}

/* When the next message comes; i: how many have come before it. */
static double next_ms(const struct scenario_arrival *s, struct dice *dice, int64_t i, double last)
{
	double gap = s->rate.events ? (double)s->rate.per_ms / (double)s->rate.events : 0;
	switch ((enum scenario_distribution)s->distribution) {
	case ARRIVE_POISSON:
		return s->nhour + s->nweekday > 0 ? next_in_season(s, dice, last, gap)
						  : last + dice_gap(dice, gap);
	case ARRIVE_UNIFORM:
		return (double)s->start + dice_part(dice) * (double)s->within;
	case ARRIVE_BURSTS:
		return (double)(s->start + i / s->burst * s->interval);
	default:
		return (double)s->start + gap * (double)i;
	}
}

static void make_section(struct arrivals *a, const struct scenario_arrival *s, struct dice *dice)
{
	double at_ms = (double)s->start;
	for (int64_t i = 0; i < s->messages; i++) {
		at_ms = next_ms(s, dice, i, at_ms);
		if (s->until > 0 && at_ms > (double)s->until && s->distribution != ARRIVE_UNIFORM)
			return;
		uint32_t n = (uint32_t)spread_number(&s->recipient_spread, dice);
		uint64_t size = (uint64_t)spread_number(&s->size_spread, dice);
		struct arrival *one = arrivals_add(a, (int64_t)(at_ms * 1000), size, n);
		one->flow = s->flow_spread.n > 0 ? spread_word(&s->flow_spread, dice) : NULL;
		one->node = s->node;
		for (uint32_t r = 0; r < n; r++)
			one->domain[r] = arrivals_domain(a, &s->domain_spread, dice, r + 1);
	}
}

/* Messages that came together keep the order of the file: glibc's qsort need not be stable. */
static int by_time(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;
	if (x->at_us != y->at_us)
		return x->at_us < y->at_us ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static void sort_arrivals(struct arrivals *a)
{
	for (int i = 0; i < a->n; i++)
		a->item[i].number = i;
	if (a->n > 0)
		qsort(a->item, (size_t)a->n, sizeof *a->item, by_time);
}

bool arrivals_make(struct arrivals *a, const struct scenario *s, uint64_t seed, struct buf *errors)
{
	struct conf_faults faults = {0};
	*a = (struct arrivals){0};
	for (int i = 0; i < s->narrival; i++) {
		struct dice dice;
		dice_init(&dice, seed, s->arrival[i].title);
		if (*s->arrival[i].trace)
			trace_read(a, s, &s->arrival[i], &dice, &faults);
		else
			make_section(a, &s->arrival[i], &dice);
	}
	sort_arrivals(a);
	bool good = faults.n == 0;
	conf_faults_say(&faults, errors);
	conf_faults_fini(&faults);
	return good;
}

void arrivals_deal(const struct arrivals *a, struct dice *dice, int nodes, struct arrivals to[])
{
	for (int i = 0; i < a->n; i++) {
		int64_t any = dice_between(dice, 0, nodes - 1);
		assert(a->item[i].node <= nodes);
		struct arrivals *node = &to[a->item[i].node > 0 ? a->item[i].node - 1 : any];
		node->item = mem_room(node->item, (size_t)node->n, sizeof *node->item);
		node->item[node->n++] = a->item[i];
	}
}

void arrivals_undeal(struct arrivals dealt[], int nodes)
{
	for (int i = 0; dealt && i < nodes; i++)
		free(dealt[i].item);
	free(dealt);
}

void arrivals_fini(struct arrivals *a)
{
	for (int i = 0; i < a->n; i++)
		free(a->item[i].domain);
	for (int i = 0; i < a->nword; i++)
		free(a->word[i]);
	free(a->item);
	free(a->word);
	*a = (struct arrivals){0};
}
