/* SPDX-License-Identifier: ISC */
#include "spool/shape.h"

#include "base/keyed_hash.h"
#include "base/mem.h"
#include "spool/domains.h"
#include "spool/spool.h"

#include <stdlib.h>
#include <string.h>

/* A row while rows are found by name. */
struct named {
	struct shape_row row;
	UT_hash_handle hh;
};

struct shape *shape_new(void)
{
	struct shape *s = mem_zalloc(sizeof *s);
	s->buckets = 10;
	s->first_ms = 5 * 60 * 1000;
	s->queues = 1u << SPOOL_INCOMING | 1u << SPOOL_ACTIVE;
	return s;
}

void shape_free(struct shape **sp)
{
	struct shape *s = *sp;
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++) {
		free(s->row[i].name);
		free(s->row[i].count);
	}
	free(s->row);
	free(s->all.count);
	free(s->cell);
	free(s);
	*sp = NULL;
}

int shape_bucket(const struct shape *s, int64_t age_ms)
{
	int64_t width = age_ms / s->first_ms;
	int bucket = 0;
	if (s->linear)
		return width < s->buckets ? (int)width : s->buckets - 1;
	for (; width > 0 && bucket < s->buckets - 1; width /= 2)
		bucket++;
	return bucket;
}

void shape_begin(struct shape *s, const struct domains *d)
{
	s->ncell = domains_end(d);
	s->cell = mem_zalloc((size_t)s->ncell * (size_t)s->buckets * sizeof *s->cell);
	s->all.count = mem_zalloc((size_t)s->buckets * sizeof *s->all.count);
}

void shape_add(struct shape *s, uint32_t domain, int64_t age_ms, int64_t n)
{
	int bucket = shape_bucket(s, age_ms);
	s->cell[(size_t)domain * (size_t)s->buckets + (size_t)bucket] += n;
	s->all.count[bucket] += n;
	s->all.total += n;
}

static struct named *get(struct shape *s, struct named **by_name, const char *name, bool *new)
{
	struct named *found;
	HASH_FIND_STR(*by_name, name, found);
	*new = !found;
	if (found)
		return found;
	found = mem_zalloc(sizeof *found);
	found->row.name = mem_strdup(name);
	found->row.count = mem_zalloc((size_t)s->buckets * sizeof *found->row.count);
	HASH_ADD_KEYPTR(hh, *by_name, found->row.name, strlen(name), found);
	return found;
}

static void count_in(const struct shape *s, struct shape_row *row, const int64_t *cell)
{
	for (int i = 0; i < s->buckets; i++) {
		row->count[i] += cell[i];
		row->total += cell[i];
	}
}

/* "mx.example.com" lies below ".example.com"; a top level domain is nobody's parent. NULL: there is
 * none. */
static const char *parent_of(const char *name)
{
	const char *dot = strchr(name + (*name == '.'), '.');
	return dot && strchr(dot + 1, '.') ? dot : NULL;
}

static void add_domain(struct shape *s, struct named **by_name, const char *name,
		       const int64_t *cell)
{
	bool new;
	struct named *n = get(s, by_name, name, &new);
	count_in(s, &n->row, cell);
	while (s->parents && (name = parent_of(name))) {
		bool below = new;
		n = get(s, by_name, name, &new);
		count_in(s, &n->row, cell);
		n->row.subdomains += below;
	}
}

static int by_total(const void *a, const void *b)
{
	const struct shape_row *x = a, *y = b;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	size_t lx = strlen(x->name), ly = strlen(y->name);
	return lx != ly ? (lx > ly) - (lx < ly) : strcmp(x->name, y->name);
}

static bool any(const struct shape *s, const int64_t *cell)
{
	for (int i = 0; i < s->buckets; i++)
		if (cell[i])
			return true;
	return false;
}

void shape_end(struct shape *s, const struct domains *d)
{
	struct named *by_name = NULL, *n, *tmp;
	for (uint32_t i = 0; i < s->ncell; i++) {
		const int64_t *cell = &s->cell[(size_t)i * (size_t)s->buckets];
		if (any(s, cell))
			add_domain(s, &by_name, domains_name(d, i), cell);
	}
	s->row = mem_alloc((HASH_COUNT(by_name) + 1) * sizeof *s->row);
	HASH_ITER(hh, by_name, n, tmp)
	{
		HASH_DEL(by_name, n);
		s->row[s->n++] = n->row;
		free(n);
	}
	qsort(s->row, s->n, sizeof *s->row, by_total);
	free(s->cell);
	s->cell = NULL;
}
