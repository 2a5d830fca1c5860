/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/dispatch.h"

#include "base/tls_result.h"
#include "qmgr/dest/conn_places.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/site_limits.h"
#include "qmgr/sched/selection.h"

#include <assert.h>

void dispatch_trim(struct site *s)
{
	if (s->connecting - s->slow <= SITE_LIMITS_UNPROVEN || site_proven(s))
		return;
	struct list *all = &s->queue.transport->silent;
	int n = site_limits_silent_count(s);
	for (struct list *l = all->prev; l != all && n > SITE_LIMITS_UNPROVEN;) {
		struct conn *c = list_entry(l, struct conn, in_silent);
		l = l->prev;
		if (c->site != s || c->state != CONN_CONNECTING)
			continue;
		conn_end(s->db, c);
		n--;
	}
}

/* Idle, and its site has nothing for it or has had its turn; or NULL. */
static struct conn *idle_to_end(const struct transport *t)
{
	list_each_entry (struct conn, c, in_idle, &t->idle) {
		assert(c->busy == 0);
		if (c->site->queue.state != QUEUE_PLACED || c->turn >= CONN_TURN)
			return c;
	}
	return NULL;
}

/* The connection that may end for a site that wants one, or NULL. */
static struct conn *to_end(const struct transport *t)
{
	return transport_ending(t) < transport_wanting(t) ? idle_to_end(t) : NULL;
}

static bool is_only_one(const struct conn *c)
{
	return c->state == CONN_READY && c->site->connections - c->site->ending == 1;
}

/* Or NULL: the longest that was told to close, or whose site has others. */
static struct conn *stalled_to_end(const struct transport *t)
{
	list_each_entry (struct conn, c, in_stalled, &t->stalled)
		if (!is_only_one(c))
			return c;
	return NULL;
}

/* Or NULL: the longest, though it may be the only one of its site. */
static struct conn *stuck_to_end(const struct transport *t)
{
	struct list *first = list_first(&t->stalled);
	struct conn *c = first ? list_entry(first, struct conn, in_stalled) : NULL;
	return c && c->stall == CONNECTION_STUCK && site_limits_stalled_most(t) ? c : NULL;
}

/* Rather of a site that has others. */
static struct conn *turned_to_end(const struct transport *t)
{
	list_each_entry (struct conn, c, in_turned, &t->turned)
		if (c->site->connections > 1)
			return c;
	struct list *first = list_first(&t->turned);
	return first ? list_entry(first, struct conn, in_turned) : NULL;
}

/* Idle since just now, perhaps, and its site has not looked yet: each would end the next one's before anything goes over it. */
static bool is_about_to_be_used(const struct conn *c)
{
	return c->site->queue.waiting > 0 && c->turn < CONN_TURN && !site_paused(c->site);
}

/* Of the site's provider, idle, and its own site has no use for it; NULL: the transport has none. */
static struct conn *idle_of_provider(const struct transport *t, const struct site *s)
{
	list_each_entry (struct conn, c, in_idle, &t->idle) {
		assert(c->busy == 0);
		if (c->site->provider == s->provider && c->site->queue.state != QUEUE_PLACED &&
		    !is_about_to_be_used(c))
			return c;
	}
	return NULL;
}

/* Mail of one flow that is older there goes first, and would only need another connection. */
static bool goes_first(const struct site *s, const struct site *other)
{
	const struct peer *a = selection_first(&s->queue), *b = selection_first(&other->queue);
	return a && (!b || a->job->work->flow != b->job->work->flow ||
		     a->job->work->rank < b->job->work->rank);
}

/* Of the site's provider, and stalled; NULL: the transport has none, but for the only ones of their sites. */
static struct conn *stalled_of_provider(const struct transport *t, const struct site *s)
{
	list_each_entry (struct conn, c, in_stalled, &t->stalled)
		if (c->site->provider == s->provider && !is_only_one(c))
			return c;
	return NULL;
}

