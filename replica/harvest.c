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
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	BATCH_MOST = 256,
	BATCH_LEAST = 8,
	BATCH_BYTES = 8 << 20,
	FETCH_MS = 2000,
	IDLE_NS_PER_S = 1000000000,
	IDLE_S = 60,
	EPOCHS_MOST =
		8 /* that a stream holds something of: a start purges those before it, once its copy is complete */
};

/* As an end: behind it there is nothing, and the server takes the number that follows for none. */
#define ALL UINT64_MAX

#define KEPT "stream"
#define ORIGIN "origin"
#define ORIGIN_TEXT "life=%016" PRIx64 " epoch=%" PRIu64 " end=%" PRIu64 "\n"
#define ORIGIN_SCAN "life=%16" SCNx64 " epoch=%" SCNu64 " end=%" SCNu64
#define READER "adoption"
#define HOLLOW "stream: NATS has lost where it begins, and what is left counts as nothing"

/* A question that is denied gets no answer: the server says so in a message of its own. */
static bool say_failure(const struct nats_setup *n, struct buf *error, const char *what,
			natsStatus s)
{
	char denial[NATS_SETUP_DENIAL];
	bool denied = s == NATS_TIMEOUT && nats_setup_denied(n, denial);
	buf_printf(error, "%s: %s", what, denied ? denial : natsStatus_GetText(s));
	return false;
}

static bool failed_here(struct buf *error, const char *what)
{
	buf_printf(error, "%s: %s", what, strerror(errno));
	return false;
}

/* So much of a stream was read, and is kept there. */
struct reading {
	int file;
	uint64_t at;	   /* bytes there */
	uint64_t last;	   /* the highest sequence number */
	uint64_t messages; /* spares among them */
};

/* A spare only keeps room. */
static bool is_spare(const natsMsg *m)
{
	const char *dot = strrchr(natsMsg_GetSubject(m), '.');
	return dot && strcmp(dot, REPLICA_SPARE_END) == 0;
}

/* 0: the library does not know. */
static uint64_t sequence_of(natsMsg *m)
{
	jsMsgMetaData *is = NULL;
	uint64_t sequence = natsMsg_GetMetaData(&is, m) == NATS_OK ? is->Sequence.Stream : 0;
	jsMsgMetaData_Destroy(is);
	return sequence;
}

/* A message that was handed out before counts once: another server, which hands them out when that one has died, begins behind what was
 * acknowledged as far as it knows. */
static bool keep_message(struct reading *r, natsMsg *m)
{
	uint64_t sequence = sequence_of(m);
	if (sequence <= r->last)
		return true;
	r->last = sequence;
	r->messages++;
	return is_spare(m) ||
	       rebuild_keep(r->file, &r->at, natsMsg_GetData(m), (size_t)natsMsg_GetDataLength(m));
}

static bool keep_messages(struct reading *r, natsMsgList *list)
{
	bool ok = true;
	for (int i = 0; ok && i < list->Count; i++) {
		ok = keep_message(r, list->Msgs[i]);
		if (ok && i == list->Count - 1)
			natsMsg_Ack(list->Msgs[i], NULL);
	}
	natsMsgList_Destroy(list);
	return ok;
}

/* The messages of a batch are in memory together. */
static int batch_of(uint64_t bytes, int messages)
{
	uint64_t n = BATCH_BYTES * (uint64_t)messages / (bytes + 1);
	return n < BATCH_LEAST ? BATCH_LEAST : n > BATCH_MOST ? BATCH_MOST : (int)n;
}

/* Whoever hands them out may be behind whoever has told how many there are. */
static bool fetch_all(struct harvest *h, const struct nats_setup *n, natsSubscription *sub,
		      struct reading *r, struct buf *error)
{
	int batch = BATCH_LEAST;
	while (r->messages < h->messages) {
		natsMsgList list = {0};
		uint64_t before = r->at;
		if (atomic_load(h->interrupt))
			return false;
		natsStatus s = natsSubscription_Fetch(&list, sub, batch, FETCH_MS, NULL);
		if (s != NATS_OK)
			return say_failure(n, error, "fetch", s);
		int count = list.Count;
		if (!keep_messages(r, &list))
			return failed_here(error, KEPT);
		batch = batch_of(r->at - before, count);
	}
	return true;
}

