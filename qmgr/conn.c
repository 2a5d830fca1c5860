/* SPDX-License-Identifier: ISC */
#include "qmgr/conn.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "qmgr/conn_places.h"
#include "qmgr/message.h"
#include "qmgr/pool.h"

#include <assert.h>
#include <stdlib.h>

/* An entry that came back untouched so often is deferred: its next hop takes connections, and
 * drops each before it has said a word about the message. */
enum { RETURNS_MAX = 10, CONNECTIONS_TOGETHER = 20 };

/* Connections of a site share a worker, which then wakes once for several of them; a site that has many
 * spreads over more. */
static int choose_worker(const struct qmgr *q, const struct site *s)
{
	return (int)((s->hh.hashv + (unsigned)s->connections / CONNECTIONS_TOGETHER) %
		     (unsigned)q->edges.workers);
}

/* While it is slow, no mail waits for it. */
static void count_slow(struct conn *c, bool slow)
{
	c->site->slow += slow - c->slow;
	c->host->unanswered += slow - c->slow;
	c->slow = slow;
}

/* One that has failed is tried again beside another: no mail waits for it. */
static bool is_probe(const struct site *s, const struct host *h, int64_t now_ms)
{
	return h->failures > 0 && h->unanswered == 0 && !host_serves(h, now_ms) &&
	       site_has_other(s, h);
}

void conn_open(struct qmgr *q, struct site *s, struct host *host)
{
	struct conn *c = mem_zalloc(sizeof *c);
	bool probe = is_probe(s, host, scheduler_now_ms(q));
	c->number = ++q->last_conn;
	c->worker = choose_worker(q, s);
	c->site = s;
	c->host = host;
	c->extra = s->slow > 0;
	c->most = s->transport->settings->connection_max_messages;
	list_init(&c->carried);
	list_init(&c->in_idle);
	list_init(&c->in_host_idle);
	list_init(&c->in_site);
	list_append(&host->conns, &c->in_host);
	host->refs++;
	host->connections++;
	host->opened_ms = scheduler_now_ms(q);
	s->connections++;
	s->connecting++;
	count_slow(c, probe);
	s->transport->connections++;
	list_append(&s->rest, &c->in_site);
	HASH_ADD(hh, q->conns, number, sizeof c->number, c);
	conn_count(c, 1);

	struct connection_open *open = connection_open_new(
		c->number, s->transport->conf, s->transport->settings, host->name, &host->address);
	open->owner = c;
	open->reply_to = q->loop;
	open->plain = host->plain_until_ms > scheduler_now_ms(q);
	open->mode = host_mode(host, scheduler_now_ms(q));
	open->messages_most = host_messages_most(host, scheduler_now_ms(q));
	q->edges.to_worker(q->edges.context, c->worker, &open->note);
}

static struct delivery *delivery_of(struct qmgr *q, const struct conn *c, struct entry *e)
{
	struct message *m = e->peer->job->message;
	struct envelope *env = m->envelope;
	struct delivery *d = delivery_new(e->n);
	d->connection = c->number;
	d->owner = e;
	d->reply_to = q->loop;
	d->id = m->id;
	d->sender = env->sender;
	d->envid = env->envid;
	d->ret = env->ret;
	d->body = env->body;
	d->smtputf8 = env->smtputf8;
	d->content = content_ref(m->content);
	d->ahead = conn_may_go_ahead(c, m->content);
	for (uint32_t i = 0; i < e->n; i++) {
		const struct recipient *r = &env->rcpt[e->recipient[i]];
		d->rcpt[i] = (struct delivery_recipient){
			.address = r->address, .orcpt = r->orcpt, .notify = r->notify};
	}
	return d;
}

void conn_give(struct qmgr *q, struct conn *c, struct entry *e)
{
	assert(conn_has_place(c));
	e->conn = c;
	c->alone = e->alone;
	list_append(&c->carried, &e->in_peer);
	metrics_add(METRIC_under_way, 1);
	conn_set_busy(c, c->busy + 1);
	conn_wear(c);
	c->bytes += (int64_t)e->peer->job->message->content->size;
	q->edges.to_worker(q->edges.context, c->worker, &delivery_of(q, c, e)->note);
}

void conn_end(struct qmgr *q, struct conn *c)
{
	struct connection_close *note = mem_zalloc(sizeof *note);
	note->note.type = CONNECTION_CLOSE;
	note->connection = c->number;
	c->ending = c->worn = true;
	c->site->transport->ending++;
	c->site->ending++;
	conn_relist(c);
	site_touch(c->site);
	q->edges.to_worker(q->edges.context, c->worker, &note->note);
}

/* May its entry go to another host? */
static bool may_pass(const struct conn *c, bool late)
{
	if (late)
		return c->host->ready == 0 && site_has_other(c->site, c->host);
	return !c->extra && site_has_quicker(c->site, c->host);
}

