/* SPDX-License-Identifier: ISC */
#include "cmd/text/shape_print.h"

#include "base/log.h"
#include "base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME_WIDTH_MIN = 18, TEXT = 40 };

/* The upper limit of a bucket in minutes. */
static double limit_of(const struct shape_view *v, int bucket)
{
	double limit = v->minutes;
	for (int i = 0; i < bucket; i++)
		limit += v->shape->linear ? v->minutes : limit;
	return limit;
}

/* The title of column 0, the total, and of the buckets. */
static const char *column_title(const struct shape_view *v, int column, char text[TEXT])
{
	int last = v->shape->buckets;
	if (column == 0)
		return "T";
	if (column < last)
		snprintf(text, TEXT, "%.15g", limit_of(v, column - 1));
	else
		snprintf(text, TEXT, "%.15g+", last > 1 ? limit_of(v, last - 2) : 0.0);
	return text;
}

static int64_t column_value(const struct shape_row *row, int column)
{
	return column == 0 ? row->total : row->count[column - 1];
}

void shape_view_init(struct shape_view *v, const struct shape *s, double minutes, int width,
		     bool color)
{
	assert(s->buckets >= 1 && s->buckets <= SHAPE_BUCKETS_MAX);
	*v = (struct shape_view){
		.shape = s, .minutes = minutes, .color = color, .name_width = width};
	for (int i = 0; i <= s->buckets; i++) {
		char head[TEXT], number[TEXT];
		size_t len = strlen(column_title(v, i, head));
		snprintf(number, sizeof number, "%" PRId64, column_value(&s->all, i));
		if (strlen(number) > len)
			len = strlen(number);
		v->column[i] = len > 2 ? (int)len + 1 : 3;
		v->name_width -= v->column[i];
	}
	if (v->name_width < NAME_WIDTH_MIN)
		v->name_width = NAME_WIDTH_MIN;
}

bool shape_row_is_parent(const struct shape_row *row)
{
	return row->name && row->name[0] == '.';
}

static const char *name_of(const struct shape_view *v, const struct shape_row *row)
{
	if (row == &v->shape->all)
		return "TOTAL";
	return row->name[0] ? row->name : "MAILER-DAEMON";
}

/* Right-justified; of one that is too long the end is shown, and a plus in front of it. */
static void put_name(struct buf *to, const struct shape_view *v, const char *name)
{
	size_t width = (size_t)v->name_width, len = strlen(name);
	if (len <= width) {
		buf_printf(to, "%*s", (int)(width - len), "");
	} else {
		const char *mark = name[0] == '.' ? ".+" : "+";
		buf_puts(to, mark);
		name += len - width + strlen(mark);
	}
	utf8_put(to, name);
}

/* How a count looks that is this part of all: half, a fifth, a twentieth, less, none. */
static const char *color_of(const struct shape_view *v, int64_t n)
{
	int64_t all = v->shape->all.total;
	if (!v->color)
		return NULL;
	if (n == 0)
		return "2";
	return n * 2 >= all ? "1;31" : n * 5 >= all ? "31" : n * 20 >= all ? "33" : NULL;
}

static void begin_color(struct buf *to, const char *color)
{
	if (color)
		buf_printf(to, "\033[%sm", color);
}

static void end_color(struct buf *to, const char *color)
{
	if (color)
		buf_puts(to, "\033[0m");
}

void shape_print_row(struct buf *to, const struct shape_view *v, const struct shape_row *row)
{
	bool all = row == &v->shape->all;
	const char *color = all ? NULL : color_of(v, row->total);
	begin_color(to, color);
	put_name(to, v, name_of(v, row));
	end_color(to, color);
	for (int i = 0; i <= v->shape->buckets; i++) {
		color = all && i == 0 ? NULL : color_of(v, column_value(row, i));
		begin_color(to, color);
		buf_printf(to, "%*" PRId64, v->column[i], column_value(row, i));
		end_color(to, color);
	}
	buf_puts(to, "\n");
}

void shape_print_heading(struct buf *to, const struct shape_view *v)
{
	char text[TEXT];
	put_name(to, v, "");
	for (int i = 0; i <= v->shape->buckets; i++)
		buf_printf(to, "%*s", v->column[i], column_title(v, i, text));
	buf_puts(to, "\n");
	shape_print_row(to, v, &v->shape->all);
}

void shape_print_json(struct buf *to, const struct shape_view *v, const struct shape_row *row)
{
	int last = v->shape->buckets - 1;
	buf_puts(to, "{\"domain\":");
	log_json_string(to, name_of(v, row));
	buf_printf(to, ",\"total\":%" PRId64, row->total);
	if (row != &v->shape->all && shape_row_is_parent(row))
		buf_printf(to, ",\"subdomains\":%d", row->subdomains);
	buf_puts(to, ",\"ages\":[");
	for (int i = 0; i <= last; i++) {
		buf_puts(to, i ? ",{\"below_minutes\":" : "{\"below_minutes\":");
		if (i < last)
			buf_printf(to, "%.15g", limit_of(v, i));
		else
			buf_puts(to, "null");
		buf_printf(to, ",\"count\":%" PRId64 "}", row->count[i]);
	}
	buf_puts(to, "]}\n");
}
