/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/indoubt.h"

#include "qmgr/dest/conn.h"

#include <string.h>

/* The host of the last attempt, if it is one of the site's and in service. */
static struct site_host *first_choice(const struct site *s, const struct entry *e)
{
	const struct envelope *env = e->peer->job->work->envelope;
	const struct verdict *last = env->rcpt[e->recipient[0]].last;
	for (int i = 0; last && i < s->nhost; i++) {
		struct site_host *it = &s->hosts[i];
		if (strcmp(it->peer, last->host) == 0)
			return !host_answers(it->host) || site_host_out(it) ? NULL : it;
	}
	return NULL;
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
	const struct site_host *first = first_choice(s, e);
	struct conn *other = NULL;
	list_each (link, tmp, &s->open) {
		struct conn *c = list_entry(link, struct conn, in_site);
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
