/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/conn_places.h"

#include "qmgr/dest/provider.h"

#include "base/metrics.h"
#include "qmgr/dest/pooling.h"

#include <assert.h>

void conn_count(const struct conn *c, int n)
{
	if (c->state == CONN_CLOSED)
		return;
	metrics_add(!conn_stands(c) ? METRIC_client_connecting
		    : c->busy > 0   ? METRIC_client_busy
				    : METRIC_client_idle,
		    n);
}

static int places_of(const struct conn *c, int earned)
{
	int depth = earned < c->depth_most ? earned : c->depth_most;
	return depth > c->depth ? depth : c->depth;
}

/* The worker closes it after so many; what it were given beyond that would only come back. */
static bool is_worn(const struct conn *c)
{
	return c->most > 0 && c->given >= c->most;
}

/* The entry that the connection carries must have no company, see indoubt.h. */
static bool is_alone(const struct conn *c)
{
	const struct list *first = list_first(&c->carried);
	return first && list_entry(first, struct entry, in_peer)->alone;
}

static bool has_place(const struct conn *c, int earned)
{
	return c->state == CONN_READY && !is_worn(c) && !is_alone(c) &&
	       c->busy < places_of(c, earned);
}

bool conn_has_place(const struct conn *c)
{
	return has_place(c, c->host->depth);
}

bool conn_yields(const struct conn *c)
{
	const struct list *full = &c->host->full;
	for (struct list *l = full->next; c->turn >= CONN_TURN && l != full; l = l->next) {
		const struct site *s = list_entry(l, struct site_host, in_full)->site;
		if (s->connections == 0 && s->queue.transport == c->site->queue.transport)
			return true;
	}
	return false;
}

static int64_t now_us(const struct conn *c)
{
	return destdb_now_ms(c->site->db) * 1000;
}

int64_t conn_waited_us(const struct conn *c)
{
	return c->busy > 0 ? now_us(c) - c->head_us : 0;
}

static void leave_idle(struct conn *c)
{
	c->host->nidle -= !list_empty(&c->in_host_idle);
	c->site->queue.transport->nidle -= !list_empty(&c->in_idle);
	assert(c->host->nidle >= 0 && c->site->queue.transport->nidle >= 0);
	list_remove(&c->in_idle);
	list_remove(&c->in_host_idle);
}

static void enter_idle(struct conn *c)
{
	list_append(&c->site->queue.transport->idle, &c->in_idle);
	list_append(&c->host->idle, &c->in_host_idle);
	c->host->nidle++;
	c->site->queue.transport->nidle++;
	leased_idle(c->site->db, c->host);
	/* Another site may want one to this host, and can have no other. */
	if (!list_empty(&c->host->full)) {
		site_feed_waiting_for(c->host);
		site_touch(c->site);
	}
}

/* Newest first: the order is that in which they were begun, whatever has happened since. */
static void enter_open(struct conn *c)
{
	struct list *open = &c->site->open, *at = open->next;
	while (at != open && list_entry(at, struct conn, in_site)->number > c->number)
		at = at->next;
	list_insert_before(at, &c->in_site);
}

static void see_to_turn(struct conn *c)
{
	if (c->state != CONN_READY || c->busy == 0 || c->turn < CONN_TURN)
		list_remove(&c->in_turned);
	else if (list_empty(&c->in_turned))
		list_append(&c->site->queue.transport->turned, &c->in_turned);
}

/* A place was taken or freed: be in the list that says whether there is one. */
void conn_relist(struct conn *c)
{
	list_remove(&c->in_site);
	leave_idle(c);
	see_to_turn(c);
	if (c->state == CONN_READY && c->busy == 0)
		enter_idle(c);
	if (c->state != CONN_CLOSED && conn_has_place(c))
		enter_open(c);
	else if (c->state != CONN_CLOSED)
		list_prepend(&c->site->rest, &c->in_site);
	assert((c->state == CONN_CLOSED) == list_empty(&c->in_site));
}

static void set_busy(struct conn *c, int busy)
{
	assert(busy >= 0);
	c->site->busy += (busy > 0) - (c->busy > 0);
	assert(c->site->busy >= 0);
	conn_count(c, -1);
	c->busy = busy;
	conn_count(c, 1);
}

/* So many deliveries more, or fewer. */
static void count_under_way(const struct conn *c, int n)
{
	c->site->under_way += n;
	c->site->pacing->under_way += n;
	assert(c->site->under_way >= 0 && c->site->pacing->under_way >= c->site->under_way);
	if (c->stall != CONNECTION_MOVES)
		conn_count_owed(c, n);
}

void conn_count_owed(const struct conn *c, int n)
{
	c->site->owed += n;
	c->site->pacing->owed += n;
	assert(c->site->owed >= 0 && c->site->pacing->owed >= c->site->owed);
}

