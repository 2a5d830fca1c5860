/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/admission.h"

#include "base/clock.h"
#include "qmgr/dest/suspend.h"
#include "qmgr/sched/job.h"
#include "qmgr/sched/selection.h"

#include <assert.h>

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

static int64_t suspended_until_ms(const struct site *s)
{
	int64_t until_ms = suspend_site_until_ms(s->db, s);
	return until_ms ? destdb_now_ms(s->db) + until_ms - clock_wall_ms() : 0;
}

/* While it is not alive, its mail waits in the queue. */
static struct admission admission_to_live(const struct site *s)
{
	static const enum constraint of_health[] = {[SITE_ALIVE] = CONSTRAINT_IDLE,
						    [SITE_DEAD] = CONSTRAINT_DEAD,
						    [SITE_OUT] = CONSTRAINT_OUT,
						    [SITE_REFUSED] = CONSTRAINT_PACE,
						    [SITE_SUSPENDED] = CONSTRAINT_SUSPENDED};
	assert(s->health < sizeof of_health / sizeof of_health[0]);
	struct admission a = {.constraint = of_health[s->health]};
	if (s->health == SITE_SUSPENDED)
		a.until_ms = suspended_until_ms(s);
	else if (s->health != SITE_ALIVE)
		a.until_ms = site_down_until_ms(s);
	return a;
}

struct admission admission_of_first(const struct site *s)
{
	struct peer *first = selection_first(&s->queue);
	const struct list *any = list_first(&s->queue.peers);
	if (!first && !any)
		return admission_to_live(s);
	return admission_of(s, first ? first : list_entry(any, struct peer, in_queue));
}
