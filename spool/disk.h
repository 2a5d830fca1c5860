/* disk.h - every system call of the spool on files.
 *
 * An edge: a test links its own disk.c to make writes and syncs fail, or to stop the machine
 * between any two of them.
 *
 * OWNERSHIP  Descriptors are the caller's.
 * THREAD     Any.
 * ERRORS     -1 with errno, as the system calls beneath. Short writes and interrupted calls are
 *            finished here.
 */
#ifndef SPOOL_DISK_H
#define SPOOL_DISK_H

#include <errno.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

int disk_open(int folder, const char *name, int flags); /* relative to folder, AT_FDCWD allowed */
int disk_open_top(const char *path); /* the folder of a queue, or a symbolic link to it */
void disk_close(int fd);	     /* -1 is allowed; errno stays */
int disk_make_folder(int folder, const char *name); /* mode 0700; 0 when it is there already */
int disk_lock(int fd);				    /* EWOULDBLOCK: another process has it */
int disk_allocate(int fd, uint64_t size);	    /* reserve blocks and set the size */
int disk_truncate(int fd, uint64_t size);
int disk_unlink(int folder, const char *name);
int disk_move(int from_folder, const char *name, int to_folder, const char *to_name);
/* EEXIST: that name is taken, and stays what it is. */

int disk_rename(int folder, const char *from, const char *to);

int disk_write(int fd, struct iovec *, size_t n, uint64_t offset);
/* All of the pieces, any number of them, one behind the other. The array is used up. */

ssize_t disk_read(int fd, void *to, size_t len, uint64_t offset);
/* Less than len only at the end of the file. */

int disk_datasync(int fd);
int disk_sync(int fd); /* metadata too: folders */
int disk_start_writeback(int fd, uint64_t offset, uint64_t len);
/* Begin to write these pages, without waiting. */

int disk_size(int fd, uint64_t *bytes, int64_t *changed_ms);
int64_t disk_free_bytes(int fd); /* of its file system */
int64_t disk_free_files(int fd); /* how many more it can have; -1 where it sets no limit */

static inline bool disk_means_full(int error)
{
	return error == ENOSPC || error == EDQUOT;
}
/* The disk, or what its user may have of it: whatever goes makes room. */

bool disk_has_links(int folder); /* not where it was removed; nor on file systems that count none */

void disk_salt(void *to, size_t len); /* random bytes; zeros when there are none to be had */

int disk_each(int folder, void (*found)(void *owner, const char *name), void *owner);
/* Call found for each name in the folder but "." and "..". -1: there may be more of them. */

#endif
