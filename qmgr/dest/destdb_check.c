/* SPDX-License-Identifier: ISC */
/* Every number of connections and entries, counted again from the lists that they are in. */
#include "qmgr/dest/conn_places.h"
#include "qmgr/dest/destdb.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/source.h"

#include <assert.h>

/* Numbers that a connection counts for, by its state. */
struct numbers {
	int connections, connecting, slow, ending, ready, busy, idle, turned, stalled, lingering;
};

static int length_of(const struct list *all)
{
	int n = 0;
	for (const struct list *l = all->next; l != all; l = l->next)
		n++;
	return n;
}

static void check_conn(const struct conn *c)
{
	bool is_idle = c->state == CONN_READY && c->busy == 0;
	assert(c->busy == length_of(&c->carried));
	assert(is_idle == !list_empty(&c->in_idle) && is_idle == !list_empty(&c->in_host_idle));
	assert(conn_unready(c) || list_empty(&c->in_silent));
	assert(list_empty(&c->in_stalled) ==
	       (c->state == CONN_CLOSED || c->state == CONN_LEAVING ||
		(c->stall != CONNECTION_STALLED && c->stall != CONNECTION_STUCK)));
	assert((c->state == CONN_READY && c->busy > 0 && c->turn >= CONN_TURN) ==
	       !list_empty(&c->in_turned));
	assert((c->state == CONN_CLOSED) == list_empty(&c->in_site));
	assert((c->state == CONN_CLOSED) == list_empty(&c->in_host));
	assert(c->state != CONN_CLOSED || c->busy > 0); /* else it were forgotten */
}

static void count_conn(struct numbers *n, const struct conn *c)
{
	n->connections++;
	n->connecting += conn_unready(c);
	n->slow += c->state == CONN_PROBING;
	n->ending += conn_told_to_close(c);
	n->ready += conn_stands(c);
	n->busy += c->busy > 0;
	n->idle += c->state == CONN_READY && c->busy == 0;
	n->turned += !list_empty(&c->in_turned);
	n->stalled += c->stall != CONNECTION_MOVES;
	n->lingering += c->stall != CONNECTION_MOVES && c->state != CONN_READY &&
			(c->state != CONN_LEAVING || c->stall == CONNECTION_AWAITED);
}

static void check_peers(const struct queue *queue)
{
	int64_t waiting = 0, granted = 0;
	for (const struct list *l = queue->peers.next; l != &queue->peers; l = l->next)
		waiting += list_entry(l, struct peer, in_queue)->waiting;
	for (const struct list *l = queue->granted.next; l != &queue->granted; l = l->next)
		granted += list_entry(l, struct peer, in_granted)->granted;
	assert(waiting == queue->waiting && granted == queue->ngranted && granted <= waiting);
}

/* Closed connections that still wait for what they carried are the site's too, in no list. */
static void check_site(const struct site *s, int closed_busy, struct numbers *all)
{
	struct numbers n = {0};
	list_each_entry (const struct conn, c, in_site, &s->open) {
		assert(c->site == s && conn_has_place(c));
		count_conn(&n, c);
	}
	list_each_entry (const struct conn, c, in_site, &s->rest) {
		assert(c->site == s && !conn_has_place(c));
		count_conn(&n, c);
	}
	check_peers(&s->queue);
	assert(s->connections == n.connections && s->connecting == n.connecting);
	assert(s->lingering == n.lingering);
	assert(s->slow == n.slow && s->ending == n.ending && s->busy == n.busy + closed_busy);
	/* Grants are seen to when the site is looked at. */
	assert(!list_empty(&s->queue.in_dirty) || s->queue.ngranted <= n.connecting - n.slow);
	all->connections += n.connections;
	all->connecting += n.connecting;
	all->slow += n.slow;
	all->ending += n.ending;
	all->idle += n.idle;
	all->turned += n.turned;
	all->stalled += n.stalled;
	all->lingering += n.lingering;
}

