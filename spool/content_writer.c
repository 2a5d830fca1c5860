/* SPDX-License-Identifier: ISC */
#include "spool/content_writer.h"

#include <assert.h>
#include <errno.h>

void content_writer_init(struct content_writer *w, struct spool *spool, uint64_t id)
{
	*w = (struct content_writer){.spool = spool, .id = id};
}

void content_writer_fini(struct content_writer *w)
{
	if (w->file)
		spool_file_discard(&w->file);
	buf_fini(&w->memory);
}

static void write_out(struct content_writer *w)
{
	if (!w->error)
		w->error = spool_file_write(w->file, buf_data(&w->memory), buf_len(&w->memory));
	buf_clear(&w->memory);
}

static void become_file(struct content_writer *w)
{
	w->file = spool_file_new(w->spool, w->id);
	if (!w->file)
		w->error = errno ? errno : EIO;
	else
		write_out(w);
	buf_fini(&w->memory); /* what follows takes less at once */
}

void content_writer_put(struct content_writer *w, const char *bytes, size_t len)
{
	if (w->error)
		return;
	if (!w->file && (w->spills || buf_len(&w->memory) + len > SPOOL_CONTENT_INLINE_MAX))
		become_file(w);
	if (w->file && (w->spills || buf_len(&w->memory) + len > CONTENT_WRITER_RUN))
		write_out(w);
	if (w->error)
		buf_fini(&w->memory);
	else
		buf_append(&w->memory, bytes, len);
}

void content_writer_finish(struct content_writer *w)
{
	if (w->file)
		write_out(w);
}

uint64_t content_writer_take(struct content_writer *w, struct content **content,
			     struct spool_file **file)
{
	assert(!w->error);
	assert(!w->file || buf_len(&w->memory) == 0); /* it was finished */
	*content = NULL;
	*file = w->file;
	w->file = NULL;
	if (*file) {
		buf_fini(&w->memory);
		return spool_file_size(*file);
	}
	size_t len;
	char *bytes = buf_steal(&w->memory, &len);
	*content = content_in_memory(bytes, len);
	return len;
}
