/* SPDX-License-Identifier: ISC */
#include "qmgr/destdb.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/stream.h"
#include "qmgr/suspend.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COOL_FIRST_MS = 100, COOL_MOST_MS = 30000, GOOD_FOR_MS = 10000, SLOW_STAYS_MS = 600000 };

/* What destdb_choose() prefers, best first. */
enum rank { RANK_UNUSED, RANK_CLOSED, RANK_RETRY, RANK_ACTIVE, RANK_SLOW };

struct host *destdb_host(struct qmgr *q, const char *key, const char *name,
			 const union address *address)
{
	char ip[64];
	struct host *h;
	HASH_FIND_STR(q->hosts, key, h);
	if (h)
		return h;
	h = mem_zalloc(sizeof *h);
	h->key = mem_strdup(key);
	h->name = mem_strdup(name);
	h->address = *address;
	h->peer =
		mem_printf("%.200s[%s]:%d", name, address_text(address, ip), address_port(address));
	h->suspended = suspend_covers_host(q, h);
	list_init(&h->full);
	list_init(&h->idle);
	list_init(&h->conns);
	h->depth = 1;
	HASH_ADD_KEYPTR(hh, q->hosts, h->key, strlen(h->key), h);
	return h;
}

struct host *destdb_get(struct qmgr *q, const struct transport *t, const char *name,
			const union address *address)
{
	char ip[64], key[256];
	snprintf(key, sizeof key, "%s:%d/%d/%s", address_text(address, ip), address_port(address),
		 t->settings->tls, t->settings->source_address);
	struct host *h = destdb_host(q, key, name, address);
	h->refs++;
	return h;
}

void host_unref(struct host *h)
{
	h->refs--; /* The record outlives its last user; the scheduler's collection removes it. */
}

void host_free(struct qmgr *q, struct host *h)
{
	assert(list_empty(&h->full) && list_empty(&h->idle) && list_empty(&h->conns));
	HASH_DEL(q->hosts, h);
	verdict_unref(h->why);
	free(h->name);
	free(h->peer);
	free(h->key);
	free(h);
}

bool host_out(const struct host *h, int64_t now_ms)
{
	return h->suspended || h->retry_ms > now_ms;
}

static enum rank rank(const struct host *h, int64_t now_ms)
{
	if (h->slow_until_ms > now_ms)
		return RANK_SLOW;
	if (h->connections > 0)
		return RANK_ACTIVE;
	if (h->failures > 0)
		return RANK_RETRY;
	return h->opened_ms == 0 ? RANK_UNUSED : RANK_CLOSED;
}

/* Which of two hosts of the same rank: negative when a comes first, 0 when chance decides. */
static int64_t compare(enum rank r, const struct host *a, const struct host *b)
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
	enum rank r = rank(a, now_ms);
	int64_t ranks = (int64_t)r - (int64_t)rank(b, now_ms);
	return ranks ? ranks : compare(r, a, b);
}

static bool can_take(const struct host *h, int64_t host_limit, int64_t now_ms)
{
	return !host_out(h, now_ms) && (host_limit == 0 || h->connections < host_limit) &&
	       h->cool_ms <= now_ms;
}

/* When one that is only left alone for a moment may be asked again. */
static int64_t first_cool(const struct site_host *hosts, int n, int64_t host_limit, int64_t now_ms)
{
	int64_t first_ms = 0;
	for (int i = 0; i < n; i++) {
		const struct host *h = hosts[i].host;
		bool waits = !host_out(h, now_ms) && h->cool_ms > now_ms &&
			     (host_limit == 0 || h->connections < host_limit);
		if (waits && (first_ms == 0 || h->cool_ms < first_ms))
			first_ms = h->cool_ms;
	}
	return first_ms;
}

/* Of the addresses of one name, those that are equal otherwise, IPv6 goes first (RFC 8305 4). */
static struct host *by_family(const struct site_host *hosts, int n, struct host *best,
			      int64_t host_limit, int64_t now_ms)
{
	for (int i = 0; best && best->address.sa.sa_family == AF_INET && i < n; i++) {
		struct host *h = hosts[i].host;
		if (h->address.sa.sa_family == AF_INET6 && strcmp(h->name, best->name) == 0 &&
		    can_take(h, host_limit, now_ms) && compare_at(h, best, now_ms) == 0)
			return h;
	}
	return best;
}

/* The best of one group; NULL when none can take a connection now. */
static struct host *best_of(const struct site_host *hosts, int n, int64_t host_limit,
			    int64_t now_ms, double chance)
{
	struct host *best = NULL;
	/* Start anywhere and let only a better one replace what was found: equals fall to
	 * chance. */
	int start = (int)(chance * n);
	for (int i = 0; i < n; i++) {
		struct host *h = hosts[(start + i) % n].host;
		if (can_take(h, host_limit, now_ms) && (!best || compare_at(h, best, now_ms) < 0))
			best = h;
	}
	return by_family(hosts, n, best, host_limit, now_ms);
}

static double load(const struct site_host *h)
{
	return (double)h->host->connections / h->weight;
}

