/* file_io.h - whole small files, read and written in one call.
 *
 * THREAD     Any. The calls block.
 * ERRORS     False, and errno says why.
 */
#ifndef BASE_FILE_IO_H
#define BASE_FILE_IO_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

FILE *file_open(const char *path);
/* To read it. NULL: errno; EINVAL for a named pipe, to which nobody may ever write, and for devices but /dev/null, which may
 * never end. */

bool file_read(int fd, size_t most, struct buf *to);
/* Append all that is left of the file. More than `most` bytes: EFBIG, with some of them appended. */

bool file_read_line(const char *path, char *line, size_t size, struct buf *why);
/* The first line of a file that is kept secret, of which no more than size - 1 bytes are looked at. False: why, as
 * where it is empty. */

void file_close(int fd); /* -1 is allowed; errno stays */

bool file_is_same(const struct stat *, const struct stat *);
/* As far as its place, its size and the time of the last write tell. */

bool file_write(int fd, const void *data, size_t len);
/* All of it, in as many writes as that takes. Nothing is synced. */

bool file_sync(int fd, const char *path);
/* The file, and its name in the folder: it is found after a power cut from here on. */

#endif
