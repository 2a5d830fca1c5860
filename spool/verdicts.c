/* SPDX-License-Identifier: ISC */
#include "spool/verdicts.h"

#include "base/mem.h"
#include "spool/bytes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { VERDICT_MIN = 1 + 2 + 8 + 3 * 4 }; /* bytes */

void verdicts_begin(struct verdicts *t, struct buf *to)
{
	*t = (struct verdicts){.to = to, .count_at = buf_len(to)};
	verdicts_put_number(to, 0);
}

static void put_verdict(struct buf *b, const struct verdict *v)
{
	assert(v->class <= VERDICT_IN_DOUBT);
	uint8_t *p = (uint8_t *)buf_reserve(b, 11);
	p[0] = (uint8_t)v->class;
	put_le(p + 1, (uint64_t)v->code, 2);
	put_le(p + 3, (uint64_t)v->when_ms, 8);
	buf_commit(b, 11);
	verdicts_put_text(b, v->dsn);
	verdicts_put_text(b, v->host);
	verdicts_put_text(b, v->text);
}

uint32_t verdicts_add(struct verdicts *t, const struct verdict *v)
{
	for (uint32_t back = 1; back <= VERDICTS_RECENT && back <= t->n; back++)
		if (t->recent[(t->n - back) % VERDICTS_RECENT] == v)
			return t->n - back;
	if (t->to)
		put_verdict(t->to, v);
	t->recent[t->n % VERDICTS_RECENT] = v;
	return t->n++;
}

void verdicts_end(struct verdicts *t)
{
	assert(t->to);
	put_le((uint8_t *)buf_data(t->to) + t->count_at, t->n, 4);
}

void verdicts_again(struct verdicts *t)
{
	*t = (struct verdicts){.to = NULL};
}

void verdicts_put_number(struct buf *b, uint32_t n)
{
	put_le((uint8_t *)buf_reserve(b, 4), n, 4);
	buf_commit(b, 4);
}

void verdicts_put_text(struct buf *b, const char *text)
{
	size_t len = strlen(text);
	verdicts_put_number(b, (uint32_t)len);
	buf_append(b, text, len);
}

uint64_t cursor_number(struct cursor *c, int bytes)
{
	assert(bytes > 0 && bytes <= 8);
	if (c->bad || c->left < (size_t)bytes) {
		c->bad = true;
		return 0;
	}
	uint64_t value = get_le(c->at, bytes);
	c->at += bytes;
	c->left -= (size_t)bytes;
	return value;
}

char *cursor_text(struct cursor *c)
{
	uint64_t len = cursor_number(c, 4);
	if (c->bad || len > c->left || memchr(c->at, '\0', len)) {
		c->bad = true;
		return NULL;
	}
	char *text = mem_strndup((const char *)c->at, len);
	c->at += len;
	assert(c->left >= len);
	c->left -= len;
	return text;
}

static struct verdict *get_verdict(struct cursor *c)
{
	uint64_t class = cursor_number(c, 1);
	int code = (int)cursor_number(c, 2);
	int64_t when_ms = (int64_t)cursor_number(c, 8);
	char *dsn = cursor_text(c), *host = cursor_text(c), *text = cursor_text(c);
	struct verdict *v = NULL;
	if (text && class <= VERDICT_IN_DOUBT && strlen(dsn) < sizeof v->dsn)
		v = verdict_at((enum verdict_class) class, code, dsn, host, text, when_ms);
	free(dsn);
	free(host);
	free(text);
	c->bad |= !v;
	return v;
}

struct verdict **verdicts_get(struct cursor *c, uint32_t *n)
{
	uint64_t count = cursor_number(c, 4);
	*n = 0;
	if (c->bad || count > c->left / VERDICT_MIN) {
		c->bad = true;
		return NULL;
	}
	struct verdict **table = mem_alloc(count * sizeof(struct verdict *));
	while (*n < count && (table[*n] = get_verdict(c)))
		++*n;
	if (!c->bad)
		return table;
	verdicts_free(table, *n);
	return NULL;
}

void verdicts_free(struct verdict **table, uint32_t n)
{
	for (uint32_t i = 0; table && i < n; i++)
		verdict_unref(table[i]);
	free(table);
}
