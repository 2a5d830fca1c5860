/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/ladder.h"

#include "qmgr/sched/job.h"
#include "qmgr/sched/selection.h"

static struct ladder held_by_limit(struct limit l)
{
	return (struct ladder){
		.constraint = l.constraint, .until_ms = l.until_ms, .limit = l.allows};
}

struct ladder ladder_of(const struct site *s, const struct peer *p)
{
	struct limit l = site_limits_to_begin(s, p);
	if (l.constraint != CONSTRAINT_ORDER)
		return held_by_limit(l);
	struct conn *place = site_place(s, p);
	if (place)
		return (struct ladder){.constraint = CONSTRAINT_ORDER, .place = place};
	l = site_limits_of_health(s, p);
	return held_by_limit(l.constraint != CONSTRAINT_ORDER ? l : site_limits_to_connect(s, p));
}

struct ladder ladder_of_first(const struct site *s)
{
	struct peer *first = selection_first(&s->queue);
	const struct list *any = list_first(&s->queue.peers);
	if (!first && !any)
		return (struct ladder){.constraint = CONSTRAINT_IDLE};
	return ladder_of(s, first ? first : list_entry(any, struct peer, in_queue));
}
