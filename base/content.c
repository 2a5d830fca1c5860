/* SPDX-License-Identifier: ISC */
#include "base/content.h"

#include "base/crc32c.h"
#include "base/descriptors.h"
#include "base/mem.h"
#include "base/refs.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic int64_t memory_bytes;

struct content_file *content_file_new(int fd)
{
	struct content_file *f = mem_alloc(sizeof *f);
	atomic_init(&f->refs, 1);
	atomic_init(&f->damaged, false);
	f->fd = fd;
	descriptors_count(DESCRIPTORS_FILES);
	return f;
}

struct content_file *content_file_ref(struct content_file *f)
{
	refs_take(&f->refs);
	return f;
}

bool content_file_alone(struct content_file *f)
{
	return atomic_load_explicit(&f->refs, memory_order_acquire) == 1;
}

void content_file_unref(struct content_file *f)
{
	if (!f || !refs_drop(&f->refs))
		return;
	close(f->fd);
	descriptors_give(DESCRIPTORS_FILES);
	free(f);
}

static struct content *content_new(uint64_t size)
{
	struct content *c = mem_zalloc(sizeof *c);
	atomic_init(&c->refs, 1);
	c->size = size;
	return c;
}

struct content *content_in_memory(char *bytes, uint64_t size)
{
	assert(bytes || size == 0);
	struct content *c = content_new(size);
	c->memory = bytes;
	atomic_fetch_add_explicit(&memory_bytes, (int64_t)size, memory_order_relaxed);
	return c;
}

struct content *content_in_file(struct content_file *f, uint64_t offset, uint64_t size)
{
	struct content *c = content_new(size);
	c->file = content_file_ref(f);
	c->offset = offset;
	return c;
}

struct content *content_ref(struct content *c)
{
	refs_take(&c->refs);
	return c;
}

void content_unref(struct content *c)
{
	if (!c || !refs_drop(&c->refs))
		return;
	if (c->memory) {
		int64_t before = atomic_fetch_sub_explicit(&memory_bytes, (int64_t)c->size,
							   memory_order_relaxed);
		assert(before >= (int64_t)c->size);
	}
	free((char *)c->memory);
	content_file_unref(c->file);
	free(c);
}

ssize_t content_read(const struct content *c, uint64_t offset, void *to, size_t len)
{
	if (offset >= c->size)
		return 0;
	if (len > c->size - offset)
		len = (size_t)(c->size - offset);
	assert(!c->memory != !c->file);
	if (c->memory) {
		memcpy(to, c->memory + offset, len);
		return (ssize_t)len;
	}
	size_t done = 0;
	while (done < len) {
		ssize_t n = pread(c->file->fd, (char *)to + done, len - done,
				  (off_t)(c->offset + offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = EIO; /* shorter than its envelope says */
		if (n <= 0)
			return -1;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

bool content_intact(const struct content *c, uint32_t *sum, uint64_t offset, const void *bytes,
		    size_t len)
{
	if (!c->summed)
		return true;
	assert(c->file);
	assert(offset <= c->size && len <= c->size - offset);
	*sum = crc32c(*sum, bytes, len);
	if (offset + len < c->size || *sum == c->sum)
		return true;
	atomic_store(&c->file->damaged, true);
	errno = EBADMSG;
	return false;
}

int64_t content_memory_bytes(void)
{
	return atomic_load_explicit(&memory_bytes, memory_order_relaxed);
}
