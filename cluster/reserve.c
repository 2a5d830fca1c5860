/* SPDX-License-Identifier: ISC */
#include "cluster/reserve.h"

#include "base/number.h"
#include "cluster/link.h"

#include <assert.h>

static int64_t ahead_us(int64_t nodes)
{
	return 1000 * number_max(RESERVE_AHEAD_MS, nodes * RESERVE_EACH_MS);
}

/* Its part of what may begin within the time that is reserved ahead. */
static int64_t block_size(const struct conf_rate *r, int64_t nodes)
{
	assert(r->events > 0 && r->per_ms > 0 && nodes >= 1);
	int64_t within = r->events * ahead_us(nodes) / 1000 / r->per_ms;
	return number_max(1, within / nodes);
}

static void use_rate(struct reserve *r, const struct conf_rate *rate, int64_t now_us)
{
	assert(rate->events > 0);
	r->rate = *rate;
	r->used_us = now_us;
}

void reserve_want(struct reserve *r, const struct conf_rate *rate, int64_t n, int64_t now_us)
{
	assert(r->wanted == 0 && n > 0);
	use_rate(r, rate, now_us);
	r->wanted = n;
}

void reserve_spend(struct reserve *r, const struct conf_rate *rate, int64_t n, int64_t now_us)
{
	assert(n >= 0);
	use_rate(r, rate, now_us);
	/* While Redis is away more than a burst of it is of no account. */
	r->spent = number_min(r->spent + n, rate->events);
	r->look |= n == 0;
}

void reserve_forget(struct reserve *r, int64_t now_us)
{
	r->spent = r->next_us = 0;
	r->forget = true;
	r->used_us = now_us;
}

/* So far ahead of now it may come: above what is reserved, or that would never be too far. */
static int64_t furthest_us(const struct reserve *r, int64_t nodes)
{
	int64_t burst_us = 2000 * r->rate.per_ms;
	return r->wanted ? number_max(burst_us, 2 * ahead_us(nodes)) : burst_us;
}

static bool spent_due(const struct reserve *r, int64_t nodes, int64_t now_us)
{
	if (r->spent == 0)
		return false;
	return now_us >= r->due_us ||
	       r->spent * gcra_interval_us(&r->rate) * RESERVE_PARTS * nodes >= r->room_us;
}

bool reserve_ask(struct reserve *r, int64_t nodes, int64_t now_us, struct reserve_ask *ask)
{
	assert(nodes >= 1);
	bool due = r->wanted > 0 || r->forget || r->look || spent_due(r, nodes, now_us);
	if (r->asked || !due)
		return false;
	*ask = (struct reserve_ask){
		.interval_us = r->rate.events ? gcra_interval_us(&r->rate) : 1,
		.spent = r->spent,
		.want = r->wanted ? number_min(r->wanted, block_size(&r->rate, nodes)) : 0,
		.ahead_us = ahead_us(nodes),
		.most_us = furthest_us(r, nodes),
		.forget = r->forget,
		.since = r->since,
		.known_us = number_max(0, r->next_us - now_us)};
	assert(ask->want >= 0 && ask->want <= r->wanted && ask->spent >= 0);
	r->asked = true;
	r->forgetting = r->forget;
	r->looking = r->look;
	r->forget = r->look = false;
	r->telling = r->spent;
	r->spent = 0;
	return true;
}

/* Many nodes that wait for one place don't all ask for it at the moment it is free. */
static int64_t again_us(int64_t from_us, int64_t nodes, int64_t now_us)
{
	return number_max(now_us + from_us - ahead_us(nodes),
			  now_us + 1000 * nodes * RESERVE_EACH_MS);
}

void reserve_answered(struct reserve *r, const struct reserve_answer *a, int64_t nodes,
		      int64_t now_us, struct reserve_grant *g)
{
	assert(r->asked);
	*g = (struct reserve_grant){
		.n = number_min(a->granted, r->wanted), /* whatever Redis says */
		.from_us = now_us + a->from_us,
		.again_us = again_us(a->from_us, nodes, now_us)};
	assert(g->n >= 0 && g->n <= r->wanted);
	r->asked = false;
	r->wanted = r->telling = 0;
	r->room_us = number_max(0, r->rate.per_ms * 1000 - a->next_us);
	r->due_us = now_us + ahead_us(nodes);
	r->next_us = r->forget ? 0 : now_us + a->next_us;
	r->since = a->since;
}

int64_t reserve_next_us(const struct reserve *r, const struct reserve_answer *a, int64_t now_us)
{
	int64_t since_us = r->spent > 0 ? r->spent * gcra_interval_us(&r->rate) : 0;
	return now_us + a->next_us + since_us;
}

void reserve_missed(struct reserve *r)
{
	assert(r->asked);
	r->asked = false;
	r->spent = number_min(r->spent + r->telling, r->rate.events);
	r->telling = 0;
	r->forget |= r->forgetting;
	r->look |= r->looking;
}

bool reserve_alone(struct reserve *r, int64_t nodes, int64_t now_us, struct reserve_grant *g)
{
	assert(nodes >= 1);
	if (r->wanted == 0)
		return false;
	/* rate / nodes, however few events that is. */
	struct conf_rate part = {.events = r->rate.events, .per_ms = r->rate.per_ms * nodes};
	int64_t step_us = gcra_interval_us(&part), until_us = now_us + 1000 * RESERVE_AHEAD_MS;
	g->from_us = number_max(now_us, r->alone.next_us);
	g->n = g->from_us > until_us ? 0 : number_min(r->wanted, block_size(&r->rate, nodes));
	r->alone.next_us = g->from_us + g->n * step_us;
	g->again_us = g->from_us - 1000 * RESERVE_AHEAD_MS;
	assert(g->n >= 0 && g->n <= r->wanted);
	r->wanted = 0;
	return true;
}

bool reserve_over(const struct reserve *r, int64_t now_us)
{
	return !r->asked && r->wanted == 0 && !r->forget && r->next_us <= now_us &&
	       now_us >= r->used_us + 1000 * RESERVE_FORGET_MS && r->alone.next_us <= now_us &&
	       (r->spent == 0 || now_us >= r->used_us + 1000 * r->rate.per_ms);
}

const char reserve_script[] =
	"local t = redis.call('TIME')\n"
	"local now = t[1] * 1000000 + t[2]\n"
	"local step, spent, want = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])\n"
	"local ahead, most = now + ARGV[4], now + ARGV[5]\n"
	"local now_ms = math.floor(now / 1000)\n" LINK_LUA_SINCE(
		"KEYS[2]") "local at = redis.pcall('GET', KEYS[1])\n"
			   "at = type(at) == 'string' and ARGV[6] ~= '1' and tonumber(at) or 0\n"
			   "if not (at > now and at <= most + ARGV[5]) then at = now end\n"
			   "if since ~= tonumber(ARGV[7]) then at = math.max(at, now + ARGV[8]) "
			   "end\n"
			   "at = math.min(at + spent * step, most)\n"
			   "local from, n = at, 0\n"
			   "if want > 0 and at <= ahead then\n"
			   "  n = want\n"
			   "  at = at + n * step\n"
			   "end\n"
			   "if at > now then\n"
			   "  local px = string.format('%d', math.ceil((at - now) / 1000))\n"
			   "  redis.call('SET', KEYS[1], string.format('%.0f', at), 'PX', px)\n"
			   "else\n"
			   "  redis.call('DEL', KEYS[1])\n"
			   "end\n"
			   "return {n, from - now, at - now, since}\n";
