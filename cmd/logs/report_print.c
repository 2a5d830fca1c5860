/* SPDX-License-Identifier: ISC */
#include "cmd/logs/report_print.h"

#include "base/log_format.h"
#include "cmd/text/json_put.h"
#include "cmd/text/moment.h"

#include <inttypes.h>

static const struct {
	const char *word, *title, *column[REPORT_COLUMNS];
} tables[] = {
#define T(name, word, title, ...) {word, title, __VA_ARGS__},
	REPORT_TABLES(T)
#undef T
};

static const struct {
	const char *word, *text;
} totals[] = {
#define T(name, word, text) {word, text},
	REPORT_TOTALS(T)
#undef T
};

static void put_table(struct buf *to, const struct report_count *r, int table, int top)
{
	const struct report_row *row = r->table[table];
	int n = (int)HASH_COUNT(row);
	if (n == 0)
		return;
	buf_printf(to, "\n%s", tables[table].title);
	if (n > top)
		buf_printf(to, ", the first %d of %d", top, n);
	buf_puts(to, "\n");
	for (int i = 0; i < REPORT_COLUMNS && tables[table].column[i]; i++)
		buf_printf(to, "%12s", tables[table].column[i]);
	buf_puts(to, "\n");
	for (; row && top > 0; row = row->hh.next, top--) {
		for (int i = 0; i < REPORT_COLUMNS && tables[table].column[i]; i++)
			buf_printf(to, "%12" PRId64, row->n[i]);
		buf_printf(to, "  %s%s%s%s\n", row->name, row->example ? " (" : "",
			   row->example ? row->example : "", row->example ? ")" : "");
	}
}

void report_print_text(struct buf *to, const struct report_count *r, const struct report_frame *f)
{
	buf_printf(to, "Mail of %s\nfrom ", f->hostname);
	moment_put(to, f->span.from_ms, false);
	buf_puts(to, " to ");
	moment_put(to, f->span.to_ms, false);
	buf_puts(to, "\n\n");
	for (int i = 0; i < REPORT_TOTAL_COUNT; i++)
		buf_printf(to, "%12" PRId64 "  %s\n", r->total[i], totals[i].text);
	for (int i = 0; i < REPORT_TABLE_COUNT; i++)
		put_table(to, r, i, f->top);
	buf_printf(to, "\nWhat waits now, recipients by domain and by age in minutes\n%s",
		   f->waiting ? f->waiting : "the queue cannot be read\n");
}

static void put_rows_json(struct buf *to, const struct report_count *r, int table, int top)
{
	const struct report_row *row = r->table[table];
	buf_printf(to, "\"%s\":[", tables[table].word);
	for (; row && top > 0; row = row->hh.next, top--) {
		buf_puts(to, "{");
		json_put_text(to, "name", row->name);
		for (int i = 0; i < REPORT_COLUMNS && tables[table].column[i]; i++)
			json_put_number(to, tables[table].column[i], row->n[i]);
		if (row->example)
			json_put_text(to, "example", row->example);
		json_put_end(to, '}');
	}
	json_put_end(to, ']');
}

void report_print_json(struct buf *to, const struct report_count *r, const struct report_frame *f)
{
	buf_puts(to, "{");
	json_put_text(to, "hostname", f->hostname);
	log_json_time(to, "from", f->span.from_ms);
	log_json_time(to, "to", f->span.to_ms);
	for (int i = 0; i < REPORT_TOTAL_COUNT; i++)
		json_put_number(to, totals[i].word, r->total[i]);
	for (int i = 0; i < REPORT_TABLE_COUNT; i++)
		put_rows_json(to, r, i, f->top);
	if (f->waiting)
		json_put_lines(to, "waiting", f->waiting);
	else
		json_put_text(to, "waiting", NULL);
	json_put_line(to);
}
