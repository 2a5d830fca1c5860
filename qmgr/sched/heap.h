/* heap.h - a heap whose entries can change their order.
 *
 * A binary heap of items that lie inside the objects. The keys lie in the heap's own array, so that
 * comparing touches no object: with a million of them, that is what takes the time.
 *
 * OWNERSHIP  The heap owns only its array.
 * THREAD     One thread a heap.
 * ERRORS     None.
 */
#ifndef QMGR_SCHED_HEAP_H
#define QMGR_SCHED_HEAP_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The least comes first; second and third decide between equals. */
struct heap_key {
	uint64_t first, second, third;
};

struct heap_item {
	size_t slot; /* place in the heap, from 1; 0: in none */
};

struct heap_slot {
	struct heap_key key;
	struct heap_item *item;
};

struct heap {
	struct heap_slot *slot; /* slot[0] is not used */
	size_t n, cap;
};

#define heap_entry(it, type, member) ((type *)((char *)(it)-offsetof(type, member)))

void heap_init(struct heap *);
void heap_fini(struct heap *); /* it must be empty */

void heap_put(struct heap *, struct heap_item *, struct heap_key);
/* Enter it; or move it, if it is there already, to where this key belongs. */

void heap_remove(struct heap *, struct heap_item *); /* harmless on one that is in none */

static inline struct heap_item *heap_first(const struct heap *h)
{
	return h->n ? h->slot[1].item : NULL;
}

static inline struct heap_key heap_first_key(const struct heap *h) /* of one that is not empty */
{
	assert(h->n > 0);
	return h->slot[1].key;
}

static inline bool heap_has(const struct heap_item *it)
{
	return it->slot != 0;
}

static inline bool heap_key_same(const struct heap_key *a, const struct heap_key *b)
{
	return a->first == b->first && a->second == b->second && a->third == b->third;
}

static inline bool heap_key_before(const struct heap_key *a, const struct heap_key *b)
{
	if (a->first != b->first)
		return a->first < b->first;
	return a->second != b->second ? a->second < b->second : a->third < b->third;
}

#endif
