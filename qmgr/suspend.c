/* SPDX-License-Identifier: ISC */
#include "qmgr/suspend.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/stream.h"
#include "qmgr/conn.h"

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
	return strcasecmp(h->name, name) == 0 || strcasecmp(h->peer, name) == 0 ||
	       strcmp(ip, name) == 0 || strcmp(with_port, name) == 0;
}

bool suspend_covers_site(const struct qmgr *q, const struct site *s)
{
	for (const struct suspended *n = q->suspended; n; n = n->hh.next)
		if (!n->host && suspend_site_is(s, n->name))
			return true;
	return false;
}

bool suspend_covers_host(const struct qmgr *q, const struct host *h)
{
	for (const struct suspended *n = q->suspended; n; n = n->hh.next)
		if (n->host && suspend_host_is(h, n->name))
			return true;
	return false;
}

struct verdict *suspend_verdict(const char *what)
{
	return verdict_printf(VERDICT_DEFERRED, 0, "4.3.2", NULL,
			      "the %s is suspended by the operator", what);
}

/* Its sites look again, and its connections end. */
static void mark_host(struct qmgr *q, struct host *h, bool on)
{
	if (h->suspended == on)
		return;
	h->suspended = on;
	struct conn *c, *tmp;
	HASH_ITER(hh, q->conns, c, tmp)
	if (on && c->host == h && !c->ending && !c->closed)
		conn_end(q, c);
	for (struct site *s = q->sites; s; s = s->hh.next)
		for (int i = 0; i < s->nhost; i++)
			if (s->hosts[i].host == h)
				site_touch(s);
}

static void mark_site(struct qmgr *q, struct site *s, bool on)
{
	if (s->suspended == on)
		return;
	s->suspended = on;
	struct conn *c, *tmp;
	HASH_ITER(hh, q->conns, c, tmp)
	if (on && c->site == s && !c->ending && !c->closed)
		conn_end(q, c);
	site_touch(s);
}

static void mark_all(struct qmgr *q)
{
	for (struct site *s = q->sites; s; s = s->hh.next)
		mark_site(q, s, suspend_covers_site(q, s));
	for (struct host *h = q->hosts; h; h = h->hh.next)
		mark_host(q, h, suspend_covers_host(q, h));
}

static struct suspended *find(const struct qmgr *q, const char *name, bool host)
{
	for (struct suspended *n = q->suspended; n; n = n->hh.next)
		if (n->host == host && strcasecmp(n->name, name) == 0)
			return n;
	return NULL;
}

bool suspend_begin(struct qmgr *q, const char *name, bool host)
{
	if (find(q, name, host))
		return false;
	struct suspended *n = mem_zalloc(sizeof *n);
	n->name = mem_strdup(name);
	n->host = host;
	HASH_ADD_KEYPTR(hh, q->suspended, n->name, strlen(n->name), n);
	log_event(LOG_LEVEL_INFO, host ? "host" : "site", host ? "host" : "site", name, "state",
		  "suspended", NULL);
	q->learnt = true;
	mark_all(q);
	return true;
}

/* Is it this name, or does it mean a site or host that this name means? */
static bool means(const struct qmgr *q, const struct suspended *n, const char *name)
{
	if (strcasecmp(n->name, name) == 0)
		return true;
	for (const struct site *s = q->sites; s && !n->host; s = s->hh.next)
		if (suspend_site_is(s, name) && suspend_site_is(s, n->name))
			return true;
	for (const struct host *h = q->hosts; h && n->host; h = h->hh.next)
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

bool suspend_end(struct qmgr *q, const char *name)
{
	bool any = false;
	struct suspended *n, *tmp;
	HASH_ITER(hh, q->suspended, n, tmp)
	if (means(q, n, name)) {
		log_event(LOG_LEVEL_INFO, n->host ? "host" : "site", n->host ? "host" : "site",
			  n->name, "state", "resumed", NULL);
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
