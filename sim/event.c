/* SPDX-License-Identifier: ISC */
#include "sim/event.h"

#include "base/date.h"
#include "base/log_line.h"
#include "base/log_stamp.h"

#include <string.h>

bool event_time(const char *text, int64_t *wall_ms)
{
	return log_stamp_iso(text, strlen(text), wall_ms) > 0;
}

bool event_field(const char *line, const char *key, struct buf *to)
{
	struct log_line l;
	buf_clear(to);
	if (!log_line_read(&l, line, strlen(line), date_ms()))
		return false;
	const struct log_field *f = log_line_find(&l, key);
	if (f)
		log_field_put(f, to);
	else if (strcmp(key, "time") == 0)
		log_put_time(to, l.wall_ms);
	else if (strcmp(key, "event") == 0)
		buf_append(to, l.event, l.event_len);
	else
		return false;
	return true;
}
