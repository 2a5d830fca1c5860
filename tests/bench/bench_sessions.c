/* SPDX-License-Identifier: ISC */
/* bench_sessions - clients that keep their connection, and how long each message took.
 *
 *	bench_sessions PORT SESSIONS SECONDS BYTES [RECIPIENTS [DOMAINS]]
 *
 * Each of the sessions sends one message after the other to a server of the loopback address, for so
 * long: MAIL, RCPT and DATA in one piece, and after 354 the content. A message takes from the first of
 * these to the 250 behind its content. With several recipients, and domains among which they are
 * dealt out, that many go into each message.
 *
 * One line on standard output, of JSON: messages, seconds, and microseconds that a message took, as
 * quantiles. A reply of another code than expected ends the program with it on standard error.
 *
 * One thread, which does as little as it can for a message: it shares the machine with who is measured.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 64, LINE = 78, MAIL_REPLIES = 2 };

enum step { GREETING, HELLO, ENVELOPE, CONTENT };

struct session {
	int fd;
	enum step step;
	int replies;	    /* that must still come before the next step */
	const char *unsent; /* of the content */
	size_t left;
	bool waits_for_room;
	int64_t began_us;
	size_t partial; /* bytes of a reply whose line has not ended */
	char line[512];
};

static struct buf envelope, content;
static int recipients = 1, domains = 1;
static int epoll;
static int64_t end_us;
static uint32_t *took_us;
static size_t nmessage, most;

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "bench_sessions: %s: %s\n", what, why);
	exit(1);
}

static void make_message(size_t bytes)
{
	buf_puts(&envelope, "MAIL FROM:<a@bench.test>\r\n");
	for (int i = 0; i < recipients; i++)
		buf_printf(&envelope, "RCPT TO:<b%d@d%d.bench.test>\r\n", i, i % domains);
	buf_puts(&envelope, "DATA\r\n");
	buf_puts(&content, "Subject: bench\r\n\r\n");
	while (buf_len(&content) < bytes) {
		char line[LINE + 1];
		memset(line, 'x', LINE);
		memcpy(line + LINE - 2, "\r\n", 3);
		buf_append(&content, line, LINE);
	}
	buf_puts(&content, ".\r\n");
}

static void watch(struct session *s, bool room)
{
	struct epoll_event e = {.events = EPOLLIN | (room ? EPOLLOUT : 0), .data.ptr = s};
	s->waits_for_room = room;
	if (epoll_ctl(epoll, EPOLL_CTL_MOD, s->fd, &e) != 0)
		fail("epoll_ctl", strerror(errno));
}

static void send_on(struct session *s)
{
	while (s->left > 0) {
		ssize_t n = send(s->fd, s->unsent, s->left, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			fail("send", strerror(errno));
		if (n < 0)
			break;
		s->unsent += n;
		s->left -= (size_t)n;
	}
	if (s->waits_for_room != (s->left > 0))
		watch(s, s->left > 0);
}

static void say(struct session *s, enum step step, int replies, const struct buf *what)
{
	s->step = step;
	s->replies = replies;
	s->unsent = buf_data(what);
	s->left = buf_len(what);
	send_on(s);
}

static void begin_message(struct session *s)
{
	s->began_us = clock_steady_us();
	say(s, ENVELOPE, MAIL_REPLIES + recipients, &envelope);
}

static void end_message(const struct session *s)
{
	if (nmessage == most) {
		most = most ? most * 2 : 1 << 16;
		took_us = mem_realloc(took_us, most * sizeof *took_us);
	}
	took_us[nmessage++] = (uint32_t)(clock_steady_us() - s->began_us);
}

static void go_on(struct session *s)
{
	static struct buf hello;
	if (buf_len(&hello) == 0)
		buf_puts(&hello, "EHLO bench.test\r\n");
	if (s->step == CONTENT)
		end_message(s);
	if (s->step == GREETING)
		say(s, HELLO, 1, &hello);
	else if (s->step == ENVELOPE)
		say(s, CONTENT, 1, &content);
	else
		begin_message(s);
}

/* The last reply to an envelope is 354, all others are of the 200s. */
static void take_line(struct session *s, const char *line)
{
	char want = s->step == ENVELOPE && s->replies == 1 ? '3' : '2';
	if (line[0] != want)
		fail("reply", line);
	if (line[3] == '-' || --s->replies > 0)
		return;
	go_on(s);
}

static void take_in(struct session *s)
{
	ssize_t n = recv(s->fd, s->line + s->partial, sizeof s->line - s->partial - 1, 0);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0)
		fail("connection", n == 0 ? "closed by the server" : strerror(errno));
	char *at = s->line, *end;
	s->line[s->partial + (size_t)n] = '\0';
	while ((end = strstr(at, "\r\n"))) {
		*end = '\0';
		take_line(s, at);
		at = end + 2;
	}
	s->partial = strlen(at);
	memmove(s->line, at, s->partial);
}

static void open_session(int port)
{
	struct session *s = mem_zalloc(sizeof *s);
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = s};
	int on = 1;
	s->replies = 1;
	s->fd = socket(AF_INET, SOCK_STREAM, 0);
	if (s->fd < 0 || connect(s->fd, (struct sockaddr *)&to, sizeof to) != 0)
		fail("connect", strerror(errno));
	setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	fcntl(s->fd, F_SETFL, O_NONBLOCK);
	epoll_ctl(epoll, EPOLL_CTL_ADD, s->fd, &e);
}

static void run(void)
{
	struct epoll_event ready[EVENTS];
	while (clock_steady_us() < end_us) {
		int n = epoll_wait(epoll, ready, EVENTS, 100);
		for (int i = 0; i < n; i++) {
			struct session *s = ready[i].data.ptr;
			if (ready[i].events & EPOLLOUT)
				send_on(s);
			if (ready[i].events & ~(unsigned)EPOLLOUT)
				take_in(s);
		}
	}
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static uint32_t quantile(double part)
{
	return nmessage ? took_us[(size_t)((double)(nmessage - 1) * part)] : 0;
}

int main(int argc, char **argv)
{
	if (argc < 5) {
		fputs("usage: bench_sessions PORT SESSIONS SECONDS BYTES [RECIPIENTS [DOMAINS]]\n",
		      stderr);
		return 2;
	}
	recipients = argc > 5 ? atoi(argv[5]) : 1;
	domains = argc > 6 ? atoi(argv[6]) : 1;
	make_message((size_t)atoll(argv[4]));
	epoll = epoll_create1(EPOLL_CLOEXEC);
	for (int i = atoi(argv[2]); i > 0; i--)
		open_session(atoi(argv[1]));
	int64_t began_us = clock_steady_us();
	end_us = began_us + (int64_t)(atof(argv[3]) * 1e6);
	run();
	double seconds = (double)(clock_steady_us() - began_us) / 1e6;
	qsort(took_us, nmessage, sizeof *took_us, compare);
	printf("{\"messages\": %zu, \"seconds\": %.3f, \"p50\": %" PRIu32 ", \"p90\": %" PRIu32
	       ", \"p99\": %" PRIu32 ", \"p999\": %" PRIu32 ", \"most\": %" PRIu32 "}\n",
	       nmessage, seconds, quantile(0.5), quantile(0.9), quantile(0.99), quantile(0.999),
	       quantile(1.0));
	return 0;
}