/* No subject is asked for: the stream's own are those of the new epoch, under which nothing lies. */
static natsStatus subscribe_reader(struct nats_setup *n, const char *stream, natsSubscription **sub)
{
	jsConsumerConfig c;
	jsSubOptions o;
	jsConsumerConfig_Init(&c);
	c.Durable = READER;
	c.DeliverPolicy = js_DeliverAll;
	c.AckPolicy = js_AckAll;
	c.MaxAckPending = 2 * BATCH_MOST;
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

static bool find_end(struct harvest *h, struct nats_setup *n, const struct nats_stream *was,
		     struct buf *error)
{
	struct nats_stream is;
	natsStatus s = nats_setup_look_settled(n, was, &is);
	if (s != NATS_OK)
		return say_failure(n, error, "stream", s);
	h->end = is.last;
	h->messages = is.messages;
	return true;
}

static bool read_stream(struct harvest *h, struct nats_setup *n, const char *stream,
			struct reading *r, struct buf *error)
{
	natsSubscription *sub = NULL;
	natsStatus s = subscribe_reader(n, stream, &sub);
	bool ok =
		s == NATS_OK ? fetch_all(h, n, sub, r, error) : say_failure(n, error, "reader", s);
	natsSubscription_Destroy(sub);
	js_DeleteConsumer(n->js, stream, READER, NULL, NULL);
	return ok;
}

static bool read_into(struct harvest *h, struct nats_setup *n, int folder, struct buf *error)
{
	struct reading r = {.file = disk_open(folder, KEPT, O_RDWR | O_CREAT | O_TRUNC)};
	if (r.file < 0)
		return failed_here(error, KEPT);
	char *stream = replica_stream(h->node);
	bool ok = h->messages == 0 || read_stream(h, n, stream, &r, error);
	if (ok && !rebuild_run(folder, r.file, r.at, h->row->since, &h->hollow))
		ok = failed_here(error, "making it again");
	if (ok && h->hollow && !h->insists) {
		buf_puts(error, HOLLOW);
		ok = false;
	}
	disk_close(r.file);
	disk_unlink(folder, KEPT);
	free(stream);
	return ok;
}

/* The origin is written last. */
static bool write_origin(const struct harvest *h, int folder)
{
	char text[100];
	int n = snprintf(text, sizeof text, ORIGIN_TEXT, h->row->life, h->row->epoch, h->end);
	struct iovec v = {.iov_base = text, .iov_len = (size_t)n};
	int fd = disk_open(folder, ORIGIN, O_WRONLY | O_CREAT | O_TRUNC);
	bool ok = fd >= 0 && disk_write(fd, &v, 1, 0) == 0 && disk_sync(fd) == 0 &&
		  disk_sync(folder) == 0;
	disk_close(fd);
	return ok;
}

static bool read_origin(struct harvest_origin *of, int folder)
{
	char text[100];
	int fd = disk_open(folder, ORIGIN, O_RDONLY);
	ssize_t n = fd >= 0 ? disk_read(fd, text, sizeof text - 1, 0) : -1;
	int error = n < 0 ? errno : ENOENT; /* not whole is not there */
	disk_close(fd);
	text[n > 0 ? n : 0] = '\0';
	bool whole = sscanf(text, ORIGIN_SCAN, &of->life, &of->epoch, &of->end) == 3;
	errno = error; /* sscanf() sets it to 0 where the text ends too soon */
	return whole;
}

bool harvest_origin(struct harvest_origin *of, const char *spool, const char *name)
{
	char *path = mem_printf("%s/%s", spool, name);
	int folder = disk_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
	bool ok = folder >= 0 && read_origin(of, folder);
	int error = errno;
	disk_close(folder);
	free(path);
	errno = error;
	return ok;
}

/* The folder was made of this very queue. */
static bool is_ours(const struct harvest *h, const struct harvest_origin *of)
{
	return of->life == h->row->life && of->epoch == h->row->epoch && of->end >= h->end;
}

static bool holds_queue(int folder)
{
	int fd = disk_open(folder, "format", O_RDONLY);
	disk_close(fd);
	return fd >= 0 || errno != ENOENT;
}

/* Whether it can be used as it is: what the stream had when it was made is all there is of it, if it has less by now. One that
 * is not whole is made again; one that can't be read for now, which is false and errno, stays. */
static bool judge_folder(struct harvest *h, bool *ours)
{
	struct harvest_origin of;
	char *path = mem_printf("%s/%s", h->conf->spool, h->folder);
	int folder = disk_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
	bool whole = folder >= 0 && read_origin(&of, folder);
	int error = whole ? 0 : errno;
	bool unread = !whole && error != ENOENT;
	*ours = whole && is_ours(h, &of);
	if (*ours)
		h->end = of.end;
	else if (folder >= 0 && !unread && holds_queue(folder))
		life_keep(h->conf->spool, h->folder, "it was made for another adoption");
	disk_close(folder);
	free(path);
	errno = error;
	return !unread;
}

bool harvest_remove_folder(const char *spool, const char *name)
{
	char *path = mem_printf("%s/%s", spool, name);
	int folder = disk_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
	bool ok = folder < 0 ? errno == ENOENT
			     : (disk_unlink(folder, ORIGIN) == 0 || errno == ENOENT) &&
				       disk_sync(folder) == 0;
	int error = errno;
	disk_close(folder);
	if (folder >= 0 && ok)
		life_remove(spool, name);
	free(path);
	errno = error;
	return ok;
}

static bool make_and_read(struct harvest *h, struct nats_setup *n, struct buf *error)
{
	char *path = mem_printf("%s/%s", h->conf->spool, h->folder);
	int folder = harvest_remove_folder(h->conf->spool, h->folder) &&
				     disk_make_folder(AT_FDCWD, path) == 0
			     ? disk_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY)
			     : -1;
	bool ok = folder >= 0 ? read_into(h, n, folder, error) : failed_here(error, path);
	if (ok && !write_origin(h, folder))
		ok = failed_here(error, ORIGIN);
	disk_close(folder);
	free(path);
	return ok;
}

