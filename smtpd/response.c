/* SPDX-License-Identifier: ISC */
#include "smtpd/response.h"

#include <assert.h>
#include <string.h>

static const struct response_row rows[] = {
#define R(name, code, dsn, text) {code, dsn, text},
	RESPONSES(R)
#undef R
};

const struct response_row *response_row(enum response r)
{
	assert(r >= 0 && r < RESPONSE_COUNT);
	return &rows[r];
}

const char *response_reason(enum response r)
{
	const char *text = response_row(r)->text;
	return strncmp(text, "%s ", 3) == 0 ? text + 3 : text;
}

void response_vprint(struct buf *to, enum response r, va_list args)
{
	const struct response_row *row = response_row(r);
	char head[5] = {(char)('0' + row->code / 100), (char)('0' + row->code / 10 % 10),
			(char)('0' + row->code % 10), ' ', '\0'};
	buf_puts(to, head);
	if (row->dsn[0]) {
		buf_puts(to, row->dsn);
		buf_puts(to, " ");
	}
	if (strchr(row->text, '%')) /* few have */
		buf_vprintf(to, row->text, args);
	else
		buf_puts(to, row->text);
	buf_puts(to, "\r\n");
}

void response_print(struct buf *to, enum response r, ...)
{
	va_list args;
	va_start(args, r);
	response_vprint(to, r, args);
	va_end(args);
}
