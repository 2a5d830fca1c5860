/* SPDX-License-Identifier: ISC */
#include "qmgr/router.h"

#include "base/mailaddr.h"
#include "base/mem.h"
#include "qmgr/dest/suspend.h"
#include "qmgr/nexthop.h"
#include "qmgr/outcome.h"
#include "qmgr/sched/flow.h"
#include "qmgr/sched/pool.h"
#include "qmgr/sched/share.h"
#include "qmgr/sched/shelf.h"

#include <assert.h>
#include <stdlib.h>

/* Where it names no transport but the default one, that of the flow carries it, whatever a provider wants. */
const struct route *router_route(struct message *m, uint32_t recipient)
{
	struct qmgr *q = m->qmgr;
	const struct conf_transport *by = m->work.flow->settings->by;
	const struct route *found = route_find(q->routes, m->work.envelope->sender,
					       m->work.envelope->rcpt[recipient].address);
	if (!by || found->by != &q->sched.conf->transport[0])
		return found;
	q->flow_route = *found;
	q->flow_route.by = by;
	q->flow_route.named = true;
	return &q->flow_route;
}

struct job *router_job(struct message *m, const struct route *route)
{
	return job_get(&m->work, transport_get(&m->qmgr->sched, route->by));
}

void router_end(struct message *m, uint32_t recipient, const struct route *route)
{
	static const struct outcome_context none;
	struct verdict *v;
	if (route->action == ROUTE_DISCARD)
		v = verdict_printf(VERDICT_SENT, 0, "2.0.0", NULL, "discarded%s%s",
				   *route->text ? ": " : "", route->text);
	else
		v = verdict_new(route->dsn[0] == '4' ? VERDICT_DEFERRED : VERDICT_FAILED, 0,
				route->dsn, NULL, route->text);
	outcome_apply(m, recipient, v, &none);
	verdict_unref(v);
}

static bool allowed(const struct message *m)
{
	const struct conf_queue *limits = &m->qmgr->sched.conf->queue;
	return share_allows(limits, m->lookups,
			    limits->router_concurrency_limit - m->qmgr->lookups);
}

/* Its domain is suspended: it waits in the queue, whatever its site is doing. */
static void put_off(struct job *job, uint32_t recipient)
{
	struct outcome_context context = {.transport = job->transport, .untried = true};
	struct message *m = message_of_work(job->work);
	const char *domain = mailaddr_domain(m->work.envelope->rcpt[recipient].address);
	struct verdict *why =
		suspend_verdict("domain", suspend_domain_until_ms(&m->qmgr->db, domain));
	outcome_apply(m, recipient, why, &context);
	verdict_unref(why);
	m->put_off = true;
	job->routing--;
	pool_free(job, 1);
}

/* To the transport that its provider wants. False: there is no room for it in memory now. */
static bool move(struct job *from, uint32_t recipient, struct transport *by)
{
	struct message *m = message_of_work(from->work);
	if (pool_transport_room(by) <= 0) {
		m->qmgr->router_due = true; /* at the next wake-up */
		return false;
	}
	struct job *to = job_get(from->work, by);
	pool_take(to);
	to->routing++;
	assert(from->routing > 0);
	from->routing--;
	pool_free(from, 1);
	shelf_resize(from);
	router_add(to, recipient);
	return true;
}

/* False: it needs a look-up, or room, and may not have that now. */
static bool route_recipient(struct job *job, uint32_t recipient, const struct route *way)
{
	struct message *m = message_of_work(job->work);
	if (way->action != ROUTE_DELIVER) { /* since it was read, the tables have changed */
		router_end(m, recipient, way);
		job->routing--;
		pool_free(job, 1);
		return true;
	}
	const char *address = m->work.envelope->rcpt[recipient].address;
	if (m->qmgr->db.suspended &&
	    suspend_covers_domain(&m->qmgr->db, mailaddr_domain(address))) {
		put_off(job, recipient);
		return true;
	}
	struct nexthop *n = nexthop_of(job, recipient, way);
	if (nexthop_known(n) && n->elsewhere)
		return move(job, recipient, n->elsewhere);
	if (nexthop_known(n)) {
		nexthop_enter(n, job, recipient);
		return true;
	}
	if (n->lookup.asking == 0) {
		if (!allowed(m))
			return false;
		m->lookups++;
		m->qmgr->lookups++;
		nexthop_ask(n, job, recipient);
	}
	nexthop_wait(n, job, recipient);
	return true;
}

