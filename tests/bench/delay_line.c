/* SPDX-License-Identifier: ISC */
/* delay_line - a TCP proxy that makes the way long: what comes leaves so much later, both ways.
 *
 *	delay_line PORT TO_PORT ONE_WAY_MS [held]
 *
 * Both ports are of the loopback address. The bandwidth is not limited. With held, connections are
 * taken and nothing passes before SIGUSR1. SIGTERM ends it. At most LINKS_MAX connections at once.
 *
 * One thread, which wakes when something comes or is due, so that what it adds is the time that the
 * kernel takes to wake it.
 */
#include "base/list.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 64 << 10, LINKS_MAX = 500 };
static const int64_t A_SECOND = 1000000000, NEVER = INT64_MAX;

struct piece {
	struct list in_way;
	int64_t due_ns;
	size_t at, size; /* size 0: the end */
	char bytes[];
};

/* One direction of a connection. */
struct way {
	int from, to;
	bool read_all, written_all;
	struct list pieces;
};

struct link {
	struct list in_links;
	int64_t connect_ns; /* when SYN and its answer have passed; NEVER: done */
	struct way way[2];  /* up, down */
};

static struct list links;
static int nlinks, listener, to_port;
static int64_t one_way_ns;
static volatile sig_atomic_t open_now;

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * A_SECOND + t.tv_nsec;
}

static void on_open(int signal)
{
	(void)signal;
	open_now = 1;
}

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int listen_at(int port)
{
	struct sockaddr_in at = loopback(port);
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	return bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1024) == 0 ? fd : -1;
}

static void accept_one(void)
{
	int on = 1, fd = accept(listener, NULL, NULL);
	if (fd < 0)
		return;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	struct link *l = mem_zalloc(sizeof *l);
	l->connect_ns = now_ns() + 2 * one_way_ns;
	l->way[0].from = l->way[1].to = fd;
	l->way[0].to = l->way[1].from = -1;
	list_init(&l->way[0].pieces);
	list_init(&l->way[1].pieces);
	list_append(&links, &l->in_links);
	nlinks++;
}

static bool connect_through(struct link *l)
{
	struct sockaddr_in to = loopback(to_port);
	int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	l->way[0].to = l->way[1].from = fd;
	l->connect_ns = NEVER;
	return connect(fd, (struct sockaddr *)&to, sizeof to) == 0;
}

static void take_in(struct way *w)
{
	static char bytes[PIECE];
	ssize_t n = recv(w->from, bytes, sizeof bytes, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	size_t size = n > 0 ? (size_t)n : 0;
	struct piece *p = mem_alloc(sizeof *p + size);
	list_init(&p->in_way);
	p->due_ns = now_ns() + one_way_ns;
	p->at = 0;
	p->size = size;
	memcpy(p->bytes, bytes, size);
	w->read_all = size == 0;
	list_append(&w->pieces, &p->in_way);
}

static struct piece *first_of(const struct way *w)
{
	struct list *first = list_first(&w->pieces);
	return first ? list_entry(first, struct piece, in_way) : NULL;
}

static void drop(struct piece *p)
{
	list_remove(&p->in_way);
	free(p);
}

/* False: the connection has broken. */
static bool let_out(struct way *w, int64_t now)
{
	struct piece *p;
	while ((p = first_of(w)) && p->due_ns <= now) {
		if (p->size == 0) {
			w->written_all = true;
			shutdown(w->to, SHUT_WR);
			drop(p);
			return true;
		}
		ssize_t n =
			send(w->to, p->bytes + p->at, p->size - p->at, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		p->at += (size_t)n;
		if (p->at < p->size)
			return true;
		drop(p);
	}
	return true;
}

static void close_link(struct link *l)
{
	for (int i = 0; i < 2; i++) {
		struct piece *p;
		while ((p = first_of(&l->way[i])))
			drop(p);
		if (l->way[i].from >= 0)
			close(l->way[i].from);
	}
	list_remove(&l->in_links);
	free(l);
	nlinks--;
}

/* What is due. */
static void pass(struct link *l, int64_t now)
{
	bool well = true;
	if (l->connect_ns <= now)
		well = connect_through(l);
	for (int i = 0; i < 2 && well; i++)
		well = let_out(&l->way[i], now);
	if (!well || (l->way[0].written_all && l->way[1].written_all))
		close_link(l);
}

/* When the next of it is due; room for writing is waited for, not slept for. */
static int64_t next_due(int64_t now)
{
	int64_t due = NEVER;
	list_each (at, tmp, &links) {
		const struct link *l = list_entry(at, struct link, in_links);
		due = l->connect_ns < due ? l->connect_ns : due;
		for (int i = 0; i < 2; i++) {
			const struct piece *p = first_of(&l->way[i]);
			if (p && p->due_ns > now && p->due_ns < due)
				due = p->due_ns;
		}
	}
	return due;
}

/* Sleep until something comes, has room, or is due. */
static void wait_and_read(const sigset_t *while_asleep)
{
	static struct pollfd fds[2 * LINKS_MAX + 1];
	static struct way *ways[2 * LINKS_MAX + 1];
	nfds_t n = 0;
	int64_t now = now_ns(), due = open_now ? next_due(now) : NEVER;
	list_each (at, tmp, &links) {
		struct link *l = list_entry(at, struct link, in_links);
		for (int i = 0; i < 2 && l->connect_ns == NEVER; i++) {
			struct way *in = &l->way[i];
			const struct piece *out = first_of(&l->way[!i]);
			bool blocked = out && out->due_ns <= now;
			ways[n] = in;
			fds[n++] = (struct pollfd){.fd = in->read_all && !blocked ? -1 : in->from,
						   .events = (short)((in->read_all ? 0 : POLLIN) |
								     (blocked ? POLLOUT : 0))};
		}
	}
	fds[n].fd = nlinks < LINKS_MAX ? listener : -1;
	fds[n].events = POLLIN;
	int64_t left = due > now ? due - now : 0;
	struct timespec sleep = {left / A_SECOND, left % A_SECOND};
	if (ppoll(fds, n + 1, due == NEVER ? NULL : &sleep, while_asleep) <= 0)
		return;
	for (nfds_t i = 0; i < n; i++)
		if (!ways[i]->read_all && fds[i].revents & (POLLIN | POLLHUP | POLLERR))
			take_in(ways[i]);
	if (fds[n].revents)
		accept_one();
}

int main(int argc, char **argv)
{
	sigset_t opening, before;
	if (argc < 4) {
		fprintf(stderr, "usage: delay_line PORT TO_PORT ONE_WAY_MS [held]\n");
		return 2;
	}
	list_init(&links);
	to_port = atoi(argv[2]);
	one_way_ns = (int64_t)(atof(argv[3]) * 1e6);
	open_now = argc == 4;
	sigemptyset(&opening);
	sigaddset(&opening, SIGUSR1);
	sigprocmask(SIG_BLOCK, &opening, &before);
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_open}, NULL);
	prctl(PR_SET_TIMERSLACK, 1);
	listener = listen_at(atoi(argv[1]));
	if (listener < 0) {
		fprintf(stderr, "delay_line: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	for (;;) {
		wait_and_read(&before);
		int64_t now = now_ns();
		list_each (at, tmp, &links)
			if (open_now)
				pass(list_entry(at, struct link, in_links), now);
	}
}
