/* SPDX-License-Identifier: ISC */
#include "qmgr/router.h"

#include "base/keyed_hash.h"
#include "base/magic.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/suspend.h"
#include "qmgr/nexthop.h"
#include "qmgr/outcome.h"
#include "qmgr/sched/flow.h"
#include "qmgr/sched/pool.h"
#include "qmgr/sched/share.h"
#include "qmgr/sched/shelf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { BRISK_MS = 1000, LAGGING_SCALE = 20 };

const struct route *router_route(struct message *m, uint32_t recipient)
{
	assert(recipient < m->work.envelope->nrcpt);
	return route_find_of_flow(m->qmgr->routes, m->work.flow->settings, m->work.envelope->sender,
				  m->work.envelope->rcpt[recipient].address);
}

struct job *router_job(struct message *m, const struct route *route)
{
	return job_get(&m->work, transport_get(&m->qmgr->sched, route->by));
}

void router_end(struct message *m, uint32_t recipient, const struct route *route)
{
	const struct outcome_context none = {.discarded = route->action == ROUTE_DISCARD};
	struct verdict *v;
	assert(route->action != ROUTE_DELIVER);
	if (route->action == ROUTE_DISCARD)
		v = verdict_printf(VERDICT_SENT, 0, "2.0.0", NULL, "discarded%s%s",
				   *route->text ? ": " : "", route->text);
	else
		v = verdict_new(route->dsn[0] == '4' ? VERDICT_DEFERRED : VERDICT_FAILED, 0,
				route->dsn, NULL, route->text);
	outcome_apply(m, recipient, v, &none);
	verdict_unref(v);
}

static bool may_look_up(const struct message *m)
{
	const struct conf_queue *limits = &m->qmgr->sched.conf->queue;
	return share_allows(limits, m->lookups,
			    limits->router_concurrency_limit - m->qmgr->lookups);
}

/* While somebody waits for a look-up. */
static void keep_ticking(struct qmgr *q)
{
	const struct list *first = list_first(&q->brisk);
	if (!first || list_empty(&q->to_route) || timer_active(&q->router_tick))
		return;
	int64_t since_ms = list_entry(first, struct nexthop, in_brisk)->asked_ms;
	int64_t left_ms = since_ms + BRISK_MS - scheduler_now_ms(&q->sched);
	loop_timer_in(q->sched.loop, &q->router_tick, left_ms > 0 ? left_ms : BRISK_MS);
}

static void on_tick(void *owner)
{
	struct qmgr *q = owner;
	q->router_due = true;
	q->db.thread.settle(q->db.thread.context);
}

/* by NULL: nobody waits for it, and whoever it is for may end meanwhile. */
static void begin_lookup(struct nexthop *n, struct message *by, const struct job *job,
			 uint32_t recipient, const struct route *way)
{
	assert(n->lookup.asking == 0 && list_empty(&n->in_brisk));
	struct qmgr *q = n->qmgr;
	n->asked_by = by;
	if (by)
		by->lookups++;
	q->lookups++;
	n->asked_ms = scheduler_now_ms(&q->sched);
	list_append(&q->brisk, &n->in_brisk);
	nexthop_ask(n, job, recipient, way);
	assert(n->lookup.asking > 0);
}

/* Those that lag leave their places to others. */
static void let_lag(struct qmgr *q)
{
	int64_t most = LAGGING_SCALE * q->sched.conf->queue.router_concurrency_limit;
	int64_t before_ms = scheduler_now_ms(&q->sched) - BRISK_MS;
	struct list *first;
	while (q->lagging < most && (first = list_first(&q->brisk)) &&
	       list_entry(first, struct nexthop, in_brisk)->asked_ms <= before_ms) {
		list_remove(first);
		assert(q->lookups > 0);
		q->lookups--;
		q->lagging++;
	}
}

/* Something of it has ended. May free it. */
static void check_message(struct message *m)
{
	m->qmgr->db.thread.check(&m->work);
}