void router_add_by(struct job *job, uint32_t recipient, const struct route *way)
{
	struct message *m = message_of_work(job->work);
	if (route_recipient(job, recipient, way))
		return;
	if (m->nto_route == m->to_route_cap) {
		m->to_route_cap = m->to_route_cap ? m->to_route_cap * 2 : 16;
		m->to_route = mem_realloc(m->to_route, m->to_route_cap * sizeof *m->to_route);
	}
	m->to_route[m->nto_route++] = (struct waiting_recipient){job, recipient};
	if (list_empty(&m->in_router))
		list_append(&m->qmgr->to_route, &m->in_router);
}

void router_add(struct job *job, uint32_t recipient)
{
	router_add_by(job, recipient, router_route(message_of_work(job->work), recipient));
}

static bool moves(const struct peer *p, uint32_t recipient)
{
	return nexthop_moves(p->job, recipient, site_of_queue(p->queue));
}

/* The entry ends, and its recipients are as if they had just been read. */
static void route_anew(struct peer *p)
{
	struct job *job = p->job;
	struct entry *e = peer_drop(p);
	for (uint32_t i = 0; i < e->n; i++) {
		job->routing++;
		router_add(job, e->recipient[i]);
	}
	job_entry_done(e);
}

void router_move(struct site *s)
{
	list_each (link, tmp, &s->queue.peers) {
		struct peer *p = list_entry(link, struct peer, in_queue);
		if (!moves(p, peer_first(p)->recipient[0]))
			continue;
		for (int n = p->waiting; n > 0; n--)
			route_anew(p);
		s->db->thread.check(p->job->work);
	}
}

bool router_may_move(const struct entry *e)
{
	return moves(e->peer, e->recipient[0]);
}

static void forget(struct message *m)
{
	list_remove(&m->in_router);
	free(m->to_route);
	m->to_route = NULL;
	m->to_route_first = m->nto_route = m->to_route_cap = 0;
}

static void run_message(struct message *m)
{
	while (m->to_route_first < m->nto_route) {
		struct waiting_recipient *w = &m->to_route[m->to_route_first];
		if (!route_recipient(w->job, w->recipient, router_route(m, w->recipient)))
			return;
		m->to_route_first++;
	}
	forget(m);
	message_check(m->qmgr, m);
}

static int count_waiting(const struct qmgr *q)
{
	int n = 0;
	for (const struct list *link = q->to_route.next; link != &q->to_route; link = link->next)
		n++;
	return n;
}

/* Who has had his turn goes to the end: with more messages than look-ups nobody is always the last. */
void router_run(struct qmgr *q)
{
	if (!q->router_due)
		return;
	q->router_due = false;
	int64_t limit = q->sched.conf->queue.router_concurrency_limit;
	for (int turns = count_waiting(q); turns > 0 && q->lookups < limit; turns--) {
		struct list *link = list_first(&q->to_route);
		if (!link)
			return;
		list_remove(link);
		list_append(&q->to_route, link);
		run_message(list_entry(link, struct message, in_router));
	}
}

void router_ended(struct message *m)
{
	assert(m->lookups > 0 && m->qmgr->lookups > 0);
	m->lookups--;
	m->qmgr->lookups--;
	m->qmgr->router_due = true;
}

void router_drop(struct message *m)
{
	for (size_t i = m->to_route_first; i < m->nto_route; i++) {
		struct job *job = m->to_route[i].job;
		job->routing--;
		pool_free(job, 1);
	}
	forget(m);
}
