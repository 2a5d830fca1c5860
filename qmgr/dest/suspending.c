/* SPDX-License-Identifier: ISC */
/* The operator suspends and resumes: what has the name is marked, and its connections end. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "qmgr/dest/conn.h"
#include "qmgr/dest/suspend.h"
#include "spool/spool.h"

#include <assert.h>
#include <stdlib.h>

enum { LOOK_MS = 60000 };

static void end_connections(struct site *s, const struct host *h)
{
	hash_each (struct conn, c, s->db->conns)
		if (c->site == s && (!h || c->host == h) && (conn_ready(c) || conn_unready(c)))
			conn_end(s->db, c);
}

/* Its sites look again, and its connections end. */
static void mark_site_host(struct site *s, struct site_host *it, bool on)
{
	if (it->suspended == on)
		return;
	it->suspended = on;
	if (on)
		end_connections(s, it->host);
	site_touch(s);
}

static void mark_site(struct destdb *db, struct site *s, bool on)
{
	if (s->suspended != on) {
		s->suspended = on;
		if (on)
			end_connections(s, NULL);
		site_touch(s);
	}
	for (int i = 0; i < s->nhost; i++)
		mark_site_host(s, &s->hosts[i], suspend_covers_site_host(db, &s->hosts[i]));
}

static void mark_all(struct destdb *db)
{
	for (struct host *h = db->hosts; h; h = h->hh.next)
		h->suspended = suspend_covers_host(db, h);
	for (struct site *s = db->sites; s; s = s->hh.next)
		mark_site(db, s, suspend_covers_site(db, s));
}

/* Of what was named before there was mail for it nobody knows yet what it is: the word is that of sites. */
static void log_suspension(const struct suspended *n, const char *state, const char *reason)
{
	const char *kind = n->kind == SUSPEND_ANY ? "site" : suspend_kind_name(n->kind);
	char end[INTERNET_TIME_TEXT];
	const char *event = n->kind == SUSPEND_HOST || n->kind == SUSPEND_FLOW ? kind : "site";
	log_event(LOG_LEVEL_INFO, event, kind, n->name, "state", state, "until",
		  n->until_ms ? suspend_end_text(n->until_ms, end) : NULL, "reason", reason, NULL);
}

/* Its mail has waited in the queue, site or no site; or waits for the end of a round. */
static void release_domain(struct destdb *db, const char *domain)
{
	db->resumes++;
	struct spool_command *c = spool_command_new(SPOOL_FLUSH, db->sched->loop, db);
	c->domain = name_key(domain);
	db->edges.to_spool(db->edges.context, &c->note);
}

static void end_one(struct destdb *db, struct suspended *n, const char *reason)
{
	log_suspension(n, "resumed", reason);
	if (suspend_means_domains(n->kind))
		release_domain(db, n->name);
	char *flow = n->kind == SUSPEND_FLOW ? mem_strdup(n->name) : NULL;
	bool lost = n->recalled && n->kind != SUSPEND_DOMAIN;
	suspend_forget(db, n);
	db->learnt = true;
	if (flow || lost)
		db->thread.resumed(db->thread.context, flow);
	free(flow);
}

/* The wall clock may be set meanwhile: it is looked at every minute. */
static void wait_for_end(struct suspended *n)
{
	int64_t left_ms = n->until_ms - clock_wall_ms();
	struct timers *timers = &n->db->sched->loop->timers;
	if (n->until_ms == 0)
		timer_stop(timers, &n->end);
	else
		timer_start(timers, &n->end,
			    clock_steady_ms() + (left_ms < LOOK_MS ? left_ms : LOOK_MS));
}

static void on_end(void *owner)
{
	struct suspended *n = owner;
	struct destdb *db = n->db;
	if (clock_wall_ms() < n->until_ms) {
		wait_for_end(n);
		return;
	}
	end_one(db, n, "its time is over");
	mark_all(db);
	db->thread.settle(db->thread.context);
}

static struct suspended *add_suspended(struct destdb *db, const char *name, enum suspend_kind kind)
{
	assert(!suspend_find(db, name, kind));
	struct suspended *n = mem_zalloc(sizeof *n);
	n->name = mem_strdup(name);
	n->kind = kind;
	n->db = db;
	timer_init(&n->end, on_end, n);
	HASH_ADD_KEYPTR(hh, db->suspended, n->name, strlen(n->name), n);
	return n;
}

static bool named_apart(enum suspend_kind kind)
{
	return kind == SUSPEND_PROVIDER || kind == SUSPEND_FLOW;
}

/* The name meant something else when it was suspended before: what was said then of its end holds no more. */
static void forget_former(struct destdb *db, const char *name, enum suspend_kind kind)
{
	hash_each (struct suspended, n, db->suspended) {
		if (n->kind == kind || named_apart(n->kind) || !name_key_same(n->name, name))
			continue;
		if (suspend_means_domains(n->kind) && !suspend_means_domains(kind))
			release_domain(db, n->name);
		suspend_forget(db, n);
	}
}

bool suspend_begin(struct destdb *db, const char *name, enum suspend_kind kind, int64_t until_ms)
{
	struct suspended *n = suspend_find(db, name, kind);
	bool news = !n;
	if ((n && n->until_ms == until_ms) || (until_ms && until_ms <= clock_wall_ms()))
		return false;
	if (!named_apart(kind))
		forget_former(db, name, kind);
	if (news)
		n = add_suspended(db, name, kind);
	n->until_ms = until_ms;
	wait_for_end(n);
	log_suspension(n, "suspended", NULL);
	db->learnt = true;
	mark_all(db);
	return news;
}

bool suspend_recall(struct destdb *db, const char *name, enum suspend_kind kind, int64_t until_ms)
{
	if (until_ms == 0 || until_ms > clock_wall_ms()) {
		suspend_begin(db, name, kind, until_ms);
		struct suspended *in_force = suspend_find(db, name, kind);
		if (in_force)
			in_force->recalled = true;
		return true;
	}
	if (suspend_find(db, name, kind))
		return false; /* in another spelling it goes on */
	struct suspended *n = add_suspended(db, name, kind);
	n->until_ms = until_ms;
	n->recalled = true;
	end_one(db, n, "its time was over before this start");
	return false;
}

/* Is it this name, or does it mean a site or host that this name means? */
static bool suspension_means(const struct destdb *db, const struct suspended *n, const char *name)
{
	if (name_key_same(n->name, name))
		return true;
	for (const struct site *s = db->sites; s && suspend_means_sites(n); s = s->hh.next)
		if (suspend_site_is(s, name) && suspend_site_is(s, n->name))
			return true;
	for (const struct host *h = db->hosts; h && suspend_means_hosts(n); h = h->hh.next)
		if (suspend_host_is(h, name) && suspend_host_is(h, n->name))
			return true;
	return false;
}

bool suspend_end(struct destdb *db, const char *name)
{
	bool any = false;
	hash_each (struct suspended, n, db->suspended)
		if (!named_apart(n->kind) && suspension_means(db, n, name)) {
			end_one(db, n, NULL);
			any = true;
		}
	mark_all(db);
	return any;
}

bool suspend_end_one(struct destdb *db, const char *name, enum suspend_kind kind)
{
	struct suspended *n = suspend_find(db, name, kind);
	if (!n)
		return false;
	end_one(db, n, NULL);
	mark_all(db);
	return true;
}
