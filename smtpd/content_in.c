/* SPDX-License-Identifier: ISC */
#include "smtpd/content_in.h"

#include <assert.h>
#include <string.h>

/*	state	has come
 *
 *	START	nothing, or CRLF
 *	TEXT	part of a line
 *	CR	part of a line and CR, which is not passed on yet
 *	DOT	"." behind START, likewise
 *	DOT_CR	"." CR behind START, likewise
 *	END	"." CRLF behind START
 */

static void pass_bytes(struct content_in *c, const char *from, const char *to)
{
	assert(from <= to);
	size_t len = (size_t)(to - from);
	c->size += len;
	if (c->size_limit && c->size > c->size_limit)
		c->faults |= CONTENT_TOO_LARGE;
	if (len > 0 && !content_in_refused(c))
		c->sink(c->owner, from, len);
}

static void grow_line(struct content_in *c, size_t len)
{
	c->line += len;
	if (c->line_limit && c->line > c->line_limit)
		c->faults |= CONTENT_LONG_LINE;
}

static void end_line(struct content_in *c)
{
	static const char crlf[] = "\r\n";
	grow_line(c, 2);
	c->line = 0;
	pass_bytes(c, crlf, crlf + 2);
}

static void take_stray(struct content_in *c, enum content_fault what)
{
	c->faults |= what;
	end_line(c);
}

/* Many in a row: whoever sends nothing else must not cost more than who sends text. */
static void take_many_strays(struct content_in *c, enum content_fault what, size_t n)
{
	static const char crlfs[] =
		"\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n";
	const size_t most = (sizeof crlfs - 1) / 2;
	assert(n > 0);
	take_stray(c, what);
	if (--n > 0)
		grow_line(c, 2);
	c->line = 0;
	for (size_t some; n > 0; n -= some) {
		some = n < most ? n : most;
		pass_bytes(c, crlfs, crlfs + 2 * some);
	}
}

/* The next LF at p or behind it, looked for once however often it is asked for. */
struct next_lf {
	const char *at; /* end: there is none; NULL: not looked for yet */
	const char *end;
};

static const char *next_lf(struct next_lf *n, const char *p)
{
	if (!n->at || n->at < p) {
		const char *lf = memchr(p, '\n', (size_t)(n->end - p));
		n->at = lf ? lf : n->end;
	}
	return n->at;
}

static size_t count_same(const char *p, const char *end)
{
	const char *q = p;
	assert(p < end);
	while (q < end && *q == *p)
		q++;
	return (size_t)(q - p);
}

/* CRs, of which the last before an LF, or before the end, may be part of a pair. Returns what is
 * behind those that stand alone. */
static const char *pass_crs(struct content_in *c, const char *cr, const char *end)
{
	size_t n = count_same(cr, end);
	if (cr + n == end || cr[n] == '\n')
		n--;
	if (n > 0)
		take_many_strays(c, CONTENT_BARE_CR, n);
	return cr + n;
}

/* Take lines as long as they end in CRLF and no dot begins one; *run is where the run of bytes
 * not yet passed on began. Returns where it stopped; the state says why. */
static const char *read_text(struct content_in *c, const char *p, const char *end,
			     struct next_lf *lfs)
{
	const char *run = p;
	for (;;) {
		const char *lf = next_lf(lfs, p);
		const char *stop = lf < end ? lf : end;
		const char *cr = memchr(p, '\r', (size_t)(stop - p));
		if (!cr && lf >= end) {
			grow_line(c, (size_t)(end - p));
			pass_bytes(c, run, end);
			return end;
		}
		if (!cr) {
			size_t n = count_same(lf, end);
			grow_line(c, (size_t)(lf - p));
			pass_bytes(c, run, lf);
			take_many_strays(c, CONTENT_BARE_LF, n);
			return lf + n;
		}
		if (cr + 1 != lf || lf >= end) {
			grow_line(c, (size_t)(cr - p));
			pass_bytes(c, run, cr);
			run = p = pass_crs(c, cr, end);
			if (*p != '\r' || p + 1 < end)
				continue;
			c->state = CONTENT_CR;
			return end;
		}
		grow_line(c, (size_t)(lf + 1 - p));
		c->line = 0;
		p = lf + 1;
		if (p == end || (c->dots && *p == '.')) {
			pass_bytes(c, run, p);
			c->state = CONTENT_START;
			return p;
		}
	}
}

/* One byte in a state that waits for a certain one. Returns whether the byte is used up. */
static bool read_byte(struct content_in *c, char byte)
{
	switch (c->state) {
	case CONTENT_START:
		c->state = c->dots && byte == '.' ? CONTENT_DOT : CONTENT_TEXT;
		return c->state == CONTENT_DOT;
	case CONTENT_DOT:
		c->state = byte == '\r' ? CONTENT_DOT_CR : CONTENT_TEXT;
		return byte == '\r';
	case CONTENT_DOT_CR:
		c->state = byte == '\n' ? CONTENT_END : CONTENT_CR;
		return byte == '\n';
	case CONTENT_CR:
		if (byte == '\n') {
			end_line(c);
			c->state = CONTENT_START;
			return true;
		}
		take_stray(c, CONTENT_BARE_CR);
		c->state = CONTENT_TEXT;
		return false;
	default:
		return false;
	}
}

size_t content_in_feed(struct content_in *c, const char *data, size_t len)
{
	const char *p = data, *end = data + len;
	struct next_lf lfs = {.end = end};
	/* Rare, and refused at the end of the message only: the bytes behind the end don't count,
	 * but are looked at when they are known to be behind it. */
	const char *nul = memchr(data, '\0', len);
	while (p < end && c->state != CONTENT_END) {
		if (c->state == CONTENT_TEXT)
			p = read_text(c, p, nul && nul >= p ? nul : end, &lfs);
		else if (read_byte(c, *p))
			p++;
		if (p == nul && p < end && c->state == CONTENT_TEXT) {
			size_t n = count_same(p, end);
			c->faults |= CONTENT_NUL;
			grow_line(c, n);
			p += n;
			nul = memchr(p, '\0', (size_t)(end - p));
		}
	}
	assert(p <= end);
	return (size_t)(p - data);
}

void content_in_finish(struct content_in *c)
{
	if (c->state == CONTENT_CR)
		take_stray(c, CONTENT_BARE_CR);
	c->state = CONTENT_END;
}
