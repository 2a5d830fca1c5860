/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/source.h"

#include "base/address.h"
#include "base/date.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/reason.h"
#include "qmgr/dest/provider.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	AT_ONCE = 8, /* that look in a millisecond, while the rate lets somebody begin */
	MISSING_FIRST_MS = 1000,
	MISSING_MOST_MS = 60000,
};

const char *source_name(const struct site *s)
{
	return s->source ? s->source->name : NULL;
}

/* --- the rate */

static void wake_at(struct source *o, int64_t at_ms)
{
	timer_start(&o->db->sched->loop->timers, &o->wake, at_ms);
}

static void on_wake(void *owner)
{
	struct source *o = owner;
	int n = 0;
	if (list_empty(&o->for_rate))
		return;
	if (source_paused(o)) {
		wake_at(o, source_due_ms(o));
		return;
	}
	list_each (link, tmp, &o->for_rate) {
		site_touch(list_entry(link, struct site, in_source));
		if (++n == AT_ONCE)
			break;
	}
	wake_at(o, destdb_now_ms(o->db) + 1);
	o->db->thread.settle(o->db->thread.context);
}

int64_t source_due_ms(const struct source *o)
{
	return o && o->settings ? pace_due_ms(&o->pace, &o->settings->rate) : 0;
}

bool source_paused(const struct source *o)
{
	return o && source_due_ms(o) > destdb_now_ms(o->db);
}

void source_count_delivery(struct source *o)
{
	if (o && o->settings)
		pace_count(&o->pace, &o->settings->rate, destdb_now_ms(o->db));
}

void source_wait_for_rate(struct site *s)
{
	struct source *o = s->source;
	if (list_empty(&s->in_source))
		list_append(&o->for_rate, &s->in_source);
	if (!timer_active(&o->wake) || source_due_ms(o) < o->wake.due_ms)
		wake_at(o, source_due_ms(o));
}

void source_wait_no_more(struct site *s)
{
	list_remove(&s->in_source);
}

/* --- what waits moves */

/* At this site, or at all of the source, or of the provider: what is the same for them has changed. */
static void have_moved(const struct destdb *db, const struct source *of, const struct provider *at)
{
	for (struct site *s = db->sites; s; s = s->hh.next) {
		if ((of && s->source != of) || (at && s->provider != at))
			continue;
		s->moving = true;
		site_touch(s);
	}
}

/* --- missing addresses */

static struct source_missing *missing_of(struct source *o, const struct host *h)
{
	return &o->missing[h->address.sa.sa_family == AF_INET6];
}

bool source_misses(const struct site *s, const struct host *h)
{
	if (!s || !s->source || address_is_unix(&h->address))
		return false;
	return !s->source->settings || missing_of(s->source, h)->until_ms > 0;
}

static const char *address_for(const struct source *o, const struct host *h,
			       char text[ADDRESS_WHERE_MAX])
{
	const union address *a =
		o->settings ? conf_source_address(o->settings, h->address.sa.sa_family) : NULL;
	return a ? address_where(a, text) : "its address";
}

struct verdict *source_missing_verdict(const struct site *s, const struct host *h)
{
	char text[ADDRESS_WHERE_MAX];
	const struct source *o = s->source;
	if (!o->settings)
		return verdict_printf(VERDICT_DEFERRED, 0, "4.3.0", NULL,
				      "there is no source %s any more", o->name);
	return verdict_printf(VERDICT_DEFERRED, 0, "4.3.0", NULL,
			      "this machine lacks %s, the address of source %s",
			      address_for(o, h, text), o->name);
}

static void wake_again(struct source *o)
{
	int64_t first_ms = 0;
	for (int i = 0; i < 2; i++)
		if (o->missing[i].until_ms > 0 &&
		    (first_ms == 0 || o->missing[i].until_ms < first_ms))
			first_ms = o->missing[i].until_ms;
	if (first_ms > 0)
		timer_start(&o->db->sched->loop->timers, &o->again, first_ms);
}

/* The source is tried again, if something is to go from it. */
static void on_again(void *owner)
{
	struct source *o = owner;
	for (int i = 0; i < 2; i++)
		if (o->missing[i].until_ms <= destdb_now_ms(o->db))
			o->missing[i].until_ms = 0;
	for (struct site *s = o->db->sites; s; s = s->hh.next)
		if (s->source == o)
			site_touch(s);
	wake_again(o);
	o->db->thread.settle(o->db->thread.context);
}

