/* SPDX-License-Identifier: ISC */
#include "qmgr/reading_order.h"

#include "base/keyed_hash.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Two domains of one hash are taken for one, which costs nothing but order. */
struct domain {
	uint64_t hash;
	uint32_t first, last;
};

struct domains {
	struct domain *domain; /* in the order of their coming */
	uint32_t n;
	uint32_t *slot; /* by hash, open addressing: number of the domain + 1; 0: empty */
	size_t slots;	/* a power of two, more than twice the recipients */
};

static uint64_t hash_of(const char *address)
{
	const char *at = strrchr(address, '@');
	const char *name = at ? at + 1 : "";
	return keyed_hash(name, strlen(name));
}

static uint32_t *slot_of(const struct domains *d, uint64_t hash)
{
	size_t at = hash & (d->slots - 1);
	while (d->slot[at] && d->domain[d->slot[at] - 1].hash != hash)
		at = (at + 1) & (d->slots - 1);
	return &d->slot[at];
}

/* next: of each recipient the following one of its domain, or 0. */
static void enter(struct domains *d, const char *address, uint32_t number, uint32_t *next)
{
	uint64_t hash = hash_of(address);
	uint32_t *slot = slot_of(d, hash);
	if (*slot) {
		struct domain *known = &d->domain[*slot - 1];
		next[known->last] = number;
		known->last = number;
		return;
	}
	d->domain[d->n++] = (struct domain){.hash = hash, .first = number, .last = number};
	*slot = d->n;
}

static uint32_t *lay_out(const struct domains *d, const uint32_t *next, uint32_t n)
{
	uint32_t *order = mem_alloc(n * sizeof *order), at = 0;
	for (uint32_t i = 0; i < d->n; i++) {
		uint32_t number = d->domain[i].first;
		do
			order[at++] = number;
		while ((number = next[number]) != 0);
	}
	return order;
}

uint32_t *reading_order(const struct envelope *e)
{
	struct domains d = {.slots = 2};
	while (d.slots <= 2 * (size_t)e->nrcpt)
		d.slots *= 2;
	d.slot = mem_zalloc(d.slots * sizeof *d.slot);
	d.domain = mem_alloc((e->nrcpt + 1) * sizeof *d.domain);
	uint32_t *next = mem_zalloc((e->nrcpt + 1) * sizeof *next);
	for (uint32_t i = 0; i < e->nrcpt; i++)
		enter(&d, e->rcpt[i].address, i, next);
	uint32_t *order = lay_out(&d, next, e->nrcpt);
	free(next);
	free(d.domain);
	free(d.slot);
	return order;
}