/* A recipient has its verdict, or nobody wants it any more. */
static void leave_router(struct job *job)
{
	assert(job->routing > 0);
	job->routing--;
	pool_free(job, 1);
}

static bool is_suspended(const struct message *m, uint32_t recipient)
{
	const char *address = m->work.envelope->rcpt[recipient].address;
	return m->qmgr->db.suspended &&
	       suspend_covers_domain(&m->qmgr->db, mailaddr_domain(address));
}

/* Its domain is suspended: it waits in the queue, whatever its site is doing. */
static void put_off_recipient(struct job *job, uint32_t recipient)
{
	struct outcome_context context = {.transport = job->transport, .untried = true};
	struct message *m = message_of_work(job->work);
	const char *domain = mailaddr_domain(m->work.envelope->rcpt[recipient].address);
	struct verdict *why =
		suspend_verdict("domain", suspend_domain_until_ms(&m->qmgr->db, domain));
	outcome_apply(m, recipient, why, &context);
	verdict_unref(why);
	message_hold_domain(m, m->qmgr->db.resumes);
	leave_router(job);
}

/* To the transport that its provider wants. False: there is no room for it in memory now. */
static bool move_to_transport(struct job *from, uint32_t recipient, struct transport *by)
{
	struct message *m = message_of_work(from->work);
	assert(by != from->transport);
	if (pool_transport_room(by) <= 0) {
		m->qmgr->router_due = true; /* at the next wake-up */
		return false;
	}
	struct job *to = job_get(from->work, by);
	pool_take(to);
	to->routing++;
	leave_router(from);
	shelf_resize(from);
	router_add(to, recipient);
	return true;
}

static bool is_wanted_by_any_provider(const struct transport *t)
{
	const struct conf *c = t->scheduler->conf;
	for (int i = 0; c->providers_carry && i < c->nprovider; i++)
		if (c->provider[i].by && strcmp(c->provider[i].by->title, t->title) == 0)
			return true;
	return false;
}

/* That of its job, where its provider wanted it; or the one of the route, which may be another than when the recipient
 * was read. */
static struct transport *named_transport(const struct job *job, const struct route *way)
{
	bool stays = way->by == job->transport->settings ||
		     (!way->named && is_wanted_by_any_provider(job->transport));
	return stays ? job->transport : transport_get(job->transport->scheduler, way->by);
}

/* False: it needs a look-up, or room, and may not have that now. */
static bool route_recipient(struct job *job, uint32_t recipient, const struct route *way)
{
	struct message *m = message_of_work(job->work);
	assert(job->routing > 0); /* it has no entry yet */
	struct transport *by = named_transport(job, way);
	if (way->action != ROUTE_DELIVER) { /* since it was read, the tables have changed */
		router_end(m, recipient, way);
		leave_router(job);
		return true;
	}
	if (is_suspended(m, recipient)) {
		put_off_recipient(job, recipient);
		return true;
	}
	if (by != job->transport)
		return move_to_transport(job, recipient, by);
	struct nexthop *n = nexthop_of(job, recipient, way);
	if (nexthop_known(n) && n->elsewhere)
		return move_to_transport(job, recipient, n->elsewhere);
	if (nexthop_known(n)) {
		nexthop_enter(n, job, recipient);
		return true;
	}
	if (n->lookup.asking == 0) {
		if (!may_look_up(m))
			return false;
		begin_lookup(n, m, job, recipient, way);
	}
	nexthop_wait(n, job, recipient);
	return true;
}

void router_add_by(struct job *job, uint32_t recipient, const struct route *way)
{
	struct message *m = message_of_work(job->work);
	if (route_recipient(job, recipient, way))
		return;
	m->to_route = mem_room(m->to_route, m->nto_route, sizeof *m->to_route);
	m->to_route[m->nto_route++] = (struct waiting_recipient){job, recipient};
	if (list_empty(&m->in_router))
		list_append(&m->work.flow->unrouted, &m->in_router);
	if (list_empty(&m->work.flow->in_unrouted))
		list_append(&m->qmgr->to_route, &m->work.flow->in_unrouted);
	keep_ticking(m->qmgr);
}