void conn_on_slow(struct connection_slow *note)
{
	struct conn *c = note->owner;
	if (!c->closed && !c->ready) {
		host_slow(c->host, scheduler_now_ms(c->site->qmgr));
		if (may_pass(c, note->late))
			count_slow(c, true);
		site_touch(c->site);
	}
	free(note);
}

void conn_on_ready(struct connection_ready *ready)
{
	struct conn *c = ready->owner;
	bool beside = c->slow;
	conn_count(c, -1);
	c->ready = true;
	conn_count(c, 1);
	c->host->ready++;
	c->dsn = ready->dsn;
	c->depth = ready->depth;
	count_slow(c, false);
	c->depth_most = ready->depth_most;
	if (ready->messages_most > 0)
		c->most = ready->messages_most;
	c->site->connecting--;
	struct qmgr *q = c->site->qmgr;
	q->learnt |= c->host->failures > 0 || ready->tls_broken;
	host_worked(c->host);
	if (ready->tls_broken)
		c->host->plain_until_ms = scheduler_now_ms(q) + HOST_PLAIN_MS;
	conn_relist(c);
	site_prefer(c, beside);
	site_touch(c->site);
	free(ready);
}

/* The end of a connection that nothing more comes back from. */
static void forget(struct qmgr *q, struct conn *c)
{
	host_unref(c->host);
	HASH_DEL(q->conns, c);
	free(c);
}

void conn_on_back(struct qmgr *q, struct delivery *d)
{
	struct entry *e = d->owner;
	struct conn *c = e->conn;
	struct message *m = e->peer->job->message;
	int busy = c->site->busy;
	c->alone = false; /* if it was, this was all */
	metrics_add(METRIC_under_way, -1);
	conn_set_busy(c, c->busy - 1);
	conn_learn_depth(c, d);
	conn_learn_limits(c, d);
	c->bytes -= (int64_t)m->content->size;
	e->peer->job->concurrency--;
	list_remove(&e->in_peer);
	if (d->returned) {
		/* One that has carried mail before may have been closed while it was idle: that says
		 * nothing of the message, and several may come to it at once. */
		if (c->done == 0 && ++e->returns > RETURNS_MAX)
			conn_give_up(e, c);
	} else {
		c->done++;
		site_worked(c->site, busy);
		site_delivery_ended(c->site);
		conn_take_verdicts(q, c, e, d);
	}
	if (e->n > 0 && !m->cancelled) {
		job_put_back(e);
	} else {
		pool_free(e->peer->job, e->n);
		job_entry_done(e);
	}
	site_touch(c->site);
	c->site->transport->unpark = true;
	delivery_free(&d);
	if (c->closed && c->busy == 0)
		forget(q, c);
	message_check(q, m);
}

void conn_on_closed(struct qmgr *q, struct connection_open *open)
{
	struct conn *c = open->owner;
	struct site *s = c->site;
	/* What was on its way to the worker meanwhile comes back after this. */
	conn_count(c, -1);
	c->closed = true;
	count_slow(c, false);
	list_remove(&c->in_site);
	conn_leave_idle(c);
	list_remove(&c->in_host);
	s->connections--;
	s->connecting -= !c->ready;
	s->transport->connections--;
	s->transport->ending -= c->ending;
	s->ending -= c->ending;
	s->transport->unpark = true;
	c->host->connections--;
	c->host->ready -= c->ready;
	if (open->was_ready && (open->why || open->confused))
		conn_set_depth(c->host, 1);
	if (!open->why && !open->confused && c->done > 0)
		host_ended_well(c->host, scheduler_now_ms(q));
	if (open->confused) {
		q->learnt = true;
		host_confused(c->host, open->mode, open->why, scheduler_now_ms(q));
	} else if (open->why) {
		/* One that has carried mail and is then cut off tells us little about the host. */
		bool useless = c->done == 0;
		q->learnt |= useless;
		c->host->refuses = useless && open->refused;
		if (useless)
			host_failed(c->host, open->why, scheduler_now_ms(q),
				    q->conf->queue.minimal_backoff_time);
		site_connection_failed(s, c->host, open->why, useless);
	}
	site_feed_waiting_for(c->host);
	site_touch(s);
	if (c->busy == 0)
		forget(q, c);
	connection_open_free(&open);
}

static void conn_free(struct qmgr *q, struct conn *c)
{
	list_each (link, tmp, &c->carried) {
		struct entry *e = list_entry(link, struct entry, in_peer);
		list_remove(link);
		pool_free(e->peer->job, e->n);
		job_entry_done(e);
	}
	list_remove(&c->in_site);
	conn_leave_idle(c);
	list_remove(&c->in_host);
	count_slow(c, false);
	c->site->connections -= !c->closed;
	c->host->connections -= !c->closed;
	forget(q, c);
}

void conns_free(struct qmgr *q)
{
	struct conn *c, *tmp;
	HASH_ITER(hh, q->conns, c, tmp)
	conn_free(q, c);
}
