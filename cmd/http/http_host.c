/* SPDX-License-Identifier: ISC */
#include "cmd/http/http_host.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

enum { HOST_MAX = 255 };

/* Nothing, or a colon and digits. */
static bool is_port(const char *text)
{
	return !*text || (*text == ':' && text[1 + strspn(text + 1, "0123456789")] == '\0');
}

static bool is_v6(const char *field)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr address;
	size_t len = strcspn(field + 1, "]");
	if (field[1 + len] != ']' || len >= sizeof text || !is_port(field + len + 2))
		return false;
	memcpy(text, field + 1, len);
	text[len] = '\0';
	return inet_pton(AF_INET6, text, &address) == 1;
}

bool http_host_is_ours(const char *field, const char *hostname)
{
	char name[HOST_MAX + 1];
	struct in_addr address;
	if (*field == '[')
		return is_v6(field);
	size_t len = strcspn(field, ":");
	if (len == 0 || len > HOST_MAX || !is_port(field + len))
		return false;
	memcpy(name, field, len);
	name[len] = '\0';
	if (len > 1 && name[len - 1] == '.')
		name[len - 1] = '\0';
	return inet_pton(AF_INET, name, &address) == 1 || strcasecmp(name, "localhost") == 0 ||
	       strcasecmp(name, hostname) == 0;
}