void router_add(struct job *job, uint32_t recipient)
{
	router_add_by(job, recipient, router_route(message_of_work(job->work), recipient));
}

/* Another transport carries such mail by now, by its route or since the provider of the site wants it. */
static bool is_carried_elsewhere(const struct peer *p, const struct route *way)
{
	const struct provider *provider = site_of_queue(p->queue)->provider;
	const struct conf_provider *wants = provider ? provider->settings : NULL;
	const struct conf_transport *by = !way->named && wants && wants->by ? wants->by : way->by;
	return strcmp(by->title, p->job->transport->title) != 0;
}

static bool is_to_move(const struct peer *p, uint32_t recipient)
{
	const struct route *way = router_route(message_of_work(p->job->work), recipient);
	const struct site *s = site_of_queue(p->queue);
	return way->action != ROUTE_DELIVER || is_carried_elsewhere(p, way) ||
	       nexthop_has_left(p->job, recipient, way, s);
}

/* By way of the transport of its route, where the provider may want another once more. */
static void route_recipient_anew(const struct peer *p, uint32_t recipient)
{
	struct job *job = p->job;
	const struct route *way = router_route(message_of_work(job->work), recipient);
	struct transport *by = transport_get(job->transport->scheduler, way->by);
	if (way->action != ROUTE_DELIVER || by == job->transport || !is_carried_elsewhere(p, way) ||
	    !move_to_transport(job, recipient, by))
		router_add(job, recipient);
}

/* All of its recipients. */
static bool is_to_move_anyway(const struct peer *p, uint32_t recipient)
{
	(void)p;
	(void)recipient;
	return true;
}

/* Recipients that are to move leave the entry, and are behind those that have left others. */
static uint32_t *take_out_of_entry(struct entry *e,
				   bool (*is_to)(const struct peer *, uint32_t recipient),
				   uint32_t *moving, size_t *n)
{
	uint32_t left = 0;
	assert(e->n > 0);
	for (uint32_t i = 0; i < e->n; i++) {
		if (!is_to(e->peer, e->recipient[i])) {
			e->recipient[left++] = e->recipient[i];
			continue;
		}
		moving = mem_room(moving, *n, sizeof *moving);
		moving[(*n)++] = e->recipient[i];
	}
	e->n = left;
	return moving;
}

/* As if they had just been read. None before all are out: one that finds no room elsewhere comes back to the last entry. */
static bool move_peer(struct peer *p, bool (*is_to)(const struct peer *, uint32_t recipient))
{
	uint32_t *moving = NULL;
	size_t n = 0;
	list_each (link, next, &p->entries) {
		struct entry *e = list_entry(link, struct entry, in_peer);
		moving = take_out_of_entry(e, is_to, moving, &n);
		if (e->n == 0) {
			peer_drop_entry(e);
			job_entry_done(e);
		}
	}
	p->job->routing += (int64_t)n;
	for (size_t i = 0; i < n; i++)
		route_recipient_anew(p, moving[i]);
	free(moving);
	return n > 0;
}

void router_move(struct site *s)
{
	list_each (link, tmp, &s->queue.peers) {
		struct peer *p = list_entry(link, struct peer, in_queue);
		if (move_peer(p, is_to_move))
			s->db->thread.check(p->job->work);
	}
}

/* Before what is known is too old: nothing waits for the answer. */
static void ask_ahead(const struct peer *p, struct nexthop *n)
{
	struct message *m = message_of_work(p->job->work);
	uint32_t recipient = peer_first(p)->recipient[0];
	const struct route *way = router_route(m, recipient);
	bool same = way->action == ROUTE_DELIVER && nexthop_of(p->job, recipient, way) == n;
	if (same && may_look_up(m))
		begin_lookup(n, NULL, p->job, recipient, way);
}

