/* SPDX-License-Identifier: ISC */
#include "qmgr/suppressed.h"

#include "base/hint.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/words.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void suppressed_init(struct suppressed *s)
{
	*s = (struct suppressed){0};
	list_init(&s->by_time);
}

void suppressed_drop(struct suppressed *s, struct suppressed_one *one)
{
	assert(s->n > 0);
	s->n--;
	s->changed = true;
	hint_drop(HINT_SUPPRESSED, one->address);
	list_remove(&one->by_time);
	HASH_DEL(s->table, one);
	free(one->address);
	free(one->host);
	free(one);
}

static struct suppressed_one *oldest_one(const struct suppressed *s)
{
	struct list *first = list_first(&s->by_time);
	return first ? list_entry(first, struct suppressed_one, by_time) : NULL;
}

void suppressed_fini(struct suppressed *s)
{
	while (s->n > 0)
		suppressed_drop(s, oldest_one(s));
	assert(list_empty(&s->by_time));
	assert(!s->table);
}

static struct suppressed_one *find_one(const struct suppressed *s, const char *address)
{
	struct suppressed_one *one = NULL;
	if (s->n == 0)
		return NULL;
	char *key = name_key(address);
	HASH_FIND_STR(s->table, key, one);
	free(key);
	return one;
}

static struct suppressed_one *add_one(struct suppressed *s, const char *address, int64_t since_ms)
{
	if (s->n == SUPPRESSED_MAX)
		suppressed_drop(s, oldest_one(s));
	assert(s->n < SUPPRESSED_MAX);
	struct suppressed_one *one = mem_zalloc(sizeof *one);
	one->address = name_key(address);
	one->host = mem_strdup("");
	one->since_ms = since_ms;
	list_init(&one->by_time);
	HASH_ADD_KEYPTR(hh, s->table, one->address, strlen(one->address), one);
	hint_add(HINT_SUPPRESSED, one->address);
	s->n++;
	return one;
}

static void touch_one(struct suppressed *s, struct suppressed_one *one, const char *host,
		      int64_t now_ms)
{
	free(one->host);
	one->host = mem_strdup(host);
	one->last_ms = now_ms;
	list_remove(&one->by_time);
	list_append(&s->by_time, &one->by_time);
	s->changed = true;
}

bool suppressed_note(struct suppressed *s, const char *address, const char *host, int64_t now_ms)
{
	struct suppressed_one *one = find_one(s, address);
	bool new = !one;
	if (new)
		one = add_one(s, address, now_ms);
	touch_one(s, one, host, now_ms);
	return new;
}

bool suppressed_forget(struct suppressed *s, const char *address)
{
	struct suppressed_one *one = find_one(s, address);
	if (one)
		suppressed_drop(s, one);
	return one;
}

/* A time further ahead than one is kept was noted by a clock that was wrong, and would stay for as long. */
static bool is_over(const struct suppressed_one *one, int64_t now_ms, int64_t keep_ms)
{
	return now_ms - one->last_ms >= keep_ms || one->last_ms - now_ms > keep_ms;
}

const struct suppressed_one *suppressed_find(const struct suppressed *s, const char *address,
					     int64_t now_ms, int64_t keep_ms)
{
	struct suppressed_one *one = keep_ms > 0 ? find_one(s, address) : NULL;
	return one && !is_over(one, now_ms, keep_ms) ? one : NULL;
}

void suppressed_age(struct suppressed *s, int64_t now_ms, int64_t keep_ms)
{
	while (keep_ms > 0 && s->n > 0 && is_over(oldest_one(s), now_ms, keep_ms))
		suppressed_drop(s, oldest_one(s));
}

void suppressed_write(const struct suppressed *s, struct buf *to)
{
	list_each (link, tmp, &s->by_time) {
		const struct suppressed_one *one = list_entry(link, struct suppressed_one, by_time);
		buf_printf(to, "%" PRId64 " %" PRId64 " %s %s\n", one->since_ms, one->last_ms,
			   *one->host ? one->host : "-", one->address);
	}
}

static void read_line(struct suppressed *s, const char *line)
{
	int64_t since_ms, last_ms;
	int host = 0, host_ends = 0, address = 0;
	if (sscanf(line, "%" SCNd64 " %" SCNd64 " %n%*s%n %n", &since_ms, &last_ms, &host,
		   &host_ends, &address) < 2 ||
	    !line[address] || !address || find_one(s, line + address))
		return;
	char *name = mem_strndup(line + host, (size_t)(host_ends - host));
	touch_one(s, add_one(s, line + address, since_ms), strcmp(name, "-") == 0 ? "" : name,
		  last_ms);
	free(name);
}

void suppressed_read(struct suppressed *s, const char *text)
{
	for (char *line; (line = words_line(&text)); free(line))
		read_line(s, line);
	s->changed = false;
}
