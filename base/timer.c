/* SPDX-License-Identifier: ISC */
#include "base/timer.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

void timers_init(struct timers *h)
{
	*h = (struct timers){0};
}

void timers_fini(struct timers *h)
{
	free(h->heap);
	timers_init(h);
}

void timer_init(struct timer *t, void (*expired)(void *owner), void *owner)
{
	*t = (struct timer){.expired = expired, .owner = owner};
}

static void place_timer(struct timers *h, size_t slot, struct timer *t)
{
	assert(slot > 0 && slot <= h->n);
	h->heap[slot] = t;
	t->slot = slot;
}

static void sift_up(struct timers *h, size_t slot, struct timer *t)
{
	while (slot > 1 && h->heap[slot / 2]->due_ms > t->due_ms) {
		place_timer(h, slot, h->heap[slot / 2]);
		slot /= 2;
	}
	place_timer(h, slot, t);
}

static void sift_down(struct timers *h, size_t slot, struct timer *t)
{
	for (size_t child; (child = slot * 2) <= h->n; slot = child) {
		if (child < h->n && h->heap[child + 1]->due_ms < h->heap[child]->due_ms)
			child++;
		if (h->heap[child]->due_ms >= t->due_ms)
			break;
		place_timer(h, slot, h->heap[child]);
	}
	place_timer(h, slot, t);
}

void timer_start(struct timers *h, struct timer *t, int64_t due_ms)
{
	assert(t->expired);
	timer_stop(h, t);
	t->due_ms = due_ms;
	if (h->n + 2 > h->cap) {
		h->cap = h->cap ? h->cap * 2 : 16;
		h->heap = mem_realloc(h->heap, h->cap * sizeof *h->heap);
	}
	assert(h->n + 1 < h->cap);
	sift_up(h, ++h->n, t);
}

void timer_stop(struct timers *h, struct timer *t)
{
	size_t slot = t->slot;
	if (slot == 0)
		return;
	assert(slot <= h->n && h->heap[slot] == t);
	t->slot = 0;
	struct timer *last = h->heap[h->n--];
	if (last == t)
		return;
	if (slot > 1 && h->heap[slot / 2]->due_ms > last->due_ms)
		sift_up(h, slot, last);
	else
		sift_down(h, slot, last);
}

int64_t timers_next(const struct timers *h)
{
	return h->n ? h->heap[1]->due_ms : INT64_MAX;
}

void timers_run(struct timers *h, int64_t now_ms)
{
	/* No more than there were at the beginning: a callback that starts its timer anew with no
	 * delay must not keep the thread here for ever. */
	size_t most = h->n;
	while (most-- > 0 && h->n && h->heap[1]->due_ms <= now_ms) {
		struct timer *t = h->heap[1];
		timer_stop(h, t);
		t->expired(t->owner);
	}
}
