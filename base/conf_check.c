/* SPDX-License-Identifier: ISC */
#include "base/conf_build.h"

#include "base/address.h"
#include "base/conf_value.h"
#include "base/header_field.h"
#include "base/mailaddr.h"
#include "base/mechanism.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/netlist.h"
#include "base/route_value.h"
#include "base/tables.h"
#include "base/tls.h"
#include "base/tls_certificates.h"
#include "base/tls_groups.h"
#include "base/tls_policy.h"
#include "base/tls_verify.h"
#include "base/trust_anchor.h"

#include <curl/curl.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

enum { SMTP_PORT = 25, LMTP_PORT = 24 };

struct check {
	struct conf *conf;
	const struct conf_lines *lines;
	struct conf_faults *faults;
};

#define FAULT(c, place, item, without, ...)                                                        \
	conf_fault((c)->faults, (c)->conf->file,                                                   \
		   conf_lines_find((c)->lines, (place), (item), (without)), __VA_ARGS__)

static void check_networks(struct check *c, const struct conf_list *l, int line)
{
	struct net n;
	for (int i = 0; i < l->n; i++)
		if (!net_parse(l->item[i], &n))
			FAULT(c, l, i, line,
			      "\"%s\" is not a network, like 192.0.2.0/24 or 2001:db8::/32",
			      l->item[i]);
}

static void check_masquerade(struct check *c)
{
	const struct conf_list *l = &c->conf->masquerade;
	for (int i = 0; i < l->n; i++) {
		char *key = name_key(l->item[i] + (l->item[i][0] == '!'));
		if (!conf_host_good(key))
			FAULT(c, l, i, 1, "\"%s\" is not a domain", l->item[i]);
		free(key);
	}
}

/* Each as the local part of an address is kept: such are what it is compared with. */
static void keep_exceptions(struct check *c)
{
	struct conf_list *l = &c->conf->masquerade_exceptions;
	for (int i = 0; i < l->n; i++) {
		char *address = mem_printf("%s@host", l->item[i]);
		struct mailaddr kept;
		if (mailaddr_kept(address, &kept) && strcmp(kept.text + kept.at, "@host") == 0) {
			free(l->item[i]);
			l->item[i] = mem_strndup(kept.text, kept.at);
		} else {
			FAULT(c, l, i, 1,
			      "masquerade_exceptions: \"%s\" is not a local part, like root",
			      l->item[i]);
		}
		free(address);
	}
}

/* RFC 5322 2.2. Without Received a loop would never be found. */
static void check_removed(struct check *c, const char *setting, const void *place, int i,
			  const char *field)
{
	char *line = mem_printf("%s:", field);
	size_t name = header_field_name(line, strlen(line));
	if (name == 0 || name != strlen(field))
		FAULT(c, place, i, 1, "%s: \"%s\" is not the name of a header field", setting,
		      field);
	else if (header_field_is(line, name, "Received"))
		FAULT(c, place, i, 1, "%s: without Received fields a loop of mail is never found",
		      setting);
	free(line);
}

static void check_header(struct check *c)
{
	const struct conf *f = c->conf;
	for (int i = 0; i < f->drop_headers.n; i++)
		check_removed(c, "drop_headers", &f->drop_headers, i, f->drop_headers.item[i]);
	if (*f->flow_header)
		check_removed(c, "flow_header", &f->flow_header, -1, f->flow_header);
}

static bool is_mailbox(const char *text, bool utf8_allowed)
{
	struct mailaddr a;
	return mailaddr_mailbox(text, strlen(text), utf8_allowed, &a) == MAILADDR_OK &&
	       a.text[a.at];
}

static void check_address(struct check *c, const char *setting, char **address)
{
	if (**address && !conf_value_keep_address(address))
		FAULT(c, address, -1, 1, "%s \"%s\" is not an address", setting, *address);
	else
		conf_value_keep_domain(address);
}

