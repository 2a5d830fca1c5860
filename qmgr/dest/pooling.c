/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/pooling.h"

#include "base/date.h"
#include "qmgr/dest/host_text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* One is half as much again as the other. */
static bool differs_much(int64_t a, int64_t b)
{
	return a == 0 || b == 0 ? a != b : 2 * a > 3 * b || 2 * b > 3 * a;
}

/* Of its pipeline; 0: nothing yet. */
static int64_t earned_depth(const struct host *h)
{
	return h->depth > 1 ? h->depth : 0;
}

static int64_t pace_of(const struct host *h)
{
	return host_pace_units(h->pace.rate);
}

static void keep_speed(struct host *h)
{
	h->pooling.r_us = h->speed.r_us;
	h->pooling.s_us = h->speed.s_us;
}

/* A measure that changes with each message is told when it has come far, and not each time that it swings. */
static void keep_measures(struct host *h, int64_t now_ms)
{
	struct host_pooling *p = &h->pooling;
	bool speed = differs_much(h->speed.r_us, p->r_us) || differs_much(h->speed.s_us, p->s_us);
	bool depth = differs_much(earned_depth(h), p->depth),
	     pace = differs_much(pace_of(h), p->pace);
	if ((!speed && !depth && !pace) ||
	    (p->measured_ms > 0 && now_ms < p->measured_ms + MEASURES_MS))
		return;
	p->measured_ms = now_ms;
	keep_speed(h);
	p->depth = earned_depth(h);
	p->pace = pace_of(h);
}

/* Another number whenever there is something to be told; 0: there is nothing. */
static uint64_t likeness_of(const struct host *h, enum fact_which which)
{
	int64_t v[7] = {0};
	switch (which) {
	case FACT_HEALTH:
		v[0] = h->failures;
		v[1] = h->state == HOST_UP ? 0 : h->retry_ms;
		v[2] = h->proven;
		break;
	case FACT_SPEED:
		v[0] = h->pooling.r_us;
		v[1] = h->pooling.s_us;
		break;
	case FACT_LIMIT:
		v[0] = h->limit.n;
		v[1] = h->limit.again_ms;
		break;
	case FACT_PIPELINE:
		v[0] = h->pooling.depth;
		v[1] = h->mode;
		v[2] = h->mode_until_ms;
		v[3] = h->messages_most;
		v[4] = h->messages_until_ms;
		v[5] = h->recipients_most;
		v[6] = h->recipients_until_ms;
		break;
	case FACT_PACE:
		v[0] = h->pooling.pace;
		v[1] = h->pace.rate > 0 ? h->pace.since_ms : 0;
		break;
	case FACT_PLAIN:
		v[0] = h->plain ? h->plain->until_ms : 0;
		break;
	default:
		assert(0 && "a part that is none");
	}
	for (size_t i = 0; i < sizeof v / sizeof v[0]; i++)
		if (v[i] != 0)
			return keyed_hash(v, sizeof v) | 1;
	return 0;
}

static const char *own_name(const struct destdb *db)
{
	const struct conf *c = db->sched->conf;
	return *c->cluster.name ? c->cluster.name : c->own_name;
}

static void post_to_cluster(struct destdb *db, struct note *note)
{
	assert(db->edges.to_cluster);
	db->edges.to_cluster(db->edges.context, note);
}

static struct fact *known_fact(struct host *h)
{
	if (!h->pooling.fact)
		h->pooling.fact = fact_new(FACT_SEEN, h->key);
	return h->pooling.fact;
}

static void put_part(struct destdb *db, struct host *h, enum fact_which which)
{
	struct fact *f = known_fact(h);
	struct buf text = {0};
	host_text_put(&text, h, which);
	fact_set(f, which, fact_stamp(f->part[which].stamp, date_ms()), own_name(db),
		 buf_cstr(&text));
	buf_fini(&text);
}

static void tell_changes(struct destdb *db, struct host *h)
{
	struct host_pooling *p = &h->pooling;
	unsigned changed = 0;
	keep_measures(h, destdb_now_ms(db));
	for (unsigned i = 0; i < FACT_PART_COUNT; i++) {
		uint64_t is = likeness_of(h, (enum fact_which)i);
		if (is == p->as[i])
			continue;
		p->as[i] = is;
		put_part(db, h, (enum fact_which)i);
		changed |= 1U << i;
	}
	if (!changed && p->doubts == h->doubts)
		return;
	p->doubts = h->doubts;
	struct fact *seen = fact_copy(known_fact(h), changed);
	seen->doubts = h->doubts;
	post_to_cluster(db, &seen->note);
}

