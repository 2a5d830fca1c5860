/* SPDX-License-Identifier: ISC */
#include "replica/rebuild.h"

#include "base/ident.h"
#include "base/mem.h"
#include "replica/format.h"
#include "spool/bytes.h"
#include "spool/checkpoint.h"
#include "spool/disk.h"
#include "spool/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LENGTH = 4,   /* bytes before each message in the file */
	TYPE_AT = 2,  /* of a record, spool/README.md */
	FLAGS_AT = 3, /* likewise */
	GARBAGE = 1,
	PART_NAME = IDENT_TEXT + 8,
};

#define FORMAT_TEXT "sluice spool 2\n"

struct ended { /* a large file, of which a LARGE_END was read */
	uint64_t id, size;
};

struct sealed { /* where a segment ends */
	struct replica_head head;
	uint8_t record[RECORD_HEAD];
};

struct rebuild {
	int folder, log, large;
	struct ended *ended;
	size_t nended;
	struct sealed *sealed;
	size_t nsealed;
	uint64_t since;	   /* nothing older counts */
	uint64_t complete; /* the last epoch that says it is; 0: none */
	uint64_t epoch;	   /* that is being read, */
	uint64_t begun;	   /* and its first segment */
	bool headless;	   /* one that is not complete lacks its BEGIN */
	struct buf checkpoint;
};

bool rebuild_keep(int file, uint64_t *at, const void *message, size_t len)
{
	uint8_t length[LENGTH];
	put_le(length, len, LENGTH);
	struct iovec v[2] = {{.iov_base = length, .iov_len = LENGTH},
			     {.iov_base = (void *)message, .iov_len = len}};
	if (disk_write(file, v, 2, *at) != 0)
		return false;
	*at += LENGTH + len;
	return true;
}

/* A checkpoint names what is skipped; without it all is read. */
static bool write_file(int folder, const char *name, const void *bytes, size_t len)
{
	struct iovec v = {.iov_base = (void *)bytes, .iov_len = len};
	int fd = disk_open(folder, name, O_WRONLY | O_CREAT | O_TRUNC);
	bool ok = fd >= 0 && disk_write(fd, &v, 1, 0) == 0 && disk_sync(fd) == 0;
	disk_close(fd);
	return ok;
}

static bool write_at(int fd, const struct replica_head *h, const uint8_t *payload)
{
	uint64_t bytes;
	int64_t changed_ms;
	struct iovec v = {.iov_base = (void *)payload, .iov_len = h->length};
	if (disk_size(fd, &bytes, &changed_ms) != 0)
		return false;
	if (h->type == REPLICA_LOG && bytes < h->size && disk_truncate(fd, h->size) != 0)
		return false;
	return disk_write(fd, &v, 1, h->offset) == 0;
}

static bool put_log(struct rebuild *r, const struct replica_head *h, const uint8_t *payload)
{
	char name[SEGMENT_NAME];
	int fd = disk_open(r->log, segment_name(h->of, name), O_RDWR | O_CREAT);
	bool ok = fd >= 0 && write_at(fd, h, payload);
	disk_close(fd);
	return ok;
}

static bool is_end(const struct replica_head *h, const uint8_t *payload)
{
	return h->length == RECORD_HEAD && payload[TYPE_AT] == RECORD_END;
}

/* Put when all is read: what was withdrawn behind it may come in later, if the connection broke in between. */
static void keep_end(struct rebuild *r, const struct replica_head *h, const uint8_t *payload)
{
	r->sealed = mem_realloc(r->sealed, (r->nsealed + 1) * sizeof *r->sealed);
	struct sealed *s = &r->sealed[r->nsealed++];
	s->head = *h;
	memcpy(s->record, payload, sizeof s->record);
}

static bool put_ends(struct rebuild *r)
{
	bool ok = true;
	for (size_t i = 0; i < r->nsealed && ok; i++)
		ok = put_log(r, &r->sealed[i].head, r->sealed[i].record);
	return ok;
}

