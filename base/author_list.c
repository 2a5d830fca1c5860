/* SPDX-License-Identifier: ISC */
#include "base/author_list.h"

#include "base/utf8.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

/* The cursor stays where something is wrong. */
struct cursor {
	const char *at, *end;
	struct address_list *to;
	struct buf *error;
	bool failed;
};

static bool refuse_list(struct cursor *c, const char *why)
{
	if (!c->failed)
		buf_puts(c->error, why);
	c->failed = true;
	return false;
}

static int byte_at_cursor(const struct cursor *c)
{
	return c->at < c->end ? (unsigned char)*c->at : -1;
}

static bool skip_byte(struct cursor *c, char byte)
{
	if (byte_at_cursor(c) != (unsigned char)byte)
		return false;
	c->at++;
	return true;
}

static bool is_wsp(int byte)
{
	return byte == ' ' || byte == '\t';
}

static bool skip_wsp(struct cursor *c)
{
	const char *from = c->at;
	while (is_wsp(byte_at_cursor(c)))
		c->at++;
	return c->at > from;
}

/* FWS: one folding at most, with something in the next line. */
static void skip_fws(struct cursor *c)
{
	skip_wsp(c);
	if (c->end - c->at < 3 || memcmp(c->at, "\r\n", 2) != 0 || !is_wsp(c->at[2]))
		return;
	c->at += 2;
	skip_wsp(c);
	if (byte_at_cursor(c) == '\r')
		refuse_list(c, "a line is blank");
}

/* One printable character of it: of ASCII but those, or of UTF-8. False: it is none, and lies at the cursor. */
static bool skip_text(struct cursor *c, const char *but)
{
	char character[5] = {0};
	int byte = byte_at_cursor(c);
	if (byte < 128) {
		if (byte <= ' ' || byte == 127 || strchr(but, byte))
			return false;
		c->at++;
		return true;
	}
	size_t left = (size_t)(c->end - c->at);
	memcpy(character, c->at, left < 4 ? left : 4);
	size_t len = utf8_length(character);
	assert(len <= left);
	if (len < 2 || ((unsigned char)character[0] == 0xc2 && (unsigned char)character[1] < 0xa0))
		return refuse_list(c, "it is no UTF-8");
	c->at += len;
	return true;
}

static bool skip_quoted_pair(struct cursor *c)
{
	if (!skip_byte(c, '\\'))
		return false;
	return is_wsp(byte_at_cursor(c))
		       ? skip_wsp(c)
		       : skip_text(c, "") || refuse_list(c, "a backslash quotes nothing");
}

static void skip_comment(struct cursor *c)
{
	int depth = 0;
	assert(byte_at_cursor(c) == '(');
	do {
		if (skip_byte(c, '('))
			depth++;
		else if (skip_byte(c, ')'))
			depth--;
		else if (!skip_quoted_pair(c) && !skip_text(c, "()\\"))
			refuse_list(c, "a comment is not closed");
		if (depth > 0)
			skip_fws(c);
	} while (depth > 0 && !c->failed);
}

static void skip_cfws(struct cursor *c)
{
	skip_fws(c);
	while (byte_at_cursor(c) == '(' && !c->failed) {
		skip_comment(c);
		skip_fws(c);
	}
}

static bool skip_quoted_string(struct cursor *c)
{
	if (!skip_byte(c, '"'))
		return false;
	skip_fws(c);
	while (!c->failed && !skip_byte(c, '"')) {
		if (!skip_quoted_pair(c) && !skip_text(c, "\"\\"))
			return refuse_list(c, "a quotation is not closed");
		skip_fws(c);
	}
	return !c->failed;
}

static const char specials[] = "()<>[]:;@\\,.\"";

static bool skip_atom(struct cursor *c)
{
	const char *from = c->at;
	while (skip_text(c, specials))
		;
	return c->at > from && !c->failed;
}

