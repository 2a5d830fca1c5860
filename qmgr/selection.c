/* SPDX-License-Identifier: ISC */
#include "qmgr/selection.h"

#include "qmgr/message.h"
#include "qmgr/pool.h"
#include "qmgr/shelf.h"

#include <assert.h>

/* A child gets this part of the free places in front of the job that it slips past. */
enum { ROOM_SHARE = 16, OTHERS_MAX = 64 };

static void put_in_order(struct peer *p)
{
	const struct label *label = &p->job->label;
	heap_put(&p->site->order, &p->in_order,
		 (struct heap_key){label->order, label->place, p->turn});
}

/* A site comes where its first peer does. */
static void put_in_turn(struct site *s)
{
	heap_put(&s->transport->sites[s->state], &s->in_turn, heap_first_key(&s->order));
}

void selection_init(struct transport *t)
{
	for (int state = SITE_PLACED; state <= SITE_HUNGRY; state++)
		heap_init(&t->sites[state]);
	shelf_init(t);
}

void selection_fini(struct transport *t)
{
	for (int state = SITE_PLACED; state <= SITE_HUNGRY; state++)
		heap_fini(&t->sites[state]);
	shelf_fini(t);
}

void selection_init_site(struct site *s)
{
	heap_init(&s->order);
}

void selection_fini_site(struct site *s)
{
	assert(s->state == SITE_QUIET && !s->shelves);
	heap_fini(&s->order);
}

/* The first peer of the site may be another now. */
static void first_changed(struct site *s)
{
	if (s->state != SITE_QUIET)
		put_in_turn(s);
}

static void enter(struct peer *p)
{
	list_append(&p->job->ready, &p->in_ready);
	put_in_order(p);
	first_changed(p->site);
	shelf_add(p);
}

static void leave(struct peer *p)
{
	struct site *s = p->site;
	if (s->order.n == 1)
		selection_set(s, SITE_QUIET);
	shelf_remove(p);
	list_remove(&p->in_ready);
	heap_remove(&s->order, &p->in_order);
	first_changed(s);
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

void selection_set(struct site *s, enum site_state state)
{
	assert(state == SITE_QUIET || s->order.n > 0);
	if (s->state == state)
		return;
	if (s->state != SITE_QUIET) {
		heap_remove(&s->transport->sites[s->state], &s->in_turn);
		shelf_withdraw(s);
	}
	s->state = state;
	s->transport->shelved++;
	if (s->state != SITE_QUIET) {
		put_in_turn(s);
		shelf_offer(s);
	}
}

static void set_label(struct job *job, struct label label, uint64_t floor)
{
	job->label = label;
	job->room = job->floor = floor;
	list_each (link, tmp, &job->ready) {
		struct peer *p = list_entry(link, struct peer, in_ready);
		put_in_order(p);
		first_changed(p->site);
	}
}

void selection_retire(struct job *job)
{
	struct stack *parent = job->stack.parent;
	bool moved = job->stack.level > 0;
	if (!moved && stack_leaf(&job->stack))
		return;
	preempt_pop(&job->stack, job->transport->settings);
	pool_return(job);
	job->transport->shelved++;
	if (parent && stack_leaf(parent)) {
		struct job *p = list_entry(parent, struct job, stack);
		p->room = p->floor;
	}
	if (moved)
		set_label(job, (struct label){job->message->order, UINT64_MAX}, 0);
}

/* The job comes in front of the current one, behind those that are there already. False: no place
 * is left, after hundreds that are blocked. */
static bool move_in_front(struct job *current, struct job *job)
{
	uint64_t floor = current->room, room = current->label.place - floor;
	if (room < 2 * ROOM_SHARE)
		return false;
	selection_retire(job);
	preempt_push(&current->stack, &job->stack, job_needed(job), job->transport->settings);
	current->room = floor + room / ROOM_SHARE;
	set_label(job, (struct label){current->label.order, current->room}, floor);
	pool_preempted(job);
	job->transport->shelved++;
	return true;
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
	const struct heap *best = &t->sites[SITE_PLACED], *hungry = &t->sites[SITE_HUNGRY];
	if (may_open && hungry->n > 0 &&
	    (best->n == 0 || heap_key_before(&hungry->slot[1].key, &best->slot[1].key)))
		best = hungry;
	if (best->n == 0)
		return NULL;
	const struct site *s = heap_entry(heap_first(best), struct site, in_turn);
	return heap_entry(heap_first(&s->order), struct peer, in_order);
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
		first_changed(p->site);
	}
}

struct peer *selection_other(const struct site *s, bool (*fits)(const struct peer *))
{
	for (size_t i = 1; i <= s->order.n && i <= OTHERS_MAX; i++) {
		struct peer *p = heap_entry(s->order.slot[i].item, struct peer, in_order);
		if (fits(p))
			return p;
	}
	return NULL;
}