void conn_tell_home(const struct conn *c)
{
	struct site_pace *p = c->site->pacing;
	if (p->under_way > p->owed)
		return;
	learnt_pace_home(&p->learnt);
	provider_feed_rate(c->site->provider);
}

/* The first of another transport that waits for the host, and has no connection, looks: it may end this one. */
static void offer_turned(const struct conn *c)
{
	const struct list *full = &c->host->full;
	if (!c->host->mixed)
		return;
	for (struct list *l = full->next; l != full; l = l->next) {
		struct site *s = list_entry(l, struct site_host, in_full)->site;
		if (s->connections > 0 || s->queue.transport == c->site->queue.transport)
			continue;
		site_touch(s);
		return;
	}
}

void conn_load(struct conn *c, struct entry *e)
{
	assert(conn_has_place(c));
	bool was_idle = c->busy == 0;
	if (was_idle)
		c->head_us = now_us(c);
	list_append(&c->carried, &e->in_peer);
	count_under_way(c, 1);
	set_busy(c, c->busy + 1);
	c->given++;
	c->turn++;
	if (was_idle || !conn_has_place(c))
		conn_relist(c);
	else
		see_to_turn(c);
	if (c->turn >= CONN_TURN) {
		provider_offer_busy(c->site->provider);
		offer_turned(c);
	}
}

void conn_unload(struct conn *c, struct entry *e)
{
	bool had_place = conn_has_place(c);
	list_remove(&e->in_peer);
	count_under_way(c, -1);
	conn_tell_home(c);
	set_busy(c, c->busy - 1);
	assert((c->busy == 0) == list_empty(&c->carried));
	if (c->busy == 0 || had_place != conn_has_place(c))
		conn_relist(c);
}

/* The connections of a host share what it has earned. */
void conn_set_depth(struct host *h, int depth)
{
	assert(depth > 0);
	int before = h->depth;
	h->depth = depth;
	list_each_entry (struct conn, c, in_host, &h->conns) {
		if (has_place(c, before) != conn_has_place(c)) {
			conn_relist(c);
			site_touch(c->site);
		}
	}
}

static bool has_arrived(const struct delivery *d)
{
	for (uint32_t i = 0; i < d->nrcpt; i++)
		if (d->rcpt[i].verdict && d->rcpt[i].verdict->class == VERDICT_SENT)
			return true;
	return false;
}

static void learn_depth(const struct conn *c, const struct delivery *d)
{
	struct host *h = c->host;
	int before = h->depth;
	if (d->wasted)
		conn_set_depth(h, 1);
	else if (h->depth < c->depth_most && has_arrived(d))
		conn_set_depth(h, h->depth + 1);
	c->site->db->learnt |= h->depth != before;
}

static void learn_limits(const struct conn *c, const struct delivery *d)
{
	struct destdb *db = c->site->db;
	if (d->mode != CONNECTION_FULL)
		host_confused(c->host, d->mode, d->reason, c->name, destdb_now_ms(db));
	if (d->messages_most > 0)
		host_takes_messages(c->host, d->messages_most, destdb_now_ms(db));
	pooling_changed(db, c->host);
	db->learnt |= d->mode != CONNECTION_FULL || d->messages_most > 0;
}

/* Without it the host takes no mail, so that it is of no use to know it broken. */
static void try_tls_anew(struct conn *c)
{
	struct destdb *db = c->site->db;
	if (!host_plain(c->host, c->name, destdb_now_ms(db)))
		return;
	host_set_plain(c->host, c->name, destdb_now_ms(db));
	pooling_changed(db, c->host);
	db->learnt = true;
}

void conn_learn(struct conn *c, const struct delivery *d)
{
	learn_depth(c, d);
	learn_limits(c, d);
	if (d->wants_tls)
		try_tls_anew(c);
	if (has_arrived(d))
		host_took_message(c->host);
	c->head_us = now_us(c);
	if (d->returned || d->ended_us <= d->began_us || d->began_us == 0)
		return;
	if (has_arrived(d)) {
		struct speed_sample x = {.began_us = d->began_us,
					 .ended_us = d->ended_us,
					 .before_us = c->ended_us,
					 .trips = c->trips,
					 .behind = c->behind};
		speed_served(&c->host->speed, &x);
	}
	c->ended_us = d->ended_us;
}

uint32_t conn_recipients_most(const struct conn *c, const struct entry *e)
{
	uint32_t known = host_recipients_most(c->host, destdb_now_ms(c->site->db));
	return e->rcpt_most == 0 || (known != 0 && known < e->rcpt_most) ? known : e->rcpt_most;
}

bool conn_may_go_ahead(const struct conn *c, const struct content *content)
{
	int64_t most = c->site->queue.transport->settings->pipeline_bytes;
	return places_of(c, c->host->depth) > 1 && c->host->depth > 1 &&
	       (most == 0 || (int64_t)content->size <= most);
}
