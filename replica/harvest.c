/* SPDX-License-Identifier: ISC */
#include "replica/harvest.h"

#include "base/mem.h"
#include "replica/format.h"
#include "replica/life.h"
#include "replica/nats_setup.h"
#include "replica/rebuild.h"
#include "spool/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 64, FETCH_MS = 2000, IDLE_NS_PER_S = 1000000000, IDLE_S = 60 };

#define KEPT "stream"
#define READER "adoption"

static bool failed(struct buf *error, const char *what, natsStatus s)
{
	buf_printf(error, "%s: %s", what, natsStatus_GetText(s));
	return false;
}

static bool failed_here(struct buf *error, const char *what)
{
	buf_printf(error, "%s: %s", what, strerror(errno));
	return false;
}

/* The end of the stream: how much there is after this message. */
static uint64_t pending(natsMsg *msg)
{
	jsMsgMetaData *meta = NULL;
	uint64_t n = 0;
	if (natsMsg_GetMetaData(&meta, msg) == NATS_OK)
		n = meta->NumPending;
	jsMsgMetaData_Destroy(meta);
	return n;
}

static bool keep(natsMsgList *list, int file, uint64_t *at, uint64_t *left)
{
	bool ok = true;
	for (int i = 0; ok && i < list->Count; i++) {
		natsMsg *m = list->Msgs[i];
		ok = rebuild_keep(file, at, natsMsg_GetData(m), (size_t)natsMsg_GetDataLength(m));
		*left = pending(m);
		if (ok && i == list->Count - 1)
			natsMsg_Ack(m, NULL);
	}
	natsMsgList_Destroy(list);
	return ok;
}

static bool fetch_all(struct harvest *h, natsSubscription *sub, int file, uint64_t *at,
		      struct buf *error)
{
	for (uint64_t left = 1; left > 0;) {
		natsMsgList list = {0};
		if (atomic_load(h->interrupt))
			return false;
		natsStatus s = natsSubscription_Fetch(&list, sub, BATCH, FETCH_MS, NULL);
		if (s != NATS_OK)
			return failed(error, "fetch", s);
		if (!keep(&list, file, at, &left))
			return failed_here(error, KEPT);
	}
	return true;
}

/* No subject is asked for: the stream's own are those of the new epoch, under which nothing lies. */
static natsStatus subscribe(struct nats_setup *n, const char *stream, natsSubscription **sub)
{
	jsConsumerConfig c;
	jsSubOptions o;
	jsConsumerConfig_Init(&c);
	c.Durable = READER;
	c.DeliverPolicy = js_DeliverAll;
	c.AckPolicy = js_AckAll;
	c.MaxAckPending = 2 * BATCH;
	c.InactiveThreshold = (int64_t)IDLE_S * IDLE_NS_PER_S;
	js_DeleteConsumer(n->js, stream, READER, NULL, NULL);
	natsStatus s = js_AddConsumer(NULL, n->js, stream, &c, NULL, NULL);
	jsSubOptions_Init(&o);
	o.Stream = stream;
	o.Consumer = READER;
	if (s == NATS_OK)
		s = js_PullSubscribe(sub, n->js, "", READER, NULL, &o, NULL);
	return s;
}

static bool is_empty(struct nats_setup *n, const char *stream)
{
	jsStreamInfo *info = NULL;
	bool empty = js_GetStreamInfo(&info, n->js, stream, NULL, NULL) == NATS_OK &&
		     info->State.Msgs == 0;
	jsStreamInfo_Destroy(info);
	return empty;
}

static bool read_stream(struct harvest *h, struct nats_setup *n, int file, uint64_t *at,
			struct buf *error)
{
	natsSubscription *sub = NULL;
	bool fresh, ok = false;
	char *stream = replica_stream(h->node);
	natsStatus s = nats_setup_stream(n, h->epoch, &fresh);
	if (s != NATS_OK) {
		failed(error, "stream", s);
	} else if (fresh || is_empty(n, stream)) {
		ok = true;
	} else if ((s = subscribe(n, stream, &sub)) != NATS_OK) {
		failed(error, "reader", s);
	} else {
		ok = fetch_all(h, sub, file, at, error);
	}
	natsSubscription_Destroy(sub);
	free(stream);
	return ok;
}

static bool read_into(struct harvest *h, struct nats_setup *n, int folder, struct buf *error)
{
	uint64_t end = 0;
	int file = disk_open(folder, KEPT, O_RDWR | O_CREAT | O_TRUNC);
	if (file < 0)
		return failed_here(error, KEPT);
	bool ok = read_stream(h, n, file, &end, error);
	if (ok && !rebuild_run(folder, file, end))
		ok = failed_here(error, "making it again");
	disk_close(file);
	disk_unlink(folder, KEPT);
	return ok;
}

/* The file "format" is written last. */
static bool is_whole(const struct harvest *h)
{
	char *path = mem_printf("%s/%s/format", h->conf->spool, h->folder);
	bool whole = access(path, F_OK) == 0;
	free(path);
	return whole;
}

static bool make_and_read(struct harvest *h, struct nats_setup *n, struct buf *error)
{
	char *path = mem_printf("%s/%s", h->conf->spool, h->folder);
	life_remove(h->conf->spool, h->folder);
	int folder = disk_make_folder(AT_FDCWD, path) == 0
			     ? disk_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY)
			     : -1;
	bool ok = folder >= 0 ? read_into(h, n, folder, error) : failed_here(error, path);
	if (folder >= 0)
		disk_close(folder);
	free(path);
	return ok;
}

/* With a connection of its own, so that what is large does not delay what renews our epoch. */
static bool with_connection(struct harvest *h, struct buf *error,
			    bool (*what)(struct harvest *, struct nats_setup *, struct buf *))
{
	struct nats_setup n;
	nats_setup_init(&n, h->conf, h->node);
	natsStatus s = nats_setup_connect(&n, NULL, NULL, NULL);
	bool ok = s == NATS_OK ? what(h, &n, error) : failed(error, "connection", s);
	nats_setup_close(&n);
	nats_setup_fini(&n);
	return ok;
}

bool harvest_run(struct harvest *h, struct buf *error)
{
	return is_whole(h) || with_connection(h, error, make_and_read);
}

static bool discard(struct harvest *h, struct nats_setup *n, struct buf *error)
{
	char *stream = replica_stream(h->node);
	natsStatus s = js_DeleteStream(n->js, stream, NULL, NULL);
	free(stream);
	return s == NATS_OK || s == NATS_NOT_FOUND || failed(error, "stream", s);
}

bool harvest_discard(struct harvest *h, struct buf *error)
{
	return with_connection(h, error, discard);
}
