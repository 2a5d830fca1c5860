/* SPDX-License-Identifier: ISC */
#include "qmgr/suspend.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/stream.h"
#include "qmgr/conn.h"
#include "spool/spool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool suspend_site_is(const struct site *s, const char *name)
{
	return strcasecmp(s->name, name) == 0 || strcasecmp(s->key, name) == 0;
}

bool suspend_host_is(const struct host *h, const char *name)
{
	char ip[64], with_port[80];
	address_text(&h->address, ip);
	snprintf(with_port, sizeof with_port,
		 h->address.sa.sa_family == AF_INET6 ? "[%s]:%d" : "%s:%d", ip,
		 address_port(&h->address));
	return strcasecmp(h->peer, name) == 0 || strcasecmp(ip, name) == 0 ||
	       strcasecmp(with_port, name) == 0;
}

bool suspend_site_host_is(const struct site_host *it, const char *name)
{
	return strcasecmp(it->name, name) == 0 || strcasecmp(it->peer, name) == 0 ||
	       suspend_host_is(it->host, name);
}

const char *suspend_kind_name(enum suspend_kind kind)
{
	static const char *const names[] = {
#define X(kind, text) [SUSPEND_##kind] = text,
		SUSPEND_KINDS(X)
#undef X
	};
	return names[kind];
}

static bool means_sites(const struct suspended *n)
{
	return n->kind == SUSPEND_SITE || n->kind == SUSPEND_ANY;
}

static bool means_hosts(const struct suspended *n)
{
	return n->kind == SUSPEND_HOST || n->kind == SUSPEND_ANY;
}

static bool means_domains(const struct suspended *n)
{
	return n->kind == SUSPEND_DOMAIN || n->kind == SUSPEND_ANY;
}

bool suspend_covers_domain(const struct qmgr *q, const char *domain)
{
	for (const struct suspended *n = q->suspended; n; n = n->hh.next)
		if (means_domains(n) && strcasecmp(n->name, domain) == 0)
			return true;
	return false;
}

bool suspend_covers_site(const struct qmgr *q, const struct site *s)
{
	for (const struct suspended *n = q->suspended; n; n = n->hh.next)
		if (means_sites(n) && suspend_site_is(s, n->name))
			return true;
	return false;
}

bool suspend_covers_host(const struct qmgr *q, const struct host *h)
{
	for (const struct suspended *n = q->suspended; n; n = n->hh.next)
		if (means_hosts(n) && suspend_host_is(h, n->name))
			return true;
	return false;
}

bool suspend_covers_site_host(const struct qmgr *q, const struct site_host *it)
{
	for (const struct suspended *n = q->suspended; n; n = n->hh.next)
		if (means_hosts(n) && suspend_site_host_is(it, n->name))
			return true;
	return false;
}

struct verdict *suspend_verdict(const char *what)
{
	return verdict_printf(VERDICT_DEFERRED, 0, "4.3.2", NULL,
			      "the %s is suspended by the operator", what);
}

static void end_connections(struct site *s, const struct host *h)
{
	struct conn *c, *tmp;
	HASH_ITER(hh, s->qmgr->conns, c, tmp)
	if (c->site == s && (!h || c->host == h) && (conn_ready(c) || conn_unready(c)))
		conn_end(s->qmgr, c);
}

/* Its sites look again, and its connections end. */
static void mark_site_host(struct site *s, struct site_host *it, bool on)
{
	if (it->suspended == on)
		return;
	it->suspended = on;
	if (on)
		end_connections(s, it->host);
	site_touch(s);
}

static void mark_site(struct qmgr *q, struct site *s, bool on)
{
	if (s->suspended != on) {
		s->suspended = on;
		if (on)
			end_connections(s, NULL);
		site_touch(s);
	}
	for (int i = 0; i < s->nhost; i++)
		mark_site_host(s, &s->hosts[i], suspend_covers_site_host(q, &s->hosts[i]));
}

static void mark_all(struct qmgr *q)
{
	for (struct host *h = q->hosts; h; h = h->hh.next)
		h->suspended = suspend_covers_host(q, h);
	for (struct site *s = q->sites; s; s = s->hh.next)
		mark_site(q, s, suspend_covers_site(q, s));
}

static struct suspended *find(const struct qmgr *q, const char *name, enum suspend_kind kind)
{
	for (struct suspended *n = q->suspended; n; n = n->hh.next)
		if (n->kind == kind && strcasecmp(n->name, name) == 0)
			return n;
	return NULL;
}

static void tell(const struct suspended *n, const char *state)
{
	const char *kind = suspend_kind_name(n->kind);
	log_event(LOG_LEVEL_INFO, n->kind == SUSPEND_HOST ? "host" : "site", kind, n->name, "state",
		  state, NULL);
}

bool suspend_begin(struct qmgr *q, const char *name, enum suspend_kind kind)
{
	if (find(q, name, kind))
		return false;
	struct suspended *n = mem_zalloc(sizeof *n);
	n->name = mem_strdup(name);
	n->kind = kind;
	HASH_ADD_KEYPTR(hh, q->suspended, n->name, strlen(n->name), n);
	tell(n, "suspended");
	q->learnt = true;
	mark_all(q);
	return true;
}

bool suspend_means_host(const struct host *h, const char *name)
{
	list_each (link, tmp, &h->sites)
		if (suspend_site_host_is(list_entry(link, struct site_host, in_host), name))
			return true;
	return suspend_host_is(h, name);
}

/* Is it this name, or does it mean a site or host that this name means? */
static bool means(const struct qmgr *q, const struct suspended *n, const char *name)
{
	if (strcasecmp(n->name, name) == 0)
		return true;
	for (const struct site *s = q->sites; s && means_sites(n); s = s->hh.next)
		if (suspend_site_is(s, name) && suspend_site_is(s, n->name))
			return true;
	for (const struct host *h = q->hosts; h && means_hosts(n); h = h->hh.next)
		if (suspend_host_is(h, name) && suspend_host_is(h, n->name))
			return true;
	return false;
}

static void forget(struct qmgr *q, struct suspended *n)
{
	HASH_DEL(q->suspended, n);
	free(n->name);
	free(n);
}

/* Its mail has waited in the queue, site or no site. */
static void flush_domain(struct qmgr *q, const char *domain)
{
	struct spool_command *c = spool_command_new(SPOOL_FLUSH, q->loop, q);
	c->domain = mem_strdup(domain);
	q->edges.to_spool(q->edges.context, &c->note);
}

bool suspend_end(struct qmgr *q, const char *name)
{
	bool any = false;
	struct suspended *n, *tmp;
	HASH_ITER(hh, q->suspended, n, tmp)
	if (means(q, n, name)) {
		tell(n, "resumed");
		if (means_domains(n))
			flush_domain(q, n->name);
		forget(q, n);
		any = true;
	}
	q->learnt |= any;
	mark_all(q);
	return any;
}

void suspend_free(struct qmgr *q)
{
	struct suspended *n, *tmp;
	HASH_ITER(hh, q->suspended, n, tmp)
	forget(q, n);
}
