/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/provider.h"

#include "base/mem.h"
#include "qmgr/dest/site.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 8 /* that look in a millisecond, while the rate lets somebody begin */ };

static void wake_site(struct site *s)
{
	s->called = true;
	site_touch(s);
}

static void wake_at(struct provider *p, int64_t at_ms)
{
	timer_start(&p->db->sched->loop->timers, &p->wake, at_ms);
}

static void on_wake(void *owner)
{
	struct provider *p = owner;
	int n = 0;
	if (list_empty(&p->for_rate))
		return;
	if (provider_paused(p)) {
		wake_at(p, provider_due_ms(p));
		return;
	}
	list_each (link, tmp, &p->for_rate) {
		if (n++ == AT_ONCE)
			break;
		wake_site(list_entry(link, struct site, in_provider));
	}
	wake_at(p, destdb_now_ms(p->db) + 1);
	p->db->thread.settle(p->db->thread.context);
}

static const struct conf_provider *settings_of(const struct conf *c, const char *name)
{
	for (int i = 0; i < c->nprovider; i++)
		if (strcmp(c->provider[i].title, name) == 0)
			return &c->provider[i];
	return NULL;
}

static struct provider *get_provider(struct destdb *db, const struct conf_provider *settings)
{
	struct provider *p;
	HASH_FIND_STR(db->providers, settings->title, p);
	if (p)
		return p;
	p = mem_zalloc(sizeof *p);
	p->name = mem_strdup(settings->title);
	p->db = db;
	p->settings = settings;
	list_init(&p->for_connection);
	list_init(&p->for_rate);
	timer_init(&p->wake, on_wake, p);
	HASH_ADD_KEYPTR(hh, db->providers, p->name, strlen(p->name), p);
	return p;
}

/* Hosts of lesser preference may be another's, to help out. */
static const struct conf_provider *provider_by_hosts(const struct site *s)
{
	const struct conf *c = s->db->sched->conf;
	const struct conf_provider *all = NULL;
	for (int i = 0; i < s->nhost && s->hosts[i].preference == s->hosts[0].preference; i++) {
		const struct conf_provider *p = conf_provider_find(c, s->hosts[i].name);
		if (!p || (all && p != all))
			return NULL;
		all = p;
	}
	return all;
}

static void move_site(struct site *s, struct provider *to)
{
	struct provider *from = s->provider;
	if (from == to)
		return;
	provider_wait_no_more(s);
	if (from) {
		assert(from->sites > 0 && from->connections >= s->connections);
		from->sites--;
		from->connections -= s->connections;
		provider_feed(from);
	}
	if (to) {
		to->sites++;
		to->connections += s->connections;
	}
	s->provider = to;
}

void provider_join(struct site *s)
{
	const struct conf_provider *settings = provider_by_hosts(s);
	move_site(s, settings ? get_provider(s->db, settings) : NULL);
}

void provider_leave(struct site *s)
{
	move_site(s, NULL);
}

void provider_configure(struct destdb *db)
{
	for (struct provider *p = db->providers; p; p = p->hh.next)
		p->settings = settings_of(db->sched->conf, p->name);
	for (struct site *s = db->sites; s; s = s->hh.next)
		provider_join(s);
}

static void provider_free(struct destdb *db, struct provider *p)
{
	assert(p->sites == 0 && p->connections == 0);
	assert(list_empty(&p->for_connection) && list_empty(&p->for_rate));
	timer_stop(&db->sched->loop->timers, &p->wake);
	HASH_DEL(db->providers, p);
	free(p->name);
	free(p);
}

void provider_collect(struct destdb *db)
{
	struct provider *p, *next;
	HASH_ITER(hh, db->providers, p, next)
	if (p->sites == 0 && !provider_paused(p))
		provider_free(db, p);
}

void provider_free_all(struct destdb *db)
{
	struct provider *p, *next;
	HASH_ITER(hh, db->providers, p, next)
	provider_free(db, p);
}

bool provider_full(const struct provider *p)
{
	int64_t limit = p && p->settings ? p->settings->connection_limit : 0;
	return limit > 0 && p->connections >= limit;
}

int64_t provider_due_ms(const struct provider *p)
{
	return p && p->settings ? pace_due_ms(&p->pace, &p->settings->rate) : 0;
}

bool provider_paused(const struct provider *p)
{
	return p && provider_due_ms(p) > destdb_now_ms(p->db);
}

void provider_count_delivery(struct provider *p)
{
	if (p && p->settings)
		pace_count(&p->pace, &p->settings->rate, destdb_now_ms(p->db));
}

static void wait_in(struct site *s, struct list *line, bool for_rate)
{
	if (!list_empty(&s->in_provider) && s->for_rate == for_rate)
		return;
	list_remove(&s->in_provider);
	list_append(line, &s->in_provider);
	s->for_rate = for_rate;
}

void provider_wait_for_connection(struct site *s)
{
	wait_in(s, &s->provider->for_connection, false);
}

void provider_wait_for_rate(struct site *s)
{
	struct provider *p = s->provider;
	wait_in(s, &p->for_rate, true);
	if (!timer_active(&p->wake))
		wake_at(p, provider_due_ms(p));
}

void provider_wait_no_more(struct site *s)
{
	list_remove(&s->in_provider);
}

static void call_first(struct provider *p)
{
	struct list *first = list_first(&p->for_connection);
	if (first)
		wake_site(list_entry(first, struct site, in_provider));
}

void provider_feed(struct provider *p)
{
	if (p && !provider_full(p))
		call_first(p);
}

void provider_offer_idle(struct provider *p)
{
	if (p && provider_full(p))
		call_first(p);
}