static void check_archive(struct check *c, struct conf_archive *a)
{
	conf_value_keep_domain(&a->sender);
	for (int i = 0; i < a->to.n; i++) {
		conf_value_keep_domain(&a->to.item[i]);
		if (!is_mailbox(a->to.item[i], true))
			FAULT(c, &a->to, i, 1, "archive: to \"%s\" is not an address",
			      a->to.item[i]);
	}
	if (*a->sender && !is_mailbox(a->sender, false))
		FAULT(c, &a->sender, -1, 1, "archive: sender \"%s\" is not an address", a->sender);
}

/* The address goes into a header. */
static void check_report(struct check *c, struct conf_tls_report *r)
{
	conf_value_keep_domain(&r->from);
	if (*r->from && !is_mailbox(r->from, false))
		FAULT(c, &r->from, -1, 1, "tls_report: from \"%s\" is not an address", r->from);
}

static void check_groups(struct check *c, const struct conf_list *groups)
{
	for (int i = 0; i < groups->n; i++) {
		struct buf why = {0};
		if (!tls_groups_good(groups, i, &why))
			FAULT(c, groups, i, 1, "groups: %s", buf_cstr(&why));
		buf_fini(&why);
	}
}

/* Why no server may have a table of this role. */
static const char *why_never_asked(enum table_role role)
{
	if (role == TABLE_DKIM_KEYS || role == TABLE_CREDENTIALS)
		return "its rows name files, which must be known at the start";
	return "it is looked up where nothing may wait for a server";
}

static void check_servers(struct check *c, enum table_role role, const struct conf_list *l)
{
	struct socketmap_name name;
	for (int i = 0; i < l->n; i++) {
		struct buf why = {0};
		if (!*l->item[i])
			FAULT(c, l, i, 1, "%s: a table must have a name", tables_setting(role));
		if (socketmap_name_is(l->item[i]) && !tables_may_ask(role))
			FAULT(c, l, i, 1, "%s: \"%s\": a socketmap is not for this table: %s",
			      tables_setting(role), l->item[i], why_never_asked(role));
		else if (socketmap_name_is(l->item[i]) &&
			 !socketmap_name_parse(l->item[i], &name, &why))
			FAULT(c, l, i, 1, "%s: %s", tables_setting(role), buf_cstr(&why));
		buf_fini(&why);
	}
}

static bool asks_server(const struct conf_list *l)
{
	bool asks = false;
	for (int i = 0; i < l->n; i++)
		asks = asks || socketmap_name_is(l->item[i]);
	return asks;
}

static void check_tables(struct check *c)
{
	const struct conf *f = c->conf;
#define T(role, setting, ...) check_servers(c, TABLE_##role, &f->setting);
	TABLES(T)
#undef T
	if (f->sender_header == SENDER_HEADER_REJECT && asks_server(&f->sender_logins))
		FAULT(c, &f->sender_header, -1, 1,
		      "sender_header = reject needs files in sender_logins: a header is looked at "
		      "where nothing may wait for a server");
}

static void check_global(struct check *c)
{
	struct conf *f = c->conf;
	check_networks(c, &f->networks, 1);
	if (*f->hostname && !conf_host_good(f->hostname))
		FAULT(c, &f->hostname, -1, 1, "hostname \"%s\" is not the name of a host",
		      f->hostname);
	/* The defaults are those of no machine. */
	if (*f->file && !*f->hostname && !conf_host_good(f->own_name))
		FAULT(c, &f->hostname, -1, 1,
		      "hostname is not set, and the machine's own name \"%s\" is not the name of a "
		      "host",
		      f->own_name);
	if (strcmp(f->log, "stderr") != 0 && strcmp(f->log, "syslog") != 0 &&
	    strncmp(f->log, "syslog:/", 8) != 0 && f->log[0] != '/')
		FAULT(c, &f->log, -1, 1,
		      "log must be stderr, syslog, syslog:/SOCKET or an absolute path, not \"%s\"",
		      f->log);
	check_address(c, "postmaster", &f->postmaster);
	check_address(c, "always_bcc", &f->always_bcc);
	check_networks(c, &f->xclient, 1);
	check_tables(c);
	check_masquerade(c);
	keep_exceptions(c);
	check_header(c);
	check_report(c, &f->tls_report);
	check_archive(c, &f->archive);
	check_groups(c, &f->tls.groups);
}

