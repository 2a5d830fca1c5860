/* SPDX-License-Identifier: ISC */
/* The calls of spool/disk.h. */
#include "tests/unit/spool/memdisk_core.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { FD_FIRST = 100000, FDS = 4096, NO_FD = -1 };

static struct memdisk *disk; /* in use */
static struct inode *open_node[FDS];
static struct memdisk *open_on[FDS];

const char *memdisk_call_name(enum memdisk_call call)
{
	static const char *const name[] = {
		"open",	 "create", "folder",   "lock", "allocate",  "truncate", "unlink", "rename",
		"write", "read",   "datasync", "sync", "writeback", "size",	"free",	  "each"};
	return name[call];
}

void memdisk_use(struct memdisk *d, void (*before)(void *owner, enum memdisk_call), void *owner)
{
	disk = d;
	if (!d)
		return;
	d->before = before;
	d->owner = owner;
}

/* False with errno: the call is to fail. */
static bool enter(enum memdisk_call call)
{
	struct memdisk *d = disk;
	if (d->frozen) {
		errno = EIO;
		return false;
	}
	if (d->before)
		d->before(d->owner, call);
	int n = ++d->count[call], at = d->fail_at[call];
	if (at == 0 || (d->fail_for_good[call] ? n < at : n != at))
		return true;
	d->failed = true;
	errno = d->fail_error[call];
	return false;
}

static int descriptor(struct inode *n)
{
	int i = 0;
	while (i < FDS && open_node[i])
		i++;
	assert(i < FDS && "no descriptors left");
	n->refs++;
	open_node[i] = n;
	open_on[i] = disk;
	return FD_FIRST + i;
}

static struct inode *inode_of(int fd)
{
	assert(fd >= FD_FIRST && fd < FD_FIRST + FDS && open_node[fd - FD_FIRST]);
	return open_node[fd - FD_FIRST];
}

/* The folder that the last part of the name is in; NULL and errno: it is not there. */
static struct inode *walk(int fd, const char *name, const char **last)
{
	if (fd == NO_FD) {
		errno = EBADF;
		return NULL;
	}
	struct inode *n = fd == AT_FDCWD ? disk->root : inode_of(fd);
	for (const char *slash; (slash = strchr(name, '/')); name = slash + 1) {
		char *part = mem_strndup(name, (size_t)(slash - name));
		n = *part ? inode_find(n, part) : n;
		free(part);
		if (!n) {
			errno = ENOENT;
			return NULL;
		}
	}
	*last = name;
	return n;
}

int disk_open(int folder, const char *name, int flags)
{
	const char *last;
	if (!enter(flags & O_CREAT ? CALL_CREATE : CALL_OPEN))
		return -1;
	struct inode *in = walk(folder, name, &last);
	struct inode *n = in && *last && strcmp(last, ".") != 0 ? inode_find(in, last) : in;
	if (!in)
		return -1;
	if (n && flags & O_EXCL) {
		errno = EEXIST;
		return -1;
	}
	if (!n && !(flags & O_CREAT)) {
		errno = ENOENT;
		return -1;
	}
	if (!n) {
		n = inode_new(false);
		naming_add(disk, n, NULL, NULL, in, last);
	}
	if (flags & O_TRUNC && n->seen.size > 0)
		inode_resize(n, 0);
	return descriptor(n);
}

int disk_open_top(const char *path)
{
	return disk_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
}

int memdisk_close(int fd)
{
	struct inode *n = inode_of(fd);
	n->locked = false; /* only one descriptor of it is ever locked */
	open_node[fd - FD_FIRST] = NULL;
	inode_unref(n);
	return 0;
}

bool memdisk_is_descriptor(int fd)
{
	return fd >= FD_FIRST && fd < FD_FIRST + FDS;
}

void memdisk_abandon(const struct memdisk *d)
{
	for (int i = 0; i < FDS; i++)
		if (open_node[i] && open_on[i] == d)
			memdisk_close(FD_FIRST + i);
}

bool memdisk_there(const char *path)
{
	const char *last;
	struct inode *in = walk(AT_FDCWD, path, &last);
	return in && inode_find(in, last);
}

int memdisk_descriptors(void)
{
	int n = 0;
	for (int i = 0; i < FDS; i++)
		n += open_node[i] != NULL;
	return n;
}

void disk_close(int fd)
{
	if (fd != NO_FD)
		memdisk_close(fd);
}

int disk_make_folder(int folder, const char *name)
{
	const char *last;
	if (!enter(CALL_FOLDER))
		return -1;
	struct inode *in = walk(folder, name, &last);
	if (in && !inode_find(in, last))
		naming_add(disk, inode_new(true), NULL, NULL, in, last);
	return in ? 0 : -1;
}

int disk_lock(int fd)
{
	if (!enter(CALL_LOCK))
		return -1;
	struct inode *n = inode_of(fd);
	if (n->locked) {
		errno = EWOULDBLOCK;
		return -1;
	}
	n->locked = true;
	return 0;
}

int disk_allocate(int fd, uint64_t size)
{
	if (!enter(CALL_ALLOCATE))
		return -1;
	struct inode *n = inode_of(fd);
	if (n->seen.size < size)
		inode_resize(n, size);
	return 0;
}

int disk_truncate(int fd, uint64_t size)
{
	if (!enter(CALL_TRUNCATE))
		return -1;
	inode_resize(inode_of(fd), size);
	return 0;
}

static int change_name_in(enum memdisk_call call, struct inode *from_folder, const char *name,
			  int to, const char *new)
{
	if (!enter(call))
		return -1;
	struct inode *n = inode_find(from_folder, name);
	if (!n) {
		errno = ENOENT;
		return -1;
	}
	naming_add(disk, n, from_folder, name, new ? inode_of(to) : NULL, new);
	return 0;
}

