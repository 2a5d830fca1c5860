/* SPDX-License-Identifier: ISC */
#include "spool/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

int disk_open(int folder, const char *name, int flags)
{
	return openat(folder, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

int disk_open_top(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void disk_close(int fd)
{
	int error = errno;
	if (fd >= 0)
		close(fd);
	errno = error;
}

int disk_make_folder(int folder, const char *name)
{
	if (mkdirat(folder, name, 0700) == 0 || errno == EEXIST)
		return 0;
	return -1;
}

int disk_lock(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB);
}

int disk_allocate(int fd, uint64_t size)
{
	if (fallocate(fd, 0, 0, (off_t)size) == 0)
		return 0;
	/* Without preallocation a sync also carries metadata: slower, not less safe. */
	return errno == EOPNOTSUPP ? ftruncate(fd, (off_t)size) : -1;
}

int disk_truncate(int fd, uint64_t size)
{
	return ftruncate(fd, (off_t)size);
}

int disk_unlink(int folder, const char *name)
{
	return unlinkat(folder, name, 0);
}

/* Nobody else makes names in the folders of a queue: who has it has locked it. */
static int move_where_none_is(int from_folder, const char *name, int to_folder, const char *to_name)
{
	struct stat st;
	if (fstatat(to_folder, to_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		errno = EEXIST;
		return -1;
	}
	return errno == ENOENT ? renameat(from_folder, name, to_folder, to_name) : -1;
}

int disk_move(int from_folder, const char *name, int to_folder, const char *to_name)
{
	int result = renameat2(from_folder, name, to_folder, to_name, RENAME_NOREPLACE);
	/* NFS, 9p and older ZFS do not know the flag. */
	if (result != 0 && errno == EINVAL)
		result = move_where_none_is(from_folder, name, to_folder, to_name);
	return result;
}

int disk_rename(int folder, const char *from, const char *to)
{
	return renameat(folder, from, folder, to);
}

int disk_write(int fd, struct iovec *v, size_t n, uint64_t offset)
{
	while (n > 0) {
		ssize_t done = pwritev(fd, v, n > IOV_MAX ? IOV_MAX : (int)n, (off_t)offset);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -1;
		offset += (uint64_t)done;
		size_t left = (size_t)done;
		for (; n > 0 && left >= v->iov_len; v++, n--)
			left -= v->iov_len;
		if (n > 0) {
			v->iov_base = (char *)v->iov_base + left;
			v->iov_len -= left;
		}
	}
	return 0;
}

ssize_t disk_read(int fd, void *to, size_t len, uint64_t offset)
{
	size_t done = 0;
	while (done < len) {
		ssize_t n = pread(fd, (char *)to + done, len - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int disk_datasync(int fd)
{
	return fdatasync(fd);
}

int disk_sync(int fd)
{
	return fsync(fd);
}

int disk_start_writeback(int fd, uint64_t offset, uint64_t len)
{
	return sync_file_range(fd, (off_t)offset, (off_t)len, SYNC_FILE_RANGE_WRITE);
}

int disk_size(int fd, uint64_t *bytes, int64_t *changed_ms)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return -1;
	*bytes = (uint64_t)st.st_size;
	*changed_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
	return 0;
}

int64_t disk_free_bytes(int fd)
{
	struct statvfs v;
	if (fstatvfs(fd, &v) != 0)
		return -1;
	return (int64_t)v.f_bavail * (int64_t)v.f_frsize;
}

int64_t disk_free_files(int fd)
{
	struct statvfs v;
	if (fstatvfs(fd, &v) != 0 || v.f_files == 0)
		return -1;
	return (int64_t)v.f_favail;
}

bool disk_has_links(int folder)
{
	struct stat st;
	return fstat(folder, &st) != 0 || st.st_nlink > 0;
}

void disk_salt(void *to, size_t len)
{
	if (getrandom(to, len, 0) != (ssize_t)len)
		memset(to, 0, len);
}

/* At the end of the folder errno is 0. A folder that can't be read on says so by errno alone. */
static const char *next_name(DIR *d)
{
	errno = 0;
	const struct dirent *e = readdir(d);
	return e ? e->d_name : NULL;
}

int disk_each(int folder, void (*found)(void *owner, const char *name), void *owner)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	DIR *d = fdopendir(fd);
	if (!d) {
		close(fd);
		return -1;
	}
	const char *name;
	while ((name = next_name(d)))
		if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
			found(owner, name);
	int error = errno;
	closedir(d);
	errno = error;
	return error == 0 ? 0 : -1;
}
