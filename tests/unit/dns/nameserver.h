/* nameserver.h - a name server for one test: UDP and TCP on a port of loopback, answers by script.
 *
 *	nameserver_start(&s, answer) --> port s.port --> answer() for each question --> reply
 *
 * answer() is called on the server's own thread. What it leaves in the reply is sent; a reply of no
 * length is not. Over UDP a reply longer than the asker takes is cut and marked as truncated.
 *
 * THREAD     nameserver_count(): any.
 */
#ifndef TESTS_UNIT_DNS_NAMESERVER_H
#define TESTS_UNIT_DNS_NAMESERVER_H

#include "tests/unit/dns/wire.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct nameserver_question {
	unsigned id, type;
	char name[256];
	bool tcp;
	size_t room; /* bytes that a UDP reply may have; 0: no EDNS */
};

struct nameserver {
	int udp, tcp, end[2];
	int port;
	pthread_t thread;
	void (*answer)(const struct nameserver_question *, struct wire *);
	pthread_mutex_t lock;
	int nseen;
	char seen[4096][80]; /* "type name" of each question, with " plain" and " tcp" */
	struct wire in, out;
};

static inline int nameserver_count(struct nameserver *s, unsigned type, const char *rest)
{
	char text[80];
	int n = 0;
	snprintf(text, sizeof text, "%u %s", type, rest);
	pthread_mutex_lock(&s->lock);
	for (int i = 0; i < s->nseen; i++)
		n += strcmp(s->seen[i], text) == 0;
	pthread_mutex_unlock(&s->lock);
	return n;
}
/* How often "name", "name plain", "name tcp", ... was asked. */

static inline void nameserver_read(const uint8_t *p, size_t len, struct nameserver_question *q)
{
	size_t at = 12, n = 0;
	q->id = (unsigned)(p[0] << 8 | p[1]);
	while (at < len && p[at] && n + p[at] + 2 < sizeof q->name) {
		if (n)
			q->name[n++] = '.';
		memcpy(q->name + n, p + at + 1, p[at]);
		n += p[at];
		at += 1U + p[at];
	}
	q->name[n] = '\0';
	q->type = (unsigned)(p[at + 1] << 8 | p[at + 2]);
	at += 5;
	q->room = at + 11 <= len ? (size_t)(p[at + 3] << 8 | p[at + 4]) : 0;
}

static inline void nameserver_serve(struct nameserver *s, bool tcp)
{
	struct nameserver_question q = {.tcp = tcp};
	nameserver_read(s->in.data, s->in.len, &q);
	pthread_mutex_lock(&s->lock);
	snprintf(s->seen[s->nseen++ % 4096], 80, "%u %.60s%s%s", q.type, q.name,
		 q.room ? "" : " plain", tcp ? " tcp" : "");
	pthread_mutex_unlock(&s->lock);
	wire_reply(&s->out, q.id, 0, q.name, q.type);
	size_t question = s->out.len;
	s->answer(&q, &s->out);
	if (!tcp && s->out.len > (q.room ? q.room : 512)) {
		s->out.len = question;
		memset(s->out.data + 6, 0, 6);
		s->out.data[2] |= 0x02;
	}
}

static inline void nameserver_udp(struct nameserver *s)
{
	struct sockaddr_in from;
	socklen_t size = sizeof from;
	ssize_t n = recvfrom(s->udp, s->in.data, 4096, 0, (struct sockaddr *)&from, &size);
	if (n < 17)
		return;
	s->in.len = (size_t)n;
	nameserver_serve(s, false);
	if (s->out.len)
		sendto(s->udp, s->out.data, s->out.len, 0, (struct sockaddr *)&from, size);
}

static inline void nameserver_tcp(struct nameserver *s)
{
	uint8_t len[2];
	int fd = accept(s->tcp, NULL, NULL);
	while (fd >= 0 && recv(fd, len, 2, MSG_WAITALL) == 2) {
		s->in.len = (size_t)(len[0] << 8 | len[1]);
		if (recv(fd, s->in.data, s->in.len, MSG_WAITALL) != (ssize_t)s->in.len)
			break;
		nameserver_serve(s, true);
		len[0] = (uint8_t)(s->out.len >> 8);
		len[1] = (uint8_t)s->out.len;
		if (send(fd, len, 2, MSG_NOSIGNAL) != 2 ||
		    send(fd, s->out.data, s->out.len, MSG_NOSIGNAL) != (ssize_t)s->out.len)
			break;
	}
	if (fd >= 0)
		close(fd);
}

static inline void *nameserver_run(void *arg)
{
	struct nameserver *s = arg;
	struct pollfd p[3] = {{.fd = s->udp, .events = POLLIN},
			      {.fd = s->tcp, .events = POLLIN},
			      {.fd = s->end[0], .events = POLLIN}};
	while (poll(p, 3, -1) > 0 && !p[2].revents) {
		if (p[0].revents)
			nameserver_udp(s);
		if (p[1].revents)
			nameserver_tcp(s);
	}
	return NULL;
}

/* Both at one port, which the system chooses for the first of them: false where another program has it for the second. */
static inline bool nameserver_bind(struct nameserver *s)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof a;
	s->tcp = socket(AF_INET, SOCK_STREAM, 0);
	s->udp = socket(AF_INET, SOCK_DGRAM, 0);
	if (bind(s->tcp, (struct sockaddr *)&a, size) == 0 &&
	    getsockname(s->tcp, (struct sockaddr *)&a, &size) == 0 &&
	    bind(s->udp, (struct sockaddr *)&a, size) == 0) {
		s->port = ntohs(a.sin_port);
		return true;
	}
	close(s->udp);
	close(s->tcp);
	return false;
}

static inline bool nameserver_start(struct nameserver *s,
				    void (*answer)(const struct nameserver_question *,
						   struct wire *))
{
	enum { PORTS = 100 };
	int tried = 0;
	s->answer = answer;
	pthread_mutex_init(&s->lock, NULL);
	while (!nameserver_bind(s))
		if (++tried == PORTS)
			return false;
	return listen(s->tcp, 10) == 0 && pipe(s->end) == 0 &&
	       pthread_create(&s->thread, NULL, nameserver_run, s) == 0;
}

static inline void nameserver_stop(struct nameserver *s)
{
	close(s->end[1]);
	pthread_join(s->thread, NULL);
	close(s->end[0]);
	close(s->udp);
	close(s->tcp);
	pthread_mutex_destroy(&s->lock);
}

#endif
