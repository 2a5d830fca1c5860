/* SPDX-License-Identifier: ISC */
/* A file: appended to; one that was moved away or removed is made anew. Or a named pipe, whose reader is there. */
#include "base/clock.h"
#include "events/receiver_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_there(const struct receiver *r)
{
	struct stat open_one, named;
	return r->fd >= 0 && fstat(r->fd, &open_one) == 0 && stat(r->where, &named) == 0 &&
	       open_one.st_ino == named.st_ino && open_one.st_dev == named.st_dev;
}

static enum receiver_answer answer_away(const struct receiver *r, struct buf *why)
{
	buf_printf(why, "%s: %s", r->where, strerror(errno));
	return RECEIVER_AWAY;
}

/* A line that was written in part is taken back: the file has whole ones, whoever reads it. */
static enum receiver_answer give_up(struct receiver *r, off_t before, const char *lines,
				    size_t written, size_t *taken, struct buf *why)
{
	enum receiver_answer answer = answer_away(r, why);
	*taken = receiver_whole(lines, written);
	if (*taken < written && ftruncate(r->fd, before + (off_t)*taken) != 0)
		buf_puts(why, ", in the middle of a line");
	return answer;
}

/* From a pipe nothing can be taken back: each write is of whole lines that it takes together, or not at all. A line that is too long for that
 * is waited for. */
static size_t bytes_at_once(const struct stat *of, const char *lines, size_t len)
{
	if (!S_ISFIFO(of->st_mode) || len <= PIPE_BUF)
		return len;
	size_t whole = receiver_whole(lines, PIPE_BUF);
	return whole > 0 ? whole : (size_t)((const char *)memchr(lines, '\n', len) + 1 - lines);
}

static bool wait_within_line(struct receiver *r, const char *lines, size_t written,
			     int64_t began_ms)
{
	struct pollfd p = {.fd = r->fd, .events = POLLOUT};
	if (errno != EAGAIN || receiver_whole(lines, written) == written)
		return false;
	poll(&p, 1, RECEIVER_LOOK_MS);
	errno = EAGAIN;
	return receiver_in_time(r, began_ms);
}

static enum receiver_answer give_lines(struct receiver *r, const char *lines, size_t len,
				       size_t *taken, struct buf *why)
{
	struct stat st;
	int64_t began_ms = clock_steady_ms();
	if (!is_there(r)) {
		receiver_close_fd(r);
		r->fd = open(r->where,
			     O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
			     0640);
	}
	if (r->fd < 0 || fstat(r->fd, &st) != 0)
		return answer_away(r, why);
	size_t written = 0;
	while (written < len) {
		ssize_t n = write(r->fd, lines + written,
				  bytes_at_once(&st, lines + written, len - written));
		if (n < 0 && (errno == EINTR || wait_within_line(r, lines, written, began_ms)))
			continue;
		if (n <= 0)
			return give_up(r, st.st_size, lines, written, taken, why);
		written += (size_t)n;
	}
	*taken = len;
	return RECEIVER_TOOK;
}

const struct receiver_kind receiver_file = {give_lines, receiver_close_fd};
