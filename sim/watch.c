/* SPDX-License-Identifier: ISC */
#include "sim/watch.h"

#include "base/mailaddr.h"
#include "qmgr/dest/conn.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/admission.h"
#include "qmgr/dest/site.h"
#include "qmgr/dest/site_pace.h"
#include "qmgr/dest/source.h"
#include "qmgr/message.h"
#include "qmgr/nexthop.h"
#include "qmgr/sched/pool.h"
#include "qmgr/sched/selection.h"
#include "sim/model_host.h"
#include "sim/watch_nodes.h"

enum {
	REST_MS = 3 * 3600 * 1000, /* longer than any record is kept for */
	AT_ONCE = 200,		   /* so many things are looked at in one step, */
	AT_ONCE_OF_MANY = 5,	   /* and where there are many nodes */
};

static void look_at_windows(struct stage *st)
{
	for (int i = 0; i < st->nfed; i++) {
		struct site *s;
		HASH_FIND_STR(st->q->db.sites, st->fed[i], s);
		if (s)
			tally_window(st->tally, st->fed[i], s->window.concurrency);
	}
	st->nfed = 0;
}

static void at_most(struct stage *st, const char *what, const char *whose, int64_t n, int64_t limit)
{
	if (n < 0 || (limit > 0 && n > limit))
		tally_fault(st->tally, "at %lld ms %s%s%s are %lld, with a limit of %lld",
			    (long long)(st->world->now_us / 1000), what, *whose ? " of " : "",
			    whose, (long long)n, (long long)limit);
}

/* A host brings the sites that wait for it back to mind when one of its connections ends or is idle:
 * one that has none never does. */
static bool site_waits_for_host(const struct site *s)
{
	for (int i = 0; i < s->nhost; i++)
		if (!list_empty(&s->hosts[i].in_full) && s->hosts[i].host->connections > 0)
			return true;
	return false;
}

/* The cluster will say what it may have of what all nodes share. */
static bool site_waits_for_share(const struct stage *st, const struct site *s)
{
	bool waits = s->pace.wanted;
	for (int i = 0; i < s->nhost && st->cluster; i++)
		waits |= s->hosts[i].host->leased.want > s->hosts[i].host->connections;
	return st->cluster && waits;
}

static bool is_any_called(const struct provider *p)
{
	for (const struct site *s = p->db->sites; s; s = s->hh.next)
		if (s->provider == p && s->called)
			return true;
	return false;
}

/* The site stands in the line of its provider, which will come to it: with time, or when a connection of it ends or what it carries does;
 * or it was called for one whose turn is not yet. */
static bool site_waits_for_provider(const struct site *s)
{
	return !list_empty(&s->in_provider) &&
	       (timer_active(&s->provider->wake) || s->provider->connections > 0 ||
		is_any_called(s->provider));
}

/* Likewise for what its source may send. */
static bool site_waits_for_source(const struct site *s)
{
	return !list_empty(&s->in_source) && timer_active(&s->source->wake);
}

/* All that waits is of flows whose next delivery is not due, and which come back by themselves. */
static bool site_waits_for_flows(const struct site *s)
{
	for (const struct list *l = s->queue.peers.next; l != &s->queue.peers; l = l->next) {
		const struct flow *f = list_entry(l, struct peer, in_queue)->job->work->flow;
		if (!f->barred || !timer_active(&f->due))
			return false;
	}
	return true;
}

/* The site has entries, and nothing under way that would bring it back to mind. */
static bool is_forgotten(const struct stage *st, const struct site *s)
{
	bool used = st->early ? s->busy > 0 : s->connections > 0;
	bool waits = timer_active(&s->wake) || site_waits_for_host(s) ||
		     site_waits_for_provider(s) || site_waits_for_source(s) ||
		     !list_empty(&s->queue.in_parked) || site_waits_for_share(st, s) ||
		     site_waits_for_flows(s) ||
		     (queue_wants_slot(&s->queue) && transport_full(s->queue.transport));
	return s->queue.waiting > 0 && !used && !waits;
}

