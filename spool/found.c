/* SPDX-License-Identifier: ISC */
#include "spool/found.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

void found_fini(struct found *f)
{
	stub_pool_fini(&f->pool);
	domains_fini(&f->domains);
	free(f->slot);
}

/* The slot of this id, or the empty one where it belongs. */
static struct stub **find_slot(const struct found *f, uint64_t id)
{
	size_t i = (size_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (f->slots - 1);
	while (f->slot[i] && f->slot[i]->id != id)
		i = (i + 1) & (f->slots - 1);
	return &f->slot[i];
}

static void grow_slots(struct found *f)
{
	struct found old = *f;
	f->slots = old.slots ? old.slots * 2 : 1024;
	f->slot = mem_zalloc(f->slots * sizeof(struct stub *));
	for (size_t i = 0; i < old.slots; i++)
		if (old.slot[i])
			*find_slot(f, old.slot[i]->id) = old.slot[i];
	free(old.slot);
}

struct stub *found_get(struct found *f, uint64_t id)
{
	if (f->n * 2 >= f->slots)
		grow_slots(f);
	assert(f->n < f->slots);
	struct stub **slot = find_slot(f, id);
	if (!*slot) {
		*slot = stub_new(&f->pool);
		(*slot)->id = id;
		f->n++;
	}
	return *slot;
}

static int by_id(const void *a, const void *b)
{
	uint64_t x = (*(struct stub *const *)a)->id, y = (*(struct stub *const *)b)->id;
	return (x > y) - (x < y);
}

struct stub **found_take(struct found *f, size_t *n)
{
	struct stub **all = f->slot;
	*n = 0;
	for (size_t i = 0; i < f->slots; i++)
		if (all[i])
			all[(*n)++] = all[i];
	assert(*n == f->n);
	if (*n > 0)
		qsort(all, *n, sizeof(struct stub *), by_id);
	f->slot = NULL;
	f->n = f->slots = 0;
	/* The table was at least twice as large: of a long queue, megabytes. */
	return *n > 0 ? mem_realloc(all, *n * sizeof(struct stub *)) : all;
}

static int compare_id(const void *key, const void *stub)
{
	uint64_t a = *(const uint64_t *)key, b = (*(struct stub *const *)stub)->id;
	return (a > b) - (a < b);
}

struct stub *found_among(struct stub *const *sorted, size_t n, uint64_t id)
{
	struct stub **found = n ? bsearch(&id, sorted, n, sizeof *sorted, compare_id) : NULL;
	return found ? *found : NULL;
}
