/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/destdb.h"

#include "base/address.h"
#include "base/mem.h"
#include "qmgr/dest/pooling.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/remembered.h"
#include "qmgr/dest/site.h"
#include "qmgr/dest/source.h"
#include "qmgr/dest/suspend.h"
#include "spool/spool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void destdb_init(struct destdb *db, struct scheduler *sched, const struct destdb_thread *thread)
{
	*db = (struct destdb){.sched = sched, .thread = *thread};
	list_init(&db->changed);
	site_hours_init(&db->hours);
	list_init(&db->scarce);
	few_init(&db->deliveries, DELIVERY_OF_ONE);
	db->numbered = mem_zalloc((SPOOL_SITE_MAX + 1) * sizeof db->numbered[0]);
}

void destdb_collect(struct destdb *db)
{
	int64_t now_ms = destdb_now_ms(db);
	hash_each (struct site, s, db->sites) {
		site_pace_age(s);
		if (site_idle(s) && s->dead_until_ms <= now_ms)
			site_free(s);
		else
			site_ask_for_mail(s);
	}
	provider_collect(db);
	source_collect(db);
	hash_each (struct host, h, db->hosts) {
		leased_closed(db, h);
		if (host_stale(h, now_ms))
			host_free(db, h);
	}
}

void destdb_fini(struct destdb *db)
{
	assert(!db->conns);
	hash_each (struct site, s, db->sites)
		site_free(s);
	provider_free_all(db);
	source_free_all(db);
	hash_each (struct host, h, db->hosts)
		host_free(db, h);
	suspend_free(db);
	remembered_free(db);
	free(db->numbered);
	few_fini(&db->deliveries);
	assert(list_empty(&db->changed) && list_empty(&db->scarce) && db->hours.n == 0);
	assert(!db->sites && !db->hosts && !db->providers && !db->sources);
	assert(!db->suspended && !db->remembered);
}

struct host *destdb_host(struct destdb *db, const char *key, const union address *address)
{
	char peer[ADDRESS_PEER_MAX];
	struct host *h;
	HASH_FIND_STR(db->hosts, key, h);
	if (h)
		return h;
	h = mem_zalloc(sizeof *h);
	h->key = mem_strdup(key);
	h->address = *address;
	h->peer = mem_strdup(address_peer(address, "", peer));
	h->suspended = suspend_covers_host(db, h);
	list_init(&h->full);
	list_init(&h->idle);
	list_init(&h->conns);
	list_init(&h->sites);
	list_init(&h->pooling.changed);
	list_init(&h->leased.in_scarce);
	h->depth = 1;
	h->leased.shared = db->edges.to_cluster != NULL;
	HASH_ADD_KEYPTR(hh, db->hosts, h->key, strlen(h->key), h);
	return h;
}

static const char *from_where(const struct conf_source *source, const union address *to,
			      const struct conf_transport *set, char text[ADDRESS_WHERE_MAX])
{
	const union address *from = source ? conf_source_address(source, to->sa.sa_family) : NULL;
	return from ? address_where(from, text) : source ? "" : set->source_address;
}

static char *key_of(const struct transport *t, const union address *address,
		    const struct conf_source *source, const char *tls,
		    const struct credential *credential)
{
	char where[ADDRESS_WHERE_MAX], from[ADDRESS_WHERE_MAX];
	const struct conf_transport *set = t->settings;
	return mem_printf("%s:%d/%s/%s%s%s%s%s", address_where(address, where),
			  address_port(address), tls, from_where(source, address, set, from),
			  *set->client_certificate ? " with " : "", set->client_certificate,
			  credential ? " as " : "", credential ? credential->id : "");
}

const struct host *destdb_same_host(const struct destdb *db, const struct transport *t,
				    const struct host *h, const struct conf_source *source)
{
	struct host *same;
	char *key = key_of(t, &h->address, source, h->tls, h->credential);
	HASH_FIND_STR(db->hosts, key, same);
	free(key);
	return same;
}

struct host *destdb_get(struct destdb *db, const struct transport *t, const union address *address,
			const struct conf_source *source, const char *tls,
			struct credential *credential)
{
	char *key = key_of(t, address, source, tls, credential);
	struct host *h = destdb_host(db, key, address);
	free(key);
	if (!h->tls)
		h->tls = mem_strdup(tls);
	if (credential && !h->credential)
		h->credential = credential_ref(credential);
	h->refs++;
	return h;
}

void host_free(struct destdb *db, struct host *h)
{
	assert(list_empty(&h->full) && list_empty(&h->idle) && list_empty(&h->conns));
	assert(list_empty(&h->sites) && h->refs == 0);
	assert(h->connections == 0 && h->ready == 0 && h->unanswered == 0 && h->nidle == 0);
	leased_end(db, h);
	list_remove(&h->leased.in_scarce);
	HASH_DEL(db->hosts, h);
	pooling_fini(h);
	host_fini(h);
	credential_unref(h->credential);
	free(h->peer);
	free(h->tls);
	free(h->key);
	free(h);
}