/* Of the site's provider, and has had its turn; NULL: the transport has none. */
static struct conn *turned_of_provider(const struct transport *t, const struct site *s)
{
	list_each_entry (struct conn, c, in_turned, &t->turned)
		if (c->site->provider == s->provider && goes_first(s, c->site))
			return c;
	return NULL;
}

/* The site's transport comes before others. */
static struct conn *of_provider(const struct site *s,
				struct conn *(*find)(const struct transport *, const struct site *))
{
	struct conn *c = find(s->queue.transport, s);
	const struct transport *t = s->db->sched->transports;
	for (; t && !c; t = t->hh.next)
		c = find(t, s);
	return c;
}

static void end_busy(struct conn *c)
{
	if (list_empty(&c->in_stalled))
		conn_end(c->site->db, c);
	else
		conn_leave(c->site->db, c);
}

static struct conn *busy_of_provider(const struct site *s)
{
	struct conn *c = of_provider(s, stalled_of_provider);
	return c ? c : of_provider(s, turned_of_provider);
}

void dispatch_make_room(struct site *s)
{
	assert(s->provider);
	struct conn *c = of_provider(s, idle_of_provider);
	if (c) {
		conn_end(s->db, c);
	} else if (s->connections == 0 && !provider_ending(s->provider) &&
		   (c = busy_of_provider(s))) {
		provider_wait_first(s);
		end_busy(c);
	}
}

static bool is_about_to_end(const struct conn *c)
{
	return conn_told_to_close(c) && !conn_lingers(c);
}

/* As many of its connections are about to as sites wait for one. */
static bool enough_are_ending(const struct host *h)
{
	const struct list *waits = h->full.next;
	list_each_entry (const struct conn, c, in_host, &h->conns)
		if (waits != &h->full && is_about_to_end(c))
			waits = waits->next;
	return waits == &h->full;
}

/* One of the site's own transport would be lent. */
static struct conn *idle_of_other_transports(const struct host *h, const struct site *s)
{
	list_each_entry (struct conn, c, in_host_idle, &h->idle) {
		assert(c->busy == 0);
		if (c->site->queue.transport != s->queue.transport &&
		    c->site->queue.state != QUEUE_PLACED && !is_about_to_be_used(c))
			return c;
	}
	return NULL;
}

static bool is_any_ending(const struct host *h)
{
	list_each (link, tmp, &h->conns)
		if (is_about_to_end(list_entry(link, struct conn, in_host)))
			return true;
	return false;
}

/* For a site without any connection, where none idles: one that has had its turn. */
static struct conn *turned_of_other_transports(const struct host *h, const struct site *s)
{
	if (s->connections > 0 || is_any_ending(h))
		return NULL;
	list_each_entry (struct conn, c, in_host, &h->conns) {
		if (c->site->queue.transport != s->queue.transport && !list_empty(&c->in_turned) &&
		    goes_first(s, c->site))
			return c;
	}
	return NULL;
}

/* The room that is made there is for this site. */
static void wait_first(struct site_host *it)
{
	list_remove(&it->in_full);
	list_prepend(&it->host->full, &it->in_full);
}

/* False: nothing there may end for the site. */
static bool make_room_at(struct site *s, struct site_host *it)
{
	struct conn *idle = idle_of_other_transports(it->host, s);
	if (idle && enough_are_ending(it->host))
		idle = NULL;
	struct conn *turned = idle ? NULL : turned_of_other_transports(it->host, s);
	if (idle)
		conn_end(s->db, idle);
	if (turned) {
		wait_first(it);
		end_busy(turned);
	}
	return idle || turned;
}

void dispatch_make_room_at_hosts(struct site *s)
{
	int end, first = destdb_group(s->hosts, s->nhost, &end);
	for (int i = first; first >= 0 && i < end; i++) {
		struct site_host *it = &s->hosts[i];
		if (it->host->mixed && !site_host_out(it) && make_room_at(s, it))
			return;
	}
}

