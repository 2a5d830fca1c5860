/* SPDX-License-Identifier: ISC */
#include "cmd/text/suppress_print.h"

#include "cmd/text/json_put.h"
#include "cmd/text/moment.h"

#include <assert.h>

void suppress_print_list(struct buf *to, const struct suppress_command *c)
{
	for (int i = 0; i < c->found; i++) {
		const struct suppress_row *row = &c->row[i];
		buf_printf(to, "%s since ", row->address);
		moment_put(to, row->since_ms, false);
		if (row->until_ms > 0) {
			buf_puts(to, ", until ");
			moment_put(to, row->until_ms, false);
		}
		buf_printf(to, ": %s\n", *row->host ? row->host : "added by hand");
	}
}

static const char *const states[] = {
	[SUPPRESS_LIST] = "suppressed", [SUPPRESS_ADD] = "added", [SUPPRESS_FORGET] = "forgotten"};

static void put_order(struct buf *to, const struct suppress_command *c)
{
	assert((size_t)c->op < sizeof states / sizeof *states);
	buf_puts(to, "{");
	json_put_text(to, "address", c->address);
	json_put_text(to, "state", states[c->op]);
	json_put_number(to, "recipients", c->found);
	json_put_line(to);
}

void suppress_print_json(struct buf *to, const struct suppress_command *c)
{
	if (c->op != SUPPRESS_LIST) {
		put_order(to, c);
		return;
	}
	for (int i = 0; i < c->found; i++) {
		const struct suppress_row *row = &c->row[i];
		buf_puts(to, "{");
		json_put_text(to, "address", row->address);
		json_put_text(to, "host", row->host);
		json_put_time(to, "since", row->since_ms);
		json_put_time(to, "last", row->last_ms);
		json_put_time(to, "until", row->until_ms);
		json_put_line(to);
	}
}

void suppress_print_done(struct buf *to, const struct suppress_command *c)
{
	assert((size_t)c->op < sizeof states / sizeof *states);
	buf_printf(to, "%s %s", c->address, states[c->op]);
	if (*c->address == '@')
		buf_printf(to, ": %d recipient%s", c->found, c->found == 1 ? "" : "s");
	buf_puts(to, "\n");
}
