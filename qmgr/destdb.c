/* SPDX-License-Identifier: ISC */
#include "qmgr/destdb.h"

#include "base/mem.h"
#include "base/stream.h"
#include "qmgr/suspend.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct host *destdb_host(struct qmgr *q, const char *key, const union address *address)
{
	char ip[64];
	struct host *h;
	HASH_FIND_STR(q->hosts, key, h);
	if (h)
		return h;
	h = mem_zalloc(sizeof *h);
	h->key = mem_strdup(key);
	h->address = *address;
	h->peer = mem_printf("[%s]:%d", address_text(address, ip), address_port(address));
	h->suspended = suspend_covers_host(q, h);
	list_init(&h->full);
	list_init(&h->idle);
	list_init(&h->conns);
	list_init(&h->sites);
	h->depth = 1;
	HASH_ADD_KEYPTR(hh, q->hosts, h->key, strlen(h->key), h);
	return h;
}

struct host *destdb_get(struct qmgr *q, const struct transport *t, const union address *address)
{
	char ip[64], key[256];
	snprintf(key, sizeof key, "%s:%d/%d/%s", address_text(address, ip), address_port(address),
		 t->settings->tls, t->settings->source_address);
	struct host *h = destdb_host(q, key, address);
	h->refs++;
	return h;
}

void host_unref(struct host *h)
{
	assert(h->refs > 0);
	h->refs--; /* The record outlives its last user; the scheduler's collection removes it. */
}

void host_free(struct qmgr *q, struct host *h)
{
	assert(list_empty(&h->full) && list_empty(&h->idle) && list_empty(&h->conns));
	assert(list_empty(&h->sites) && h->refs == 0);
	HASH_DEL(q->hosts, h);
	host_fini(h);
	free(h->peer);
	free(h->key);
	free(h);
}
