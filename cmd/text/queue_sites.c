/* SPDX-License-Identifier: ISC */
#include "cmd/text/queue_sites.h"

#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "qmgr/dest/site.h"
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
	const struct conf *conf;
	struct route_table *routes;
	struct domain *domain; /* next hops by MX that lead to one of the sites */
	int ndomain;
};

struct queue_sites *queue_sites_new(const struct conf *conf, const char *const *name, int n)
{
	struct queue_sites *s = mem_zalloc(sizeof *s);
	s->name = name;
	s->n = n;
	s->conf = conf;
	s->routes = route_table_new(conf);
	return s;
}

void queue_sites_free(struct queue_sites **sp)
{
	struct queue_sites *s = mem_take(sp);
	if (!s)
		return;
	for (int i = 0; i < s->ndomain; i++) {
		free(s->domain[i].name);
		free(s->domain[i].transport);
	}
	free(s->domain);
	route_table_free(&s->routes);
	free(s);
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

/* Without the login, the TLS policy, the wish of its mail and the source that may stand behind the hosts. */
static size_t hosts_len(const char *name)
{
	static const char *const ends[] = {" as ", " tls=", " requiretls", SITE_FROM};
	size_t len = strlen(name);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		const char *end = strstr(name, ends[i]);
		if (end && (size_t)(end - name) < len)
			len = (size_t)(end - name);
	}
	return len;
}

/* A site is named as the log has it, or with its transport and a blank in front. */
static const char *skip_transport(const char *name, const char *transport)
{
	size_t len = strlen(transport);
	return strncasecmp(name, transport, len) == 0 && name[len] == ' ' ? name + len + 1 : name;
}

static bool names_site(const char *name, const char *site)
{
	size_t len = strlen(site);
	return hosts_len(name) == len && strncasecmp(name, site, len) == 0;
}

/* Is this host, "NAME[ADDRESS]:PORT", one of "NAME,NAME;NAME", or one of these by itself? */
static bool names_host(const char *names, const char *host)
{
	size_t len = strcspn(host, "["), all = hosts_len(names);
	const char *end = strchr(host, ']');
	if (len == 0 || !end)
		return false;
	const char *address = host + len + 1;
	size_t address_len = (size_t)(end - address);
	if (all == address_len && strncasecmp(names, address, address_len) == 0)
		return true;
	for (size_t at = 0, n; at < all; at += n + 1) {
		n = strcspn(names + at, ",;");
		n = n < all - at ? n : all - at;
		if (n == len && strncasecmp(names + at, host, n) == 0)
			return true;
	}
	return false;
}

/* Where no transport is named for it, its provider may have chosen another. */
static bool is_domain_known(const struct queue_sites *s, const struct route *route,
			    const char *domain)
{
	for (int i = 0; i < s->ndomain; i++)
		if (name_key_same(s->domain[i].name, domain) &&
		    (!route->named || strcmp(s->domain[i].transport, route->by->title) == 0))
			return true;
	return false;
}

bool queue_sites_lead(struct queue_sites *s, const struct envelope *e, const struct recipient *r)
{
	const struct conf_flow *flow = conf_flow_find(s->conf, envelope_flow(e));
	const struct route *route = route_find_of_flow(s->routes, flow, e->sender, r->address);
	if (route->action != ROUTE_DELIVER)
		return false;
	char *site = nexthop_site_name(route, r->address);
	bool found = !site && is_domain_known(s, route, mailaddr_domain(r->address));
	for (int i = 0; i < s->n && !found; i++) {
		const char *name = skip_transport(s->name[i], route->by->title);
		found = (site && names_site(name, site)) ||
			(r->last && names_host(name, r->last->host));
	}
	free(site);
	return found;
}
