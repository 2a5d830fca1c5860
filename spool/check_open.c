/* SPDX-License-Identifier: ISC */
#include "spool/check_open.h"

#include "spool/disk.h"
#include "spool/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static bool say_failure(const char *spool, const char *name, struct buf *error)
{
	buf_printf(error, "%s/%s: %s", spool, name, strerror(errno));
	return false;
}

static bool open_one(int folder, const char *spool, const char *name, int flags, int *fd,
		     struct buf *error)
{
	*fd = disk_open(folder, name, O_RDONLY | flags);
	return *fd >= 0 || errno == ENOENT || say_failure(spool, name, error);
}

/* Where there is no lock, no relay has ever had the queue. */
static bool take_lock(const struct check_folders *f, const char *spool, struct buf *error)
{
	if (f->lock < 0 || disk_lock(f->lock) == 0)
		return true;
	if (errno != EWOULDBLOCK)
		return say_failure(spool, "lock", error);
	buf_printf(error, "%s: a relay has this queue; stop it first", spool);
	return false;
}

static bool read_format(const struct check_folders *f, const char *spool, int *format,
			struct buf *error)
{
	int fd;
	*format = 0;
	if (!open_one(f->top, spool, "format", 0, &fd, error))
		return false;
	bool ok = fd < 0 || layout_format(fd, spool, format, error);
	if (fd >= 0)
		disk_close(fd);
	return ok;
}

bool check_folders_open(struct check_folders *f, const char *spool, int *format, struct buf *error)
{
	*f = (struct check_folders){-1, -1, -1, -1};
	f->top = disk_open_top(spool);
	if (f->top < 0) {
		buf_printf(error, "%s: %s", spool, strerror(errno));
		return false;
	}
	return open_one(f->top, spool, "lock", 0, &f->lock, error) && take_lock(f, spool, error) &&
	       read_format(f, spool, format, error) &&
	       open_one(f->top, spool, "log", O_DIRECTORY, &f->log, error) &&
	       open_one(f->top, spool, "large", O_DIRECTORY, &f->large, error);
}

void check_folders_close(struct check_folders *f)
{
	const int fd[] = {f->log, f->large, f->lock, f->top};
	for (size_t i = 0; i < sizeof fd / sizeof fd[0]; i++)
		if (fd[i] >= 0)
			disk_close(fd[i]);
}
