/* SPDX-License-Identifier: ISC */
#include "base/mailaddr.h"

#include "base/utf8.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { PATH_MAX_BYTES = 256, LABEL_MAX = 63, ROUTE_MAX = 1000 };

/* Where parsing has come to. The first fault stays. */
struct cursor {
	const char *at, *end;
	bool utf8_allowed, utf8;
	enum mailaddr_result result;
};

static bool set_fault(struct cursor *c, enum mailaddr_result why)
{
	if (c->result == MAILADDR_OK)
		c->result = why;
	return false;
}

static int peek_byte(const struct cursor *c)
{
	return c->at < c->end ? (unsigned char)*c->at : -1;
}

static bool skip_byte(struct cursor *c, char byte)
{
	if (peek_byte(c) != (unsigned char)byte)
		return false;
	c->at++;
	return true;
}

static bool is_atext(int ch)
{
	return ch > 0 && ch < 128 && (isalnum(ch) || strchr("!#$%&'*+-/=?^_`{|}~", ch));
}

/* Step over one character above 127. The C1 controls are characters that no address needs. */
static bool skip_utf8(struct cursor *c)
{
	char character[5] = {0};
	size_t left = (size_t)(c->end - c->at);
	memcpy(character, c->at, left < 4 ? left : 4);
	size_t len = utf8_length(character);
	assert(len <= left);
	if (!c->utf8_allowed || len < 2)
		return set_fault(c, MAILADDR_NOT_ASCII);
	if (len == 2 && (unsigned char)character[0] == 0xc2 && (unsigned char)character[1] < 0xa0)
		return set_fault(c, MAILADDR_SYNTAX);
	c->utf8 = true;
	c->at += len;
	return true;
}

static bool skip_atom(struct cursor *c)
{
	const char *start = c->at;
	while (c->at < c->end) {
		if (is_atext(peek_byte(c)))
			c->at++;
		else if (peek_byte(c) < 128)
			break;
		else if (!skip_utf8(c))
			return false;
	}
	return c->at > start || set_fault(c, MAILADDR_SYNTAX);
}

static bool skip_dot_string(struct cursor *c)
{
	do {
		if (!skip_atom(c))
			return false;
	} while (skip_byte(c, '.'));
	return true;
}

/* DIFFERS from RFC 5321 4.1.2: dots may begin, end and follow each other. */
static bool skip_loose_string(struct cursor *c)
{
	bool any = false;
	for (int ch; (ch = peek_byte(c)) == '.' || ch > 127 || is_atext(ch);) {
		if (skip_byte(c, '.'))
			continue;
		if (!skip_atom(c))
			return false;
		any = true;
	}
	return any || set_fault(c, MAILADDR_SYNTAX);
}

static bool skip_quoted_string(struct cursor *c)
{
	c->at++;
	while (!skip_byte(c, '"')) {
		int ch = peek_byte(c);
		if (ch > 127) {
			if (!skip_utf8(c))
				return false;
			continue;
		}
		if (ch == '\\') {
			c->at++;
			ch = peek_byte(c);
		}
		if (ch < 32 || ch > 126)
			return set_fault(c, ch > 127 ? MAILADDR_NOT_ASCII : MAILADDR_SYNTAX);
		c->at++;
	}
	return true;
}

static bool plain_local(const char *text, size_t len)
{
	struct cursor c = {.at = text, .end = text + len, .utf8_allowed = true};
	return len > 0 && skip_dot_string(&c) && c.at == c.end;
}

/* Some have an address of old whose local part is none without quotes: with dots at its end, or two in a row. */
static size_t put_in_quotes(const char *from, size_t len, char *to)
{
	to[0] = '"';
	memcpy(to + 1, from, len);
	to[len + 1] = '"';
	return len + 2;
}

/* Write a quoted local part as it is kept: without quotes where it needs none, else with as few
 * backslashes as can be. It never gets longer. */