static bool mark_garbage(int fd, uint64_t record)
{
	uint8_t flags;
	struct iovec v = {.iov_base = &flags, .iov_len = 1};
	ssize_t n = disk_read(fd, &flags, 1, record + FLAGS_AT);
	if (n != 1)
		return n == 0; /* it was purged with its successor */
	flags |= GARBAGE;
	return disk_write(fd, &v, 1, record + FLAGS_AT) == 0;
}

static bool put_marks(struct rebuild *r, const struct replica_head *h, const uint8_t *payload)
{
	char name[SEGMENT_NAME];
	int fd = disk_open(r->log, segment_name(h->of, name), O_RDWR);
	bool ok = fd >= 0 || errno == ENOENT;
	for (uint32_t i = 0; fd >= 0 && ok && i + 4 <= h->length; i += 4)
		ok = mark_garbage(fd, get_le(payload + i, 4));
	disk_close(fd);
	return ok;
}

static const char *part_name(uint64_t id, char name[PART_NAME])
{
	char text[IDENT_TEXT];
	snprintf(name, PART_NAME, "%s.part", ident_text(id, text));
	return name;
}

/* A piece may come behind the end, if the connection broke in between: none is left out, and the file has its name when all is read. */
static bool put_large(struct rebuild *r, const struct replica_head *h, const uint8_t *payload)
{
	char part[PART_NAME];
	if (h->type == REPLICA_LARGE_END) {
		r->ended = mem_realloc(r->ended, (r->nended + 1) * sizeof *r->ended);
		r->ended[r->nended++] = (struct ended){.id = h->of, .size = h->size};
		return true;
	}
	int fd = disk_open(r->large, part_name(h->of, part), O_RDWR | O_CREAT);
	bool ok = fd >= 0 && write_at(fd, h, payload);
	disk_close(fd);
	return ok;
}

static bool name_if_whole(const struct rebuild *r, const struct ended *e)
{
	char name[IDENT_TEXT], part[PART_NAME];
	uint64_t bytes = 0;
	int64_t changed_ms;
	int fd = disk_open(r->large, part_name(e->id, part), O_RDONLY);
	if (fd < 0)
		return errno == ENOENT; /* it has its name, or all of it was purged */
	bool ok = disk_size(fd, &bytes, &changed_ms) == 0;
	disk_close(fd);
	return ok &&
	       (bytes != e->size || disk_rename(r->large, part, ident_text(e->id, name)) == 0);
}

static bool name_whole_files(const struct rebuild *r)
{
	bool ok = true;
	for (size_t i = 0; i < r->nended && ok; i++)
		ok = name_if_whole(r, &r->ended[i]);
	return ok;
}

static bool put_checkpoint(struct rebuild *r, const struct replica_head *h, const uint8_t *payload)
{
	if (h->epoch != r->complete)
		return true;
	buf_clear(&r->checkpoint);
	buf_append(&r->checkpoint, payload, h->length);
	return true;
}

/* Of an epoch that did not come to its COMPLETE only what is new, and what it adds. */
static bool is_counted(const struct rebuild *r, const struct replica_head *h)
{
	if (h->epoch <= r->complete)
		return h->epoch == r->complete;
	return (h->type != REPLICA_LOG && h->type != REPLICA_MARKS) || h->of >= r->begun;
}

static bool apply_message(struct rebuild *r, const struct replica_head *h, const uint8_t *payload)
{
	if (h->epoch != r->epoch) {
		r->epoch = h->epoch;
		r->begun = UINT64_MAX;
		r->headless |= h->epoch > r->complete && h->type != REPLICA_BEGIN;
	}
	if (!is_counted(r, h))
		return true;
	switch (h->type) {
	case REPLICA_BEGIN:
		r->begun = h->of;
		return true;
	case REPLICA_LOG:
		if (is_end(h, payload))
			keep_end(r, h, payload);
		return put_log(r, h, payload);
	case REPLICA_MARKS:
		return put_marks(r, h, payload);
	case REPLICA_LARGE:
	case REPLICA_LARGE_END:
		return put_large(r, h, payload);
	case REPLICA_COMPLETE:
	case REPLICA_CHECKPOINT:
		return put_checkpoint(r, h, payload);
	case REPLICA_BEAT:
	case REPLICA_SPARE:
		break;
	}
	return true;
}

