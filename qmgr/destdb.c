/* SPDX-License-Identifier: ISC */
#include "qmgr/destdb.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/stream.h"
#include "qmgr/suspend.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COOL_FIRST_MS = 100, COOL_MOST_MS = 30000, GOOD_FOR_MS = 10000, SLOW_STAYS_MS = 600000 };

struct host *destdb_host(struct qmgr *q, const char *key, const char *name,
			 const union address *address)
{
	char ip[64];
	struct host *h;
	HASH_FIND_STR(q->hosts, key, h);
	if (h)
		return h;
	h = mem_zalloc(sizeof *h);
	h->key = mem_strdup(key);
	h->name = mem_strdup(name);
	h->address = *address;
	h->peer =
		mem_printf("%.200s[%s]:%d", name, address_text(address, ip), address_port(address));
	h->suspended = suspend_covers_host(q, h);
	list_init(&h->full);
	list_init(&h->idle);
	list_init(&h->conns);
	h->depth = 1;
	HASH_ADD_KEYPTR(hh, q->hosts, h->key, strlen(h->key), h);
	return h;
}

struct host *destdb_get(struct qmgr *q, const struct transport *t, const char *name,
			const union address *address)
{
	char ip[64], key[256];
	snprintf(key, sizeof key, "%s:%d/%d/%s", address_text(address, ip), address_port(address),
		 t->settings->tls, t->settings->source_address);
	struct host *h = destdb_host(q, key, name, address);
	h->refs++;
	return h;
}

void host_unref(struct host *h)
{
	h->refs--; /* The record outlives its last user; the scheduler's collection removes it. */
}

void host_free(struct qmgr *q, struct host *h)
{
	assert(list_empty(&h->full) && list_empty(&h->idle) && list_empty(&h->conns));
	HASH_DEL(q->hosts, h);
	verdict_unref(h->why);
	free(h->name);
	free(h->peer);
	free(h->key);
	free(h);
}

bool host_serves(const struct host *h, int64_t now_ms)
{
	return h->ready > 0 || (h->good_ms > 0 && now_ms < h->good_ms + GOOD_FOR_MS);
}

void host_failed(struct host *h, struct verdict *why, int64_t now_ms, int64_t backoff_ms)
{
	int64_t cool = (int64_t)COOL_FIRST_MS << (h->failures < 10 ? h->failures : 10);
	verdict_unref(h->why);
	h->why = verdict_ref(why);
	if (!host_serves(h, now_ms)) {
		h->failures++;
		h->retry_ms = now_ms + backoff_ms;
	} else if (h->cool_ms <= now_ms) {
		h->failures++;
		h->cool_ms = now_ms + (cool < COOL_MOST_MS ? cool : COOL_MOST_MS);
	}
}

void host_slow(struct host *h, int64_t now_ms)
{
	h->slow_until_ms = now_ms + SLOW_STAYS_MS;
}

void host_worked(struct host *h)
{
	h->failures = 0;
	h->refuses = false;
	h->retry_ms = h->cool_ms = 0;
	verdict_unref(h->why);
	h->why = NULL;
}

void host_forget(struct host *h)
{
	host_worked(h);
	h->plain_until_ms = h->slow_until_ms = 0;
	h->mode_until_ms = h->good_ms = h->opened_ms = 0;
	h->messages_until_ms = 0;
}

bool host_stale(const struct host *h, int64_t now_ms)
{
	return h->refs == 0 && h->retry_ms < now_ms && h->plain_until_ms < now_ms &&
	       h->mode_until_ms < now_ms && h->messages_until_ms < now_ms &&
	       h->opened_ms < now_ms - HOST_STALE_MS;
}

void host_ended_well(struct host *h, int64_t now_ms)
{
	h->good_ms = now_ms;
	h->cool_ms = 0;
}

const char *host_mode_name(enum connection_mode mode)
{
	bool chunking = !(mode & CONNECTION_NO_CHUNKING);
	if (mode & CONNECTION_LOCKSTEP)
		return chunking ? "lockstep" : "lockstep, no chunking";
	if (mode & CONNECTION_APART)
		return chunking ? "apart" : "apart, no chunking";
	return chunking ? "full" : "no chunking";
}

enum connection_mode host_mode(const struct host *h, int64_t now_ms)
{
	return now_ms < h->mode_until_ms ? h->mode : CONNECTION_FULL;
}

void host_confused(struct host *h, enum connection_mode next, struct verdict *why, int64_t now_ms)
{
	enum connection_mode before = host_mode(h, now_ms);
	h->mode = before | next;
	h->mode_until_ms = now_ms + HOST_MODE_MS;
	if (h->mode == before)
		return; /* other connections find the same */
	log_event(LOG_LEVEL_WARNING, "host", "host", h->name, "mode", host_mode_name(h->mode),
		  "reason", why ? why->text : "it gave a reply too many", NULL);
}

int host_messages_most(const struct host *h, int64_t now_ms)
{
	return now_ms < h->messages_until_ms ? h->messages_most : 0;
}

void host_limited(struct host *h, int messages, int64_t now_ms)
{
	int before = host_messages_most(h, now_ms);
	h->messages_most = before > 0 && before < messages ? before : messages;
	h->messages_until_ms = now_ms + HOST_MODE_MS;
	if (h->messages_most != before)
		log_event(LOG_LEVEL_INFO, "host", "host", h->name, "messages",
			  log_number(h->messages_most), "reason",
			  "it takes no more on one connection", NULL);
}