static size_t keep_quoted(const char *from, size_t len, char *to)
{
	char bare[MAILADDR_LOCAL_MAX];
	assert(len >= 2 && len <= MAILADDR_LOCAL_MAX);
	size_t n = 0, out = 0;
	for (size_t i = 1; i + 1 < len; i++) {
		if (from[i] == '\\')
			i++;
		bare[n++] = from[i];
	}
	if (plain_local(bare, n)) {
		memcpy(to, bare, n);
		return n;
	}
	to[out++] = '"';
	for (size_t i = 0; i < n; i++) {
		if (bare[i] == '"' || bare[i] == '\\')
			to[out++] = '\\';
		to[out++] = bare[i];
	}
	to[out++] = '"';
	assert(out <= len);
	return out;
}

static bool local_part(struct cursor *c, struct mailaddr *a)
{
	const char *start = c->at;
	bool quoted = peek_byte(c) == '"';
	if (!(quoted ? skip_quoted_string(c) : skip_loose_string(c)))
		return false;
	size_t len = (size_t)(c->at - start);
	bool needs_quotes = !quoted && !plain_local(start, len);
	if (len + (needs_quotes ? 2 : 0) > MAILADDR_LOCAL_MAX)
		return set_fault(c, MAILADDR_LOCAL_TOO_LONG);
	if (quoted)
		len = keep_quoted(start, len, a->text);
	else if (needs_quotes)
		len = put_in_quotes(start, len, a->text);
	else
		memcpy(a->text, start, len);
	a->at = len;
	return true;
}

static bool parse_literal(struct cursor *c)
{
	char text[64];
	struct in6_addr ignored;
	const char *start = ++c->at;
	while (peek_byte(c) > 32 && peek_byte(c) < 127 && peek_byte(c) != ']')
		c->at++;
	size_t len = (size_t)(c->at - start);
	if (!skip_byte(c, ']') || len >= sizeof text)
		return set_fault(c, MAILADDR_SYNTAX);
	memcpy(text, start, len);
	text[len] = '\0';
	bool six = strncasecmp(text, "IPv6:", 5) == 0;
	if (inet_pton(six ? AF_INET6 : AF_INET, six ? text + 5 : text, &ignored) != 1)
		return set_fault(c, MAILADDR_SYNTAX);
	return true;
}

/* One label; an underscore is no letter of a host name, but many have one. */
static bool parse_label(struct cursor *c, bool *digits)
{
	const char *start = c->at;
	*digits = true;
	for (int ch; (ch = peek_byte(c)) > 0;) {
		if (ch > 127) {
			if (!skip_utf8(c))
				return false;
		} else if (isalnum(ch) || ch == '-' || ch == '_') {
			c->at++;
		} else {
			break;
		}
		*digits = *digits && isdigit(ch);
	}
	size_t len = (size_t)(c->at - start);
	if (len == 0 || start[0] == '-' || c->at[-1] == '-')
		return set_fault(c, MAILADDR_SYNTAX);
	return len <= LABEL_MAX || set_fault(c, MAILADDR_DOMAIN_TOO_LONG);
}

/* DIFFERS from RFC 5321 4.1.2, which knows no final dot: it is allowed, and not part of *len. */
static bool parse_domain(struct cursor *c, size_t *len, bool numeric_allowed)
{
	const char *start = c->at;
	bool digits;
	if (peek_byte(c) == '[') {
		if (!parse_literal(c))
			return false;
		*len = (size_t)(c->at - start);
		return true;
	}
	do {
		if (!parse_label(c, &digits))
			return false;
		*len = (size_t)(c->at - start);
	} while (skip_byte(c, '.') && peek_byte(c) > 0 && !strchr(">,: ", peek_byte(c)));
	if (*len > MAILADDR_DOMAIN_MAX)
		return set_fault(c, MAILADDR_DOMAIN_TOO_LONG);
	/* "127.0.0.1" is no domain, though some resolvers would take it for an address. */
	return !digits || numeric_allowed || set_fault(c, MAILADDR_SYNTAX);
}

