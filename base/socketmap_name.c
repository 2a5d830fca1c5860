/* SPDX-License-Identifier: ISC */
#include "base/socketmap_name.h"

#include "base/address.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char prefix[] = "socketmap:";

bool socketmap_name_is(const char *table)
{
	return strncmp(table, prefix, strlen(prefix)) == 0;
}

/* A blank ends the name in what is sent. */
static bool is_plain(const char *name)
{
	size_t len = strlen(name);
	for (const char *c = name; *c; c++)
		if (*c <= ' ' || *c > '~')
			return false;
	return len > 0 && len <= SOCKETMAP_NAME_MAX;
}

static bool parse_server(const char *where, union address *to)
{
	if (strncmp(where, "inet:", strlen("inet:")) == 0)
		return address_parse_with_port(where + strlen("inet:"), to) &&
		       address_port(to) != 0;
	return address_parse_unix(where, to);
}

bool socketmap_name_parse(const char *table, struct socketmap_name *n, struct buf *why)
{
	char where[ADDRESS_WHERE_MAX];
	assert(socketmap_name_is(table));
	n->server = table + strlen(prefix);
	const char *colon = strrchr(n->server, ':');
	n->server_len = colon ? (size_t)(colon - n->server) : 0;
	n->name = colon ? colon + 1 : "";
	snprintf(where, sizeof where, "%.*s", (int)n->server_len, n->server);
	if (n->server_len < sizeof where && is_plain(n->name) && parse_server(where, &n->to))
		return true;
	buf_printf(why,
		   "\"%s\" is not socketmap:unix:/PATH:NAME, nor socketmap:inet:ADDRESS:PORT:NAME "
		   "with an "
		   "IP address",
		   table);
	return false;
}
