/* SPDX-License-Identifier: ISC */
#include "base/conf_build.h"
#include "base/mem.h"

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
	free(host);
	return port > 0;
}

static bool all_reachable(const char *servers)
{
	char *text = mem_strdup(servers), *save = NULL;
	int n = 0;
	bool good = true;
	for (char *s = strtok_r(text, ", ", &save); s; s = strtok_r(NULL, ", ", &save)) {
		good &= is_server_address(s);
		n++;
	}
	free(text);
	return good && n > 0;
}

void conf_nats_check(const struct conf *c, const struct conf_lines *lines,
		     struct conf_faults *faults)
{
	const struct conf_cluster *k = &c->cluster;
	char *const *files[] = {&k->nats_ca, &k->nats_certificate, &k->nats_key,
				&k->nats_credentials};
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		if (**files[i] && **files[i] != '/')
			FAULT(files[i], "cluster: \"%s\" is not an absolute path", *files[i]);
	if (!*k->nats && k->replicate != REPLICATE_OFF)
		FAULT(&k->replicate, "cluster: replicate needs nats");
	if (*k->nats && !all_reachable(k->nats))
		FAULT(&k->nats,
		      "cluster: nats \"%s\" is not HOST:PORT or ADDRESS:PORT, of one or several, "
		      "separated by commas",
		      k->nats);
	if (k->nats_tls && !*k->nats_ca)
		FAULT(&k->nats_ca, "cluster: nats_tls needs a nats_ca");
	if (!*k->nats_certificate != !*k->nats_key)
		FAULT(*k->nats_key ? &k->nats_key : &k->nats_certificate,
		      "cluster: nats_certificate and nats_key go together");
}
