/* SPDX-License-Identifier: ISC */
#include "spool/verify.h"

#include "base/crc32c.h"
#include "base/ident.h"
#include "base/mem.h"
#include "spool/disk.h"
#include "spool/spool_core.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

enum { PIECE = 1 << 18 }; /* bytes */

bool verify_promised(const struct stub *stub)
{
	return !stub->first || stub->envelope.offset < stub->envelope.segment->said;
}

bool verify_by_chance(const struct stub *stub)
{
	return stub->envelope.segment && !verify_promised(stub);
}

static int open_large(int large, uint64_t id, uint64_t *size)
{
	char name[IDENT_TEXT];
	int64_t changed_ms;
	int fd = disk_open(large, ident_text(id, name), O_RDONLY);
	if (fd >= 0 && disk_size(fd, size, &changed_ms) != 0) {
		disk_close(fd);
		fd = -1;
	}
	return fd;
}

bool verify_large_lost(int large, uint64_t id, uint64_t size)
{
	uint64_t bytes = 0;
	int fd = open_large(large, id, &bytes);
	if (fd < 0)
		return errno == ENOENT;
	disk_close(fd);
	return bytes != size;
}

static bool is_readable(int fd, uint64_t size, uint32_t *sum)
{
	char *piece = mem_alloc(PIECE);
	uint64_t at = 0;
	ssize_t n;
	*sum = 0;
	while (at < size && (n = disk_read(fd, piece, PIECE, at)) > 0) {
		*sum = crc32c(*sum, piece, (size_t)n);
		at += (uint64_t)n;
	}
	free(piece);
	return at == size;
}

/* A message of an earlier program has no sum: its size, and that the disk gives back all of it, are what
 * can be told then. */
static const char *verify_large(int large, uint64_t id, const struct envelope *e)
{
	uint64_t size = e->size;
	uint32_t sum;
	uint64_t bytes = 0;
	int fd = open_large(large, id, &bytes);
	if (fd < 0)
		return errno == ENOENT ? "the file of its content is missing"
				       : "the file of its content cannot be opened";
	const char *wrong = bytes != size ? "the file of its content is of the wrong size"
			    : !is_readable(fd, size, &sum)
				    ? "the file of its content cannot be read"
			    : e->summed && sum != e->sum ? "the file of its content is damaged"
							 : NULL;
	disk_close(fd);
	return wrong;
}

const char *verify_message(int large, const struct stub *stub, struct envelope **e)
{
	*e = fetch_envelope(stub);
	if (!*e)
		return "its envelope cannot be read";
	if (stub->large)
		return verify_large(large, stub->id, *e);
	if (!stub->content.segment)
		return "the segment of its content is missing";
	struct content *c = fetch_copy(stub);
	const char *wrong = !c			    ? "its content is damaged or missing"
			    : c->size != (*e)->size ? "its content is of the wrong size"
						    : NULL;
	content_unref(c);
	return wrong;
}
