/* SPDX-License-Identifier: ISC */
#include "spool/segment.h"

#include "base/crc32c.h"
#include "base/mem.h"
#include "base/ident.h"
#include "spool/disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *segment_name(uint64_t seq, char name[SEGMENT_NAME])
{
	snprintf(name, SEGMENT_NAME, "%016" PRIx64 ".seg", seq);
	return name;
}

bool segment_name_parse(const char *name, uint64_t *seq)
{
	char again[SEGMENT_NAME];
	char *end;
	*seq = strtoull(name, &end, 16);
	return strcmp(end, ".seg") == 0 && strcmp(segment_name(*seq, again), name) == 0 &&
	       *seq <= SEGMENT_SEQ_MOST;
}

static struct segment *segment_new(int fd, uint64_t size)
{
	struct segment *s = mem_zalloc(sizeof *s);
	list_init(&s->link);
	s->file = content_file_new(fd);
	s->size = size;
	s->end = s->synced = SEGMENT_BEGIN;
	return s;
}

void segment_free(struct segment **sp)
{
	struct segment *s = *sp;
	if (!s)
		return;
	assert(!s->busy);
	list_remove(&s->link);
	content_file_unref(s->file);
	free(s->dead);
	free(s);
	*sp = NULL;
}

static bool write_head(int fd, const struct segment_head *h)
{
	uint8_t bytes[SEGMENT_BEGIN] = {0};
	segment_head_put(bytes, h);
	segment_head_put(bytes + SEGMENT_HEAD_AGAIN, h);
	struct iovec v = {.iov_base = bytes, .iov_len = sizeof bytes};
	return disk_write(fd, &v, 1, 0) == 0;
}

static struct segment *segment_with_head(int fd, uint64_t seq, uint64_t size, uint32_t lane,
					 bool first, bool reused)
{
	struct segment *s = segment_new(fd, size);
	s->head = (struct segment_head){.version = SEGMENT_VERSION,
					.lane = lane,
					.seq = seq,
					.created = ident_new(),
					.first = first,
					.reused = reused,
					.size = size};
	disk_salt(&s->head.salt, sizeof s->head.salt);
	s->seed = segment_head_seed(&s->head);
	return s;
}

struct segment *segment_create(int folder, uint64_t seq, uint64_t size, uint32_t lane, bool first)
{
	char name[SEGMENT_NAME];
	int fd = disk_open(folder, segment_name(seq, name), O_RDWR | O_CREAT | O_EXCL);
	if (fd < 0)
		return NULL;
	struct segment *s = segment_with_head(fd, seq, size, lane, first, false);
	if (disk_allocate(fd, size) == 0 && write_head(fd, &s->head) && disk_datasync(fd) == 0 &&
	    disk_sync(folder) == 0)
		return s;
	int error = errno;
	disk_unlink(folder, name);
	segment_free(&s);
	errno = error;
	return NULL;
}

struct segment *segment_adopt(int folder, const char *name, uint64_t seq, uint32_t lane, bool first)
{
	char to[SEGMENT_NAME];
	uint64_t size;
	int64_t changed_ms;
	int fd = disk_open(folder, name, O_RDWR);
	if (fd < 0)
		return NULL;
	if (disk_size(fd, &size, &changed_ms) != 0) {
		disk_close(fd);
		return NULL;
	}
	struct segment *s = segment_with_head(fd, seq, size, lane, first, true);
	if (write_head(fd, &s->head) && disk_datasync(fd) == 0 &&
	    disk_rename(folder, name, segment_name(seq, to)) == 0 && disk_sync(folder) == 0)
		return s;
	int error = errno;
	segment_free(&s);
	errno = error;
	return NULL;
}

bool segment_seal(struct segment *s, uint64_t offset)
{
	assert(offset >= SEGMENT_BEGIN);
	uint8_t head[RECORD_HEAD];
	record_put(head, s->seed, &(struct record){.type = RECORD_END});
	struct iovec v = {.iov_base = head, .iov_len = sizeof head};
	if (disk_write(s->file->fd, &v, 1, offset) != 0 || disk_datasync(s->file->fd) != 0)
		return false;
	s->end = s->synced = offset + RECORD_HEAD;
	s->dirty = false;
	if (disk_truncate(s->file->fd, s->end) == 0)
		s->size = s->end;
	return true;
}

bool segment_fill(struct segment *s, uint64_t from, uint64_t to)
{
	assert(from >= SEGMENT_BEGIN && from <= to);
	if (to - from < RECORD_HEAD)
		return false;
	struct buf bytes;
	uint8_t head[RECORD_HEAD];
	struct record r = {.type = RECORD_FILLER, .length = (uint32_t)(to - from - RECORD_HEAD)};
	buf_init(&bytes);
	bool ok = disk_read(s->file->fd, buf_reserve(&bytes, r.length), r.length,
			    from + RECORD_HEAD) == (ssize_t)r.length;
	if (ok) {
		buf_commit(&bytes, r.length);
		r.crc = crc32c(0, buf_data(&bytes), r.length);
		record_put(head, s->seed, &r);
		struct iovec v = {.iov_base = head, .iov_len = sizeof head};
		ok = disk_write(s->file->fd, &v, 1, from) == 0;
	}
	buf_fini(&bytes);
	return ok;
}

static bool read_head(int fd, uint64_t at, uint64_t seq, struct segment_head *h)
{
	uint8_t bytes[SEGMENT_HEAD];
	ssize_t n = disk_read(fd, bytes, sizeof bytes, at);
	if (n == SEGMENT_HEAD && segment_head_get(bytes, h) && h->seq == seq)
		return true;
	if (n >= 0)
		errno = EBADMSG;
	return false;
}

