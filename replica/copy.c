/* SPDX-License-Identifier: ISC */
#include "replica/copy.h"

#include "base/mem.h"
#include "base/metrics.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

void copies_init(struct copies *c)
{
	c->table = NULL;
	for (int i = 0; i < COPY_CLASSES; i++) {
		list_init(&c->behind[i]);
		list_init(&c->missing[i]);
		c->lag[i] = 0;
	}
	c->rush = (struct goals){.n = 0};
}

void copies_fini(struct copies *c)
{
	hash_each (struct copy, f, c->table)
		copies_remove(c, f);
	for (int i = 0; i < COPY_CLASSES; i++) {
		assert(list_empty(&c->behind[i]) && list_empty(&c->missing[i]));
		assert(c->lag[i] == 0);
	}
	goals_fini(&c->rush);
}

struct copy *copies_add(struct copies *c, struct copy_key key, enum copy_class class)
{
	assert(!copies_find(c, key.of, key.large));
	struct copy *f = mem_zalloc(sizeof *f);
	f->key = key;
	f->class = class;
	f->fd = -1;
	list_init(&f->behind);
	list_init(&f->missing);
	HASH_ADD(hh, c->table, key, sizeof f->key, f);
	return f;
}

struct copy *copies_find(struct copies *c, uint64_t of, bool large)
{
	struct copy_key key = {.of = of, .large = large};
	struct copy *f;
	HASH_FIND(hh, c->table, &key, sizeof key, f);
	return f;
}

static void close_file(struct copy *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

void copies_remove(struct copies *c, struct copy *f)
{
	copy_is(c, f, 0, 0, 0);
	HASH_DELETE(hh, c->table, f);
	content_file_unref(f->file);
	close_file(f);
	free(f);
}

/* In the list at its end, or not in it. */
static void place_in_list(struct list *link, struct list *in, bool belongs)
{
	if (belongs == !list_empty(link))
		return;
	list_remove(link);
	if (belongs)
		list_append(in, link);
}

void copy_is(struct copies *c, struct copy *f, uint64_t end, uint64_t sent, uint64_t acked)
{
	assert(acked <= sent && sent <= end);
	assert(!f->gone || end == 0);
	int64_t more = (int64_t)(end - acked) - (int64_t)(f->end - f->acked);
	c->lag[f->class] += more;
	assert(c->lag[f->class] >= 0);
	if (more)
		metrics_add(METRIC_replica_lag_bytes, more);
	f->end = end;
	f->sent = sent;
	f->acked = acked;
	f->cleared = f->cleared < end ? f->cleared : end;
	f->waiting = f->waiting < end ? f->waiting : end;
	place_in_list(&f->behind, &c->behind[f->class], acked < end);
	place_in_list(&f->missing, &c->missing[f->class], sent < end && !f->purging);
	if (acked == end)
		close_file(f);
}

void copy_cut(struct copies *c, struct copy *f, uint64_t at)
{
	assert(!f->key.large && at > 0);
	uint64_t acked = f->acked < at ? f->acked : at;
	f->cut = at;
	copy_is(c, f, at + sizeof f->ending, acked, acked);
}

void copy_gone(struct copies *c, struct copy *f)
{
	f->gone = true;
	copy_is(c, f, 0, 0, 0);
}

void copy_purged(struct copies *c, struct copy *f)
{
	assert(f->purging && f->sent == 0);
	f->purging = false;
	copy_is(c, f, f->end, f->sent, f->acked);
}

void copies_last(struct copies *c, struct copy *f)
{
	assert(!list_empty(&f->missing));
	list_move(&c->missing[f->class], &f->missing);
}

void copies_again(struct copies *c, bool all)
{
	hash_each (struct copy, f, c->table) {
		uint64_t acked = all ? 0 : f->acked;
		copy_is(c, f, f->end, acked, acked);
		f->under_way = 0;
		if (all)
			f->cleared = f->waiting = 0;
	}
}

static struct copy *missing_of(struct list *link)
{
	return list_entry(link, struct copy, missing);
}

bool copies_clear(struct copies *c)
{
	bool any = false;
	struct list *all = &c->missing[COPY_LOG];
	for (struct list *l = all->next; l != all; l = l->next) {
		struct copy *f = missing_of(l);
		f->cleared = f->waiting;
		f->waiting = f->end;
		any |= f->cleared < f->end;
	}
	return any;
}

static struct copy *cleared_log(const struct copies *c)
{
	const struct list *all = &c->missing[COPY_LOG];
	for (struct list *l = all->next; l != all; l = l->next)
		if (missing_of(l)->sent < missing_of(l)->cleared)
			return missing_of(l);
	return NULL;
}

static struct copy *first_missing(const struct copies *c, enum copy_class class)
{
	struct list *first = list_first(&c->missing[class]);
	return first ? missing_of(first) : NULL;
}

static void goals_add(struct goals *g, const struct copies *c, enum copy_class class)
{
	size_t cap = g->n;
	list_each_entry (const struct copy, f, behind, &c->behind[class]) {
		if (g->n == cap) {
			cap = cap ? cap * 2 : 4;
			g->of = mem_realloc(g->of, cap * sizeof *g->of);
		}
		g->of[g->n++] = (struct goal){.key = f->key, .end = f->end};
	}
}

void goals_set(struct goals *g, const struct copies *c, enum copy_class below)
{
	*g = (struct goals){.n = 0};
	for (enum copy_class i = 0; i < below; i++)
		goals_add(g, c, i);
}

static int by_age(const void *a, const void *b)
{
	const struct goal *one = a, *other = b;
	return (one->key.of > other->key.of) - (one->key.of < other->key.of);
}

void copies_rush(struct copies *c)
{
	goals_fini(&c->rush);
	goals_add(&c->rush, c, COPY_LOG);
	if (c->rush.n > 1)
		qsort(c->rush.of, c->rush.n, sizeof c->rush.of[0], by_age);
}

/* NULL: it is on its way, or waits for large content. */
static struct copy *rushed_log(struct copies *c)
{
	assert(c->rush.n > 0);
	struct copy *f = copies_find(c, c->rush.of[c->rush.n - 1].key.of, false);
	return f && f->sent < f->cleared ? f : NULL;
}

struct copy *copies_missing(struct copies *c, bool older)
{
	struct copy *f = first_missing(c, COPY_LARGE);
	if (!f && !goals_reached(&c->rush, c))
		return rushed_log(c);
	if (!f)
		f = cleared_log(c);
	return f || !older ? f : first_missing(c, COPY_OLDER);
}

int64_t copies_lag(const struct copies *c)
{
	return c->lag[COPY_LARGE] + c->lag[COPY_LOG] + c->lag[COPY_OLDER];
}

bool goals_reached(struct goals *g, struct copies *c)
{
	for (; g->n > 0; g->n--) {
		const struct goal *goal = &g->of[g->n - 1];
		const struct copy *f = copies_find(c, goal->key.of, goal->key.large);
		/* The file may have been cut since. */
		if (f && !f->gone && f->acked < goal->end && f->acked < f->end)
			return false;
	}
	return true;
}

void goals_fini(struct goals *g)
{
	mem_free(&g->of);
	g->n = 0;
}
