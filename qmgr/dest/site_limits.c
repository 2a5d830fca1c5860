/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/site_limits.h"

#include "base/clock.h"
#include "qmgr/dest/conn.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/source.h"
#include "qmgr/dest/suspend.h"
#include "qmgr/sched/flow_rate.h"
#include "qmgr/sched/share.h"

#include <assert.h>

/* Of one site and peer. */
struct question {
	const struct site *s;
	const struct peer *p;
	bool chosen; /* the host of a connection: */
	enum destdb_choice choice;
	int64_t wake_ms;
};

struct row {
	enum constraint constraint;
	bool (*holds)(struct question *, struct limit *);
};

static bool is_suspended(struct question *q, struct limit *l)
{
	int64_t until_ms = suspend_site_until_ms(q->s->db, q->s);
	l->until_ms = until_ms ? destdb_now_ms(q->s->db) + until_ms - clock_wall_ms() : 0;
	return q->s->health == SITE_SUSPENDED;
}

static bool is_paced(struct question *q, struct limit *l)
{
	l->until_ms = site_pace_due_ms(q->s);
	if (l->until_ms <= destdb_now_ms(q->s->db))
		l->until_ms = 0; /* when what is under way has come home */
	return !site_pace_open(q->s);
}

static bool rate_is_later(const struct site *s)
{
	int64_t due_ms = site_rate_due_ms(s);
	return due_ms > destdb_now_ms(s->db) && due_ms >= s->delay_until_ms;
}

static bool is_rated(struct question *q, struct limit *l)
{
	l->until_ms = site_rated_until_ms(q->s);
	return site_rated(q->s) && rate_is_later(q->s);
}

static bool rate_delay(struct question *q, struct limit *l)
{
	l->until_ms = site_rated_until_ms(q->s);
	l->allows = 1;
	return site_rated(q->s);
}

static bool provider_rate(struct question *q, struct limit *l)
{
	l->until_ms = provider_due_ms(q->s->provider);
	return provider_paused(q->s->provider);
}

static bool source_rate(struct question *q, struct limit *l)
{
	l->until_ms = source_due_ms(q->s->source);
	return source_paused(q->s->source);
}

static bool flow_rate(struct question *q, struct limit *l)
{
	const struct flow *f = q->p->job->work->flow;
	l->until_ms = flow_rate_due_ms(f);
	return f->barred && peer_selectable(q->p) > 0;
}

static bool is_dead(struct question *q, struct limit *l)
{
	l->until_ms = site_down_until_ms(q->s);
	return q->s->health == SITE_DEAD;
}

static bool is_out(struct question *q, struct limit *l)
{
	l->until_ms = site_down_until_ms(q->s);
	return q->s->health == SITE_OUT;
}

static bool is_connecting(struct question *q, struct limit *l)
{
	(void)l;
	int under_way = q->s->connecting - q->s->slow;
	int64_t most = site_pace_narrow(q->s) || source_on_trial(q->s) ? 1 : q->s->queue.waiting;
	if (site_pace_shared(q->s) && provider_opening_full(q->s->provider))
		return true;
	return peer_selectable(q->p) == 0 || q->s->queue.waiting <= under_way || under_way >= most;
}

static bool one_at_a_time(struct question *q, struct limit *l)
{
	l->allows = site_limit(q->s);
	return site_one_at_a_time(q->s) && !site_may_grow(q->s);
}

static bool is_window_full(struct question *q, struct limit *l)
{
	l->allows = site_limit(q->s);
	return !site_may_grow(q->s);
}

int site_limits_silent_count(const struct site *s)
{
	int n = 0;
	list_each_entry (const struct conn, c, in_silent, &s->queue.transport->silent)
		n += c->site == s && c->state == CONN_CONNECTING;
	return n;
}

bool site_limits_silent(const struct site *s)
{
	return s->connecting - s->slow >= SITE_LIMITS_UNPROVEN && !site_proven(s) &&
	       site_limits_silent_count(s) > 0;
}

static bool is_silent(struct question *q, struct limit *l)
{
	l->allows = SITE_LIMITS_UNPROVEN;
	return site_limits_silent(q->s);
}

static bool provider_connection_limit(struct question *q, struct limit *l)
{
	bool full = provider_full(q->s->provider);
	l->allows = full ? q->s->provider->settings->connection_limit : 0;
	return full;
}

static bool connection_limit(struct question *q, struct limit *l)
{
	l->allows = q->s->queue.transport->settings->connection_limit;
	return transport_full(q->s->queue.transport);
}

bool site_limits_probes_full(const struct transport *t)
{
	enum { PART = 4 };
	int64_t limit = t->settings->connection_limit;
	return limit > 0 && t->nprobing >= (limit + PART - 1) / PART;
}

bool site_limits_unready_full(const struct transport *t)
{
	int64_t limit = t->settings->connection_limit;
	return limit > 1 && 2 * (int64_t)t->nsilent >= limit;
}

