/* SPDX-License-Identifier: ISC */
#include "cmd/watch/kept_file.h"

#include "base/crc32c.h"
#include "base/file_io.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct kept_file kept_destdb = {"destdb", "sluice destdb 1\n", "hosts are tried anew"};
const struct kept_file kept_suspended = {"suspended", "sluice suspended 1\n",
					 "no login is suspended"};
const struct kept_file kept_suppressed = {"suppressed", "sluice suppressed 1\n",
					  "no recipient is known to be dead"};
const struct kept_file kept_events = {"events", "sluice events 1\n",
				      "what was in it nobody will be told"};
const struct kept_file kept_sts = {"mta-sts", "sluice mta-sts 1\n", "policies are fetched anew"};
const struct kept_file kept_tlsrpt = {"tlsrpt", "sluice tlsrpt 1\n",
				      "what was to be reported on TLS is not"};
const struct kept_file kept_logins = {"logins", "sluice logins 1\n",
				      "what logins have sent is counted from now on"};
const struct kept_file kept_flows = {"flows", "sluice flows 1\n",
				     "what became of the mail of flows is counted from now on"};
const struct kept_file kept_cluster = {"cluster", "sluice cluster 1\n",
				       "orders for all nodes are carried out once more"};

enum { SIZE_MAX_BYTES = 256 << 20 };

static void log_fault(const struct kept_file *f, const char *spool, const char *what)
{
	log_event(LOG_LEVEL_ERROR, f->name, "spool", spool, "reason", what, NULL);
}

/* NULL: all of it is there; or there is none, and that was no fault. Otherwise why not. */
static const char *read_intact(const struct kept_file *f, int folder, struct buf *to)
{
	int fd = folder < 0 ? -1 : openat(folder, f->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? NULL : log_text("it can't be read (%s)", strerror(errno));
	const char *why = !file_read(fd, SIZE_MAX_BYTES, to)
				  ? log_text("it can't be read (%s)", strerror(errno))
			  : crc32c_text_good(buf_cstr(to), buf_len(to), f->first_line)
				  ? NULL
				  : "it is damaged";
	close(fd);
	if (why) {
		buf_clear(to);
		return why;
	}
	buf_consume(to, strlen(f->first_line));
	buf_shorten(to, CRC32C_LINE);
	return NULL;
}

/* Kept for the operator: the next that is written takes its place. */
static void put_aside(const struct kept_file *f, int folder, const char *spool, const char *why)
{
	const char *bad = log_text("%s.bad", f->name);
	if (renameat(folder, f->name, folder, bad) == 0)
		log_fault(f, spool, log_text("%s, and now %s.bad; %s", why, f->name, f->damaged));
	else
		log_fault(f, spool, log_text("%s; %s", why, f->damaged));
}

void kept_file_read(const struct kept_file *f, const char *spool, struct buf *to)
{
	int folder = open(spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *why = read_intact(f, folder, to);
	if (why)
		put_aside(f, folder, spool, why);
	file_close(folder);
}

void kept_file_look(const struct kept_file *f, const char *spool, struct buf *to)
{
	int folder = open(spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	read_intact(f, folder, to);
	file_close(folder);
}

static bool replace_file(const struct kept_file *f, int folder, const struct buf *b)
{
	const char *fresh = log_text("%s.new", f->name);
	int fd = openat(folder, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	bool ok = file_write(fd, buf_data(b), buf_len(b)) && fsync(fd) == 0;
	ok = close(fd) == 0 && ok;
	return ok && renameat(folder, fresh, folder, f->name) == 0 && fsync(folder) == 0;
}

bool kept_file_try(const struct kept_file *f, const char *spool, const char *text)
{
	struct buf b = {0};
	buf_puts(&b, f->first_line);
	buf_puts(&b, text);
	buf_printf(&b, "crc %08X\n", crc32c(0, buf_data(&b), buf_len(&b)));
	int folder = open(spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool ok = folder >= 0 && replace_file(f, folder, &b);
	int error = errno;
	file_close(folder);
	buf_fini(&b);
	errno = error;
	return ok;
}

bool kept_file_write(const struct kept_file *f, const char *spool, const char *text)
{
	bool ok = kept_file_try(f, spool, text);
	if (!ok)
		log_fault(f, spool, strerror(errno));
	return ok;
}
