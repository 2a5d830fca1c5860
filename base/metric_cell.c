/* SPDX-License-Identifier: ISC */
/* Counters whose labels come up at run time: a list for each family that only grows, at its end. */
#include "base/mem.h"
#include "base/metrics.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct metric_cell {
	_Atomic(struct metric_cell *) next;
	_Atomic int64_t value;
	char *label[2];
};

static _Atomic(struct metric_cell *) families[FAMILY_COUNT];

static bool has_labels(const struct metric_cell *c, const char *first, const char *second)
{
	assert(!c->label[1] == !second); /* by the family */
	return strcmp(c->label[0], first) == 0 && (!second || strcmp(c->label[1], second) == 0);
}

static struct metric_cell *cell_new(const char *first, const char *second)
{
	struct metric_cell *c = mem_zalloc(sizeof *c);
	c->label[0] = mem_strdup(first);
	c->label[1] = mem_strdup(second);
	return c;
}

static void cell_free(struct metric_cell *c)
{
	if (!c)
		return;
	free(c->label[0]);
	free(c->label[1]);
	free(c);
}

struct metric_cell *metric_cell(enum metric_family f, const char *first, const char *second)
{
	assert(f < FAMILY_COUNT);
	_Atomic(struct metric_cell *) *at = &families[f];
	struct metric_cell *fresh = NULL;
	for (int n = 0;; n++) {
		struct metric_cell *c = atomic_load_explicit(at, memory_order_acquire);
		if (!c) {
			/* The last place is for all that come too late. */
			cell_free(fresh);
			fresh = n < METRIC_CELLS_MAX - 1
					? cell_new(first, second)
					: cell_new("other", second ? "other" : NULL);
			if (atomic_compare_exchange_strong_explicit(
				    at, &c, fresh, memory_order_acq_rel, memory_order_acquire))
				return fresh;
		}
		if (has_labels(c, first, second) || n >= METRIC_CELLS_MAX - 1) {
			cell_free(fresh);
			return c;
		}
		at = &c->next;
	}
}

void metric_cell_add(struct metric_cell *c, int64_t n)
{
	int64_t before = atomic_fetch_add_explicit(&c->value, n, memory_order_relaxed);
	assert(before != METRIC_GONE); /* what is set is not added to */
	(void)before;
}

void metric_cell_set(struct metric_cell *c, int64_t n)
{
	atomic_store_explicit(&c->value, n, memory_order_relaxed);
}

const struct metric_cell *metric_cell_next(enum metric_family f, const struct metric_cell *c)
{
	assert(f < FAMILY_COUNT);
	return atomic_load_explicit(c ? &((struct metric_cell *)c)->next : &families[f],
				    memory_order_acquire);
}

const char *metric_cell_label(const struct metric_cell *c, int n)
{
	assert(n == 0 || n == 1);
	return c->label[n];
}

int64_t metric_cell_value(const struct metric_cell *c)
{
	return atomic_load_explicit(&((struct metric_cell *)c)->value, memory_order_relaxed);
}

int64_t metric_cells_sum(enum metric_family f, const char *first)
{
	int64_t sum = 0;
	for (const struct metric_cell *c = NULL; (c = metric_cell_next(f, c));)
		if (!first || strcmp(c->label[0], first) == 0)
			sum += metric_cell_value(c);
	return sum;
}
