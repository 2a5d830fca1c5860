/* SPDX-License-Identifier: ISC */
#include "base/event_line.h"

#include "base/mem.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

static _Atomic int64_t taken, limit = INT64_MAX;

struct event_line *event_line_new(const char *line, size_t len)
{
	assert(len > 0 && line[len - 1] == '\n');
	struct event_line *e = mem_alloc(sizeof *e + len);
	e->note.type = EVENT_LINE;
	e->len = len;
	memcpy(e->line, line, len);
	return e;
}

bool event_line_room_take(size_t len)
{
	int64_t before = atomic_fetch_add(&taken, (int64_t)len);
	if (before + (int64_t)len <= atomic_load(&limit))
		return true;
	event_line_room_give(len);
	return false;
}

void event_line_room_give(size_t len)
{
	int64_t before = atomic_fetch_sub(&taken, (int64_t)len);
	assert(before >= (int64_t)len);
}

void event_line_room_limit(int64_t bytes)
{
	atomic_store(&limit, bytes);
}
