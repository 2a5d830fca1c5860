/* SPDX-License-Identifier: ISC */
/* A site and its hosts: which gets the next connection, and what to do while none can. */
#include "qmgr/conn.h"
#include "qmgr/indoubt.h"
#include "qmgr/job.h"
#include "qmgr/site.h"
#include "qmgr/suspend.h"

enum destdb_choice site_choose_host(struct site *s, const struct peer *p, struct host **host,
				    int64_t *wake_ms)
{
	*host = indoubt_host_to_open(s, peer_first(p));
	if (*host)
		return DESTDB_HOST;
	return destdb_choose(s->hosts, s->nhost, s->transport->settings->host_connection_limit,
			     scheduler_now_ms(s->qmgr), scheduler_chance(s->qmgr), host, wake_ms);
}

static const struct site_host *entry_of(const struct site *s, const struct host *h)
{
	for (int i = 0; i < s->nhost; i++)
		if (s->hosts[i].host == h)
			return &s->hosts[i];
	return NULL; /* the site has other hosts now */
}

bool site_has_quicker(const struct site *s, const struct host *slow)
{
	int64_t now_ms = scheduler_now_ms(s->qmgr);
	const struct site_host *mine = entry_of(s, slow);
	for (const struct site_host *it = s->hosts; mine && it < s->hosts + s->nhost; it++)
		if (it->preference == mine->preference && !host_out(it->host, now_ms) &&
		    it->host->slow_until_ms <= now_ms)
			return true;
	return false;
}

bool site_has_other(const struct site *s, const struct host *h)
{
	int64_t now_ms = scheduler_now_ms(s->qmgr);
	const struct site_host *mine = entry_of(s, h);
	bool backups = s->transport->settings->backup_attempt_delay > 0;
	for (const struct site_host *it = s->hosts; mine && it < s->hosts + s->nhost; it++) {
		bool fits = it->preference == mine->preference ||
			    (backups && it->preference > mine->preference);
		if (it->host != h && fits && !host_out(it->host, now_ms) && host_answers(it->host))
			return true;
	}
	return false;
}

static uint32_t preference_of(const struct conn *c)
{
	const struct site_host *it = entry_of(c->site, c->host);
	return it ? it->preference : UINT32_MAX;
}

/* Those of lesser preference end; true: a better one is ready. */
static bool end_lesser(const struct conn *ready, struct list *conns)
{
	bool better = false;
	uint32_t mine = preference_of(ready);
	list_each (link, tmp, conns) {
		struct conn *c = list_entry(link, struct conn, in_site);
		if (c->ending)
			continue;
		if (preference_of(c) > mine)
			conn_end(c->site->qmgr, c);
		else if (c->ready && preference_of(c) < mine)
			better = true;
	}
	return better;
}

void site_prefer(struct conn *ready, bool tried_beside)
{
	struct site *s = ready->site;
	if (s->hosts[0].preference != s->hosts[s->nhost - 1].preference) {
		ready->reserve = end_lesser(ready, &s->open);
		ready->reserve |= end_lesser(ready, &s->rest);
	}
	if (tried_beside && s->connections - s->slow - s->ending > site_limit(s))
		conn_end(s->qmgr, ready);
}

/* All hosts of the group in service are full: the first of them will say when it has room. */
static void wait_for_host(struct site *s)
{
	int end, i = destdb_group(s->hosts, s->nhost, scheduler_now_ms(s->qmgr), &end);
	for (; i < end; i++)
		if (!host_out(s->hosts[i].host, scheduler_now_ms(s->qmgr))) {
			if (list_empty(&s->in_full))
				list_append(&s->hosts[i].host->full, &s->in_full);
			return;
		}
}

void site_feed_waiting_for(struct host *h)
{
	do {
		struct list *first = list_first(&h->full);
		if (!first)
			return;
		list_remove(first);
		site_touch(list_entry(first, struct site, in_full));
	} while (h->connections == 0);
}

/* The failure to report when no host is in service: of the host that failed last. */
static void adopt_failure(struct site *s)
{
	struct verdict *suspended = NULL;
	for (int i = 0; i < s->nhost; i++) {
		struct host *h = s->hosts[i].host;
		if (h->suspended && !suspended)
			suspended = suspend_verdict("host");
		struct verdict *why = h->suspended ? suspended : h->why;
		if (why && (!s->last_failure || why->when_ms > s->last_failure->when_ms)) {
			verdict_unref(s->last_failure);
			s->last_failure = verdict_ref(why);
		}
	}
	verdict_unref(suspended);
}

/* All hosts are full: an idle connection that another site holds there ends for this one. */
static void take_over(struct site *s)
{
	for (int i = 0; i < s->nhost; i++)
		list_each (link, tmp, &s->hosts[i].host->idle) {
			struct conn *c = list_entry(link, struct conn, in_host_idle);
			if (c->site != s && c->site->state != SITE_PLACED) {
				conn_end(s->qmgr, c);
				return;
			}
		}
}

void site_stuck(struct site *s, enum destdb_choice choice, int64_t wake_ms)
{
	if (choice == DESTDB_NONE) {
		if (s->connections > 0)
			return;
		adopt_failure(s);
		site_fail_all(s);
	} else if (wake_ms > 0) {
		timer_start(&s->qmgr->loop->timers, &s->wake, wake_ms);
	} else {
		wait_for_host(s);
		take_over(s);
	}
}

void site_reset(struct site *s)
{
	for (int i = 0; i < s->nhost; i++) {
		conn_set_depth(s->hosts[i].host, 1);
		host_forget(s->hosts[i].host);
		site_feed_waiting_for(s->hosts[i].host);
	}
	window_init(&s->window, s->transport->settings);
	s->dead_until_ms = 0;
	verdict_unref(s->last_failure);
	s->last_failure = NULL;
	site_touch(s);
}
