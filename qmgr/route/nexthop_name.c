/* SPDX-License-Identifier: ISC */
#include "qmgr/route/nexthop_name.h"

#include "base/address.h"
#include "base/credential.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/tables.h"
#include "base/tls_dane.h"
#include "base/tls_policy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { USUAL_PORT = 25 };

static void append_list(struct buf *b, const struct conf_list *list)
{
	for (int i = 0; i < list->n; i++) {
		buf_puts(b, i ? "," : "");
		buf_puts(b, list->item[i]);
	}
}

void nexthop_write_key(struct buf *b, const struct route *route, const char *address)
{
	const char *domain = mailaddr_domain(address);
	buf_puts(b, route->by->title);
	buf_puts(b, route->relay->n > 0 ? " " NEXTHOP_RELAYS : " ");
	if (route->relay->n > 0)
		append_list(b, route->relay);
	else
		buf_puts(b, domain);
	if (route->by->destination_by == DESTINATION_BY_RECIPIENT)
		buf_printf(b, " %s", address);
	else if (route->by->destination_by == DESTINATION_BY_DOMAIN)
		buf_printf(b, " %s", domain);
}

static void add_login(struct buf *b, const struct tables *t, const char *hop, const char *sender,
		      bool of_hosts)
{
	struct credential *c = credential_find(t, hop, sender);
	if (c && (c->of_sender || of_hosts))
		buf_printf(b, "%s%s", buf_len(b) > 0 ? "," : " as ", c->login);
	credential_unref(c);
}

char *nexthop_logins(const struct tables *t, const struct route *route, const char *sender,
		     const char *address)
{
	struct buf b = {0};
	if (!t || tables_count(t, TABLE_CREDENTIALS) == 0)
		return NULL;
	if (route->relay->n == 0)
		add_login(&b, t, mailaddr_domain(address), sender, true);
	for (int i = 0; i < route->relay->n; i++)
		add_login(&b, t, route->relay->item[i], sender, false);
	for (int i = 0; i < route->by->fallback_relay.n; i++)
		add_login(&b, t, route->by->fallback_relay.item[i], sender, route->relay->n == 0);
	return buf_len(&b) > 0 ? buf_steal(&b, NULL) : NULL;
}

/* The rows of tables for this relay. */
static void add_terms_of_relay(struct buf *b, const struct tables *t, const char *relay, int port,
			       const char *sender)
{
	struct conf_relay r;
	if (!conf_relay_read(relay, &r))
		return;
	char *tls = tls_policy_row(t, r.host, r.bracketed, r.port > 0 ? r.port : port, NULL);
	struct credential *c = credential_find(t, relay, sender);
	if (tls)
		buf_printf(b, " tls=%s", tls);
	if (c)
		buf_printf(b, " login=%s", c->id);
	credential_unref(c);
	free(tls);
	free(r.host);
}

static void add_terms_of_domain(struct buf *b, const struct tables *t, const char *domain,
				const char *sender)
{
	struct credential *c = credential_find(t, domain, sender);
	if (c)
		buf_printf(b, " login=%s", c->id);
	credential_unref(c);
}

static void add_term(struct buf *b, const char *name, const char *value)
{
	if (!*value)
		return;
	buf_puts(b, name);
	buf_puts(b, value);
}

/* Most have none of it, and this is written for each recipient. */
static void add_terms_of_transport(struct buf *b, const struct conf_transport *by)
{
	if (by->port != USUAL_PORT)
		buf_printf(b, " port=%d", (int)by->port);
	add_term(b, " from=", by->source_address);
	add_term(b, " certificate=", by->client_certificate);
	if (by->fallback_relay.n > 0)
		buf_puts(b, " else=");
	append_list(b, &by->fallback_relay);
}

static bool has_terms(const struct tables *t)
{
	return t && tables_count(t, TABLE_TLS_POLICY) + tables_count(t, TABLE_CREDENTIALS) > 0;
}

void nexthop_write_terms(struct buf *b, const struct tables *t, const struct route *route,
			 const char *sender, const char *address)
{
	const struct conf_transport *by = route->by;
	add_terms_of_transport(b, by);
	if (!has_terms(t))
		return;
	if (route->relay->n == 0)
		add_terms_of_domain(b, t, mailaddr_domain(address), sender);
	for (int i = 0; i < route->relay->n; i++)
		add_terms_of_relay(b, t, route->relay->item[i], (int)by->port, sender);
	for (int i = 0; i < by->fallback_relay.n; i++)
		add_terms_of_relay(b, t, by->fallback_relay.item[i], (int)by->port, sender);
}

