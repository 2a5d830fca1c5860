/* SPDX-License-Identifier: ISC */
#include "qmgr/explain.h"

#include "base/ident.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "qmgr/dest/conn.h"
#include "qmgr/dest/admission.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/source.h"
#include "qmgr/dest/suspend.h"
#include "qmgr/domain_mail.h"
#include "qmgr/message.h"
#include "qmgr/nexthop.h"
#include "qmgr/sched/backlog.h"
#include "qmgr/sched/selection.h"

#include <assert.h>
#include <string.h>

static struct explain_row *add_row(struct explain_question *x, enum constraint c,
				   int64_t recipients)
{
	x->row = mem_realloc(x->row, ((size_t)x->nrow + 1) * sizeof *x->row);
	struct explain_row *row = &x->row[x->nrow++];
	*row = (struct explain_row){.constraint = c, .recipients = recipients};
	return row;
}

static void add_login(struct explain_row *row, const struct site *s)
{
	for (int i = 0; i < s->nhost; i++) {
		const struct host *h = s->hosts[i].host;
		if (!h->login_refused || !h->credential || row->login_hop)
			continue;
		row->login_hop = mem_strdup(h->credential->next_hop);
		row->login_of_sender = h->credential->of_sender;
	}
}

/* Where one of them is not, the answer of that one lets the mail go. */
static char *name_suspended(const struct site *s)
{
	const struct suspended *n = NULL;
	for (int i = 0; i < s->nhost; i++)
		if (!(n = suspend_of_site_host(s->db, &s->hosts[i])))
			return NULL;
	return n ? mem_strdup(n->name) : NULL;
}

static struct explain_row *add_site(struct explain_question *x, const struct site *s)
{
	struct explain_row *row = add_row(x, CONSTRAINT_IDLE, 0);
	row->of = s;
	row->site = mem_strdup(s->name);
	row->key = mem_strdup(s->key);
	row->transport = mem_strdup(s->queue.transport->title);
	row->source = mem_strdup(source_name(s));
	row->provider = s->provider ? mem_strdup(s->provider->name) : NULL;
	row->window = s->window.concurrency;
	row->connections = s->connections;
	row->connecting = s->connecting;
	row->busy = s->busy;
	row->pace = site_pace_rate(s);
	row->paced_ms = s->pacing->since_ms;
	add_login(row, s);
	row->resume = name_suspended(s);
	row->last = verdict_ref(s->pacing->why && row->pace > 0 ? s->pacing->why : s->last_failure);
	return row;
}

static void explain_admission(struct explain_row *row, const struct site *s, struct admission l)
{
	row->constraint = l.constraint;
	row->limit = l.limit;
	row->until_ms = l.until_ms ? destdb_wall_ms(s->db, l.until_ms) : 0;
	row->parked = s->parked.parked;
}

/* --- the order */

static bool comes_before(const struct peer *p, const struct peer *r)
{
	const struct label *a = &p->job->label, *b = &r->job->label;
	if (a->order != b->order)
		return a->order < b->order;
	return a->place != b->place ? a->place < b->place : p->turn < r->turn;
}

static int64_t ahead_in_flow(const struct backlog *b, const struct peer *mine)
{
	int64_t n = 0;
	for (size_t i = 1; i <= b->order.n; i++) {
		const struct peer *p = heap_entry(b->order.slot[i].item, struct peer, in_order);
		if (p != mine && comes_before(p, mine))
			n += peer_selectable(p);
	}
	return n;
}

/* Of another flow, before its start tag is this. */
static int64_t ahead_in_other(const struct backlog *b, uint64_t start)
{
	uint64_t step = flow_step(b->flow);
	int64_t waiting = 0;
	int64_t turns = b->start < start ? (int64_t)((start - b->start + step - 1) / step) : 0;
	for (size_t i = 1; i <= b->order.n && waiting < turns; i++)
		waiting +=
			peer_selectable(heap_entry(b->order.slot[i].item, struct peer, in_order));
	return waiting < turns ? waiting : turns;
}

