/* SPDX-License-Identifier: ISC */
#include "cmd/dest_file.h"

#include "base/crc32c.h"
#include "base/log.h"
#include "spool/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FIRST_LINE "sluice destdb 1\n"
#define FILE_NAME "destdb"

enum { CRC_LINE = 13, PIECE = 64 << 10, SIZE_MAX_BYTES = 256 << 20 };

static void complain(const char *spool, const char *what)
{
	log_event(LOG_LEVEL_ERROR, "destdb", "spool", spool, "reason", what, NULL);
}

static bool read_all(int fd, struct buf *to)
{
	ssize_t n;
	while ((n = read(fd, buf_reserve(to, PIECE), PIECE)) > 0) {
		buf_commit(to, (size_t)n);
		if (buf_len(to) > SIZE_MAX_BYTES)
			return false;
	}
	return n == 0;
}

static bool right(struct buf *b)
{
	unsigned crc;
	size_t len = buf_len(b), first = strlen(FIRST_LINE);
	const char *text = buf_cstr(b);
	return len >= first + CRC_LINE && strncmp(text, FIRST_LINE, first) == 0 &&
	       sscanf(text + len - CRC_LINE, "crc %8x\n", &crc) == 1 &&
	       crc == crc32c(0, text, len - CRC_LINE);
}

static void put_aside(int folder, const char *spool)
{
	if (renameat(folder, FILE_NAME, folder, FILE_NAME ".bad") == 0)
		complain(spool, "it is damaged, and now destdb.bad; hosts are tried anew");
	else
		complain(spool, strerror(errno));
}

void dest_file_read(const char *spool, struct buf *to)
{
	int folder = open(spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = folder < 0 ? -1 : openat(folder, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		if (errno != ENOENT)
			complain(spool, strerror(errno));
	} else if (read_all(fd, to) && right(to)) {
		buf_consume(to, strlen(FIRST_LINE));
		to->tail -= CRC_LINE;
	} else {
		buf_clear(to);
		put_aside(folder, spool);
	}
	if (fd >= 0)
		close(fd);
	if (folder >= 0)
		close(folder);
}

static bool write_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		text += n;
		len -= (size_t)n;
	}
	return fsync(fd) == 0;
}

static bool replace(int folder, const struct buf *b)
{
	int fd = openat(folder, FILE_NAME ".new",
			O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	bool ok = write_all(fd, buf_data(b), buf_len(b));
	ok = close(fd) == 0 && ok;
	return ok && renameat(folder, FILE_NAME ".new", folder, FILE_NAME) == 0 &&
	       fsync(folder) == 0;
}

void dest_file_write(const char *spool, const char *text)
{
	struct buf b;
	buf_init(&b);
	buf_puts(&b, FIRST_LINE);
	buf_puts(&b, text);
	buf_printf(&b, "crc %08X\n", crc32c(0, buf_data(&b), buf_len(&b)));
	int folder = open(spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0 || !replace(folder, &b))
		complain(spool, strerror(errno));
	if (folder >= 0)
		close(folder);
	buf_fini(&b);
}