static void check_certificate(struct check *c, const struct conf_listener *l)
{
	bool certificate = l->certificate.n > 0, key = l->key.n > 0;
	if (certificate && !key)
		FAULT(c, &l->certificate, -1, l->line, "there is a certificate but no key");
	else if (key && !certificate)
		FAULT(c, &l->key, -1, l->line, "there is a key but no certificate");
	else if (l->certificate.n != l->key.n)
		FAULT(c, &l->key, -1, l->line,
		      "there must be as many keys as certificates: %d and %d", l->key.n,
		      l->certificate.n);
	else if (!certificate && l->tls == LISTENER_TLS_REQUIRED)
		FAULT(c, &l->tls, -1, l->line, "tls = required needs a certificate and a key");
	else if (!certificate && *l->client_ca)
		FAULT(c, &l->client_ca, -1, l->line,
		      "client_ca needs TLS: a certificate and a key");
	else if (!certificate && l->tls == LISTENER_TLS_IMPLICIT)
		FAULT(c, &l->tls, -1, l->line, "tls = implicit needs a certificate and a key");
}

static void check_key(struct check *c, const struct conf_listener *l)
{
	struct buf error = {0};
	if (l->certificate.n == 0 || l->certificate.n != l->key.n)
		return;
	SSL_CTX *context = tls_certificates_context(l, &c->conf->tls.groups, &error);
	if (!context)
		FAULT(c, &l->certificate, -1, l->line, "%s", buf_cstr(&error));
	else if (!tls_certificates_ask_client(context, l->client_ca, &error))
		FAULT(c, &l->client_ca, -1, l->line, "%s", buf_cstr(&error));
	SSL_CTX_free(context);
	buf_fini(&error);
}

static void check_proxies(struct check *c, const struct conf_listener *l)
{
	const struct conf_list *p = &l->proxy_protocol;
	bool word =
		p->n == 1 && (strcmp(p->item[0], "true") == 0 || strcmp(p->item[0], "false") == 0);
	if (!word)
		check_networks(c, p, l->line);
}

/* Can't both be listened at? Of IPv4 and IPv6 all addresses can. */
static bool is_shared(const union address *a, const union address *other)
{
	if (a->sa.sa_family != other->sa.sa_family || address_port(a) != address_port(other) ||
	    address_port(a) == 0)
		return false;
	return memcmp(a, other, sizeof *a) == 0 || address_is_unspecified(a) ||
	       address_is_unspecified(other);
}

struct holder {
	const struct conf_listener *of;
	const char *address;
};

/* The listener up to this one, up to its item there, that has the same port of the same address. */
static struct holder find_holder(const struct conf *conf, const struct conf_listener *l, int item,
				 const union address *a)
{
	union address other;
	for (const struct conf_listener *of = conf->listener; of <= l; of++)
		for (int i = 0; i < (of == l ? item : of->address.n); i++)
			if (address_parse_with_port(of->address.item[i], &other) &&
			    is_shared(a, &other))
				return (struct holder){of, of->address.item[i]};
	return (struct holder){0};
}

static void check_listener_address(struct check *c, const struct conf_listener *l, int i)
{
	union address a;
	if (!address_parse_with_port(l->address.item[i], &a)) {
		FAULT(c, &l->address, i, l->line,
		      "\"%s\" is not ADDRESS:PORT, like 127.0.0.1:25 or [::1]:25",
		      l->address.item[i]);
		return;
	}
	struct holder holder = find_holder(c->conf, l, i, &a);
	if (holder.of)
		FAULT(c, &l->address, i, l->line, "listener \"%s\" has %s already, in line %d",
		      holder.of->title, holder.address, holder.of->line);
}

static void check_http(struct check *c)
{
	const struct conf *f = c->conf;
	const struct conf_listener *last = &f->listener[f->nlistener - 1];
	union address a;
	if (!*f->http)
		return;
	if (!address_parse_with_port(f->http, &a)) {
		FAULT(c, &f->http, -1, 1, "http \"%s\" is not ADDRESS:PORT", f->http);
		return;
	}
	struct holder holder = find_holder(f, last, last->address.n, &a);
	if (holder.of)
		FAULT(c, &f->http, -1, holder.of->line,
		      "http %s: listener \"%s\" has %s already, in line %d", f->http,
		      holder.of->title, holder.address, holder.of->line);
}