void pooling_tell(struct destdb *db, struct host *h)
{
	list_remove(&h->pooling.changed);
	if (db->edges.to_cluster) /* it goes on being heard while this node ends */
		tell_changes(db, h);
}

int64_t pooling_heard_age_ms(const struct destdb *db, const struct host *h, enum fact_which which)
{
	const struct fact *f = h->pooling.fact;
	if (!f || !f->part[which].node || strcmp(f->part[which].node, own_name(db)) == 0)
		return -1;
	int64_t age_ms = date_ms() - f->part[which].stamp;
	return age_ms > 0 ? age_ms : 0;
}

/* Nobody has heard what was seen by a clock that was ahead: it is older than all that is heard. */
static void distrust_stamps(struct fact *f)
{
	int64_t now_ms = date_ms();
	for (int i = 0; i < FACT_PART_COUNT; i++)
		if (f->part[i].stamp > now_ms + FACT_AHEAD_MS)
			f->part[i].stamp = 1;
}

unsigned pooling_merge(struct host *h, const struct fact *f)
{
	distrust_stamps(known_fact(h));
	if (f->doubts > h->pooling.doubts_of_all)
		h->pooling.doubts_of_all = f->doubts;
	return fact_merge(known_fact(h), f);
}

void pooling_agree(struct host *h, enum fact_which which)
{
	assert(which < FACT_PART_COUNT);
	if (which == FACT_SPEED)
		keep_speed(h);
	if (which == FACT_PIPELINE)
		h->pooling.depth = earned_depth(h);
	if (which == FACT_PACE)
		h->pooling.pace = pace_of(h);
	h->pooling.as[which] = likeness_of(h, which);
}

void pooling_changed(struct destdb *db, struct host *h)
{
	if (!db->edges.to_cluster)
		return;
	list_move(&db->changed, &h->pooling.changed);
}

void pooling_quiet(struct host *h)
{
	keep_speed(h);
	h->pooling.depth = earned_depth(h);
	h->pooling.pace = pace_of(h);
	for (unsigned i = 0; i < FACT_PART_COUNT; i++)
		h->pooling.as[i] = likeness_of(h, (enum fact_which)i);
}

void pooling_forgotten(struct destdb *db, struct host *h, bool everywhere)
{
	pooling_quiet(h);
	for (unsigned i = 0; i < FACT_PART_COUNT && everywhere; i++)
		h->pooling.as[i] = ~likeness_of(h, (enum fact_which)i);
	pooling_changed(db, h);
}

int pooling_doubts(const struct host *h)
{
	int64_t all = h->pooling.doubts_of_all;
	return all > h->doubts && all < HOST_COUNT_MAX ? (int)all : h->doubts;
}

void pooling_flush(struct destdb *db)
{
	for (struct list *first; (first = list_first(&db->changed)) != NULL;)
		pooling_tell(db, list_entry(first, struct host, pooling.changed));
}

/* Parts that others have seen they tell themselves. */
static unsigned own_parts(const struct destdb *db, const struct fact *f)
{
	unsigned own = 0;
	for (int i = 0; i < FACT_PART_COUNT; i++)
		if (f->part[i].node && strcmp(f->part[i].node, own_name(db)) == 0)
			own |= 1U << i;
	return own;
}

void pooling_tell_all(struct destdb *db)
{
	pooling_flush(db);
	for (struct host *h = db->hosts; h && db->edges.to_cluster; h = h->hh.next) {
		if (!h->pooling.fact)
			continue;
		unsigned own = own_parts(db, h->pooling.fact);
		if (!own && h->doubts == 0)
			continue;
		distrust_stamps(h->pooling.fact);
		struct fact *all = fact_copy(h->pooling.fact, own);
		all->doubts = h->doubts;
		post_to_cluster(db, &all->note);
	}
}

bool pooling_may_probe(struct destdb *db, struct host *h)
{
	struct host_pooling *p = &h->pooling;
	int64_t now_ms = destdb_now_ms(db);
	if (!db->edges.to_cluster)
		return true;
	if (now_ms < p->leave_until_ms ||
	    (p->asked_ms > 0 && now_ms >= p->asked_ms + LEAVE_PATIENCE_MS)) {
		p->leave_until_ms = p->asked_ms = 0;
		return true;
	}
	if (p->asked_ms == 0) {
		p->asked_ms = now_ms;
		post_to_cluster(db, &fact_probe_new(h->key, db->sched->loop)->note);
	}
	return false;
}

void pooling_fini(struct host *h)
{
	list_remove(&h->pooling.changed);
	fact_free(&h->pooling.fact);
	assert(!h->pooling.fact);
}
