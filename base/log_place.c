/* SPDX-License-Identifier: ISC */
#include "base/log_place.h"

#include "base/clock.h"
#include "base/file_io.h"
#include "base/log_syslog.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_MS = 100, SYSLOG_AGAIN_MS = 1000 };

static const char system_socket[] = "/dev/log";

/* Whoever was killed while it wrote a line must not have the next one joined to that. */
static bool ends_torn(const char *path)
{
	char last = '\n';
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	bool torn = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
		    pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n';
	close(fd);
	return torn;
}

/* A FIFO is opened for reading too: so it can be opened while nobody reads, and a reader that goes
 * costs no line but those that the pipe can't hold. */
static int open_file(const char *path)
{
	struct stat st;
	bool fifo = stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
	int flags = fifo ? O_RDWR | O_NONBLOCK : O_WRONLY | O_CREAT | O_NONBLOCK;
	return open(path, flags | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640);
}

static void use_fd(struct log_place *p, int fd)
{
	struct stat st;
	p->fd = fd;
	p->blocks = fstat(fd, &st) != 0 || !S_ISREG(st.st_mode);
}

bool log_place_open(struct log_place *p, const char *where, struct buf *error)
{
	*p = (struct log_place){0};
	if (strcmp(where, "stderr") == 0) {
		use_fd(p, STDERR_FILENO);
		return true;
	}
	p->syslog = strncmp(where, "syslog", 6) == 0;
	if (p->syslog) {
		/* A syslogd that is not there yet is no reason not to start. */
		p->path = mem_strdup(where[6] == ':' ? where + 7 : system_socket);
		p->fd = log_syslog_open(p->path);
		return true;
	}
	int fd = open_file(where);
	if (fd < 0) {
		buf_printf(error, "can't open the log %s: %s", where, strerror(errno));
		return false;
	}
	p->path = mem_strdup(where);
	p->torn = ends_torn(where);
	use_fd(p, fd);
	return true;
}

void log_place_close(struct log_place *p)
{
	if (p->path && p->fd >= 0)
		close(p->fd);
	free(p->path);
	*p = (struct log_place){.fd = STDERR_FILENO, .blocks = true};
}

bool log_place_try(const char *where, struct buf *error)
{
	if (*where != '/')
		return true;
	int fd = open_file(where);
	if (fd < 0) {
		buf_printf(error, "can't open the log %s: %s", where, strerror(errno));
		return false;
	}
	close(fd);
	return true;
}

void log_place_reopen(struct log_place *p)
{
	if (!p->path)
		return;
	int fd = p->syslog ? log_syslog_open(p->path) : open_file(p->path);
	if (fd < 0)
		return;
	file_close(p->fd);
	use_fd(p, fd);
	p->torn = !p->syslog && ends_torn(p->path); /* it may be the same file */
}

/* Until it takes bytes; false: not in time. */
static bool wait_for_room(int fd, const _Atomic int64_t *give_up_ms)
{
	for (;;) {
		int64_t until = atomic_load(give_up_ms);
		bool late = until && clock_steady_ms() >= until;
		int ready =
			poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, late ? 0 : LOOK_MS);
		if (ready > 0 || (ready < 0 && errno != EINTR))
			return true;
		if (late)
			return false;
	}
}

static int count_lines(const char *text, size_t len)
{
	int n = 0;
	for (const char *end = text + len; (text = memchr(text, '\n', (size_t)(end - text)));)
		n++, text++;
	return n;
}

/* Bytes that were written. Of another's pipe we may not change the flags: what it has room for at
 * least is PIPE_BUF once it says that it has any. */
static size_t write_some(struct log_place *p, const char *text, size_t len,
			 const _Atomic int64_t *give_up_ms)
{
	size_t done = 0;
	while (done < len) {
		size_t part = len - done;
		if (p->blocks && !wait_for_room(p->fd, give_up_ms))
			break;
		ssize_t n =
			write(p->fd, text + done, p->blocks && part > PIPE_BUF ? PIPE_BUF : part);
		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || (errno != EINTR && errno != EAGAIN))
			break;
	}
	return done;
}

int log_place_write(struct log_place *p, const char *lines, size_t len,
		    const _Atomic int64_t *give_up_ms)
{
	assert(!p->syslog && len > 0 && lines[len - 1] == '\n');
	if (p->torn && write_some(p, "\n", 1, give_up_ms) == 0)
		return count_lines(lines, len);
	size_t done = write_some(p, lines, len, give_up_ms);
	p->torn = done > 0 ? lines[done - 1] != '\n' : false;
	return count_lines(lines + done, len - done);
}

static bool send_line(struct log_place *p, int level, const char *line, size_t len,
		      const _Atomic int64_t *give_up_ms)
{
	for (bool again = true;;) {
		if (p->fd >= 0 && log_syslog_send(p->fd, level, line, len))
			return true;
		if (p->fd >= 0 && errno == EAGAIN) {
			if (!wait_for_room(p->fd, give_up_ms))
				return false;
			continue;
		}
		/* syslogd was started anew, or is not there. */
		if (!again || clock_steady_ms() - p->refused_ms < SYSLOG_AGAIN_MS)
			return false;
		again = false;
		file_close(p->fd);
		p->fd = log_syslog_open(p->path);
		if (p->fd < 0)
			p->refused_ms = clock_steady_ms();
	}
}

int log_place_send(struct log_place *p, int level, const char *lines, size_t len,
		   const _Atomic int64_t *give_up_ms)
{
	assert(p->syslog && len > 0 && lines[len - 1] == '\n');
	int lost = 0;
	const char *end = lines + len, *line_end;
	for (; lines < end && (line_end = memchr(lines, '\n', (size_t)(end - lines)));
	     lines = line_end + 1)
		if (!send_line(p, level, lines, (size_t)(line_end - lines), give_up_ms))
			lost++;
	return lost;
}
