/* SPDX-License-Identifier: ISC */
#include "dns/cache.h"

#include "base/hint.h"
#include "base/keyed_hash.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/number.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct cached {
	UT_hash_handle hh;
	struct list link; /* in cache.used */
	int64_t until_ms;
	struct answer *answer;
	size_t bytes;
	bool hinted; /* others are told that it is here */
	char key[];  /* the type in two bytes, then the name */
};

struct cache {
	struct cached *table;
	struct list used; /* used longest ago first */
	size_t entries, entries_max, bytes;
	int64_t maximal_ttl_ms, negative_ttl_ms;
};

struct cache *cache_new(size_t entries_max)
{
	assert(entries_max > 0);
	struct cache *c = mem_zalloc(sizeof *c);
	list_init(&c->used);
	c->entries_max = entries_max;
	return c;
}

void cache_bounds(struct cache *c, int64_t maximal_ttl_ms, int64_t negative_ttl_ms)
{
	c->maximal_ttl_ms = maximal_ttl_ms;
	c->negative_ttl_ms = negative_ttl_ms;
}

/* No mail host, for good: whoever is to send mail there need not look further. */
static bool is_dead(enum answer_type type, const struct answer *a)
{
	return type == ANSWER_MX && (a->status == ANSWER_NXDOMAIN || answer_null_mx(a));
}

static void drop_entry(struct cache *c, struct cached *e)
{
	if (e->hinted)
		hint_drop(HINT_DEAD_DOMAIN, e->key + 2);
	HASH_DEL(c->table, e);
	list_remove(&e->link);
	assert(c->entries > 0 && c->bytes >= e->bytes);
	c->entries--;
	c->bytes -= e->bytes;
	answer_unref(e->answer);
	free(e);
}

void cache_clear(struct cache *c)
{
	list_each (link, tmp, &c->used)
		drop_entry(c, list_entry(link, struct cached, link));
}

void cache_free(struct cache **cp)
{
	struct cache *c = *cp;
	if (!c)
		return;
	cache_clear(c);
	assert(c->entries == 0 && c->bytes == 0 && list_empty(&c->used));
	free(c);
	*cp = NULL;
}

static size_t make_key(char key[], const char *name, enum answer_type type)
{
	size_t len = strlen(name);
	key[0] = (char)((unsigned)type >> 8);
	key[1] = (char)type;
	memcpy(key + 2, name, len);
	return len + 2;
}

static struct cached *find_entry(struct cache *c, const char *name, enum answer_type type)
{
	char key[2 + 256];
	struct cached *e;
	if (strlen(name) > 256)
		return NULL;
	size_t len = make_key(key, name, type);
	HASH_FIND(hh, c->table, key, len, e);
	return e;
}

struct answer *cache_get(struct cache *c, const char *name, enum answer_type type, int64_t now_ms)
{
	struct cached *e = find_entry(c, name, type);
	if (!e)
		return NULL;
	if (e->until_ms <= now_ms) {
		drop_entry(c, e);
		return NULL;
	}
	list_move(&c->used, &e->link);
	return answer_ref(e->answer);
}

static int64_t lifetime_of(const struct cache *c, const struct answer *a)
{
	switch (a->status) {
	case ANSWER_RECORDS:
		return number_min(a->ttl_ms, c->maximal_ttl_ms);
	case ANSWER_NODATA:
	case ANSWER_NXDOMAIN:
		return number_min(a->ttl_ms, c->negative_ttl_ms);
	case ANSWER_FAILED:
		return CACHE_FAILURE_MS;
	case ANSWER_ALIAS:
		break;
	}
	return 0;
}

static bool is_full(const struct cache *c)
{
	return c->entries > c->entries_max || c->bytes > c->entries_max * CACHE_BYTES_AN_ENTRY;
}

static void put_answer(struct cache *c, const char *name, enum answer_type type, struct answer *a,
		       int64_t until_ms)
{
	struct cached *e = mem_zalloc(sizeof *e + 2 + strlen(name));
	assert(until_ms > 0 && a->status != ANSWER_ALIAS);
	size_t len = make_key(e->key, name, type);
	HASH_ADD_KEYPTR(hh, c->table, e->key, len, e);
	list_append(&c->used, &e->link);
	e->until_ms = until_ms;
	e->answer = answer_ref(a);
	e->hinted = is_dead(type, a);
	if (e->hinted)
		hint_add(HINT_DEAD_DOMAIN, name);
	c->entries++;
	e->bytes = sizeof *e + len + answer_bytes(a);
	c->bytes += e->bytes;
	while (is_full(c))
		drop_entry(c, list_entry(list_first(&c->used), struct cached, link));
}

static void replace_answer(struct cache *c, const char *name, enum answer_type type,
			   struct answer *a, int64_t ttl_ms, int64_t now_ms)
{
	struct cached *e = find_entry(c, name, type);
	if (e)
		drop_entry(c, e);
	if (ttl_ms > 0 && strlen(name) <= 256)
		put_answer(c, name, type, a, now_ms + ttl_ms);
}

void cache_put(struct cache *c, const char *name, enum answer_type type, struct answer *a,
	       int64_t now_ms)
{
	replace_answer(c, name, type, a, lifetime_of(c, a), now_ms);
}

void cache_put_failure(struct cache *c, const char *name, enum answer_type type, struct answer *a,
		       int64_t now_ms)
{
	assert(a->status == ANSWER_FAILED);
	replace_answer(c, name, type, a, number_min(c->negative_ttl_ms, CACHE_UNNEEDED_MS), now_ms);
}

size_t cache_count(const struct cache *c)
{
	return c->entries;
}
