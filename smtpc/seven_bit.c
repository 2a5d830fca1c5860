/* SPDX-License-Identifier: ISC */
#include "smtpc/seven_bit.h"

#include "base/base64.h"
#include "base/header_field.h"
#include "base/mem.h"
#include "smtpc/mime_type.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DEPTH_MAX = 32, LINE_MAX_QP = 76, BASE64_BYTES = 57, HELD_MAX = 1 << 10 };

struct seven_bit {
	enum { IN_HEADER, PASSING, QUOTING, ENCODING } state;
	struct buf line;   /* the beginning of one */
	bool mid_line;	   /* what comes next goes on with a line whose beginning is gone */
	struct buf header; /* IN_HEADER: the fields so far */
	struct buf bytes;  /* ENCODING: fewer than BASE64_BYTES */
	bool owes_end; /* ENCODING: a CRLF that belongs to the part, or to the boundary behind it */
	size_t column; /* QUOTING */
	bool over;     /* the rest passes as it is */
	int depth, passes; /* passes: up to this depth nothing is converted; 0: everything is */
	char boundary[DEPTH_MAX][MIME_BOUNDARY_MAX + 1];
};

/* Headers. */

static bool is_signature(const char *field, size_t name)
{
	return header_field_is(field, name, "DKIM-Signature") ||
	       header_field_is(field, name, "ARC-Message-Signature") ||
	       header_field_is(field, name, "DomainKey-Signature");
}

static bool looks_signed(const char *text, size_t len)
{
	bool mime = false;
	for (size_t at = 0, n; at < len; at += n) {
		size_t name = header_field_name(text + at, len - at);
		n = header_field_end(text + at, len - at);
		mime = mime || header_field_is(text + at, name, "MIME-Version");
		if (name == 0 || is_signature(text + at, name))
			return true;
	}
	struct mime_type type;
	mime_type_of(text, len, &type);
	return !mime || type.kind == MIME_SIGNED;
}

bool seven_bit_may(const struct content *c)
{
	char *text = mem_alloc(SEVEN_BIT_HEADER_MAX);
	ssize_t n = content_read(c, 0, text, SEVEN_BIT_HEADER_MAX);
	const char *end = n > 0 ? memmem(text, (size_t)n, "\r\n\r\n", 4) : NULL;
	bool may = end && !looks_signed(text, (size_t)(end - text) + 2);
	free(text);
	return may;
}

static void put_header(struct seven_bit *s, const char *encoding, struct buf *to)
{
	const char *text = buf_data(&s->header);
	size_t len = buf_len(&s->header);
	for (size_t at = 0, n; at < len; at += n) {
		size_t name = header_field_name(text + at, len - at);
		n = header_field_end(text + at, len - at);
		if (encoding && header_field_is(text + at, name, "Content-Transfer-Encoding"))
			buf_printf(to, "Content-Transfer-Encoding: %s\r\n", encoding);
		else
			buf_append(to, text + at, n);
	}
	buf_clear(&s->header);
}

static void go_down(struct seven_bit *s, const struct mime_type *type)
{
	bool known = *type->boundary && s->depth < DEPTH_MAX;
	s->state = PASSING;
	if (!known) {
		s->over = true;
		return;
	}
	assert(s->passes <= s->depth);
	memcpy(s->boundary[s->depth++], type->boundary, sizeof type->boundary);
	if (type->kind == MIME_SIGNED && s->passes == 0)
		s->passes = s->depth;
}

/* The header of the message, or of a part, has come. */
static void end_header(struct seven_bit *s, struct buf *to)
{
	struct mime_type type;
	assert(s->state == IN_HEADER && s->passes <= s->depth);
	mime_type_of(buf_data(&s->header), buf_len(&s->header), &type);
	const char *encoding = NULL;
	s->state = PASSING;
	s->column = 0;
	s->owes_end = false;
	bool converts = type.eightbit && s->passes == 0;
	if (type.kind == MIME_MULTIPART || type.kind == MIME_SIGNED) {
		encoding = converts && type.kind == MIME_MULTIPART ? "7bit" : NULL;
		go_down(s, &type);
	} else if (type.kind == MIME_MESSAGE) {
		encoding = converts ? "7bit" : NULL;
		s->state = IN_HEADER;
	} else if (converts && type.kind == MIME_REPORT) {
		encoding = "7bit";
	} else if (converts) {
		s->state = type.kind == MIME_TEXT ? QUOTING : ENCODING;
		encoding = type.kind == MIME_TEXT ? "quoted-printable" : "base64";
	}
	put_header(s, encoding, to);
}

/* Bodies. */

static void quote_byte(struct seven_bit *s, unsigned char byte, bool plain, struct buf *to)
{
	static const char hex[] = "0123456789ABCDEF";
	size_t width = plain ? 1 : 3;
	if (s->column + width > LINE_MAX_QP - 1) {
		buf_puts(to, "=\r\n");
		s->column = 0;
	}
	assert(s->column + width < LINE_MAX_QP);
	char text[3] = {'=', hex[byte >> 4], hex[byte & 15]};
	buf_append(to, plain ? (const char *)&byte : text, width);
	s->column += width;
}

static void quote_text(struct seven_bit *s, const char *text, size_t len, bool ended,
		       struct buf *to)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)text[i];
		bool blank = byte == ' ' || byte == '\t';
		/* A blank at the end of a piece may be the last of its line. */
		bool plain = blank ? i + 1 < len : byte > 32 && byte < 127 && byte != '=';
		quote_byte(s, byte, plain, to);
	}
	if (!ended)
		return;
	buf_puts(to, "\r\n");
	s->column = 0;
}