/* The least loaded for its weight; among equals at random, by weight again. */
static struct host *lightest_of(const struct site_host *hosts, int n, int64_t host_limit,
				int64_t now_ms, double chance)
{
	const struct site_host *best = NULL;
	double total = 0, at = 0;
	for (int i = 0; i < n; i++) {
		if (!can_take(hosts[i].host, host_limit, now_ms))
			continue;
		if (!best || load(&hosts[i]) < load(best)) {
			best = &hosts[i];
			total = 0;
		}
		if (load(&hosts[i]) <= load(best))
			total += hosts[i].weight;
	}
	double least = best ? load(best) : 0;
	for (int i = 0; best && i < n; i++) {
		if (load(&hosts[i]) > least || !can_take(hosts[i].host, host_limit, now_ms))
			continue;
		at += hosts[i].weight;
		if (chance * total < at)
			return hosts[i].host;
	}
	return best ? best->host : NULL;
}

enum destdb_choice destdb_choose(const struct site_host *hosts, int n, int64_t host_limit,
				 int64_t now_ms, double chance, struct host **chosen,
				 int64_t *wake_ms)
{
	*wake_ms = 0;
	for (int first = 0, end; first < n; first = end) {
		bool in_service = false;
		for (end = first; end < n && hosts[end].preference == hosts[first].preference;
		     end++)
			in_service |= !host_out(hosts[end].host, now_ms);
		if (!in_service)
			continue;
		*chosen = (hosts[first].weight > 0 ? lightest_of : best_of)(
			&hosts[first], end - first, host_limit, now_ms, chance);
		if (!*chosen)
			*wake_ms = first_cool(&hosts[first], end - first, host_limit, now_ms);
		return *chosen ? DESTDB_HOST : DESTDB_LATER;
	}
	return DESTDB_NONE;
}

bool host_serves(const struct host *h, int64_t now_ms)
{
	return h->ready > 0 || (h->good_ms > 0 && now_ms < h->good_ms + GOOD_FOR_MS);
}

void host_failed(struct host *h, struct verdict *why, int64_t now_ms, int64_t backoff_ms)
{
	int64_t cool = (int64_t)COOL_FIRST_MS << (h->failures < 10 ? h->failures : 10);
	verdict_unref(h->why);
	h->why = verdict_ref(why);
	if (!host_serves(h, now_ms)) {
		h->failures++;
		h->retry_ms = now_ms + backoff_ms;
	} else if (h->cool_ms <= now_ms) {
		h->failures++;
		h->cool_ms = now_ms + (cool < COOL_MOST_MS ? cool : COOL_MOST_MS);
	}
}

void host_slow(struct host *h, int64_t now_ms)
{
	h->slow_until_ms = now_ms + SLOW_STAYS_MS;
}

void host_worked(struct host *h)
{
	h->failures = 0;
	h->retry_ms = h->cool_ms = 0;
	verdict_unref(h->why);
	h->why = NULL;
}

void host_forget(struct host *h)
{
	host_worked(h);
	h->plain_until_ms = h->slow_until_ms = 0;
	h->mode_until_ms = h->good_ms = h->opened_ms = 0;
}

bool host_stale(const struct host *h, int64_t now_ms)
{
	return h->refs == 0 && h->retry_ms < now_ms && h->plain_until_ms < now_ms &&
	       h->mode_until_ms < now_ms && h->opened_ms < now_ms - HOST_STALE_MS;
}

const char *host_state(const struct host *h, int64_t now_ms)
{
	static const char *const names[] = {[RANK_UNUSED] = "unused",
					    [RANK_CLOSED] = "closed",
					    [RANK_RETRY] = "retry",
					    [RANK_ACTIVE] = "active",
					    [RANK_SLOW] = "slow"};
	if (h->suspended)
		return "suspended";
	if (host_out(h, now_ms))
		return "out";
	if (h->nidle > 0 && h->nidle == h->connections)
		return "idle";
	return names[rank(h, now_ms)];
}

void host_ended_well(struct host *h, int64_t now_ms)
{
	h->good_ms = now_ms;
	h->cool_ms = 0;
}

const char *host_mode_name(enum connection_mode mode)
{
	static const char *const names[] = {[CONNECTION_FULL] = "full",
					    [CONNECTION_NO_CHUNKING] = "no chunking",
					    [CONNECTION_LOCKSTEP] = "lockstep"};
	return names[mode];
}

enum connection_mode host_mode(const struct host *h, int64_t now_ms)
{
	return now_ms < h->mode_until_ms ? h->mode : CONNECTION_FULL;
}

void host_confused(struct host *h, enum connection_mode next, struct verdict *why, int64_t now_ms)
{
	if (next > host_mode(h, now_ms))
		h->mode = next;
	h->mode_until_ms = now_ms + HOST_MODE_MS;
	log_event(LOG_LEVEL_WARNING, "host", "host", h->name, "mode", host_mode_name(h->mode),
		  "reason", why ? why->text : "it gave a reply too many", NULL);
}
