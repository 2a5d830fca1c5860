/* SPDX-License-Identifier: ISC */
#include "spool/given_back.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

void given_back_add(struct given_back *g, uint64_t id, uint32_t generation)
{
	assert(generation > 0);
	if (g->n == g->room) {
		g->room = g->room ? g->room * 2 : 64;
		g->of = mem_realloc(g->of, g->room * sizeof *g->of);
	}
	g->unsorted |= g->n > 0 && g->of[g->n - 1].id >= id;
	g->of[g->n++] = (struct given_back_one){.id = id, .generation = generation};
}

void given_back_join(struct given_back *g, struct given_back *from)
{
	for (size_t i = 0; i < from->n; i++)
		given_back_add(g, from->of[i].id, from->of[i].generation);
	given_back_fini(from);
}

/* The highest generation of an id comes last. */
static int compare_both(const void *a, const void *b)
{
	const struct given_back_one *x = a, *y = b;
	if (x->id != y->id)
		return (x->id > y->id) - (x->id < y->id);
	return (x->generation > y->generation) - (x->generation < y->generation);
}

static void sort_and_merge(struct given_back *g)
{
	size_t kept = 0;
	qsort(g->of, g->n, sizeof *g->of, compare_both);
	for (size_t i = 0; i < g->n; i++) {
		bool again = kept > 0 && g->of[kept - 1].id == g->of[i].id;
		g->of[kept - again] = g->of[i];
		kept += !again;
	}
	g->n = kept;
	g->unsorted = false;
}

static int compare_id(const void *key, const void *one)
{
	uint64_t a = *(const uint64_t *)key, b = ((const struct given_back_one *)one)->id;
	return (a > b) - (a < b);
}

uint32_t given_back_generation(struct given_back *g, uint64_t id)
{
	if (g->unsorted)
		sort_and_merge(g);
	const struct given_back_one *one =
		g->n ? bsearch(&id, g->of, g->n, sizeof *g->of, compare_id) : NULL;
	return one ? one->generation : 0;
}

void given_back_fini(struct given_back *g)
{
	free(g->of);
	*g = (struct given_back){.n = 0};
}