/* An empty list that is given is nobody; one that is not given is the global list. */
static void inherit_networks(struct check *c, struct conf_listener *l)
{
	const struct conf_list *global = &c->conf->networks;
	if (conf_lines_find(c->lines, &l->networks, -1, 0) > 0)
		return;
	for (int i = 0; i < global->n; i++)
		conf_list_add(&l->networks, global->item[i]);
}

static void check_listener(struct check *c, struct conf_listener *l)
{
	if (l->title[0] == '\0')
		FAULT(c, l, -1, l->line, "a listener must have a name");
	if (l->address.n == 0)
		FAULT(c, &l->address, -1, l->line, "listener \"%s\" has no address", l->title);
	for (int i = 0; i < l->address.n; i++)
		check_listener_address(c, l, i);
	check_networks(c, &l->networks, l->line);
	inherit_networks(c, l);
	check_proxies(c, l);
	check_certificate(c, l);
}

/* Loaded once, as long as we may read the key. */
static void load_identity(struct check *c, struct conf_transport *t)
{
	struct buf error = {0};
	if (!*t->client_certificate || !*t->client_key)
		return;
	t->identity = tls_identity(t->client_certificate, t->client_key, &error);
	if (!t->identity)
		FAULT(c, &t->client_certificate, -1, t->line, "%s", buf_cstr(&error));
	buf_fini(&error);
}

/* Kept in their one spelling, so that a relay is one site in all of them. */
static void check_relays(struct check *c, const struct conf_list *relays, int line)
{
	for (int i = 0; i < relays->n; i++) {
		char *kept = conf_relay_kept(relays->item[i]);
		if (!kept) {
			FAULT(c, relays, i, line,
			      "\"%s\" is not a relay: host, host:port, [host], [host]:port or "
			      "unix:/SOCKET, perhaps with =WEIGHT",
			      relays->item[i]);
			continue;
		}
		free(relays->item[i]);
		relays->item[i] = kept;
	}
}

/* A limit given alone means what it says, whatever the default of what is allowed at first. */
static void check_concurrency(struct check *c, struct conf_transport *t)
{
	int64_t limit = t->destination_concurrency_limit;
	bool given = conf_lines_find(c->lines, &t->initial_destination_concurrency, -1, 0) > 0;
	if (limit == 0 || t->initial_destination_concurrency <= limit)
		return;
	if (!given)
		t->initial_destination_concurrency = limit;
	else
		FAULT(c, &t->initial_destination_concurrency, -1,
		      conf_lines_find(c->lines, &t->destination_concurrency_limit, -1, t->line),
		      "initial_destination_concurrency %d is above "
		      "destination_concurrency_limit %d",
		      (int)t->initial_destination_concurrency, (int)limit);
}

/* The port that is registered for LMTP by custom, where none is given. */
static void choose_port(struct check *c, struct conf_transport *t)
{
	bool given = conf_lines_find(c->lines, &t->port, -1, 0) > 0;
	if (t->protocol == TRANSPORT_PROTOCOL_LMTP && t->port == SMTP_PORT && !given)
		t->port = LMTP_PORT;
}

static void check_policy(struct check *c, char *const *policy, int line)
{
	struct buf why = {0};
	if (!tls_policy_good(*policy, &why))
		FAULT(c, policy, -1, line, "tls: %s", buf_cstr(&why));
	else if (c->conf->dns.dnssec == DNSSEC_OFF &&
		 tls_policy_dane(*policy, false) != TLS_DANE_IGNORED)
		FAULT(c, policy, -1, line, "tls: %s wants DNSSEC, and dns { dnssec } is off",
		      *policy);
	buf_fini(&why);
}

/* As hosts would have it: with letters of ASCII. */
static void check_helo(struct check *c, char **helo, int line)
{
	conf_value_keep_name(helo);
	if (**helo && !mailaddr_domain_valid(*helo))
		FAULT(c, helo, -1, line,
		      "helo \"%s\" is not the name of a host, nor an address literal like "
		      "[192.0.2.1]",
		      *helo);
}