static void look_at_waiting(struct stage *st, const struct site *s)
{
	struct peer *first = selection_first(&s->queue);
	struct tally_site *t = tally_site(st->tally, s->key);
	struct conn *c = first ? site_place(s, first) : NULL;
	/* Whether a place behind others, or a reserve, is worth taking changes with time: it comes to that itself. So does its turn in a
	 * line for a rate. */
	bool comes = site_waits_for_provider(s) || site_waits_for_source(s);
	if (c && c->busy == 0 && !c->reserve && !comes)
		tally_fault(st->tally, "at %lld ms an entry waits beside a free place at %s",
			    (long long)(st->world->now_us / 1000), s->key);
	if (is_forgotten(st, s) && !t->forgotten)
		tally_fault(st->tally, "at %lld ms %lld entries at %s wait for nothing",
			    (long long)(st->world->now_us / 1000), (long long)s->queue.waiting,
			    s->key);
	t->forgotten = is_forgotten(st, s);
}

static void look_at_site(struct stage *st, const struct site *s)
{
	const struct conf_transport *t = s->queue.transport->settings;
	int64_t limit = t->destination_concurrency_limit;
	at_most(st, "the window", s->key, s->window.concurrency, limit);
	/* An attempt that no mail waits for comes on top; when it succeeds, something ends. */
	at_most(st, "connections", s->key, s->connections - s->slow - s->ending, limit);
	at_most(st, "busy connections", s->key, s->busy, limit);
	at_most(st, "waiting entries", s->key, s->queue.waiting, 0);
	if (s->queue.ngranted > s->connecting)
		tally_fault(st->tally,
			    "at %lld ms entries are granted that no connection is for at %s",
			    (long long)(st->world->now_us / 1000), s->key);
	look_at_waiting(st, s);
}

/* A host that several transports use has the limit of the one that allows most. */
static int64_t host_limit(const struct qmgr *q)
{
	int64_t limit = 1;
	for (const struct transport *t = q->sched.transports; t; t = t->hh.next) {
		if (t->settings->host_connection_limit == 0)
			return 0;
		if (t->settings->host_connection_limit > limit)
			limit = t->settings->host_connection_limit;
	}
	return limit;
}

static void look_at_all(struct stage *st)
{
	struct qmgr *q = st->q;
	int64_t n = HASH_COUNT(q->messages) + HASH_COUNT(q->db.sites) + HASH_COUNT(q->db.hosts);
	if (++st->unwatched * (st->cluster ? AT_ONCE_OF_MANY : AT_ONCE) < n)
		return;
	st->unwatched = 0;
	pool_check(&q->sched);
	destdb_check(&q->db);
	for (struct site *s = q->db.sites; s; s = s->hh.next)
		look_at_site(st, s);
	for (struct host *h = q->db.hosts; h; h = h->hh.next)
		at_most(st, "connections", h->key, h->connections, host_limit(q));
}

static void note_most(int64_t *most, int64_t n)
{
	if (n > *most)
		*most = n;
}

void watch_now(struct stage *st)
{
	struct qmgr *q = st->q;
	int64_t messages = HASH_COUNT(q->messages);
	look_at_windows(st);
	if (st->cluster)
		watch_knowing(st);
	note_most(&st->tally->active_most, messages);
	note_most(&st->tally->rcpt_most, q->sched.rcpt_count);
	at_most(st, "messages", "", messages, q->sched.conf->queue.message_active_limit);
	for (struct transport *t = q->sched.transports; t; t = t->hh.next)
		at_most(st, "connections", t->title, t->connections, t->settings->connection_limit);
	look_at_all(st);
}

static enum constraint bound_of(const struct site *s)
{
	struct peer *first = selection_first(&s->queue);
	if (s->queue.waiting == 0)
		return CONSTRAINT_IDLE;
	if (!first)
		return CONSTRAINT_CONNECTING;
	return admission_of(s, first).constraint;
}

static double a_second(const struct conf_rate *r)
{
	return r->events ? 1000.0 * (double)r->events / (double)r->per_ms : 0;
}

/* Of all nodes together. */
static void sample_site(struct stage *st, const struct site *s, int64_t at_ms)
{
	struct sample sample = {.at_ms = at_ms,
				.window = s->window.concurrency,
				.busy = s->busy,
				.connections = st->early ? s->busy : s->connections,
				.waiting = s->queue.waiting,
				.bound = bound_of(s),
				.shut = source_shut(s),
				.pace = site_pace_rate(s)};
	tally_add(st->tally, s->key, &sample);
	if (st->cluster && sample.bound == CONSTRAINT_HOST_CONNECTION_LIMIT)
		for (int i = 0; i < s->nhost; i++) {
			struct model_host *h = model_host_at(st->world, &s->hosts[i].host->address);
			if (h)
				h->wanted_ms = at_ms;
		}
}

