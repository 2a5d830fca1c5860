/* SPDX-License-Identifier: ISC */
#include "base/tls_policy.h"

#include "base/address.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/tables.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SHA256_DIGITS = 64 };

static const char by_default[] = "nexthop,dot-nexthop";
static const char fingerprint[] = "sha256=";
static const char sts[] = "mta-sts=", sts_host[] = "mta-sts=hostname";

static const char *const levels[] = {
	[TRANSPORT_TLS_NONE] = "none",	       [TRANSPORT_TLS_OPPORTUNISTIC] = "opportunistic",
	[TRANSPORT_TLS_REQUIRED] = "required", [TRANSPORT_TLS_VERIFY] = "verify",
	[TRANSPORT_TLS_DANE] = "dane",	       [TRANSPORT_TLS_DANE_ONLY] = "dane-only",
};

enum { LEVELS = sizeof levels / sizeof *levels };

/* The level's number; LEVELS: it is none. */
static int level_of(const char *text)
{
	size_t len = strcspn(text, ":");
	for (int i = 0; i < LEVELS; i++)
		if (strlen(levels[i]) == len && strncmp(text, levels[i], len) == 0 &&
		    (text[len] == '\0' || i == TRANSPORT_TLS_VERIFY || i == TRANSPORT_TLS_DANE ||
		     strncmp(text + len + 1, sts, strlen(sts)) == 0))
			return i;
	return LEVELS;
}

static bool is_fingerprint(const char *item)
{
	return strncasecmp(item, fingerprint, strlen(fingerprint)) == 0;
}

static bool good_fingerprint(const char *hex)
{
	int digits = 0;
	for (; *hex; hex++)
		if (isxdigit((unsigned char)*hex))
			digits++;
		else if (*hex != ':')
			return false;
	return digits == SHA256_DIGITS;
}

static bool good_item(const char *item, struct buf *why)
{
	union address a;
	if (is_fingerprint(item)) {
		if (good_fingerprint(item + strlen(fingerprint)))
			return true;
		buf_printf(why, "sha256= wants %d hexadecimal digits", SHA256_DIGITS);
		return false;
	}
	char *name = name_key(item);
	bool good = address_parse(name, 0, &a) || conf_host_good(name + (name[0] == '.'));
	free(name);
	if (good)
		return true;
	buf_printf(why,
		   "\"%s\" is not a name, a .parent of names, an address, nexthop, dot-nexthop, "
		   "hostname, or sha256=FINGERPRINT",
		   item);
	return false;
}

/* Calls item for each part of a list; false: it did not like one. */
static bool each_item(const char *list, bool (*item)(const char *, struct buf *), struct buf *arg)
{
	for (bool more = true, good = true; more; more = *list++ != '\0') {
		size_t len = strcspn(list, ",");
		char *one = mem_strndup(list, len);
		good = item(one, arg);
		free(one);
		if (!good)
			return false;
		list += len;
	}
	return true;
}

bool tls_policy_good(const char *text, struct buf *why)
{
	int level = level_of(text);
	const char *items = strchr(text, ':');
	/* Behind dane nothing is written in the policy of a host: it comes from DNS. */
	if (level == LEVELS || (items && level != TRANSPORT_TLS_VERIFY)) {
		buf_printf(
			why,
			"must be none, opportunistic, required, verify, verify:NAME,NAME, dane or "
			"dane-only, not \"%s\"",
			text);
		return false;
	}
	return !items || each_item(items + 1, good_item, why);
}

enum transport_tls tls_policy_level(const char *text)
{
	int level = level_of(text);
	assert(level < LEVELS);
	return (enum transport_tls)level;
}

const char *tls_policy_items(const char *text)
{
	const char *colon = strchr(text, ':');
	return colon ? colon + 1 : "";
}

static bool only_fingerprint(const char *item, struct buf *none)
{
	(void)none;
	return is_fingerprint(item);
}

bool tls_policy_trusts(const char *text)
{
	return tls_policy_level(text) == TRANSPORT_TLS_VERIFY &&
	       !each_item(tls_policy_items(text), only_fingerprint, NULL);
}

enum tls_policy_dane tls_policy_dane(const char *text, bool usual)
{
	switch (tls_policy_level(text)) {
	case TRANSPORT_TLS_OPPORTUNISTIC:
	case TRANSPORT_TLS_REQUIRED:
		return usual ? TLS_DANE_WANTED : TLS_DANE_IGNORED;
	case TRANSPORT_TLS_DANE:
		return TLS_DANE_WANTED;
	case TRANSPORT_TLS_DANE_ONLY:
		return TLS_DANE_DEMANDED;
	case TRANSPORT_TLS_NONE:
	case TRANSPORT_TLS_VERIFY:
		break;
	}
	return TLS_DANE_IGNORED;
}

/* Of a host that has no TLSA records dane demands nothing. */
static int demand_of(const char *text)
{
	static const int demands[] = {
		[TRANSPORT_TLS_NONE] = 0,   [TRANSPORT_TLS_OPPORTUNISTIC] = 0,
		[TRANSPORT_TLS_DANE] = 1,   [TRANSPORT_TLS_REQUIRED] = 2,
		[TRANSPORT_TLS_VERIFY] = 3, [TRANSPORT_TLS_DANE_ONLY] = 3,
	};
	return demands[tls_policy_level(text)];
}

const char *tls_policy_strictest(const char *a, const char *b)
{
	if (!a || !b)
		return a ? a : b;
	return demand_of(b) >= demand_of(a) ? b : a;
}

