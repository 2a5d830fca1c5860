/* SPDX-License-Identifier: ISC */
#include "smtpc/content_out.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

void content_out_init(struct content_out *o, enum content_out_form form)
{
	o->form = form;
	o->at = CONTENT_OUT_LINE_START;
}

/* Text without LF; its CRs are stray. */
static void put_text(const char *text, size_t len, struct buf *to)
{
	const char *cr;
	while (len > 0 && (cr = memchr(text, '\r', len))) {
		size_t before = (size_t)(cr - text);
		buf_append(to, text, before);
		buf_append(to, " ", 1);
		text = cr + 1;
		len -= before + 1;
	}
	buf_append(to, text, len);
}

/* Lines that need no change are gathered in a run and appended at once. */
struct run {
	const char *start, *end;
	struct buf *to;
};

static void run_out(struct run *r, const char *next)
{
	if (r->end > r->start)
		buf_append(r->to, r->start, (size_t)(r->end - r->start));
	r->start = r->end = next;
}

/* A whole line, from its start to the LF. */
static void put_line(const struct content_out *o, struct run *r, const char *line, const char *lf)
{
	size_t len = (size_t)(lf - line);
	bool ended = len > 0 && lf[-1] == '\r';
	size_t text = ended ? len - 1 : len;
	if (line[0] == '.' && o->form == CONTENT_OUT_DATA) {
		run_out(r, line);
		buf_append(r->to, ".", 1);
	}
	if (ended && !memchr(line, '\r', text)) {
		r->end = lf + 1;
		return;
	}
	run_out(r, line);
	put_text(line, text, r->to);
	buf_puts(r->to, ended ? "\r\n" : " ");
	r->start = r->end = lf + 1;
}

/* A line that was begun by an earlier piece, or goes on in a later one, byte by byte where it is
 * cut. */
static size_t put_rest(struct content_out *o, const char *bytes, size_t len, struct buf *to)
{
	if (o->at == CONTENT_OUT_AFTER_CR) {
		bool pair = bytes[0] == '\n';
		buf_puts(to, pair ? "\r\n" : " ");
		o->at = pair ? CONTENT_OUT_LINE_START : CONTENT_OUT_IN_LINE;
		return pair ? 1 : 0;
	}
	const char *lf = memchr(bytes, '\n', len);
	size_t text = lf ? (size_t)(lf - bytes) : len;
	bool cr = text > 0 && bytes[text - 1] == '\r';
	if (o->at == CONTENT_OUT_LINE_START && bytes[0] == '.' && o->form == CONTENT_OUT_DATA)
		buf_append(to, ".", 1);
	put_text(bytes, cr ? text - 1 : text, to);
	o->at = cr ? CONTENT_OUT_AFTER_CR : CONTENT_OUT_IN_LINE;
	if (lf && !cr)
		buf_append(to, " ", 1);
	return lf && !cr ? text + 1 : text;
}

/* From the start of a line: as many whole lines as there are. A LF that stands alone does not end a
 * line on the wire, so what follows it is not at a line's start. */
static size_t put_lines(struct content_out *o, const char *bytes, size_t len, struct buf *to)
{
	struct run r = {bytes, bytes, to};
	const char *p = bytes, *end = bytes + len, *lf;
	while (p < end && o->at == CONTENT_OUT_LINE_START &&
	       (lf = memchr(p, '\n', (size_t)(end - p)))) {
		if (lf == p || lf[-1] != '\r')
			o->at = CONTENT_OUT_IN_LINE;
		put_line(o, &r, p, lf);
		p = lf + 1;
	}
	run_out(&r, p);
	return (size_t)(p - bytes);
}

void content_out_put(struct content_out *o, const char *bytes, size_t len, struct buf *to)
{
	if (o->form == CONTENT_OUT_BINARY) {
		buf_append(to, bytes, len);
		return;
	}
	while (len > 0) {
		size_t n = 0;
		if (o->at == CONTENT_OUT_LINE_START)
			n = put_lines(o, bytes, len, to);
		if (n == 0)
			n = put_rest(o, bytes, len, to);
		assert(n <= len);
		bytes += n;
		len -= n;
	}
}

void content_out_end(struct content_out *o, struct buf *to)
{
	if (o->form != CONTENT_OUT_DATA) {
		if (o->at == CONTENT_OUT_AFTER_CR)
			buf_puts(to, " ");
		o->at = CONTENT_OUT_LINE_START;
		return;
	}
	if (o->at == CONTENT_OUT_AFTER_CR || o->at == CONTENT_OUT_IN_LINE)
		buf_puts(to, "\r\n");
	buf_puts(to, ".\r\n");
	o->at = CONTENT_OUT_LINE_START;
}