static void check_transport(struct check *c, struct conf_transport *t)
{
	union address source[2];
	choose_port(c, t);
	if (t->title[0] == '\0')
		FAULT(c, t, -1, t->line, "a transport must have a name");
	if (strpbrk(t->title, " \t\r\n"))
		FAULT(c, t, -1, t->line, "transport \"%s\": a name has no spaces", t->title);
	if (strcmp(t->title, "error") == 0 || strcmp(t->title, "discard") == 0)
		FAULT(c, t, -1, t->line, "\"%s\" means something else in a table of routes",
		      t->title);
	if (!*t->client_certificate != !*t->client_key)
		FAULT(c, *t->client_key ? &t->client_key : &t->client_certificate, -1, t->line,
		      "client_certificate and client_key go together");
	check_policy(c, &t->tls, t->line);
	check_relays(c, &t->fallback_relay, t->line);
	check_concurrency(c, t);
	if (address_parse_sources(t->source_address, source) < 0)
		FAULT(c, &t->source_address, -1, t->line,
		      "source_address \"%s\" is no IP address, nor one of each family",
		      t->source_address);
	check_helo(c, &t->helo, t->line);
}

static void check_from(struct check *c, const struct conf_route *r)
{
	for (int i = 0; i < r->from.n; i++) {
		char *key = name_key(r->from.item[i]);
		if (strcmp(key, "<>") != 0 && !conf_pattern_good(key))
			FAULT(c, &r->from, i, r->line,
			      "\"%s\" is not an address, a domain, a .parent of domains, or <>",
			      r->from.item[i]);
		free(key);
	}
}

static void check_end(struct check *c, const struct conf_route *r)
{
	struct route_value v = {.action = ROUTE_ERROR};
	struct buf why = {0};
	if (*r->error && route_value_error(r->error, &v, &why))
		FAULT(c, &r->error, -1, r->line, "%s", buf_cstr(&why));
	if ((*r->error != '\0') + r->discard + (r->relay.n > 0) > 1)
		FAULT(c, r, -1, r->line,
		      "route \"%s\": relay, error and discard exclude each other", r->title);
	if (*r->error && r->recipients.n > 0)
		FAULT(c, &r->recipients, -1, r->line,
		      "route \"%s\": of an error nobody is a recipient", r->title);
	route_value_fini(&v);
	buf_fini(&why);
}

/* A table that several routes name is read once. */
static void gather_recipients(struct conf *f, const struct conf_route *r)
{
	for (int i = 0; i < r->recipients.n; i++)
		if (!conf_list_has(&f->recipients, r->recipients.item[i]))
			conf_list_add(&f->recipients, r->recipients.item[i]);
	f->routes_refuse |= *r->error || r->recipients.n > 0;
}

static void check_route(struct check *c, struct conf_route *r)
{
	struct conf *f = c->conf;
	if (!conf_pattern_good(r->title))
		FAULT(c, r, -1, r->line,
		      "\"%s\" is not an address, a domain, a .parent of domains, or *", r->title);
	r->by = conf_find(f, CONF_KIND_TRANSPORT, r->transport);
	if (!r->by)
		FAULT(c, &r->transport, -1, r->line, "there is no transport \"%s\"", r->transport);
	r->named = conf_lines_find(c->lines, &r->transport, -1, 0) > 0;
	if (*r->tls)
		check_policy(c, &r->tls, r->line);
	f->routes_verify |= r->verify;
	check_servers(c, TABLE_RECIPIENTS, &r->recipients);
	gather_recipients(f, r);
	check_relays(c, &r->relay, r->line);
	check_from(c, r);
	check_end(c, r);
}

static int by_title(const void *a, const void *b)
{
	const struct conf_route *const *x = a, *const *y = b;
	int titles = strcmp((*x)->title, (*y)->title);
	return titles ? titles : (*x > *y) - (*x < *y);
}

