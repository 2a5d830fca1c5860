/* SPDX-License-Identifier: ISC */
/* Memory that a long queue has taken goes back to the system when the queue has become short. */
#include "spool/spool_core.h"

#include <malloc.h>

enum { SHRINK_LEAST = 2000 }; /* messages: fewer are not worth it */

/* Nothing is left, and every stub is free: those of messages that are gone belong to ops. */
static bool empty(const struct spool *s)
{
	return s->catalog.live == 0 && list_empty(&s->todo) && list_empty(&s->written);
}

/* Each time that the queue has become half as long, and when it is empty: so a queue of a million is
 * looked at nine times on its way down, for malloc_trim() holds up whoever wants memory meanwhile. */
void spool_shrink(struct spool *s)
{
	size_t n = s->catalog.live;
	if (n > s->longest)
		s->longest = n;
	const bool half = n >= SHRINK_LEAST && n < s->longest / 2;
	const bool gone = s->longest >= SHRINK_LEAST && empty(s);
	if (!half && !gone)
		return;
	catalog_shrink(&s->catalog);
	inflow_shrink(&s->incoming);
	due_shrink(&s->deferred);
	if (gone)
		stub_pool_fini(&s->stubs);
	malloc_trim(0);
	s->longest = n;
}