static int64_t ahead_of(const struct queue *queue, const struct peer *mine)
{
	const struct backlog *own = mine->backlog;
	if (!own)
		return 0;
	int64_t n = ahead_in_flow(own, mine);
	uint64_t start = own->start + (uint64_t)n * flow_step(own->flow);
	for (size_t i = 1; i <= queue->backlogs.n; i++) {
		const struct backlog *b =
			heap_entry(queue->backlogs.slot[i].item, struct backlog, in_queue);
		n += b != own ? ahead_in_other(b, start) : 0;
	}
	return n;
}

static void explain_order(struct explain_row *row, const struct site *s, const struct peer *mine)
{
	const struct peer *it = selection_first(&s->queue);
	for (struct list *l = mine->job->stack.children.next; l != &mine->job->stack.children;
	     l = l->next)
		row->slipped++;
	if (!it)
		return;
	const struct job *first = it->job;
	if (first != mine->job) {
		row->first = first->work->id;
		row->first_slots = job_needed(first);
	}
	row->ahead = ahead_of(&s->queue, mine);
}

/* --- a message */

static struct explain_row *row_of(struct explain_question *x, const struct site *s)
{
	for (int i = 0; i < x->nrow; i++)
		if (x->row[i].of == s)
			return &x->row[i];
	return NULL;
}

static int64_t recipients_waiting(const struct peer *p)
{
	int64_t n = 0;
	for (struct list *l = p->entries.next; l != &p->entries; l = l->next)
		n += list_entry(l, struct entry, in_peer)->n;
	return n;
}

static void add_waiting(struct explain_question *x, const struct peer *p)
{
	const struct site *s = site_of_queue(p->queue);
	struct explain_row *row = row_of(x, s);
	if (!row) {
		row = add_site(x, s);
		explain_admission(row, s, admission_of(s, p));
		explain_order(row, s, p);
	}
	row->recipients += recipients_waiting(p);
}

static bool has_host(const struct site *s, const char *name)
{
	for (int i = 0; i < s->nhost; i++)
		if (suspend_site_host_is(&s->hosts[i], name))
			return true;
	return false;
}

/* Is it the message that is asked about, or one of the flow's? */
static bool is_asked(const struct explain_question *x, const struct work *w)
{
	return x->id ? w->id == x->id : name_key_same(x->flow, w->flow->name);
}

/* The id of a message that is gone is no domain, though the route for all would lead it somewhere. */
static bool may_be_domain(const char *word)
{
	uint64_t id;
	return !ident_parse(word, &id);
}

/* Is all mail asked for, or that for this site? */
static bool is_site_asked(const struct qmgr *q, const struct explain_question *x,
			  const struct site *s)
{
	return !x->site || suspend_site_is(s, x->site) || has_host(s, x->site) ||
	       (may_be_domain(x->site) && domain_mail_goes_to(q, x->site, s));
}

static void add_carried(struct explain_question *x, const struct qmgr *q)
{
	for (const struct conn *c = q->db.conns; c; c = c->hh.next) {
		if (!x->id && !is_site_asked(q, x, c->site))
			continue;
		for (struct list *l = c->carried.next; l != &c->carried; l = l->next) {
			const struct entry *e = list_entry(l, struct entry, in_peer);
			if (!is_asked(x, e->peer->job->work))
				continue;
			struct explain_row *row = row_of(x, c->site);
			if (!row) {
				row = add_site(x, c->site);
				row->constraint = CONSTRAINT_SENDING;
			}
			row->sending += e->n;
		}
	}
}

static void add_looked_up(struct explain_question *x, const struct qmgr *q)
{
	for (const struct nexthop *n = q->nexthops; n; n = n->hh.next) {
		int64_t waiting = 0;
		for (size_t i = 0; i < n->nwaiting; i++)
			waiting += is_asked(x, n->waiting[i].job->work);
		if (waiting == 0)
			continue;
		struct explain_row *row = add_row(x, CONSTRAINT_DNS, waiting);
		row->transport = mem_strdup(n->transport->title);
		row->site = nexthop_target(n);
	}
}

static void add_waiting_of(struct explain_question *x, const struct qmgr *q, const struct work *w)
{
	for (const struct list *l = w->jobs.next; l != &w->jobs; l = l->next) {
		const struct job *job = list_entry(l, struct job, in_message);
		for (const struct list *k = job->peers.next; k != &job->peers; k = k->next) {
			const struct peer *p = list_entry(k, struct peer, in_job);
			if (p->waiting > 0 &&
			    (x->id || is_site_asked(q, x, site_of_queue(p->queue))))
				add_waiting(x, p);
		}
	}
}

