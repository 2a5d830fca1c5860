/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/backlog.h"

#include "base/mem.h"
#include "qmgr/sched/shelf.h"

#include <assert.h>
#include <stdlib.h>

/* So many are found by looking at each: most queues have no more. */
enum { WALKED = 8 };

static struct backlog *backlog_find(const struct queue *queue, const struct flow *f)
{
	struct backlog *b;
	int walked = 0;
	list_each (link, tmp, &queue->all_backlogs) {
		b = list_entry(link, struct backlog, in_all);
		if (b->flow == f)
			return b;
		if (++walked == WALKED)
			break;
	}
	HASH_FIND_PTR(queue->by_flow, &f, b);
	return b;
}

static struct backlog *backlog_get(struct queue *queue, struct flow *f)
{
	struct backlog *b = backlog_find(queue, f);
	if (b)
		return b;
	b = mem_zalloc(sizeof *b);
	b->queue = queue;
	b->flow = f;
	heap_init(&b->order);
	list_init(&b->in_flow);
	list_append(&queue->all_backlogs, &b->in_all);
	if (++queue->nbacklog > WALKED)
		HASH_ADD_PTR(queue->by_flow, flow, b);
	return b;
}

static void backlog_free(struct backlog *b)
{
	assert(b->queue->stands != b && !heap_has(&b->in_turn) && list_empty(&b->in_flow));
	assert(b->order.n == 0 && !b->shelves && !heap_has(&b->in_queue));
	if (b->hh.tbl)
		HASH_DEL(b->queue->by_flow, b);
	list_remove(&b->in_all);
	assert(b->queue->nbacklog > 0);
	b->queue->nbacklog--;
	heap_fini(&b->order);
	free(b);
}

/* --- who stands for its queue */

static void put_in_turn(struct backlog *b)
{
	assert(b->claim && b->queue->state != QUEUE_QUIET);
	struct claim *c = b->claim;
	heap_put(&c->queues[b->queue->state], &b->in_turn, heap_first_key(&b->order));
	claim_rank(c, b->queue->state);
}

void backlog_hide(struct queue *queue)
{
	struct backlog *b = queue->stands;
	if (!b)
		return;
	assert(heap_has(&b->in_turn));
	heap_remove(&b->claim->queues[queue->state], &b->in_turn);
	claim_rank(b->claim, queue->state);
	shelf_withdraw(b);
	b->claim->shelved++;
	queue->stands = NULL;
}

void backlog_show(struct queue *queue)
{
	struct backlog *first = queue->state != QUEUE_QUIET ? backlog_first(queue) : NULL;
	bool another = first != queue->stands;
	if (another)
		backlog_hide(queue);
	if (!first)
		return;
	queue->stands = first;
	put_in_turn(first);
	if (another) {
		shelf_offer(first);
		first->claim->shelved++;
	}
}

/* --- virtual time */

static void put_in_queue(struct backlog *b)
{
	heap_put(&b->queue->backlogs, &b->in_queue,
		 (struct heap_key){b->start, b->turn, claim_held(b->claim)});
}

static void remember_start(struct backlog *b)
{
	heap_put(&b->queue->owing, &b->in_queue, (struct heap_key){.first = b->start});
	b->claim = NULL;
	flow_owe(b->flow);
}

static void remember_no_more(struct backlog *b)
{
	heap_remove(&b->queue->owing, &b->in_queue);
	flow_owe_no_more(b->flow);
}

static void forget_up_to(struct queue *queue, uint64_t time)
{
	while (queue->owing.n > 0 && heap_first_key(&queue->owing).first <= time) {
		struct backlog *b = heap_entry(heap_first(&queue->owing), struct backlog, in_queue);
		struct flow *f = b->flow;
		heap_remove(&queue->owing, &b->in_queue);
		backlog_free(b);
		flow_owe_no_more(f);
	}
}

/* Its start tag is of a time that the queue has begun anew since. */
static bool is_forgotten(const struct backlog *b)
{
	return b->era != b->queue->era;
}

/* Its flow may hold much more than when it came, and who is new is to be compared with that. */
static void rank_first_again(const struct queue *queue)
{
	struct backlog *first = backlog_first(queue);
	if (first)
		put_in_queue(first);
}

