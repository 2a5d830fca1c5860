/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/conn.h"

#include "base/conf_value.h"
#include "base/magic.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/tls_dane.h"
#include "base/tls_policy.h"
#include "base/utf8.h"
#include "qmgr/dest/conn_places.h"
#include "qmgr/dest/source.h"
#include "qmgr/sched/pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECTIONS_TOGETHER = 20 };

/* Connections of a site share a worker, which then wakes once for several of them; a site that has many
 * spreads over more. */
static int choose_worker(const struct destdb *db, const struct site *s)
{
	assert(db->edges.workers > 0 && s->connections >= 0);
	return (int)((s->hh.hashv + (unsigned)s->connections / CONNECTIONS_TOGETHER) %
		     (unsigned)db->edges.workers);
}

static const struct conf_source *settings_of_source(const struct site *s)
{
	return s->source ? conf_source_find(s->queue.transport->conf, s->source->name) : NULL;
}

static const char *hello_of(const struct site *s)
{
	const struct transport *t = s->queue.transport;
	return conf_hello(t->conf, t->settings, settings_of_source(s));
}

static struct conn *conn_new(struct destdb *db, struct site *s, const struct site_host *to,
			     bool probe)
{
	struct conn *c = mem_zalloc(sizeof *c);
	c->magic = CONN_MAGIC;
	c->number = ++db->last_conn;
	c->worker = choose_worker(db, s);
	c->state = probe ? CONN_PROBING : CONN_CONNECTING;
	c->stall = CONNECTION_MOVES;
	c->site = s;
	c->host = to->host;
	c->name = mem_strdup(to->name);
	c->peer = mem_strdup(to->peer);
	c->hello = mem_strdup(hello_of(s));
	c->conf = conf_ref(s->queue.transport->conf);
	c->settings = s->queue.transport->settings;
	c->extra = s->slow > 0;
	c->most = s->queue.transport->settings->connection_max_messages;
	c->opened_ms = destdb_now_ms(db);
	c->era = to->host->era;
	list_init(&c->carried);
	list_init(&c->in_idle);
	list_init(&c->in_host_idle);
	list_init(&c->in_site);
	list_init(&c->in_silent);
	list_init(&c->in_turned);
	list_init(&c->in_stalled);
	list_init(&c->in_host);
	return c;
}

struct conn *conn_open(struct destdb *db, struct site *s, struct site_host *to, bool probe)
{
	struct host *host = to->host;
	assert(!db->bind_early && !host->suspended && !to->suspended);
	assert(probe || !site_host_out(to));
	struct conn *c = conn_new(db, s, to, probe);
	if (host->state == HOST_OUT)
		host_probe(host);
	assert(loop_is_ours(db->sched->loop));
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
	open->dane = tls_dane_ref(to->dane);
	open->source = settings_of_source(s);
	open->messages_most = host_messages_most(host, destdb_now_ms(db));
	db->edges.to_worker(db->edges.context, c->worker, &open->note);
	return c;
}

static bool is_international(const struct entry *e)
{
	const struct envelope *env = e->peer->job->work->envelope;
	bool is = env->smtputf8;
	for (uint32_t i = 0; i < e->n; i++)
		is |= !utf8_is_ascii(env->rcpt[e->recipient[i]].address);
	return is;
}

/* Another may do what this host can't. Of BINARYMIME nobody remembers who offers that. */
static bool may_wait_for_other(const struct conn *c, const struct entry *e)
{
	const struct work *w = e->peer->job->work;
	const struct site *s = site_of_queue(e->peer->queue);
	return site_prefers_other(s, c->host) ||
	       (s->nhost > 1 && w->envelope->body != BODY_BINARYMIME &&
		site_equal_may_take(s, c->host, is_international(e), w->content->size));
}

static struct delivery *delivery_of(struct destdb *db, const struct conn *c, struct entry *e)
{
	struct work *w = e->peer->job->work;
	struct envelope *env = w->envelope;
	struct delivery *d = e->n == 1 ? delivery_new_few(&db->deliveries) : delivery_new(e->n);
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
	d->by = env->by;
	d->priority = env->priority;
	d->by_ms = env->by_ms;
	d->verification = w->verification;
	d->content = content_ref(w->content);
	d->second = may_wait_for_other(c, e);
	d->ahead = conn_may_go_ahead(c, w->content);
	d->rcpt_most = conn_recipients_most(c, e);
	for (uint32_t i = 0; i < e->n; i++) {
		const struct recipient *r = &env->rcpt[e->recipient[i]];
		assert(e->recipient[i] < env->nrcpt && !r->done); /* else it came twice */
		d->rcpt[i] = (struct delivery_recipient){
			.address = r->address, .orcpt = r->orcpt, .notify = r->notify};
	}
	return d;
}

