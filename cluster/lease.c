/* SPDX-License-Identifier: ISC */
#include "cluster/lease.h"

#include "base/number.h"
#include "cluster/link.h"

#include <assert.h>

static int64_t equal_part(const struct lease *l, const struct lease_view *v)
{
	assert(v->nodes >= 1);
	return number_max(1, l->limit / v->nodes);
}

/* The lease counts as held from now on, whatever the holder tells before it has heard of it. */
static void raise_to(struct lease *l, int64_t allowed)
{
	if (allowed <= l->hold)
		return;
	l->hold = allowed;
	l->offers++;
}

void lease_tell(struct lease *l, int64_t limit, int64_t hold, int64_t want, uint64_t heard,
		int64_t now_ms)
{
	assert(limit > 0 && hold >= 0 && want >= 0);
	if (heard > l->offers)
		l->offers = l->offered = heard; /* of a record that was forgotten since */
	bool wider = want > l->want || limit > l->limit;
	l->limit = limit;
	l->hold = heard == l->offers ? hold : number_max(hold, l->hold);
	l->want = want;
	/* A lease that others wait for goes back at once; else it is kept until the next renewal, and may be had again
	 * without asking. Who was told that there is no more asks no sooner. */
	bool kept = !l->asked && now_ms < l->answered_ms + LEASE_TTL_MS / 2;
	if (l->hold < l->kept && l->wanting > 1)
		l->due_ms = now_ms;
	else if (kept)
		raise_to(l, number_min(want, number_min(l->kept, limit)));
	if (wider && want > l->kept && !l->unmet)
		l->due_ms = now_ms;
}

bool lease_ask(struct lease *l, const struct lease_view *v, struct lease_ask *ask)
{
	bool something = l->hold > 0 || l->want > 0 || l->kept > 0;
	if (v->away || l->asked || !something || v->now_ms < l->due_ms)
		return false;
	bool settling = v->now_ms < v->since_ms + LEASE_SETTLE_MS;
	int64_t want =
		number_min(l->want, settling ? number_max(l->hold, equal_part(l, v)) : l->limit);
	*ask = (struct lease_ask){.limit = l->limit, .hold = l->hold, .want = want};
	assert(ask->want >= 0 && ask->hold >= 0);
	l->asked = true;
	return true;
}

void lease_answered(struct lease *l, const struct lease_answer *a, int64_t now_ms)
{
	assert(l->asked && l->limit > 0);
	/* Whose turn it is comes before the others. */
	bool turn = a->fair > a->granted, short_of = a->wanting > l->limit;
	int64_t each_ms = (turn ? number_min(a->wanting, l->limit) : a->wanting) * LEASE_EACH_MS;
	int64_t again_ms = short_of && !turn ? LEASE_REST_MS : LEASE_AGAIN_MS;
	l->asked = false;
	l->answered_ms = now_ms;
	l->kept = a->granted;
	raise_to(l, number_min(a->granted, l->limit)); /* whatever Redis says */
	l->fair = a->fair;
	l->others = a->others;
	l->wanting = a->wanting;
	l->unmet = number_min(l->want, l->limit) > a->granted;
	l->due_ms = now_ms + (l->unmet ? number_max(again_ms, each_ms) : LEASE_RENEW_MS);
	/* Leases are renewed in time, however many want some. */
	if (a->granted > 0)
		l->due_ms = number_min(l->due_ms, now_ms + LEASE_RENEW_MS);
}

void lease_missed(struct lease *l, int64_t now_ms)
{
	assert(l->asked);
	l->asked = false;
	l->due_ms = now_ms;
}

static void offer_alone(const struct lease *l, const struct lease_view *v, struct lease_offer *o)
{
	int64_t from_ms = number_max(l->answered_ms, v->since_ms);
	bool mine_only = v->now_ms >= l->answered_ms + LEASE_TTL_MS / 2 || l->answered_ms == 0;
	bool others_expired = v->now_ms >= from_ms + LEASE_TTL_MS;
	o->fair = mine_only ? equal_part(l, v) : l->fair;
	int64_t first = mine_only && l->want > 0;
	o->allowed =
		number_max(l->hold, others_expired ? number_min(l->want, equal_part(l, v)) : first);
}

bool lease_offer(struct lease *l, const struct lease_view *v, struct lease_offer *o)
{
	*o = (struct lease_offer){.allowed = l->hold,
				  .fair = l->fair,
				  .others = l->others,
				  .scarce = !v->away && l->wanting > l->limit};
	if (v->away)
		offer_alone(l, v, o);
	assert(o->allowed >= l->hold); /* only its holder takes any back */
	raise_to(l, o->allowed);
	o->number = l->offers;
	assert(l->offers >= l->offered);
	if (o->number == l->offered && o->fair == l->advised && o->others == l->said &&
	    o->scarce == l->scarce)
		return false;
	l->offered = o->number;
	l->advised = o->fair;
	l->said = o->others;
	l->scarce = o->scarce;
	return true;
}

bool lease_over(const struct lease *l)
{
	return !l->asked && l->hold == 0 && l->want == 0 && l->kept == 0;
}