static int change_name(enum memdisk_call call, int from, const char *name, int to, const char *new)
{
	return change_name_in(call, inode_of(from), name, to, new);
}

int disk_unlink(int folder, const char *name)
{
	const char *last;
	struct inode *in = walk(folder, name, &last);
	const struct inode *n = in ? inode_find(in, last) : NULL;
	if (!in)
		return -1;
	if (n && n->folder) {
		errno = EISDIR;
		return -1;
	}
	return change_name_in(CALL_UNLINK, in, last, -1, NULL);
}

int memdisk_remove_folder(int folder, const char *name)
{
	const struct inode *n = inode_find(inode_of(folder), name);
	if (n && n->names.n > 0) {
		errno = ENOTEMPTY;
		return -1;
	}
	return change_name(CALL_UNLINK, folder, name, -1, NULL);
}

int disk_move(int from_folder, const char *from, int to_folder, const char *to)
{
	if (inode_find(inode_of(from_folder), from) && inode_find(inode_of(to_folder), to)) {
		errno = EEXIST;
		return -1;
	}
	return change_name(CALL_RENAME, from_folder, from, to_folder, to);
}

int disk_rename(int folder, const char *from, const char *to)
{
	return change_name(CALL_RENAME, folder, from, folder, to);
}

int disk_write(int fd, struct iovec *v, size_t n, uint64_t offset)
{
	size_t len = 0, done = 0;
	struct inode *node = inode_of(fd);
	if (disk->frozen) {
		errno = EIO;
		return -1;
	}
	for (size_t i = 0; i < n; i++)
		len += v[i].iov_len;
	uint8_t *bytes = mem_alloc(len ? len : 1);
	for (size_t i = 0; i < n; done += v[i++].iov_len)
		if (v[i].iov_len > 0)
			memcpy(bytes + done, v[i].iov_base, v[i].iov_len);
	bool ok = enter(CALL_WRITE);
	int error = errno;
	if (!ok && len > 0)
		len = chance_below(&disk->chance, (uint32_t)len);
	inode_write(node, offset, bytes, len);
	free(bytes);
	errno = error;
	return ok ? 0 : -1;
}

ssize_t memdisk_pread(int fd, void *to, size_t len, off_t offset)
{
	if (!enter(CALL_READ))
		return -1;
	return (ssize_t)blocks_read(&inode_of(fd)->seen, (uint64_t)offset, to, len);
}

ssize_t disk_read(int fd, void *to, size_t len, uint64_t offset)
{
	return memdisk_pread(fd, to, len, (off_t)offset);
}

static int sync_node(int fd, enum memdisk_call call)
{
	if (disk->frozen) {
		errno = EIO;
		return -1;
	}
	struct inode *n = inode_of(fd);
	bool ok = enter(call);
	int error = errno;
	if (ok)
		inode_sync(n);
	else
		inode_sync_fails(n, &disk->chance);
	if (ok && n->folder)
		naming_sync(disk, n);
	errno = error;
	return ok ? 0 : -1;
}

int disk_datasync(int fd)
{
	return sync_node(fd, CALL_DATASYNC);
}

int disk_sync(int fd)
{
	return sync_node(fd, CALL_SYNC);
}

int disk_start_writeback(int fd, uint64_t offset, uint64_t len)
{
	(void)fd;
	(void)offset;
	(void)len;
	return enter(CALL_WRITEBACK) ? 0 : -1;
}

int disk_size(int fd, uint64_t *bytes, int64_t *changed_ms)
{
	if (!enter(CALL_SIZE))
		return -1;
	*bytes = inode_of(fd)->seen.size;
	*changed_ms = inode_of(fd)->changed_ms;
	return 0;
}

int64_t disk_free_bytes(int fd)
{
	(void)fd;
	return enter(CALL_FREE) ? disk->room : -1;
}

int64_t disk_free_files(int fd)
{
	(void)fd;
	return -1;
}

bool disk_has_links(int folder)
{
	(void)folder;
	return true;
}

void disk_salt(void *to, size_t len)
{
	uint64_t salt = chance_next(&disk->chance);
	memset(to, 0, len);
	memcpy(to, &salt, len < sizeof salt ? len : sizeof salt);
}

/* Names may come and go meanwhile, and come in any order. */
int disk_each(int folder, void (*found)(void *owner, const char *name), void *owner)
{
	if (!enter(CALL_EACH))
		return -1;
	struct names all = {.n = 0};
	names_copy(&all, &inode_of(folder)->names);
	for (size_t i = all.n; i > 1; i--) {
		size_t k = chance_below(&disk->chance, (uint32_t)i);
		struct name swap = all.of[i - 1];
		all.of[i - 1] = all.of[k];
		all.of[k] = swap;
	}
	for (size_t i = 0; i < all.n; i++)
		found(owner, all.of[i].text);
	names_fini(&all);
	return 0;
}

static void files_below(struct inode *folder, const char *path,
			void (*found)(void *owner, const char *name, int fd), void *owner)
{
	for (size_t i = 0; i < folder->names.n; i++) {
		const struct name *n = &folder->names.of[i];
		char *name = mem_printf("%s/%s", path, n->text);
		if (n->node->folder) {
			files_below(n->node, name, found, owner);
		} else {
			int fd = descriptor(n->node);
			found(owner, name, fd);
			memdisk_close(fd);
		}
		free(name);
	}
}

void memdisk_files(const struct memdisk *d, void (*found)(void *owner, const char *name, int fd),
		   void *owner)
{
	files_below(d->root, "", found, owner);
}