static bool find_complete(struct rebuild *r, const struct replica_head *h, const uint8_t *payload)
{
	(void)payload;
	bool says = h->type == REPLICA_COMPLETE || h->type == REPLICA_CHECKPOINT;
	if (says && h->epoch > r->complete)
		r->complete = h->epoch;
	return true;
}

static bool walk_messages(struct rebuild *r, int file, uint64_t end,
			  bool (*with)(struct rebuild *, const struct replica_head *,
				       const uint8_t *))
{
	uint8_t length[LENGTH];
	uint8_t *message = NULL;
	bool ok = true;
	for (uint64_t at = 0; ok && at < end;) {
		struct replica_head h;
		const uint8_t *payload;
		ok = disk_read(file, length, LENGTH, at) == LENGTH;
		size_t len = ok ? get_le(length, LENGTH) : 0;
		message = mem_realloc(message, len + 1);
		ok = ok && disk_read(file, message, len, at + LENGTH) == (ssize_t)len;
		if (ok && replica_message_get(message, len, &h, &payload) && h.epoch >= r->since)
			ok = with(r, &h, payload);
		at += LENGTH + len;
	}
	free(message);
	return ok;
}

/* A segment that was being removed says nothing any more; the dead that it names may have gone before. */
static void remove_gone(struct rebuild *r)
{
	struct checkpoint_row *row = NULL;
	size_t n = 0;
	char name[SEGMENT_NAME];
	if (checkpoint_read(r->log, &row, &n))
		for (size_t i = 0; i < n; i++)
			if (row[i].gone)
				disk_unlink(r->log, segment_name(row[i].seq, name));
	free(row);
}

struct syncing {
	int folder;
	bool ok;
};

static void finish_file(void *owner, const char *name)
{
	struct syncing *s = owner;
	const char *dot = strrchr(name, '.');
	if (dot && strcmp(dot, ".part") == 0) {
		disk_unlink(s->folder, name);
		return;
	}
	int fd = disk_open(s->folder, name, O_RDONLY);
	s->ok &= fd >= 0 && disk_sync(fd) == 0;
	disk_close(fd);
}

static bool finish_folder(int folder)
{
	struct syncing s = {.folder = folder, .ok = true};
	return disk_each(folder, finish_file, &s) == 0 && s.ok && disk_sync(folder) == 0;
}

static int make_folder(int folder, const char *name)
{
	return disk_make_folder(folder, name) == 0 ? disk_open(folder, name, O_RDONLY | O_DIRECTORY)
						   : -1;
}

static bool build_folder(struct rebuild *r, int file, uint64_t end)
{
	if (!walk_messages(r, file, end, find_complete) ||
	    !walk_messages(r, file, end, apply_message) || !put_ends(r))
		return false;
	if (buf_len(&r->checkpoint) > 0 &&
	    !write_file(r->log, "checkpoint", buf_data(&r->checkpoint), buf_len(&r->checkpoint)))
		return false;
	remove_gone(r);
	return name_whole_files(r) && finish_folder(r->log) && finish_folder(r->large) &&
	       write_file(r->folder, "format", FORMAT_TEXT, strlen(FORMAT_TEXT)) &&
	       disk_sync(r->folder) == 0;
}

bool rebuild_run(int folder, int file, uint64_t end, uint64_t since, bool *hollow)
{
	struct rebuild r = {.folder = folder, .since = since, .begun = UINT64_MAX};
	r.log = make_folder(folder, "log");
	r.large = make_folder(folder, "large");
	bool ok = r.log >= 0 && r.large >= 0 && build_folder(&r, file, end);
	int error = errno;
	*hollow = ok && r.headless && r.complete == 0;
	disk_close(r.log);
	disk_close(r.large);
	buf_fini(&r.checkpoint);
	free(r.ended);
	free(r.sealed);
	errno = error;
	return ok;
}
