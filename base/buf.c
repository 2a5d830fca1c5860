/* SPDX-License-Identifier: ISC */
#include "base/buf.h"

#include "base/mem.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BUF_START = 256,
	PRINTED = 128, /* bytes that most of what is printed takes */
};

void buf_init(struct buf *b)
{
	*b = (struct buf){0};
}

void buf_fini(struct buf *b)
{
	free(b->data);
	buf_init(b);
}

void buf_wipe(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	buf_fini(b);
}

char *buf_grow(struct buf *b, size_t len)
{
	size_t used = buf_len(b);
	assert(b->head <= b->tail && b->tail <= b->cap);
	if (b->head > 0 && b->cap - used >= len && b->head >= used) {
		memcpy(b->data, b->data + b->head, used);
	} else {
		assert(len <= SIZE_MAX / 4 && used <= SIZE_MAX / 4);
		size_t cap = b->cap ? b->cap : BUF_START;
		while (cap - used < len)
			cap *= 2;
		char *data = mem_alloc(cap);
		if (used > 0)
			memcpy(data, b->data + b->head, used);
		free(b->data);
		b->data = data;
		b->cap = cap;
	}
	b->head = 0;
	b->tail = used;
	return b->data + b->tail;
}

void buf_append(struct buf *b, const void *data, size_t len)
{
	if (len == 0)
		return;
	memcpy(buf_reserve(b, len), data, len);
	b->tail += len;
}

void buf_puts(struct buf *b, const char *text)
{
	buf_append(b, text, strlen(text));
}

/* Mostly the text fits: the second pass is for one that doesn't. */
void buf_vprintf(struct buf *b, const char *fmt, va_list args)
{
	va_list again;
	va_copy(again, args);
	char *to = buf_reserve(b, PRINTED);
	size_t room = b->cap - b->tail;
	int len = vsnprintf(to, room, fmt, args);
	assert(len >= 0);
	if ((size_t)len >= room)
		vsnprintf(buf_reserve(b, (size_t)len + 1), (size_t)len + 1, fmt, again);
	b->tail += (size_t)len;
	va_end(again);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	buf_vprintf(b, fmt, args);
	va_end(args);
}

void buf_consume(struct buf *b, size_t len)
{
	assert(len <= buf_len(b));
	b->head += len;
	if (b->head == b->tail)
		b->head = b->tail = 0;
}

void buf_shorten(struct buf *b, size_t len)
{
	assert(len <= buf_len(b));
	b->tail -= len;
}

void buf_clear(struct buf *b)
{
	b->head = b->tail = 0;
}

void buf_release(struct buf *b)
{
	if (buf_len(b) == 0)
		buf_fini(b);
}

char *buf_cstr(struct buf *b)
{
	*buf_reserve(b, 1) = '\0';
	return buf_data(b);
}

char *buf_steal(struct buf *b, size_t *len)
{
	buf_cstr(b);
	if (b->head > 0)
		memmove(b->data, b->data + b->head, buf_len(b) + 1);
	if (len)
		*len = buf_len(b);
	char *data = b->data;
	buf_init(b);
	return data;
}
