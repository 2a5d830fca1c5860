/* SPDX-License-Identifier: ISC */
#include "dns/dnsname.h"

#include "base/name_key.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>
#include <strings.h>

enum { LABEL_MAX = 63 };

/* The byte in lower case, or 0 when no label may hold it. Not ctype.h: the locale has no say. */
static char fold_byte(uint8_t byte)
{
	if (byte >= 'A' && byte <= 'Z')
		return (char)(byte - 'A' + 'a');
	if ((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' ||
	    byte == '_')
		return (char)byte;
	return 0;
}

enum dnsname dnsname_from_wire(const uint8_t *wire, size_t size, char name[DNSNAME_SIZE])
{
	size_t at = 0, len = 0;
	name[0] = '\0';
	for (;;) {
		if (at >= size || wire[at] > LABEL_MAX)
			return DNSNAME_BAD;
		size_t label = wire[at++];
		if (label == 0)
			break;
		if (label > size - at || len + 1 + label >= DNSNAME_SIZE)
			return DNSNAME_BAD;
		if (len > 0)
			name[len++] = '.';
		for (size_t i = 0; i < label; i++) {
			char c = fold_byte(wire[at++]);
			if (!c)
				return DNSNAME_BAD;
			name[len++] = c;
		}
	}
	assert(len < DNSNAME_SIZE);
	name[len] = '\0';
	return len > 0 ? DNSNAME_HOST : DNSNAME_ROOT;
}

static bool copy_ascii(const char *text, char name[DNSNAME_SIZE])
{
	size_t len = 0, label = 0;
	for (const char *p = text; *p; p++) {
		if (*p == '.' && p[1] == '\0' && label > 0)
			break;
		char c = *p == '.' ? '.' : fold_byte((uint8_t)*p);
		label = c == '.' ? 0 : label + 1;
		bool empty = c == '.' && (len == 0 || name[len - 1] == '.');
		if (!c || empty || label > LABEL_MAX || len + 1 >= DNSNAME_SIZE)
			return false;
		name[len++] = c;
	}
	assert(len < DNSNAME_SIZE);
	name[len] = '\0';
	return len > 0;
}

bool dnsname_from_text(const char *text, char name[DNSNAME_SIZE])
{
	char ascii[NAME_KEY_DOMAIN];
	return strlen(text) <= 1000 && name_key_domain(text, ascii) && copy_ascii(ascii, name);
}

static bool parse_address(const char *text, union address *to)
{
	memset(to, 0, sizeof *to);
	if (inet_pton(AF_INET, text, &to->in.sin_addr) == 1) {
		to->in.sin_family = AF_INET;
		return true;
	}
	if (strncasecmp(text, "IPv6:", 5) == 0)
		text += 5;
	if (inet_pton(AF_INET6, text, &to->in6.sin6_addr) != 1)
		return false;
	to->in6.sin6_family = AF_INET6;
	return true;
}

bool dnsname_literal(const char *text, bool bare, union address *to)
{
	char inner[64];
	size_t len = strlen(text);
	if (len < 2 || text[0] != '[' || text[len - 1] != ']')
		return bare && parse_address(text, to);
	if (len - 2 >= sizeof inner)
		return false;
	memcpy(inner, text + 1, len - 2);
	inner[len - 2] = '\0';
	return parse_address(inner, to);
}

bool dnsname_localhost(const char *name)
{
	static const char suffix[] = ".localhost";
	size_t len = strlen(name);
	return strcmp(name, suffix + 1) == 0 ||
	       (len >= sizeof suffix && strcmp(name + len - (sizeof suffix - 1), suffix) == 0);
}
