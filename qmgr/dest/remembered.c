/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/remembered.h"

#include "base/clock.h"
#include "base/mem.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/site_name.h"
#include "qmgr/dest/source.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void drop_remembered(struct destdb *db, struct remembered *r)
{
	HASH_DEL(db->remembered, r);
	verdict_unref(r->why);
	free(r->key);
	free(r);
}

struct remembered *remembered_add(struct destdb *db, const char *key, int concurrency,
				  int64_t at_ms)
{
	struct remembered *r;
	HASH_FIND_STR(db->remembered, key, r);
	if (!r) {
		if (HASH_COUNT(db->remembered) >= REMEMBERED_MAX)
			drop_remembered(db, db->remembered); /* the oldest */
		r = mem_zalloc(sizeof *r);
		r->key = mem_strdup(key);
		HASH_ADD_KEYPTR(hh, db->remembered, r->key, strlen(r->key), r);
	}
	assert(HASH_COUNT(db->remembered) <= REMEMBERED_MAX);
	r->mixed = false;
	r->concurrency = concurrency;
	r->at_ms = at_ms;
	return r;
}

static void keep_pace(struct remembered *r, const struct destdb *db, const struct site_pace *p)
{
	verdict_unref(r->why);
	r->pace = learnt_pace_rate(&p->learnt);
	r->since_ms = p->since_ms;
	r->refused_ms = destdb_wall_ms(db, p->learnt.refused_ms);
	r->why = verdict_ref(p->why);
}

static void keep_bar(struct remembered *r, const struct destdb *db, const struct source_bar *b)
{
	bool kept = source_bar_kept(b, destdb_now_ms(db));
	r->shut_ms = kept ? destdb_wall_ms(db, b->until_ms) : 0;
	r->shut_for_ms = kept ? b->wait_ms : 0;
}

/* Never longer than it would be now: the clock may have been put back. */
static struct source_bar bar_of(const struct remembered *r, const struct destdb *db)
{
	int64_t most_ms = db->sched->conf->queue.maximal_backoff_time;
	int64_t wait_ms = r->shut_for_ms < most_ms ? r->shut_for_ms : most_ms;
	int64_t in_ms = r->shut_ms - clock_wall_ms();
	const struct source_bar b = {
		.until_ms = destdb_now_ms(db) + (in_ms < wait_ms ? in_ms : wait_ms),
		.wait_ms = wait_ms,
	};
	return source_bar_kept(&b, destdb_now_ms(db)) ? b : (struct source_bar){0};
}

static void forget_record(struct destdb *db, const char *key)
{
	struct remembered *r;
	HASH_FIND_STR(db->remembered, key, r);
	if (r)
		drop_remembered(db, r);
}

void remembered_keep(const struct site *s)
{
	int64_t first = s->queue.transport->settings->initial_destination_concurrency;
	bool window = !window_dead(&s->window) && s->window.concurrency != first;
	if (!window && learnt_pace_rate(&s->own_pace.learnt) <= 0 && !source_keeps(s)) {
		forget_record(s->db, s->key);
		return;
	}
	struct remembered *r =
		remembered_add(s->db, s->key, window ? s->window.concurrency : 0, clock_wall_ms());
	keep_pace(r, s->db, &s->own_pace);
	keep_bar(r, s->db, &s->bar);
}

void remembered_keep_provider(const struct provider *p)
{
	if (learnt_pace_rate(&p->pacing.learnt) <= 0 &&
	    !source_bar_kept(&p->bar, destdb_now_ms(p->db))) {
		forget_record(p->db, p->key);
		return;
	}
	struct remembered *r = remembered_add(p->db, p->key, 0, clock_wall_ms());
	keep_pace(r, p->db, &p->pacing);
	keep_bar(r, p->db, &p->bar);
}

void remembered_recall_provider(struct provider *p)
{
	struct remembered *r;
	HASH_FIND_STR(p->db->remembered, p->key, r);
	if (!r)
		return;
	if (r->pace > 0)
		site_pace_restore(&p->pacing, p->db, r->pace, r->since_ms, r->refused_ms,
				  verdict_ref(r->why));
	p->bar = bar_of(r, p->db);
	drop_remembered(p->db, r);
}

bool remembered_is_provider(const struct remembered *r)
{
	return !strchr(r->key, ' ');
}

static struct remembered *record_of(const struct site *s)
{
	struct remembered *r;
	HASH_FIND_STR(s->db->remembered, s->key, r);
	if (r || !site_name_by_relays(s->key))
		return r;
	char *former = site_name_key(s->queue.transport->title, NULL, s->name);
	HASH_FIND_STR(s->db->remembered, former, r);
	free(former);
	return r && r->mixed ? r : NULL;
}

void remembered_recall(struct site *s)
{
	struct remembered *r = record_of(s);
	int64_t limit = s->queue.transport->settings->destination_concurrency_limit;
	if (!r)
		return;
	int64_t age_ms = clock_wall_ms() - r->at_ms;
	if (r->concurrency > 0 && age_ms >= 0 && age_ms < REMEMBERED_MS &&
	    (limit == 0 || r->concurrency <= limit))
		s->window.concurrency = r->concurrency;
	if (r->pace > 0)
		site_pace_recall(s, r->pace, r->since_ms, r->refused_ms, verdict_ref(r->why));
	s->bar = bar_of(r, s->db);
	drop_remembered(s->db, r);
}

static bool is_over(const struct remembered *r, int64_t wall_ms)
{
	bool window = r->concurrency > 0 && wall_ms < r->at_ms + REMEMBERED_MS;
	bool pace = r->pace > 0 && wall_ms < r->refused_ms + LEARNT_PACE_KEPT_MS;
	bool shut = r->shut_for_ms > 0 && wall_ms < r->shut_ms + r->shut_for_ms;
	return !window && !pace && !shut;
}

void remembered_age(struct destdb *db)
{
	hash_each (struct remembered, r, db->remembered)
		if (is_over(r, clock_wall_ms()))
			drop_remembered(db, r);
}

/* Up to its source, if it has one. */
static bool is_called(const char *site, const char *name)
{
	const char *source = strstr(site, SITE_FROM);
	size_t len = strlen(name);
	bool whole = strcasecmp(site, name) == 0;
	return whole ||
	       (source && (size_t)(source - site) == len && strncasecmp(site, name, len) == 0);
}

/* With the transport, or without. */
static bool is_of_site(const struct remembered *r, const char *name)
{
	const char *site = site_name_in(r->key);
	size_t len = strcspn(r->key, " ") + 1;
	return is_called(site, name) ||
	       (strncasecmp(r->key, name, len) == 0 && is_called(site, name + len));
}

int remembered_forget_site(struct destdb *db, const char *name)
{
	int n = 0;
	hash_each (struct remembered, r, db->remembered)
		if (!remembered_is_provider(r) && is_of_site(r, name)) {
			drop_remembered(db, r);
			n++;
		}
	db->learnt |= n > 0;
	return n;
}

void remembered_forget_provider(struct destdb *db, const char *name)
{
	size_t len = strlen(name);
	hash_each (struct remembered, r, db->remembered)
		if (remembered_is_provider(r) && strncmp(r->key, name, len) == 0 &&
		    (r->key[len] == '\0' || r->key[len] == '@'))
			drop_remembered(db, r);
}

void remembered_free(struct destdb *db)
{
	hash_each (struct remembered, r, db->remembered)
		drop_remembered(db, r);
}
