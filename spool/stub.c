/* SPDX-License-Identifier: ISC */
#include "spool/stub.h"

#include "base/mem.h"
#include "base/metrics.h"
#include "spool/payload.h"
#include "spool/spool_core.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void work_add(struct work *w, struct spool_delivered *d)
{
	d->note.next = NULL;
	if (w->last)
		w->last->note.next = &d->note;
	else
		w->first = d;
	w->last = d;
}

enum { BLOCK = 1024 }; /* stubs made at once */

struct stub_block {
	struct stub_block *next;
	struct stub stub[BLOCK];
};

/* A free stub keeps the pointer to the next where its work was. */
static struct stub **next_free(struct stub *s)
{
	return (struct stub **)&s->work;
}

struct stub *stub_new(struct stub_pool *p)
{
	if (!p->free) {
		struct stub_block *b = mem_alloc(sizeof *b);
		b->next = p->block;
		p->block = b;
		for (int i = BLOCK; i > 0; i--)
			stub_free(p, &b->stub[i - 1]);
	}
	struct stub *s = p->free;
	p->free = *next_free(s);
	memset(s, 0, sizeof *s);
	return s;
}

void stub_free(struct stub_pool *p, struct stub *s)
{
	assert(s != p->free);
	*next_free(s) = p->free;
	p->free = s;
}

void stub_pool_fini(struct stub_pool *p)
{
	for (struct stub_block *b; (b = p->block);) {
		p->block = b->next;
		free(b);
	}
	p->free = NULL;
}

void stub_pool_join(struct stub_pool *p, struct stub_pool *from)
{
	struct stub_block **last = &from->block;
	while (*last)
		last = &(*last)->next;
	*last = p->block;
	p->block = from->block;
	from->block = NULL;
	while (from->free) {
		struct stub *s = from->free;
		from->free = *next_free(s);
		stub_free(p, s);
	}
}

void work_hold(struct work *w, const struct place *p)
{
	assert(p->segment);
	if (w->nplace > 0 && w->place[w->nplace - 1].segment == p->segment)
		return;
	w->place = mem_realloc(w->place, (w->nplace + 1) * sizeof *w->place);
	w->place[w->nplace++] = *p;
	segment_hold(p, USE_WORK);
}

void work_free(struct work *w, struct journal *j)
{
	if (!w)
		return;
	work_free(w->lower, j);
	for (size_t i = 0; i < w->nplace; i++)
		journal_let_go(j, &w->place[i], USE_WORK);
	while (w->first) {
		struct spool_delivered *d = w->first;
		w->first = (struct spool_delivered *)d->note.next;
		delivered_free(d);
	}
	content_file_unref(w->file);
	free(w->place);
	free(w);
}

static const enum metric gauge[] = {
	[STUB_INCOMING] = METRIC_queue_incoming, [STUB_DEFERRED] = METRIC_queue_deferred,
	[STUB_HELD] = METRIC_queue_hold,	 [STUB_ACTIVE] = METRIC_queue_active,
	[STUB_ADOPTED] = METRIC_queue_hold,
};

#define STUB_TO(state) (1U << STUB_##state)

/* GONE is also what is on its way: written, but not yet what a queue shows. */
static const unsigned may_follow[] = {
	[STUB_INCOMING] = STUB_TO(ACTIVE) | STUB_TO(DEFERRED) | STUB_TO(GONE),
	[STUB_DEFERRED] = STUB_TO(ACTIVE) | STUB_TO(DEFERRED) | STUB_TO(GONE),
	[STUB_HELD] = STUB_TO(ACTIVE) | STUB_TO(GONE),
	[STUB_ACTIVE] = STUB_TO(DEFERRED) | STUB_TO(HELD) | STUB_TO(GONE),
	[STUB_ADOPTED] = STUB_TO(INCOMING) | STUB_TO(DEFERRED) | STUB_TO(HELD) | STUB_TO(GONE),
	[STUB_GONE] = STUB_TO(ADOPTED) | STUB_TO(INCOMING) | STUB_TO(DEFERRED) | STUB_TO(HELD) |
		      STUB_TO(ACTIVE) | STUB_TO(GONE),
};

void stub_enter(struct spool *s, struct stub *stub, enum stub_state state)
{
	assert(stub->state <= STUB_GONE);
	assert(state <= STUB_GONE);
	assert(may_follow[stub->state] & 1U << state);
	if (stub->state == STUB_INCOMING)
		inflow_remove(&s->incoming, stub);
	if (stub->state == STUB_DEFERRED)
		due_remove(&s->deferred, stub);
	if (stub->state == STUB_DEFERRED && state != STUB_DEFERRED) {
		parked_leave(&s->parked, stub);
		stub->urgent = false;
		stub->scheduled = false;
	}
	if (stub->state != STUB_GONE)
		metrics_add(gauge[stub->state], -1);
	if (stub->state == STUB_ACTIVE) {
		assert(s->active > 0);
		s->active--;
	}
	s->active += state == STUB_ACTIVE;
	stub->state = state;
	if (state != STUB_GONE)
		metrics_add(gauge[state], 1);
	if (state == STUB_INCOMING)
		inflow_add(&s->incoming, stub);
	if (state == STUB_DEFERRED)
		due_add(&s->deferred, stub);
}

enum spool_queue stub_queue(const struct stub *stub)
{
	static const enum spool_queue queue_of[] = {
		[STUB_INCOMING] = SPOOL_INCOMING, [STUB_ACTIVE] = SPOOL_ACTIVE,
		[STUB_DEFERRED] = SPOOL_DEFERRED, [STUB_HELD] = SPOOL_HOLD,
		[STUB_ADOPTED] = SPOOL_HOLD,
	};
	assert(stub->state < STUB_GONE);
	return queue_of[stub->state];
}