static bool skip_dot_atom(struct cursor *c)
{
	do {
		if (!skip_atom(c))
			return false;
	} while (skip_byte(c, '.'));
	return true;
}

static bool skip_literal(struct cursor *c)
{
	if (!skip_byte(c, '['))
		return false;
	while (skip_text(c, "[]\\"))
		;
	return skip_byte(c, ']');
}

/* False: here is no address, and the cursor is where it was. */
static bool take_addr_spec(struct cursor *c)
{
	const char *from = c->at;
	bool good = (byte_at_cursor(c) == '"' ? skip_quoted_string(c) : skip_dot_atom(c)) &&
		    skip_byte(c, '@') &&
		    (byte_at_cursor(c) == '[' ? skip_literal(c) : skip_dot_atom(c));
	if (!good || c->failed) {
		c->at = from;
		return false;
	}
	if (c->to->n == AUTHOR_LIST_MAX)
		return refuse_list(c, "it names too many");
	struct buf text = {0};
	buf_append(&text, from, (size_t)(c->at - from));
	address_list_add(c->to, buf_cstr(&text));
	buf_fini(&text);
	return true;
}

static bool take_angle(struct cursor *c)
{
	assert(byte_at_cursor(c) == '<');
	c->at++;
	skip_cfws(c);
	if (!take_addr_spec(c))
		return refuse_list(c, "there is no address in angle brackets");
	skip_cfws(c);
	if (!skip_byte(c, '>'))
		return refuse_list(c, "an angle bracket is not closed");
	skip_cfws(c);
	return !c->failed;
}

/* Words, from the first on; the dots are those of RFC 5322 4.1. */
static bool skip_phrase(struct cursor *c)
{
	bool any = false;
	while (!c->failed) {
		bool word = byte_at_cursor(c) == '"' ? skip_quoted_string(c) : skip_atom(c);
		if (!word && !(any && skip_byte(c, '.')))
			break;
		any = true;
		skip_cfws(c);
	}
	return any && !c->failed;
}

static bool take_list(struct cursor *c, bool grouped);

/* Some readers know no groups, and take the name of one for an address if it looks like one. */
static bool take_group(struct cursor *c, const char *name)
{
	if (memchr(name, '@', (size_t)(c->at - name)))
		return refuse_list(c, "a group is called like an address");
	assert(byte_at_cursor(c) == ':');
	c->at++;
	skip_cfws(c);
	if (byte_at_cursor(c) != ';' && !take_list(c, true))
		return false;
	if (!skip_byte(c, ';'))
		return refuse_list(c, "a group is not closed");
	skip_cfws(c);
	return !c->failed;
}

static bool take_address(struct cursor *c, bool grouped)
{
	const char *from = c->at;
	skip_cfws(c);
	if (byte_at_cursor(c) == '<')
		return take_angle(c);
	if (take_addr_spec(c)) {
		skip_cfws(c);
		return !c->failed;
	}
	if (!skip_phrase(c))
		return refuse_list(c, "there is no address");
	if (byte_at_cursor(c) == '<')
		return take_angle(c);
	if (byte_at_cursor(c) == ':' && !grouped)
		return take_group(c, from);
	return refuse_list(c, "a name stands where an address should be");
}

static bool take_list(struct cursor *c, bool grouped)
{
	do {
		if (!take_address(c, grouped))
			return false;
	} while (skip_byte(c, ','));
	return true;
}

bool author_list(const char *field, size_t len, struct address_list *to, struct buf *error)
{
	struct cursor c = {.at = field, .end = field + len, .to = to, .error = error};
	if (len >= 2 && memcmp(c.end - 2, "\r\n", 2) == 0)
		c.end -= 2;
	if (take_list(&c, false) && c.at < c.end)
		refuse_list(&c, "there is a character that belongs to no address");
	assert(c.at <= c.end && to->n <= AUTHOR_LIST_MAX);
	return !c.failed;
}
