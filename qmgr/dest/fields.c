/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/fields.h"

#include "base/clock.h"
#include "base/date.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void fields_put_time(struct buf *to, const char *name, int64_t steady_ms)
{
	if (steady_ms > 0)
		buf_printf(to, "\t%s=%" PRId64, name, steady_ms - clock_steady_ms() + date_ms());
}

void fields_put_number(struct buf *to, const char *name, int64_t n)
{
	if (n > 0)
		buf_printf(to, "\t%s=%" PRId64, name, n);
}

const char *fields_get(const char *line, const char *name, struct buf *room)
{
	size_t len = strlen(name);
	for (const char *at = strchr(line, '\t'); at; at = strchr(at, '\t')) {
		at++;
		if (strncmp(at, name, len) != 0 || at[len] != '=')
			continue;
		buf_clear(room);
		buf_append(room, at + len + 1, strcspn(at + len + 1, "\t"));
		return buf_cstr(room);
	}
	return NULL;
}

int64_t fields_number(const char *line, const char *name, struct buf *room)
{
	const char *text = fields_get(line, name, room);
	return text ? strtoll(text, NULL, 10) : 0;
}

int64_t fields_future(const char *line, const char *name, struct buf *room, int64_t most_ms)
{
	int64_t at_ms = fields_number(line, name, room), now_ms = date_ms();
	if (at_ms <= now_ms)
		return 0;
	int64_t in_ms = at_ms - now_ms;
	return clock_steady_ms() + (in_ms < most_ms ? in_ms : most_ms);
}

void fields_put_moment(struct buf *to, const char *name, int64_t wall_ms)
{
	fields_put_number(to, name, wall_ms > 0 ? wall_ms + date_ahead_ms() : 0);
}

int64_t fields_moment(const char *line, const char *name, struct buf *room)
{
	int64_t at_ms = fields_number(line, name, room);
	return at_ms > 0 ? at_ms - date_ahead_ms() : 0;
}

int64_t fields_measured(const char *line, const char *name, struct buf *room, int64_t most)
{
	int64_t n = fields_number(line, name, room);
	return n > 0 && n <= most ? n : 0;
}
