/* SPDX-License-Identifier: ISC */
/* A site and its hosts: which gets the next connection, and what to do while none can. */
#include "qmgr/dest/conn.h"
#include "qmgr/dest/indoubt.h"
#include "qmgr/dest/site.h"
#include "qmgr/dest/suspend.h"
#include "qmgr/sched/job.h"

enum destdb_choice site_choose_host(struct site *s, const struct peer *p, struct site_host **host,
				    int64_t *wake_ms)
{
	*host = indoubt_host_to_open(s, peer_first(p));
	if (*host)
		return DESTDB_HOST;
	enum destdb_choice choice = destdb_choose(
		s->hosts, s->nhost, s->queue.transport->settings->host_connection_limit,
		destdb_now_ms(s->db), site_overflows(s), scheduler_chance(s->db->sched), host,
		wake_ms);
	if (choice != DESTDB_NONE)
		leased_need(s);
	return choice;
}

static bool has_backups(const struct site *s)
{
	return s->nhost > 0 && s->hosts[0].preference != s->hosts[s->nhost - 1].preference;
}

/* Messages that the ready connections to a host take in a microsecond. */
static double rate_of(const struct host *h)
{
	double rate = 0;
	list_each (link, tmp, &h->conns) {
		const struct conn *c = list_entry(link, struct conn, in_host);
		int64_t us = conn_ready(c) ? speed_share_us(&h->speed, c->trips, c->depth) : 0;
		rate += us > 0 ? 1.0 / (double)us : 0;
	}
	return rate;
}

/* How long the last of what the site has now would wait for the ready connections of these hosts. */
static double wait_ms(const struct site *s, const struct site_host *group, int n)
{
	double rate = 0;
	for (int i = 0; i < n; i++)
		if (!site_host_out(&group[i]))
			rate += rate_of(group[i].host);
	return rate > 0 ? (double)(s->queue.waiting + s->busy) / rate / 1000 : 0;
}

bool site_overflows(const struct site *s)
{
	int64_t delay_ms = s->queue.transport->settings->backup_attempt_delay;
	int end, first;
	if (delay_ms == 0 || !has_backups(s) ||
	    (first = destdb_group(s->hosts, s->nhost, &end)) < 0 || end == s->nhost ||
	    !destdb_same_hop(&s->hosts[first], &s->hosts[end]))
		return false;
	return wait_ms(s, &s->hosts[first], end - first) > (double)delay_ms;
}

const struct site_host *site_host_of(const struct site *s, const struct host *h)
{
	for (int i = 0; i < s->nhost; i++)
		if (s->hosts[i].host == h)
			return &s->hosts[i];
	return NULL;
}

bool site_proven(const struct site *s)
{
	for (int i = 0; i < s->nhost; i++)
		if (s->hosts[i].host->proven)
			return true;
	return false;
}

bool site_has_quicker(const struct site *s, const struct host *slow)
{
	int64_t now_ms = destdb_now_ms(s->db);
	const struct site_host *mine = site_host_of(s, slow);
	for (const struct site_host *it = s->hosts; mine && it < s->hosts + s->nhost; it++)
		if (it->preference == mine->preference && !site_host_out(it) &&
		    it->host->slow_until_ms <= now_ms)
			return true;
	return false;
}

bool site_has_other(const struct site *s, const struct host *h)
{
	const struct site_host *mine = site_host_of(s, h);
	bool backups = s->queue.transport->settings->backup_attempt_delay > 0;
	for (const struct site_host *it = s->hosts; mine && it < s->hosts + s->nhost; it++) {
		bool fits = it->preference == mine->preference ||
			    (backups && it->preference > mine->preference);
		if (it->host != h && fits && !site_host_out(it) && host_answers(it->host))
			return true;
	}
	return false;
}

static uint32_t preference_of(const struct conn *c)
{
	const struct site_host *it = site_host_of(c->site, c->host);
	return it ? it->preference : UINT32_MAX;
}

/* Those of lesser preference end, or are a reserve; true: a better one is ready. */
static bool end_lesser(const struct conn *ready, struct list *conns)
{
	bool better = false, overflows = site_overflows(ready->site);
	uint32_t mine = preference_of(ready);
	list_each (link, tmp, conns) {
		struct conn *c = list_entry(link, struct conn, in_site);
		if (!conn_ready(c) && !conn_unready(c))
			continue;
		if (preference_of(c) > mine && overflows && preference_of(c) >> 16 == mine >> 16)
			c->reserve = true;
		else if (preference_of(c) > mine)
			conn_end(c->site->db, c);
		else if (conn_ready(c) && preference_of(c) < mine)
			better = true;
	}
	return better;
}

void site_prefer(struct conn *ready, bool tried_beside)
{
	struct site *s = ready->site;
	if (has_backups(s)) {
		ready->reserve = end_lesser(ready, &s->open);
		ready->reserve |= end_lesser(ready, &s->rest);
	}
	if (tried_beside && s->connections - s->slow - s->ending > site_limit(s))
		conn_end(s->db, ready);
}

/* Whichever of its hosts has a connection to spare first will say so. */
void site_wait_for_hosts(struct site *s)
{
	for (int i = 0; i < s->nhost; i++) {
		struct site_host *it = &s->hosts[i];
		if (site_host_out(it) || !list_empty(&it->in_full))
			continue;
		list_append(&it->host->full, &it->in_full);
		if (it->host->nidle > 0)
			site_touch(s); /* one that has had its turn is free for it now */
	}
}

void site_wait_no_more(struct site *s)
{
	for (int i = 0; i < s->nhost; i++)
		list_remove(&s->hosts[i].in_full);
}

/* Each is told once in a round: who makes no use of it waits behind the others. */
void site_feed_waiting_for(struct host *h)
{
	list_each (link, tmp, &h->full) {
		struct site *s = list_entry(link, struct site_host, in_full)->site;
		if (s->fed == s->db->rounds)
			continue;
		s->fed = s->db->rounds;
		s->fed_by = h;
		list_remove(link);
		list_append(&h->full, link);
		site_touch(s);
		if (h->connections > 0)
			return;
	}
}

void site_pass_on(struct site *s)
{
	struct host *h = s->fed_by;
	s->fed_by = NULL;
	if (s->queue.state == QUEUE_PLACED)
		return;
	if (h)
		site_feed_waiting_for(h);
	list_each (link, tmp, &s->open) {
		const struct conn *c = list_entry(link, struct conn, in_site);
		if (c->busy == 0 && c->host != h)
			site_feed_waiting_for(c->host);
	}
}

void site_stuck(struct site *s, enum destdb_choice choice, int64_t wake_ms)
{
	/* Where no host is in service its health says so, and what comes of it. */
	if (choice == DESTDB_LATER && wake_ms > 0)
		site_wake_at(s, wake_ms);
}
