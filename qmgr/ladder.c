/* SPDX-License-Identifier: ISC */
#include "qmgr/ladder.h"

#include "qmgr/conn.h"
#include "qmgr/dispatch.h"

static struct ladder bound(enum explain_constraint c, int64_t until_ms, int64_t limit)
{
	return (struct ladder){.constraint = c, .until_ms = until_ms, .limit = limit};
}

static struct ladder by_pace(const struct site *s)
{
	int64_t due_ms = pace_due_ms(&s->pace, &s->transport->settings->destination_rate);
	bool rate = due_ms > scheduler_now_ms(s->qmgr) && due_ms >= s->delay_until_ms;
	return bound(rate ? EXPLAIN_RATE : EXPLAIN_RATE_DELAY, site_paused_until_ms(s),
		     rate ? 0 : 1);
}

static struct ladder by_hosts(const struct site *s)
{
	struct site_host *host;
	int64_t wake_ms, limit = s->transport->settings->host_connection_limit;
	switch (destdb_choose(s->hosts, s->nhost, limit, scheduler_now_ms(s->qmgr), 0, &host,
			      &wake_ms)) {
	case DESTDB_NONE:
		return bound(EXPLAIN_OUT, site_down_until_ms(s), 0);
	case DESTDB_LATER:
		return wake_ms ? bound(EXPLAIN_HOST_PAUSE, wake_ms, 0)
			       : bound(EXPLAIN_HOST_CONNECTION_LIMIT, 0, limit);
	case DESTDB_HOST:
		break;
	}
	return bound(EXPLAIN_ORDER, 0, 0);
}

struct ladder ladder_to_connect(const struct site *s, const struct peer *p)
{
	const struct transport *t = s->transport;
	if (peer_selectable(p) == 0 || s->waiting <= s->connecting - s->slow)
		return bound(EXPLAIN_CONNECTING, 0, 0);
	if (!site_may_grow(s))
		return bound(site_one_at_a_time(s) ? EXPLAIN_RATE_DELAY : EXPLAIN_WINDOW, 0,
			     site_limit(s));
	if (dispatch_silent(s))
		return bound(EXPLAIN_SILENT, 0, DISPATCH_UNPROVEN);
	if (transport_full(t))
		return bound(EXPLAIN_CONNECTION_LIMIT, 0, t->settings->connection_limit);
	if (dispatch_unready_full(t))
		return bound(EXPLAIN_UNREADY_LIMIT, 0, t->settings->connection_limit / 2);
	if (!dispatch_allowed(p))
		return bound(EXPLAIN_SHARE, 0, 0);
	return by_hosts(s);
}

struct ladder ladder_of(const struct site *s, const struct peer *p)
{
	struct ladder l = {.constraint = EXPLAIN_ORDER};
	if (s->health == SITE_SUSPENDED)
		return bound(EXPLAIN_SUSPENDED, 0, 0);
	if (site_paused(s))
		return by_pace(s);
	l.place = site_place(s, p);
	if (l.place)
		return l;
	if (s->health != SITE_ALIVE)
		return bound(s->health == SITE_DEAD ? EXPLAIN_DEAD : EXPLAIN_OUT,
			     site_down_until_ms(s), 0);
	return ladder_to_connect(s, p);
}
