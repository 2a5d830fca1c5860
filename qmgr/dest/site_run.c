/* SPDX-License-Identifier: ISC */
/* A site at which something has changed gets connections, a timer, or its mail goes elsewhere. */
#include "qmgr/dest/conn.h"
#include "qmgr/dest/dispatch.h"
#include "qmgr/dest/admission.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/source.h"
#include "qmgr/sched/selection.h"

/* Grants come first; they were selected when the connection was begun. */
static void serve_granted(struct site *s)
{
	while (s->queue.ngranted > 0) {
		struct peer *p = list_entry(list_first(&s->queue.granted), struct peer, in_granted);
		struct conn *c = site_place(s, p);
		if (!c)
			break;
		if (s->db->thread.renew(p))
			continue;
		struct entry *e = peer_take(p);
		site_count_delivery(s);
		conn_give(s->db, c, e);
	}
	/* One that is slow to connect leaves its entry to another. */
	while (s->queue.ngranted > s->connecting - s->slow)
		peer_ungrant(list_entry(s->queue.granted.prev, struct peer, in_granted));
}

/* Is there anything to do about it? Where a transport, a message or a host has no connection to spare, the
 * dispatcher sees to that when it is its turn. */
static enum queue_state assess_site(struct site *s, enum constraint *holds)
{
	struct peer *first = selection_first(&s->queue);
	/* A connection that is granted waits for the same time. */
	*holds = CONSTRAINT_IDLE;
	if (s->queue.waiting > 0 && site_paused(s) &&
	    site_paused_until_ms(s) > destdb_now_ms(s->db))
		site_wake_at(s, site_paused_until_ms(s));
	if (!first)
		return QUEUE_QUIET;
	struct admission l = admission_of(s, first);
	*holds = l.constraint;
	if (l.place)
		return QUEUE_PLACED;
	if (!constraint_row(l.constraint)->in_turn)
		return QUEUE_QUIET;
	return s->connections == 0 ? QUEUE_BARE : QUEUE_HUNGRY;
}

/* A site with entries and no place for them may use what others do not. */
static void wait_or_not(struct site *s)
{
	bool has_own = s->queue.state == QUEUE_PLACED && s->connections > 0;
	bool wants = s->queue.backlogs.n > 0 || s->queue.ngranted > 0;
	bool serves = s->health == SITE_ALIVE || s->health == SITE_REFUSED;
	bool could_use = serves && !has_own && wants && !site_paused(s) &&
			 s->connections - s->slow < site_limit(s);
	if (could_use)
		site_wait_for_hosts(s);
	else
		site_wait_no_more(s);
}

/* In line for what its provider has no more of; or what it was called for, and can't use, is for the next. One that waits for its turn
 * stays called: it may yet find that it can't. */
static void wait_for_provider(struct site *s, enum constraint holds)
{
	bool called = s->called;
	s->called = called && holds == CONSTRAINT_ORDER && queue_wants_slot(&s->queue);
	if (!s->provider)
		return;
	bool paced = site_pace_shared(s) && !site_pace_open(s);
	if (s->queue.waiting > 0 && (paced || provider_paused(s->provider))) {
		provider_wait_for_rate(s);
		if (called)
			provider_feed(s->provider);
		return;
	}
	bool opening = holds == CONSTRAINT_CONNECTING && site_pace_shared(s) &&
		       provider_opening_full(s->provider);
	if (opening || holds == CONSTRAINT_PROVIDER_CONNECTION_LIMIT) {
		provider_wait_for_connection(s);
		return;
	}
	provider_wait_no_more(s);
	if (called && holds != CONSTRAINT_ORDER)
		provider_feed(s->provider);
}

static void wait_for_source(struct site *s)
{
	if (s->source && s->queue.waiting > 0 && source_paused(s->source))
		source_wait_for_rate(s);
	else
		source_wait_no_more(s);
}

/* Before anything is made of it here. */
static void move_on(struct site *s)
{
	if (s->moving && s->queue.waiting > 0)
		s->db->thread.move(s);
	s->moving = false;
}

static struct conn *idle_reserve(const struct site *s)
{
	list_each_entry (struct conn, c, in_site, &s->open)
		if (c->reserve && c->busy == 0)
			return c;
	return NULL;
}

/* One that idles beside mail, since that does not overflow. Where it takes the place of one to a better host, and nothing else is
 * under way, the mail would wait until it closes; else others may by and by take more of that host, so that it does overflow. */
static void see_to_reserve(struct site *s)
{
	enum { LOOK_MS = 100 };
	if (s->queue.waiting == 0 || s->queue.state == QUEUE_PLACED || site_paused(s))
		return;
	struct conn *c = idle_reserve(s);
	if (!c || !site_keeps_back(s, c->host))
		return;
	if (s->connections - s->slow >= site_limit(s) && s->busy == 0 && s->connecting == s->slow)
		conn_end(s->db, c);
	else
		site_wake_at(s, destdb_now_ms(s->db) + LOOK_MS);
}

static bool has_idle(const struct site *s)
{
	list_each (link, tmp, &s->open)
		if (list_entry(link, struct conn, in_site)->busy == 0)
			return true;
	return false;
}

void site_run(struct site *s)
{
	enum constraint holds;
	move_on(s);
	site_see_to_health(s);
	site_reserve(s);
	serve_granted(s);
	list_remove(&s->queue.in_parked);
	dispatch_trim(s);
	selection_set(&s->queue, assess_site(s, &holds));
	see_to_reserve(s);
	wait_or_not(s);
	bool called = s->called;
	wait_for_provider(s, holds);
	wait_for_source(s);
	if (!called && s->queue.state == QUEUE_QUIET && list_empty(&s->in_provider) && has_idle(s))
		provider_offer_idle(s->provider);
	if (holds == CONSTRAINT_PROVIDER_CONNECTION_LIMIT)
		dispatch_make_room(s);
	if (holds == CONSTRAINT_HOST_CONNECTION_LIMIT || holds == CONSTRAINT_HOST_PAUSE)
		dispatch_make_room_at_hosts(s);
	site_pass_on(s);
	site_call_back(s);
}