void source_is_missing(struct site *s, const struct host *h, const struct verdict *why)
{
	char text[ADDRESS_WHERE_MAX];
	struct source *o = s->source;
	struct source_missing *m = missing_of(o, h);
	if (m->until_ms > 0)
		return; /* of connections that were begun together the first has said so */
	if (!m->known)
		log_event(LOG_LEVEL_ERROR, "source", "source", o->name, "state", "missing",
			  "address", address_for(o, h, text), "reason", why->text, NULL);
	m->known = true;
	m->wait_ms = m->wait_ms == 0			? MISSING_FIRST_MS
		     : 2 * m->wait_ms < MISSING_MOST_MS ? 2 * m->wait_ms
							: MISSING_MOST_MS;
	m->until_ms = destdb_now_ms(o->db) + m->wait_ms;
	wake_again(o);
	have_moved(o->db, o, NULL);
}

void source_is_there(struct site *s, const struct host *h)
{
	char text[ADDRESS_WHERE_MAX];
	if (!s->source)
		return;
	struct source_missing *m = missing_of(s->source, h);
	if (m->known)
		log_event(LOG_LEVEL_INFO, "source", "source", s->source->name, "state", "back",
			  "address", address_for(s->source, h, text), NULL);
	*m = (struct source_missing){0};
}

/* --- refusals */

static bool names_it(const struct source *o, const char *text)
{
	char mine[ADDRESS_WHERE_MAX];
	for (int i = 0; o->settings && i < o->settings->nbind; i++)
		if (strstr(text, address_where(&o->settings->bind[i], mine)))
			return true;
	return false;
}

/* A list of theirs that we are on; or a rule of theirs, if it is said of the address. What they let through is another matter
 * (site_pace.h): who goes round that by another address gets that refused, too. */
bool source_meant(const struct site *s, const struct verdict *v)
{
	if (!s->source || (v->class != VERDICT_DEFERRED && v->class != VERDICT_FAILED) ||
	    v->code == 0 || reason_whose(v) == REASON_OF_MESSAGE)
		return false;
	bool at_the_door = v->stage == VERDICT_AT_GREETING && v->code / 100 == 5;
	switch (reason_of(v)) {
	case REASON_REPUTATION:
		return true;
	case REASON_POLICY:
	case REASON_SYSTEM:
	case REASON_OTHER:
		return at_the_door || names_it(s->source, v->text);
	case REASON_PROTOCOL:
		return at_the_door;
	default:
		return false;
	}
}

static struct source_bar *bar_of(struct site *s)
{
	return s->provider ? &s->provider->bar : &s->bar;
}

int64_t source_shut_until_ms(const struct site *s)
{
	const struct source_bar *b = s->provider ? &s->provider->bar : &s->bar;
	return b->until_ms > destdb_now_ms(s->db) ? b->until_ms : 0;
}

static bool all_missing(const struct site *s)
{
	for (int i = 0; i < s->nhost; i++)
		if (!source_misses(s, s->hosts[i].host))
			return false;
	return s->nhost > 0;
}

bool source_shut(const struct site *s)
{
	return s->source && (source_shut_until_ms(s) > 0 || all_missing(s));
}

bool source_bar_kept(const struct source_bar *b, int64_t now_ms)
{
	return b->wait_ms > 0 && now_ms < b->until_ms + b->wait_ms;
}

int64_t source_left_ms(const struct site *s)
{
	const struct source_bar *b = s->provider ? &s->provider->bar : &s->bar;
	return b->wait_ms > 0 ? b->until_ms - b->wait_ms : 0;
}

bool source_keeps(const struct site *s)
{
	return source_bar_kept(&s->bar, destdb_now_ms(s->db));
}

bool source_on_trial(const struct site *s)
{
	return s->source && (s->provider ? &s->provider->bar : &s->bar)->wait_ms > 0;
}

void source_forget(struct site *s)
{
	*bar_of(s) = (struct source_bar){0};
}