bool site_limits_stalled_most(const struct transport *t)
{
	return 2 * (int64_t)t->nstalled >= t->settings->connection_limit;
}

static bool unready_limit(struct question *q, struct limit *l)
{
	l->allows = q->s->queue.transport->settings->connection_limit / 2;
	return site_limits_unready_full(q->s->queue.transport);
}

/* An idle connection is free for it too. */
bool site_limits_share_allows(const struct peer *p)
{
	const struct transport *t = p->job->transport;
	int64_t limit = t->settings->connection_limit;
	int64_t spare = limit > 0 ? limit - t->connections + t->nidle : INT32_MAX;
	return share_allows(&t->scheduler->conf->queue, p->job->concurrency, spare);
}

static bool is_share_used(struct question *q, struct limit *l)
{
	(void)l;
	return !site_limits_share_allows(q->p);
}

/* Three rows depend on it. */
static enum destdb_choice choice_of(struct question *q)
{
	const struct site *s = q->s;
	struct site_host *host;
	if (!q->chosen)
		q->choice = destdb_choose(
			s->hosts, s->nhost, s->queue.transport->settings->host_connection_limit,
			destdb_now_ms(s->db), site_overflows(s), 0, &host, &q->wake_ms);
	q->chosen = true;
	return q->choice;
}

static bool no_host(struct question *q, struct limit *l)
{
	l->until_ms = site_down_until_ms(q->s);
	return choice_of(q) == DESTDB_NONE;
}

static bool host_pause(struct question *q, struct limit *l)
{
	bool later = choice_of(q) == DESTDB_LATER;
	l->until_ms = q->wake_ms;
	return later && q->wake_ms > 0;
}

static bool host_connection_limit(struct question *q, struct limit *l)
{
	l->allows = q->s->queue.transport->settings->host_connection_limit;
	return choice_of(q) == DESTDB_LATER;
}

static const struct row to_begin[] = {
	{CONSTRAINT_SUSPENDED, is_suspended},
	{CONSTRAINT_PACE, is_paced},
	{CONSTRAINT_RATE, is_rated},
	{CONSTRAINT_RATE_DELAY, rate_delay},
	{CONSTRAINT_PROVIDER_RATE, provider_rate},
	{CONSTRAINT_SOURCE_RATE, source_rate},
	{CONSTRAINT_FLOW_RATE, flow_rate},
};

static const struct row of_health[] = {
	{CONSTRAINT_DEAD, is_dead},
	{CONSTRAINT_OUT, is_out},
};

static const struct row to_connect[] = {
	{CONSTRAINT_CONNECTING, is_connecting},
	{CONSTRAINT_RATE_DELAY, one_at_a_time},
	{CONSTRAINT_WINDOW, is_window_full},
	{CONSTRAINT_SILENT, is_silent},
	{CONSTRAINT_PROVIDER_CONNECTION_LIMIT, provider_connection_limit},
	{CONSTRAINT_CONNECTION_LIMIT, connection_limit},
	{CONSTRAINT_UNREADY_LIMIT, unready_limit},
	{CONSTRAINT_SHARE, is_share_used},
	{CONSTRAINT_OUT, no_host},
	{CONSTRAINT_HOST_PAUSE, host_pause},
	{CONSTRAINT_HOST_CONNECTION_LIMIT, host_connection_limit},
};

static struct limit first_of(const struct row *row, size_t n, const struct site *s,
			     const struct peer *p)
{
	struct question q = {.s = s, .p = p};
	for (size_t i = 0; i < n; i++) {
		struct limit l = {.constraint = row[i].constraint};
		if (row[i].holds(&q, &l))
			return l;
	}
	return (struct limit){.constraint = CONSTRAINT_ORDER};
}

#define FIRST_OF(rows, s, p) first_of(rows, sizeof(rows) / sizeof(rows)[0], s, p)

struct limit site_limits_to_begin(const struct site *s, const struct peer *p)
{
	assert(p->queue == &s->queue);
	return FIRST_OF(to_begin, s, p);
}

struct limit site_limits_of_health(const struct site *s, const struct peer *p)
{
	assert(p->queue == &s->queue);
	return FIRST_OF(of_health, s, p);
}

struct limit site_limits_to_connect(const struct site *s, const struct peer *p)
{
	assert(p->queue == &s->queue);
	return FIRST_OF(to_connect, s, p);
}

static bool has_row(const struct row *row, size_t n, enum constraint c)
{
	for (size_t i = 0; i < n; i++)
		if (row[i].constraint == c)
			return true;
	return false;
}

bool site_limits_has(enum constraint c)
{
	return has_row(to_begin, sizeof to_begin / sizeof to_begin[0], c) ||
	       has_row(of_health, sizeof of_health / sizeof of_health[0], c) ||
	       has_row(to_connect, sizeof to_connect / sizeof to_connect[0], c);
}
