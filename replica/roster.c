/* SPDX-License-Identifier: ISC */
#include "replica/roster.h"

#include "base/clock.h"
#include "base/ident.h"
#include "base/mem.h"
#include "replica/stream_form.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY = 32, SETTLE_MS = 100, AGREE_MS = 60000 };

#define STREAM "KV_" REPLICA_BUCKET
#define KEYS "$KV." REPLICA_BUCKET "."

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

void roster_disconnect(struct roster *r)
{
	kvStore_Destroy(r->kv);
	r->kv = NULL;
}

static natsStatus open_bucket(struct roster *r)
{
	if (nats_setup_ends(r->nats))
		return NATS_DRAINING;
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

/* As the leader has it: another server may be behind. */
static natsStatus last_of(struct roster *r, const char *key, natsMsg **m)
{
	char *subject = mem_printf(KEYS "%s", key);
	natsStatus s = nats_setup_ends(r->nats)
			       ? NATS_DRAINING
			       : js_GetLastMsg(m, r->nats->js, STREAM, subject, NULL, NULL);
	free(subject);
	return s;
}

static natsStatus read_row(struct roster *r, const char *token, const char *node, int64_t now_ms)
{
	natsMsg *m = NULL;
	struct replica_epoch is;
	natsStatus s = last_of(r, token, &m);
	if (s == NATS_NOT_FOUND)
		return NATS_OK;
	if (s != NATS_OK)
		return s;
	if (replica_epoch_get(natsMsg_GetData(m), (size_t)natsMsg_GetDataLength(m), &is)) {
		struct roster_row *row = row_of(r, node);
		row->is = is;
		row->there = true;
		if (row->seen.revision != natsMsg_GetSequence(m))
			row->ahead_ms = is.seen_ms - clock_wall_ms();
		sighting_note(&row->seen, natsMsg_GetSequence(m), now_ms);
	}
	natsMsg_Destroy(m);
	return NATS_OK;
}

/* Which keys there are, without the consumer that a watcher is: the servers would have to agree on each. */
static natsStatus list_keys(struct roster *r, jsStreamInfo **info)
{
	jsOptions o;
	jsOptions_Init(&o);
	o.Stream.Info.SubjectsFilter = KEYS "*";
	return js_GetStreamInfo(info, r->nats->js, STREAM, &o, NULL);
}

/* The server's answer stays as it is, for whoever frees it. */
static natsStatus mend_bucket(struct roster *r, const jsStreamInfo *info)
{
	jsStreamConfig to = *info->Config;
	r->mended = !stream_form_keeps_rows(&to);
	if (!r->mended)
		return NATS_OK;
	stream_form_mend_rows(&to);
	return js_UpdateStream(NULL, r->nats->js, &to, NULL, NULL);
}

static natsStatus read_rows(struct roster *r, const jsStreamStateSubjects *keys, int64_t now_ms)
{
	char node[REPLICA_NODE_MAX + 1];
	natsStatus s = NATS_OK;
	for (int i = 0; i < r->n; i++)
		r->row[i].there = false;
	for (int i = 0; keys && s == NATS_OK && i < keys->Count; i++) {
		const char *token = keys->List[i].Subject + strlen(KEYS);
		if (replica_token_parse(token, node))
			s = read_row(r, token, node, now_ms);
	}
	return s;
}

/* All rows are lost with it: by which revisions these were seen says nothing of those that come. */
static natsStatus open_bucket_anew(struct roster *r)
{
	roster_disconnect(r);
	for (int i = 0; i < r->n; i++) {
		r->row[i].seen = (struct sighting){.revision = 0};
		r->row[i].confirmed = r->row[i].left = 0;
	}
	return open_bucket(r);
}

natsStatus roster_read(struct roster *r, int64_t now_ms)
{
	jsStreamInfo *info = NULL;
	natsStatus s = open_bucket(r);
	if (s == NATS_OK)
		s = list_keys(r, &info);
	if (s == NATS_NOT_FOUND)
		s = open_bucket_anew(r);
	if (s == NATS_OK && !info)
		s = list_keys(r, &info);
	if (s == NATS_OK)
		s = mend_bucket(r, info);
	if (s == NATS_OK)
		s = read_rows(r, info->State.Subjects, now_ms);
	jsStreamInfo_Destroy(info);
	return s;
}

int64_t roster_ahead_ms(const struct roster_row *r)
{
	bool known = r->seen.gap_ms >= 0 && r->is.seen_ms > 0;
	return known && llabs(r->ahead_ms) > AGREE_MS + r->seen.gap_ms ? r->ahead_ms : 0;
}

natsStatus roster_write(struct roster *r, const char *node, const struct replica_epoch *is,
			uint64_t revision, uint64_t *written)
{
	char token[REPLICA_TOKEN];
	struct buf b = {0};
	if (nats_setup_ends(r->nats))
		return NATS_DRAINING;
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
	natsMsg *m = NULL;
	natsStatus s = last_of(r, key, &m);
	*ours = s == NATS_OK && (size_t)natsMsg_GetDataLength(m) == strlen(token) &&
		memcmp(natsMsg_GetData(m), token, strlen(token)) == 0;
	natsMsg_Destroy(m);
	return s;
}

/* Another may have been granted it too: the later one's name stays. */
static natsStatus take_number(struct roster *r, const char *key, const char *token, bool *ours)
{
	natsStatus s = kvStore_CreateString(NULL, r->kv, key, token);
	if (s != NATS_OK)
		return s;
	usleep(SETTLE_MS * 1000);
	return is_ours(r, key, token, ours);
}

/* Those that other nodes have. */
struct numbers {
	struct roster *roster;
	natsStatus status;
	bool taken[IDENT_NODES];
};

static void note_claimed(void *owner, const char *node)
{
	struct numbers *n = owner;
	struct replica_epoch claim;
	bool there = false;
	if (n->status != NATS_OK || roster_find(n->roster, node))
		return;
	n->status = nats_setup_claim(n->roster->nats, node, &claim, &there);
	assert(!there || claim.number < IDENT_NODES);
	if (there)
		n->taken[claim.number] = true;
}

/* Whatever keys the bucket has lost, and rows: who works has it from its row, which it writes anew, and goes on with its number. */
static natsStatus find_taken(struct numbers *n)
{
	const struct roster *r = n->roster;
	for (int i = 0; i < r->n; i++) {
		assert(!r->row[i].there || r->row[i].is.number < IDENT_NODES);
		if (r->row[i].there)
			n->taken[r->row[i].is.number] = true;
	}
	return nats_setup_nodes(r->nats, note_claimed, n) ? n->status : NATS_TIMEOUT;
}

natsStatus roster_number(struct roster *r, const char *node, unsigned *number)
{
	char token[REPLICA_TOKEN], key[KEY];
	struct numbers others = {.roster = r, .status = NATS_OK};
	bool ours = false;
	replica_token(node, token);
	assert(!roster_find(r, node));
	natsStatus known = find_taken(&others);
	if (known != NATS_OK)
		return known;
	for (*number = 1; *number < IDENT_NODES; ++*number) {
		if (others.taken[*number])
			continue;
		snprintf(key, sizeof key, "number.%u", *number);
		natsStatus s = is_ours(r, key, token, &ours);
		if (s == NATS_NOT_FOUND)
			s = take_number(r, key, token, &ours);
		if (s != NATS_OK || ours)
			return s;
	}
	return NATS_ILLEGAL_STATE;
}