static void give_entry(struct site *s, struct conn *c, struct peer *p)
{
	assert(conn_ready(c));
	struct entry *e = peer_take(p); /* it waits no more: nothing is reserved for it */
	site_count_delivery(s);
	conn_give(s->db, c, e);
}

static void park_site(struct site *s, struct job *job)
{
	assert(job->transport == s->queue.transport);
	selection_set(&s->queue, QUEUE_QUIET);
	list_move(&job->parked, &s->queue.in_parked);
	if (list_empty(&job->in_parked))
		list_append(&job->transport->parked, &job->in_parked);
}

static bool has_room(const struct transport *t)
{
	return !transport_full(t) && !site_limits_unready_full(t);
}

/* Another transport's site without any connection was called for the room there, and is about to take it: those that were called stand
 * last in line, in their order. */
static bool is_anothers_turn(const struct site *s, const struct host *h)
{
	bool behind = s->fed != s->db->rounds;
	for (const struct list *l = h->full.prev; l != &h->full; l = l->prev) {
		const struct site *other = list_entry(l, struct site_host, in_full)->site;
		const struct transport *t = other->queue.transport;
		if (other == s)
			behind = true;
		else if (other->fed != s->db->rounds)
			return false;
		else if (behind && t != s->queue.transport && other->queue.state == QUEUE_BARE &&
			 has_room(t))
			return true;
	}
	return false;
}

/* Once in a round, in which that one has its turn, too: two must not leave it to each other for ever. */
static bool leaves_to_other(struct site *s, const struct host *h)
{
	if (!h->mixed || s->left == s->db->rounds || !is_anothers_turn(s, h))
		return false;
	s->left = s->db->rounds;
	selection_set(&s->queue, QUEUE_QUIET);
	site_touch(s);
	return true;
}

static void open_for(struct site *s, struct peer *p)
{
	struct site_host *host = NULL;
	int64_t wake_ms;
	enum destdb_choice choice = site_choose_host(s, p, &host, &wake_ms);
	if (choice == DESTDB_HOST && leaves_to_other(s, host->host))
		return;
	if (choice == DESTDB_HOST) {
		assert(host && !host->host->suspended && !host->suspended);
		peer_grant(p);
		tls_subject_unref(s->subject);
		s->subject = tls_subject_ref(p->way->subject);
		conn_open(s->db, s, host, false);
		s->queue.transport->unpark = true; /* it may have yet another */
	} else {
		selection_set(&s->queue, QUEUE_QUIET);
		/* Where no host is in service its health says so, and what comes of it. */
		if (choice == DESTDB_LATER && wake_ms > 0)
			site_wake_at(s, wake_ms);
	}
}

static void grow_site(struct site *s, struct peer *p)
{
	if (site_limits_silent(s)) {
		selection_set(&s->queue, QUEUE_QUIET); /* it is looked at when one of them ends */
		return;
	}
	bool opening = site_pace_shared(s) && provider_opening_full(s->provider);
	if (opening || provider_full(s->provider)) { /* since it was looked at */
		selection_set(&s->queue, QUEUE_QUIET);
		site_touch(s);
		return;
	}
	if (!site_limits_share_allows(p)) {
		struct peer *other = selection_other(&s->queue, site_limits_share_allows);
		if (!other) {
			park_site(s, p->job);
			return;
		}
		p = other;
	}
	open_for(s, p);
}

/* Of other sites; probe: that is one. */
static struct conn *longest_silent(const struct site *s, bool probe)
{
	list_each_entry (struct conn, c, in_silent, &s->queue.transport->silent)
		if (c->site != s && (!probe || c->state == CONN_PROBING))
			return c;
	return NULL;
}

/* None is idle: the one that may end for a site that has none, or NULL. */
static struct conn *busy_to_end(const struct transport *t)
{
	struct conn *c = stalled_to_end(t);
	if (!c)
		c = turned_to_end(t);
	return c ? c : stuck_to_end(t);
}

