/* SPDX-License-Identifier: ISC */
#include "dkim/canonical_body.h"

#include <assert.h>
#include <string.h>

void canonical_body_init(struct canonical_body *b, bool relaxed,
			 void (*sink)(void *owner, const char *bytes, size_t len), void *owner)
{
	b->relaxed = relaxed;
	b->sink = sink;
	b->owner = owner;
	b->ends = b->len = 0;
	b->text = b->cr = b->blank = false;
}

static void flush_piece(struct canonical_body *b)
{
	if (b->len > 0)
		b->sink(b->owner, b->piece, b->len);
	b->len = 0;
}

static void pass_bytes(struct canonical_body *b, const char *bytes, size_t len)
{
	if (b->len + len > sizeof b->piece)
		flush_piece(b);
	if (len > sizeof b->piece) {
		b->sink(b->owner, bytes, len);
		return;
	}
	assert(b->len + len <= sizeof b->piece);
	memcpy(b->piece + b->len, bytes, len);
	b->len += len;
}

/* Bytes of a line that are neither its end nor, where they count, blanks. */
static void put_text(struct canonical_body *b, const char *bytes, size_t len)
{
	for (; b->ends > 0; b->ends--)
		pass_bytes(b, "\r\n", 2);
	if (b->blank)
		pass_bytes(b, " ", 1);
	b->blank = false;
	b->text = true;
	pass_bytes(b, bytes, len);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static size_t text_length(const struct canonical_body *b, const char *p, size_t len)
{
	const char *cr = memchr(p, '\r', len);
	size_t n = 0;
	if (cr)
		len = (size_t)(cr - p);
	if (!b->relaxed)
		return len;
	while (n < len && !is_blank(p[n]))
		n++;
	return n;
}

/* Take the byte behind a CR. Returns whether it is used up. */
static bool follow_cr(struct canonical_body *b, char byte)
{
	b->cr = false;
	if (byte != '\n') {
		put_text(b, "\r", 1);
		return false;
	}
	b->blank = false;
	b->ends++;
	return true;
}

static bool has_two_blanks(const char *p, const char *end)
{
	while ((p = memchr(p, ' ', (size_t)(end - p))) && ++p < end)
		if (*p == ' ')
			return true;
	return false;
}

/* The length of a line that is canonical already; 0: it is none, or ends elsewhere. */
static size_t plain_line(const struct canonical_body *b, const char *p, size_t len)
{
	const char *cr = memchr(p, '\r', len);
	size_t n = cr ? (size_t)(cr - p) : 0;
	if (n == 0 || n + 2 > len || cr[1] != '\n')
		return 0;
	if (b->relaxed && (is_blank(cr[-1]) || memchr(p, '\t', n) || has_two_blanks(p, cr)))
		return 0;
	return n;
}

/* Most mail is such lines: they are passed on together. Without the end of the last. */
static size_t plain_lines(const struct canonical_body *b, const char *p, size_t len)
{
	size_t run = 0, n;
	bool begins = (b->ends > 0 || !b->text) && !b->cr && !b->blank;
	for (size_t at = 0; begins && (n = plain_line(b, p + at, len - at)) > 0; at += n + 2)
		run = at + n;
	return run;
}

void canonical_body_put(struct canonical_body *b, const char *bytes, size_t len)
{
	const char *p = bytes, *end = bytes + len;
	while (p < end) {
		size_t lines = plain_lines(b, p, (size_t)(end - p));
		if (lines > 0) {
			put_text(b, p, lines);
			b->ends = 1;
			p += lines + 2;
		} else if (b->cr && follow_cr(b, *p)) {
			p++;
		} else if (*p == '\r') {
			b->cr = true;
			p++;
		} else if (b->relaxed && is_blank(*p)) {
			b->blank = true;
			p++;
		} else {
			size_t n = text_length(b, p, (size_t)(end - p));
			assert(n > 0);
			put_text(b, p, n);
			p += n;
		}
	}
	assert(p == end);
}

void canonical_body_end(struct canonical_body *b)
{
	if (b->cr)
		put_text(b, "\r", 1);
	if (b->text || !b->relaxed)
		pass_bytes(b, "\r\n", 2);
	flush_piece(b);
}
