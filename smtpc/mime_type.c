/* SPDX-License-Identifier: ISC */
#include "smtpc/mime_type.h"

#include "base/header_field.h"
#include "base/words.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { WORD_MAX = 80 };

struct cursor {
	const char *at, *end;
};

static void skip_blanks(struct cursor *c)
{
	int depth = 0;
	for (; c->at < c->end && (depth > 0 || words_is_blank(*c->at) || *c->at == '('); c->at++) {
		if (*c->at == '\\' && c->at + 1 < c->end)
			c->at++;
		else if (*c->at == '(')
			depth++;
		else if (*c->at == ')')
			depth--;
	}
}

/* A token, or what is in quotes. False: it is longer than any that counts. */
static bool take_word(struct cursor *c, char to[WORD_MAX])
{
	size_t n = 0;
	bool quoted;
	skip_blanks(c);
	quoted = c->at < c->end && *c->at == '"';
	for (c->at += quoted; c->at < c->end; c->at++) {
		if (quoted ? *c->at == '"'
			   : words_is_blank(*c->at) || strchr("()<>@,;:\\\"/[]?=", *c->at))
			break;
		if (quoted && *c->at == '\\' && c->at + 1 < c->end)
			c->at++;
		if (n + 1 < WORD_MAX)
			to[n] = *c->at;
		n++;
	}
	c->at += quoted && c->at < c->end;
	to[n < WORD_MAX ? n : WORD_MAX - 1] = '\0';
	skip_blanks(c);
	return n < WORD_MAX;
}

static bool take_byte(struct cursor *c, char byte)
{
	bool there = c->at < c->end && *c->at == byte;
	c->at += there;
	return there;
}

/* message/global and its kin may be encoded as a whole, and must be: their header fields are beyond ASCII, too.
 * RFC 6532 3.7, RFC 6533 6. */
static bool is_global(const char *subtype)
{
	return strcasecmp(subtype, "global") == 0 || strncasecmp(subtype, "global-", 7) == 0;
}

static enum mime_kind kind_of(const char *type, const char *subtype)
{
	if (strcasecmp(type, "text") == 0)
		return MIME_TEXT;
	if (strcasecmp(type, "multipart") == 0)
		return strcasecmp(subtype, "signed") == 0 ? MIME_SIGNED : MIME_MULTIPART;
	if (strcasecmp(type, "message") == 0 && is_global(subtype))
		return MIME_TEXT;
	if (strcasecmp(type, "message") == 0)
		return strcasecmp(subtype, "rfc822") == 0 ? MIME_MESSAGE : MIME_REPORT;
	return MIME_OTHER;
}

static void read_type(struct cursor c, struct mime_type *to)
{
	char type[WORD_MAX], subtype[WORD_MAX], name[WORD_MAX], value[WORD_MAX];
	to->kind = MIME_OTHER;
	if (!take_word(&c, type) || !take_byte(&c, '/') || !take_word(&c, subtype))
		return;
	to->kind = kind_of(type, subtype);
	while (take_byte(&c, ';')) {
		if (!take_word(&c, name) || !take_byte(&c, '='))
			return;
		bool whole = take_word(&c, value);
		size_t len = strlen(value);
		if (strcasecmp(name, "boundary") == 0 && whole && len <= MIME_BOUNDARY_MAX)
			memcpy(to->boundary, value, len + 1);
	}
}

void mime_type_of(const char *header, size_t len, struct mime_type *to)
{
	*to = (struct mime_type){.kind = MIME_TEXT};
	for (size_t at = 0, n; at < len; at += n) {
		const char *field = header + at;
		size_t name = header_field_name(field, len - at);
		n = header_field_end(field, len - at);
		const char *colon = name ? memchr(field, ':', n) : NULL;
		if (!colon)
			continue;
		struct cursor c = {colon + 1, field + n};
		char encoding[WORD_MAX];
		if (header_field_is(field, name, "Content-Type"))
			read_type(c, to);
		else if (header_field_is(field, name, "Content-Transfer-Encoding") &&
			 take_word(&c, encoding))
			to->eightbit = strcasecmp(encoding, "8bit") == 0 ||
				       strcasecmp(encoding, "binary") == 0;
	}
}
