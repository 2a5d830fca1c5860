/* SPDX-License-Identifier: ISC */
#include "spool/domains.h"

#include "base/keyed_hash.h"
#include "base/mailaddr.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = 0 };
#define LISTED UINT32_C(0x80000000) /* the number is that of a list */

struct domain {
	char *name; /* NULL: a free row */
	uint32_t refs;
	uint32_t next; /* free row, or the next of the same hash */
};

struct domain_list {
	uint32_t n;
	struct domain_count of[];
};

static uint32_t hash_of(const char *name)
{
	return (uint32_t)keyed_hash(name, strlen(name));
}

void domains_init(struct domains *d)
{
	*d = (struct domains){.n = 1};
}

void domains_fini(struct domains *d)
{
	for (uint32_t i = 0; i < d->n && d->row; i++)
		free(d->row[i].name);
	for (uint32_t i = 0; i < d->nlist; i++)
		free(d->list[i]);
	free(d->row);
	free(d->bucket);
	free(d->list);
	domains_init(d);
}

/* Rows and buckets are as many; a bucket is the first row of its chain. */
static void grow_table(struct domains *d)
{
	uint32_t cap = d->cap ? d->cap * 2 : 64;
	d->row = mem_realloc(d->row, cap * sizeof *d->row);
	memset(d->row + d->cap, 0, (cap - d->cap) * sizeof *d->row);
	free(d->bucket);
	d->bucket = mem_zalloc(cap * sizeof *d->bucket);
	d->cap = cap;
	d->n = d->n > 0 ? d->n : 1; /* the first row is none */
	for (uint32_t i = 1; i < d->n; i++) {
		if (!d->row[i].name)
			continue;
		uint32_t *first = &d->bucket[hash_of(d->row[i].name) & (cap - 1)];
		d->row[i].next = *first;
		*first = i;
	}
}

static uint32_t *find_slot(const struct domains *d, const char *name)
{
	uint32_t *at = &d->bucket[hash_of(name) & (d->cap - 1)];
	while (*at && strcmp(d->row[*at].name, name) != 0)
		at = &d->row[*at].next;
	return at;
}

uint32_t domains_find(const struct domains *d, const char *name)
{
	return d->cap && *name ? *find_slot(d, name) : NONE;
}

static uint32_t take_domain(struct domains *d, const char *name)
{
	if (!*name)
		return NONE;
	if (d->n >= d->cap)
		grow_table(d);
	uint32_t *at = find_slot(d, name);
	if (!*at) {
		uint32_t i = d->free ? d->free : d->n++;
		if (d->free)
			d->free = d->row[i].next;
		assert(i > NONE && i < d->cap && !d->row[i].name);
		d->row[i] = (struct domain){.name = mem_strdup(name)};
		*at = i;
	}
	d->row[*at].refs++;
	return *at;
}

static void drop_domain(struct domains *d, uint32_t i)
{
	if (i == NONE)
		return;
	assert(i < d->n && d->row[i].refs > 0);
	if (--d->row[i].refs > 0)
		return;
	uint32_t *at = find_slot(d, d->row[i].name);
	*at = d->row[i].next;
	free(d->row[i].name);
	d->row[i] = (struct domain){.next = d->free};
	d->free = i;
}

static uint32_t add_list(struct domains *d, struct domain_list *list)
{
	uint32_t i = d->nlist;
	for (; d->list_free < d->nlist && i == d->nlist; d->list_free++)
		if (!d->list[d->list_free])
			i = d->list_free;
	if (i == d->nlist && d->nlist == d->list_cap) {
		d->list_cap = d->list_cap ? d->list_cap * 2 : 64;
		d->list = mem_realloc(d->list, d->list_cap * sizeof(struct domain_list *));
	}
	if (i == d->nlist)
		d->list_free = ++d->nlist;
	assert(i < d->nlist && i < LISTED);
	d->list[i] = list;
	return LISTED | i;
}

static uint32_t of_recipient(struct domains *d, const struct recipient *r)
{
	const char *domain = mailaddr_domain(r->address);
	return take_domain(d, domain);
}

