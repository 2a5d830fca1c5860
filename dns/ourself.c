/* SPDX-License-Identifier: ISC */
#include "dns/ourself.h"

#include "base/address.h"
#include "base/mem.h"
#include "base/netlist.h"
#include "dns/dnsname.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add_address(struct ourself *me, const struct sockaddr *sa)
{
	size_t n = (size_t)me->naddress;
	me->address = mem_realloc(me->address, (n + 1) * sizeof *me->address);
	memset(&me->address[n], 0, sizeof me->address[n]);
	if (sa->sa_family == AF_INET)
		memcpy(&me->address[n].in, sa, sizeof me->address[n].in);
	else
		memcpy(&me->address[n].in6, sa, sizeof me->address[n].in6);
	me->naddress++;
}

static void add_interfaces(struct ourself *me, bool v4, bool v6)
{
	struct ifaddrs *all = NULL;
	if (getifaddrs(&all) != 0)
		return;
	for (struct ifaddrs *i = all; i; i = i->ifa_next)
		if (i->ifa_addr && ((v4 && i->ifa_addr->sa_family == AF_INET) ||
				    (v6 && i->ifa_addr->sa_family == AF_INET6)))
			add_address(me, i->ifa_addr);
	freeifaddrs(all);
}

/* The host of "192.0.2.1:25", "[::1]:25", "*:25", ":25". */
static bool listener_address(const char *text, union address *to)
{
	char host[80];
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);
	if (len >= sizeof host)
		return false;
	memcpy(host, text, len);
	host[len] = '\0';
	return dnsname_literal(host, true, to);
}

static void add_listener(struct ourself *me, const char *text, bool *all4, bool *all6)
{
	union address address;
	if (text[0] == ':' || text[0] == '*') {
		*all4 = *all6 = true;
		return;
	}
	if (!listener_address(text, &address))
		return;
	if (!address_is_unspecified(&address)) {
		add_address(me, &address.sa);
		return;
	}
	*all4 = true;
	*all6 |= address.sa.sa_family == AF_INET6;
}

static char *own_name(const struct conf *conf)
{
	char host[256] = "", name[DNSNAME_SIZE];
	if (!conf->hostname || !conf->hostname[0])
		gethostname(host, sizeof host - 1);
	const char *text = host[0] ? host : conf->hostname;
	return mem_strdup(text && dnsname_from_text(text, name) ? name : "");
}

struct ourself *ourself_new(const struct conf *conf)
{
	struct ourself *me = mem_zalloc(sizeof *me);
	bool all4 = false, all6 = false;
	me->name = own_name(conf);
	for (int i = 0; i < conf->nlistener; i++)
		for (int j = 0; j < conf->listener[i].address.n; j++)
			add_listener(me, conf->listener[i].address.item[j], &all4, &all6);
	if (all4 || all6)
		add_interfaces(me, all4, all6);
	return me;
}

void ourself_free(struct ourself **mp)
{
	struct ourself *me = mem_take(mp);
	if (!me)
		return;
	free(me->name);
	free(me->address);
	free(me);
}

bool ourself_named(const struct ourself *me, const char *name)
{
	return me->name[0] && strcmp(me->name, name) == 0;
}

static bool has_prefix(const struct in6_addr *a, const uint8_t *prefix, size_t size)
{
	return memcmp(a->s6_addr, prefix, size) == 0;
}

/* An IPv4 host under an address of IPv6: mapped, of NAT64, or of a translator without state (RFC 4291 2.5.5.2, 6052 2.1,
 * 2765 2.1). */
static bool is_translated(const struct in6_addr *a)
{
	static const uint8_t nat64[12] = {0, 0x64, 0xff, 0x9b},
			     stateless[12] = {[8] = 0xff, [9] = 0xff};
	return IN6_IS_ADDR_V4MAPPED(a) || has_prefix(a, nat64, sizeof nat64) ||
	       has_prefix(a, stateless, sizeof stateless);
}

static const uint8_t *bytes_of(const union address *a, size_t *size)
{
	assert(a->sa.sa_family == AF_INET || a->sa.sa_family == AF_INET6);
	if (a->sa.sa_family == AF_INET) {
		*size = 4;
		return (const uint8_t *)&a->in.sin_addr;
	}
	*size = is_translated(&a->in6.sin6_addr) ? 4 : 16;
	return a->in6.sin6_addr.s6_addr + 16 - *size;
}

bool ourself_at(const struct ourself *me, const union address *there)
{
	size_t size, mine;
	const uint8_t *bytes = bytes_of(there, &size);
	for (int i = 0; i < me->naddress; i++) {
		const uint8_t *own = bytes_of(&me->address[i], &mine);
		if (mine == size && memcmp(own, bytes, size) == 0)
			return true;
	}
	return false;
}

void ourself_meant(const union address *a, union address *meant)
{
	static const uint8_t six_to_four[2] = {0x20, 0x02};
	const struct in6_addr *in6 = &a->in6.sin6_addr;
	*meant = *a;
	if (a->sa.sa_family != AF_INET6)
		return;
	const uint8_t *within = NULL;
	if (is_translated(in6) || IN6_IS_ADDR_V4COMPAT(in6))
		within = in6->s6_addr + 12;
	else if (has_prefix(in6, six_to_four, sizeof six_to_four))
		within = in6->s6_addr + sizeof six_to_four;
	if (!within)
		return;
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = a->in6.sin6_port};
	memcpy(&in.sin_addr, within, sizeof in.sin_addr);
	meant->in = in;
}

/* RFC 6890, where it says "Global: False", and 3849, 9602 and 9637. */
static bool is_private(const union address *a)
{
	static const char *const text[] = {
		"10.0.0.0/8",	  "100.64.0.0/10",  "172.16.0.0/12", "192.0.0.0/24",
		"192.0.2.0/24",	  "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "64:ff9b:1::/48", "100::/64",	     "2001::/32",
		"2001:2::/48",	  "2001:10::/28",   "2001:db8::/32", "3fff::/20",
		"5f00::/16",	  "fc00::/7",	    "fec0::/10",
	};
	for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
		struct net n;
		if (net_parse(text[i], &n) && net_match(&n, a))
			return true;
	}
	return false;
}

static enum reach reach_of_ipv4(const union address *a)
{
	const uint8_t *b = (const uint8_t *)&a->in.sin_addr;
	if (b[0] == 127 || (b[0] == 169 && b[1] == 254))
		return REACH_LOCAL;
	if (b[0] == 0 || b[0] >= 224)
		return REACH_NONE;
	return is_private(a) ? REACH_PRIVATE : REACH_GLOBAL;
}

enum reach ourself_reach(const union address *a)
{
	union address meant;
	ourself_meant(a, &meant);
	if (meant.sa.sa_family == AF_INET)
		return reach_of_ipv4(&meant);
	const struct in6_addr *in6 = &meant.in6.sin6_addr;
	if (IN6_IS_ADDR_LOOPBACK(in6) || IN6_IS_ADDR_LINKLOCAL(in6))
		return REACH_LOCAL;
	if (IN6_IS_ADDR_UNSPECIFIED(in6) || IN6_IS_ADDR_MULTICAST(in6))
		return REACH_NONE;
	return is_private(&meant) ? REACH_PRIVATE : REACH_GLOBAL;
}
