/* SPDX-License-Identifier: ISC */
#include "spool/catalog.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 510 }; /* a page is a little smaller than 8 KiB */

struct row {
	uint64_t id;
	struct stub *stub;
};

struct catalog_page {
	size_t n;
	struct row row[ROWS];
};

void catalog_fini(struct catalog *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->page[i]);
	free(c->page);
	*c = (struct catalog){.n = 0};
}

/* The last that begins with this id or a smaller one; else the first. */
static size_t page_of(const struct catalog *c, uint64_t id)
{
	size_t low = 0, high = c->n;
	while (low + 1 < high) {
		size_t middle = low + (high - low) / 2;
		if (c->page[middle]->row[0].id <= id)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static size_t row_of(const struct catalog_page *p, uint64_t id)
{
	size_t low = 0, high = p->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (p->row[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct catalog_at catalog_from(const struct catalog *c, uint64_t id)
{
	struct catalog_at at = {.page = page_of(c, id)};
	if (c->n > 0)
		at.row = row_of(c->page[at.page], id);
	return at;
}

struct stub *catalog_step(const struct catalog *c, struct catalog_at *at)
{
	if (at->page < c->n && at->row == c->page[at->page]->n) {
		at->page++;
		at->row = 0;
	}
	assert(at->page >= c->n || at->row < c->page[at->page]->n);
	return at->page < c->n ? c->page[at->page]->row[at->row++].stub : NULL;
}

struct stub *catalog_find(const struct catalog *c, uint64_t id)
{
	struct catalog_at at = catalog_from(c, id);
	struct stub *stub = catalog_step(c, &at);
	return stub && stub->id == id ? stub : NULL;
}

struct stub *catalog_next(const struct catalog *c, uint64_t after)
{
	if (after == UINT64_MAX)
		return NULL;
	struct catalog_at at = catalog_from(c, after + 1);
	return catalog_step(c, &at);
}

uint64_t catalog_last(const struct catalog *c)
{
	if (c->n == 0)
		return 0;
	const struct catalog_page *p = c->page[c->n - 1];
	assert(p->n > 0);
	return p->row[p->n - 1].id;
}

/* A new page, which is to get its first row at once. */
static struct catalog_page *add_page(struct catalog *c, size_t at)
{
	assert(at <= c->n);
	if (c->n == c->cap) {
		c->cap = c->cap ? c->cap * 2 : 4;
		c->page = mem_realloc(c->page, c->cap * sizeof(struct catalog_page *));
	}
	memmove(&c->page[at + 1], &c->page[at], (c->n - at) * sizeof(struct catalog_page *));
	c->n++;
	struct catalog_page *p = c->page[at] = mem_alloc(sizeof *p);
	p->n = 0;
	return p;
}

static void remove_page(struct catalog *c, size_t at)
{
	assert(at < c->n);
	free(c->page[at]);
	c->n--;
	memmove(&c->page[at], &c->page[at + 1], (c->n - at) * sizeof(struct catalog_page *));
}

static void move_rows(struct catalog_page *from, size_t first, struct catalog_page *to)
{
	assert(first <= from->n);
	size_t n = from->n - first;
	assert(to->n + n <= ROWS);
	memcpy(&to->row[to->n], &from->row[first], n * sizeof(struct row));
	to->n += n;
	from->n = first;
}

/* A stub that comes behind a full page is the first of many, most likely: it leaves that page full. */
static void make_room(struct catalog *c, struct catalog_at *at)
{
	if (c->n > 0 && c->page[at->page]->n < ROWS)
		return;
	if (c->n == 0 || at->row == ROWS) {
		at->page += c->n > 0;
		at->row = 0;
		add_page(c, at->page);
		return;
	}
	struct catalog_page *upper = add_page(c, at->page + 1);
	move_rows(c->page[at->page], ROWS / 2, upper);
	if (at->row > ROWS / 2) {
		at->page++;
		at->row -= ROWS / 2;
	}
}

static void insert_stub(struct catalog *c, struct catalog_at *at, struct stub *s)
{
	assert(c->n == 0 || at->row == c->page[at->page]->n ||
	       c->page[at->page]->row[at->row].id != s->id);
	make_room(c, at);
	struct catalog_page *p = c->page[at->page];
	assert(p->n < ROWS && at->row <= p->n);
	assert(at->row == 0 || p->row[at->row - 1].id < s->id);
	memmove(&p->row[at->row + 1], &p->row[at->row], (p->n - at->row) * sizeof(struct row));
	p->row[at->row] = (struct row){.id = s->id, .stub = s};
	p->n++;
	c->live++;
}

void catalog_add(struct catalog *c, struct stub *s)
{
	struct catalog_at at = catalog_from(c, s->id);
	insert_stub(c, &at, s);
}

/* Whether a larger id than the one there comes right behind it. */
static bool is_next(const struct catalog *c, const struct catalog_at *at, uint64_t id)
{
	const struct catalog_page *p = c->page[at->page];
	return at->row + 1 == p->n &&
	       (at->page + 1 == c->n || id < c->page[at->page + 1]->row[0].id);
}

void catalog_merge(struct catalog *c, struct stub **stub, size_t n)
{
	struct catalog_at at = {.page = 0};
	for (size_t i = 0; i < n; i++) {
		assert(i == 0 || stub[i - 1]->id < stub[i]->id);
		if (i > 0 && is_next(c, &at, stub[i]->id))
			at.row++;
		else
			at = catalog_from(c, stub[i]->id);
		insert_stub(c, &at, stub[i]);
	}
}

/* Two that have become half a page are one. */
static void join_pages(struct catalog *c, size_t lower)
{
	if (lower + 1 >= c->n || c->page[lower]->n + c->page[lower + 1]->n > ROWS / 2)
		return;
	move_rows(c->page[lower + 1], 0, c->page[lower]);
	remove_page(c, lower + 1);
}

void catalog_remove(struct catalog *c, struct stub *s)
{
	struct catalog_at at = catalog_from(c, s->id);
	assert(at.page < c->n);
	struct catalog_page *p = c->page[at.page];
	assert(at.row < p->n && p->row[at.row].stub == s);
	p->n--;
	memmove(&p->row[at.row], &p->row[at.row + 1], (p->n - at.row) * sizeof(struct row));
	assert(c->live > 0);
	c->live--;
	if (p->n == 0) {
		remove_page(c, at.page);
		return;
	}
	join_pages(c, at.page);
	if (at.page > 0)
		join_pages(c, at.page - 1);
}

void catalog_shrink(struct catalog *c)
{
	if (c->cap <= c->n * 2 || c->cap <= 4)
		return;
	c->cap = c->n < 4 ? 4 : c->n;
	assert(c->n <= c->cap);
	c->page = mem_realloc(c->page, c->cap * sizeof(struct catalog_page *));
}
