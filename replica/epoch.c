/* SPDX-License-Identifier: ISC */
#include "replica/epoch.h"

#include "base/clock.h"
#include "replica/format.h"

#include <stdio.h>
#include <string.h>

natsStatus epoch_bucket(struct nats_setup *n, kvStore **kv)
{
	natsStatus s = js_KeyValue(kv, n->js, REPLICA_BUCKET);
	if (s != NATS_NOT_FOUND)
		return s;
	kvConfig c;
	kvConfig_Init(&c);
	c.Bucket = REPLICA_BUCKET;
	c.History = 1;
	c.StorageType = js_FileStorage;
	c.Replicas = (int)n->conf->nats_replicas;
	return js_CreateKeyValue(kv, n->js, &c);
}

static natsStatus put(kvStore *kv, const struct nats_setup *n, uint64_t epoch, uint64_t revision)
{
	struct replica_epoch e = {.epoch = epoch, .state = REPLICA_UP, .seen_ms = clock_wall_ms()};
	char token[REPLICA_TOKEN];
	struct buf b = {0};
	snprintf(e.by, sizeof e.by, "%s", n->node);
	replica_epoch_put(&b, &e);
	natsStatus s = revision == 0 ? kvStore_CreateString(NULL, kv, replica_token(n->node, token),
							    buf_cstr(&b))
				     : kvStore_UpdateString(NULL, kv, replica_token(n->node, token),
							    buf_cstr(&b), revision);
	buf_fini(&b);
	return s;
}

static natsStatus get(kvStore *kv, const struct nats_setup *n, struct replica_epoch *e,
		      uint64_t *revision)
{
	kvEntry *entry = NULL;
	char token[REPLICA_TOKEN];
	memset(e, 0, sizeof *e);
	*revision = 0;
	natsStatus s = kvStore_Get(&entry, kv, replica_token(n->node, token));
	if (s == NATS_NOT_FOUND)
		return NATS_OK;
	if (s != NATS_OK)
		return s;
	*revision = kvEntry_Revision(entry);
	if (!replica_epoch_get(kvEntry_Value(entry), (size_t)kvEntry_ValueLen(entry), e))
		s = NATS_PROTOCOL_ERROR;
	kvEntry_Destroy(entry);
	return s;
}

natsStatus epoch_take(struct nats_setup *n, uint64_t *epoch, bool *fenced)
{
	struct replica_epoch e;
	uint64_t revision;
	kvStore *kv = NULL;
	natsStatus s = epoch_bucket(n, &kv);
	if (s == NATS_OK)
		s = get(kv, n, &e, &revision);
	*fenced = s == NATS_OK && *epoch > 0 &&
		  (e.epoch > *epoch || (e.epoch == *epoch && e.state != REPLICA_UP));
	/* A bucket that was lost has none, or an older one: ours stands, and is said again. */
	if (s == NATS_OK && !*fenced && (*epoch == 0 || e.epoch < *epoch)) {
		if (*epoch == 0)
			*epoch = e.epoch + 1;
		s = put(kv, n, *epoch, revision);
		if (s != NATS_OK)
			*epoch = 0;
	}
	kvStore_Destroy(kv);
	return s;
}