static void explain_message(struct explain_question *x, const struct message *m)
{
	const struct conf_queue *limits = &m->qmgr->sched.conf->queue;
	if (m->reporting)
		add_row(x, CONSTRAINT_REPORTING, envelope_open(m->work.envelope));
	else if (m->work.cancelled)
		add_row(x, CONSTRAINT_CANCELLED, envelope_open(m->work.envelope));
	add_waiting_of(x, m->qmgr, &m->work);
	add_carried(x, m->qmgr);
	add_looked_up(x, m->qmgr);
	if (m->nto_route > m->to_route_first)
		add_row(x, CONSTRAINT_LOOKUP, (int64_t)(m->nto_route - m->to_route_first))->limit =
			limits->router_concurrency_limit;
	if (m->work.unread > 0)
		add_row(x, CONSTRAINT_MEMORY, m->work.unread)->limit =
			limits->message_recipient_limit;
}

/* --- a site */

static void explain_site(struct explain_question *x, const struct site *s)
{
	struct explain_row *row = add_site(x, s);
	const struct peer *it = selection_first(&s->queue);
	struct list *any = list_empty(&s->queue.peers) ? NULL : s->queue.peers.next;
	row->recipients = s->queue.waiting;
	row->sending = s->busy;
	explain_admission(row, s, admission_of_first(s));
	if (it || any) {
		const struct peer *p = it ? it : list_entry(any, struct peer, in_queue);
		row->first = p->job->work->id;
		row->first_slots = job_needed(p->job);
	} else if (s->health == SITE_ALIVE && s->busy > 0) {
		row->constraint = CONSTRAINT_SENDING;
	}
}

static bool explain_named(const struct qmgr *q, struct explain_question *x)
{
	for (const struct site *s = q->db.sites; s; s = s->hh.next)
		if (suspend_site_is(s, x->site))
			explain_site(x, s);
	return x->nrow > 0;
}

static void explain_suspended_domain(const struct qmgr *q, struct explain_question *x,
				     const char *domain)
{
	if (!suspend_covers_domain(&q->db, domain))
		return;
	struct explain_row *row = add_row(x, CONSTRAINT_SUSPENDED, 0);
	row->site = mem_strdup(domain);
	row->until_ms = suspend_domain_until_ms(&q->db, domain);
}

static void explain_queued(const struct qmgr *q, struct explain_question *x)
{
	for (const struct site *s = q->db.sites; x->number && s; s = s->hh.next)
		if (s->parked.number == x->number)
			explain_site(x, s);
	explain_suspended_domain(q, x, x->domain);
}

static void explain_sites(const struct qmgr *q, struct explain_question *x)
{
	bool domain = may_be_domain(x->site);
	if (explain_named(q, x))
		return;
	explain_suspended_domain(q, x, x->site);
	for (const struct site *s = q->db.sites; s; s = s->hh.next)
		if (has_host(s, x->site) || (domain && domain_mail_goes_to(q, x->site, s)))
			explain_site(x, s);
}

/* --- a flow */

static void explain_flow(const struct qmgr *q, struct explain_question *x)
{
	if (suspend_covers_flow(&q->db, x->flow))
		add_row(x, CONSTRAINT_SUSPENDED, 0)->until_ms =
			suspend_flow_until_ms(&q->db, x->flow);
	for (const struct list *l = q->sched.active.next; l != &q->sched.active; l = l->next) {
		const struct work *w = list_entry(l, struct work, in_active);
		if (is_asked(x, w))
			add_waiting_of(x, q, w);
	}
	add_carried(x, q);
	if (!x->site)
		add_looked_up(x, q);
}

void explain_answer(struct qmgr *q, struct explain_question *x)
{
	assert(x->nrow == 0);
	struct message *m = NULL;
	if (x->id)
		HASH_FIND(hh, q->messages, &x->id, sizeof x->id, m);
	if (m && (!x->flow || name_key_same(x->flow, m->work.flow->name)))
		explain_message(x, m);
	if (!x->id && x->flow)
		explain_flow(q, x);
	else if (x->site)
		explain_sites(q, x);
	if (x->domain)
		explain_queued(q, x);
	loop_post(x->reply_to, &x->note);
}