static void encode_out(struct seven_bit *s, size_t least, struct buf *to)
{
	while (buf_len(&s->bytes) >= least && buf_len(&s->bytes) > 0) {
		size_t n = buf_len(&s->bytes) < BASE64_BYTES ? buf_len(&s->bytes) : BASE64_BYTES;
		base64_encode(to, buf_data(&s->bytes), n);
		buf_puts(to, "\r\n");
		buf_consume(&s->bytes, n);
	}
}

static void encode_text(struct seven_bit *s, const char *text, size_t len, bool ended,
			struct buf *to)
{
	if (s->owes_end)
		buf_puts(&s->bytes, "\r\n");
	s->owes_end = ended;
	buf_append(&s->bytes, text, len);
	encode_out(s, BASE64_BYTES, to);
}

static void end_part(struct seven_bit *s, struct buf *to)
{
	if (s->state == IN_HEADER)
		put_header(s, NULL, to);
	if (s->state == ENCODING)
		encode_out(s, 1, to);
	s->owes_end = false;
	s->state = PASSING;
}

/* Which boundary this line is, from the innermost; -1: none. */
static int boundary_of(const struct seven_bit *s, const char *line, size_t len, bool *last)
{
	if (len < 2 || memcmp(line, "--", 2) != 0)
		return -1;
	for (int i = s->depth - 1; i >= 0; i--) {
		size_t n = strlen(s->boundary[i]);
		if (len < n + 2 || memcmp(line + 2, s->boundary[i], n) != 0)
			continue;
		const char *rest = line + 2 + n;
		size_t left = len - n - 2;
		*last = left >= 2 && memcmp(rest, "--", 2) == 0;
		size_t at = *last ? 2 : 0;
		while (at < left && strchr(" \t\r\n", rest[at]))
			at++;
		if (at == left)
			return i;
	}
	return -1;
}

static bool take_boundary(struct seven_bit *s, const char *line, size_t len, struct buf *to)
{
	bool last;
	int i = boundary_of(s, line, len, &last);
	if (i < 0)
		return false;
	assert(i < s->depth);
	end_part(s, to);
	s->depth = i + !last;
	if (s->passes > s->depth)
		s->passes = 0;
	s->state = last ? PASSING : IN_HEADER;
	buf_append(to, line, len);
	return true;
}

/* A line, with its end; or a piece of a long one. */
static void put_line(struct seven_bit *s, const char *line, size_t len, bool begins, struct buf *to)
{
	bool ended = len >= 2 && memcmp(line + len - 2, "\r\n", 2) == 0;
	size_t text = ended ? len - 2 : len;
	if (s->over || (begins && take_boundary(s, line, len, to))) {
		if (s->over)
			buf_append(to, line, len);
		return;
	}
	switch (s->state) {
	case IN_HEADER:
		if (begins && ended && text == 0) {
			end_header(s, to);
			buf_puts(to, "\r\n");
			break;
		}
		buf_append(&s->header, line, len);
		s->over = buf_len(&s->header) > SEVEN_BIT_HEADER_MAX;
		if (s->over)
			put_header(s, NULL, to);
		break;
	case QUOTING:
		quote_text(s, line, text, ended, to);
		break;
	case ENCODING:
		encode_text(s, line, text, ended, to);
		break;
	default:
		buf_append(to, line, len);
	}
}

struct seven_bit *seven_bit_new(void)
{
	return mem_zalloc(sizeof(struct seven_bit));
}

void seven_bit_free(struct seven_bit **sp)
{
	struct seven_bit *s = *sp;
	if (!s)
		return;
	buf_fini(&s->line);
	buf_fini(&s->header);
	buf_fini(&s->bytes);
	free(s);
	*sp = NULL;
}

/* The text that is held goes as one line, or as a piece of it that does not end in half an end. A piece is as long whatever the content came
 * in: what is sent again after a failure is the same. */
static void release_line(struct seven_bit *s, bool ended, struct buf *to)
{
	size_t len = buf_len(&s->line);
	bool keeps_cr = !ended && len > 1 && buf_data(&s->line)[len - 1] == '\r';
	len -= keeps_cr;
	put_line(s, buf_data(&s->line), len, !s->mid_line, to);
	buf_consume(&s->line, len);
	s->mid_line = !ended;
}

void seven_bit_put(struct seven_bit *s, const char *bytes, size_t len, struct buf *to)
{
	const char *end = bytes + len;
	while (bytes < end) {
		assert(buf_len(&s->line) < HELD_MAX);
		size_t room = HELD_MAX - buf_len(&s->line), left = (size_t)(end - bytes);
		size_t most = left < room ? left : room;
		const char *lf = memchr(bytes, '\n', most);
		size_t n = lf ? (size_t)(lf + 1 - bytes) : most;
		buf_append(&s->line, bytes, n);
		bytes += n;
		if (lf || buf_len(&s->line) == HELD_MAX)
			release_line(s, lf != NULL, to);
	}
}

void seven_bit_end(struct seven_bit *s, struct buf *to)
{
	if (buf_len(&s->line) > 0)
		put_line(s, buf_data(&s->line), buf_len(&s->line), !s->mid_line, to);
	buf_clear(&s->line);
	if (s->state == ENCODING && s->owes_end)
		buf_puts(&s->bytes, "\r\n");
	end_part(s, to);
}
