/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/conn.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/tls_dane.h"
#include "base/tls_policy.h"
#include "qmgr/dest/conn_places.h"
#include "qmgr/dest/pooling.h"
#include "qmgr/sched/pool.h"

#include <assert.h>
#include <stdlib.h>

/* An entry that came back untouched so often is deferred: its next hop takes connections, and
 * drops each before it has said a word about the message. */
enum { RETURNS_MAX = 10, CONNECTIONS_TOGETHER = 20 };

/* A host that refuses does so soon; what takes longer is a time-out. */
enum { IN_TIME_MS = 500 };

/* Connections of a site share a worker, which then wakes once for several of them; a site that has many
 * spreads over more. */
static int choose_worker(const struct destdb *db, const struct site *s)
{
	return (int)((s->hh.hashv + (unsigned)s->connections / CONNECTIONS_TOGETHER) %
		     (unsigned)db->edges.workers);
}

static struct conn *conn_new(struct destdb *db, struct site *s, const struct site_host *to,
			     bool probe)
{
	struct conn *c = mem_zalloc(sizeof *c);
	c->number = ++db->last_conn;
	c->worker = choose_worker(db, s);
	c->state = probe ? CONN_PROBING : CONN_CONNECTING;
	c->site = s;
	c->host = to->host;
	c->name = mem_strdup(to->name);
	c->peer = mem_strdup(to->peer);
	c->extra = s->slow > 0;
	c->most = s->queue.transport->settings->connection_max_messages;
	c->opened_ms = destdb_now_ms(db);
	c->era = to->host->era;
	list_init(&c->carried);
	list_init(&c->in_idle);
	list_init(&c->in_host_idle);
	list_init(&c->in_site);
	list_init(&c->in_silent);
	list_init(&c->in_host);
	return c;
}

struct conn *conn_open(struct destdb *db, struct site *s, struct site_host *to, bool probe)
{
	struct host *host = to->host;
	struct conn *c = conn_new(db, s, to, probe);
	if (host->state == HOST_OUT)
		host_probe(host);
	host->refs++;
	host->opened_ms = destdb_now_ms(db);
	HASH_ADD(hh, db->conns, number, sizeof c->number, c);
	conn_enter(c);

	struct connection_open *open =
		connection_open_new(c->number, s->queue.transport->conf,
				    s->queue.transport->settings, c->name, &host->address);
	open->owner = c;
	open->tls = mem_strdup(host->tls);
	open->site = mem_strdup(s->name);
	open->reply_to = db->sched->loop;
	open->plain = c->plain = host_plain(host, c->name, destdb_now_ms(db));
	open->mode = host_mode(host, destdb_now_ms(db));
	open->credential = credential_ref(host->credential);
	open->subject = tls_subject_ref(s->subject);
	open->dane = tls_dane_ref(host->dane);
	open->messages_most = host_messages_most(host, destdb_now_ms(db));
	db->edges.to_worker(db->edges.context, c->worker, &open->note);
	return c;
}

static struct delivery *delivery_of(struct destdb *db, const struct conn *c, struct entry *e)
{
	struct work *w = e->peer->job->work;
	struct envelope *env = w->envelope;
	struct delivery *d = delivery_new(e->n);
	d->connection = c->number;
	d->owner = e;
	d->reply_to = db->sched->loop;
	d->id = w->id;
	d->sender = env->sender;
	d->envid = env->envid;
	d->ret = env->ret;
	d->body = env->body;
	d->smtputf8 = env->smtputf8;
	d->requiretls = env->tls == ENVELOPE_TLS_REQUIRED;
	d->verification = w->verification;
	d->content = content_ref(w->content);
	d->ahead = conn_may_go_ahead(c, w->content);
	for (uint32_t i = 0; i < e->n; i++) {
		const struct recipient *r = &env->rcpt[e->recipient[i]];
		d->rcpt[i] = (struct delivery_recipient){
			.address = r->address, .orcpt = r->orcpt, .notify = r->notify};
	}
	return d;
}

void conn_give(struct destdb *db, struct conn *c, struct entry *e)
{
	struct site *s = site_of_queue(e->peer->queue);
	if (c->site != s)
		conn_lend(c, s);
	e->conn = c;
	conn_load(c, e);
	metrics_add(METRIC_under_way, 1);
	c->bytes += (int64_t)e->peer->job->work->content->size;
	db->edges.to_worker(db->edges.context, c->worker, &delivery_of(db, c, e)->note);
}

void conn_end(struct destdb *db, struct conn *c)
{
	struct connection_close *note = mem_zalloc(sizeof *note);
	note->note.type = CONNECTION_CLOSE;
	note->connection = c->number;
	conn_move(c, conn_unready(c) ? CONN_ABANDONED : CONN_ENDING);
	site_touch(c->site);
	db->edges.to_worker(db->edges.context, c->worker, &note->note);
}

/* May its entry go to another host? */
static bool may_pass(const struct conn *c, bool late)
{
	if (late)
		return c->host->ready == 0 && site_has_other(c->site, c->host);
	return !c->extra && site_has_quicker(c->site, c->host);
}

