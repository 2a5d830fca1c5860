/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/selection.h"

#include "qmgr/sched/pool.h"
#include "qmgr/sched/shelf.h"

#include <assert.h>

enum { OTHERS_MAX = 64 };

static void put_in_order(struct peer *p)
{
	const struct label *label = &p->job->label;
	heap_put(&p->queue->order, &p->in_order,
		 (struct heap_key){label->order, label->place, p->turn});
}

/* A queue comes where its first peer does. */
static void put_in_turn(struct queue *queue)
{
	heap_put(&queue->transport->queues[queue->state], &queue->in_turn,
		 heap_first_key(&queue->order));
}

void selection_init(struct transport *t)
{
	for (int state = QUEUE_PLACED; state <= QUEUE_HUNGRY; state++)
		heap_init(&t->queues[state]);
	shelf_init(t);
}

void selection_fini(struct transport *t)
{
	for (int state = QUEUE_PLACED; state <= QUEUE_HUNGRY; state++)
		heap_fini(&t->queues[state]);
	shelf_fini(t);
}

void selection_init_queue(struct queue *queue, struct transport *t)
{
	*queue = (struct queue){.transport = t};
	list_init(&queue->peers);
	list_init(&queue->granted);
	list_init(&queue->in_dirty);
	list_init(&queue->in_parked);
	heap_init(&queue->order);
}

void selection_fini_queue(struct queue *queue)
{
	assert(list_empty(&queue->peers) && list_empty(&queue->granted));
	assert(queue->waiting == 0 && queue->ngranted == 0);
	list_remove(&queue->in_dirty);
	list_remove(&queue->in_parked);
	selection_set(queue, QUEUE_QUIET);
	assert(!queue->shelves);
	heap_fini(&queue->order);
}

/* The first peer of the queue may be another now. */
static void first_changed(struct queue *queue)
{
	if (queue->state != QUEUE_QUIET)
		put_in_turn(queue);
}

static void enter(struct peer *p)
{
	list_append(&p->job->ready, &p->in_ready);
	put_in_order(p);
	first_changed(p->queue);
	shelf_add(p);
}

static void leave(struct peer *p)
{
	struct queue *queue = p->queue;
	if (queue->order.n == 1)
		selection_set(queue, QUEUE_QUIET);
	shelf_remove(p);
	list_remove(&p->in_ready);
	heap_remove(&queue->order, &p->in_order);
	first_changed(queue);
}

void selection_update(struct peer *p)
{
	if ((peer_selectable(p) > 0) == heap_has(&p->in_order))
		return;
	if (heap_has(&p->in_order))
		leave(p);
	else
		enter(p);
}

void selection_set(struct queue *queue, enum queue_state state)
{
	assert(state == QUEUE_QUIET || queue->order.n > 0);
	if (queue->state == state)
		return;
	if (queue->state != QUEUE_QUIET) {
		heap_remove(&queue->transport->queues[queue->state], &queue->in_turn);
		shelf_withdraw(queue);
	}
	queue->state = state;
	queue->transport->shelved++;
	if (queue->state != QUEUE_QUIET) {
		put_in_turn(queue);
		shelf_offer(queue);
	}
}

static void set_label(struct job *job, struct label label)
{
	job->label = label;
	list_each (link, tmp, &job->ready) {
		struct peer *p = list_entry(link, struct peer, in_ready);
		put_in_order(p);
		first_changed(p->queue);
	}
}

void selection_retire(struct job *job)
{
	bool moved = job->stack.level > 0;
	if (!moved && stack_leaf(&job->stack))
		return;
	preempt_pop(&job->stack, job->transport->settings);
	pool_return(job);
	job->transport->shelved++;
	line_leave(&job->moved);
	if (moved)
		set_label(job, (struct label){job->work->order, LINE_HOME});
}

static struct line_place *place_of(struct job *job)
{
	return job->stack.level > 0 ? &job->moved : &job->home;
}

static void follow_place(struct line_place *moved)
{
	struct job *job = list_entry(moved, struct job, moved);
	set_label(job, (struct label){job->label.order, moved->at});
}

/* The job comes in front of the current one, behind those that are there already. */
static void move_in_front(struct job *current, struct job *job)
{
	selection_retire(job);
	preempt_push(&current->stack, &job->stack, job_needed(job), job->transport->settings);
	line_enter(place_of(current), &job->moved, follow_place);
	set_label(job, (struct label){current->label.order, job->moved.at});
	pool_preempted(job);
	job->transport->shelved++;
}

static void try_to_preempt(struct transport *t, struct job *current, bool may_open)
{
	if (!preempt_possible(&current->stack, job_entries(current), t->settings))
		return;
	struct job *best = shelf_candidate(t, current, may_open);
	if (best && preempt_affordable(&current->stack, job_needed(best), t->settings))
		move_in_front(current, best);
}

static struct peer *first(const struct transport *t, bool may_open)
{
	const struct heap *best = &t->queues[QUEUE_PLACED], *hungry = &t->queues[QUEUE_HUNGRY];
	if (may_open && hungry->n > 0 &&
	    (best->n == 0 || heap_key_before(&hungry->slot[1].key, &best->slot[1].key)))
		best = hungry;
	if (best->n == 0)
		return NULL;
	const struct queue *queue = heap_entry(heap_first(best), struct queue, in_turn);
	return heap_entry(heap_first(&queue->order), struct peer, in_order);
}

struct peer *selection_next(struct transport *t, bool may_open)
{
	struct peer *p = first(t, may_open);
	if (!p)
		return NULL;
	try_to_preempt(t, p->job, may_open);
	return first(t, may_open);
}

void selection_took_turn(struct peer *p)
{
	struct transport *t = p->job->transport;
	p->turn = ++t->turns;
	/* It needs fewer slots now, and may have become a candidate. */
	t->shelved += p->job != t->candidate_cache.current;
	if (heap_has(&p->in_order)) {
		put_in_order(p);
		first_changed(p->queue);
	}
}

struct peer *selection_other(const struct queue *queue, bool (*fits)(const struct peer *))
{
	for (size_t i = 1; i <= queue->order.n && i <= OTHERS_MAX; i++) {
		struct peer *p = heap_entry(queue->order.slot[i].item, struct peer, in_order);
		if (fits(p))
			return p;
	}
	return NULL;
}