static bool parse_mailbox(struct cursor *c, struct mailaddr *a, bool postmaster_allowed)
{
	const char *start = c->at;
	size_t len;
	if (!local_part(c, a))
		return false;
	if (postmaster_allowed && peek_byte(c) == '>' && a->at == 10 &&
	    strncasecmp(start, "postmaster", 10) == 0) {
		a->text[a->at] = '\0';
		return true;
	}
	if (!skip_byte(c, '@'))
		return set_fault(c, MAILADDR_SYNTAX);
	const char *from = c->at;
	if (!parse_domain(c, &len, false))
		return false;
	if (c->at - start + 2 > PATH_MAX_BYTES)
		return set_fault(c, MAILADDR_DOMAIN_TOO_LONG);
	a->text[a->at] = '@';
	assert(a->at + 1 + len < sizeof a->text);
	for (size_t i = 0; i < len; i++)
		a->text[a->at + 1 + i] = (char)(from[i] & 0x80 ? from[i] : tolower(from[i]));
	a->text[a->at + 1 + len] = '\0';
	a->literal = from[0] == '[';
	a->utf8 = c->utf8;
	return true;
}

/* RFC 5321 C: what a source route says is of no use to anybody, and is left out. */
static bool parse_route(struct cursor *c)
{
	const char *start = c->at;
	size_t len;
	do {
		if (!skip_byte(c, '@'))
			return set_fault(c, MAILADDR_SYNTAX);
		if (!parse_domain(c, &len, false))
			return false;
	} while (skip_byte(c, ','));
	if (c->at - start > ROUTE_MAX)
		return set_fault(c, MAILADDR_DOMAIN_TOO_LONG);
	return skip_byte(c, ':') || set_fault(c, MAILADDR_SYNTAX);
}

enum mailaddr_result mailaddr_path(const char **cursor, bool utf8_allowed, struct mailaddr *a)
{
	struct mailaddr found = {0};
	struct cursor c = {.at = *cursor, .utf8_allowed = utf8_allowed};
	c.end = c.at + strlen(c.at);
	bool good = skip_byte(&c, '<') || set_fault(&c, MAILADDR_SYNTAX);
	if (good && peek_byte(&c) != '>')
		good = (peek_byte(&c) != '@' || parse_route(&c)) && parse_mailbox(&c, &found, true);
	if (good && !skip_byte(&c, '>'))
		set_fault(&c, MAILADDR_SYNTAX);
	if (c.result == MAILADDR_OK) {
		*a = found;
		*cursor = c.at;
	}
	return c.result;
}

enum mailaddr_result mailaddr_mailbox(const char *text, size_t len, bool utf8_allowed,
				      struct mailaddr *a)
{
	struct mailaddr found = {0};
	struct cursor c = {.at = text, .end = text + len, .utf8_allowed = utf8_allowed};
	if (parse_mailbox(&c, &found, false) && c.at < c.end)
		set_fault(&c, MAILADDR_SYNTAX);
	if (c.result == MAILADDR_OK)
		*a = found;
	return c.result;
}

const char *mailaddr_kept(const char *text, struct mailaddr *a)
{
	return mailaddr_mailbox(text, strlen(text), true, a) == MAILADDR_OK ? a->text : NULL;
}

const char *mailaddr_domain(const char *address)
{
	const char *at = strrchr(address, '@');
	const char *quote = strrchr(address, '"');
	return at && (!quote || quote < at) ? at + 1 : "";
}

bool mailaddr_domain_valid(const char *text)
{
	struct cursor c = {.at = text, .end = text + strlen(text)};
	size_t len;
	return parse_domain(&c, &len, true) && c.at == c.end;
}

bool mailaddr_hello_valid(const char *name)
{
	char text[INET6_ADDRSTRLEN + 1];
	struct in6_addr ignored;
	size_t len = strlen(name);
	if (name[0] != '[' || len > sizeof text || name[len - 1] != ']')
		return mailaddr_domain_valid(name);
	memcpy(text, name + 1, len - 2);
	text[len - 2] = '\0';
	return inet_pton(AF_INET6, text, &ignored) == 1 || mailaddr_domain_valid(name);
}
