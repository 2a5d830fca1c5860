/* SPDX-License-Identifier: ISC */
#include "replica/roster.h"

#include "base/ident.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY = 32 };

void roster_init(struct roster *r, struct nats_setup *nats)
{
	*r = (struct roster){.nats = nats};
}

void roster_fini(struct roster *r)
{
	kvStore_Destroy(r->kv);
	free(r->row);
	*r = (struct roster){.n = 0};
}

static natsStatus open_bucket(struct roster *r)
{
	if (r->kv)
		return NATS_OK;
	natsStatus s = js_KeyValue(&r->kv, r->nats->js, REPLICA_BUCKET);
	if (s != NATS_NOT_FOUND)
		return s;
	kvConfig c;
	kvConfig_Init(&c);
	c.Bucket = REPLICA_BUCKET;
	c.History = 1;
	c.StorageType = js_FileStorage;
	c.Replicas = (int)r->nats->conf->nats_replicas;
	return js_CreateKeyValue(&r->kv, r->nats->js, &c);
}

struct roster_row *roster_find(const struct roster *r, const char *node)
{
	for (int i = 0; i < r->n; i++)
		if (r->row[i].there && strcmp(r->row[i].node, node) == 0)
			return &r->row[i];
	return NULL;
}

static struct roster_row *row_of(struct roster *r, const char *node)
{
	for (int i = 0; i < r->n; i++)
		if (strcmp(r->row[i].node, node) == 0)
			return &r->row[i];
	r->row = mem_realloc(r->row, ((size_t)r->n + 1) * sizeof *r->row);
	struct roster_row *row = &r->row[r->n++];
	memset(row, 0, sizeof *row);
	snprintf(row->node, sizeof row->node, "%s", node);
	return row;
}

static natsStatus read_row(struct roster *r, const char *token, const char *node, int64_t now_ms)
{
	kvEntry *entry = NULL;
	struct replica_epoch is;
	natsStatus s = kvStore_Get(&entry, r->kv, token);
	if (s == NATS_NOT_FOUND)
		return NATS_OK;
	if (s != NATS_OK)
		return s;
	if (replica_epoch_get(kvEntry_Value(entry), (size_t)kvEntry_ValueLen(entry), &is)) {
		struct roster_row *row = row_of(r, node);
		row->is = is;
		row->there = true;
		sighting_note(&row->seen, kvEntry_Revision(entry), now_ms);
	}
	kvEntry_Destroy(entry);
	return NATS_OK;
}

natsStatus roster_read(struct roster *r, int64_t now_ms)
{
	kvKeysList keys = {0};
	char node[REPLICA_NODE_MAX + 1], token[REPLICA_TOKEN];
	kvWatchOptions o;
	kvWatchOptions_Init(&o);
	o.Timeout = r->nats->wait_ms; /* without one it may wait for ever */
	natsStatus s = open_bucket(r);
	if (s == NATS_OK)
		s = kvStore_Keys(&keys, r->kv, &o);
	/* Those that are known are asked for one by one all the same. */
	if (s == NATS_NOT_FOUND || (s == NATS_TIMEOUT && r->n > 0))
		s = NATS_OK;
	for (int i = 0; s == NATS_OK && i < r->n; i++)
		r->row[i].there = false;
	for (int i = 0; s == NATS_OK && i < keys.Count; i++)
		if (replica_token_parse(keys.Keys[i], node))
			s = read_row(r, keys.Keys[i], node, now_ms);
	/* One that is written meanwhile may be missing among the keys. */
	for (int i = 0; s == NATS_OK && i < r->n; i++)
		if (!r->row[i].there)
			s = read_row(r, replica_token(r->row[i].node, token), r->row[i].node,
				     now_ms);
	kvKeysList_Destroy(&keys);
	return s;
}

natsStatus roster_write(struct roster *r, const char *node, const struct replica_epoch *is,
			uint64_t revision, uint64_t *written)
{
	char token[REPLICA_TOKEN];
	struct buf b = {0};
	replica_epoch_put(&b, is);
	replica_token(node, token);
	natsStatus s =
		revision == 0 ? kvStore_CreateString(written, r->kv, token, buf_cstr(&b))
			      : kvStore_UpdateString(written, r->kv, token, buf_cstr(&b), revision);
	buf_fini(&b);
	return s;
}

static natsStatus is_ours(struct roster *r, const char *key, const char *token, bool *ours)
{
	kvEntry *entry = NULL;
	natsStatus s = kvStore_Get(&entry, r->kv, key);
	*ours = s == NATS_OK && (size_t)kvEntry_ValueLen(entry) == strlen(token) &&
		memcmp(kvEntry_Value(entry), token, strlen(token)) == 0;
	kvEntry_Destroy(entry);
	return s;
}

natsStatus roster_number(struct roster *r, const char *node, unsigned *number)
{
	char token[REPLICA_TOKEN], key[KEY];
	bool ours = false;
	replica_token(node, token);
	for (*number = 1; *number < IDENT_NODES; ++*number) {
		snprintf(key, sizeof key, "number.%u", *number);
		natsStatus s = is_ours(r, key, token, &ours);
		if (s == NATS_NOT_FOUND)
			s = kvStore_CreateString(NULL, r->kv, key, token);
		else if (s == NATS_OK && !ours)
			continue;
		return s;
	}
	return NATS_ILLEGAL_STATE;
}