static void is_slow(struct conn *c, bool late)
{
	host_slow(c->host, destdb_now_ms(c->site->db));
	if (c->state == CONN_CONNECTING && may_pass(c, late))
		conn_move(c, CONN_PROBING);
}

void conn_on_slow(struct connection_slow *note)
{
	struct conn *c = note->owner;
	if (conn_unready(c)) {
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
	struct destdb *db = c->site->db;
	struct host *h = c->host;
	int64_t now_ms = destdb_now_ms(db);
	bool beside = c->state == CONN_PROBING;
	c->dsn = ready->dsn;
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
	site_revive(c->site);
	if (conn_ready(c))
		site_prefer(c, beside);
	site_touch(c->site);
	free(ready);
}

/* The end of a connection that nothing more comes back from. */
static void forget(struct destdb *db, struct conn *c)
{
	host_unref(c->host);
	HASH_DEL(db->conns, c);
	free(c->name);
	free(c->peer);
	free(c);
}

/* It came back untouched too often: deferred. */
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

void conn_on_back(struct destdb *db, struct delivery *d)
{
	struct entry *e = d->owner;
	struct conn *c = e->conn;
	struct site *s = c->site;
	struct work *w = e->peer->job->work;
	int busy = s->busy;
	metrics_add(METRIC_under_way, -1);
	conn_unload(c, e);
	conn_learn(c, d);
	c->bytes -= (int64_t)w->content->size;
	e->peer->job->concurrency--;
	assert(c->bytes >= 0 && e->peer->job->concurrency >= 0);
	if (d->returned) {
		/* One that has carried mail before may have been closed while it was idle: that says
		 * nothing of the message, and several may come to it at once. */
		if (c->done == 0 && ++e->returns > RETURNS_MAX)
			give_up(c, e);
	} else {
		c->done++;
		site_worked(s, busy);
		site_delivery_ended(s);
		db->thread.take(c, e, d);
	}
	if (e->n > 0 && !w->cancelled) {
		job_put_back(e);
	} else {
		pool_free(e->peer->job, e->n);
		job_entry_done(e);
	}
	site_touch(s);
	s->queue.transport->unpark = true;
	delivery_free(&d);
	if (c->state == CONN_CLOSED && c->busy == 0)
		forget(db, c);
	db->thread.check(w);
}

/* It never became ready, or was lost before it carried anything. */
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
	int64_t age_ms = destdb_now_ms(db) - c->opened_ms;
	struct verdict *why =
		verdict_printf(VERDICT_DEFERRED, 0, "4.4.1", c->peer,
			       "%s was not ready after %.1f s, and another destination wants "
			       "the connection",
			       c->peer, (double)age_ms / 1000);
	was_useless(db, c, why);
	site_adopt_failure(c->site, why);
	verdict_unref(why);
	conn_end(db, c);
}

void conn_on_closed(struct destdb *db, struct connection_open *open)
{
	struct conn *c = open->owner;
	struct site *s = c->site;
	struct host *h = c->host;
	/* What was on its way to the worker meanwhile comes back after this. */
	conn_move(c, CONN_CLOSED);
	learn_choked(c, &open->choked);
	s->queue.transport->unpark = true;
	if (open->was_ready && (open->why || open->confused))
		conn_set_depth(h, 1);
	if (!open->why && !open->confused && c->done > 0)
		host_ended_well(h, destdb_now_ms(db));
	if (open->confused) {
		db->learnt = true;
		host_confused(h, open->mode, open->why, c->name, destdb_now_ms(db));
	} else if (open->why) {
		/* One that has carried mail and is then cut off tells us little about the host. */
		bool useless = c->done == 0;
		h->unfit = useless && open->unfit;
		h->refuses = useless && (open->refused || open->unfit);
		host_login_refused(h, useless && open->login_refused, open->why);
		if (useless)
			was_useless(db, c, open->why);
		site_connection_failed(s, h, open->why, useless);
	}
	host_probe_missed(h, destdb_now_ms(db));
	leased_closed(db, h);
	pooling_changed(db, h);
	site_feed_waiting_for(h);
	site_touch(s);
	if (c->busy == 0)
		forget(db, c);
	connection_open_free(&open);
}

void conns_end_proven(struct destdb *db)
{
	struct conn *c, *tmp;
	HASH_ITER(hh, db->conns, c, tmp)
	{
		const char *tls = c->host->tls;
		bool open = conn_ready(c) || conn_unready(c);
		if (open && tls && tls_policy_level(tls) >= TRANSPORT_TLS_REQUIRED)
			conn_end(db, c);
	}
}

static void conn_free(struct destdb *db, struct conn *c)
{
	list_each (link, tmp, &c->carried) {
		struct entry *e = list_entry(link, struct entry, in_peer);
		list_remove(link);
		pool_free(e->peer->job, e->n);
		job_entry_done(e);
	}
	c->busy = 0;
	if (c->state != CONN_CLOSED)
		conn_move(c, CONN_CLOSED);
	forget(db, c);
}

void conns_free(struct destdb *db)
{
	struct conn *c, *tmp;
	HASH_ITER(hh, db->conns, c, tmp)
	conn_free(db, c);
}
