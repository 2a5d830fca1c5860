/* SPDX-License-Identifier: ISC */
#include "spool/spool_file.h"

#include "base/crc32c.h"
#include "base/descriptors.h"
#include "base/ident.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "spool/disk.h"
#include "spool/spool_core.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { WRITEBACK = 1 << 20 }; /* bytes */

struct spool_file {
	int folder, fd;
	uint64_t id, size;
	uint32_t sum;	/* CRC32C of what was to be written */
	uint64_t begun; /* up to here the kernel has been asked to write */
	bool unnamed;	/* another has its name */
};

struct spool_file *spool_file_new(struct spool *s, uint64_t id)
{
	char name[IDENT_TEXT];
	if (!descriptors_take(DESCRIPTORS_FILES)) {
		errno = EMFILE;
		return NULL;
	}
	int fd = disk_open(s->large, ident_text(id, name), O_RDWR | O_CREAT | O_EXCL);
	if (fd < 0) {
		descriptors_give(DESCRIPTORS_FILES);
		return NULL;
	}
	metrics_add(METRIC_files_created, 1);
	struct spool_file *f = mem_zalloc(sizeof *f);
	f->folder = s->large;
	f->fd = fd;
	f->id = id;
	return f;
}

int spool_file_write(struct spool_file *f, const void *data, size_t len)
{
	struct iovec v = {.iov_base = (void *)data, .iov_len = len};
	if (disk_write(f->fd, &v, 1, f->size) != 0)
		return errno;
	f->size += len;
	f->sum = crc32c(f->sum, data, len);
	/* Begun early, the sync at the end has little left to wait for. */
	if (f->size - f->begun >= WRITEBACK) {
		disk_start_writeback(f->fd, f->begun, f->size - f->begun);
		f->begun = f->size;
	}
	return 0;
}

uint64_t spool_file_size(const struct spool_file *f)
{
	return f->size;
}

ssize_t spool_file_read(const struct spool_file *f, uint64_t offset, void *to, size_t len)
{
	return disk_read(f->fd, to, len, offset);
}

void spool_file_unname(struct spool_file *f)
{
	char name[IDENT_TEXT];
	if (!f->unnamed)
		disk_unlink(f->folder, ident_text(f->id, name));
	f->unnamed = true;
}

void spool_file_discard(struct spool_file **fp)
{
	struct spool_file *f = *fp;
	if (!f)
		return;
	spool_file_unname(f);
	disk_close(f->fd);
	descriptors_give(DESCRIPTORS_FILES);
	free(f);
	*fp = NULL;
}

void spool_file_sum(const struct spool_file *f, struct envelope *e)
{
	e->summed = true;
	e->sum = f->sum;
}

int spool_file_sync(struct spool_file *f)
{
	return disk_datasync(f->fd);
}

struct content *spool_file_content(struct spool_file **fp)
{
	struct spool_file *f = *fp;
	struct content_file *file = content_file_new(f->fd); /* counts it from now on */
	descriptors_give(DESCRIPTORS_FILES);
	struct content *c = content_in_file(file, 0, f->size);
	content_file_unref(file);
	c->summed = true;
	c->sum = f->sum;
	free(f);
	*fp = NULL;
	return c;
}

void spool_file_leave(struct spool_file **fp)
{
	if (*fp)
		content_unref(spool_file_content(fp));
}
