/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/indoubt.h"

#include "qmgr/dest/conn.h"

#include <assert.h>
#include <string.h>

/* In doubt so often at a host, it is another's. */
enum { DOUBTS_EACH = 2 };

static struct site_host *host_by_peer(const struct site *s, const char *peer)
{
	for (int i = 0; i < s->nhost; i++)
		if (strcmp(s->hosts[i].peer, peer) == 0)
			return &s->hosts[i];
	return NULL;
}

static bool is_in_service(const struct site_host *it)
{
	return host_answers(it->host) && !site_host_out(it);
}

/* The best beside it. */
static struct site_host *another_in_service(const struct site *s, const struct site_host *than)
{
	for (int i = 0; i < s->nhost; i++)
		if (&s->hosts[i] != than && destdb_same_hop(&s->hosts[i], than) &&
		    is_in_service(&s->hosts[i]))
			return &s->hosts[i];
	return NULL;
}

static bool is_anothers_turn(const struct recipient *r)
{
	return r->last->class == VERDICT_IN_DOUBT && r->doubts > 0 && r->doubts % DOUBTS_EACH == 0;
}

static struct site_host *first_choice(const struct site *s, const struct entry *e)
{
	assert(e->n > 0);
	const struct recipient *r = &e->peer->job->work->envelope->rcpt[e->recipient[0]];
	struct site_host *same = r->last ? host_by_peer(s, r->last->host) : NULL;
	if (!same)
		return NULL;
	struct site_host *other = is_anothers_turn(r) ? another_in_service(s, same) : NULL;
	return other ? other : is_in_service(same) ? same : NULL;
}

static bool has_room(const struct site *s, const struct host *h)
{
	return host_has_room(h, s->queue.transport->settings->host_connection_limit,
			     destdb_now_ms(s->db));
}

/* A connection to it is under way, or could be. */
static bool worth_waiting_for(const struct site *s, const struct host *h)
{
	if (s->connecting > 0 && h->connections > h->ready)
		return true;
	return has_room(s, h) && s->connections < site_limit(s) &&
	       !transport_full(s->queue.transport);
}

/* Its host was seen to hang up, and never after more than that. */
static bool may_hang_up(const struct conn *c)
{
	return c->given > 0 && c->host->hangs_up_after > 0 && c->given >= c->host->hangs_up_after;
}

struct conn *indoubt_place(const struct site *s, const struct entry *e)
{
	assert(e->alone);
	const struct site_host *first = first_choice(s, e);
	struct conn *other = NULL;
	list_each_entry (struct conn, c, in_site, &s->open) {
		if (c->busy > 0 || may_hang_up(c))
			continue;
		if (!first || c->host == first->host)
			return c;
		if (!other)
			other = c;
	}
	return other && !worth_waiting_for(s, first->host) ? other : NULL;
}

struct site_host *indoubt_host_to_open(const struct site *s, const struct entry *e)
{
	struct site_host *it = e->alone ? first_choice(s, e) : NULL;
	return it && has_room(s, it->host) ? it : NULL;
}
