/* SPDX-License-Identifier: ISC */
#include "spool/due.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

static bool is_before(const struct stub *a, const struct stub *b)
{
	return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->id < b->id;
}

static void put_stub(struct due *d, uint32_t slot, struct stub *s)
{
	assert(slot > 0 && slot <= d->n && slot < d->cap);
	d->heap[slot] = s;
	s->slot = slot;
}

static void sift_up(struct due *d, uint32_t slot, struct stub *s)
{
	for (; slot > 1 && is_before(s, d->heap[slot / 2]); slot /= 2)
		put_stub(d, slot, d->heap[slot / 2]);
	put_stub(d, slot, s);
}

static void sift_down(struct due *d, uint32_t slot, struct stub *s)
{
	for (uint32_t child; (child = slot * 2) <= d->n; slot = child) {
		if (child < d->n && is_before(d->heap[child + 1], d->heap[child]))
			child++;
		if (!is_before(d->heap[child], s))
			break;
		put_stub(d, slot, d->heap[child]);
	}
	put_stub(d, slot, s);
}

void due_fini(struct due *d)
{
	free(d->heap);
}

void due_add(struct due *d, struct stub *s)
{
	assert(s->slot == 0);
	if (d->n + 1 >= d->cap) {
		d->cap = d->cap ? d->cap + d->cap / 4 : 64;
		d->heap = mem_realloc(d->heap, d->cap * sizeof(struct stub *));
	}
	sift_up(d, ++d->n, s);
}

void due_remove(struct due *d, struct stub *s)
{
	uint32_t slot = s->slot;
	assert(slot > 0 && slot <= d->n);
	assert(d->heap[slot] == s);
	struct stub *last = d->heap[d->n--];
	s->slot = 0;
	if (last == s)
		return;
	put_stub(d, slot, last);
	due_moved(d, last);
}

void due_moved(struct due *d, struct stub *s)
{
	assert(s->slot > 0 && s->slot <= d->n);
	assert(d->heap[s->slot] == s);
	sift_up(d, s->slot, s);
	sift_down(d, s->slot, s);
}

void due_all_moved(struct due *d)
{
	for (uint32_t i = d->n / 2; i > 0; i--)
		sift_down(d, i, d->heap[i]);
}

void due_shrink(struct due *d)
{
	if (d->cap <= d->n * 2 || d->cap <= 64)
		return;
	d->cap = d->n * 2 < 64 ? 64 : d->n * 2;
	d->heap = mem_realloc(d->heap, d->cap * sizeof(struct stub *));
	assert(d->n < d->cap);
}
