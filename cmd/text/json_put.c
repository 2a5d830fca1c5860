/* SPDX-License-Identifier: ISC */
#include "cmd/text/json_put.h"

#include "base/date.h"
#include "base/log.h"
#include "base/words.h"

#include <inttypes.h>
#include <stdlib.h>

void json_put_text(struct buf *to, const char *name, const char *text)
{
	buf_printf(to, "\"%s\":", name);
	if (text)
		log_json_string(to, text);
	else
		buf_puts(to, "null");
	buf_puts(to, ",");
}

void json_put_number(struct buf *to, const char *name, int64_t n)
{
	buf_printf(to, "\"%s\":%" PRId64 ",", name, n);
}

void json_put_said(struct buf *to, const char *name, const char *text)
{
	json_put_text(to, name, *text ? text : NULL);
}

void json_put_code(struct buf *to, int code)
{
	if (code > 0)
		json_put_number(to, "code", code);
	else
		json_put_text(to, "code", NULL);
}

void json_put_flag(struct buf *to, const char *name, bool is)
{
	buf_printf(to, "\"%s\":%s,", name, is ? "true" : "false");
}

void json_put_seconds(struct buf *to, const char *name, int64_t ms)
{
	buf_printf(to, "\"%s\":%" PRId64 ".%03d,", name, ms / 1000, (int)(ms % 1000));
}

void json_put_time(struct buf *to, const char *name, int64_t wall_ms)
{
	if (wall_ms > 0)
		json_put_seconds(to, name, wall_ms + date_ahead_ms());
	else
		json_put_text(to, name, NULL);
}

void json_put_last(struct buf *to, char bracket)
{
	if (buf_data(to)[buf_len(to) - 1] == ',')
		buf_data(to)[buf_len(to) - 1] = bracket;
	else
		buf_append(to, &bracket, 1);
}

void json_put_end(struct buf *to, char bracket)
{
	json_put_last(to, bracket);
	buf_puts(to, ",");
}

void json_put_line(struct buf *to)
{
	json_put_last(to, '}');
	buf_puts(to, "\n");
}

void json_put_lines(struct buf *to, const char *name, const char *lines)
{
	buf_printf(to, "\"%s\":[", name);
	for (char *line; (line = words_line(&lines)); free(line))
		buf_printf(to, "%s,", line);
	json_put_end(to, ']');
}