char *nexthop_site_name(const struct route *route, const char *address)
{
	struct buf b = {0};
	switch (route->by->destination_by) {
	case DESTINATION_BY_RECIPIENT:
		return mem_strdup(address);
	case DESTINATION_BY_DOMAIN:
		if (route->relay->n == 0)
			return mem_strdup(mailaddr_domain(address));
		/* Users of one domain may have other relays: other hosts, another site. */
		buf_printf(&b, "%s by ", mailaddr_domain(address));
		break;
	default:
		if (route->relay->n == 0)
			return NULL;
	}
	append_list(&b, route->relay);
	return buf_steal(&b, NULL);
}

char *nexthop_site_relays(const struct route *route)
{
	struct buf b = {0};
	if (route->relay->n == 0)
		return NULL;
	/* Senders may have other relays for a recipient, whose site is called as he is. */
	if (route->by->destination_by == DESTINATION_BY_RECIPIENT)
		append_list(&b, route->relay);
	return buf_steal(&b, NULL);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of one group of equal preference, sorted, so that all domains they serve agree. */
static int append_group(struct buf *b, const struct resolve *r, int first)
{
	assert(first < r->nhost);
	char *name[RESOLVE_HOSTS_MAX];
	int n = 0;
	while (first + n < r->nhost && n < RESOLVE_HOSTS_MAX &&
	       r->host[first + n].preference == r->host[first].preference) {
		name[n] = r->host[first + n].name;
		n++;
	}
	qsort(name, (size_t)n, sizeof name[0], compare_names);
	for (int i = 0; i < n; i++)
		buf_printf(b, "%s%s", i ? "," : "", name[i]);
	return first + n;
}

char *nexthop_name_of_hosts(const struct resolve *r)
{
	struct buf b = {0};
	for (int i = 0; i < r->nhost;) {
		buf_puts(&b, i ? ";" : "");
		i = append_group(&b, r, i);
	}
	return buf_steal(&b, NULL);
}

static char *strictest_of(const char *said, char *row)
{
	char *held = mem_strdup(tls_policy_strictest(said, row));
	free(row);
	return held;
}

char *nexthop_tls(const struct tables *tables, const struct route *route, const char *address)
{
	const char *said = tls_policy_strictest(route->by->tls, route->tls);
	return strictest_of(said, tls_policy_row(tables, mailaddr_domain(address), false,
						 (int)route->by->port, NULL));
}

char *nexthop_tls_of_hop(const struct tables *tables, const char *tls, const struct nexthop_host *h)
{
	char *held = strictest_of(
		tls, tls_policy_row(tables, h->hop, h->bracketed, address_port(&h->address), NULL));
	char *of_hop = tls_policy_of_hop(held, h->hop);
	char *with_sts = tls_policy_add_sts(of_hop, h->sts);
	free(of_hop);
	free(held);
	return with_sts;
}

static char *usual_tls(const char *of_hop, const struct nexthop_host *h)
{
	bool stranger = h->sts && !sts_policy_has(h->sts, h->name);
	if (h->dane && h->dane->nusable > 0)
		return mem_strdup(h->dane->policy);
	/* Records of which none can be used demand TLS; MTA-STS may demand more. */
	char *demand = h->dane ? tls_policy_add_sts(h->dane->policy, h->sts) : mem_strdup(of_hop);
	char *text = tls_policy_of_host(demand, stranger ? "" : h->name);
	free(demand);
	return text;
}

char *nexthop_tls_of_host(const char *of_hop, const struct nexthop_host *h)
{
	char *usual = usual_tls(of_hop, h);
	if (!h->requiretls)
		return usual;
	char *text = tls_policy_with_requiretls(usual, h->name);
	free(usual);
	return text;
}

/* Once is enough for hosts that stand side by side. */
static void append_policy(struct buf *name, const char *policy)
{
	char *told = mem_printf(" tls=%s", policy);
	size_t len = strlen(told), had = buf_len(name);
	if (had < len || strcmp(buf_cstr(name) + had - len, told) != 0)
		buf_puts(name, told);
	free(told);
}

/* In terms of the hop, of a host without TLSA records: nothing is told of dane where there are none, since
 * domains whose hosts have some must not share a site with it. */
static char *as_told(const char *policy, const char *hop)
{
	const char *bare =
		tls_policy_level(policy) == TRANSPORT_TLS_DANE ? "opportunistic" : policy;
	return tls_policy_of_hop(bare, hop);
}

void nexthop_add_tls(struct buf *name, const char *of_hop, const struct conf_transport *by,
		     const char *hop)
{
	char *silent = as_told(by->tls, hop), *told = as_told(of_hop, NULL);
	if (strcmp(silent, told) != 0)
		append_policy(name, told);
	free(told);
	free(silent);
}

void nexthop_add_dane(struct buf *name, const struct tls_dane *dane)
{
	append_policy(name, dane->nusable > 0 ? dane->title : dane->policy);
}
