/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/claim.h"

#include "base/mem.h"
#include "qmgr/sched/transport.h"

#include <assert.h>
#include <stdlib.h>

static struct claim *claim_new(struct flow *f, struct transport *t)
{
	struct claim *c = mem_zalloc(sizeof *c);
	c->flow = f;
	c->transport = t;
	c->number = ++t->nclaim;
	list_append(&f->claims, &c->in_flow);
	return c;
}

struct claim *claim_join(struct flow *f, struct transport *t)
{
	struct claim *found = NULL;
	list_each (link, tmp, &f->claims) {
		struct claim *c = list_entry(link, struct claim, in_flow);
		if (c->transport == t)
			found = c;
	}
	if (!found)
		found = claim_new(f, t);
	found->njob++;
	return found;
}

void claim_part(struct claim *c)
{
	assert(c->njob > 0);
	if (--c->njob > 0)
		return;
	assert(c->under_way == 0 && !c->sizes);
	for (int state = QUEUE_PLACED; state <= QUEUE_HUNGRY; state++)
		heap_fini(&c->queues[state]);
	list_remove(&c->in_flow);
	free(c);
}

static void rank_in_state(struct claim *c, enum queue_state state)
{
	uint64_t held = (uint64_t)c->under_way * flow_step(c->flow);
	heap_put(&c->transport->claims[state], &c->in_turn[state],
		 (struct heap_key){held, c->turn, c->number});
}

static void rank_again(struct claim *c)
{
	for (int state = QUEUE_PLACED; state <= QUEUE_HUNGRY; state++)
		if (heap_has(&c->in_turn[state]))
			rank_in_state(c, (enum queue_state)state);
}

void claim_count(struct claim *c, int64_t n)
{
	c->under_way += n;
	assert(c->under_way >= 0);
	rank_again(c);
}

void claim_served(struct claim *c)
{
	c->turn = c->transport->turns;
	rank_again(c);
}

void claim_rank(struct claim *c, enum queue_state state)
{
	if (c->queues[state].n == 0)
		heap_remove(&c->transport->claims[state], &c->in_turn[state]);
	else if (!heap_has(&c->in_turn[state]))
		rank_in_state(c, state);
}

static struct claim *first_in(const struct transport *t, enum queue_state state)
{
	struct heap_item *first = heap_first(&t->claims[state]);
	return first ? heap_entry(first - state, struct claim, in_turn) : NULL;
}

/* Of one flow it is the order of its jobs that decides. */
static bool hungry_is_first(const struct transport *t, const struct claim *placed,
			    const struct claim *hungry)
{
	const struct heap_slot *a = t->claims[QUEUE_PLACED].slot, *b = t->claims[QUEUE_HUNGRY].slot;
	if (placed == hungry) {
		a = placed->queues[QUEUE_PLACED].slot;
		b = hungry->queues[QUEUE_HUNGRY].slot;
	}
	return heap_key_before(&b[1].key, &a[1].key);
}

struct claim *claim_first(const struct transport *t, bool may_open, enum queue_state *state)
{
	struct claim *placed = first_in(t, QUEUE_PLACED);
	struct claim *hungry = may_open ? first_in(t, QUEUE_HUNGRY) : NULL;
	bool take_hungry = hungry && (!placed || hungry_is_first(t, placed, hungry));
	*state = take_hungry ? QUEUE_HUNGRY : QUEUE_PLACED;
	return take_hungry ? hungry : placed;
}
