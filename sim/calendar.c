/* SPDX-License-Identifier: ISC */
#include "sim/calendar.h"

#include <string.h>

static const struct scenario_span *span_at(const struct scenario_host *h, int64_t *at_ms)
{
	if (h->outage_every > 0)
		*at_ms %= h->outage_every;
	for (int i = 0; i < h->nspan; i++)
		if (*at_ms >= h->span[i].from_ms && *at_ms < h->span[i].to_ms)
			return &h->span[i];
	return NULL;
}

bool calendar_out(const struct scenario_host *h, int64_t at_ms)
{
	return span_at(h, &at_ms) != NULL;
}

int64_t calendar_next_outage_ms(const struct scenario_host *h, int64_t at_ms)
{
	int64_t every = h->outage_every, soonest = INT64_MAX;
	for (int i = 0; i < h->nspan; i++) {
		int64_t from_ms = h->span[i].from_ms;
		if (every > 0 && from_ms <= at_ms)
			from_ms += ((at_ms - from_ms) / every + 1) * every;
		if (from_ms > at_ms && from_ms < soonest)
			soonest = from_ms;
	}
	return soonest;
}

/* One outage may begin where another ends. */
int64_t calendar_back_ms(const struct scenario_host *h, int64_t at_ms)
{
	const struct scenario_span *span;
	for (int i = 0; i <= h->nspan; i++) {
		int64_t in_turn_ms = at_ms;
		span = span_at(h, &in_turn_ms);
		if (!span)
			return at_ms;
		at_ms += span->to_ms - in_turn_ms;
	}
	return at_ms;
}

int64_t calendar_limit(const struct scenario_host *h, int64_t at_ms)
{
	int64_t limit = h->connection_limit;
	for (int i = 0; i < h->nlimit; i++)
		if (at_ms >= h->limit[i].from_ms)
			limit = h->limit[i].n;
	return limit;
}

bool calendar_blocked(const struct scenario_host *h, const char *source, int64_t at_ms)
{
	for (int i = 0; source && i < h->nblocked; i++)
		if (at_ms >= h->blocking[i].span.from_ms && at_ms < h->blocking[i].span.to_ms &&
		    strcmp(h->blocking[i].name, source) == 0)
			return true;
	return false;
}
