/* SPDX-License-Identifier: ISC */
/* A site and its hosts: which gets the next connection, and what to do while none can. */
#include "qmgr/dest/conn.h"
#include "qmgr/dest/indoubt.h"
#include "qmgr/dest/site.h"
#include "qmgr/dest/suspend.h"
#include "qmgr/sched/job.h"

#include <assert.h>

/* The site may open another connection: of the best of its hosts, ask for all that it would use. */
static void ask_for_leases(const struct site *s)
{
	int64_t limit = s->queue.transport->settings->host_connection_limit;
	int64_t wanted = s->queue.waiting - (s->connecting - s->slow);
	int64_t room = site_limit(s) - (s->connections - s->slow);
	int64_t more = wanted < room ? wanted : room;
	int end, first = s->db->edges.to_cluster ? destdb_group(s->hosts, s->nhost, &end) : -1;
	for (int i = first; first >= 0 && i < end; i++)
		if (!site_host_out(&s->hosts[i]))
			leased_want(s->db, s->hosts[i].host, limit, more > 1 ? more : 1);
}

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
	assert((choice == DESTDB_HOST) == (*host != NULL));
	if (choice != DESTDB_NONE)
		ask_for_leases(s);
	return choice;
}

bool site_has_backups(const struct site *s)
{
	return s->nhost > 0 && s->hosts[0].preference != s->hosts[s->nhost - 1].preference;
}

/* Messages that the ready connections to a host take in a microsecond. */
static double rate_of(const struct host *h)
{
	double rate = 0;
	list_each_entry (const struct conn, c, in_host, &h->conns) {
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
	if (delay_ms == 0 || !site_has_backups(s) ||
	    (first = destdb_group(s->hosts, s->nhost, &end)) < 0 || end == s->nhost ||
	    !destdb_same_hop(&s->hosts[first], &s->hosts[end]))
		return false;
	return wait_ms(s, &s->hosts[first], end - first) > (double)delay_ms;
}

static bool has_better(const struct site *s, const struct host *than)
{
	const struct site_host *it = site_host_of(s, than);
	for (int i = 0; it && i < s->nhost; i++)
		if (s->hosts[i].preference < it->preference && !site_host_out(&s->hosts[i]))
			return true;
	return false;
}

bool site_prefers_other(const struct site *s, const struct host *than)
{
	const struct site_host *it = site_host_of(s, than);
	for (int i = 0; it && i < s->nhost; i++)
		if (s->hosts[i].preference < it->preference && s->hosts[i].host->proven)
			return true;
	return false;
}

/* As far as is known. One that has failed before it said so is not waited for. */
static bool may_take(const struct host *h, bool international, uint64_t bytes)
{
	const struct host_offers *o = &h->offers;
	if (!o->known)
		return h->state == HOST_UP;
	return (o->smtputf8 || !international) && (o->size_max == 0 || bytes <= o->size_max);
}

bool site_equal_may_take(const struct site *s, const struct host *h, bool international,
			 uint64_t bytes)
{
	const struct site_host *mine = site_host_of(s, h);
	for (const struct site_host *it = s->hosts; mine && it < s->hosts + s->nhost; it++)
		if (it->host != h && it->preference == mine->preference && !it->suspended &&
		    may_take(it->host, international, bytes))
			return true;
	return false;
}

bool site_keeps_back(const struct site *s, const struct host *h)
{
	return has_better(s, h) && !site_overflows(s);
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

int64_t site_down_until_ms(const struct site *s)
{
	int64_t first_ms = 0;
	if (s->health == SITE_REFUSED)
		return site_pace_due_ms(s);
	if (s->health != SITE_DEAD && s->health != SITE_OUT)
		return 0;
	for (int i = 0; i < s->nhost; i++) {
		const struct host *h = s->hosts[i].host;
		if (h->state != HOST_UP && (first_ms == 0 || h->retry_ms < first_ms))
			first_ms = h->retry_ms;
	}
	return first_ms;
}
