/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/pace.h"

int64_t pace_due_ms(const struct pace *p, const struct conf_rate *r)
{
	if (r->events == 0)
		return 0;
	int64_t grain_us = gcra_interval_us(r) < PACE_GRAIN_MS * 1000 ? PACE_GRAIN_MS * 1000 : 0;
	return (gcra_due_us(&p->deliveries, r, grain_us) + 999) / 1000;
}

void pace_count(struct pace *p, const struct conf_rate *r, int64_t now_ms)
{
	gcra_count(&p->deliveries, r, now_ms * 1000);
}
