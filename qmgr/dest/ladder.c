/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/ladder.h"

#include "qmgr/dest/conn.h"
#include "qmgr/dest/dispatch.h"

static struct ladder bound(enum constraint c, int64_t until_ms, int64_t limit)
{
	return (struct ladder){.constraint = c, .until_ms = until_ms, .limit = limit};
}

static struct ladder by_pace(const struct site *s)
{
	int64_t due_ms = site_rate_due_ms(s);
	bool rate = due_ms > destdb_now_ms(s->db) && due_ms >= s->delay_until_ms;
	return bound(rate ? CONSTRAINT_RATE : CONSTRAINT_RATE_DELAY, site_paused_until_ms(s),
		     rate ? 0 : 1);
}

static struct ladder by_hosts(const struct site *s)
{
	struct site_host *host;
	int64_t wake_ms, limit = s->queue.transport->settings->host_connection_limit;
	switch (destdb_choose(s->hosts, s->nhost, limit, destdb_now_ms(s->db), site_overflows(s), 0,
			      &host, &wake_ms)) {
	case DESTDB_NONE:
		return bound(CONSTRAINT_OUT, site_down_until_ms(s), 0);
	case DESTDB_LATER:
		return wake_ms ? bound(CONSTRAINT_HOST_PAUSE, wake_ms, 0)
			       : bound(CONSTRAINT_HOST_CONNECTION_LIMIT, 0, limit);
	case DESTDB_HOST:
		break;
	}
	return bound(CONSTRAINT_ORDER, 0, 0);
}

struct ladder ladder_to_connect(const struct site *s, const struct peer *p)
{
	const struct transport *t = s->queue.transport;
	if (peer_selectable(p) == 0 || s->queue.waiting <= s->connecting - s->slow)
		return bound(CONSTRAINT_CONNECTING, 0, 0);
	if (!site_may_grow(s))
		return bound(site_one_at_a_time(s) ? CONSTRAINT_RATE_DELAY : CONSTRAINT_WINDOW, 0,
			     site_limit(s));
	if (dispatch_silent(s))
		return bound(CONSTRAINT_SILENT, 0, DISPATCH_UNPROVEN);
	if (transport_full(t))
		return bound(CONSTRAINT_CONNECTION_LIMIT, 0, t->settings->connection_limit);
	if (dispatch_unready_full(t))
		return bound(CONSTRAINT_UNREADY_LIMIT, 0, t->settings->connection_limit / 2);
	if (!dispatch_allowed(p))
		return bound(CONSTRAINT_SHARE, 0, 0);
	return by_hosts(s);
}

struct ladder ladder_of(const struct site *s, const struct peer *p)
{
	struct ladder l = {.constraint = CONSTRAINT_ORDER};
	if (s->health == SITE_SUSPENDED)
		return bound(CONSTRAINT_SUSPENDED, 0, 0);
	if (site_paused(s))
		return by_pace(s);
	l.place = site_place(s, p);
	if (l.place)
		return l;
	if (s->health != SITE_ALIVE)
		return bound(s->health == SITE_DEAD ? CONSTRAINT_DEAD : CONSTRAINT_OUT,
			     site_down_until_ms(s), 0);
	return ladder_to_connect(s, p);
}
