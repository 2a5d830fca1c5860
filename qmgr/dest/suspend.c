/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/suspend.h"

#include "base/address.h"
#include "base/clock.h"
#include "base/date.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/source.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Why mail waits, which is found again in the queue by this. */
#define SUSPENDED "the %s is suspended by the operator"
#define SUSPENDED_DSN "4.3.2"

/* With its source, or without. */
static bool is_called(const struct site *s, const char *name)
{
	size_t source = s->source ? strlen(SITE_FROM) + strlen(s->source->name) : 0;
	assert(source < strlen(s->name));
	char *without = mem_strndup(s->name, strlen(s->name) - source);
	bool is = name_key_same(name, s->name) || (source && name_key_same(name, without));
	free(without);
	return is;
}

bool suspend_site_is(const struct site *s, const char *name)
{
	const char *title = s->queue.transport->title;
	size_t len = strlen(title);
	bool behind = strncasecmp(name, title, len) == 0 && name[len] == ' ';
	return is_called(s, name) || (behind && is_called(s, name + len + 1));
}

/* Ends the name before its port. NULL: it has none; the colons of an address of version 6 are those of a port in brackets only. */
static const char *cut_port(char *name)
{
	char *colon = strrchr(name, ':');
	if (!colon || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")])
		return NULL;
	if (colon != strchr(name, ':') && (name[0] != '[' || colon[-1] != ']'))
		return NULL;
	*colon = '\0';
	return colon + 1;
}

/* As it is, or in brackets, each with this port or without. */
static bool is_place(const char *name, const char *where, int port)
{
	char *text = mem_strdup(name);
	const char *number = cut_port(text);
	size_t len = strlen(text);
	bool in_brackets = len > 2 && text[0] == '[' && text[len - 1] == ']';
	if (in_brackets)
		text[len - 1] = '\0';
	bool is = name_key_same(text + in_brackets, where) &&
		  (!number || strtol(number, NULL, 10) == port);
	free(text);
	return is;
}

bool suspend_host_is(const struct host *h, const char *name)
{
	char where[ADDRESS_WHERE_MAX];
	if (address_is_unix(&h->address))
		return strcmp(h->peer, name) == 0;
	address_where(&h->address, where);
	return strcasecmp(h->peer, name) == 0 || is_place(name, where, address_port(&h->address));
}

bool suspend_site_host_is(const struct site_host *it, const char *name)
{
	const union address *to = &it->host->address;
	if (name_key_same(name, it->peer) || suspend_host_is(it->host, name))
		return true;
	return address_is_unix(to) ? name_key_same(name, it->name)
				   : is_place(name, it->name, address_port(to));
}

const char *suspend_kind_name(enum suspend_kind kind)
{
	static const char *const names[] = {
#define X(kind, text) [SUSPEND_##kind] = text,
		SUSPEND_KINDS(X)
#undef X
	};
	assert(kind < SUSPEND_KIND_COUNT);
	return names[kind];
}

bool suspend_means_sites(const struct suspended *n)
{
	return n->kind == SUSPEND_SITE || n->kind == SUSPEND_ANY;
}

bool suspend_means_hosts(const struct suspended *n)
{
	return n->kind == SUSPEND_HOST || n->kind == SUSPEND_ANY;
}

bool suspend_means_domains(enum suspend_kind kind)
{
	return kind == SUSPEND_DOMAIN || kind == SUSPEND_ANY;
}

bool suspend_covers_domain(const struct destdb *db, const char *domain)
{
	for (const struct suspended *n = db->suspended; n; n = n->hh.next)
		if (suspend_means_domains(n->kind) && name_key_same(n->name, domain))
			return true;
	return false;
}

static bool means_site(const struct suspended *n, const struct site *s)
{
	if (n->kind == SUSPEND_PROVIDER)
		return s->provider && strcmp(s->provider->name, n->name) == 0;
	return suspend_means_sites(n) && suspend_site_is(s, n->name);
}

bool suspend_covers_site(const struct destdb *db, const struct site *s)
{
	for (const struct suspended *n = db->suspended; n; n = n->hh.next)
		if (means_site(n, s))
			return true;
	return false;
}

/* One that does not end by itself outlasts all others. */
static int64_t later_end(int64_t until_ms, const struct suspended *n)
{
	int64_t end_ms = n->until_ms ? n->until_ms : INT64_MAX;
	return end_ms > until_ms ? end_ms : until_ms;
}

int64_t suspend_site_until_ms(const struct destdb *db, const struct site *s)
{
	int64_t until_ms = 0;
	for (const struct suspended *n = db->suspended; n; n = n->hh.next)
		if (means_site(n, s))
			until_ms = later_end(until_ms, n);
	return until_ms < INT64_MAX ? until_ms : 0;
}

int64_t suspend_domain_until_ms(const struct destdb *db, const char *domain)
{
	int64_t until_ms = 0;
	for (const struct suspended *n = db->suspended; n; n = n->hh.next)
		if (suspend_means_domains(n->kind) && name_key_same(n->name, domain))
			until_ms = later_end(until_ms, n);
	return until_ms < INT64_MAX ? until_ms : 0;
}

bool suspend_covers_host(const struct destdb *db, const struct host *h)
{
	for (const struct suspended *n = db->suspended; n; n = n->hh.next)
		if (suspend_means_hosts(n) && suspend_host_is(h, n->name))
			return true;
	return false;
}

const struct suspended *suspend_of_site_host(const struct destdb *db, const struct site_host *it)
{
	for (const struct suspended *n = db->suspended; n; n = n->hh.next)
		if (suspend_means_hosts(n) && suspend_site_host_is(it, n->name))
			return n;
	return NULL;
}

bool suspend_covers_site_host(const struct destdb *db, const struct site_host *it)
{
	return suspend_of_site_host(db, it);
}

const char *suspend_end_text(int64_t until_ms, char text[INTERNET_TIME_TEXT])
{
	return internet_time_text(until_ms + date_ms() - clock_wall_ms(), text);
}

struct verdict *suspend_verdict(const char *what, int64_t until_ms)
{
	char end[INTERNET_TIME_TEXT];
	return verdict_printf(VERDICT_DEFERRED, 0, SUSPENDED_DSN, NULL, SUSPENDED "%s%s", what,
			      until_ms ? " until " : "",
			      until_ms ? suspend_end_text(until_ms, end) : "");
}

static bool names_suspended(const struct verdict *v, const char *what)
{
	char text[100];
	int len = snprintf(text, sizeof text, SUSPENDED, what);
	assert(len > 0 && (size_t)len < sizeof text);
	return strncmp(v->text, text, (size_t)len) == 0;
}

bool suspend_verdict_is(const struct verdict *v)
{
	return v && strcmp(v->dsn, SUSPENDED_DSN) == 0 &&
	       (names_suspended(v, "site") || names_suspended(v, "host"));
}

bool suspend_covers_flow(const struct destdb *db, const char *flow)
{
	return suspend_find(db, flow, SUSPEND_FLOW);
}

int64_t suspend_flow_until_ms(const struct destdb *db, const char *flow)
{
	const struct suspended *n = suspend_find(db, flow, SUSPEND_FLOW);
	return n ? n->until_ms : 0;
}

struct suspended *suspend_find(const struct destdb *db, const char *name, enum suspend_kind kind)
{
	for (struct suspended *n = db->suspended; n; n = n->hh.next)
		if (n->kind == kind && name_key_same(n->name, name))
			return n;
	return NULL;
}

bool suspend_means_host(const struct host *h, const char *name)
{
	list_each (link, tmp, &h->sites)
		if (suspend_site_host_is(list_entry(link, struct site_host, in_host), name))
			return true;
	return suspend_host_is(h, name);
}

void suspend_forget(struct destdb *db, struct suspended *n)
{
	HASH_DEL(db->suspended, n);
	timer_stop(&db->sched->loop->timers, &n->end);
	free(n->name);
	free(n);
}

void suspend_free(struct destdb *db)
{
	hash_each (struct suspended, n, db->suspended)
		suspend_forget(db, n);
}
