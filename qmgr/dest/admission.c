/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/admission.h"

#include "qmgr/sched/job.h"
#include "qmgr/sched/selection.h"

static struct admission held_by_limit(struct limit l)
{
	return (struct admission){
		.constraint = l.constraint, .until_ms = l.until_ms, .limit = l.allows};
}

struct admission admission_of(const struct site *s, const struct peer *p)
{
	struct limit l = site_limits_to_begin(s, p);
	if (l.constraint != CONSTRAINT_ORDER)
		return held_by_limit(l);
	struct conn *place = site_place(s, p);
	if (place)
		return (struct admission){.constraint = CONSTRAINT_ORDER, .place = place};
	l = site_limits_of_health(s, p);
	return held_by_limit(l.constraint != CONSTRAINT_ORDER ? l : site_limits_to_connect(s, p));
}

struct admission admission_of_first(const struct site *s)
{
	struct peer *first = selection_first(&s->queue);
	const struct list *any = list_first(&s->queue.peers);
	if (!first && !any)
		return (struct admission){.constraint = CONSTRAINT_IDLE};
	return admission_of(s, first ? first : list_entry(any, struct peer, in_queue));
}
