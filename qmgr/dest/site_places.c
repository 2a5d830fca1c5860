/* SPDX-License-Identifier: ISC */
/* Where an entry can go now: places on ready connections.
 *
 *	an idle connection, its own or one that another site has no use for
 *	a place in a pipeline that costs nothing	(speed.h)
 *	another connection, if one may be opened and is ready sooner
 *	any place in a pipeline
 */
#include "qmgr/dest/conn_places.h"
#include "qmgr/dest/indoubt.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/site_limits.h"
#include "qmgr/dest/source.h"

#include <string.h>

static bool bytes_fit(const struct site *s, int64_t bytes)
{
	int64_t limit = s->queue.transport->settings->pipeline_bytes;
	return limit == 0 || bytes <= limit;
}

static bool is_usable(const struct conn *c)
{
	return !(c->reserve && site_keeps_back(c->site, c->host)) &&
	       !(c->busy == 0 && conn_yields(c));
}

static struct conn *idle_own(const struct site *s)
{
	if (s->queue.transport->nidle == 0)
		return NULL; /* under load each message asks, and all are busy */
	list_each (link, tmp, &s->open) {
		struct conn *c = list_entry(link, struct conn, in_site);
		if (c->busy == 0 && is_usable(c))
			return c;
	}
	return NULL;
}

static bool is_beyond_provider(const struct conn *c, const struct site *s)
{
	return c->site->provider != s->provider && provider_full(s->provider);
}

/* Its site has nothing for it now, or has had its turn. What failed in TLS under one name says nothing
 * about another: such a connection is lent to nobody who calls the host otherwise. */
static bool to_spare(const struct conn *c, const struct site *s, const char *name)
{
	return !(c->plain && strcmp(c->name, name) != 0) && c->site != s &&
	       c->site->queue.transport == s->queue.transport && !is_beyond_provider(c, s) &&
	       (c->site->queue.state != QUEUE_PLACED || conn_yields(c)) && conn_has_place(c);
}

/* Of the most preferred hosts that have one ready; the newest of the first that has one to spare. Where the operator has
 * suspended a host by the name that it has here, those that were opened under others go on, and are not for this site. */
static struct conn *idle_of_others(const struct site *s)
{
	if (s->connections - s->slow >= site_limit(s))
		return NULL;
	for (int i = 0; i < s->nhost; i++) {
		const struct host *h = s->hosts[i].host;
		if (i > 0 && s->hosts[i].preference != s->hosts[i - 1].preference &&
		    !site_host_out(&s->hosts[i - 1]))
			break;
		if (s->hosts[i].suspended)
			continue;
		for (struct list *l = h->idle.prev; l != &h->idle; l = l->prev) {
			struct conn *c = list_entry(l, struct conn, in_host_idle);
			if (to_spare(c, s, s->hosts[i].name))
				return c;
		}
	}
	return NULL;
}

/* The newest with room for it in its pipeline, so that the older ones fall idle and close when the
 * load drops; of all, one where that comes at no cost to the message. */
static struct conn *in_pipeline(const struct site *s, int64_t size, bool *at_no_cost)
{
	struct conn *deep = NULL;
	*at_no_cost = false;
	if (site_pace_narrow(s) || source_on_trial(s) ||
	    s->pacing->under_way >= learnt_pace_ahead(&s->pacing->learnt))
		return NULL;
	list_each (link, tmp, &s->open) {
		struct conn *c = list_entry(link, struct conn, in_site);
		const struct speed *speed = &c->host->speed;
		if (c->busy == 0 || !is_usable(c) || !bytes_fit(s, c->bytes + size) ||
		    conn_yields(c))
			continue;
		int64_t waited_us = conn_waited_us(c);
		if (c->busy < speed_free_depth(speed, waited_us)) {
			*at_no_cost = true;
			return c;
		}
		if (!deep && c->busy < speed_deep_depth(speed, waited_us))
			deep = c;
	}
	return deep;
}

static bool another_is_sooner(const struct conn *c)
{
	return speed_worth_connecting(&c->host->speed, c->busy, conn_waited_us(c));
}

/* The site may have another connection, or one is being opened for it that is heard of. */
static bool may_connect(const struct site *s, const struct peer *p)
{
	enum constraint c = site_limits_to_connect(s, p).constraint;
	return s->health == SITE_ALIVE &&
	       (c == CONSTRAINT_ORDER ||
		(c == CONSTRAINT_CONNECTING && s->queue.transport->nsilent == 0));
}

static struct conn *place_for(const struct site *s, const struct peer *p)
{
	const struct entry *e = peer_first(p);
	bool another = s->busy < site_limit(s); /* it may be told to use fewer than it has */
	if (e->alone)
		return another ? indoubt_place(s, e) : NULL;
	struct conn *c = another ? idle_own(s) : NULL;
	if (!c && another)
		c = idle_of_others(s);
	if (c)
		return c;
	bool at_no_cost;
	c = in_pipeline(s, (int64_t)p->job->work->content->size, &at_no_cost);
	return c && !at_no_cost && another_is_sooner(c) && may_connect(s, p) ? NULL : c;
}

struct conn *site_place(const struct site *s, const struct peer *p)
{
	return site_paused(s) ? NULL : place_for(s, p);
}