void source_refused(struct site *s, const struct verdict *why)
{
	const struct conf_queue *times = &s->db->sched->conf->queue;
	assert(s->source);
	struct source_bar *b = bar_of(s);
	s->moving = true;
	site_touch(s);
	if (source_shut_until_ms(s) > 0)
		return;
	int64_t wait_ms = b->wait_ms > 0 ? 2 * b->wait_ms : times->minimal_backoff_time;
	b->wait_ms = wait_ms < times->maximal_backoff_time ? wait_ms : times->maximal_backoff_time;
	b->until_ms = destdb_now_ms(s->db) + b->wait_ms;
	s->db->learnt = true;
	metric_cell_add(s->source->refusals, 1);
	log_event(LOG_LEVEL_WARNING, "source", "source", s->source->name, "state", "refused",
		  "provider", s->provider ? s->provider->name : NULL, "site", s->name, "until",
		  log_time(date_ms() + b->wait_ms), "reply", log_reply(why->code, why->text), NULL);
	if (s->provider)
		have_moved(s->db, s->source, s->provider);
}

void source_taken(struct site *s, const struct delivery *d)
{
	struct source_bar *b = bar_of(s);
	if (!s->source || b->wait_ms == 0)
		return;
	/* A delivery that was under way at the time says nothing; one that has gone since, for want of another source, does. */
	if (source_shut_until_ms(s) > 0 && d->began_us / 1000 <= b->until_ms - b->wait_ms)
		return;
	*b = (struct source_bar){0};
	s->db->learnt = true;
	log_event(LOG_LEVEL_INFO, "source", "source", s->source->name, "state", "back", "provider",
		  s->provider ? s->provider->name : NULL, "site", s->name, NULL);
}

/* --- the table */

static struct source *get_source(struct destdb *db, const char *name)
{
	struct source *o;
	HASH_FIND_STR(db->sources, name, o);
	if (o)
		return o;
	o = mem_zalloc(sizeof *o);
	o->name = mem_strdup(name);
	o->db = db;
	o->settings = conf_source_find(db->sched->conf, name);
	list_init(&o->for_rate);
	timer_init(&o->wake, on_wake, o);
	timer_init(&o->again, on_again, o);
	for (int class = 0; class < VERDICT_CLASSES; class ++)
		o->outcome[class] =
			metric_cell(FAMILY_source_deliveries,
				    verdict_class_name((enum verdict_class) class), name);
	o->refusals = metric_cell(FAMILY_source_refusals, name, NULL);
	HASH_ADD_KEYPTR(hh, db->sources, o->name, strlen(o->name), o);
	return o;
}

void source_join(struct site *s, const char *name)
{
	assert(!s->source || (name && strcmp(s->source->name, name) == 0));
	if (s->source || !name)
		return;
	s->source = get_source(s->db, name);
	s->source->sites++;
}

void source_leave(struct site *s)
{
	source_wait_no_more(s);
	assert(!s->source || s->source->sites > 0);
	if (s->source)
		s->source->sites--;
	s->source = NULL;
}

void source_configure(struct destdb *db)
{
	const struct conf *c = db->sched->conf;
	for (struct source *o = db->sources; o; o = o->hh.next) {
		o->settings = conf_source_find(c, o->name);
		o->missing[0] = o->missing[1] = (struct source_missing){0};
		if (o->settings)
			pace_cap(&o->pace, &o->settings->rate, destdb_now_ms(db));
	}
}

static void source_free(struct destdb *db, struct source *o)
{
	assert(o->sites == 0 && list_empty(&o->for_rate));
	timer_stop(&db->sched->loop->timers, &o->wake);
	timer_stop(&db->sched->loop->timers, &o->again);
	HASH_DEL(db->sources, o);
	free(o->name);
	free(o);
}

void source_collect(struct destdb *db)
{
	hash_each (struct source, o, db->sources)
		if (o->sites == 0 && !source_paused(o) && !o->missing[0].known &&
		    !o->missing[1].known)
			source_free(db, o);
}

void source_free_all(struct destdb *db)
{
	hash_each (struct source, o, db->sources)
		source_free(db, o);
}

void source_count_verdicts(struct source *o, const struct delivery *d)
{
	for (uint32_t i = 0; o && i < d->nrcpt; i++)
		if (d->rcpt[i].verdict)
			metric_cell_add(o->outcome[d->rcpt[i].verdict->class], 1);
}