bool router_renew(struct peer *p)
{
	struct nexthop *n = nexthop_of_way(p->way);
	struct message *m = message_of_work(p->job->work);
	assert(p->waiting > 0);
	bool left = n->elsewhere || p->queue != p->way->queue;
	if (left || nexthop_age_ms(n) >= NEXTHOP_OLD_MS) {
		move_peer(p, is_to_move_anyway);
		check_message(m);
		return true;
	}
	if (nexthop_to_renew(n))
		ask_ahead(p, n);
	return false;
}

bool router_may_move(const struct entry *e)
{
	const struct peer *p = e->peer;
	assert(e->n > 0);
	const struct route *way = router_route(message_of_work(p->job->work), e->recipient[0]);
	return nexthop_moves(p->job, e->recipient[0], way, site_of_queue(p->queue));
}

static void forget_recipients(struct message *m)
{
	list_remove(&m->in_router);
	if (list_empty(&m->work.flow->unrouted))
		list_remove(&m->work.flow->in_unrouted);
	free(m->to_route);
	m->to_route = NULL;
	m->to_route_first = m->nto_route = 0;
}

static void run_message(struct message *m)
{
	assert(m->to_route_first < m->nto_route && !list_empty(&m->in_router));
	while (m->to_route_first < m->nto_route) {
		struct waiting_recipient *w = &m->to_route[m->to_route_first];
		if (!route_recipient(w->job, w->recipient, router_route(m, w->recipient)))
			return;
		m->to_route_first++;
	}
	forget_recipients(m);
	check_message(m);
}

static void give_turns(struct qmgr *q)
{
	list_each (link, next, &q->to_route) {
		struct flow *f = list_entry(link, struct flow, in_unrouted);
		f->turns = 0;
		list_each (one, after, &f->unrouted)
			f->turns++;
	}
}

/* Who has had a turn goes to the end, of the flows and of the flow's messages: with more messages than look-ups nobody is always the
 * last. Flow and message may be gone when it returns. */
static void take_turn(struct flow *f, struct list *again, struct list *had)
{
	assert(!list_empty(&f->unrouted));
	struct message *m = list_entry(list_first(&f->unrouted), struct message, in_router);
	list_move(--f->turns > 0 ? again : had, &f->in_unrouted);
	list_move(&f->unrouted, &m->in_router);
	run_message(m);
}

void router_run(struct qmgr *q)
{
	struct list had, *link;
	if (!q->router_due)
		return;
	q->router_due = false;
	list_init(&had);
	let_lag(q);
	give_turns(q);
	while (q->lookups < q->sched.conf->queue.router_concurrency_limit &&
	       (link = list_first(&q->to_route)))
		take_turn(list_entry(link, struct flow, in_unrouted), &q->to_route, &had);
	while ((link = list_first(&had)))
		list_move(&q->to_route, link);
	keep_ticking(q);
}

/* The answer has come, or nobody wants that any more. */
static void end_lookup(struct nexthop *n)
{
	struct qmgr *q = n->qmgr;
	int64_t *of = list_empty(&n->in_brisk) ? &q->lagging : &q->lookups;
	assert(*of > 0);
	list_remove(&n->in_brisk);
	if (n->asked_by) {
		assert(n->asked_by->lookups > 0);
		n->asked_by->lookups--;
	}
	(*of)--;
	q->router_due = true;
}

static bool is_led_on(struct nexthop *n, const struct waiting_recipient *w)
{
	const struct route *way = router_route(message_of_work(w->job->work), w->recipient);
	return named_transport(w->job, way) != w->job->transport || nexthop_leads_on(n, w, way);
}

