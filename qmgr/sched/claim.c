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
	for (int state = QUEUE_PLACED; state < QUEUE_STATES; state++)
		heap_fini(&c->queues[state]);
	list_remove(&c->in_flow);
	free(c);
}

uint64_t claim_held(const struct claim *c)
{
	return (uint64_t)c->under_way * flow_step(c->flow);
}

static void rank_in_state(struct claim *c, enum queue_state state)
{
	heap_put(&c->transport->claims[state], &c->in_turn[state],
		 (struct heap_key){claim_held(c), c->turn, c->number});
}

static void rank_again(struct claim *c)
{
	for (int state = QUEUE_PLACED; state < QUEUE_STATES; state++)
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
	assert(state != QUEUE_QUIET);
	if (c->queues[state].n == 0)
		heap_remove(&c->transport->claims[state], &c->in_turn[state]);
	else if (!heap_has(&c->in_turn[state]))
		rank_in_state(c, state);
}

static struct claim *first_in(const struct transport *t, enum queue_state state)
{
	struct heap_item *first = heap_first(&t->claims[state]);
	assert(!first || heap_entry(first - state, struct claim, in_turn)->queues[state].n > 0);
	return first ? heap_entry(first - state, struct claim, in_turn) : NULL;
}

/* Of one flow it is the order of its jobs that decides. */
static bool comes_first(const struct claim *a, enum queue_state of_a, const struct claim *b,
			enum queue_state of_b)
{
	const struct heap_slot *first = a->transport->claims[of_a].slot,
			       *second = a->transport->claims[of_b].slot;
	if (a == b) {
		first = a->queues[of_a].slot;
		second = a->queues[of_b].slot;
	}
	return heap_key_before(&first[1].key, &second[1].key);
}

struct claim *claim_first(const struct transport *t, enum queue_state up_to,
			  enum queue_state *state)
{
	struct claim *best = NULL;
	for (int i = QUEUE_PLACED; i <= (int)up_to; i++) {
		enum queue_state of = (enum queue_state)i;
		struct claim *c = first_in(t, of);
		if (c && (!best || comes_first(c, of, best, *state))) {
			best = c;
			*state = of;
		}
	}
	return best;
}
