/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/job.h"

#include "base/mem.h"
#include "qmgr/sched/backlog.h"
#include "qmgr/sched/flow_rate.h"
#include "qmgr/sched/pool.h"
#include "qmgr/sched/selection.h"
#include "qmgr/sched/shelf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* So many peers are found by looking at each: most jobs have no more, and a hash table of their own
 * would be the largest part of them. */
enum { WALKED = 8 };

static struct job *job_new(struct work *w, struct transport *t)
{
	struct job *job = few_take(&t->scheduler->jobs);
	job->work = w;
	job->transport = t;
	job->claim = claim_join(w->flow, t);
	job->label = (struct label){w->rank, LINE_HOME};
	line_init(&job->home, true);
	line_init(&job->moved, false);
	list_init(&job->peers);
	list_init(&job->ready);
	list_init(&job->parked);
	list_init(&job->in_parked);
	stack_init(&job->stack);
	list_append(&w->jobs, &job->in_message);
	struct list *behind = t->jobs.prev;
	while (behind != &t->jobs &&
	       list_entry(behind, struct job, in_time)->work->order > w->order)
		behind = behind->prev;
	list_prepend(behind, &job->in_time);
	pool_enter(job);
	return job;
}

struct job *job_get(struct work *w, struct transport *t)
{
	list_each (link, tmp, &w->jobs) {
		struct job *job = list_entry(link, struct job, in_message);
		if (job->transport == t)
			return job;
	}
	return job_new(w, t);
}

static struct peer *peer_find(const struct job *job, const struct way *way)
{
	struct peer *peer;
	int walked = 0;
	list_each (link, tmp, &job->peers) {
		peer = list_entry(link, struct peer, in_job);
		if (peer->way == way)
			return peer;
		if (++walked == WALKED)
			break;
	}
	HASH_FIND_PTR(job->by_way, &way, peer);
	return peer;
}

static struct peer *peer_get(struct job *job, struct way *way)
{
	struct peer *peer = peer_find(job, way);
	if (peer)
		return peer;
	peer = few_take(&job->transport->scheduler->peers);
	peer->job = job;
	peer->way = way;
	peer->queue = way->queue;
	way->peers++;
	list_init(&peer->entries);
	list_init(&peer->in_queue);
	list_init(&peer->in_granted);
	list_init(&peer->in_ready);
	list_append(&job->peers, &peer->in_job);
	if (++job->npeer > WALKED)
		HASH_ADD_PTR(job->by_way, way, peer);
	return peer;
}

/* Its numbers have changed: be in the lists that go by them. */
static void relist_peer(struct peer *p)
{
	if (p->waiting == 0)
		list_remove(&p->in_queue);
	else if (list_empty(&p->in_queue))
		list_append(&p->queue->peers, &p->in_queue);
	if (p->granted == 0)
		list_remove(&p->in_granted);
	else if (list_empty(&p->in_granted))
		list_append(&p->queue->granted, &p->in_granted);
	selection_update(p);
	scheduler_touch(p->queue);
}

static void count_waiting(struct peer *p, int n)
{
	p->waiting += n;
	p->queue->waiting += n;
	p->job->transport->scheduler->waiting += n;
	assert(p->waiting >= 0 && p->queue->waiting >= p->waiting);
	assert(p->job->transport->scheduler->waiting >= p->queue->waiting);
}

static void count_under_way(struct job *job, int64_t n)
{
	job->concurrency += n;
	job->transport->scheduler->under_way += n;
	claim_count(job->claim, n);
	assert(job->concurrency >= 0 && job->transport->scheduler->under_way >= job->concurrency);
}

static void count_granted(struct peer *p, int n)
{
	p->granted += n;
	p->queue->ngranted += n;
	count_under_way(p->job, n);
	p->job->transport->unpark |= n < 0;
	assert(p->granted >= 0 && p->queue->ngranted >= p->granted);
	assert(p->granted <= p->waiting);
}

static void count_of_flow(const struct peer *p, int n)
{
	struct flow *f = p->job->work->flow;
	f->unselected += n;
	assert(f->unselected >= 0);
}

static void count_selected(struct peer *p)
{
	count_of_flow(p, -1);
	p->job->selected++;
	assert(p->job->selected <= p->job->read_entries);
	preempt_count(&p->job->stack);
	selection_took_turn(p);
	backlog_charge(p);
	flow_rate_count(p->job->work->flow);
}

/* The peer is listed already as one that waits. */
static void uncount_selected(struct peer *p)
{
	assert(p->job->selected > 0);
	count_of_flow(p, 1);
	p->job->selected--;
	preempt_uncount(&p->job->stack);
	backlog_give_back(p);
	flow_rate_uncount(p->job->work->flow);
}

/* The next hop has moved to other hosts: what waits follows it there. */
static void follow_next_hop(struct peer *p)
{
	struct queue *to = p->way->queue;
	int waiting = p->waiting;
	if (p->queue == to)
		return;
	while (p->granted > 0)
		peer_ungrant(p);
	count_waiting(p, -waiting);
	relist_peer(p);
	p->queue = to;
	count_waiting(p, waiting);
}

static bool has_room(const struct entry *e, bool alone)
{
	int64_t limit = e->peer->job->transport->settings->destination_recipient_limit;
	return e->returns == 0 && e->alone == alone && (limit == 0 || e->n < limit);
}

