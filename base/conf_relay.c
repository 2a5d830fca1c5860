/* SPDX-License-Identifier: ISC */
#include "base/conf.h"

#include "base/address.h"
#include "base/buf.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/name_key.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool conf_host_good(const char *host)
{
	size_t len = strlen(host);
	if (len == 0 || len > 253 || host[0] == '.' || host[0] == '-' || strstr(host, ".."))
		return false;
	for (const char *c = host; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-._", *c))
			return false;
	return true;
}

bool conf_title_good(const char *title)
{
	size_t len = strspn(title, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789._-");
	return len > 0 && len <= CONF_TITLE_MAX && title[len] == '\0';
}

static bool is_domain(const char *text)
{
	return text[0] == '[' ? mailaddr_domain_valid(text) : conf_host_good(text);
}

bool conf_pattern_good(const char *p)
{
	const char *at = strrchr(p, '@');
	if (strcmp(p, "*") == 0)
		return true;
	if (at)
		return at > p && is_domain(at + 1);
	return p[0] == '.' ? conf_host_good(p + 1) : is_domain(p);
}

static bool is_address(const char *host)
{
	unsigned char bytes[16];
	return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

static bool parse_port(const char *text, int *port)
{
	size_t len = strlen(text);
	*port = len <= 5 ? atoi(text) : 0;
	return len > 0 && strspn(text, "0123456789") == len && *port >= 1 && *port <= 65535;
}

/* A socket has no MX, and no port. */
static bool parse_socket(const char *text, char **host, bool *bracketed)
{
	union address a;
	bool good = address_parse_unix(text, &a);
	*host = good ? mem_strdup(text) : NULL;
	*bracketed = true;
	return good;
}

bool conf_relay_parse(const char *text, char **host, int *port, bool *bracketed)
{
	size_t len = strcspn(text, ":");
	const char *rest = text + len;
	*host = NULL;
	*port = 0;
	if (strncmp(text, "unix:", 5) == 0)
		return parse_socket(text, host, bracketed);
	*bracketed = text[0] == '[';
	if (*bracketed) {
		const char *close = strchr(++text, ']');
		if (!close)
			return false;
		if (strncasecmp(text, "IPv6:", 5) == 0)
			text += 5;
		len = close > text ? (size_t)(close - text) : 0;
		rest = close + 1;
	}
	if (*rest == ':' ? !parse_port(rest + 1, port) : *rest != '\0')
		return false;
	char *said = mem_strndup(text, len), *name = name_key(said);
	free(said);
	if (!is_address(name) && !conf_host_good(name)) {
		free(name);
		return false;
	}
	/* An address has no MX, with brackets or without. */
	*bracketed = *bracketed || is_address(name);
	*host = name;
	return true;
}

bool conf_relay_read(const char *text, struct conf_relay *r)
{
	const char *equals = strrchr(text, '=');
	size_t digits = equals ? strlen(equals + 1) : 0;
	*r = (struct conf_relay){.weight = 0};
	if (equals) {
		r->weight = digits <= 4 ? atoi(equals + 1) : 0;
		if (digits == 0 || strspn(equals + 1, "0123456789") != digits || r->weight < 1)
			return false;
	}
	char *relay = mem_strndup(text, equals ? (size_t)(equals - text) : strlen(text));
	bool good = conf_relay_parse(relay, &r->host, &r->port, &r->bracketed);
	free(relay);
	assert(good == (r->host != NULL)); /* it is the caller's to free */
	return good;
}

static char *spell_relay(const struct conf_relay *r, bool in_brackets)
{
	struct buf b = {0};
	buf_printf(&b, in_brackets ? "[%s]" : "%s", r->host);
	if (r->port > 0)
		buf_printf(&b, ":%d", r->port);
	if (r->weight > 0)
		buf_printf(&b, "=%d", r->weight);
	return buf_steal(&b, NULL);
}

char *conf_relay_kept(const char *text)
{
	struct conf_relay r;
	if (!conf_relay_read(text, &r))
		return NULL;
	char *kept = spell_relay(&r, text[0] == '[');
	free(r.host);
	return kept;
}

char *conf_relay_key(const char *text)
{
	unsigned char bytes[16];
	struct conf_relay r = {.host = NULL};
	bool bare = inet_pton(AF_INET6, text, bytes) == 1;
	char *hop = bare ? mem_printf("[%s]", text) : mem_strdup(text), *key = NULL;
	if (conf_relay_read(hop, &r) && r.weight == 0)
		key = spell_relay(&r, hop[0] == '[');
	free(r.host);
	free(hop);
	if (key && strcmp(key, text) != 0)
		return key;
	free(key);
	return NULL;
}