/* As names are kept: in the file they may be spelt in two ways. */
static void check_routes_twice(struct check *c)
{
	size_t n = (size_t)c->conf->nroute;
	const struct conf_route **sorted = mem_alloc((n + 1) * sizeof *sorted);
	for (size_t i = 0; i < n; i++)
		sorted[i] = &c->conf->route[i];
	qsort(sorted, n, sizeof *sorted, by_title);
	for (size_t i = 1; i < n; i++) {
		const struct conf_route *before = sorted[i - 1], *r = sorted[i];
		if (strcmp(before->title, r->title) == 0)
			FAULT(c, r, -1, r->line, "route \"%s\" is already there, in line %d",
			      r->title, before->line);
	}
	free(sorted);
}

static void check_limit(struct check *c, const struct conf_limit *l)
{
	static const char *const titles[] = {[LIMIT_BY_LOGIN] = "login",
					     [LIMIT_BY_CLIENT] = "client",
					     [LIMIT_BY_SENDER] = "sender"};
	int by = 0;
	while (by < LIMIT_BY_COUNT && strcmp(titles[by], l->title) != 0)
		by++;
	if (by == LIMIT_BY_COUNT)
		FAULT(c, l, -1, l->line, "a limit is called login, client or sender, not \"%s\"",
		      l->title);
	else if (c->conf->limit_by[by])
		FAULT(c, l, -1, l->line, "limit \"%s\" is already there, in line %d", l->title,
		      c->conf->limit_by[by]->line);
	else
		c->conf->limit_by[by] = l;
}

static void check_queue(struct check *c)
{
	struct conf_queue *q = &c->conf->queue;
	char *end;
	q->jitter = strtod(q->backoff_jitter, &end);
	if (*end || end == q->backoff_jitter || !(q->jitter >= 0 && q->jitter <= 0.5))
		FAULT(c, &q->backoff_jitter, -1, 1, "backoff_jitter must be 0 to 0.5, not \"%s\"",
		      q->backoff_jitter);
	if (q->minimal_backoff_time > q->maximal_backoff_time)
		FAULT(c, &q->minimal_backoff_time, -1,
		      conf_lines_find(c->lines, &q->maximal_backoff_time, -1, 1),
		      "minimal_backoff_time is above maximal_backoff_time");
}

static void check_verify(struct check *c)
{
	conf_value_keep_domain(&c->conf->verify.sender);
	const char *sender = c->conf->verify.sender;
	struct mailaddr a;
	if (*sender && (mailaddr_mailbox(sender, strlen(sender), true, &a) || !a.text[a.at]))
		FAULT(c, &c->conf->verify.sender, -1, 1, "sender \"%s\" is not an address", sender);
}

static void check_dns(struct check *c)
{
	const struct conf_dns *d = &c->conf->dns;
	union address a;
	for (int i = 0; i < d->server.n; i++)
		if (!address_parse(d->server.item[i], 0, &a))
			FAULT(c, &d->server, i, 1, "\"%s\" is no IP address", d->server.item[i]);
	if (d->server.n > CONF_DNS_SERVERS_MAX)
		FAULT(c, &d->server, CONF_DNS_SERVERS_MAX, 1,
		      "server: %d name servers at most; \"%s\" is another", CONF_DNS_SERVERS_MAX,
		      d->server.item[CONF_DNS_SERVERS_MAX]);
	check_networks(c, &d->allow_private, 1);
	for (int i = 0; i < d->insecure_domains.n; i++) {
		conf_value_keep_name(&d->insecure_domains.item[i]);
		if (!conf_host_good(d->insecure_domains.item[i]))
			FAULT(c, &d->insecure_domains, i, 1, "\"%s\" is not a domain",
			      d->insecure_domains.item[i]);
	}
}

/* The default file belongs to a package that need not be there. */
static void check_trust_anchor(struct check *c)
{
	const struct conf_dns *d = &c->conf->dns;
	struct trust_anchor anchor;
	struct buf error = {0};
	if (d->dnssec != DNSSEC_VALIDATE || strcmp(d->trust_anchor, TRUST_ANCHOR_FILE) == 0)
		return;
	if (trust_anchor_read(&anchor, d->trust_anchor, &error))
		trust_anchor_fini(&anchor);
	else
		FAULT(c, &d->trust_anchor, -1, 1, "%s", buf_cstr(&error));
	buf_fini(&error);
}

