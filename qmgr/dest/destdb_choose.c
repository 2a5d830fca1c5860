/* SPDX-License-Identifier: ISC */
/* Which host gets the next connection, and the state that this makes of a record. */
#include "qmgr/dest/destdb_choose.h"

#include "qmgr/dest/source.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* The order in which destdb_choose() prefers hosts, best first. */
enum rank { RANK_UNUSED, RANK_CLOSED, RANK_ACTIVE, RANK_SLOW };

bool site_host_out(const struct site_host *it)
{
	return it->suspended || host_out(it->host) || source_misses(it->site, it->host);
}

static enum rank rank_of(const struct host *h, int64_t now_ms)
{
	if (h->slow_until_ms > now_ms || h->unanswered > 0)
		return RANK_SLOW;
	if (h->connections > 0)
		return RANK_ACTIVE;
	return h->opened_ms == 0 ? RANK_UNUSED : RANK_CLOSED;
}

/* Which of two hosts of the same rank: negative when a comes first, 0 when chance decides. */
static int64_t compare_in_rank(enum rank r, const struct host *a, const struct host *b)
{
	switch (r) {
	case RANK_CLOSED:
		return a->opened_ms - b->opened_ms;
	case RANK_ACTIVE:
	case RANK_SLOW:
		return a->connections - b->connections;
	default:
		return 0;
	}
}

/* Negative: a comes first. 0: chance decides. */
static int64_t compare_at(const struct host *a, const struct host *b, int64_t now_ms)
{
	enum rank r = rank_of(a, now_ms);
	int64_t ranks = (int64_t)r - (int64_t)rank_of(b, now_ms);
	return ranks ? ranks : compare_in_rank(r, a, b);
}

static bool can_take(const struct site_host *it, int64_t host_limit, int64_t now_ms)
{
	return !site_host_out(it) && host_has_room(it->host, host_limit, now_ms);
}

/* When a host that is at the limit it was seen to have may be asked for one more. */
static int64_t first_room(const struct site_host *hosts, int n, int64_t host_limit, int64_t now_ms)
{
	int64_t first_ms = 0;
	for (int i = 0; i < n; i++) {
		const struct host *h = hosts[i].host;
		int64_t at_ms = host_room_ms(h);
		bool waits = !site_host_out(&hosts[i]) && at_ms > now_ms &&
			     (host_limit == 0 || h->connections < host_limit);
		if (waits && (first_ms == 0 || at_ms < first_ms))
			first_ms = at_ms;
	}
	return first_ms;
}

/* Of the addresses of one name, those that are equal otherwise, IPv6 goes first (RFC 8305 4). */
static struct site_host *by_family(struct site_host *hosts, int n, struct site_host *best,
				   int64_t host_limit, int64_t now_ms)
{
	for (int i = 0; best && best->host->address.sa.sa_family == AF_INET && i < n; i++) {
		struct site_host *it = &hosts[i];
		if (it->host->address.sa.sa_family == AF_INET6 &&
		    strcmp(it->name, best->name) == 0 && can_take(it, host_limit, now_ms) &&
		    compare_at(it->host, best->host, now_ms) == 0)
			return it;
	}
	return best;
}

/* The best of one group; NULL when none can take a connection now. */
static struct site_host *best_of(struct site_host *hosts, int n, int64_t host_limit, int64_t now_ms,
				 double chance)
{
	struct site_host *best = NULL;
	/* Start anywhere and let only a better one replace what was found: equals fall to
	 * chance. */
	int start = (int)(chance * n);
	for (int i = 0; i < n; i++) {
		struct site_host *it = &hosts[(start + i) % n];
		if (can_take(it, host_limit, now_ms) &&
		    (!best || compare_at(it->host, best->host, now_ms) < 0))
			best = it;
	}
	return by_family(hosts, n, best, host_limit, now_ms);
}

static double load_of(const struct site_host *h)
{
	assert(h->weight > 0);
	return h->host->unanswered ? HUGE_VAL : (double)h->host->connections / h->weight;
}

/* The least loaded for its weight; among equals at random, by weight again. */
static struct site_host *lightest_of(struct site_host *hosts, int n, int64_t host_limit,
				     int64_t now_ms, double chance)
{
	struct site_host *best = NULL;
	double total = 0, at = 0;
	for (int i = 0; i < n; i++) {
		if (!can_take(&hosts[i], host_limit, now_ms))
			continue;
		if (!best || load_of(&hosts[i]) < load_of(best)) {
			best = &hosts[i];
			total = 0;
		}
		if (load_of(&hosts[i]) <= load_of(best))
			total += hosts[i].weight;
	}
	double least = best ? load_of(best) : 0;
	for (int i = 0; best && i < n; i++) {
		if (load_of(&hosts[i]) > least || !can_take(&hosts[i], host_limit, now_ms))
			continue;
		at += hosts[i].weight;
		if (chance * total < at)
			return &hosts[i];
	}
	return best;
}

/* The whole group of this host. */
static int group_around(const struct site_host *hosts, int n, int at, int *end)
{
	int first = at;
	while (first > 0 && hosts[first - 1].preference == hosts[at].preference)
		first--;
	for (*end = at; *end < n && hosts[*end].preference == hosts[at].preference;)
		++*end;
	return first;
}

bool destdb_same_hop(const struct site_host *a, const struct site_host *b)
{
	return a->preference >> 16 == b->preference >> 16;
}

int destdb_group(const struct site_host *hosts, int n, int *end)
{
	int unanswered = -1;
	for (int i = 0; i < n; i++) {
		if (site_host_out(&hosts[i]))
			continue;
		if (host_answers(hosts[i].host))
			return group_around(hosts, n, i, end);
		if (unanswered < 0)
			unanswered = i;
	}
	return unanswered < 0 ? -1 : group_around(hosts, n, unanswered, end);
}

enum destdb_choice destdb_choose(struct site_host *hosts, int n, int64_t host_limit, int64_t now_ms,
				 bool overflow, double chance, struct site_host **chosen,
				 int64_t *wake_ms)
{
	assert(chance >= 0 && chance < 1);
	int end, first = destdb_group(hosts, n, &end);
	*wake_ms = 0;
	if (first < 0)
		return DESTDB_NONE;
	*chosen = (hosts[first].weight > 0 ? lightest_of : best_of)(&hosts[first], end - first,
								    host_limit, now_ms, chance);
	for (int at = end;
	     overflow && !*chosen && at < n && destdb_same_hop(&hosts[at], &hosts[first]);
	     at = end) {
		group_around(hosts, n, at, &end);
		*chosen = best_of(&hosts[at], end - at, host_limit, now_ms, chance);
	}
	if (!*chosen)
		*wake_ms = first_room(&hosts[first], end - first, host_limit, now_ms);
	assert(!*chosen || !site_host_out(*chosen));
	return *chosen ? DESTDB_HOST : DESTDB_LATER;
}

const char *destdb_state(const struct host *h, int64_t now_ms)
{
	static const char *const names[] = {[RANK_UNUSED] = "unused",
					    [RANK_CLOSED] = "closed",
					    [RANK_ACTIVE] = "active",
					    [RANK_SLOW] = "slow"};
	if (h->suspended)
		return "suspended";
	if (h->state != HOST_UP)
		return h->state == HOST_OUT && h->retry_ms > now_ms ? "out" : "retry";
	if (h->limit.n > 0 && h->connections >= h->limit.n)
		return "limited";
	if (h->nidle > 0 && h->nidle == h->connections)
		return "idle";
	return names[rank_of(h, now_ms)];
}
