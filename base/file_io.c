/* SPDX-License-Identifier: ISC */
#include "base/file_io.h"

#include <errno.h>
#include <unistd.h>

enum { PIECE = 64 << 10 };

bool file_read(int fd, size_t most, struct buf *to)
{
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

bool file_write(int fd, const void *data, size_t len)
{
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
