/* SPDX-License-Identifier: ISC */
#include "spool/catalog.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void catalog_fini(struct catalog *c)
{
	free(c->row);
}

size_t catalog_from(const struct catalog *c, uint64_t id)
{
	size_t low = 0, high = c->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (c->row[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct stub *catalog_find(const struct catalog *c, uint64_t id)
{
	size_t i = catalog_from(c, id);
	return i < c->n && c->row[i].id == id ? c->row[i].stub : NULL;
}

struct stub *catalog_next(const struct catalog *c, uint64_t after)
{
	if (after == UINT64_MAX)
		return NULL;
	for (size_t i = catalog_from(c, after + 1); i < c->n; i++)
		if (c->row[i].stub)
			return c->row[i].stub;
	return NULL;
}

uint64_t catalog_last(const struct catalog *c)
{
	return c->n > 0 ? c->row[c->n - 1].id : 0;
}

static void grow(struct catalog *c, size_t n)
{
	if (n <= c->cap)
		return;
	c->cap = n < 64 ? 64 : n + n / 4;
	c->row = mem_realloc(c->row, c->cap * sizeof *c->row);
}

void catalog_add(struct catalog *c, struct stub *s)
{
	size_t i = catalog_from(c, s->id);
	c->live++;
	if (i < c->n && c->row[i].id == s->id) {
		assert(!c->row[i].stub);
		c->row[i].stub = s;
		return;
	}
	grow(c, c->n + 1);
	memmove(&c->row[i + 1], &c->row[i], (c->n - i) * sizeof *c->row);
	c->row[i] = (struct row){.id = s->id, .stub = s};
	c->n++;
}

static void close_gaps(struct catalog *c)
{
	size_t n = 0;
	for (size_t i = 0; i < c->n; i++)
		if (c->row[i].stub)
			c->row[n++] = c->row[i];
	c->n = n;
}

void catalog_merge(struct catalog *c, struct stub **stub, size_t n)
{
	close_gaps(c);
	grow(c, c->n + n);
	size_t i = c->n, to = c->n + n;
	c->n = to;
	c->live = to;
	/* From the back, so that nothing is overwritten before it has moved. */
	while (n > 0) {
		if (i > 0 && c->row[i - 1].id > stub[n - 1]->id) {
			c->row[--to] = c->row[--i];
			continue;
		}
		assert(i == 0 || c->row[i - 1].id != stub[n - 1]->id);
		n--;
		c->row[--to] = (struct row){.id = stub[n]->id, .stub = stub[n]};
	}
}

void catalog_remove(struct catalog *c, struct stub *s)
{
	size_t i = catalog_from(c, s->id);
	assert(i < c->n && c->row[i].stub == s);
	c->row[i].stub = NULL;
	assert(c->live > 0);
	if (--c->live < c->n / 2)
		close_gaps(c);
}

void catalog_shrink(struct catalog *c)
{
	close_gaps(c);
	if (c->cap <= c->n * 2 || c->cap <= 64)
		return;
	c->cap = c->n < 64 ? 64 : c->n * 2;
	c->row = mem_realloc(c->row, c->cap * sizeof *c->row);
}
