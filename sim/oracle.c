/* SPDX-License-Identifier: ISC */
#include "sim/oracle.h"

#include "base/mem.h"
#include "sim/calendar.h"

#include <assert.h>
#include <stdlib.h>

struct oracle_conn {
	const struct scenario_host *host;
	int64_t free_us; /* what it was given is done */
};

struct oracle {
	const struct scenario *scenario;
	const struct conf_transport *transport;
	int n, most;
	struct oracle_conn *conn;
	int64_t *given; /* to each host */
};

/* Where a message could go, and when it would be done. */
struct oracle_offer {
	const struct scenario_host *host;
	struct oracle_conn *conn; /* NULL: a new one */
	int64_t done_us;
	int64_t begun_us; /* without what it takes there alone */
};

static int64_t work_us(const struct scenario_host *h)
{
	return (h->transaction + h->recipient) * 1000;
}

/* As model_client.c: what is behind another waits for all of the distance, half of it, or none. */
static int64_t done_us(const struct oracle_conn *c, int64_t now_us)
{
	int64_t way_us = c->host->round_trip * 1000, hidden_us = 0;
	if (c->host->depth >= 2)
		hidden_us = c->host->depth > 2 ? way_us : way_us / 2;
	int64_t alone_us = now_us + way_us, behind_us = c->free_us + way_us - hidden_us;
	return (alone_us > behind_us ? alone_us : behind_us) + work_us(c->host);
}

/* An outage begins in between. */
static bool cut_off(const struct scenario_host *h, int64_t from_us, int64_t to_us)
{
	int64_t next_ms = calendar_next_outage_ms(h, from_us / 1000);
	return next_ms != INT64_MAX && next_ms * 1000 <= to_us;
}

static void close_conn(struct oracle *o, int i)
{
	assert(i >= 0 && i < o->n);
	o->conn[i] = o->conn[--o->n];
}

/* Those that have been idle for too long, or that an outage has ended. */
static void close_old(struct oracle *o, int64_t now_us)
{
	int64_t idle_us = o->transport->connection_idle_timeout * 1000;
	for (int i = o->n - 1; i >= 0; i--) {
		const struct oracle_conn *c = &o->conn[i];
		bool idle = c->free_us + idle_us < now_us;
		if (idle || (c->free_us < now_us && cut_off(c->host, c->free_us, now_us)))
			close_conn(o, i);
	}
}

static int conns_of(const struct oracle *o, const struct scenario_host *h)
{
	int n = 0;
	for (int i = 0; i < o->n; i++)
		n += o->conn[i].host == h;
	return n;
}

static bool has_room(const struct oracle *o, const struct scenario_host *h, int64_t now_us)
{
	int64_t limit = calendar_limit(h, now_us / 1000);
	int n = conns_of(o, h);
	return o->n < o->most && (limit == 0 || n < limit) &&
	       (o->transport->host_connection_limit == 0 ||
		n < o->transport->host_connection_limit);
}

/* After outages that the message would not survive. */
static int64_t new_done_us(const struct scenario_host *h, int64_t now_us)
{
	int64_t at_us = now_us, end_us = 0;
	for (int tries = 0; tries < 1000; tries++) {
		int64_t back_ms = calendar_back_ms(h, at_us / 1000);
		if (back_ms > at_us / 1000)
			at_us = back_ms * 1000;
		end_us = at_us + (h->connect + h->greeting + h->round_trip) * 1000 + work_us(h);
		if (!cut_off(h, at_us, end_us))
			break;
		at_us = calendar_next_outage_ms(h, at_us / 1000) * 1000;
	}
	return end_us;
}

static int64_t given_to(const struct oracle *o, const struct scenario_host *h)
{
	return o->given[h - o->scenario->host];
}

static void weigh_offer(const struct oracle *o, const struct scenario_host *h,
			struct oracle_conn *c, int64_t end_us, struct oracle_offer *best)
{
	struct oracle_offer it = {h, c, end_us, end_us - h->round_trip * 1000 - work_us(h)};
	bool first = !best->host, other = !first && best->host != h;
	bool better = first || it.begun_us < best->begun_us;
	if (other && it.begun_us == best->begun_us)
		better = given_to(o, h) < given_to(o, best->host);
	if (better)
		*best = it;
}

static void look_at(const struct oracle *o, const struct scenario_host *h, int64_t now_us,
		    struct oracle_offer *best)
{
	for (int i = 0; i < o->n; i++) {
		struct oracle_conn *c = &o->conn[i];
		if (c->host != h)
			continue;
		int64_t at_us = c->free_us > now_us ? c->free_us : now_us,
			end_us = done_us(c, now_us);
		/* In the outage it is lost, and comes to a new one, which it is then counted as. */
		if (cut_off(h, now_us, end_us))
			end_us = new_done_us(h, at_us);
		weigh_offer(o, h, c, end_us, best);
	}
	if (!has_room(o, h, now_us) && conns_of(o, h) > 0)
		return;
	int64_t end_us = new_done_us(h, now_us);
	if (o->n < o->most)
		weigh_offer(o, h, NULL, end_us, best);
}

/* The offer need not wait there until others are done. */
static bool at_once(const struct oracle_offer *it, int64_t now_us)
{
	return it->host && it->begun_us <= now_us + (it->host->connect + it->host->greeting) * 1000;
}

/* By preference, as far as hosts are in service: the first that has a place, else where one is free
 * first; any where all are out. */
static struct oracle_offer best_offer(const struct oracle *o, const struct scenario_site *s,
				      int64_t now_us, bool any)
{
	struct oracle_offer best = {0};
	for (int i = 0; i < s->nmx; i++) {
		const struct scenario_host *h = &o->scenario->host[s->to[i].host];
		bool lesser = i > 0 && s->to[i].preference != s->to[i - 1].preference;
		if (lesser && at_once(&best, now_us))
			break;
		if (any || !calendar_out(h, now_us / 1000))
			look_at(o, h, now_us, &best);
	}
	return best;
}

static int64_t bind_one(struct oracle *o, const struct scenario_site *s, int64_t now_us)
{
	close_old(o, now_us);
	struct oracle_offer best = best_offer(o, s, now_us, false);
	if (!best.host)
		best = best_offer(o, s, now_us, true);
	/* All connections are to hosts of another preference: they end for it. */
	if (!best.host) {
		o->n = 0;
		best = best_offer(o, s, now_us, true);
	}
	if (!best.conn) {
		assert(best.host && o->n < o->most);
		best.conn = &o->conn[o->n++];
		best.conn->host = best.host;
	}
	o->given[best.host - o->scenario->host]++;
	best.conn->free_us = best.done_us;
	return best.done_us - now_us;
}

double oracle_mean_ms(const struct scenario *s, const struct arrivals *a)
{
	struct oracle o = {.scenario = s, .transport = &s->conf->transport[0]};
	int64_t limit = o.transport->destination_concurrency_limit;
	double sum_us = 0;
	o.most = limit > 0 ? (int)limit : a->n + 1;
	o.conn = mem_zalloc((size_t)o.most * sizeof *o.conn);
	o.given = mem_zalloc((size_t)(s->nhost + 1) * sizeof *o.given);
	for (int i = 0; i < a->n; i++)
		sum_us += (double)bind_one(&o, &s->site[0], a->item[i].at_us);
	free(o.conn);
	free(o.given);
	return a->n > 0 ? sum_us / 1000 / a->n : 0;
}
