/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/site.h"

#include "base/mem.h"
#include "base/tls_dane.h"
#include "base/tls_result.h"
#include "qmgr/dest/conn.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/remembered.h"
#include "qmgr/dest/site_name.h"
#include "qmgr/dest/source.h"
#include "qmgr/dest/suspend.h"
#include "qmgr/sched/job.h"
#include "qmgr/dest/pooling.h"
#include "qmgr/sched/selection.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void on_wake(void *owner)
{
	struct site *s = owner;
	site_touch(s);
	s->db->thread.settle(s->db->thread.context);
}

struct site *site_get(struct destdb *db, struct transport *t, const char *relays, const char *name)
{
	char *key = site_name_key(t->title, relays, name);
	struct site *s;
	assert(loop_is_ours(db->sched->loop));
	HASH_FIND_STR(db->sites, key, s);
	if (s) {
		free(key);
		return s;
	}
	s = mem_zalloc(sizeof *s);
	s->key = key;
	s->name = site_name_in(key);
	s->db = db;
	window_init(&s->window, t->settings);
	list_init(&s->open);
	list_init(&s->rest);
	list_init(&s->in_provider);
	list_init(&s->in_source);
	list_init(&s->in_probing);
	selection_init_queue(&s->queue, t);
	timer_init(&s->wake, on_wake, s);
	s->pacing = &s->own_pace;
	s->suspended = suspend_covers_site(db, s);
	remembered_recall(s);
	HASH_ADD_KEYPTR(hh, db->sites, s->key, strlen(s->key), s);
	return s;
}

static void drop_hosts(struct site *s)
{
	site_wait_no_more(s);
	for (int i = 0; i < s->nhost; i++) {
		struct site_host *it = &s->hosts[i];
		list_remove(&it->in_host);
		host_unref(it->host);
		free(it->name);
		free(it->peer);
		tls_dane_unref(it->dane);
	}
	free(s->hosts);
}

/* Where it leads another host has come, which must prove something else; or its address is none of the site's any
 * more, and no other has the same terms. Of addresses that take turns in the DNS the terms are the same. */
static bool is_overtaken(const struct site *s, const struct host *h)
{
	bool same_terms = false;
	if (site_host_of(s, h))
		return false;
	for (const struct site_host *it = s->hosts; it < s->hosts + s->nhost; it++) {
		if (strcmp(it->host->peer, h->peer) == 0)
			return true;
		same_terms |= strcmp(host_terms(it->host), host_terms(h)) == 0;
	}
	return !same_terms;
}

/* Connections whose host was asked to prove something else than is asked for now, or knows us by another login. */
static void end_overtaken(struct site *s, struct list *conns)
{
	list_each_entry (struct conn, c, in_site, conns)
		if ((conn_ready(c) || conn_unready(c)) && is_overtaken(s, c->host))
			conn_end(s->db, c);
}

static void join_host(struct site *s, struct site_host *it)
{
	struct host *h = it->host;
	list_append(&h->sites, &it->in_host);
	if (!h->first)
		h->first = s->queue.transport;
	h->mixed |= h->first != s->queue.transport;
}

void site_set_hosts(struct site *s, struct site_host *hosts, int n)
{
	struct host *fed_by = s->fed_by;
	drop_hosts(s); /* what it waited for may be gone */
	s->fed_by = NULL;
	s->hosts = hosts;
	s->nhost = n;
	for (int i = 0; i < n; i++) {
		struct site_host *it = &hosts[i];
		assert(i == 0 || hosts[i - 1].preference <= it->preference);
		it->site = s;
		it->suspended = suspend_covers_site_host(s->db, it);
		list_init(&it->in_full);
		list_init(&it->in_host);
		join_host(s, it);
	}
	provider_join(s);
	end_overtaken(s, &s->open);
	end_overtaken(s, &s->rest);
	if (fed_by) /* it has not looked */
		site_feed_waiting_for(fed_by);
	site_touch(s);
}

void site_wake_at(struct site *s, int64_t at_ms)
{
	if (!timer_active(&s->wake) || s->wake.due_ms > at_ms)
		timer_start(&s->db->sched->loop->timers, &s->wake, at_ms);
}

void site_configure(struct site *s)
{
	const struct conf_transport *settings = s->queue.transport->settings;
	window_keep_to_limit(&s->window, settings);
	for (int i = 0; i < s->nhost; i++)
		host_cap_backoff(s->hosts[i].host, settings->host_backoff_max,
				 destdb_now_ms(s->db));
	site_cap_rate(s);
	if (!site_pace_wanted(s))
		site_pace_forget(s);
	s->moving = true;
	site_touch(s);
}

void site_reset(struct site *s, bool everywhere)
{
	for (int i = 0; i < s->nhost; i++) {
		struct host *h = s->hosts[i].host;
		conn_set_depth(h, 1);
		host_forget(h);
		pooling_forgotten(s->db, h, everywhere);
		site_feed_waiting_for(h);
		site_host_changed(h);
	}
	window_init(&s->window, s->queue.transport->settings);
	site_pace_forget(s);
	source_forget(s);
	s->dead_until_ms = 0;
	verdict_unref(s->last_failure);
	s->last_failure = NULL;
	site_touch(s);
}

/* Transactions that began lately; of a rate that is shared, Redis knows. */
static bool remembers_rate(const struct site *s)
{
	return site_rate_shared(s) ? s->delay_until_ms > destdb_now_ms(s->db) : site_rated(s);
}

bool site_idle(const struct site *s)
{
	return s->refs == 0 && s->queue.waiting == 0 && s->connections == 0 && s->busy == 0 &&
	       s->parked.number == 0 && !s->parked.asking && !remembers_rate(s) &&
	       !site_pace_narrow(s) && !source_keeps(s);
}

void site_free(struct site *s)
{
	assert(s->refs == 0 && s->parked.leaving == 0);
	assert(s->connections == 0 && list_empty(&s->open) && list_empty(&s->rest));
	assert(s->connecting == 0 && s->slow == 0 && s->ending == 0 && s->lingering == 0);
	timer_stop(&s->db->sched->loop->timers, &s->wake);
	remembered_keep(s);
	site_hour_free(s);
	site_domains_free(&s->domains);
	selection_fini_queue(&s->queue);
	provider_leave(s);
	source_leave(s);
	assert(list_empty(&s->in_provider) && list_empty(&s->in_source));
	list_remove(&s->in_probing);
	HASH_DEL(s->db->sites, s);
	drop_hosts(s);
	tls_subject_unref(s->subject);
	verdict_unref(s->own_pace.why);
	verdict_unref(s->last_failure);
	verdict_unref(s->last_verdict);
	free(s->key);
	free(s);
}
