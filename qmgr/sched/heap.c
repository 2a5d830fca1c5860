/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/heap.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

void heap_init(struct heap *h)
{
	*h = (struct heap){0};
}

void heap_fini(struct heap *h)
{
	assert(h->n == 0);
	free(h->slot);
	heap_init(h);
}

static void set_slot(struct heap *h, size_t slot, const struct heap_slot *s)
{
	h->slot[slot] = *s;
	s->item->slot = slot;
}

static bool is_before(const struct heap_slot *a, const struct heap_slot *b)
{
	return heap_key_before(&a->key, &b->key);
}

static void sift_up(struct heap *h, size_t slot, const struct heap_slot *s)
{
	for (; slot > 1 && is_before(s, &h->slot[slot / 2]); slot /= 2)
		set_slot(h, slot, &h->slot[slot / 2]);
	set_slot(h, slot, s);
}

static void sift_down(struct heap *h, size_t slot, const struct heap_slot *s)
{
	for (size_t child; (child = slot * 2) <= h->n; slot = child) {
		if (child < h->n && is_before(&h->slot[child + 1], &h->slot[child]))
			child++;
		if (!is_before(&h->slot[child], s))
			break;
		set_slot(h, slot, &h->slot[child]);
	}
	set_slot(h, slot, s);
}

static void settle_slot(struct heap *h, size_t slot, const struct heap_slot *s)
{
	if (slot > 1 && is_before(s, &h->slot[slot / 2]))
		sift_up(h, slot, s);
	else
		sift_down(h, slot, s);
}

static size_t new_slot(struct heap *h)
{
	if (h->n + 2 > h->cap) {
		h->cap = h->cap ? h->cap * 2 : 4;
		h->slot = mem_realloc(h->slot, h->cap * sizeof *h->slot);
	}
	return ++h->n;
}

void heap_put(struct heap *h, struct heap_item *it, struct heap_key key)
{
	assert(!heap_has(it) || h->slot[it->slot].item == it);
	if (heap_has(it) && heap_key_same(&h->slot[it->slot].key, &key))
		return;
	size_t slot = heap_has(it) ? it->slot : new_slot(h);
	settle_slot(h, slot, &(struct heap_slot){key, it});
}

void heap_remove(struct heap *h, struct heap_item *it)
{
	size_t slot = it->slot;
	if (slot == 0)
		return;
	assert(slot <= h->n && h->slot[slot].item == it);
	it->slot = 0;
	struct heap_slot last = h->slot[h->n--];
	if (last.item != it)
		settle_slot(h, slot, &last);
}
