/* SPDX-License-Identifier: ISC */
#include "base/reply.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

enum { REPLY_KEEP = 4096 }; /* bytes of memory that an idle parser may hold */

void reply_init(struct reply *r)
{
	memset(r, 0, sizeof *r);
}

void reply_fini(struct reply *r)
{
	buf_fini(&r->lines);
}

void reply_reset(struct reply *r)
{
	struct buf lines = r->lines;
	buf_clear(&lines);
	if (lines.cap > REPLY_KEEP)
		buf_release(&lines);
	memset(r, 0, sizeof *r);
	r->lines = lines;
}

static void mark_bad(struct reply *r, const char *why)
{
	r->result = REPLY_BAD;
	r->error = why;
}

/* Digits and dot of one part of an enhanced code; NULL if they are not there. */
static const char *skip_part(const char *s, int digits_max)
{
	int n = 0;
	while (n < digits_max && isdigit((unsigned char)s[n]))
		n++;
	return n ? s + n : NULL;
}

/* RFC 2034 4: "class.subject.detail" and a blank; a class that contradicts the code is no code. */
static void find_dsn(struct reply *r, const char *line)
{
	if (line[0] != '0' + r->code / 100 || !strchr("245", line[0]) || line[1] != '.')
		return;
	const char *end = skip_part(line + 2, 3);
	if (!end || *end != '.')
		return;
	end = skip_part(end + 1, 3);
	if (!end || (*end != '\0' && *end != ' '))
		return;
	assert((size_t)(end - line) < sizeof r->dsn);
	memcpy(r->dsn, line, (size_t)(end - line));
	r->dsn[end - line] = '\0';
}

static void end_line(struct reply *r)
{
	if (r->column < 3) {
		mark_bad(r, "a line without a code");
		return;
	}
	if (r->nline > 0 && r->line_code != r->code) {
		mark_bad(r, "lines with different codes");
		return;
	}
	if (++r->nline > REPLY_LINES_MAX) {
		mark_bad(r, "too many lines");
		return;
	}
	r->code = r->line_code;
	buf_append(&r->lines, "", 1);
	if (r->dsn[0] == '\0')
		find_dsn(r, buf_data(&r->lines) + r->line_start);
	assert(r->line_start < buf_len(&r->lines));
	r->line_start = buf_len(&r->lines);
	if (!r->more)
		r->result = REPLY_DONE;
	r->column = 0;
	r->line_code = 0;
	r->more = r->cr = false;
}

/* The four columns that say what a line is are checked as they come: who speaks another protocol
 * may never send a LF. */
static void take_head(struct reply *r, char c)
{
	if (r->column < 3) {
		if (c < '0' || c > '9' || (r->column == 0 && (c < '2' || c > '5')))
			mark_bad(r, "a line that does not begin with a reply code");
		r->line_code = r->line_code * 10 + (c - '0');
	} else {
		if (c != ' ' && c != '-')
			mark_bad(r, "neither a blank nor a hyphen behind the code");
		r->more = c == '-';
	}
	r->column++;
}

static void take_byte(struct reply *r, char c)
{
	if (c == '\n')
		end_line(r);
	else if (r->cr)
		mark_bad(r, "a CR without a LF");
	else if (c == '\r')
		r->cr = true;
	else if (c == '\0')
		mark_bad(r, "a NUL");
	else
		take_head(r, c);
}

static bool is_ordinary(char c)
{
	return c != '\n' && c != '\r' && c != '\0';
}

static size_t take_text(struct reply *r, const char *bytes, size_t len)
{
	size_t n = 0;
	while (n < len && is_ordinary(bytes[n]))
		n++;
	size_t held = buf_len(&r->lines) - r->line_start;
	assert(buf_len(&r->lines) >= r->line_start && held <= REPLY_LINE_MAX);
	size_t room = REPLY_LINE_MAX - held;
	buf_append(&r->lines, bytes, n < room ? n : room);
	return n;
}

enum reply_result reply_feed(struct reply *r, const char *bytes, size_t len, size_t *used)
{
	size_t i = 0;
	while (i < len && r->result == REPLY_MORE) {
		size_t n = 1;
		if (r->column > 3 && !r->cr && is_ordinary(bytes[i]))
			n = take_text(r, bytes + i, len - i);
		else
			take_byte(r, bytes[i]);
		i += n;
		r->bytes += n;
		if (r->bytes > REPLY_BYTES_MAX)
			mark_bad(r, "a reply that does not end");
	}
	assert(i <= len);
	*used = i;
	return r->result;
}

int reply_begun(const struct reply *r)
{
	if (r->nline > 0)
		return r->code;
	return r->column > 3 ? r->line_code : 0;
}

const char *reply_line(const struct reply *r, const char *previous)
{
	if (buf_len(&r->lines) == 0)
		return NULL;
	assert(!previous ||
	       (previous >= buf_data(&r->lines) && previous < buf_data(&r->lines) + r->line_start));
	const char *line = previous ? previous + strlen(previous) + 1 : buf_data(&r->lines);
	return line < buf_data(&r->lines) + r->line_start ? line : NULL;
}

/* Behind the enhanced code of the reply, which each line has (RFC 2034 4): in the midst of a sentence it is no part of it. */
static const char *behind_dsn(const struct reply *r, const char *line)
{
	size_t len = strlen(r->dsn);
	bool there = len > 0 && strncmp(line, r->dsn, len) == 0;
	if (!there || (line[len] != ' ' && line[len] != '\0'))
		return line;
	return line + len + (line[len] == ' ');
}

const char *reply_text(const struct reply *r, char to[REPLY_TEXT_MAX + 1])
{
	size_t n = 0;
	bool cited = false;
	for (const char *l = reply_line(r, NULL); l; l = reply_line(r, l)) {
		const char *text = cited ? behind_dsn(r, l) : l;
		size_t len = strlen(text);
		cited = cited || behind_dsn(r, l) != l;
		if (len == 0)
			continue;
		if (n > 0 && n < REPLY_TEXT_MAX)
			to[n++] = ' ';
		if (len > REPLY_TEXT_MAX - n)
			len = REPLY_TEXT_MAX - n;
		memcpy(to + n, text, len);
		n += len;
	}
	assert(n <= REPLY_TEXT_MAX);
	to[n] = '\0';
	return to;
}