/* A head that can't be read is not wrong. */
static bool read_either_head(int fd, uint64_t seq, struct segment_head *h)
{
	if (read_head(fd, 0, seq, h))
		return true;
	int error = errno;
	if (read_head(fd, SEGMENT_HEAD_AGAIN, seq, h))
		return true;
	if (errno == EBADMSG)
		errno = error;
	return false;
}

static bool flag_reads(int fd, uint64_t at, uint8_t *flags)
{
	return disk_read(fd, flags, 1, at) == 1;
}

/* Behind one head alone it may be damage: then it is better to have dead envelopes come back. A flag that can't be read says
 * nothing, and leaves it to the other. */
static bool says_spent(int fd)
{
	uint8_t one = RECORD_GARBAGE, other = RECORD_GARBAGE;
	bool first = flag_reads(fd, SEGMENT_FLAGS_AT, &one);
	bool second = flag_reads(fd, SEGMENT_HEAD_AGAIN + SEGMENT_FLAGS_AT, &other);
	return (first || second) && (one & other & RECORD_GARBAGE);
}

bool segment_heads_agree(const struct segment *s)
{
	struct segment_head a, b;
	return read_head(s->file->fd, 0, s->head.seq, &a) &&
	       read_head(s->file->fd, SEGMENT_HEAD_AGAIN, s->head.seq, &b) &&
	       segment_head_seed(&a) == segment_head_seed(&b);
}

struct segment *segment_open(int folder, uint64_t seq, int flags, int64_t *changed_ms)
{
	char name[SEGMENT_NAME];
	int fd = disk_open(folder, segment_name(seq, name), flags);
	if (fd < 0)
		return NULL;
	struct segment_head h;
	uint64_t size;
	if (disk_size(fd, &size, changed_ms) != 0 || !read_either_head(fd, seq, &h)) {
		int error = errno;
		disk_close(fd);
		errno = error;
		return NULL;
	}
	struct segment *s = segment_new(fd, size);
	s->head = h;
	s->seed = segment_head_seed(&h);
	s->spent = s->says_spent = says_spent(fd);
	return s;
}

bool segment_read(const struct segment *s, uint64_t offset, struct record *r, struct buf *payload)
{
	uint8_t head[RECORD_HEAD];
	buf_clear(payload);
	ssize_t n = disk_read(s->file->fd, head, sizeof head, offset);
	if (n == RECORD_HEAD && record_get(head, s->seed, r) && r->length <= s->size - offset) {
		n = disk_read(s->file->fd, buf_reserve(payload, r->length), r->length,
			      offset + RECORD_HEAD);
		if (n == (ssize_t)r->length) {
			buf_commit(payload, r->length);
			if (crc32c(0, buf_data(payload), r->length) == r->crc)
				return true;
		}
	}
	if (n >= 0)
		errno = EBADMSG;
	return false;
}

void segment_hold(const struct place *p, enum segment_use use)
{
	struct segment *s = p->segment;
	if (!s)
		return;
	s->live++;
	s->needed += use != USE_CONTENT;
	s->live_bytes += p->size;
}

bool segment_release(const struct place *p, enum segment_use use)
{
	struct segment *s = p->segment;
	if (!s)
		return false;
	assert(s->live > 0 && s->live_bytes >= p->size);
	assert(use == USE_CONTENT || s->needed > 0);
	s->live--;
	s->needed -= use != USE_CONTENT;
	s->live_bytes -= p->size;
	assert(s->needed <= s->live);
	assert(s->live > 0 || s->live_bytes == 0);
	return s->live == 0;
}

void segment_dead(const struct place *p)
{
	struct segment *s = p->segment;
	assert(p->offset >= SEGMENT_BEGIN); /* a byte there will be written over */
	if (s->ndead == s->dead_cap) {
		s->dead_cap = s->dead_cap ? s->dead_cap * 2 : 64;
		s->dead = mem_realloc(s->dead, s->dead_cap * sizeof *s->dead);
	}
	s->dead[s->ndead++] = p->offset;
}

static bool put_flags(const struct segment *s, uint8_t flags)
{
	bool ok = true;
	for (size_t i = 0; i < s->ndead; i++) {
		struct iovec v = {.iov_base = &flags, .iov_len = 1};
		ok &= disk_write(s->file->fd, &v, 1, s->dead[i] + (uint64_t)RECORD_FLAGS_AT) == 0;
	}
	return ok;
}

static void forget_dead(struct segment *s)
{
	free(s->dead);
	s->dead = NULL;
	s->ndead = s->dead_cap = 0;
}

bool segment_mark(struct segment *s)
{
	if (!put_flags(s, RECORD_GARBAGE) || disk_datasync(s->file->fd) != 0) {
		/* The kernel may take them for written, and show them to the next start. */
		int error = errno;
		put_flags(s, 0);
		errno = error;
		return false;
	}
	forget_dead(s);
	return true;
}

static bool put_spent(const struct segment *s, uint8_t flags)
{
	struct iovec v = {.iov_base = &flags, .iov_len = 1};
	return disk_write(s->file->fd, &v, 1, SEGMENT_FLAGS_AT) == 0 &&
	       disk_write(s->file->fd, &v, 1, SEGMENT_HEAD_AGAIN + SEGMENT_FLAGS_AT) == 0;
}

bool segment_spend(struct segment *s)
{
	if (!put_spent(s, RECORD_GARBAGE) || disk_datasync(s->file->fd) != 0) {
		int error = errno;
		put_spent(s, 0);
		errno = error;
		return false;
	}
	s->spent = s->says_spent = true;
	forget_dead(s);
	return true;
}
