/* SPDX-License-Identifier: ISC */
#include "base/netlist.h"

#include "base/mem.h"

#include <assert.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static bool is_v4(const unsigned char bytes[16])
{
	return memcmp(bytes, mapped, sizeof mapped) == 0;
}

static bool same_bits(const unsigned char *a, const unsigned char *b, int bits)
{
	assert(bits >= 0 && bits <= 128);
	if (memcmp(a, b, (size_t)bits / 8) != 0)
		return false;
	int rest = bits % 8;
	return rest == 0 || (a[bits / 8] ^ b[bits / 8]) >> (8 - rest) == 0;
}

/* Digits only, at most most; -1 when it is not that. */
static int parse_bits(const char *text, int most)
{
	size_t len = strlen(text);
	if (len < 1 || len > 3 || strspn(text, "0123456789") != len)
		return -1;
	int bits = atoi(text);
	return bits <= most ? bits : -1;
}

static bool none_behind(const struct net *n)
{
	for (int i = n->bits; i < 128; i++)
		if (n->bytes[i / 8] >> (7 - i % 8) & 1)
			return false;
	return true;
}

bool net_parse(const char *text, struct net *n)
{
	char host[64];
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	if (len >= 2 && text[0] == '[' && text[len - 1] == ']')
		text++, len -= 2;
	if (len >= sizeof host)
		return false;
	memcpy(host, text, len);
	host[len] = '\0';
	int width = 128;
	memcpy(n->bytes, mapped, sizeof mapped);
	if (inet_pton(AF_INET, host, n->bytes + 12) == 1)
		width = 32;
	else if (inet_pton(AF_INET6, host, n->bytes) != 1)
		return false;
	int bits = slash ? parse_bits(slash + 1, width) : width;
	n->bits = bits + 128 - width;
	return bits >= 0 && none_behind(n);
}

void net_of(const union address *a, struct net *n)
{
	n->bits = 128;
	assert(a->sa.sa_family == AF_INET || a->sa.sa_family == AF_INET6);
	if (a->sa.sa_family == AF_INET) {
		memcpy(n->bytes, mapped, sizeof mapped);
		memcpy(n->bytes + 12, &a->in.sin_addr, 4);
	} else {
		memcpy(n->bytes, &a->in6.sin6_addr, 16);
	}
}

bool net_match(const struct net *n, const union address *a)
{
	struct net of;
	if (a->sa.sa_family != AF_INET && a->sa.sa_family != AF_INET6)
		return false;
	net_of(a, &of);
	/* "::/0" is every IPv6 address; the IPv4 ones are not meant. */
	bool net_v4 = n->bits >= 96 && is_v4(n->bytes);
	return net_v4 == is_v4(of.bytes) && same_bits(n->bytes, of.bytes, n->bits);
}

bool netlist_init(struct netlist *l, const struct conf_list *texts, const char **bad)
{
	l->n = 0;
	l->net = mem_zalloc((size_t)texts->n * sizeof *l->net);
	for (int i = 0; i < texts->n; i++) {
		if (!net_parse(texts->item[i], &l->net[l->n++])) {
			if (bad)
				*bad = texts->item[i];
			netlist_fini(l);
			return false;
		}
	}
	return true;
}

void netlist_fini(struct netlist *l)
{
	free(l->net);
	*l = (struct netlist){0};
}

bool netlist_match(const struct netlist *l, const union address *a)
{
	for (int i = 0; i < l->n; i++)
		if (net_match(&l->net[i], a))
			return true;
	return false;
}

const char *net_text(const struct net *n, char to[NET_TEXT])
{
	assert(n->bits >= 0 && n->bits <= 128);
	bool v4 = is_v4(n->bytes) && n->bits >= 96;
	char host[INET6_ADDRSTRLEN];
	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? n->bytes + 12 : n->bytes, host, sizeof host);
	if (n->bits == 128)
		snprintf(to, NET_TEXT, "%s", host);
	else
		snprintf(to, NET_TEXT, "%s/%d", host, v4 ? n->bits - 96 : n->bits);
	return to;
}

bool net_up(struct net *n)
{
	if (n->bits == (is_v4(n->bytes) ? 96 : 0))
		return false;
	assert(n->bits > 0 && n->bits <= 128);
	n->bits--;
	n->bytes[n->bits / 8] &= (unsigned char)~(0x80 >> n->bits % 8);
	return true;
}
