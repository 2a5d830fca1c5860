/* SPDX-License-Identifier: ISC */
/* A Unix socket, to which lines are written as a stream. What its reader has not read when it goes away is
 * gone with it; a line that was on its way is written again whole. */
#include "base/clock.h"
#include "events/receiver_impl.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static enum receiver_answer answer_away(const struct receiver *r, const char *what, struct buf *why)
{
	buf_printf(why, "%s: %s", r->where, what);
	return RECEIVER_AWAY;
}

static bool connect_to(struct receiver *r)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	snprintf(to.sun_path, sizeof to.sun_path, "%s", r->where);
	r->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return r->fd >= 0 && connect(r->fd, (struct sockaddr *)&to, sizeof to) == 0;
}

/* The receiver says nothing, so that what can be read is its end. */
static bool has_ended(const struct receiver *r)
{
	char byte;
	ssize_t n = recv(r->fd, &byte, 1, MSG_DONTWAIT);
	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static enum receiver_answer give_lines(struct receiver *r, const char *lines, size_t len,
				       size_t *taken, struct buf *why)
{
	int64_t began_ms = clock_steady_ms();
	if (r->fd >= 0 && has_ended(r))
		receiver_close_fd(r);
	if (r->fd < 0 && !connect_to(r))
		return answer_away(r, strerror(errno), why);
	size_t written = 0;
	while (written < len) {
		ssize_t n = send(r->fd, lines + written, len - written, MSG_NOSIGNAL);
		if (n > 0)
			written += (size_t)n;
		*taken = receiver_whole(lines, written);
		if (n >= 0 || errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return answer_away(r, strerror(errno), why);
		struct pollfd p = {.fd = r->fd, .events = POLLOUT};
		poll(&p, 1, RECEIVER_LOOK_MS);
		if (!receiver_in_time(r, began_ms))
			return answer_away(r, "takes nothing", why);
	}
	return RECEIVER_TOOK;
}

const struct receiver_kind receiver_socket = {give_lines, receiver_close_fd};
