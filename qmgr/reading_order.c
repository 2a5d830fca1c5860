/* SPDX-License-Identifier: ISC */
#include "qmgr/reading_order.h"

#include "base/keyed_hash.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Two domains of one hash are taken for one, which costs nothing but order. */
struct piece {
	uint64_t hash;		 /* of the domain */
	uint32_t first, last, n; /* recipients */
};

struct pieces {
	struct piece *piece; /* in the order of their first recipients */
	uint32_t n;
	uint32_t *
		slot; /* by hash, open addressing: number of the domain's last piece + 1; 0: empty */
	size_t slots;	/* a power of two, more than twice the recipients */
	uint32_t *next; /* of each recipient but the last of a piece, the following one */
};

static uint64_t hash_of(const char *address)
{
	const char *at = strrchr(address, '@');
	const char *name = at ? at + 1 : "";
	return keyed_hash(name, strlen(name));
}

static uint32_t *slot_of(const struct pieces *p, uint64_t hash)
{
	size_t at = hash & (p->slots - 1);
	while (p->slot[at] && p->piece[p->slot[at] - 1].hash != hash)
		at = (at + 1) & (p->slots - 1);
	return &p->slot[at];
}

static void enter_recipient(struct pieces *p, const char *address, uint32_t number, uint32_t most)
{
	assert(p->n < p->slots / 2); /* one is empty */
	uint64_t hash = hash_of(address);
	uint32_t *slot = slot_of(p, hash);
	struct piece *last = *slot ? &p->piece[*slot - 1] : NULL;
	assert(!last || last->last < number);
	if (last && last->n < most) {
		p->next[last->last] = number;
		last->last = number;
		last->n++;
		return;
	}
	p->piece[p->n++] = (struct piece){.hash = hash, .first = number, .last = number, .n = 1};
	*slot = p->n;
}

static uint32_t *lay_out(const struct pieces *p, uint32_t n)
{
	uint32_t *order = mem_alloc(n * sizeof *order), at = 0;
	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t number = p->piece[i].first;
		for (uint32_t left = p->piece[i].n; left > 0; left--) {
			order[at++] = number;
			number = p->next[number];
		}
	}
	assert(at == n);
	return order;
}

uint32_t *reading_order(const struct envelope *e, uint32_t most)
{
	assert(most > 0);
	struct pieces p = {.slots = 2};
	while (p.slots <= 2 * (size_t)e->nrcpt)
		p.slots *= 2;
	p.slot = mem_zalloc(p.slots * sizeof *p.slot);
	p.piece = mem_alloc(e->nrcpt * sizeof *p.piece);
	p.next = mem_zalloc(e->nrcpt * sizeof *p.next);
	for (uint32_t i = 0; i < e->nrcpt; i++)
		enter_recipient(&p, e->rcpt[i].address, i, most);
	uint32_t *order = lay_out(&p, e->nrcpt);
	free(p.next);
	free(p.piece);
	free(p.slot);
	return order;
}
