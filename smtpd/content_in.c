/* SPDX-License-Identifier: ISC */
#include "smtpd/content_in.h"

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

static void pass(struct content_in *c, const char *from, const char *to)
{
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
	pass(c, crlf, crlf + 2);
}

static void stray(struct content_in *c, enum content_fault what)
{
	c->faults |= what;
	end_line(c);
}

/* Take lines as long as they end in CRLF and no dot begins one; *run is where the run of bytes
 * not yet passed on began. Returns where it stopped; the state says why. */
static const char *read_text(struct content_in *c, const char *p, const char *end)
{
	const char *run = p;
	for (;;) {
		const char *lf = memchr(p, '\n', (size_t)(end - p));
		const char *stop = lf ? lf : end;
		const char *cr = memchr(p, '\r', (size_t)(stop - p));
		if (!cr && !lf) {
			grow_line(c, (size_t)(end - p));
			pass(c, run, end);
			return end;
		}
		if (!cr) {
			grow_line(c, (size_t)(lf - p));
			pass(c, run, lf);
			stray(c, CONTENT_BARE_LF);
			return lf + 1;
		}
		if (cr + 1 != lf) {
			grow_line(c, (size_t)(cr - p));
			pass(c, run, cr);
			c->state = CONTENT_CR;
			return cr + 1;
		}
		grow_line(c, (size_t)(lf + 1 - p));
		c->line = 0;
		p = lf + 1;
		if (p == end || (c->dots && *p == '.')) {
			pass(c, run, p);
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
		stray(c, CONTENT_BARE_CR);
		c->state = CONTENT_TEXT;
		return false;
	default:
		return false;
	}
}

size_t content_in_feed(struct content_in *c, const char *data, size_t len)
{
	const char *p = data, *end = data + len;
	/* Rare, and refused at the end of the message only: the bytes behind the end don't count,
	 * but are looked at when they are known to be behind it. */
	const char *nul = memchr(data, '\0', len);
	while (p < end && c->state != CONTENT_END) {
		if (c->state == CONTENT_TEXT)
			p = read_text(c, p, nul && nul >= p ? nul : end);
		else if (read_byte(c, *p))
			p++;
		if (p == nul && p < end && c->state == CONTENT_TEXT) {
			c->faults |= CONTENT_NUL;
			grow_line(c, 1);
			p++;
			nul = memchr(p, '\0', (size_t)(end - p));
		}
	}
	return (size_t)(p - data);
}

void content_in_finish(struct content_in *c)
{
	if (c->state == CONTENT_CR)
		stray(c, CONTENT_BARE_CR);
	c->state = CONTENT_END;
}
