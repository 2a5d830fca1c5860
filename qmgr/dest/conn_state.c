/* SPDX-License-Identifier: ISC */
/* The state of a connection, and every number that follows from it. */
#include "qmgr/dest/conn.h"

#include "qmgr/dest/conn_places.h"
#include "qmgr/dest/provider.h"

#include <assert.h>

static const unsigned may_follow[] = {
#define X(state, follow) follow,
	CONN_STATES(X)
#undef X
};

static void count_stalled(const struct conn *c, int n)
{
	struct site *s = c->site;
	struct transport *t = s->queue.transport;
	bool lingers = conn_lingers(c);
	if (c->stall == CONNECTION_MOVES)
		return;
	t->nstalled += n;
	t->nlingering += lingers ? n : 0;
	s->lingering += lingers ? n : 0;
	if (s->provider)
		s->provider->lingering += lingers ? n : 0;
	assert(s->lingering >= 0 && s->lingering <= t->nlingering && t->nlingering <= t->nstalled);
}

static void count_in(struct conn *c, int n)
{
	struct site *s = c->site;
	struct transport *t = s->queue.transport;
	enum conn_state is = c->state;
	bool unready = conn_unready(c), told = conn_told_to_close(c);
	if (is == CONN_CLOSED)
		return;
	s->connections += n;
	if (s->provider) {
		s->provider->connections += n;
		s->provider->connecting += unready ? n : 0;
		s->provider->slow += is == CONN_PROBING ? n : 0;
		s->provider->ending += told ? n : 0;
	}
	count_stalled(c, n);
	s->connecting += unready ? n : 0;
	s->slow += is == CONN_PROBING ? n : 0;
	s->ending += told ? n : 0;
	t->connections += n;
	t->ending += told ? n : 0;
	t->nunready += unready ? n : 0;
	t->nprobing += is == CONN_PROBING ? n : 0;
	c->host->connections += n;
	c->host->ready += conn_stands(c) ? n : 0;
	c->host->unanswered += is == CONN_PROBING ? n : 0;
	assert(s->connections >= 0 && s->connecting >= 0 && s->slow >= 0 && s->ending >= 0);
	assert(t->connections >= 0 && t->ending >= 0 && t->nunready >= 0 && t->nprobing >= 0);
	assert(c->host->connections >= 0 && c->host->ready >= 0 && c->host->unanswered >= 0);
	assert(!s->provider || s->provider->connections >= s->connections);
	assert(!s->provider || s->provider->connecting >= s->connecting);
	assert(!s->provider || s->provider->ending >= s->ending);
}

void conn_enter(struct conn *c)
{
	assert(conn_unready(c));
	assert(c->busy == 0 && c->stall == CONNECTION_MOVES);
	count_in(c, 1);
	conn_count(c, 1);
	list_append(&c->site->rest, &c->in_site);
	list_append(&c->host->conns, &c->in_host);
}

static void leave_silent(struct conn *c)
{
	c->site->queue.transport->nsilent -= !list_empty(&c->in_silent);
	assert(c->site->queue.transport->nsilent >= 0);
	list_remove(&c->in_silent);
}

void conn_is_silent(struct conn *c)
{
	assert(conn_unready(c));
	leave_silent(c);
	list_append(&c->site->queue.transport->silent, &c->in_silent);
	c->site->queue.transport->nsilent++;
}

void conn_set_stall(struct conn *c, enum connection_slowness stall)
{
	bool may_leave = (stall == CONNECTION_STALLED || stall == CONNECTION_STUCK) &&
			 c->state != CONN_LEAVING;
	assert(!conn_unready(c) && c->state != CONN_CLOSED);
	int owed = (stall != CONNECTION_MOVES) - (c->stall != CONNECTION_MOVES);
	count_stalled(c, -1);
	c->stall = stall;
	count_stalled(c, 1);
	conn_count_owed(c, owed * c->busy);
	if (owed > 0)
		conn_tell_home(c);
	if (!may_leave)
		list_remove(&c->in_stalled);
	else if (list_empty(&c->in_stalled))
		list_append(&c->site->queue.transport->stalled, &c->in_stalled);
}

/* The place that has become free may be for a probe that waits. */
static void call_who_probes(const struct transport *t)
{
	struct list *first = list_first(&t->probing);
	if (first)
		site_touch(list_entry(first, struct site, in_probing));
}

void conn_move(struct conn *c, enum conn_state to)
{
	assert(may_follow[c->state] & 1u << to);
	assert(to != CONN_LEAVING || !list_empty(&c->in_stalled));
	assert(to != CONN_READY || c->depth > 0);
	conn_count(c, -1);
	count_in(c, -1);
	c->state = to;
	count_in(c, 1);
	conn_count(c, 1);
	if (!conn_unready(c))
		leave_silent(c);
	if (to == CONN_LEAVING || to == CONN_CLOSED)
		list_remove(&c->in_stalled);
	if (to == CONN_CLOSED) {
		list_remove(&c->in_host);
		provider_feed(c->site->provider);
		call_who_probes(c->site->queue.transport);
	} else if (!conn_unready(c) || to == CONN_PROBING) {
		provider_opened(c->site->provider);
	}
	conn_relist(c);
}

void conn_lend(struct conn *c, struct site *to)
{
	assert(c->state == CONN_READY && c->busy == 0 &&
	       c->site->queue.transport == to->queue.transport);
	assert(c->site != to);
	count_in(c, -1);
	site_touch(c->site); /* it may use another */
	c->site = to;
	count_in(c, 1);
	c->turn = 0;
	c->reserve = false;
	conn_relist(c);
}