const char lease_script[] =
	"local t = redis.call('TIME')\n"
	"local now_ms = t[1] * 1000 + math.floor(t[2] / 1000)\n"
	"local me, limit, hold, want = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), "
	"tonumber(ARGV[4])\n" LINK_LUA_SINCE("KEYS[2]")
	/* Where these, or all, were just lost nobody gets more than it has, but for its first one. */
	"local own = redis.pcall('HMGET', KEYS[1], me, '\\1', '\\2', '\\3')\n"
	"local lost = own.err or hold > 0 and not own[1]\n"
	"if own.err then\n"
	"  redis.call('DEL', KEYS[1])\n"
	"  own = {}\n"
	"end\n"
	"if lost then\n"
	"  own[4] = now_ms\n"
	"  redis.call('HSET', KEYS[1], '\\3', string.format('%.0f', now_ms))\n"
	"end\n"
	"local mark = own[4] and tonumber(own[4])\n"
	"if own[4] and not (mark and mark <= now_ms and now_ms < mark + ARGV[9]) then\n"
	"  redis.call('HDEL', KEYS[1], '\\3')\n"
	"elseif own[4] then\n"
	"  since = math.max(since, mark)\n"
	"end\n"
	"if now_ms < since + ARGV[9] then want = math.min(want, math.max(hold, 1)) end\n"
	"local h0, w0 = string.match(own[1] or '', '^(%d+) (%d+) ')\n"
	"local at, held, wanting, part = string.match(own[2] or '', '^(%d+) (%d+) (%d+) (%d+)$')\n"
	"local more, scan = own[3] or '', not at or now_ms >= at + ARGV[7] or now_ms < "
	"tonumber(at)\n"
	/* All rows: what the others hold, and who is to have how much of the limit. */
	"if scan or redis.call('HLEN', KEYS[1]) <= tonumber(ARGV[8]) then\n"
	"  local all, wants = redis.call('HGETALL', KEYS[1]), {}\n"
	"  scan, held, part, more = true, 0, limit, {}\n"
	"  for i = 1, #all, 2 do\n"
	"    local h, w, till = string.match(all[i + 1], '^(%d+) (%d+) (%d+)$')\n"
	"    h, w, till = tonumber(h), tonumber(w), tonumber(till)\n"
	"    local good = till and till > now_ms and till <= now_ms + ARGV[5] and h < 1e9 and w < "
	"1e9\n"
	"    local is_row = not string.find(all[i], '^[\\1\\2\\3]$')\n"
	"    if is_row and not good then\n"
	"      redis.call('HDEL', KEYS[1], all[i])\n"
	"    elseif is_row and all[i] ~= me then\n"
	"      held = held + h\n"
	"      if w > 0 then wants[#wants + 1] = {all[i], w} end\n"
	"    end\n"
	"  end\n"
	"  if want > 0 then wants[#wants + 1] = {me, want} end\n"
	"  wanting = #wants\n"
	/* Not one for each: to each in its turn. */
	"  if wanting > limit then\n"
	"    table.sort(wants, function(a, b) return a[1] < b[1] end)\n"
	"    local turn = math.floor(now_ms / ARGV[6]) * limit\n"
	"    part = 0\n"
	"    for i, w in ipairs(wants) do\n"
	"      if (i - 1 - turn) % wanting < limit then more[#more + 1] = w[1] end\n"
	"    end\n"
	/* As much for each as can be: at most `part`, and one more for those in `more`. */
	"  else\n"
	"    table.sort(wants, function(a, b) return a[2] < b[2] or (a[2] == b[2] and a[1] < b[1]) "
	"end)\n"
	"    local left = limit\n"
	"    for i, w in ipairs(wants) do\n"
	"      local n = math.floor(left / (wanting - i + 1))\n"
	"      if part == limit and w[2] > n then part = n end\n"
	"      if w[2] > n and n > part then more[#more + 1] = w[1] end\n"
	"      left = left - math.min(w[2], n)\n"
	"    end\n"
	"  end\n"
	"  more = '\\n' .. table.concat(more, '\\n') .. '\\n'\n"
	/* As they were summed up, without what is known of this node. */
	"else\n"
	"  held = held - (h0 or 0)\n"
	"  wanting = wanting - (tonumber(w0 or 0) > 0 and 1 or 0) + (want > 0 and 1 or 0)\n"
	"end\n"
	"local fair = part + (string.find(more, '\\n' .. me .. '\\n', 1, true) and 1 or 0)\n"
	"fair = math.min(want, fair)\n"
	/* One that gives back has had its turn; else one is for whoever asks while there are any left. */
	"local has = hold\n"
	"local most = fair\n"
	"if wanting > limit and hold >= tonumber(h0 or 0) then most = 1 end\n"
	"if want > hold then has = math.max(hold, math.min(want, most, limit - held)) end\n"
	"if has > hold then fair = math.max(fair, has) end\n"
	"if has > 0 or want > 0 then\n"
	"  local till = string.format('%d %d %.0f', has, want, now_ms + ARGV[5])\n"
	"  redis.call('HSET', KEYS[1], me, till)\n"
	"  redis.call('PEXPIRE', KEYS[1], ARGV[5])\n"
	"else\n"
	"  redis.call('HDEL', KEYS[1], me)\n"
	"end\n"
	"if not scan or redis.call('HLEN', KEYS[1]) > tonumber(ARGV[8]) then\n"
	"  local sum = string.format('%.0f %d %d %d', scan and now_ms or at, held + has, wanting, "
	"part)\n"
	"  redis.call('HSET', KEYS[1], '\\1', sum)\n"
	"  if scan then redis.call('HSET', KEYS[1], '\\2', more) end\n"
	"elseif at then\n"
	"  redis.call('HDEL', KEYS[1], '\\1', '\\2')\n"
	"end\n"
	"return {has, fair, held, wanting}\n";
