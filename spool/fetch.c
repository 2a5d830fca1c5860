/* SPDX-License-Identifier: ISC */
#include "base/descriptors.h"
#include "base/ident.h"
#include "base/mem.h"
#include "spool/op.h"
#include "spool/disk.h"
#include "spool/payload.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

struct envelope *fetch_envelope(const struct stub *stub)
{
	struct record r;
	struct buf payload;
	struct envelope *e = NULL;
	buf_init(&payload);
	if (stub->unsettled) {
		/* Its record may be lost still, and cut off; the op has it all. */
		assert(stub->keep->stub == stub);
		const struct content_place none = {.own_file = true};
		payload_put_envelope(&payload, stub->keep->envelope, &none, 0);
		e = payload_get_envelope(stub->id, buf_data(&payload), buf_len(&payload));
	} else if (segment_read(stub->envelope.segment, stub->envelope.offset, &r, &payload)) {
		e = payload_get_envelope(r.id, buf_data(&payload), buf_len(&payload));
		if (!e)
			errno = EBADMSG;
	}
	buf_fini(&payload);
	const struct work *w = stub->state == STUB_ACTIVE && !stub->unsettled ? stub->work : NULL;
	for (const struct spool_delivered *d = e && w ? w->first : NULL; d;
	     d = (const struct spool_delivered *)d->note.next)
		delivered_apply(d, e);
	return e;
}

/* False: it can't be read, or is not what was written. Its segment may be missing. */
static bool read_record(const struct stub *stub, struct record *r, struct buf *bytes)
{
	errno = EBADMSG;
	if (!stub->content.segment)
		return false;
	if (!segment_read(stub->content.segment, stub->content.offset, r, bytes))
		return false;
	if (r->type == RECORD_CONTENT && r->id == stub->id)
		return true;
	errno = EBADMSG;
	return false;
}

struct content *fetch_copy(const struct stub *stub)
{
	struct record r;
	struct buf bytes;
	struct content *c = NULL;
	buf_init(&bytes);
	if (read_record(stub, &r, &bytes)) {
		char *memory = mem_alloc(r.length ? r.length : 1);
		if (r.length > 0)
			memcpy(memory, buf_data(&bytes), r.length);
		c = content_in_memory(memory, r.length);
	}
	buf_fini(&bytes);
	return c;
}

struct content *fetch_checked(const struct spool *s, const struct stub *stub,
			      const struct envelope *e)
{
	struct record r;
	struct buf bytes;
	if (stub->large)
		return fetch_content(s, stub, e);
	buf_init(&bytes);
	bool whole = read_record(stub, &r, &bytes);
	buf_fini(&bytes);
	if (whole && r.length != e->size) {
		errno = EBADMSG;
		whole = false;
	}
	if (!whole)
		return NULL;
	struct content *c = fetch_content(s, stub, e);
	c->summed = true;
	c->sum = r.crc;
	return c;
}

/* -1 and EBADMSG: it is of another size. */
static int open_large(int folder, const char *name, uint64_t size)
{
	uint64_t bytes = 0;
	int64_t changed_ms;
	int fd = disk_open(folder, name, O_RDONLY);
	if (fd < 0)
		return -1;
	bool known = disk_size(fd, &bytes, &changed_ms) == 0;
	if (known && bytes == size)
		return fd;
	disk_close(fd);
	errno = known ? EBADMSG : errno;
	return -1;
}

struct content *fetch_content(const struct spool *s, const struct stub *stub,
			      const struct envelope *e)
{
	if (!stub->large && !stub->content.segment) {
		errno = ENOENT;
		return NULL;
	}
	if (!stub->large)
		return content_in_file(stub->content.segment->file,
				       stub->content.offset + (uint64_t)RECORD_HEAD, e->size);
	char name[IDENT_TEXT];
	if (!descriptors_room(DESCRIPTORS_FILES)) {
		errno = EMFILE;
		return NULL;
	}
	int fd = open_large(s->large, ident_text(stub->id, name), e->size);
	if (fd < 0)
		return NULL;
	struct content_file *file = content_file_new(fd);
	struct content *c = content_in_file(file, 0, e->size);
	content_file_unref(file);
	c->summed = e->summed;
	c->sum = e->sum;
	return c;
}
