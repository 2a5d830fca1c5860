/* SPDX-License-Identifier: ISC */
#include "cmd/maildrop/message_text.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/ident.h"
#include "base/datetime.h"
#include "base/header_field.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
	PIECE = 4096,
	FIELD_LINE_MAX = 998,
	ENCODED_MAX = 45, /* bytes in an encoded word, which has 75 at most */
};

void message_text_init(struct message_text *m)
{
	*m = (struct message_text){0};
}

void message_text_fini(struct message_text *m)
{
	buf_fini(&m->header);
	buf_fini(&m->body);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_folded(const struct message_text *m, const char *line)
{
	return is_blank(*line) && buf_len(&m->header) > 0;
}

/* As programs write it for a terminal: a CR by itself begins the line again. The relay takes neither it nor a NUL. */
static void put_text(struct buf *to, const char *line, size_t len)
{
	const char *at = line, *end = line + len;
	while (at < end) {
		const char *run = at;
		while (at < end && *at != '\r' && *at != '\0')
			at++;
		buf_append(to, run, (size_t)(at - run));
		if (at < end && *at++ == '\r')
			buf_puts(to, "\r\n");
	}
}

/* Lines of the header that are longer than RFC 5322 2.1.1 has them are folded at blanks, which changes nothing that they say:
 * with -t programs write all recipients on one. */
static void put_header_line(struct buf *to, const char *line, size_t len)
{
	size_t text = len; /* behind it there are blanks only, which make no line of their own */
	while (text > 0 && is_blank(line[text - 1]))
		text--;
	while (text > FIELD_LINE_MAX) {
		size_t from = 0, fold = 0;
		while (is_blank(line[from]))
			from++;
		for (size_t i = from; i < text && (i <= FIELD_LINE_MAX || !fold); i++)
			fold = is_blank(line[i]) ? i : fold;
		if (!fold)
			break;
		buf_append(to, line, fold);
		buf_puts(to, "\r\n");
		line += fold;
		text -= fold;
		len -= fold;
	}
	buf_append(to, line, len);
	buf_puts(to, "\r\n");
}

/* One line, its end taken off, into header or body. In the header a CR stays what it is, so that the message is refused: as
 * a line end it would begin a field that whoever wrote the one before it has put in, a recipient for -t among them. */
static void take_line(struct message_text *m, const char *line, size_t len, bool *in_body)
{
	for (size_t i = 0; i < len; i++)
		m->eightbit = m->eightbit || (unsigned char)line[i] > 0x7f;
	if (!*in_body && len > 0 && (is_folded(m, line) || header_field_name(line, len) > 0)) {
		put_header_line(&m->header, line, len);
		return;
	}
	if (*in_body || len > 0) {
		put_text(&m->body, line, len);
		buf_puts(&m->body, "\r\n");
	}
	*in_body = true;
}

/* CRs before it are part of the end: some who write CRLF have it written as CRCRLF for them. */
static size_t line_length(const char *line, size_t len)
{
	if (line[len - 1] == '\n')
		len--;
	while (len > 0 && line[len - 1] == '\r')
		len--;
	return len;
}

/* With its end, or as much of it as is too large. Not by getline(), which takes all memory for a line
 * that does not end, and says of no memory what it says of no line. */
static bool read_line(FILE *from, struct buf *line, uint64_t size_max)
{
	char piece[PIECE];
	size_t n = 0;
	int c = 0;
	buf_clear(line);
	while (c != '\n' && (size_max == 0 || buf_len(line) <= size_max) &&
	       (c = getc_unlocked(from)) != EOF) {
		piece[n++] = (char)c;
		if (n < sizeof piece)
			continue;
		buf_append(line, piece, n);
		n = 0;
	}
	buf_append(line, piece, n);
	return buf_len(line) > 0;
}

bool message_text_read(struct message_text *m, FILE *from, bool dot_ends, uint64_t size_max)
{
	struct buf whole = {0};
	bool in_body = false, first = true;
	while (read_line(from, &whole, size_max)) {
		const char *line = buf_data(&whole);
		size_t len = line_length(line, buf_len(&whole));
		if (dot_ends && len == 1 && line[0] == '.')
			break;
		if (!first || len < 5 || memcmp(line, "From ", 5) != 0)
			take_line(m, line, len, &in_body);
		first = false;
		if (size_max > 0 && buf_len(&m->header) + buf_len(&m->body) > size_max) {
			m->too_large = true;
			break;
		}
	}
	buf_fini(&whole);
	return !m->too_large && !ferror(from);
}

/* Where the field at that place ends: before the next line that is not folded. */
static size_t field_end(const struct buf *header, size_t at)
{
	const char *data = buf_data(header);
	size_t len = buf_len(header);
	do {
		const char *lf = memchr(data + at, '\n', len - at);
		at = lf ? (size_t)(lf - data) + 1 : len;
	} while (at < len && (data[at] == ' ' || data[at] == '\t'));
	return at;
}

bool message_text_field(const struct message_text *m, const char *name, const char **value,
			size_t *len, size_t *cursor)
{
	const char *data = buf_data(&m->header);
	size_t want = strlen(name);
	while (*cursor < buf_len(&m->header)) {
		size_t begin = *cursor, end = field_end(&m->header, begin);
		*cursor = end;
		if (header_field_name(data + begin, end - begin) == want &&
		    strncasecmp(data + begin, name, want) == 0) {
			const char *colon = memchr(data + begin, ':', end - begin);
			*value = colon + 1;
			*len = end - (size_t)(colon + 1 - data);
			return true;
		}
	}
	return false;
}

static bool has_field(const struct message_text *m, const char *name)
{
	const char *value;
	size_t len, cursor = 0;
	return message_text_field(m, name, &value, &len, &cursor);
}

/* On one line, and as much of it as helps to find it. */
static void cite_field(struct buf *error, const char *name, const char *value, size_t len)
{
	enum { CITED_MAX = 200 };
	while (len > 0 && isspace((unsigned char)value[len - 1]))
		len--;
	buf_printf(error, ", in %s:", name);
	for (size_t i = 0; i < len && i < CITED_MAX; i++) {
		char c = iscntrl((unsigned char)value[i]) ? ' ' : value[i];
		buf_append(error, &c, 1);
	}
}

bool message_text_recipients(const struct message_text *m, struct address_list *to,
			     struct buf *error)
{
	static const char *const plain[] = {"To", "Cc", "Bcc"};
	static const char *const resent[] = {"Resent-To", "Resent-Cc", "Resent-Bcc"};
	bool again = has_field(m, resent[0]) || has_field(m, resent[1]) || has_field(m, resent[2]);
	for (int i = 0; i < 3; i++) {
		const char *name = again ? resent[i] : plain[i], *value;
		size_t len, cursor = 0;
		while (message_text_field(m, name, &value, &len, &cursor)) {
			if (!header_addresses(value, len, to, error)) {
				cite_field(error, name, value, len);
				return false;
			}
		}
	}
	return true;
}

static void remove_fields(struct message_text *m, const char *name)
{
	struct buf kept = {0};
	size_t want = strlen(name), at = 0;
	while (at < buf_len(&m->header)) {
		const char *field = buf_data(&m->header) + at;
		size_t end = field_end(&m->header, at), len = end - at;
		if (header_field_name(field, len) != want || strncasecmp(field, name, want) != 0)
			buf_append(&kept, field, len);
		at = end;
	}
	buf_fini(&m->header);
	m->header = kept;
}

static void put_quoted(struct buf *to, const char *name)
{
	buf_puts(to, "\"");
	for (const char *p = name; *p; p++) {
		if (*p == '"' || *p == '\\')
			buf_puts(to, "\\");
		buf_append(to, (unsigned char)*p < ' ' ? " " : p, 1);
	}
	buf_puts(to, "\" ");
}

/* Whole characters, as many as an encoded word has room for. */
static size_t encoded_part(const char *text)
{
	size_t n = 0, next;
	while ((next = utf8_length(text + n)) > 0 && n + next <= ENCODED_MAX)
		n += next;
	return n;
}

/* Few readers take bytes beyond ASCII in a header, and not all hosts: RFC 2047 2, 5. */
static void put_encoded(struct buf *to, const char *name)
{
	size_t len = strlen(name);
	char *clean = mem_alloc(len + 1);
	utf8_clean(clean, name, len);
	for (const char *at = clean; *at; at += len) {
		len = encoded_part(at);
		buf_puts(to, at > clean ? "\r\n =?utf-8?B?" : "=?utf-8?B?");
		base64_encode(to, at, len);
		buf_puts(to, "?=");
	}
	buf_puts(to, "\r\n ");
	free(clean);
}

static void add_from(struct message_text *m, const struct message_author *a)
{
	buf_puts(&m->header, "From: ");
	if (a->name && !utf8_is_ascii(a->name))
		put_encoded(&m->header, a->name);
	else if (a->name && *a->name)
		put_quoted(&m->header, a->name);
	buf_printf(&m->header, "<%s>\r\n", a->address);
}

void message_text_complete(struct message_text *m, const struct message_author *a)
{
	char id[IDENT_TEXT], date[DATETIME_TEXT];
	remove_fields(m, "Bcc");
	remove_fields(m, "Resent-Bcc");
	if (!a)
		return;
	if (!has_field(m, "From"))
		add_from(m, a);
	if (!has_field(m, "Date"))
		buf_printf(&m->header, "Date: %s\r\n", datetime_text(clock_wall_ms(), date));
	if (!has_field(m, "Message-ID"))
		buf_printf(&m->header, "Message-ID: <%s.%d@%s>\r\n", ident_text(ident_new(), id),
			   (int)getpid(), a->host);
}