static void sample_providers(struct stage *st, int64_t at_ms)
{
	int64_t now_ms = scheduler_now_ms(&st->q->sched);
	for (const struct provider *p = st->q->db.providers; p; p = p->hh.next) {
		struct sample sample = {.at_ms = at_ms,
					.pace = learnt_pace_rate(&p->pacing.learnt),
					.shut = p->bar.until_ms > now_ms};
		tally_provider(st->tally, p->key, &sample);
	}
}

void watch_sample(struct world *w, int64_t at_ms)
{
	for (int i = 0; i < w->nstage; i++)
		sample_providers(&w->stage[i], at_ms);
	for (int i = 0; i < w->nstage; i++)
		for (struct site *s = w->stage[i].q->db.sites; s; s = s->hh.next)
			sample_site(&w->stage[i], s, at_ms);
	tally_added(w->tally, at_ms);
	if (w->redis)
		watch_nodes(w, at_ms);
}

/* The clock of the scheduler has milliseconds. */
static void too_soon(struct stage *st, const char *what, const char *site, int64_t us,
		     int64_t least_us)
{
	if (us + 1000 < least_us)
		tally_fault(st->tally,
			    "at %lld ms a delivery to %s begins %lld us after another %s, not %lld",
			    (long long)(st->world->now_us / 1000), site, (long long)us, what,
			    (long long)least_us);
}

void watch_begun(struct stage *st, const char *site, const struct conf_transport *t)
{
	struct tally_site *s = tally_site(st->tally, site);
	const struct conf_rate *rate = &t->destination_rate;
	int64_t interval_us = rate->events ? stage_us(rate->per_ms) / rate->events : 0;
	int64_t from_us = stage_us(st->scenario->simulation.settle) + TALLY_WINDOW_US - 1;
	bool counts = st->world->now_us >= from_us - from_us % TALLY_WINDOW_US;
	s->rate = counts ? a_second(rate) : 0;
	s->own = t != &st->scenario->conf->transport[0];
	if (st->cluster) {
		/* The rate is of all nodes together. */
		tally_begun(s, st->world->now_us);
		return;
	}
	if (s->begun > 0 && interval_us >= stage_us(PACE_GRAIN_MS))
		too_soon(st, "began", site, st->world->now_us - s->last_begun_us, interval_us);
	if (s->last_ended_us > 0)
		too_soon(st, "ended", site, st->world->now_us - s->last_ended_us,
			 stage_us(t->destination_rate_delay));
	tally_begun(s, st->world->now_us);
}

void watch_goes_to(struct stage *st, const char *site, const struct entry *e)
{
	struct tally_site *s = tally_site(st->tally, site);
	const struct envelope *envelope = e->peer->job->work->envelope;
	int64_t age_ms = model_spool_tried(st->spool, envelope->id);
	if (age_ms >= 0)
		numbers_add(s->own ? &st->tally->first_own : &st->tally->first, age_ms);
	for (uint32_t i = 0; i < e->n; i++)
		tally_domain(st->tally, mailaddr_domain(envelope->rcpt[e->recipient[i]].address),
			     s);
}

void watch_ended(struct stage *st, const char *site)
{
	tally_site(st->tally, site)->last_ended_us = st->world->now_us;
}

/* A site is remembered until it might begin another delivery. */
static int64_t longest_pause_ms(const struct qmgr *q)
{
	int64_t longest = 0;
	for (const struct transport *t = q->sched.transports; t; t = t->hh.next) {
		const struct conf_rate *rate = &t->settings->destination_rate;
		note_most(&longest, rate->events ? rate->per_ms / rate->events : 0);
		note_most(&longest, t->settings->destination_rate_delay);
	}
	return longest;
}

static void must_be_gone(struct stage *st, const char *what, unsigned n)
{
	if (n > 0)
		tally_fault(st->tally, "%u %s are left when nothing is left to do", n, what);
}

int64_t watch_rest_ms(const struct stage *st)
{
	return REST_MS + longest_pause_ms(st->q);
}

void watch_end(struct stage *st)
{
	struct qmgr *q = st->q;
	must_be_gone(st, "messages", HASH_COUNT(q->messages));
	must_be_gone(st, "connections", HASH_COUNT(q->db.conns));
	must_be_gone(st, "next hops", HASH_COUNT(q->nexthops));
	must_be_gone(st, "sites", HASH_COUNT(q->db.sites));
	must_be_gone(st, "hosts", HASH_COUNT(q->db.hosts));
}
