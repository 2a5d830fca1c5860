/* SPDX-License-Identifier: ISC */
#include "smtpd/response.h"

#include "base/words.h"

#include <assert.h>
#include <string.h>

enum { LINE_MAX_BYTES = 510, CODE_LEN = 3, HEAD_LEN = CODE_LEN + 1 }; /* a CRLF behind the line */

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

/* Where a text that is too long goes on: behind the last blank that there is room for. */
static size_t fold_at(const char *text, size_t room)
{
	size_t at = room;
	assert(room > 0);
	while (at > 0 && text[at - 1] != ' ')
		at--;
	return at > 0 ? at : room;
}

/* The enhanced code, with its blank; RFC 2034 4: each line has it. */
static size_t dsn_len(const char *text, size_t len)
{
	const char *blank = memchr(text, ' ', len);
	return blank && words_dsn(text, (size_t)(blank - text), "245") ? (size_t)(blank - text) + 1
								       : 0;
}

static void put_folded(struct buf *to, const char *line, size_t len)
{
	const char *text = line + HEAD_LEN;
	size_t left = len - HEAD_LEN, dsn = dsn_len(text, left);
	const char *rest = text + dsn;
	size_t room = LINE_MAX_BYTES - HEAD_LEN - dsn;
	for (left -= dsn; left > room;) {
		size_t n = fold_at(rest, room);
		buf_printf(to, "%.*s-%.*s%.*s\r\n", CODE_LEN, line, (int)dsn, text, (int)n, rest);
		rest += n;
		left -= n;
	}
	buf_printf(to, "%.*s%.*s%.*s\r\n", HEAD_LEN, line, (int)dsn, text, (int)left, rest);
}

void response_put_given(struct buf *to, const char *reply)
{
	for (const char *line = reply; *line;) {
		size_t len = strcspn(line, "\r\n");
		if (len > LINE_MAX_BYTES)
			put_folded(to, line, len);
		else
			buf_printf(to, "%.*s\r\n", (int)len, line);
		line += len;
		line += strspn(line, "\r\n");
	}
}