static bool dovecot_good(const char *where)
{
	union address a;
	if (strncmp(where, "inet:", 5) == 0)
		return address_parse_with_port(where + 5, &a);
	return where[0] == '/' && strlen(where) < sizeof((struct sockaddr_un *)NULL)->sun_path;
}

static void check_auth(struct check *c)
{
	const struct conf_auth *a = &c->conf->auth;
	bool file_given = conf_lines_find(c->lines, &a->file, -1, 0) > 0 && *a->file;
	if (*a->file && a->file[0] != '/')
		FAULT(c, &a->file, -1, 1, "file \"%s\" is not an absolute path", a->file);
	if (*a->dovecot && !dovecot_good(a->dovecot))
		FAULT(c, &a->dovecot, -1, 1,
		      "dovecot \"%s\" is not the absolute path of a socket, nor inet:HOST:PORT",
		      a->dovecot);
	if (*a->dovecot && file_given)
		FAULT(c, &a->dovecot, -1, 1, "auth: file and dovecot exclude each other");
	for (int i = 0; i < a->mechanisms.n; i++)
		if (mechanism_find(a->mechanisms.item[i]) == MECHANISM_COUNT)
			FAULT(c, &a->mechanisms, i, 1, "there is no mechanism \"%s\"",
			      a->mechanisms.item[i]);
	for (int i = 0; i < c->conf->nlistener; i++)
		if (c->conf->listener[i].auth && !*a->file && !*a->dovecot)
			FAULT(c, &c->conf->listener[i].auth, -1, c->conf->listener[i].line,
			      "auth needs a users' file, or Dovecot: auth { file, dovecot }");
}

/* As who posts to it reads it. */
static bool url_good(const char *to)
{
	CURLU *url = curl_url();
	bool good = url && curl_url_set(url, CURLUPART_URL, to, 0) == CURLUE_OK;
	curl_url_cleanup(url);
	return good;
}

static bool receiver_good(const char *to)
{
	const size_t socket = strlen("unix:"), most = sizeof((struct sockaddr_un *)NULL)->sun_path;
	if (strncmp(to, "http://", 7) == 0 || strncmp(to, "https://", 8) == 0)
		return url_good(to);
	return !*to || *to == '/' || (strncmp(to, "unix:/", 6) == 0 && strlen(to) - socket < most);
}

static void check_events(struct check *c)
{
	const struct conf_events *e = &c->conf->events;
	if (!receiver_good(e->to))
		FAULT(c, &e->to, -1, 1,
		      "to \"%s\" is not an absolute path, unix:/its/path, nor an http:// or "
		      "https:// "
		      "URL",
		      e->to);
	if (*e->token && e->token[0] != '/')
		FAULT(c, &e->token, -1, 1, "token \"%s\" is not an absolute path", e->token);
	for (int i = 0; i < e->only.n; i++)
		if (!verdict_class_is_name(e->only.item[i]))
			FAULT(c, &e->only, i, 1,
			      "\"%s\" is none of sent, deferred, bounced and in_doubt",
			      e->only.item[i]);
}

static void check_flow(struct check *c, struct conf_flow *w)
{
	const struct conf *f = c->conf;
	if (!*w->title)
		FAULT(c, w, -1, w->line, "a flow must have a name");
	for (const struct conf_flow *o = f->flow; o < w; o++)
		if (strcmp(o->title, w->title) == 0)
			FAULT(c, w, -1, w->line, "flow \"%s\" is already there, in line %d",
			      w->title, o->line);
	if (*w->transport)
		w->by = conf_find(f, CONF_KIND_TRANSPORT, w->transport);
	if (*w->transport && !w->by)
		FAULT(c, &w->transport, -1, w->line, "flow \"%s\": there is no transport \"%s\"",
		      w->title, w->transport);
}

static void keep_for(struct conf *f, int64_t time_ms)
{
	if (time_ms > f->suppress_most)
		f->suppress_most = time_ms;
}

