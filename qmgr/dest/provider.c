/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/provider.h"

#include "base/conf_rows.h"
#include "base/mem.h"
#include "qmgr/dest/remembered.h"
#include "qmgr/dest/site.h"
#include "qmgr/dest/source.h"
#include "qmgr/dest/suspend.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	AT_ONCE = 8,	   /* that look in a millisecond, while rate and pace let somebody begin */
	OPENED_AT_ONCE = 4 /* connections, after a refusal: one may be to a host that is dead */
};

static void wake_site(struct site *s)
{
	s->called = true;
	site_touch(s);
}

static void wake_at(struct provider *p, int64_t at_ms)
{
	timer_start(&p->db->sched->loop->timers, &p->wake, at_ms);
}

/* The first few, but those that its pace still holds back. */
static int wake_line(struct provider *p)
{
	bool closed = !site_pace_lets_begin(&p->pacing, destdb_now_ms(p->db));
	int n = 0;
	list_each_entry (struct site, s, in_provider, &p->for_rate) {
		if (closed && site_pace_shared(s))
			continue;
		wake_site(s);
		if (++n == AT_ONCE)
			break;
	}
	return n;
}

/* Where it is not a matter of time, provider_feed_rate() comes. */
static void on_wake(void *owner)
{
	struct provider *p = owner;
	int64_t now_ms = destdb_now_ms(p->db), pace_ms = learnt_pace_due_ms(&p->pacing.learnt);
	if (list_empty(&p->for_rate))
		return;
	if (provider_paused(p)) {
		wake_at(p, provider_due_ms(p));
		return;
	}
	if (wake_line(p) > 0)
		wake_at(p, now_ms + 1);
	else if (pace_ms > now_ms)
		wake_at(p, pace_ms);
	p->db->thread.settle(p->db->thread.context);
}

static void make_cells(struct provider *p)
{
	for (int class = 0; class < VERDICT_CLASSES; class ++)
		p->outcome[class] =
			metric_cell(FAMILY_provider_deliveries,
				    verdict_class_name((enum verdict_class) class), p->key);
	p->refusals = metric_cell(FAMILY_provider_refusals, p->key, NULL);
	p->of_connections = metric_cell(FAMILY_provider_connections, p->key, NULL);
	p->of_pace = metric_cell(FAMILY_provider_pace, p->key, NULL);
	metric_cell_set(p->of_pace, METRIC_GONE);
}