/* From the first of these calls on nothing of the old epoch comes in. */
static bool read_all(struct harvest *h, struct nats_setup *n, struct buf *error)
{
	struct nats_stream is;
	natsStatus s = nats_setup_connect(n, NULL, NULL);
	if (s == NATS_OK)
		s = nats_setup_stream(n, h->row, &is);
	h->alone = s == NATS_OK && is.alone;
	if (s != NATS_OK)
		return say_failure(n, error, "stream", s);
	if (!find_end(h, n, &is, error))
		return false;
	bool ours;
	if (!judge_folder(h, &ours))
		return failed_here(error, h->folder);
	return ours || make_and_read(h, n, error);
}

/* With a connection of its own, so that what is large does not delay what renews our epoch. */
bool harvest_run(struct harvest *h, struct buf *error)
{
	struct nats_setup n;
	nats_setup_init(&n, h->conf, h->node);
	n.ends = h->interrupt;
	bool ok = read_all(h, &n, error);
	nats_setup_close(&n);
	nats_setup_fini(&n);
	return ok;
}

natsStatus harvest_bytes(struct nats_setup *n, const char *node, uint64_t *bytes)
{
	jsStreamInfo *info = NULL;
	char *stream = replica_stream(node);
	natsStatus s = nats_setup_ends(n) ? NATS_DRAINING
					  : js_GetStreamInfo(&info, n->js, stream, NULL, NULL);
	*bytes = s == NATS_OK ? info->State.Bytes : 0;
	jsStreamInfo_Destroy(info);
	free(stream);
	return s;
}

natsStatus harvest_say_claim(struct nats_setup *n, const char *node,
			     const struct replica_epoch *row)
{
	struct nats_setup of = *n; /* by the same connection */
	struct nats_stream is;
	of.node = (char *)node;
	of.wait_ms /= NATS_SETUP_BRIEFLY;
	return nats_setup_stream(&of, row, &is);
}

/* subjects: NULL: all. */
static void purge_stream(struct nats_setup *n, const char *node, const char *subjects, uint64_t end)
{
	char *stream = replica_stream(node);
	jsOptions o;
	jsOptions_Init(&o);
	o.Wait = n->wait_ms;
	o.Stream.Purge.Sequence = end + 1;
	o.Stream.Purge.Subject = subjects;
	js_PurgeStream(n->js, stream, &o, NULL);
	free(stream);
}

/* The number of the last that was read is not enough: a stream that has lost its tail gives its numbers again, to what the node
 * writes when it has begun anew. */
void harvest_discard(struct nats_setup *n, const char *node, const struct replica_epoch *row,
		     uint64_t end)
{
	uint64_t epoch = row->epoch > EPOCHS_MOST ? row->epoch - EPOCHS_MOST : 0;
	for (epoch = epoch > row->since ? epoch : row->since; epoch < row->epoch; epoch++) {
		char *subjects = replica_subjects(node, epoch);
		purge_stream(n, node, subjects, end);
		free(subjects);
	}
}

natsStatus harvest_retire(struct nats_setup *n, const char *node, const struct replica_epoch *row)
{
	uint64_t bytes = 0;
	natsStatus s = harvest_say_claim(n, node, row);
	if (s == NATS_OK)
		s = harvest_bytes(n, node, &bytes);
	if (s == NATS_OK && bytes > 0)
		purge_stream(n, node, NULL, ALL);
	return s;
}

void harvest_remove(struct nats_setup *n, const char *node)
{
	char *stream = replica_stream(node);
	js_DeleteStream(n->js, stream, NULL, NULL);
	free(stream);
}