/* Refusals that one listener wants to know of are remembered for all. */
static void find_longest_suppress(struct conf *f)
{
	keep_for(f, f->suppress);
	for (int i = 0; i < f->nlistener; i++)
		keep_for(f, f->listener[i].suppress);
	for (int i = 0; i < f->nflow; i++) {
		keep_for(f, f->flow[i].suppress);
		f->flows_suppress |= f->flow[i].suppress > 0;
	}
}

void conf_check(struct conf *f, const struct conf_lines *lines, struct conf_faults *faults)
{
	struct check c = {f, lines, faults};
	check_global(&c);
	for (int i = 0; i < f->nlistener; i++)
		check_listener(&c, &f->listener[i]);
	check_http(&c);
	for (int i = 0; i < f->ntransport; i++)
		check_transport(&c, &f->transport[i]);
	for (int i = 0; i < f->nroute; i++)
		check_route(&c, &f->route[i]);
	check_routes_twice(&c);
	for (int i = 0; i < f->nlimit; i++)
		check_limit(&c, &f->limit[i]);
	for (int i = 0; i < f->nflow; i++)
		check_flow(&c, &f->flow[i]);
	find_longest_suppress(f);
	f->user_line = conf_lines_find(lines, &f->user, -1, 1);
	f->dkim_also_line = conf_lines_find(lines, &f->dkim_also, -1, 1);
	check_queue(&c);
	check_dns(&c);
	check_verify(&c);
	check_auth(&c);
	conf_provider_check(f, lines, faults);
	conf_source_check(f, lines, faults);
	conf_milter_check(f, lines, faults);
	conf_dkim_check(f, lines, faults);
	check_events(&c);
	conf_cluster_check(f, lines, faults);
	conf_nats_check(f, lines, faults);
}

/* A policy that is none asks for nothing: its fault is said already. */
static bool is_trusting(const char *policy)
{
	struct buf unsaid = {0};
	bool good = tls_policy_good(policy, &unsaid);
	buf_fini(&unsaid);
	return good && tls_policy_trusts(policy);
}

/* Does anything that is sure to be asked need them? A row of a table may, and says so when it is asked. */
static bool has_trusting_policy(const struct conf *f)
{
	for (int i = 0; i < f->ntransport; i++)
		if (is_trusting(f->transport[i].tls))
			return true;
	for (int i = 0; i < f->nroute; i++)
		if (*f->route[i].tls && is_trusting(f->route[i].tls))
			return true;
	return false;
}

/* Clients may ask for REQUIRETLS there, which takes hosts that are proven. */
static bool takes_requiretls(const struct conf *f)
{
	for (int i = 0; i < f->nlistener; i++)
		if (f->listener[i].certificate.n > 0)
			return true;
	return false;
}

/* Loaded once, for all who verify. Where nobody does, they cost nothing. */
static void load_authorities(struct check *c)
{
	struct conf *f = c->conf;
	struct buf error = {0};
	bool given = conf_lines_find(c->lines, &f->tls.ca, -1, 0) > 0;
	if (!*f->tls.ca ||
	    !(given || has_trusting_policy(f) || f->tls_policy.n > 0 || takes_requiretls(f)))
		return;
	f->authorities = tls_authorities_new(f->tls.ca, &error);
	if (!f->authorities && (given || has_trusting_policy(f)))
		FAULT(c, &f->tls.ca, -1, 1, "ca: %s", buf_cstr(&error));
	buf_fini(&error);
}

void conf_check_keys(struct conf *f, const struct conf_lines *lines, struct conf_faults *faults)
{
	struct check c = {f, lines, faults};
	bool auth = false;
	for (int i = 0; i < f->nlistener; i++) {
		check_key(&c, &f->listener[i]);
		auth = auth || f->listener[i].auth;
	}
	if (auth && !*f->auth.dovecot && *f->auth.file)
		conf_list_add(&f->auth.users, f->auth.file);
	for (int i = 0; i < f->ntransport; i++)
		load_identity(&c, &f->transport[i]);
	load_authorities(&c);
	conf_dkim_load(f, lines, faults);
	check_trust_anchor(&c);
}
