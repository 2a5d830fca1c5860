/* SPDX-License-Identifier: ISC */
/* How much a site lets through, by what a log tells. */
#include "sim/learn.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

enum {
	BUSY_MS = 1000, /* a shorter time with mail in it is one message on its way */
	TAKEN_LEAST = 10,
};

void learn_site_took(struct learn_site *s, int64_t from_ms, int64_t to_ms)
{
	s->wait = mem_realloc(s->wait, (size_t)(s->nwait + 1) * sizeof *s->wait);
	s->wait[s->nwait++] = (struct learn_wait){from_ms, to_ms};
}

void learn_site_refused(struct learn_site *s, const char *reply, int64_t at_ms)
{
	if (s->refusal)
		return;
	s->refusal = mem_strdup(reply);
	s->refused_ms = at_ms;
}

static int by_beginning(const void *a, const void *b)
{
	const struct learn_wait *x = a, *y = b;
	return (x->from_ms > y->from_ms) - (x->from_ms < y->from_ms);
}

static int by_end(const void *a, const void *b)
{
	const struct learn_wait *x = a, *y = b;
	return (x->to_ms > y->to_ms) - (x->to_ms < y->to_ms);
}

/* Recipients a second while any waited, once it had refused; 0: too few have waited to tell. */
static double rate_of_site(struct learn_site *s)
{
	int64_t taken = 0, busy_ms = 0;
	qsort(s->wait, (size_t)s->nwait, sizeof *s->wait, by_beginning);
	for (int i = 0; i < s->nwait;) {
		int64_t from_ms = s->wait[i].from_ms, n = 0;
		if (from_ms < s->refused_ms)
			from_ms = s->refused_ms;
		int64_t to_ms = from_ms;
		for (; i < s->nwait && s->wait[i].from_ms <= to_ms; i++) {
			n += s->wait[i].to_ms > s->refused_ms;
			if (s->wait[i].to_ms > to_ms)
				to_ms = s->wait[i].to_ms;
		}
		if (to_ms - from_ms < BUSY_MS)
			continue;
		taken += n;
		busy_ms += to_ms - from_ms;
	}
	assert(taken == 0 || busy_ms > 0);
	return taken < TAKEN_LEAST ? 0 : (double)taken * 1000 / (double)busy_ms;
}

/* The least that must have been in store for all that it took: of any time, what came beyond the rate. */
static int64_t room_of_site(struct learn_site *s, double rate)
{
	double least = 0, room = 1;
	qsort(s->wait, (size_t)s->nwait, sizeof *s->wait, by_end);
	for (int i = 0; i < s->nwait; i++) {
		double before = (double)i - rate * (double)s->wait[i].to_ms / 1000;
		if (i == 0 || before < least)
			least = before;
		if (before + 1 - least > room)
			room = before + 1 - least;
	}
	return (int64_t)(room + 0.5);
}

bool learn_site_bucket(struct learn_site *s, struct learn_bucket *b)
{
	if (!s->refusal || s->nwait == 0)
		return false;
	double rate = rate_of_site(s);
	*b = (struct learn_bucket){rate, rate > 0 ? room_of_site(s, rate) : 0};
	return rate > 0;
}
