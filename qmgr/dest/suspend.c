/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/suspend.h"

#include "base/address.h"
#include "base/log.h"
#include "base/mem.h"
#include "qmgr/dest/conn.h"
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
	char where[ADDRESS_WHERE_MAX], with_port[ADDRESS_WHERE_MAX + 16];
	if (address_is_unix(&h->address))
		return strcmp(h->peer, name) == 0;
	address_where(&h->address, where);
	snprintf(with_port, sizeof with_port,
		 h->address.sa.sa_family == AF_INET6 ? "[%s]:%d" : "%s:%d", where,
		 address_port(&h->address));
	return strcasecmp(h->peer, name) == 0 || strcasecmp(where, name) == 0 ||
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

bool suspend_covers_domain(const struct destdb *db, const char *domain)
{
	for (const struct suspended *n = db->suspended; n; n = n->hh.next)
		if (means_domains(n) && strcasecmp(n->name, domain) == 0)
			return true;
	return false;
}

bool suspend_covers_site(const struct destdb *db, const struct site *s)
{
	for (const struct suspended *n = db->suspended; n; n = n->hh.next)
		if (means_sites(n) && suspend_site_is(s, n->name))
			return true;
	return false;
}

bool suspend_covers_host(const struct destdb *db, const struct host *h)
{
	for (const struct suspended *n = db->suspended; n; n = n->hh.next)
		if (means_hosts(n) && suspend_host_is(h, n->name))
			return true;
	return false;
}

bool suspend_covers_site_host(const struct destdb *db, const struct site_host *it)
{
	for (const struct suspended *n = db->suspended; n; n = n->hh.next)
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
	HASH_ITER(hh, s->db->conns, c, tmp)
	if (c->site == s && (!h || c->host == h) && (conn_ready(c) || conn_unready(c)))
		conn_end(s->db, c);
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

static void mark_site(struct destdb *db, struct site *s, bool on)
{
	if (s->suspended != on) {
		s->suspended = on;
		if (on)
			end_connections(s, NULL);
		site_touch(s);
	}
	for (int i = 0; i < s->nhost; i++)
		mark_site_host(s, &s->hosts[i], suspend_covers_site_host(db, &s->hosts[i]));
}

static void mark_all(struct destdb *db)
{
	for (struct host *h = db->hosts; h; h = h->hh.next)
		h->suspended = suspend_covers_host(db, h);
	for (struct site *s = db->sites; s; s = s->hh.next)
		mark_site(db, s, suspend_covers_site(db, s));
}

static struct suspended *find(const struct destdb *db, const char *name, enum suspend_kind kind)
{
	for (struct suspended *n = db->suspended; n; n = n->hh.next)
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

bool suspend_begin(struct destdb *db, const char *name, enum suspend_kind kind)
{
	if (find(db, name, kind))
		return false;
	struct suspended *n = mem_zalloc(sizeof *n);
	n->name = mem_strdup(name);
	n->kind = kind;
	HASH_ADD_KEYPTR(hh, db->suspended, n->name, strlen(n->name), n);
	tell(n, "suspended");
	db->learnt = true;
	mark_all(db);
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
static bool means(const struct destdb *db, const struct suspended *n, const char *name)
{
	if (strcasecmp(n->name, name) == 0)
		return true;
	for (const struct site *s = db->sites; s && means_sites(n); s = s->hh.next)
		if (suspend_site_is(s, name) && suspend_site_is(s, n->name))
			return true;
	for (const struct host *h = db->hosts; h && means_hosts(n); h = h->hh.next)
		if (suspend_host_is(h, name) && suspend_host_is(h, n->name))
			return true;
	return false;
}

static void forget(struct destdb *db, struct suspended *n)
{
	HASH_DEL(db->suspended, n);
	free(n->name);
	free(n);
}

/* Its mail has waited in the queue, site or no site. */
static void flush_domain(struct destdb *db, const char *domain)
{
	struct spool_command *c = spool_command_new(SPOOL_FLUSH, db->sched->loop, db);
	c->domain = mem_strdup(domain);
	db->edges.to_spool(db->edges.context, &c->note);
}

bool suspend_end(struct destdb *db, const char *name)
{
	bool any = false;
	struct suspended *n, *tmp;
	HASH_ITER(hh, db->suspended, n, tmp)
	if (means(db, n, name)) {
		tell(n, "resumed");
		if (means_domains(n))
			flush_domain(db, n->name);
		forget(db, n);
		any = true;
	}
	db->learnt |= any;
	mark_all(db);
	return any;
}

void suspend_free(struct destdb *db)
{
	struct suspended *n, *tmp;
	HASH_ITER(hh, db->suspended, n, tmp)
	forget(db, n);
}