/* As certificates have it. */
static void put_name(struct buf *to, const char *text)
{
	char *name = name_key(text);
	buf_puts(to, name);
	free(name);
}

static void put_item(struct buf *to, const char *item, const char *hop)
{
	union address a;
	bool address = hop && address_parse(hop, 0, &a);
	if (is_fingerprint(item)) {
		buf_puts(to, fingerprint);
		for (const char *c = item + strlen(fingerprint); *c; c++)
			if (*c != ':')
				buf_printf(to, "%c", tolower((unsigned char)*c));
	} else if (hop && strcasecmp(item, "nexthop") == 0) {
		put_name(to, hop);
	} else if (hop && strcasecmp(item, "dot-nexthop") == 0) {
		if (address)
			return; /* nothing is below an address */
		buf_puts(to, ".");
		put_name(to, hop);
	} else {
		put_name(to, item);
	}
	buf_puts(to, ",");
}

/* The items, with one word replaced by what it stands for. */
static char *rewrite_items(const char *text, const char *hop, const char *host)
{
	struct buf b = {0};
	bool verify = tls_policy_level(text) == TRANSPORT_TLS_VERIFY;
	if (!verify && !strchr(text, ':'))
		return mem_strdup(text);
	const char *items = *tls_policy_items(text) ? tls_policy_items(text) : by_default;
	buf_printf(&b, "%s:", levels[tls_policy_level(text)]);
	for (bool more = true; more; more = *items++ != '\0') {
		size_t len = strcspn(items, ",");
		char *item = mem_strndup(items, len);
		if (host && strcmp(item, sts_host) == 0) {
			buf_puts(&b, sts);
			put_item(&b, host, hop);
		} else {
			put_item(&b, host && strcasecmp(item, "hostname") == 0 ? host : item, hop);
		}
		free(item);
		items += len;
	}
	char *all = buf_steal(&b, NULL);
	size_t len = strlen(all);
	assert(len > 0);
	if (all[len - 1] == ',')
		all[len - 1] = '\0';
	return all;
}

char *tls_policy_of_hop(const char *text, const char *hop)
{
	return rewrite_items(text, hop, NULL);
}

char *tls_policy_of_host(const char *text, const char *host)
{
	if (tls_policy_level(text) == TRANSPORT_TLS_DANE)
		return mem_strdup(levels[TRANSPORT_TLS_OPPORTUNISTIC]);
	return rewrite_items(text, NULL, host);
}

char *tls_policy_add_sts(const char *of_hop, const struct sts_policy *p)
{
	enum transport_tls level = tls_policy_level(of_hop);
	if (!p || p->mode == STS_NONE || level == TRANSPORT_TLS_VERIFY ||
	    level == TRANSPORT_TLS_DANE_ONLY)
		return mem_strdup(of_hop);
	if (p->mode == STS_ENFORCE)
		return mem_printf("%s:%s", levels[TRANSPORT_TLS_VERIFY], sts_host);
	if (level == TRANSPORT_TLS_DANE) /* of a host without records */
		level = TRANSPORT_TLS_OPPORTUNISTIC;
	return level == TRANSPORT_TLS_NONE ? mem_strdup(of_hop)
					   : mem_printf("%s:%s", levels[level], sts_host);
}

const char *tls_policy_sts(const char *of_host)
{
	const char *items = tls_policy_items(of_host);
	return strncmp(items, sts, strlen(sts)) == 0 ? items + strlen(sts) : NULL;
}

/* No name of a host: a certificate can't have it. */
static const char handed_on[] = ",+requiretls";

char *tls_policy_with_requiretls(const char *text, const char *host)
{
	enum transport_tls level = tls_policy_level(text);
	assert(*host && !tls_policy_has_requiretls(text));
	if (level == TRANSPORT_TLS_VERIFY || level == TRANSPORT_TLS_DANE)
		return mem_printf("%s%s", text, handed_on);
	return mem_printf("verify:%s%s", host, handed_on);
}

bool tls_policy_has_requiretls(const char *text)
{
	size_t len = strlen(text), end = strlen(handed_on);
	return len > end && strcmp(text + len - end, handed_on) == 0;
}

static char *get_by_key(const struct tables *t, const char *key, struct table_origin *origin)
{
	struct table_origin unwanted;
	return tables_get(t, TABLE_TLS_POLICY, key, origin ? origin : &unwanted);
}

static char *get_written(const struct tables *t, const char *hop, bool bracketed, int port,
			 struct table_origin *origin)
{
	char *name = mem_printf(bracketed ? "[%s]" : "%s", hop);
	char *with_port = mem_printf("%s:%d", name, port);
	char *value = get_by_key(t, with_port, origin);
	if (!value)
		value = get_by_key(t, name, origin);
	free(with_port);
	free(name);
	return value;
}

char *tls_policy_row(const struct tables *t, const char *hop, bool bracketed, int port,
		     struct table_origin *origin)
{
	struct conf_relay literal = {.host = NULL};
	if (!t || tables_count(t, TABLE_TLS_POLICY) == 0)
		return NULL;
	if (hop[0] == '[' && conf_relay_read(hop, &literal))
		bracketed = true;
	/* Its parents are those of this form. */
	char *name = literal.host ? literal.host : name_key(hop);
	char *value = get_written(t, name, bracketed, port, origin);
	if (!value && bracketed)
		value = get_written(t, name, false, port, origin);
	for (const char *dot = strchr(name, '.'); !value && dot; dot = strchr(dot + 1, '.'))
		value = get_by_key(t, dot, origin);
	free(name);
	return value ? value : get_by_key(t, "*", origin);
}
