/* SPDX-License-Identifier: ISC */
#include "base/gcra.h"

#include <assert.h>

int64_t gcra_interval_us(const struct conf_rate *r)
{
	assert(r->events > 0);
	return r->per_ms * 1000 / r->events;
}

int64_t gcra_burst_us(const struct conf_rate *r)
{
	return r->per_ms * 1000 - gcra_interval_us(r);
}

int64_t gcra_due_us(const struct gcra *g, const struct conf_rate *r, int64_t tolerance_us)
{
	assert(tolerance_us >= 0);
	return r->events == 0 ? 0 : g->next_us - tolerance_us;
}

void gcra_count(struct gcra *g, const struct conf_rate *r, int64_t now_us)
{
	if (r->events == 0)
		return;
	if (g->next_us < now_us)
		g->next_us = now_us;
	g->next_us += gcra_interval_us(r);
}

int64_t gcra_room(const struct gcra *g, const struct conf_rate *r, int64_t now_us)
{
	int64_t ahead = g->next_us > now_us ? g->next_us - now_us : 0;
	int64_t room = r->per_ms * 1000 - ahead, step = gcra_interval_us(r);
	return room <= 0 ? 0 : step == 0 ? r->events : room / step;
}

struct conf_rate gcra_part(const struct conf_rate *whole, int64_t parts)
{
	assert(whole->events > 0 && parts > 0);
	int64_t events = whole->events / parts;
	return (struct conf_rate){events > 0 ? events : 1, whole->per_ms};
}
