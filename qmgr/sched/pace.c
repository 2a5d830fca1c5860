/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/pace.h"

static int64_t interval_us(const struct conf_rate *r)
{
	return r->per_ms * 1000 / r->events;
}

int64_t pace_due_ms(const struct pace *p, const struct conf_rate *r)
{
	if (r->events == 0)
		return 0;
	int64_t grain_us = interval_us(r) < PACE_GRAIN_MS * 1000 ? PACE_GRAIN_MS * 1000 : 0;
	return (p->next_us - grain_us + 999) / 1000;
}

void pace_count(struct pace *p, const struct conf_rate *r, int64_t now_ms)
{
	if (r->events == 0)
		return;
	if (p->next_us < now_ms * 1000)
		p->next_us = now_ms * 1000;
	p->next_us += interval_us(r);
}
