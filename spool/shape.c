/* SPDX-License-Identifier: ISC */
#include "spool/shape.h"

#include "base/address_pattern.h"
#include "base/keyed_hash.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "spool/domains.h"
#include "spool/spool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A domain, and what was counted of it. */
struct shape_name {
	char *name;
	int64_t *count;
	UT_hash_handle hh;
};

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

static void free_rows(struct shape *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->row[i].name);
		free(s->row[i].count);
	}
	free(s->row);
	s->row = NULL;
	s->n = 0;
}

void shape_free(struct shape **sp)
{
	struct shape *s = *sp;
	struct shape_name *n, *tmp;
	if (!s)
		return;
	HASH_ITER(hh, s->names, n, tmp)
	{
		HASH_DEL(s->names, n);
		free(n->name);
		free(n->count);
		free(n);
	}
	for (int i = 0; i < s->nfrom; i++)
		free(s->from[i]);
	free(s->from);
	for (int i = 0; i < s->nflow; i++)
		free(s->flow[i]);
	free(s->flow);
	free_rows(s);
	free(s->all.count);
	free(s->cell);
	free(s);
	*sp = NULL;
}

int shape_bucket(const struct shape *s, int64_t age_ms)
{
	assert(s->first_ms > 0 && s->buckets > 0);
	int64_t width = age_ms / s->first_ms;
	int bucket = 0;
	if (s->linear)
		return width < s->buckets ? (int)width : s->buckets - 1;
	for (; width > 0 && bucket < s->buckets - 1; width /= 2)
		bucket++;
	return bucket;
}

static void count_all(struct shape *s, int bucket, int64_t n)
{
	assert(bucket >= 0 && bucket < s->buckets);
	if (!s->all.count)
		s->all.count = mem_zalloc((size_t)s->buckets * sizeof *s->all.count);
	s->all.count[bucket] += n;
	s->all.total += n;
}

void shape_begin(struct shape *s, const struct domains *d)
{
	assert(!s->cell);
	s->ncell = domains_end(d);
	s->cell = mem_zalloc((size_t)s->ncell * (size_t)s->buckets * sizeof *s->cell);
}

void shape_add(struct shape *s, uint32_t domain, int64_t age_ms, int64_t n)
{
	int bucket = shape_bucket(s, age_ms);
	assert(domain < s->ncell);
	s->cell[(size_t)domain * (size_t)s->buckets + (size_t)bucket] += n;
	count_all(s, bucket, n);
}

static int64_t *counts_of(struct shape *s, const char *domain)
{
	struct shape_name *found;
	HASH_FIND_STR(s->names, domain, found);
	if (!found) {
		found = mem_zalloc(sizeof *found);
		found->name = mem_strdup(domain);
		found->count = mem_zalloc((size_t)s->buckets * sizeof *found->count);
		HASH_ADD_KEYPTR(hh, s->names, found->name, strlen(domain), found);
	}
	return found->count;
}

void shape_add_name(struct shape *s, const char *domain, int64_t age_ms, int64_t n)
{
	int bucket = shape_bucket(s, age_ms);
	counts_of(s, domain)[bucket] += n;
	count_all(s, bucket, n);
}

static struct named *get_named(struct shape *s, struct named **by_name, const char *name, bool *new)
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
	struct named *n = get_named(s, by_name, name, &new);
	count_in(s, &n->row, cell);
	while (s->parents && (name = parent_of(name))) {
		bool below = new;
		n = get_named(s, by_name, name, &new);
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

static bool has_counts(const struct shape *s, const int64_t *cell)
{
	for (int i = 0; i < s->buckets; i++)
		if (cell[i])
			return true;
	return false;
}

void shape_end(struct shape *s, const struct domains *d)
{
	assert(s->cell && s->ncell == domains_end(d));
	for (uint32_t i = 0; i < s->ncell; i++) {
		const int64_t *cell = &s->cell[(size_t)i * (size_t)s->buckets];
		if (!has_counts(s, cell))
			continue;
		int64_t *count = counts_of(s, domains_name(d, i));
		for (int b = 0; b < s->buckets; b++)
			count[b] += cell[b];
	}
	free(s->cell);
	s->cell = NULL;
	s->ncell = 0;
}

void shape_rank(struct shape *s)
{
	struct named *by_name = NULL, *n, *tmp;
	assert(!s->cell);
	free_rows(s);
	count_all(s, 0, 0); /* it may have counted nothing */
	for (const struct shape_name *of = s->names; of; of = of->hh.next)
		add_domain(s, &by_name, of->name, of->count);
	s->row = mem_alloc((HASH_COUNT(by_name) + 1) * sizeof *s->row);
	HASH_ITER(hh, by_name, n, tmp)
	{
		HASH_DEL(by_name, n);
		s->row[s->n++] = n->row;
		free(n);
	}
	qsort(s->row, s->n, sizeof *s->row, by_total);
}

void shape_want_sender(struct shape *s, const char *pattern)
{
	s->from = mem_realloc(s->from, ((size_t)s->nfrom + 1) * sizeof *s->from);
	s->from[s->nfrom++] = address_pattern_copy(pattern);
}

bool shape_wants_sender(const struct shape *s, const char *address)
{
	for (int i = 0; i < s->nfrom; i++)
		if (address_pattern_fits(s->from[i], address))
			return true;
	return s->nfrom == 0;
}

void shape_want_flow(struct shape *s, const char *flow)
{
	s->flow = mem_realloc(s->flow, ((size_t)s->nflow + 1) * sizeof *s->flow);
	s->flow[s->nflow++] = mem_strdup(flow);
}

bool shape_wants_flow(const struct shape *s, const char *flow)
{
	for (int i = 0; i < s->nflow; i++)
		if (name_key_same(s->flow[i], flow))
			return true;
	return s->nflow == 0;
}

enum shape_guess shape_guess_sender(const struct shape *s, const char *domain)
{
	enum shape_guess guess = SHAPE_NO;
	if (s->nfrom == 0 || !*domain)
		return shape_wants_sender(s, "") ? SHAPE_YES : SHAPE_NO;
	for (int i = 0; i < s->nfrom; i++) {
		const char *of = address_pattern_domain(s->from[i]);
		if (of && !address_pattern_fits_domain(of, domain))
			continue;
		if (of && address_pattern_of_domain(s->from[i]))
			return SHAPE_YES;
		guess = SHAPE_ASK;
	}
	return guess;
}