static struct entry *entry_new(struct peer *peer, bool alone)
{
	struct entry *e = few_take(&peer->job->transport->scheduler->entries);
	e->peer = peer;
	e->alone = alone;
	list_append(&peer->entries, &e->in_peer);
	count_waiting(peer, 1);
	count_of_flow(peer, 1);
	peer->job->read_entries++;
	return e;
}

/* The array grows at the powers of two. */
static void make_room(struct entry *e)
{
	if (e->n == 0)
		e->recipient = &e->only;
	else if (e->recipient == &e->only)
		e->recipient = memcpy(mem_alloc(2 * sizeof e->only), &e->only, sizeof e->only);
	else if ((e->n & (e->n - 1)) == 0)
		e->recipient = mem_realloc(e->recipient, e->n * 2 * sizeof *e->recipient);
}

void job_add_recipient(struct job *job, struct way *way, uint32_t recipient)
{
	struct peer *peer = peer_get(job, way);
	struct entry *e = NULL;
	bool alone = job->work->envelope->rcpt[recipient].doubts > 0;
	assert(job->routing > 0);
	job->routing--;
	follow_next_hop(peer);
	if (!list_empty(&peer->entries))
		e = list_entry(peer->entries.prev, struct entry, in_peer);
	if (!e || !has_room(e, alone))
		e = entry_new(peer, alone);
	make_room(e);
	e->recipient[e->n++] = recipient;
	shelf_resize(
		job); /* first: no shelf of its former size is made for it, to be left at once */
	relist_peer(peer);
	flow_rate_wait(job->work->flow);
}

/* Further recipients are read when there is room; a job of which nothing is left to select leaves
 * the stack, and comes back, if at all, at the age of its message. */
static void after_selection(struct job *job)
{
	job->transport->scheduler->refill(job);
	if (list_empty(&job->ready))
		selection_retire(job);
}

void peer_grant(struct peer *p)
{
	assert(peer_selectable(p) > 0);
	count_selected(p);
	count_granted(p, 1);
	relist_peer(p);
	after_selection(p->job);
}

void peer_ungrant(struct peer *p)
{
	assert(p->granted > 0);
	count_granted(p, -1);
	relist_peer(p);
	uncount_selected(p);
}

static struct entry *first_entry(const struct peer *p)
{
	return list_entry(list_first(&p->entries), struct entry, in_peer);
}

const struct entry *peer_first(const struct peer *p)
{
	return first_entry(p);
}

static void unlist_entry(struct entry *e)
{
	assert(!e->conn);
	list_remove(&e->in_peer);
	count_waiting(e->peer, -1);
}

struct entry *peer_take(struct peer *p)
{
	struct entry *e = first_entry(p);
	unlist_entry(e);
	if (p->granted > 0)
		count_granted(p, -1);
	else
		count_selected(p);
	count_under_way(p->job, 1);
	relist_peer(p);
	after_selection(p->job);
	return e;
}

void peer_drop_entry(struct entry *e)
{
	struct peer *p = e->peer;
	if (p->granted > 0)
		peer_ungrant(p);
	unlist_entry(e);
	count_of_flow(p, -1);
	p->job->selected++;
	assert(p->job->selected <= p->job->read_entries);
	relist_peer(p);
	if (list_empty(&p->job->ready))
		selection_retire(p->job);
}

struct entry *peer_drop(struct peer *p)
{
	struct entry *e = first_entry(p);
	peer_drop_entry(e);
	return e;
}

void job_left_place(struct job *job)
{
	count_under_way(job, -1);
}

void job_put_back(struct entry *e)
{
	assert(e->n > 0);
	e->conn = NULL;
	list_prepend(&e->peer->entries, &e->in_peer);
	count_waiting(e->peer, 1);
	relist_peer(e->peer);
	uncount_selected(e->peer);
}

void job_entry_done(struct entry *e)
{
	assert(list_empty(&e->in_peer));
	if (e->recipient != &e->only)
		free(e->recipient);
	few_give(&e->peer->job->transport->scheduler->entries, e);
}

static void job_free(struct job *job)
{
	struct scheduler *sched = job->transport->scheduler;
	assert(list_empty(&job->ready));
	assert(job->routing == 0);
	HASH_CLEAR(hh, job->by_way);
	list_each (link, next, &job->peers) {
		struct peer *peer = list_entry(link, struct peer, in_job);
		assert(list_empty(&peer->entries));
		assert(peer->waiting == 0 && peer->granted == 0);
		assert(!heap_has(&peer->in_order) && !heap_has(&peer->in_shelf));
		assert(peer->way->peers > 0);
		peer->way->peers--;
		few_give(&sched->peers, peer);
	}
	list_each (link, next, &job->parked) {
		list_remove(link);
		scheduler_touch(list_entry(link, struct queue, in_parked));
	}
	list_remove(&job->in_parked);
	selection_retire(job);
	line_leave(&job->home);
	pool_leave(job);
	count_under_way(job, -job->concurrency); /* at the end of the program */
	claim_part(job->claim);
	list_remove(&job->in_time);
	list_remove(&job->in_message);
	few_give(&sched->jobs, job);
}

void jobs_free(struct work *w)
{
	list_each (link, tmp, &w->jobs)
		job_free(list_entry(link, struct job, in_message));
}
