/* SPDX-License-Identifier: ISC */
/* Files and records that are found wrong are kept here, for the operator: nothing in the program reads it. */
#include "base/ident.h"
#include "base/log.h"
#include "base/mem.h"
#include "spool/disk.h"
#include "spool/spool_core.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { COPY = 1 << 16 /* bytes at a time */, NAMES = 1000 };

/* Synced. */
static bool write_range(int fd, const struct segment *g, uint64_t from, uint64_t to)
{
	char *bytes = mem_alloc(COPY);
	bool ok = true;
	for (uint64_t at = from; ok && at < to; at += COPY) {
		ssize_t n = disk_read(g->file->fd, bytes, to - at < COPY ? to - at : COPY, at);
		struct iovec v = {.iov_base = bytes, .iov_len = n > 0 ? (size_t)n : 0};
		ok = n >= 0 && disk_write(fd, &v, 1, at - from) == 0;
	}
	free(bytes);
	return ok && disk_datasync(fd) == 0;
}

/* A copy has its name when it is whole: whoever finds that relies on it. */
static bool copy_range(const struct spool *s, const char *name, const struct segment *g,
		       uint64_t from, uint64_t to)
{
	char *part = mem_printf("%s.part", name);
	int fd = disk_open(s->quarantine, part, O_WRONLY | O_CREAT | O_TRUNC);
	bool ok = fd >= 0 && write_range(fd, g, from, to);
	if (fd >= 0)
		disk_close(fd);
	ok = ok && disk_move(s->quarantine, part, s->quarantine, name) == 0;
	if (fd >= 0 && !ok)
		disk_unlink(s->quarantine, part);
	free(part);
	return ok;
}

static bool has_name(const struct spool *s, const char *name)
{
	int fd = disk_open(s->quarantine, name, O_RDONLY);
	if (fd >= 0)
		disk_close(fd);
	return fd >= 0;
}

/* True: it is here, also after a power failure, so that the log may forget it. *before: since an earlier attempt. */
static bool keep_range(const struct spool *s, const char *name, const struct segment *g,
		       uint64_t from, uint64_t to, bool *before)
{
	*before = has_name(s, name);
	return (*before || copy_range(s, name, g, from, to)) && disk_sync(s->quarantine) == 0;
}

bool quarantine_bytes(const struct spool *s, const struct segment *g, uint64_t from, uint64_t to,
		      uint64_t id)
{
	char segment[SEGMENT_NAME];
	segment_name(g->head.seq, segment);
	const char *name = log_text("%s.%08llx", segment, (unsigned long long)from);
	bool before, kept = keep_range(s, name, g, from, to, &before);
	if (kept && before)
		return true; /* an earlier start has said so */
	log_event(LOG_LEVEL_ERROR, "damage", "segment", segment, "offset",
		  log_number((int64_t)from), "bytes", log_number((int64_t)(to - from)), "id",
		  id ? log_id(id) : NULL, "kept", kept ? name : NULL, NULL);
	return kept;
}

/* Beside what has that name already; in kept, malloc'd, which it has now. */
static int move_aside(const struct spool *s, int folder, const char *name, char **kept)
{
	*kept = mem_strdup(name);
	int result = disk_move(folder, name, s->quarantine, *kept);
	for (int n = 1; result != 0 && errno == EEXIST && n < NAMES; n++) {
		free(*kept);
		*kept = mem_printf("%s.%d", name, n);
		result = disk_move(folder, name, s->quarantine, *kept);
	}
	return result;
}

/* A file that is missing need not be kept. Were it still in its place after a power failure, the next start would find it
 * there without its message, and remove it. */
static bool keep_large(const struct spool *s, const char *name)
{
	char *kept;
	bool ok = move_aside(s, s->large, name, &kept) == 0 || errno == ENOENT;
	free(kept);
	return ok && disk_sync(s->quarantine) == 0 && disk_sync(s->large) == 0;
}

/* The record there, under the message's id; an earlier attempt may have kept it. False when it could not be kept. */
static bool keep_record(const struct spool *s, const struct place *p, const char *name)
{
	struct record r = {.length = 0};
	struct buf payload;
	bool before;
	buf_init(&payload);
	segment_read(p->segment, p->offset, &r, &payload); /* for its length */
	buf_fini(&payload);
	return keep_range(s, name, p->segment, p->offset, p->offset + record_size(r.length),
			  &before);
}

bool quarantine_message(const struct spool *s, const struct stub *stub, const char *why)
{
	char id[IDENT_TEXT], segment[SEGMENT_NAME];
	const struct place *p = &stub->envelope;
	ident_text(stub->id, id);
	bool kept = keep_record(s, p, log_text("%s.envelope", id));
	if (kept && stub->large)
		kept = keep_large(s, id);
	else if (stub->content.segment)
		kept &= keep_record(s, &stub->content, log_text("%s.content", id));
	log_event(LOG_LEVEL_ERROR, "quarantined", "id", id, "reason", why, "segment",
		  segment_name(p->segment->head.seq, segment), "offset", log_number(p->offset),
		  "copy", kept ? "kept" : "failed", NULL);
	return kept;
}

bool quarantine_file(const struct spool *s, int folder, const char *name, const char *why)
{
	char *kept;
	uint64_t seq;
	int result = move_aside(s, folder, name, &kept);
	log_event(LOG_LEVEL_ERROR, "damage", segment_name_parse(name, &seq) ? "segment" : "file",
		  name, "reason", why, "kept", result == 0 ? kept : NULL, NULL);
	free(kept);
	return result == 0;
}
