/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/selection.h"

#include "qmgr/sched/backlog.h"
#include "qmgr/sched/pool.h"
#include "qmgr/sched/shelf.h"

#include <assert.h>

enum { OTHERS_MAX = 64 };

void selection_init(struct transport *t)
{
	for (int state = QUEUE_PLACED; state < QUEUE_STATES; state++)
		heap_init(&t->claims[state]);
}

void selection_fini(struct transport *t)
{
	for (int state = QUEUE_PLACED; state < QUEUE_STATES; state++)
		heap_fini(&t->claims[state]);
}

void selection_init_queue(struct queue *queue, struct transport *t)
{
	*queue = (struct queue){.transport = t};
	list_init(&queue->peers);
	list_init(&queue->granted);
	list_init(&queue->in_dirty);
	list_init(&queue->in_parked);
	backlogs_init(queue);
	t->nqueue[QUEUE_QUIET]++;
}

void selection_fini_queue(struct queue *queue)
{
	assert(list_empty(&queue->peers) && list_empty(&queue->granted));
	assert(queue->waiting == 0 && queue->ngranted == 0);
	list_remove(&queue->in_dirty);
	list_remove(&queue->in_parked);
	selection_set(queue, QUEUE_QUIET);
	backlogs_fini(queue);
	assert(queue->transport->nqueue[QUEUE_QUIET] > 0);
	queue->transport->nqueue[QUEUE_QUIET]--;
}

static void enter_ready(struct peer *p)
{
	list_append(&p->job->ready, &p->in_ready);
	backlog_add(p);
}

static void leave_ready(struct peer *p)
{
	if (heap_has(&p->backlog->in_queue) && p->queue->backlogs.n == 1 &&
	    p->backlog->order.n == 1)
		selection_set(p->queue, QUEUE_QUIET);
	backlog_remove(p);
	list_remove(&p->in_ready);
}

void selection_update(struct peer *p)
{
	if ((peer_selectable(p) > 0) == heap_has(&p->in_order))
		return;
	if (heap_has(&p->in_order))
		leave_ready(p);
	else
		enter_ready(p);
}

void selection_set(struct queue *queue, enum queue_state state)
{
	assert(state == QUEUE_QUIET || queue->backlogs.n > 0);
	if (queue->state == state)
		return;
	backlog_hide(queue);
	assert(queue->transport->nqueue[queue->state] > 0);
	queue->transport->nqueue[queue->state]--;
	queue->state = state;
	queue->transport->nqueue[queue->state]++;
	backlog_show(queue);
}

static void set_label(struct job *job, struct label label)
{
	job->label = label;
	list_each (link, tmp, &job->ready)
		backlog_move(list_entry(link, struct peer, in_ready));
}

void selection_retire(struct job *job)
{
	bool moved = job->stack.level > 0;
	if (!moved && stack_leaf(&job->stack))
		return;
	preempt_pop(&job->stack, job->transport->settings);
	pool_return(job);
	job->claim->shelved++;
	line_leave(&job->moved);
	if (moved)
		set_label(job, (struct label){job->work->rank, LINE_HOME});
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
	job->claim->shelved++;
}

static void try_to_preempt(struct job *current, enum queue_state up_to)
{
	const struct conf_transport *settings = current->transport->settings;
	if (!preempt_possible(&current->stack, job_entries(current), settings))
		return;
	struct job *best = shelf_candidate(current, up_to);
	if (best && preempt_affordable(&current->stack, job_needed(best), settings))
		move_in_front(current, best);
}

static struct peer *first_of_transport(const struct transport *t, enum queue_state up_to)
{
	enum queue_state state;
	const struct claim *c = claim_first(t, up_to, &state);
	if (!c)
		return NULL;
	return backlog_first_peer(
		heap_entry(heap_first(&c->queues[state]), struct backlog, in_turn));
}

struct peer *selection_next(struct transport *t, enum queue_state up_to)
{
	struct peer *p = first_of_transport(t, up_to);
	if (!p)
		return NULL;
	try_to_preempt(p->job, up_to);
	return first_of_transport(t, up_to);
}

void selection_took_turn(struct peer *p)
{
	struct transport *t = p->job->transport;
	p->turn = ++t->turns;
	claim_served(p->job->claim);
	/* The job needs fewer slots now, and may have become a candidate. */
	p->job->claim->shelved += p->job != p->job->claim->candidate_cache.current;
	if (heap_has(&p->in_order))
		backlog_move(p);
}

struct peer *selection_first(const struct queue *queue)
{
	const struct backlog *b = backlog_first(queue);
	return b ? backlog_first_peer(b) : NULL;
}

static struct peer *other_of_flow(const struct backlog *b, bool (*fits)(const struct peer *))
{
	for (size_t i = 1; i <= b->order.n && i <= OTHERS_MAX; i++) {
		struct peer *p = heap_entry(b->order.slot[i].item, struct peer, in_order);
		if (fits(p))
			return p;
	}
	return NULL;
}

struct peer *selection_other(const struct queue *queue, bool (*fits)(const struct peer *))
{
	const struct backlog *first = backlog_first(queue);
	struct peer *found = first ? other_of_flow(first, fits) : NULL;
	for (size_t i = 2; !found && i <= queue->backlogs.n && i <= OTHERS_MAX; i++) {
		const struct backlog *b =
			heap_entry(queue->backlogs.slot[i].item, struct backlog, in_queue);
		if (fits(backlog_first_peer(b)))
			found = backlog_first_peer(b);
	}
	return found;
}
