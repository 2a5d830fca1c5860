/* SPDX-License-Identifier: ISC */
#include "smtpc/expected.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *expected_text(enum expected_kind kind)
{
	static const char *const texts[] = {
#define X(kind, text, ...) text,
		EXPECTED_KINDS(X)
#undef X
	};
	assert((size_t)kind < sizeof texts / sizeof *texts);
	return texts[kind];
}

enum verdict_stage expected_stage(enum expected_kind kind)
{
	static const enum verdict_stage stages[] = {
#define X(kind, text, handler, timeout, stage) VERDICT_AT_##stage,
		EXPECTED_KINDS(X)
#undef X
	};
	assert((size_t)kind < sizeof stages / sizeof *stages);
	return stages[kind];
}

void expected_init(struct expected_queue *q)
{
	memset(q, 0, sizeof *q);
}

void expected_fini(struct expected_queue *q)
{
	free(q->ring);
	memset(q, 0, sizeof *q);
}

static void grow_ring(struct expected_queue *q)
{
	size_t cap = q->cap ? q->cap * 2 : 8;
	assert(q->n == q->cap && (cap & (cap - 1)) == 0);
	struct expected *ring = mem_alloc(cap * sizeof *ring);
	for (size_t i = 0; i < q->n; i++)
		ring[i] = q->ring[(q->head + i) & (q->cap - 1)];
	free(q->ring);
	q->ring = ring;
	q->cap = cap;
	q->head = 0;
}

void expected_push(struct expected_queue *q, struct expected x)
{
	if (q->n == q->cap)
		grow_ring(q);
	q->ring[(q->head + q->n++) & (q->cap - 1)] = x;
}

const struct expected *expected_first(const struct expected_queue *q)
{
	return q->n ? &q->ring[q->head] : NULL;
}

struct expected expected_pop(struct expected_queue *q)
{
	assert(q->n > 0);
	struct expected x = q->ring[q->head];
	q->head = (q->head + 1) & (q->cap - 1);
	q->n--;
	return x;
}

void expected_again(struct expected_queue *q, struct expected x)
{
	if (q->n == q->cap)
		grow_ring(q);
	q->head = (q->head + q->cap - 1) & (q->cap - 1);
	q->ring[q->head] = x;
	q->n++;
}

void expected_clear(struct expected_queue *q)
{
	q->head = q->n = 0;
}