static void begin_backlog(struct backlog *b)
{
	const struct peer *first = backlog_first_peer(b);
	if (heap_has(&b->in_queue))
		remember_no_more(b);
	b->claim = first->job->claim;
	if (is_forgotten(b) || b->start < b->queue->virtual_time)
		b->start = b->queue->virtual_time;
	b->era = b->queue->era;
	rank_first_again(b->queue);
	put_in_queue(b);
}

static void wait_barred(struct backlog *b)
{
	if (heap_has(&b->in_queue))
		remember_no_more(b);
}

static void forget_all_if_empty(struct queue *queue)
{
	if (queue->backlogs.n > 0)
		return;
	forget_up_to(queue, UINT64_MAX);
	queue->virtual_time = 0;
	queue->era++;
}

static void leave_queue(struct backlog *b)
{
	if (b->queue->stands == b)
		backlog_hide(b->queue);
	heap_remove(&b->queue->backlogs, &b->in_queue);
}

static void end_backlog(struct backlog *b)
{
	struct queue *queue = b->queue;
	leave_queue(b);
	list_remove(&b->in_flow);
	if (queue->backlogs.n > 0 && !is_forgotten(b) && b->start > queue->virtual_time)
		remember_start(b);
	else
		backlog_free(b);
	forget_all_if_empty(queue);
}

void backlog_bar(struct backlog *b)
{
	assert(b->flow->barred && b->order.n > 0 && heap_has(&b->in_queue));
	leave_queue(b);
	forget_all_if_empty(b->queue);
	backlog_show(b->queue);
}

void backlog_unbar(struct backlog *b)
{
	assert(!b->flow->barred && b->order.n > 0 && !heap_has(&b->in_queue));
	begin_backlog(b);
	backlog_show(b->queue);
}

void backlog_charge(struct peer *p)
{
	struct backlog *b = p->backlog;
	struct queue *queue = p->queue;
	uint64_t least = backlog_first(queue)->start;
	assert(least >= queue->virtual_time && b->start >= least);
	assert(!b->flow->barred && heap_has(&b->in_queue));
	queue->virtual_time = least;
	b->start += flow_step(b->flow);
	b->turn = queue->transport->turns;
	put_in_queue(b);
	forget_up_to(queue, least);
	backlog_show(queue);
}

void backlog_give_back(struct peer *p)
{
	struct backlog *b = p->backlog;
	uint64_t time = p->queue->virtual_time, step = flow_step(b->flow);
	if (b->flow->barred)
		return; /* as much is not due to it */
	b->start = b->start > time + step ? b->start - step : time;
	put_in_queue(b);
	backlog_show(p->queue);
}

/* --- peers */

static void put_in_order(struct peer *p)
{
	const struct label *label = &p->job->label;
	heap_put(&p->backlog->order, &p->in_order,
		 (struct heap_key){label->order, label->place, p->turn});
}

void backlog_add(struct peer *p)
{
	assert(!p->backlog && !heap_has(&p->in_order));
	struct backlog *b = p->backlog = backlog_get(p->queue, p->job->claim->flow);
	put_in_order(p);
	if (b->order.n == 1) {
		list_append(&b->flow->backlogs, &b->in_flow);
		if (b->flow->barred)
			wait_barred(b);
		else
			begin_backlog(b);
	}
	shelf_add(p);
	backlog_show(p->queue);
}

void backlog_remove(struct peer *p)
{
	struct backlog *b = p->backlog;
	shelf_remove(p);
	heap_remove(&b->order, &p->in_order);
	p->backlog = NULL;
	if (b->order.n == 0)
		end_backlog(b);
	backlog_show(p->queue);
}

void backlog_move(struct peer *p)
{
	put_in_order(p);
	backlog_show(p->queue);
}

void backlogs_init(struct queue *queue)
{
	list_init(&queue->all_backlogs);
	heap_init(&queue->backlogs);
	heap_init(&queue->owing);
}

void backlogs_fini(struct queue *queue)
{
	assert(list_empty(&queue->all_backlogs) && !queue->stands);
	heap_fini(&queue->backlogs);
	heap_fini(&queue->owing);
}
