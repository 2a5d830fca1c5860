/* SPDX-License-Identifier: ISC */
#include "smtpd/proxy_header.h"

#include "base/address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char signature[12] = {0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d,
					    0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a};
static const char word[] = "PROXY ";

enum {
	FIXED = 16, /* of version 2: signature, command, family, length */
	TEXT_MAX = 107,
	COMMAND_LOCAL = 0x20,
	COMMAND_PROXY = 0x21,
	FAMILY_UNSPECIFIED = 0x00,
	FAMILY_TCP4 = 0x11,
	FAMILY_TCP6 = 0x21,
	TCP4_SIZE = 12,
	TCP6_SIZE = 36,
};

/* --- version 1: all of it is in kept, with a NUL in place of its CRLF */

static bool take_address(char **rest, int family, void *to)
{
	char *text = strsep(rest, " ");
	return text && inet_pton(family, text, to) == 1;
}

static bool take_port(char **rest, in_port_t *to)
{
	char *end, *text = strsep(rest, " ");
	if (!text || !isdigit((unsigned char)*text) || strlen(text) > 5)
		return false;
	long port = strtol(text, &end, 10);
	*to = htons((uint16_t)port);
	return *end == '\0' && port <= 65535;
}

static bool read_text(struct proxy_header *h)
{
	char *rest = (char *)h->kept + strlen(word);
	const char *family = strsep(&rest, " ");
	struct in6_addr destination;
	in_port_t port;
	if (strcmp(family, "UNKNOWN") == 0) {
		h->state = PROXY_HEADER_LOCAL;
		return true;
	}
	h->state = PROXY_HEADER_CLIENT;
	if (strcmp(family, "TCP4") == 0) {
		h->client.in.sin_family = AF_INET;
		return take_address(&rest, AF_INET, &h->client.in.sin_addr) &&
		       take_address(&rest, AF_INET, &destination) &&
		       take_port(&rest, &h->client.in.sin_port) && take_port(&rest, &port) && !rest;
	}
	h->client.in6.sin6_family = AF_INET6;
	return strcmp(family, "TCP6") == 0 &&
	       take_address(&rest, AF_INET6, &h->client.in6.sin6_addr) &&
	       take_address(&rest, AF_INET6, &destination) &&
	       take_port(&rest, &h->client.in6.sin6_port) && take_port(&rest, &port) && !rest;
}

static void end_text(struct proxy_header *h)
{
	bool good = h->len >= 2 && h->kept[h->len - 2] == '\r';
	h->kept[h->len - (good ? 2 : 1)] = '\0';
	if (!good || strlen((char *)h->kept) != h->len - 2 || !read_text(h))
		h->state = PROXY_HEADER_BAD;
}

/* --- version 2 */

static size_t announced_length(const struct proxy_header *h)
{
	return (size_t)h->kept[14] << 8 | h->kept[15];
}

/* How much of what is announced tells of the client; false: nothing does. */
static bool tells_of_client(const struct proxy_header *h, size_t *size)
{
	*size = h->kept[13] == FAMILY_TCP4 ? TCP4_SIZE : TCP6_SIZE;
	return h->kept[12] == COMMAND_PROXY && h->kept[13] != FAMILY_UNSPECIFIED;
}

static bool good_fixed(const struct proxy_header *h)
{
	unsigned char command = h->kept[12], family = h->kept[13];
	if (command == COMMAND_LOCAL)
		return true;
	size_t size = family == FAMILY_TCP4 ? TCP4_SIZE : family == FAMILY_TCP6 ? TCP6_SIZE : 0;
	return command == COMMAND_PROXY && (family == FAMILY_UNSPECIFIED || size > 0) &&
	       announced_length(h) >= size;
}

static void read_binary(struct proxy_header *h)
{
	const unsigned char *at = h->kept + FIXED;
	size_t size;
	if (!tells_of_client(h, &size)) {
		h->state = PROXY_HEADER_LOCAL;
		return;
	}
	h->state = PROXY_HEADER_CLIENT;
	if (size == TCP4_SIZE) {
		h->client.in.sin_family = AF_INET;
		memcpy(&h->client.in.sin_addr, at, 4);
		memcpy(&h->client.in.sin_port, at + 8, 2);
	} else {
		h->client.in6.sin6_family = AF_INET6;
		memcpy(&h->client.in6.sin6_addr, at, 16);
		memcpy(&h->client.in6.sin6_port, at + 32, 2);
	}
}

/* So many bytes are surely the header's, before more of it is known. */
static size_t wanted_now(const struct proxy_header *h)
{
	size_t size;
	if (h->len < FIXED)
		return FIXED - h->len;
	if (!tells_of_client(h, &size))
		size = 0;
	return FIXED + size - h->len;
}

static void step_binary(struct proxy_header *h)
{
	size_t size;
	if (h->len == FIXED && !good_fixed(h)) {
		h->state = PROXY_HEADER_BAD;
		return;
	}
	if (h->len < FIXED || wanted_now(h) > 0)
		return;
	if (!tells_of_client(h, &size))
		size = 0;
	h->skip = announced_length(h) - size;
	if (h->skip == 0)
		read_binary(h);
}

/* --- both */

static bool begins_with(const struct proxy_header *h, const void *with, size_t len)
{
	return memcmp(h->kept, with, h->len < len ? h->len : len) == 0;
}

/* The next byte to keep. */
static void keep_byte(struct proxy_header *h, unsigned char c)
{
	h->kept[h->len++] = c;
	if (begins_with(h, signature, sizeof signature)) {
		step_binary(h);
	} else if (!begins_with(h, word, strlen(word))) {
		h->state = PROXY_HEADER_BAD;
	} else if (c == '\n') {
		end_text(h);
	} else if (h->len == TEXT_MAX) {
		h->state = PROXY_HEADER_BAD;
	}
}

size_t proxy_header_feed(struct proxy_header *h, const unsigned char *bytes, size_t len)
{
	size_t used = 0;
	while (used < len && h->state == PROXY_HEADER_MORE) {
		if (h->skip == 0) {
			keep_byte(h, bytes[used++]);
			continue;
		}
		size_t n = len - used < h->skip ? len - used : h->skip;
		used += n;
		assert(h->skip >= n);
		h->skip -= n;
		if (h->skip == 0)
			read_binary(h);
	}
	if (h->state == PROXY_HEADER_CLIENT)
		address_unmask(&h->client);
	return used;
}
