/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/pace.h"

#include <assert.h>

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

void pace_uncount(struct pace *p, const struct conf_rate *r)
{
	if (r->events > 0)
		p->deliveries.next_us -= gcra_interval_us(r);
}

bool pace_used(const struct pace *p, int64_t now_ms)
{
	return p->deliveries.next_us > now_ms * 1000;
}

void pace_cap(struct pace *p, const struct conf_rate *r, int64_t now_ms)
{
	int64_t most_us = now_ms * 1000 + (r->events > 0 ? gcra_interval_us(r) : 0);
	if (p->deliveries.next_us > most_us)
		p->deliveries.next_us = most_us;
	if (p->again_us > most_us)
		p->again_us = most_us;
}

static int64_t end_us(const struct pace_block *b, const struct conf_rate *r)
{
	return b->from_us + b->n * gcra_interval_us(r);
}

static bool is_current(const struct pace_block *b, const struct conf_rate *r, int64_t now_ms)
{
	return b->n > 0 && end_us(b, r) + PACE_STALE_MS * 1000 > now_ms * 1000;
}

int64_t pace_reserved_ms(const struct pace *p, const struct conf_rate *r, int64_t now_ms)
{
	if (r->events == 0)
		return 0;
	if (is_current(&p->use, r, now_ms))
		return (p->use.from_us + 999) / 1000;
	if (is_current(&p->next, r, now_ms))
		return (p->next.from_us + 999) / 1000;
	int64_t again_ms = (p->again_us + 999) / 1000;
	return again_ms > now_ms ? again_ms : now_ms + PACE_ANSWER_MS;
}

static void use_next_block(struct pace *p)
{
	p->use = p->next;
	p->next.n = 0;
}

void pace_use(struct pace *p, const struct conf_rate *r)
{
	if (r->events == 0)
		return;
	if (p->use.n == 0)
		use_next_block(p);
	if (p->use.n == 0)
		return; /* a rate that a reload has brought, since this one was seen to be due */
	p->use.n--;
	p->use.from_us += gcra_interval_us(r);
	if (p->use.n == 0)
		use_next_block(p);
}

void pace_keep(struct pace *p, int64_t now_ms)
{
	int64_t least_us = (now_ms - PACE_GRAIN_MS) * 1000;
	if (p->use.n > 0 && p->use.from_us < least_us)
		p->use.from_us = least_us;
}

void pace_give_back(struct pace *p, const struct conf_rate *r, int64_t now_ms)
{
	if (r->events == 0)
		return;
	p->use.from_us = p->use.n > 0 ? p->use.from_us - gcra_interval_us(r) : now_ms * 1000;
	p->use.n++;
	pace_keep(p, now_ms);
}

int64_t pace_early_ms(const struct pace *p, const struct conf_rate *r, int64_t now_ms)
{
	int64_t due_ms = pace_reserved_ms(p, r, now_ms);
	bool grained = r->events > 0 && gcra_interval_us(r) < PACE_GRAIN_MS * 1000;
	return grained && p->use.n > 0 ? due_ms - PACE_GRAIN_MS : due_ms;
}

int64_t pace_wants(struct pace *p, const struct conf_rate *r, int64_t waiting, int64_t now_ms)
{
	if (r->events == 0)
		return 0;
	while (p->use.n + p->next.n > 0 && !is_current(&p->use, r, now_ms))
		use_next_block(p);
	bool enough = p->next.n > 0 ||
		      (p->use.n > 0 && end_us(&p->use, r) > (now_ms + PACE_EARLY_MS) * 1000);
	int64_t more = waiting - p->use.n - p->next.n;
	if (p->wanted || enough || more <= 0 || p->again_us > now_ms * 1000)
		return 0;
	p->wanted = true;
	return more;
}

void pace_granted(struct pace *p, int64_t n, int64_t from_us, int64_t again_us)
{
	assert(n >= 0);
	assert(p->wanted && p->next.n == 0);
	p->wanted = false;
	p->again_us = n > 0 ? 0 : again_us;
	p->next = (struct pace_block){n, from_us};
	if (p->use.n == 0)
		use_next_block(p);
}
