/* SPDX-License-Identifier: ISC */
#include "base/conf_build.h"

#include <stdlib.h>
#include <string.h>

#define FAULT(place, ...)                                                                          \
	conf_fault(faults, c->file, conf_lines_find(lines, (place), -1, 1), __VA_ARGS__)

static bool is_server_address(const char *where)
{
	char *host;
	int port;
	bool bracketed;
	if (!conf_relay_parse(where, &host, &port, &bracketed))
		return false;
	bool good = port > 0 || strncmp(host, "unix:", 5) == 0;
	free(host);
	return good;
}

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text > '~')
			return false;
	return true;
}

void conf_cluster_check(const struct conf *c, const struct conf_lines *lines,
			struct conf_faults *faults)
{
	const struct conf_cluster *k = &c->cluster;
	char *const *files[] = {&k->redis_ca, &k->redis_certificate, &k->redis_key,
				&k->redis_password};
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		if (**files[i] && **files[i] != '/')
			FAULT(files[i], "cluster: \"%s\" is not an absolute path", *files[i]);
	if (!is_printable(k->name))
		FAULT(&k->name, "cluster: name \"%s\" has blanks or is not ASCII", k->name);
	if (!is_printable(k->redis_prefix))
		FAULT(&k->redis_prefix, "cluster: redis_prefix \"%s\" has blanks or is not ASCII",
		      k->redis_prefix);
	if (!*k->redis)
		return;
	if (!is_server_address(k->redis))
		FAULT(&k->redis,
		      "cluster: redis \"%s\" is not HOST:PORT, ADDRESS:PORT, nor unix:/its/socket",
		      k->redis);
	else if (k->redis_tls && strncmp(k->redis, "unix:", 5) == 0)
		FAULT(&k->redis_tls, "cluster: there is no TLS over a Unix socket");
	if (k->redis_tls && !*k->redis_ca)
		FAULT(&k->redis_ca, "cluster: redis_tls needs a redis_ca");
	if (!*k->redis_certificate != !*k->redis_key)
		FAULT(*k->redis_key ? &k->redis_key : &k->redis_certificate,
		      "cluster: redis_certificate and redis_key go together");
	if (*k->redis_user && !*k->redis_password)
		FAULT(&k->redis_user, "cluster: redis_user needs a redis_password");
}
