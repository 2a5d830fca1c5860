/* SPDX-License-Identifier: ISC */
#include "base/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each message has several; inet_ntop() goes by way of sprintf(). */
static void put_four(const void *bytes, char *to)
{
	unsigned char four[4];
	memcpy(four, bytes, sizeof four);
	for (int i = 0; i < 4; i++) {
		unsigned n = four[i];
		if (n >= 100)
			*to++ = (char)('0' + n / 100);
		if (n >= 10)
			*to++ = (char)('0' + n / 10 % 10);
		*to++ = (char)('0' + n % 10);
		*to++ = i < 3 ? '.' : '\0';
	}
}

const char *address_text(const union address *a, char text[64])
{
	text[0] = '\0';
	if (a->sa.sa_family == AF_INET)
		put_four(&a->in.sin_addr, text);
	else if (a->sa.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr))
		put_four(&a->in6.sin6_addr.s6_addr[12], text);
	else if (a->sa.sa_family == AF_INET6)
		inet_ntop(AF_INET6, &a->in6.sin6_addr, text, 64);
	return text;
}

int address_port(const union address *a)
{
	switch (a->sa.sa_family) {
	case AF_INET:
		return ntohs(a->in.sin_port);
	case AF_INET6:
		return ntohs(a->in6.sin6_port);
	default:
		return 0;
	}
}

socklen_t address_size(const union address *a)
{
	if (a->sa.sa_family == AF_UNIX)
		return sizeof a->un;
	return a->sa.sa_family == AF_INET6 ? sizeof a->in6 : sizeof a->in;
}

static const char unix_prefix[] = "unix:";

bool address_parse_unix(const char *text, union address *a)
{
	size_t prefix = strlen(unix_prefix), len = strlen(text);
	memset(a, 0, sizeof *a);
	if (len <= prefix + 1 || len - prefix >= sizeof a->un.sun_path ||
	    strncmp(text, unix_prefix, prefix) != 0 || text[prefix] != '/')
		return false;
	for (const char *c = text; *c; c++)
		if (*c <= ' ' || *c >= 0x7f || strchr("=,;[]\"", *c))
			return false;
	a->un.sun_family = AF_UNIX;
	memcpy(a->un.sun_path, text + prefix, len - prefix + 1);
	return true;
}

const char *address_where(const union address *a, char text[ADDRESS_WHERE_MAX])
{
	if (!address_is_unix(a))
		return address_text(a, text);
	snprintf(text, ADDRESS_WHERE_MAX, "%s%s", unix_prefix, a->un.sun_path);
	return text;
}

const char *address_peer(const union address *a, const char *name, char text[ADDRESS_PEER_MAX])
{
	char where[ADDRESS_WHERE_MAX];
	address_where(a, where);
	if (address_is_unix(a))
		snprintf(text, ADDRESS_PEER_MAX, "%s", where);
	else
		snprintf(text, ADDRESS_PEER_MAX, "%.200s[%s]:%d", name, where, address_port(a));
	return text;
}

bool address_is_loopback(const union address *a)
{
	if (a->sa.sa_family == AF_INET)
		return ntohl(a->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return a->sa.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&a->in6.sin6_addr);
}

bool address_is_unspecified(const union address *a)
{
	if (a->sa.sa_family == AF_INET)
		return a->in.sin_addr.s_addr == INADDR_ANY;
	return a->sa.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&a->in6.sin6_addr);
}

void address_set_port(union address *a, int port)
{
	if (a->sa.sa_family == AF_INET6)
		a->in6.sin6_port = htons((uint16_t)port);
	else if (a->sa.sa_family == AF_INET)
		a->in.sin_port = htons((uint16_t)port);
}

bool address_parse(const char *host, int port, union address *a)
{
	memset(a, 0, sizeof *a);
	if (inet_pton(AF_INET, host, &a->in.sin_addr) == 1) {
		a->in.sin_family = AF_INET;
		a->in.sin_port = htons((uint16_t)port);
		return true;
	}
	if (inet_pton(AF_INET6, host, &a->in6.sin6_addr) == 1) {
		a->in6.sin6_family = AF_INET6;
		a->in6.sin6_port = htons((uint16_t)port);
		return true;
	}
	return false;
}

bool address_parse_with_port(const char *text, union address *a)
{
	char host[64];
	const char *colon = strrchr(text, ':');
	if (!colon || colon == text)
		return false;
	size_t digits = strlen(colon + 1), len = (size_t)(colon - text);
	bool bracketed = text[0] == '[' && colon[-1] == ']';
	if (digits < 1 || digits > 5 || strspn(colon + 1, "0123456789") != digits)
		return false;
	if (bracketed)
		text++, len -= 2;
	if (len >= sizeof host || atoi(colon + 1) > 65535)
		return false;
	memcpy(host, text, len);
	host[len] = '\0';
	/* "::1:25" could be an address without a port as well. */
	if (bracketed != (strchr(host, ':') != NULL) || !address_parse(host, atoi(colon + 1), a))
		return false;
	address_unmask(a);
	return true;
}

int address_parse_sources(const char *text, union address source[2])
{
	int n = 0;
	for (text += strspn(text, ", "); *text; text += strspn(text, ", ")) {
		char one[64];
		size_t len = strcspn(text, ", ");
		if (n == 2 || len >= sizeof one)
			return -1;
		memcpy(one, text, len);
		one[len] = '\0';
		if (!address_parse(one, 0, &source[n]))
			return -1;
		address_unmask(&source[n]);
		if (n == 1 && source[0].sa.sa_family == source[1].sa.sa_family)
			return -1;
		n++;
		text += len;
	}
	return n;
}

void address_unmask(union address *a)
{
	if (a->sa.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr))
		return;
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = a->in6.sin6_port};
	memcpy(&in.sin_addr, a->in6.sin6_addr.s6_addr + 12, 4);
	memset(a, 0, sizeof *a); /* addresses are compared byte by byte */
	a->in = in;
}
