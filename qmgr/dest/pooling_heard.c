/* SPDX-License-Identifier: ISC */
/* Facts that other nodes have told, and what follows from them for hosts and sites here. */
#include "base/clock.h"
#include "qmgr/dest/conn.h"
#include "qmgr/dest/host_text.h"
#include "qmgr/dest/pooling.h"

static void touch_sites(struct host *h)
{
	list_each (link, tmp, &h->sites)
		site_touch(list_entry(link, struct site_host, in_host)->site);
}

static void hear_health(struct destdb *db, struct host *h, const struct fact_part *p)
{
	bool was_up = h->state == HOST_UP;
	int64_t now_ms = destdb_now_ms(db);
	struct host heard = {0};
	host_text_read(&heard, FACT_HEALTH, p->text);
	/* Mail that waits for it is to be told why. */
	if (heard.failures > 0 && heard.why && !host_serves(h, now_ms))
		host_heard_out(h, &heard, p->node, now_ms);
	else if (heard.failures == 0)
		host_heard_up(h, heard.proven, p->node);
	host_fini(&heard);
	if (was_up != (h->state == HOST_UP))
		site_host_changed(h);
	else
		touch_sites(h);
}

static void hear_part(struct destdb *db, struct host *h, enum fact_which which)
{
	const struct fact_part *p = &h->pooling.fact->part[which];
	int depth = h->depth;
	if (which == FACT_HEALTH) {
		hear_health(db, h, p);
	} else {
		host_text_read(h, which, p->text);
		if (which == FACT_PIPELINE && h->depth != depth) {
			int heard = h->depth;
			h->depth = depth;
			conn_set_depth(h, heard);
		}
		touch_sites(h);
	}
	if (which == FACT_PACE)
		site_pace_heard(h);
	pooling_agree(h, which);
}

/* The record, made where another node knows the host and we do not. */
static struct host *find_or_make_host(struct destdb *db, const struct fact *f)
{
	struct host *h;
	union address address;
	const char *text = f->part[FACT_HEALTH].text;
	HASH_FIND_STR(db->hosts, f->key, h);
	if (h || !text || HASH_COUNT(db->hosts) >= POOLING_HOSTS_MAX ||
	    !host_text_address(text, &address))
		return h;
	h = destdb_host(db, f->key, &address);
	h->opened_ms = clock_steady_ms(); /* used lately */
	return h;
}

void pooling_heard(struct destdb *db, struct fact *f)
{
	struct host *h = find_or_make_host(db, f);
	if (h) {
		pooling_tell(db, h);
		unsigned changed = pooling_merge(h, f);
		for (unsigned i = 0; i < FACT_PART_COUNT; i++)
			if (changed & 1U << i)
				hear_part(db, h, (enum fact_which)i);
		db->learnt |= changed != 0;
	}
	fact_free(&f);
}

/* That it waits is nothing that it knows of the host, so the others are not told. */
static void wait_for_probe(struct destdb *db, struct host *h)
{
	pooling_tell(db, h);
	host_wait_for_probe(h, destdb_now_ms(db));
	pooling_agree(h, FACT_HEALTH);
}

void pooling_leave(struct destdb *db, struct fact_probe *leave)
{
	struct host *h;
	int64_t now_ms = destdb_now_ms(db);
	HASH_FIND_STR(db->hosts, leave->key, h);
	if (h) {
		h->pooling.asked_ms = 0;
		if (leave->granted)
			h->pooling.leave_until_ms = now_ms + LEAVE_GOOD_MS;
		else
			wait_for_probe(db, h);
		touch_sites(h);
	}
	fact_probe_free(&leave);
}