static int by_number(const void *a, const void *b)
{
	const struct domain_count *x = a, *y = b;
	return (x->domain > y->domain) - (x->domain < y->domain);
}

/* One for each recipient that is left, sorted, those of one domain together. */
static struct domain_list *list_of(struct domains *d, const struct envelope *e, uint32_t open)
{
	struct domain_list *l = mem_alloc(sizeof *l + open * sizeof l->of[0]);
	l->n = 0;
	for (uint32_t i = 0; i < e->nrcpt; i++)
		if (!e->rcpt[i].done)
			l->of[l->n++] = (struct domain_count){
				.domain = of_recipient(d, &e->rcpt[i]), .rcpts = 1};
	assert(l->n == open);
	qsort(l->of, l->n, sizeof l->of[0], by_number);
	uint32_t n = 0;
	for (uint32_t i = 0; i < l->n; i++) {
		if (n > 0 && l->of[n - 1].domain == l->of[i].domain) {
			l->of[n - 1].rcpts++;
			drop_domain(d, l->of[i].domain); /* one reference a row */
		} else {
			l->of[n++] = l->of[i];
		}
	}
	l->n = n;
	return mem_realloc(l, sizeof *l + n * sizeof l->of[0]);
}

void domains_set(struct domains *d, struct stub *s, const struct envelope *e)
{
	uint32_t open = envelope_open(e), sender = take_domain(d, mailaddr_domain(e->sender)),
		 rcpt = NONE;
	if (open == 1) {
		for (uint32_t i = 0; i < e->nrcpt; i++)
			if (!e->rcpt[i].done)
				rcpt = of_recipient(d, &e->rcpt[i]);
	} else if (open > 1) {
		rcpt = add_list(d, list_of(d, e, open));
	}
	domains_drop(d, s);
	s->sender = sender;
	s->rcpt = rcpt;
}

void domains_drop(struct domains *d, struct stub *s)
{
	drop_domain(d, s->sender);
	if (s->rcpt & LISTED) {
		uint32_t at = s->rcpt & ~LISTED;
		assert(at < d->nlist && d->list[at]);
		struct domain_list *l = d->list[at];
		for (uint32_t i = 0; i < l->n; i++)
			drop_domain(d, l->of[i].domain);
		free(l);
		d->list[at] = NULL;
		if (at < d->list_free)
			d->list_free = at;
	} else {
		drop_domain(d, s->rcpt);
	}
	s->sender = s->rcpt = NONE;
}

static uint32_t take_from(struct domains *d, const struct domains *from, uint32_t i)
{
	assert(i == NONE || (i < from->n && from->row[i].name));
	return i == NONE ? NONE : take_domain(d, from->row[i].name);
}

void domains_move(struct domains *d, struct domains *from, struct stub **stub, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		struct stub *s = stub[k];
		s->sender = take_from(d, from, s->sender);
		if (!(s->rcpt & LISTED)) {
			s->rcpt = take_from(d, from, s->rcpt);
			continue;
		}
		assert((s->rcpt & ~LISTED) < from->nlist);
		struct domain_list *l = from->list[s->rcpt & ~LISTED];
		from->list[s->rcpt & ~LISTED] = NULL;
		for (uint32_t i = 0; i < l->n; i++)
			l->of[i].domain = take_from(d, from, l->of[i].domain);
		s->rcpt = add_list(d, l);
	}
	domains_fini(from);
}

uint32_t domains_sender(const struct stub *s)
{
	return s->sender;
}

uint32_t domains_rcpts(const struct domains *d, const struct stub *s, struct domain_count **of)
{
	if (s->rcpt & LISTED) {
		assert((s->rcpt & ~LISTED) < d->nlist);
		struct domain_list *l = d->list[s->rcpt & ~LISTED];
		*of = l->of;
		return l->n;
	}
	**of = (struct domain_count){.domain = s->rcpt, .rcpts = 1};
	return s->rcpt != NONE;
}

const char *domains_name(const struct domains *d, uint32_t i)
{
	assert(i < d->n);
	return i == NONE || !d->row[i].name ? "" : d->row[i].name;
}

uint32_t domains_end(const struct domains *d)
{
	return d->n;
}