static void check_host(const struct host *h)
{
	struct numbers n = {0};
	for (const struct list *l = h->conns.next; l != &h->conns; l = l->next)
		count_conn(&n, list_entry(l, struct conn, in_host));
	assert(h->connections == n.connections && h->ready == n.ready);
	assert(h->unanswered == n.slow && h->nidle == n.idle && n.idle == length_of(&h->idle));
	assert(h->refs >= n.connections + length_of(&h->sites));
}

static int closed_busy(const struct destdb *db, const struct site *s)
{
	int n = 0;
	for (const struct conn *c = db->conns; c; c = c->hh.next)
		n += c->site == s && c->state == CONN_CLOSED;
	return n;
}

static void check_transport(const struct destdb *db, const struct transport *t, bool any_closed)
{
	struct numbers n = {0};
	for (const struct site *s = db->sites; s; s = s->hh.next)
		if (s->queue.transport == t)
			check_site(s, any_closed ? closed_busy(db, s) : 0, &n);
	assert(t->connections == n.connections && t->nunready == n.connecting);
	assert(t->ending == n.ending && t->nidle == n.idle && t->nidle == length_of(&t->idle));
	assert(t->nsilent == length_of(&t->silent) && t->nsilent <= t->nunready);
	assert(t->nstalled == n.stalled && t->nlingering == n.lingering);
	assert(t->nprobing == n.slow && n.turned == length_of(&t->turned));
}

static void check_provider(const struct destdb *db, const struct provider *p)
{
	int sites = 0, connections = 0, connecting = 0, slow = 0, ending = 0, waiting = 0,
	    lingering = 0;
	int64_t under_way = 0, owed = 0;
	for (const struct site *s = db->sites; s; s = s->hh.next) {
		if (s->provider != p)
			continue;
		sites++;
		connections += s->connections;
		connecting += s->connecting;
		slow += s->slow;
		ending += s->ending;
		lingering += s->lingering;
		under_way += site_pace_shared(s) ? s->under_way : 0;
		owed += site_pace_shared(s) ? s->owed : 0;
		assert(site_pace_shared(s) == site_pace_wanted(s));
		waiting += !list_empty(&s->in_provider);
	}
	assert(p->sites == sites && p->connections == connections);
	assert(p->connecting == connecting && p->slow == slow && p->ending == ending &&
	       p->lingering == lingering);
	assert(p->pacing.under_way == under_way && p->pacing.owed == owed);
	assert(waiting == length_of(&p->for_connection) + length_of(&p->for_rate));
}

static void check_source(const struct destdb *db, const struct source *o)
{
	int sites = 0, waiting = 0;
	for (const struct site *s = db->sites; s; s = s->hh.next) {
		if (s->source != o)
			continue;
		sites++;
		waiting += !list_empty(&s->in_source);
	}
	assert(o->sites == sites && waiting == length_of(&o->for_rate));
	assert(list_empty(&o->for_rate) || timer_active(&o->wake));
}

/* Bound early an entry has a slot of its transport, and there are no connections. */
static void check_early(const struct destdb *db, const struct transport *t)
{
	int busy = 0;
	for (const struct site *s = db->sites; s; s = s->hh.next) {
		if (s->queue.transport != t)
			continue;
		check_peers(&s->queue);
		assert(s->connections == 0 && s->queue.ngranted == 0);
		busy += s->busy;
	}
	assert(t->connections == busy);
}

void destdb_check(const struct destdb *db)
{
	bool any_closed = false;
	for (const struct transport *t = db->sched->transports; t && db->bind_early; t = t->hh.next)
		check_early(db, t);
	if (db->bind_early)
		return;
	for (const struct conn *c = db->conns; c; c = c->hh.next) {
		check_conn(c);
		any_closed |= c->state == CONN_CLOSED;
	}
	for (const struct host *h = db->hosts; h; h = h->hh.next)
		check_host(h);
	for (const struct transport *t = db->sched->transports; t; t = t->hh.next)
		check_transport(db, t, any_closed);
	for (const struct provider *p = db->providers; p; p = p->hh.next)
		check_provider(db, p);
	for (const struct source *o = db->sources; o; o = o->hh.next)
		check_source(db, o);
}
