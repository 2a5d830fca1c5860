/* SPDX-License-Identifier: ISC */
#include "qmgr/conn_places.h"

#include "base/metrics.h"
#include "qmgr/message.h"

void conn_count(const struct conn *c, int n)
{
	if (!c->closed)
		metrics_add(!c->ready	  ? METRIC_client_connecting
			    : c->busy > 0 ? METRIC_client_busy
					  : METRIC_client_idle,
			    n);
}

static int places(const struct conn *c, int earned)
{
	int depth = earned < c->depth_most ? earned : c->depth_most;
	return depth > c->depth ? depth : c->depth;
}

bool conn_has_place(const struct conn *c)
{
	return !c->worn && !c->alone && c->busy < places(c, c->host->depth);
}

void conn_leave_idle(struct conn *c)
{
	c->host->nidle -= !list_empty(&c->in_idle);
	list_remove(&c->in_idle);
	list_remove(&c->in_host_idle);
}

static void enter_idle(struct conn *c)
{
	list_append(&c->site->transport->idle, &c->in_idle);
	list_append(&c->host->idle, &c->in_host_idle);
	c->host->nidle++;
	/* Another site may want one to this host, and there can be no more. */
	if (!list_empty(&c->host->full))
		site_feed_waiting_for(c->host);
}

/* Newest first: the order is that in which they were begun, whatever has happened since. */
static void enter_open(struct conn *c)
{
	struct list *open = &c->site->open, *at = open->next;
	while (at != open && list_entry(at, struct conn, in_site)->number > c->number)
		at = at->next;
	list_insert_before(at, &c->in_site);
}

/* A place was taken or freed: be in the list that says whether there is one. */
void conn_relist(struct conn *c)
{
	list_remove(&c->in_site);
	conn_leave_idle(c);
	if (c->ready && !c->closed && !c->ending && c->busy == 0)
		enter_idle(c);
	if (!c->closed && conn_has_place(c))
		enter_open(c);
	else if (!c->closed)
		list_prepend(&c->site->rest, &c->in_site);
}

/* The worker closes it after so many; what it were given beyond that would only come back. */
void conn_wear(struct conn *c)
{
	c->given++;
	if (c->most > 0 && c->given >= c->most) {
		c->worn = true;
		conn_relist(c);
	}
}

void conn_set_busy(struct conn *c, int busy)
{
	c->site->busy += (busy > 0) - (c->busy > 0);
	bool had_place = conn_has_place(c), was_idle = c->busy == 0;
	conn_count(c, -1);
	c->busy = busy;
	conn_count(c, 1);
	if (had_place != conn_has_place(c) || was_idle != (busy == 0))
		conn_relist(c);
}

/* The connections of a host share what it has earned. */
void conn_set_depth(struct host *h, int depth)
{
	int before = h->depth;
	h->depth = depth;
	list_each (link, tmp, &h->conns) {
		struct conn *c = list_entry(link, struct conn, in_host);
		bool had = !c->worn && !c->alone && c->busy < places(c, before);
		if (had != conn_has_place(c)) {
			conn_relist(c);
			site_touch(c->site);
		}
	}
}

static bool arrived(const struct delivery *d)
{
	for (uint32_t i = 0; i < d->nrcpt; i++)
		if (d->rcpt[i].verdict && d->rcpt[i].verdict->class == VERDICT_SENT)
			return true;
	return false;
}

void conn_learn_depth(const struct conn *c, const struct delivery *d)
{
	struct host *h = c->host;
	int before = h->depth;
	if (d->wasted)
		conn_set_depth(h, 1);
	else if (h->depth < c->depth_most && arrived(d))
		conn_set_depth(h, h->depth + 1);
	c->site->qmgr->learnt |= h->depth != before;
}

void conn_learn_limits(const struct conn *c, const struct delivery *d)
{
	struct qmgr *q = c->site->qmgr;
	if (d->mode != CONNECTION_FULL)
		host_confused(c->host, d->mode, d->reason, scheduler_now_ms(q));
	if (d->messages_most > 0)
		host_limited(c->host, d->messages_most, scheduler_now_ms(q));
	q->learnt |= d->mode != CONNECTION_FULL || d->messages_most > 0;
}

bool conn_may_go_ahead(const struct conn *c, const struct content *content)
{
	int64_t most = c->site->transport->settings->pipeline_bytes;
	return places(c, c->host->depth) > 1 && c->host->depth > 1 &&
	       (most == 0 || (int64_t)content->size <= most);
}
