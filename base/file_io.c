/* SPDX-License-Identifier: ISC */
#include "base/file_io.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { PIECE = 64 << 10, NULL_MAJOR = 1, NULL_MINOR = 3 };

bool file_read(int fd, size_t most, struct buf *to)
{
	assert(fd >= 0);
	size_t before = buf_len(to);
	for (;;) {
		ssize_t n = read(fd, buf_reserve(to, PIECE), PIECE);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0;
		buf_commit(to, (size_t)n);
		if (buf_len(to) - before > most) {
			errno = EFBIG;
			return false;
		}
	}
}

/* A pipe would say that there is nothing to read yet, and never that there will be nothing; a device may never end. */
static bool has_no_end(int fd)
{
	struct stat st;
	if (fstat(fd, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) ||
	    (S_ISCHR(st.st_mode) && st.st_rdev == makedev(NULL_MAJOR, NULL_MINOR)))
		return false;
	errno = EINVAL;
	return true;
}

FILE *file_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	FILE *from = fd >= 0 && !has_no_end(fd) ? fdopen(fd, "r") : NULL;
	int saved = errno;
	if (fd >= 0 && !from)
		close(fd);
	errno = saved;
	return from;
}

bool file_read_line(const char *path, char *line, size_t size, struct buf *why)
{
	assert(size > 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	ssize_t n = fd >= 0 ? read(fd, line, size - 1) : -1;
	if (n < 0)
		buf_printf(why, "%s: %s", path, strerror(errno));
	file_close(fd);
	if (n < 0)
		return false;
	line[n] = '\0';
	line[strcspn(line, "\r\n")] = '\0';
	if (!*line)
		buf_printf(why, "%s is empty", path);
	return *line;
}

void file_close(int fd)
{
	int error = errno;
	if (fd >= 0)
		close(fd);
	errno = error;
}

bool file_is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

bool file_write(int fd, const void *data, size_t len)
{
	assert(fd >= 0);
	for (const char *from = data; len > 0;) {
		ssize_t n = write(fd, from, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		from += n;
		len -= (size_t)n;
	}
	return true;
}

static int open_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = mem_printf("%.*s.", slash ? (int)(slash + 1 - path) : 0, path);
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(folder);
	return fd;
}

/* Who may write to a folder may be somebody who may not read it. */
static bool sync_name(int fd, const char *path)
{
	int folder = open_folder(path);
	if (folder < 0)
		return syncfs(fd) == 0;
	bool done = fsync(folder) == 0;
	file_close(folder);
	return done;
}

bool file_sync(int fd, const char *path)
{
	assert(fd >= 0);
	return fsync(fd) == 0 && sync_name(fd, path);
}