/* One for each source that its mail goes from. */
static struct provider *get_provider(struct destdb *db, const struct conf_provider *settings,
				     const char *source)
{
	struct provider *p;
	char *key = mem_printf("%s%s%s", settings->title, source ? "@" : "", source ? source : "");
	HASH_FIND_STR(db->providers, key, p);
	if (p) {
		free(key);
		return p;
	}
	p = mem_zalloc(sizeof *p);
	p->key = key;
	p->name = mem_strndup(key, strlen(settings->title));
	p->db = db;
	p->settings = settings;
	list_init(&p->for_connection);
	list_init(&p->for_rate);
	timer_init(&p->wake, on_wake, p);
	make_cells(p);
	remembered_recall_provider(p);
	HASH_ADD_KEYPTR(hh, db->providers, p->key, strlen(p->key), p);
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

static void count_site(struct provider *p, const struct site *s, int n)
{
	p->sites += n;
	p->connections += n * s->connections;
	p->connecting += n * s->connecting;
	p->slow += n * s->slow;
	p->ending += n * s->ending;
	p->lingering += n * s->lingering;
	assert(p->sites >= 0 && p->connections >= 0 && p->connecting >= 0);
	assert(p->slow >= 0 && p->ending >= 0);
	assert(p->lingering >= 0);
}

/* The pace that it has found out goes with it, where nothing is known yet; else the others know better. */
static void hand_over(struct site_pace *from, struct site_pace *to)
{
	if (from->learnt.state != LEARNT_PACE_FREE && to->learnt.state == LEARNT_PACE_FREE) {
		to->learnt = from->learnt;
		to->since_ms = from->since_ms;
		to->logged = from->logged;
		verdict_unref(to->why);
		to->why = verdict_ref(from->why);
	}
	learnt_pace_forget(&from->learnt);
	from->since_ms = 0;
	verdict_unref(from->why);
	from->why = NULL;
}

static void set_pace(struct site *s, struct site_pace *to)
{
	struct site_pace *from = s->pacing;
	if (from == to)
		return;
	if (from == &s->own_pace)
		hand_over(from, to);
	assert(from->under_way >= s->under_way);
	from->under_way -= s->under_way;
	assert(from->owed >= s->owed);
	from->owed -= s->owed;
	if (from->under_way == from->owed)
		learnt_pace_home(&from->learnt);
	to->under_way += s->under_way;
	to->owed += s->owed;
	s->pacing = to;
}

static void move_site(struct site *s, struct provider *to)
{
	struct provider *from = s->provider;
	set_pace(s, to && site_pace_wanted(s) ? &to->pacing : &s->own_pace);
	if (from == to)
		return;
	provider_wait_no_more(s);
	if (from) {
		count_site(from, s, -1);
		provider_feed(from);
		provider_feed_rate(from);
	}
	if (to)
		count_site(to, s, 1);
	s->provider = to;
}

void provider_join(struct site *s)
{
	const struct conf_provider *settings = provider_by_hosts(s);
	move_site(s, settings ? get_provider(s->db, settings, source_name(s)) : NULL);
	s->suspended = suspend_covers_site(s->db, s);
	site_touch(s);
}

void provider_leave(struct site *s)
{
	move_site(s, NULL);
	assert(!site_pace_shared(s) && list_empty(&s->in_provider));
}

void provider_configure(struct destdb *db)
{
	for (struct provider *p = db->providers; p; p = p->hh.next) {
		p->settings = conf_find(db->sched->conf, CONF_KIND_PROVIDER, p->name);
		if (p->settings)
			pace_cap(&p->pace, &p->settings->rate, destdb_now_ms(db));
	}
	for (struct site *s = db->sites; s; s = s->hh.next)
		provider_join(s);
}

bool provider_known(const struct destdb *db, const char *name)
{
	for (const struct provider *p = db->providers; p; p = p->hh.next)
		if (strcmp(p->name, name) == 0)
			return true;
	return conf_find(db->sched->conf, CONF_KIND_PROVIDER, name);
}

static void clear_pacing(struct provider *p)
{
	learnt_pace_forget(&p->pacing.learnt);
	p->pacing.since_ms = 0;
	verdict_unref(p->pacing.why);
	p->pacing.why = NULL;
	p->bar = (struct source_bar){0};
}

void provider_forget_pace(struct destdb *db, const char *name)
{
	remembered_forget_provider(db, name);
	db->learnt = true;
	for (struct provider *p = db->providers; p; p = p->hh.next)
		if (strcmp(p->name, name) == 0)
			clear_pacing(p);
}

static bool is_narrow(const struct provider *p)
{
	return learnt_pace_narrow(&p->pacing.learnt, destdb_now_ms(p->db));
}

static void provider_free(struct destdb *db, struct provider *p)
{
	assert(p->sites == 0 && p->connections == 0 && p->pacing.under_way == 0);
	assert(p->connecting == 0 && p->ending == 0 && p->pacing.owed == 0);
	assert(p->slow == 0 && p->lingering == 0);
	remembered_keep_provider(p);
	metric_cell_set(p->of_connections, METRIC_GONE);
	metric_cell_set(p->of_pace, METRIC_GONE);
	assert(list_empty(&p->for_connection) && list_empty(&p->for_rate));
	timer_stop(&db->sched->loop->timers, &p->wake);
	HASH_DEL(db->providers, p);
	verdict_unref(p->pacing.why);
	free(p->name);
	free(p->key);
	free(p);
}

void provider_collect(struct destdb *db)
{
	hash_each (struct provider, p, db->providers)
		if (p->sites == 0 && !provider_paused(p) && !is_narrow(p) &&
		    !source_bar_kept(&p->bar, destdb_now_ms(db)))
			provider_free(db, p);
}

void provider_free_all(struct destdb *db)
{
	hash_each (struct provider, p, db->providers)
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
	list_move(line, &s->in_provider);
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
	int64_t pace_ms = site_pace_shared(s) ? site_pace_due_ms(s) : 0;
	int64_t due_ms = provider_due_ms(p) > pace_ms ? provider_due_ms(p) : pace_ms;
	if (!timer_active(&p->wake) || due_ms < p->wake.due_ms)
		wake_at(p, due_ms);
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

bool provider_opening_full(const struct provider *p)
{
	int most = p && p->pacing.learnt.state == LEARNT_PACE_ASKING ? 1 : OPENED_AT_ONCE;
	return p && is_narrow(p) && p->connecting - p->slow >= most;
}

void provider_feed_rate(struct provider *p)
{
	if (p && !list_empty(&p->for_rate) && !timer_active(&p->wake))
		wake_at(p, destdb_now_ms(p->db));
}

void provider_feed(struct provider *p)
{
	if (p && !provider_full(p) && !provider_opening_full(p))
		call_first(p);
}

void provider_opened(struct provider *p)
{
	if (p && is_narrow(p))
		provider_feed(p);
}

void provider_offer_idle(struct provider *p)
{
	if (p && provider_full(p))
		call_first(p);
}

bool provider_ending(const struct provider *p)
{
	assert(p->ending >= p->lingering);
	return p->ending > p->lingering;
}

void provider_offer_busy(struct provider *p)
{
	if (!p || !provider_full(p) || provider_ending(p))
		return;
	list_each_entry (struct site, s, in_provider, &p->for_connection) {
		if (s->connections > 0)
			continue;
		wake_site(s);
		return;
	}
}

void provider_wait_first(struct site *s)
{
	assert(!list_empty(&s->in_provider) && !s->for_rate);
	list_remove(&s->in_provider);
	list_prepend(&s->provider->for_connection, &s->in_provider);
}

void provider_count_verdicts(struct provider *p, const struct delivery *d)
{
	for (uint32_t i = 0; p && i < d->nrcpt; i++)
		if (d->rcpt[i].verdict)
			metric_cell_add(p->outcome[d->rcpt[i].verdict->class], 1);
}

void provider_count_refusal(struct provider *p)
{
	if (p)
		metric_cell_add(p->refusals, 1);
}

void provider_measure(const struct destdb *db)
{
	for (const struct provider *p = db->providers; p; p = p->hh.next) {
		double rate = learnt_pace_rate(&p->pacing.learnt);
		metric_cell_set(p->of_connections, p->connections);
		metric_cell_set(p->of_pace, rate > 0 ? (int64_t)(3600 * rate) : METRIC_GONE);
	}
}
