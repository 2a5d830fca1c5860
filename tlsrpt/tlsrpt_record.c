/* SPDX-License-Identifier: ISC */
#include "tlsrpt/tlsrpt_record.h"

#include "base/mailaddr.h"
#include "base/mem.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char version[] = "v=TLSRPTv1";

bool tlsrpt_record_is(const char *txt)
{
	size_t len = strlen(version);
	return strncmp(txt, version, len) == 0 && txt[len + strspn(txt + len, " \t")] == ';';
}

static int hex_value(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* RFC 3986 2.1, in place. False: what comes of it can't be printed. */
static bool decode_percent(char *text)
{
	char *to = text;
	for (; *text; text++) {
		char c = *text;
		if (c == '%') {
			if (!isxdigit((unsigned char)text[1]) || !isxdigit((unsigned char)text[2]))
				return false;
			c = (char)(hex_value(text[1]) * 16 + hex_value(text[2]));
			text += 2;
		}
		if (c <= ' ' || c > '~')
			return false;
		*to++ = c;
	}
	*to = '\0';
	return true;
}

static char *address_of(const char *uri, size_t len)
{
	struct mailaddr a;
	size_t end = 0;
	while (end < len && uri[end] != '?')
		end++;
	char *text = mem_strndup(uri, end);
	bool good = decode_percent(text) &&
		    mailaddr_mailbox(text, strlen(text), false, &a) == MAILADDR_OK && a.text[a.at];
	free(text);
	return good ? mem_strdup(a.text) : NULL;
}

/* None, or a number that a port has; "host:" is none that anybody has to write. */
static bool good_port(const char *host, size_t authority)
{
	const char *colon = memchr(host, ':', authority);
	if (!colon)
		return true;
	size_t digits = strspn(colon + 1, "0123456789");
	int port = atoi(colon + 1);
	return digits > 0 && digits <= 5 && colon + 1 + digits == host + authority && port > 0 &&
	       port <= 65535;
}

/* Which libcurl takes apart; no blanks, no user, and something to connect to. */
static char *url_of(const char *uri, size_t len)
{
	char *url = mem_strndup(uri, len);
	const char *host = url + strlen("https://");
	size_t authority = strcspn(host, "/?#");
	bool good = authority > 0 && !memchr(host, '@', authority) && *host != '[' &&
		    *host != ':' && good_port(host, authority);
	for (const char *c = url; *c; c++)
		good = good && *c > ' ' && *c <= '~';
	if (good)
		return url;
	free(url);
	return NULL;
}

static bool has_scheme(const char *text, size_t len, const char *scheme)
{
	return len > strlen(scheme) && strncasecmp(text, scheme, strlen(scheme)) == 0;
}

static int add_target(struct tlsrpt_target *to, int n, const char *uri, size_t len)
{
	static const char mailto[] = "mailto:";
	struct tlsrpt_target t = {.https = has_scheme(uri, len, "https://")};
	if (t.https)
		t.to = url_of(uri, len);
	else if (has_scheme(uri, len, mailto))
		t.to = address_of(uri + strlen(mailto), len - strlen(mailto));
	for (int i = 0; i < n && t.to; i++)
		if (strcmp(to[i].to, t.to) == 0)
			mem_free(&t.to);
	if (!t.to)
		return n;
	to[n] = t;
	return n + 1;
}

static int add_all(const char *list, size_t len, struct tlsrpt_target *to, int most)
{
	int n = 0;
	for (size_t at = 0; at < len && n < most;) {
		at += strspn(list + at, " \t,");
		size_t one = strcspn(list + at, ", \t;");
		if (at + one > len)
			one = len > at ? len - at : 0;
		n = add_target(to, n, list + at, one);
		at += one ? one : 1;
	}
	return n;
}

int tlsrpt_record_parse(const char *txt, struct tlsrpt_target *to, int most)
{
	static const char rua[] = "rua";
	if (!tlsrpt_record_is(txt))
		return 0;
	for (const char *field = strchr(txt, ';'); field; field = strchr(field, ';')) {
		field++;
		field += strspn(field, " \t");
		const char *value = field + strlen(rua);
		if (strncmp(field, rua, strlen(rua)) != 0)
			continue;
		value += strspn(value, " \t");
		if (*value == '=')
			return add_all(value + 1, strcspn(value + 1, ";"), to, most);
	}
	return 0;
}
