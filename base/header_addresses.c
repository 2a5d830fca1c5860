/* SPDX-License-Identifier: ISC */
#include "base/header_addresses.h"

#include "base/mem.h"
#include "base/words.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The cursor goes over tokens; once something is wrong it stays so. */
struct cursor {
	const char *at, *end;
	struct address_list *to;
	struct buf *error;
	struct buf words; /* of the address or display name so far, without blanks and comments */
	bool phrase;	  /* two words side by side: this can be a display name only */
	bool word_last;	  /* the last token was a word */
	bool failed;
};

void address_list_add(struct address_list *l, const char *address)
{
	if ((l->n & (l->n - 1)) == 0) /* it doubles */
		l->item = mem_realloc(l->item, (size_t)(l->n ? l->n * 2 : 1) * sizeof *l->item);
	l->item[l->n++] = mem_strdup(address);
}

void address_list_free(struct address_list *l)
{
	for (int i = 0; i < l->n; i++)
		free(l->item[i]);
	free(l->item);
	*l = (struct address_list){0};
}

static void spoil_reading(struct cursor *c, const char *why)
{
	if (!c->failed && c->error)
		buf_puts(c->error, why);
	c->failed = true;
	c->at = c->end;
}

static void skip_comment(struct cursor *c)
{
	int depth = 0;
	assert(c->at < c->end && *c->at == '(');
	do {
		char byte = *c->at++;
		if (byte == '\\' && c->at < c->end)
			c->at++;
		else if (byte == '(')
			depth++;
		else if (byte == ')')
			depth--;
	} while (depth > 0 && c->at < c->end);
	if (depth > 0)
		spoil_reading(c, "a comment is not closed");
}

static void skip_blanks(struct cursor *c)
{
	while (c->at < c->end && (words_is_blank(*c->at) || *c->at == '('))
		if (*c->at == '(')
			skip_comment(c);
		else
			c->at++;
}

static void word_begins(struct cursor *c)
{
	if (c->word_last)
		c->phrase = true;
	c->word_last = true;
}

/* A quoted string or a domain literal, from its opening to its closing byte; folding goes. */
static void take_enclosed(struct cursor *c, char close)
{
	assert(c->at < c->end);
	buf_append(&c->words, c->at++, 1);
	while (c->at < c->end) {
		char byte = *c->at;
		if (byte == '\\' && c->at + 1 < c->end)
			buf_append(&c->words, c->at++, 1);
		if (*c->at != '\r' && *c->at != '\n')
			buf_append(&c->words, c->at, 1);
		c->at++;
		if (byte == close)
			return;
	}
	spoil_reading(c, "a quotation or bracket is not closed");
}

static void take_atom(struct cursor *c)
{
	while (c->at < c->end && !words_is_blank(*c->at) && !strchr("()<>[]:;@\\,.\"", *c->at))
		buf_append(&c->words, c->at++, 1);
}

static void take_separator(struct cursor *c)
{
	buf_append(&c->words, c->at++, 1);
	c->word_last = false;
}

/* One token of a phrase or an address. False: it is neither, and lies at the cursor. */
static bool take_token(struct cursor *c)
{
	skip_blanks(c);
	if (c->at == c->end)
		return false;
	char byte = *c->at;
	if (byte == '.' || byte == '@') {
		take_separator(c);
	} else if (byte == '"') {
		word_begins(c);
		take_enclosed(c, '"');
	} else if (byte == '[') {
		word_begins(c);
		take_enclosed(c, ']');
	} else if (byte == '\0' || strchr("<>,:;\\])", byte)) {
		return false;
	} else {
		word_begins(c);
		take_atom(c);
	}
	return true;
}

static void forget_words(struct cursor *c)
{
	buf_clear(&c->words);
	c->phrase = c->word_last = false;
}

/* The bytes that were gathered are an address; nothing gathered is an empty place in a list. */
static void add_gathered(struct cursor *c)
{
	if (c->failed || buf_len(&c->words) == 0)
		return;
	if (c->phrase)
		spoil_reading(c, "a name stands where an address should be");
	else
		address_list_add(c->to, buf_cstr(&c->words));
	forget_words(c);
}

/* "<" has been seen: an address, with an obsolete route before it perhaps. */
static void take_angle(struct cursor *c)
{
	assert(c->at < c->end && *c->at == '<');
	c->at++;
	forget_words(c);
	for (;;) {
		while (take_token(c))
			;
		if (c->failed)
			return;
		if (c->at == c->end)
			break;
		/* A route, "@one,@two:": what was gathered is not the address. */
		bool route = (*c->at == ',' || *c->at == ':') &&
			     (buf_len(&c->words) == 0 || *buf_data(&c->words) == '@');
		if (!route)
			break;
		c->at++;
		forget_words(c);
	}
	if (c->at == c->end || *c->at != '>') {
		spoil_reading(c, "an angle bracket is not closed");
		return;
	}
	c->at++;
	add_gathered(c);
}

static void take_list(struct cursor *c)
{
	bool group = false, angle = false;
	while (!c->failed) {
		if (take_token(c)) {
			if (angle)
				spoil_reading(c, "something follows an address in angle brackets");
			continue;
		}
		if (c->at == c->end)
			break;
		char byte = *c->at;
		if (byte == '<' && !angle) {
			take_angle(c);
			angle = true;
		} else if (byte == ':' && !group && !angle) {
			group = true;
			forget_words(c);
			c->at++;
		} else if (byte == ',' || (byte == ';' && group)) {
			add_gathered(c);
			angle = false;
			group = group && byte != ';';
			if (!c->failed)
				c->at++;
		} else {
			spoil_reading(c, "there is a character that belongs to no address");
		}
	}
	add_gathered(c);
}

bool header_addresses(const char *field, size_t len, struct address_list *to, struct buf *error)
{
	struct cursor c = {.at = field, .end = field + len, .to = to, .error = error};
	take_list(&c);
	assert(c.at == c.end);
	buf_fini(&c.words);
	return !c.failed;
}
