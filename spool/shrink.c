/* SPDX-License-Identifier: ISC */
/* Memory that a long queue has taken goes back to the system when the queue has become short; what messages took that were worked
 * on, when most of them rest. */
#include "spool/spool_core.h"

#include <malloc.h>

enum {
	SHRINK_LEAST = 2000, /* messages: fewer are not worth it */
	CALM_MS = 3000,
};

/* Nothing is left, and every stub is free: those of messages that are gone belong to ops. */
static bool is_empty(const struct spool *s)
{
	return s->catalog.live == 0 && list_empty(&s->todo) && list_empty(&s->written);
}

/* Under load they come and go: malloc_trim() is for when few have been worked on for a while. */
static bool calmed_down(struct spool *s)
{
	if (s->active > s->busiest)
		s->busiest = s->active;
	if (s->busiest < SHRINK_LEAST || s->active >= s->busiest / 2)
		s->calm_since_ms = 0;
	else if (s->calm_since_ms == 0)
		s->calm_since_ms = s->loop->now_ms;
	return s->calm_since_ms > 0 && s->loop->now_ms - s->calm_since_ms >= CALM_MS;
}

static void give_back(struct spool *s)
{
	malloc_trim(0);
	s->busiest = s->active;
	s->calm_since_ms = 0;
}

/* Each time that the queue has become half as long, and when it is empty: so a queue of a million is
 * looked at nine times on its way down, for malloc_trim() holds up whoever wants memory meanwhile. */
void spool_shrink(struct spool *s)
{
	size_t n = s->catalog.live;
	if (n > s->longest)
		s->longest = n;
	const bool half = n >= SHRINK_LEAST && n < s->longest / 2;
	const bool gone = s->longest >= SHRINK_LEAST && is_empty(s);
	if (!half && !gone) {
		if (calmed_down(s))
			give_back(s);
		return;
	}
	catalog_shrink(&s->catalog);
	inflow_shrink(&s->incoming);
	due_shrink(&s->deferred);
	if (gone)
		stub_pool_fini(&s->stubs);
	give_back(s);
	s->longest = n;
}
