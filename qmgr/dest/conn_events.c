/* SPDX-License-Identifier: ISC */
/* Notes from the connections, and what they say of their hosts. */
#include "base/magic.h"
#include "base/metrics.h"
#include "base/number.h"
#include "qmgr/dest/conn.h"
#include "qmgr/dest/conn_places.h"
#include "qmgr/dest/pooling.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/source.h"
#include "qmgr/sched/pool.h"

#include <assert.h>
#include <stdlib.h>

/* An entry that came back untouched so often is deferred: its next hop takes connections, and
 * drops each before it has said a word about the message. */
enum { RETURNS_MAX = 10 };

/* A host that refuses does so soon; what takes longer is a time-out. */
enum { IN_TIME_MS = 500 };

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
	list_each_entry (struct conn, c, in_site, conns) {
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

/* Those to hosts of lesser preference end, unless the site overflows; where there is a better one, this is
 * left for what overflows, and for mail that must go to its host. One that was tried beside others ends when
 * they are all that the site may have. */
static void prefer_better_hosts(struct conn *ready, bool tried_beside)
{
	struct site *s = ready->site;
	if (site_has_backups(s)) {
		ready->reserve = end_lesser(ready, &s->open);
		ready->reserve |= end_lesser(ready, &s->rest);
	}
	if (tried_beside && s->connections - s->slow - s->ending > site_limit(s))
		conn_end(s->db, ready);
}

/* May its entry go to another host? */
static bool may_pass(const struct conn *c, bool late)
{
	if (late)
		return c->host->ready == 0 && site_has_other(c->site, c->host);
	return !c->extra && site_has_quicker(c->site, c->host);
}

static bool all_are_silent(const struct site *s)
{
	for (int i = 0; i < s->nhost; i++)
		if (!host_silent(s->hosts[i].host, destdb_now_ms(s->db)))
			return false;
	return s->nhost > 0;
}

static bool has_answered(const struct conn *c, const struct conf_source *other, int64_t since_ms)
{
	const struct site *s = c->site;
	const struct host *same = destdb_same_host(s->db, s->queue.transport, c->host, other);
	return same && same != c->host && same->heard_ms > 0 && same->heard_ms >= since_ms;
}

/* The host has answered another source since then; or since ours was left last, as meanwhile all mail went from there. */
static bool is_unheard_alone(const struct conn *c, int64_t since_ms)
{
	const struct conf *conf = c->site->db->sched->conf;
	int64_t left_ms = source_left_ms(c->site);
	for (int i = 0; i < conf->nsource; i++)
		if (has_answered(c, &conf->source[i], left_ms > 0 ? left_ms : since_ms))
			return true;
	return false;
}

/* Another takes over, as where ours is refused. */
static void leave_unheard(const struct conn *c, int64_t since_ms, const struct verdict *why)
{
	if (c->site->source && all_are_silent(c->site) && is_unheard_alone(c, since_ms))
		source_refused(c->site, why);
}

/* The connection before this one that failed did so then, or this was opened. */
static int64_t in_vain_since_ms(const struct conn *c)
{
	const struct host *h = c->host;
	return h->failing_ms > 0 ? number_min(h->failed_ms, c->opened_ms) : c->opened_ms;
}

static int64_t age_ms(const struct conn *c)
{
	return destdb_now_ms(c->site->db) - c->opened_ms;
}

/* For as long as a host may be to take the connection, or to greet, this one was not ready, or it and all before it were of no use. */
static bool is_overdue(const struct conn *c)
{
	const struct conf_transport *t = c->settings;
	int64_t failing_ms = c->host->failing_ms, began_ms = c->opened_ms;
	if (failing_ms > 0)
		began_ms = number_min(failing_ms, began_ms);
	return destdb_now_ms(c->site->db) - began_ms >=
	       number_min(t->connect_timeout, t->greeting_timeout);
}

/* words: what comes of that. */
static struct verdict *not_ready(const struct conn *c, const char *words)
{
	return verdict_printf(VERDICT_DEFERRED, 0, "4.4.1", c->peer,
			      "%s was not ready after %.1f s%s", c->peer, (double)age_ms(c) / 1000,
			      words);
}

static void is_slow(struct conn *c, bool late)
{
	host_slow(c->host, destdb_now_ms(c->site->db));
	if (c->state == CONN_CONNECTING && may_pass(c, late))
		conn_move(c, CONN_PROBING);
	if (late && is_overdue(c)) {
		struct verdict *why = not_ready(c, "");
		leave_unheard(c, in_vain_since_ms(c), why);
		verdict_unref(why);
	}
}

/* Its place may be for a site that has none. */
static void is_stalled(struct conn *c, enum connection_slowness how)
{
	conn_set_stall(c, how);
	if (!list_empty(&c->in_stalled) && c->busy > 0)
		site_pace_unanswered(c);
	if (!list_empty(&c->in_stalled))
		provider_offer_busy(c->site->provider);
	site_touch(c->site);
}

void conn_on_slow(struct connection_slow *note)
{
	struct conn *c = note->owner;
	magic_check(c, CONN_MAGIC);
	if (note->how >= CONNECTION_STALLED) {
		is_stalled(c, note->how);
	} else if (conn_unready(c)) {
		if (note->how != CONNECTION_SILENT)
			is_slow(c, note->how == CONNECTION_LATE);
		else
			conn_is_silent(c);
		site_touch(c->site);
	}
	free(note);
}

/* RFC 2920, RFC 3030: with chunks a message waits for its last reply only, behind another for none. */
static void set_trips(struct conn *c, const struct connection_ready *ready)
{
	c->trips = !ready->pipelining ? 4 : 2;
	c->behind = !ready->pipelining ? 4 : ready->chunking ? 0 : 1;
}

/* NULL: it does not, or that is known. Takes the reference. */
static void learn_choked(struct conn *c, struct verdict **why)
{
	struct destdb *db = c->site->db;
	if (!*why)
		return;
	host_confused(c->host, CONNECTION_SMALL_HELLO, *why, c->name, destdb_now_ms(db));
	pooling_changed(db, c->host);
	db->learnt = true;
	verdict_unref(*why);
	*why = NULL;
}

void conn_on_ready(struct connection_ready *ready)
{
	struct conn *c = ready->owner;
	magic_check(c, CONN_MAGIC);
	struct destdb *db = c->site->db;
	struct host *h = c->host;
	int64_t now_ms = destdb_now_ms(db);
	assert(c->number == ready->connection && ready->depth > 0);
	assert(c->state != CONN_CLOSED);
	bool beside = c->state == CONN_PROBING;
	c->dsn = ready->dsn;
	c->deliverby = ready->deliverby;
	h->offers = (struct host_offers){true, ready->smtputf8, ready->size_max};
	c->plain |= ready->tls_broken;
	c->depth = ready->depth;
	c->depth_most = ready->depth_most;
	if (ready->messages_most > 0)
		c->most = ready->messages_most;
	set_trips(c, ready);
	speed_round_trip(&h->speed, ready->round_trip_us);
	speed_set_up(&h->speed, ready->setup_ms * INT64_C(1000));
	if (conn_unready(c))
		conn_move(c, CONN_READY);
	db->learnt |= h->state != HOST_UP || !h->proven || ready->tls_broken;
	learn_choked(c, &ready->choked);
	if (ready->tls_broken)
		host_set_plain(h, c->name, now_ms + HOST_PLAIN_MS);
	if (host_worked(h, now_ms))
		site_host_changed(h);
	pooling_changed(db, h);
	source_is_there(c->site, h);
	site_revive(c->site);
	if (conn_ready(c))
		prefer_better_hosts(c, beside);
	site_touch(c->site);
	free(ready);
}

/* The entry came back untouched too often: deferred. */
static void give_up(const struct conn *c, struct entry *e)
{
	struct site *s = c->site;
	struct verdict *why =
		s->last_failure
			? verdict_ref(s->last_failure)
			: verdict_new(
				  VERDICT_DEFERRED, 0, "4.4.2", c->peer,
				  "the host drops every connection before it takes this message");
	s->db->thread.defer(s, e, why, false);
	verdict_unref(why);
}

/* Until the host has answered QUIT there is no word of its end, and all that it was given would come back at once. */
static void mark_ending(struct conn *c)
{
	if (c->state == CONN_READY)
		conn_move(c, CONN_ENDING);
}

/* So much is known to be all that the host takes on one: that is no matter of its pace, and of no message. What it refused for that
 * before, it did not mean as it was understood. */
static bool told_enough(struct conn *c, const struct verdict *why)
{
	struct destdb *db = c->site->db;
	int64_t now_ms = destdb_now_ms(db);
	if (!why || why->code != 421)
		return false;
	if (host_told_after(c->host, c->answered, now_ms)) {
		db->learnt = true;
		site_pace_forget(c->site);
	}
	int most = host_messages_most(c->host, now_ms);
	return most > 0 && c->answered >= most;
}

/* The entry is offered in parts from now on. True: the host takes no more at once, so that this was no matter of its pace, nor of any
 * message. What it refused for that before, it did not mean as it was understood. */
static bool told_too_many(struct conn *c, struct entry *e, const struct delivery *d)
{
	struct destdb *db = c->site->db;
	int64_t now_ms = destdb_now_ms(db);
	assert(d->rcpt_taken > 0 && d->rcpt_taken < e->n);
	e->rcpt_most = d->rcpt_taken;
	if (host_ended_at(c->host, d->rcpt_taken, d->rcpt_told, now_ms)) {
		db->learnt = true;
		pooling_changed(db, c->host);
		site_pace_forget(c->site);
	}
	uint32_t most = host_recipients_most(c->host, now_ms);
	return most > 0 && d->rcpt_taken >= most;
}

static bool told_of_limit(struct conn *c, struct entry *e, const struct delivery *d,
			  const struct verdict *why)
{
	return d->rcpt_taken > 0 ? told_too_many(c, e, d) : told_enough(c, why);
}

/* One that has carried mail before may have been closed while it was idle, and one that has not may have
 * ended here for the same reason: that says nothing of the message, and several may come to it at once. Those
 * that were opened together end together. */
static void came_back_untouched(struct conn *c, struct entry *e, struct delivery *d)
{
	struct site *s = c->site;
	if (told_of_limit(c, e, d, d->refusal))
		return;
	if (d->refusal && source_meant(s, d->refusal)) {
		source_refused(s, d->refusal);
		if (s->db->thread.may_move(e))
			return;
	}
	if (d->refusal && site_pace_rules(s, c->host)) {
		if (!site_pace_told(c, e, d))
			s->db->thread.defer(s, e, d->refusal, false);
	} else if (d->closing) {
		mark_ending(c);
	} else if (c->done == 0 && !c->ended_well && ++e->returns > RETURNS_MAX) {
		give_up(c, e);
	}
}

/* Of a message that may go from another source: what says nothing about it is forgotten. */
static void judge_source(struct conn *c, struct entry *e, struct delivery *d)
{
	struct site *s = c->site;
	bool taken = false, refused = false;
	for (uint32_t i = 0; i < d->nrcpt; i++) {
		struct verdict *v = d->rcpt[i].verdict;
		taken |= v && v->class == VERDICT_SENT;
		if (v && source_meant(s, v)) {
			refused = true;
			source_refused(s, v);
		}
	}
	if (taken && !refused)
		source_taken(s, d);
	if (!refused || d->verification || !s->db->thread.may_move(e))
		return;
	for (uint32_t i = 0; i < d->nrcpt; i++) {
		struct verdict *v = d->rcpt[i].verdict;
		if (!v || !source_meant(s, v))
			continue;
		d->rcpt[i].verdict = NULL;
		verdict_unref(v);
	}
	s->moving = true;
}

/* To the content, or where others had their verdicts: who was refused so is tried again. */
static bool verdicts_tell_of_limit(struct conn *c, struct entry *e, struct delivery *d)
{
	if (d->verification || d->nrcpt == 0 || !told_of_limit(c, e, d, d->rcpt[0].verdict))
		return false;
	for (uint32_t i = 0; i < d->nrcpt; i++) {
		struct verdict *v = d->rcpt[i].verdict;
		if (!v || v->code != 421)
			continue;
		d->rcpt[i].verdict = NULL;
		verdict_unref(v);
	}
	return true;
}

/* 421 to the content is the host's word on the connection. */
static bool is_answered(const struct delivery *d)
{
	const struct verdict *v = d->nrcpt > 0 ? d->rcpt[0].verdict : NULL;
	return v && v->class != VERDICT_IN_DOUBT && v->code != 421;
}

static void note_heard(struct host *h, const struct delivery *d, int64_t now_ms)
{
	const struct verdict *v = d->nrcpt > 0 ? d->rcpt[0].verdict : NULL;
	if (v && v->code > 0)
		h->heard_ms = now_ms;
}

static void judge_host(struct conn *c, struct entry *e, struct delivery *d)
{
	if (!verdicts_tell_of_limit(c, e, d) && site_pace_answered(c, e, d))
		host_carried(c->host);
}

void conn_on_back(struct destdb *db, struct delivery *d)
{
	struct entry *e = d->owner;
	struct conn *c = e->conn;
	struct site *s = c->site;
	struct work *w = e->peer->job->work;
	int busy = s->busy;
	magic_check(c, CONN_MAGIC);
	assert(c->busy > 0 && e->n > 0);
	assert(c->number == d->connection && d->nrcpt == e->n);
	metrics_add(METRIC_under_way, -1);
	conn_unload(c, e);
	conn_learn(c, d);
	c->bytes -= (int64_t)w->content->size;
	job_left_place(e->peer->job);
	assert(c->bytes >= 0 && (d->returned || !d->closing));
	if (d->returned) {
		came_back_untouched(c, e, d);
	} else {
		c->done++;
		site_worked(s, busy);
		site_delivery_ended(s);
		c->answered += is_answered(d);
		note_heard(c->host, d, destdb_now_ms(db));
		if (s->source)
			judge_source(c, e, d);
		judge_host(c, e, d);
		source_count_verdicts(s->source, d);
		provider_count_verdicts(s->provider, d);
		db->thread.take(c, e, d);
	}
	assert(e->n <= d->nrcpt);
	if (e->n > 0 && !w->cancelled)
		db->thread.hold(e);
	if (e->n > 0 && !w->cancelled) {
		site_of_queue(e->peer->queue)->moving |= e->reloads != db->reloads;
		job_put_back(e);
	} else {
		pool_free(e->peer->job, e->n);
		job_entry_done(e);
	}
	site_touch(s);
	s->queue.transport->unpark = true;
	delivery_free_few(&d, &db->deliveries);
	if (c->state == CONN_CLOSED && c->busy == 0)
		conn_forget(db, c);
	db->thread.check(w);
}

/* The connection never became ready, or was lost before it carried anything. */
static void was_useless(struct destdb *db, struct conn *c, struct verdict *why)
{
	struct host *h = c->host;
	int64_t now_ms = destdb_now_ms(db);
	bool in_time = why->code > 0 || now_ms < c->opened_ms + IN_TIME_MS;
	db->learnt = true;
	pooling_changed(db, h);
	if (h->ready > 0 && (in_time || host_hung(h, c->opened_ms, now_ms)))
		host_turned_away(h, why, c->name, now_ms);
	else if (h->ready > 0)
		return; /* it may have been chance: its window pays */
	else if (host_failed(h, why, c->name, c->era, now_ms,
			     c->site->queue.transport->settings->host_backoff_max))
		site_host_changed(h);
}

void conn_abandon(struct destdb *db, struct conn *c)
{
	assert(conn_unready(c));
	struct verdict *why = not_ready(c, ", and another destination wants the connection");
	was_useless(db, c, why);
	site_adopt_failure(c->site, why);
	verdict_unref(why);
	conn_end(db, c);
}

static bool none_serves(const struct site *s)
{
	int end;
	return destdb_group(s->hosts, s->nhost, &end) < 0;
}

/* The connection served, and would take no mail: the site's pace sees to that. */
static bool was_told(const struct conn *c, const struct connection_open *open)
{
	return open->was_ready && open->why->code == 421 && site_pace_rules(c->site, c->host);
}

void conn_on_closed(struct destdb *db, struct connection_open *open)
{
	struct conn *c = open->owner;
	magic_check(c, CONN_MAGIC);
	struct site *s = c->site;
	struct host *h = c->host;
	int64_t since_ms = in_vain_since_ms(c);
	assert(c->number == open->connection);
	assert(!open->was_ready || !conn_unready(c) || c->state == CONN_PROBING);
	/* A delivery that was on its way to the worker meanwhile comes back after this. */
	conn_move(c, CONN_CLOSED);
	c->ended_well = !open->why && !open->confused;
	learn_choked(c, &open->choked);
	s->queue.transport->unpark = true;
	if (open->was_ready && (open->why || open->confused))
		conn_set_depth(h, 1);
	if (open->hung_up && open->why && c->answered > 0)
		host_ended_after(h, c->answered, destdb_now_ms(db));
	if (c->ended_well && c->done > 0)
		host_ended_well(h, destdb_now_ms(db));
	if (open->unbound && s->source) {
		source_is_missing(s, h, open->why);
	} else if (open->confused) {
		db->learnt = true;
		host_confused(h, open->mode, open->why, c->name, destdb_now_ms(db));
	} else if (open->why && was_told(c, open)) {
		site_connection_failed(s, h, open->why, false);
	} else if (open->why) {
		/* One that has carried mail and is then cut off tells us little about the host. */
		bool useless = c->done == 0;
		h->unfit = useless && open->unfit;
		h->refuses = useless && (open->refused || open->unfit);
		host_login_refused(h, useless && open->login_refused, open->why);
		h->told = useless && open->was_ready && open->why->code == 421;
		if (useless)
			was_useless(db, c, open->why);
		site_connection_failed(s, h, open->why, useless);
		if (useless && host_out(h) && source_meant(s, open->why) && none_serves(s))
			source_refused(s, open->why);
		else if (useless && open->why->code == 0 && is_overdue(c))
			leave_unheard(c, since_ms, open->why);
	}
	host_probe_missed(h, destdb_now_ms(db));
	leased_closed(db, h);
	pooling_changed(db, h);
	site_feed_waiting_for(h);
	site_touch(s);
	if (c->busy == 0)
		conn_forget(db, c);
	connection_open_free(&open);
}