static void let_go_of(struct nexthop *n, const struct waiting_recipient *w, struct verdict *failure)
{
	struct job *job = w->job;
	struct message *m = message_of_work(job->work);
	const struct outcome_context context = {.transport = n->transport};
	bool failed = failure && !n->lacks;
	if (!m->work.cancelled && is_suspended(m, w->recipient)) { /* since it was asked about */
		put_off_recipient(job, w->recipient);
		check_message(m);
		return;
	}
	if ((!failed || n->overtaken) && !m->work.cancelled && is_led_on(n, w)) {
		router_add(job, w->recipient);
		check_message(m);
		return;
	}
	if (!failure && !m->work.cancelled) {
		nexthop_enter(n, job, w->recipient);
		return;
	}
	if (!m->work.cancelled)
		outcome_apply(m, w->recipient, failure, &context);
	leave_router(job);
	check_message(m);
}

/* Those who wait get their entries, or their verdicts. */
static void let_go(struct nexthop *n, struct verdict *failure)
{
	struct waiting_recipient *waiting;
	size_t nwaiting = nexthop_take_waiting(n, &waiting);
	end_lookup(n);
	for (size_t i = 0; i < nwaiting; i++)
		let_go_of(n, &waiting[i], failure);
	free(waiting);
	verdict_unref(failure);
}

/* Mail that waits where it led before. */
static void follow_nexthop(const struct nexthop *n, struct site *before)
{
	if (!n->elsewhere && nexthop_site(n) == before)
		return;
	list_each (link, tmp, &before->queue.peers) {
		struct peer *p = list_entry(link, struct peer, in_queue);
		struct message *m = message_of_work(p->job->work);
		if (p->way == &n->way && move_peer(p, is_to_move_anyway))
			check_message(m);
	}
}

/* Of a domain, whatever its mail asks for. */
static uint64_t hash_target(const struct nexthop *n)
{
	char *target = nexthop_target(n);
	uint64_t hash = keyed_hash(target, strlen(target));
	free(target);
	return hash;
}

static void note_names(struct nexthop *n, bool found_before, const struct verdict *failure)
{
	struct names_away *away = &n->qmgr->names_away;
	if (n->heard)
		names_away_answered(away, hash_target(n));
	else if (failure && verdict_lacks_names(failure))
		names_away_failed(away, hash_target(n), found_before);
}

static void apply_answer(struct nexthop *n, struct site *before, struct verdict *failure)
{
	note_names(n, before, failure);
	let_go(n, failure);
	if (before)
		follow_nexthop(n, before);
}

void router_answered(struct resolve *r)
{
	struct verdict *failure = NULL;
	magic_check((struct nexthop *)r->owner, NEXTHOP_MAGIC);
	struct site *before = nexthop_site(r->owner);
	struct nexthop *n = nexthop_answered(r, &failure);
	if (n)
		apply_answer(n, before, failure);
}

void router_sts_answered(struct sts_ask *a)
{
	struct verdict *failure = NULL;
	magic_check((struct nexthop *)a->owner, NEXTHOP_MAGIC);
	struct site *before = nexthop_site(a->owner);
	struct nexthop *n = nexthop_sts_answered(a, &failure);
	if (n)
		apply_answer(n, before, failure);
}

void router_forget(struct nexthop *n)
{
	struct waiting_recipient *waiting;
	assert(n->nwaiting == 0 || n->lookup.asking > 0);
	size_t nwaiting = nexthop_take_waiting(n, &waiting);
	for (size_t i = 0; i < nwaiting; i++)
		leave_router(waiting[i].job);
	free(waiting);
	if (n->lookup.asking > 0)
		end_lookup(n);
}

void router_drop(struct message *m)
{
	assert(m->to_route_first <= m->nto_route);
	for (size_t i = m->to_route_first; i < m->nto_route; i++)
		leave_router(m->to_route[i].job);
	forget_recipients(m);
}

void router_init(struct qmgr *q)
{
	list_init(&q->to_route);
	list_init(&q->brisk);
	timer_init(&q->router_tick, on_tick, q);
}

void router_fini(struct qmgr *q)
{
	assert(list_empty(&q->to_route) && list_empty(&q->brisk));
	assert(q->lookups == 0 && q->lagging == 0);
	timer_stop(&q->sched.loop->timers, &q->router_tick);
}
