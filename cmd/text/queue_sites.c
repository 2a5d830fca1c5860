/* SPDX-License-Identifier: ISC */
#include "cmd/text/queue_sites.h"

#include "base/mailaddr.h"
#include "base/mem.h"
#include "qmgr/route/nexthop_name.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct domain {
	char *name, *transport;
};

struct queue_sites {
	const char *const *name;
	int n;
	struct route_table *routes;
	struct domain *domain; /* next hops by MX that lead to one of the sites */
	int ndomain;
};

struct queue_sites *queue_sites_new(const struct conf *conf, const char *const *name, int n)
{
	struct queue_sites *s = mem_zalloc(sizeof *s);
	s->name = name;
	s->n = n;
	s->routes = route_table_new(conf);
	return s;
}

void queue_sites_free(struct queue_sites **sp)
{
	struct queue_sites *s = *sp;
	if (!s)
		return;
	for (int i = 0; i < s->ndomain; i++) {
		free(s->domain[i].name);
		free(s->domain[i].transport);
	}
	free(s->domain);
	route_table_free(&s->routes);
	free(s);
	*sp = NULL;
}

void queue_sites_learn(struct queue_sites *s, const struct dest_command *c)
{
	for (int i = 0; i < c->nsite; i++) {
		const struct dest_site *site = &c->site[i];
		for (int k = 0; k < site->ndomain; k++) {
			s->domain = mem_realloc(s->domain,
						(size_t)(s->ndomain + 1) * sizeof *s->domain);
			s->domain[s->ndomain++] = (struct domain){mem_strdup(site->domain[k]),
								  mem_strdup(site->transport)};
		}
	}
}

/* The name without the login and the TLS policy that may stand behind it. */
static bool is_name(const char *name, const char *site)
{
	size_t len = strlen(site);
	return strncasecmp(name, site, len) == 0 &&
	       (name[len] == '\0' || strncmp(name + len, " tls=", 5) == 0 ||
		strncmp(name + len, " as ", 4) == 0);
}

/* A site is named as the log has it, or with its transport and a blank in front. */
static bool names_site(const char *name, const char *transport, const char *site)
{
	size_t len = strlen(transport);
	if (is_name(name, site))
		return true;
	return strncasecmp(name, transport, len) == 0 && name[len] == ' ' &&
	       is_name(name + len + 1, site);
}

/* Is this host, "NAME[ADDRESS]:PORT", one of "NAME,NAME;NAME", or one of these by itself? */
static bool names_host(const char *names, const char *host)
{
	size_t len = strcspn(host, "[");
	const char *end = strchr(host, ']');
	if (len == 0 || !end)
		return false;
	const char *address = host + len + 1;
	size_t address_len = (size_t)(end - address);
	if (strlen(names) == address_len && strncasecmp(names, address, address_len) == 0)
		return true;
	for (size_t n; *names; names += n + (names[n] != '\0')) {
		n = strcspn(names, ",;");
		if (n == len && strncasecmp(names, host, n) == 0)
			return true;
	}
	return false;
}

/* Where no transport is named for it, its provider may have chosen another. */
static bool is_domain_known(const struct queue_sites *s, const struct route *route,
			    const char *domain)
{
	for (int i = 0; i < s->ndomain; i++)
		if (strcasecmp(s->domain[i].name, domain) == 0 &&
		    (!route->named || strcmp(s->domain[i].transport, route->by->title) == 0))
			return true;
	return false;
}

bool queue_sites_lead(struct queue_sites *s, const char *sender, const struct recipient *r)
{
	const struct route *route = route_find(s->routes, sender, r->address);
	if (route->action != ROUTE_DELIVER)
		return false;
	char *site = nexthop_site_name(route, r->address);
	bool found = !site && is_domain_known(s, route, mailaddr_domain(r->address));
	for (int i = 0; i < s->n && !found; i++)
		found = (site && names_site(s->name[i], route->by->title, site)) ||
			(r->last && names_host(s->name[i], r->last->host));
	free(site);
	return found;
}
