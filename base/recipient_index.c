/* SPDX-License-Identifier: ISC */
#include "base/recipient_index.h"

#include "base/envelope.h"
#include "base/keyed_hash.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 16 };

/* The slot that has this address, or the empty one where it belongs. */
static uint32_t *find_slot(const struct recipient_index *x, const struct recipient *r,
			   const char *address)
{
	assert(x->slots > x->known);
	uint32_t at = (uint32_t)keyed_hash(address, strlen(address)) & (x->slots - 1);
	while (x->slot[at] && strcmp(r[x->slot[at] - 1].address, address) != 0)
		at = (at + 1) & (x->slots - 1);
	return &x->slot[at];
}

/* At most half of a table is full. */
static void make_room(struct recipient_index *x, uint32_t n)
{
	uint32_t slots = 4 * FEW;
	if (n <= x->slots / 2)
		return;
	while (slots / 4 < n)
		slots *= 2;
	recipient_index_forget(x);
	x->slots = slots;
	x->slot = mem_zalloc(slots * sizeof *x->slot);
	assert(x->slots / 2 >= n && (x->slots & (x->slots - 1)) == 0);
}

static void keep_up(struct recipient_index *x, const struct recipient *r, uint32_t n)
{
	make_room(x, n);
	for (; x->known < n; x->known++) {
		uint32_t *slot = find_slot(x, r, r[x->known].address);
		if (!*slot)
			*slot = x->known + 1;
	}
}

static uint32_t look_through(const struct recipient *r, uint32_t n, const char *address)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(r[i].address, address) == 0)
			return i;
	return RECIPIENT_INDEX_NONE;
}

uint32_t recipient_index_find(struct recipient_index *x, const struct recipient *r, uint32_t n,
			      const char *address)
{
	assert(x->known <= n); /* else some went, and it was not told to forget */
	if (n <= FEW)
		return look_through(r, n, address);
	keep_up(x, r, n);
	uint32_t found = *find_slot(x, r, address);
	assert(found <= n);
	return found ? found - 1 : RECIPIENT_INDEX_NONE;
}

void recipient_index_forget(struct recipient_index *x)
{
	free(x->slot);
	*x = (struct recipient_index){0};
}