/* All are in use: the connection that has been silent longest ends, else one that idles, is stalled or has had its turn. */
static void end_for_probe(struct site *s)
{
	struct transport *t = s->queue.transport;
	struct conn *c = longest_silent(s, false);
	if (c) {
		conn_abandon(s->db, c);
		return;
	}
	if ((c = idle_to_end(t)))
		conn_end(s->db, c);
	else if ((c = busy_to_end(t)))
		end_busy(c);
}

/* A probe waits. What ends is for it, whoever it ends for: it is told first (conn_move()). */
static void make_room_for_probe(struct transport *t)
{
	struct list *first = list_first(&t->probing);
	if (!first)
		return;
	struct site *s = list_entry(first, struct site, in_probing);
	if (site_limits_probes_full(t)) {
		struct conn *c = longest_silent(s, true);
		if (c)
			conn_abandon(s->db, c);
	} else if (transport_full(t) && transport_ending(t) == 0) {
		end_for_probe(s);
	}
	if (!site_limits_probes_full(t) && !transport_full(t))
		site_touch(s);
}

/* There is no room: the connection that has been silent longest makes some, unless it is the site's
 * own. */
static void displace_silent(struct site *s)
{
	struct list *first = list_first(&s->queue.transport->silent);
	struct conn *c = first ? list_entry(first, struct conn, in_silent) : NULL;
	if (c && c->site != s)
		conn_abandon(s->db, c);
	else
		selection_set(&s->queue, QUEUE_QUIET);
}

/* One that is silent may make some, unless enough of them are about to. */
static bool may_displace(const struct transport *t)
{
	return !list_empty(&t->silent) &&
	       (!transport_full(t) || transport_ending(t) < transport_wanting(t));
}

static bool may_end_busy(const struct transport *t)
{
	return transport_full(t) && transport_ending(t) < t->nqueue[QUEUE_BARE] && busy_to_end(t);
}

/* The last state of a queue that something can be done about. */
static enum queue_state up_to(const struct transport *t, const struct conn *spare)
{
	if (has_room(t) || spare || may_displace(t))
		return QUEUE_HUNGRY;
	return may_end_busy(t) ? QUEUE_BARE : QUEUE_PLACED;
}

static void find_room(struct site *s)
{
	const struct transport *t = s->queue.transport;
	if (list_empty(&t->silent))
		end_busy(busy_to_end(t));
	else
		displace_silent(s);
}

bool dispatch_one(struct transport *t)
{
	make_room_for_probe(t);
	struct conn *spare = transport_full(t) ? to_end(t) : NULL;
	struct peer *p = selection_next(t, up_to(t, spare));
	if (!p)
		return false;
	struct site *s = site_of_queue(p->queue);
	assert(s->queue.transport == t);
	if (s->db->thread.renew(p))
		return true;
	/* Who has just slipped past may fit where the one before was too large. */
	struct conn *c = site_place(s, p);
	if (c || s->queue.state == QUEUE_PLACED) {
		if (c)
			give_entry(s, c, p);
		else
			selection_set(&s->queue, QUEUE_QUIET); /* too large for what is left */
		site_touch(s);
	} else if (spare) {
		conn_end(s->db, spare);
	} else if (s->db->bind_early) {
		s->db->bind_early(s->db->edges.context, p);
	} else if (!has_room(t)) {
		find_room(s);
	} else {
		grow_site(s, p);
	}
	return true;
}

void dispatch_unpark(struct transport *t)
{
	list_each_entry (struct job, job, in_parked, &t->parked) {
		struct list *first = list_first(&job->parked);
		struct queue *queue = first ? list_entry(first, struct queue, in_parked) : NULL;
		const struct peer *asks = queue ? selection_first(queue) : NULL;
		if (asks && !site_limits_share_allows(asks))
			continue;
		if (queue) {
			list_remove(&queue->in_parked);
			scheduler_touch(queue);
			/* Slots that this one makes no use of are for the next. */
			t->unpark |= !list_empty(&job->parked);
		}
		if (list_empty(&job->parked))
			list_remove(&job->in_parked);
	}
}