void conn_give(struct destdb *db, struct conn *c, struct entry *e)
{
	assert(!e->conn && e->n > 0);
	assert(loop_is_ours(db->sched->loop) && !e->peer->job->work->cancelled);
	struct site *s = site_of_queue(e->peer->queue);
	if (c->site != s)
		conn_lend(c, s);
	e->conn = c;
	db->given = true;
	e->era = s->pacing->learnt.era;
	e->reloads = db->reloads;
	conn_load(c, e);
	metrics_add(METRIC_under_way, 1);
	c->bytes += (int64_t)e->peer->job->work->content->size;
	db->edges.to_worker(db->edges.context, c->worker, &delivery_of(db, c, e)->note);
}

static void tell_to_close(struct destdb *db, const struct conn *c)
{
	assert(conn_told_to_close(c));
	struct connection_close *note = mailbox_note(sizeof *note, CONNECTION_CLOSE);
	note->connection = c->number;
	note->leave = c->state == CONN_LEAVING;
	site_touch(c->site);
	db->edges.to_worker(db->edges.context, c->worker, &note->note);
}

void conn_end(struct destdb *db, struct conn *c)
{
	conn_move(c, conn_unready(c) ? CONN_ABANDONED : CONN_ENDING);
	tell_to_close(db, c);
}

void conn_leave(struct destdb *db, struct conn *c)
{
	conn_move(c, CONN_LEAVING);
	tell_to_close(db, c);
}

void conn_forget(struct destdb *db, struct conn *c)
{
	assert(c->state == CONN_CLOSED && c->busy == 0 && list_empty(&c->carried));
	assert(list_empty(&c->in_site) && list_empty(&c->in_host));
	assert(list_empty(&c->in_idle) && list_empty(&c->in_host_idle));
	assert(list_empty(&c->in_silent) && list_empty(&c->in_turned) &&
	       list_empty(&c->in_stalled));
	magic_clear(c);
	host_unref(c->host);
	HASH_DEL(db->conns, c);
	free(c->name);
	free(c->hello);
	free(c->peer);
	conf_unref(c->conf);
	free(c);
}

void conns_end_proven(struct destdb *db)
{
	hash_each (struct conn, c, db->conns) {
		const char *tls = c->host->tls;
		bool open = conn_ready(c) || conn_unready(c);
		if (open && tls && tls_policy_level(tls) >= TRANSPORT_TLS_REQUIRED)
			conn_end(db, c);
	}
}

/* A worker has these from when the connection is opened until it is closed; all others are looked up for each message. */
#define KEPT(X)                                                                                    \
	X(protocol)                                                                                \
	X(pipeline_depth)                                                                          \
	X(convert_8bit)                                                                            \
	X(connection_idle_timeout)                                                                 \
	X(connection_max_age)                                                                      \
	X(connection_max_messages)                                                                 \
	X(connect_timeout)                                                                         \
	X(greeting_timeout)                                                                        \
	X(helo_timeout)                                                                            \
	X(starttls_timeout)                                                                        \
	X(mail_timeout)                                                                            \
	X(rcpt_timeout)                                                                            \
	X(data_init_timeout)                                                                       \
	X(data_block_timeout)                                                                      \
	X(data_done_timeout)                                                                       \
	X(rset_timeout)                                                                            \
	X(quit_timeout)

static bool keeps_to_settings(const struct conn *c)
{
	const struct transport *t = c->site->queue.transport;
	const struct conf_transport *had = c->settings, *has = t->settings;
#define SAME(setting) had->setting == has->setting &&
	return KEPT(SAME) conf_list_same(&c->conf->tls.groups, &t->conf->tls.groups);
#undef SAME
}

void conns_end_changed(struct destdb *db)
{
	hash_each (struct conn, c, db->conns) {
		bool open = conn_ready(c) || conn_unready(c);
		bool same = keeps_to_settings(c) && strcmp(c->hello, hello_of(c->site)) == 0;
		if (open && !same)
			conn_end(db, c);
	}
}

static void conn_free(struct destdb *db, struct conn *c)
{
	list_each_entry (struct entry, e, in_peer, &c->carried) {
		list_remove(&e->in_peer);
		pool_free(e->peer->job, e->n);
		job_entry_done(e);
	}
	c->busy = 0;
	if (c->state != CONN_CLOSED)
		conn_move(c, CONN_CLOSED);
	conn_forget(db, c);
}

void conns_free(struct destdb *db)
{
	hash_each (struct conn, c, db->conns)
		conn_free(db, c);
}
