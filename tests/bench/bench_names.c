/* SPDX-License-Identifier: ISC */
/* bench_names - how long a name server takes for many questions.
 *
 *	bench_names ADDRESS PORT WINDOW < QUESTIONS
 *
 * Each line of QUESTIONS is a name and the number of a type. So many of them are under way at once, by UDP; what is not
 * answered in a second is asked again. One line of JSON on standard output: questions, seconds, and how many
 * were answered, proven (AD), and with a failure.
 */
#include "base/clock.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD = 12, QUESTION_MAX = 300, WINDOW_MAX = 1000, AGAIN_MS = 1000, ANSWER_MAX = 65536 };

struct question {
	unsigned char packet[QUESTION_MAX];
	size_t len;
	int64_t sent_ms; /* 0: nothing is under way here */
};

static struct question slots[WINDOW_MAX];
static int window, fd, asked, answered, proven, failed;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void send_question(struct question *q)
{
	q->sent_ms = clock_steady_ms();
	if (send(fd, q->packet, q->len, 0) < 0 && errno != ENOBUFS)
		fail("send");
}

static size_t put_name(unsigned char *to, char *name)
{
	size_t len = 0;
	for (char *label = strtok(name, "."); label; label = strtok(NULL, ".")) {
		size_t n = strlen(label);
		to[len++] = (unsigned char)n;
		memcpy(to + len, label, n);
		len += n;
	}
	to[len++] = 0;
	return len;
}

/* RD, and AD: say whether it is proven (RFC 6840 5.7). The place is the id. */
static bool begin_next(int place)
{
	char name[256];
	int type;
	struct question *q = &slots[place];
	if (scanf("%255s %d", name, &type) != 2)
		return false;
	memset(q->packet, 0, HEAD);
	q->packet[0] = (unsigned char)(place >> 8);
	q->packet[1] = (unsigned char)place;
	q->packet[2] = 1;
	q->packet[3] = 0x20;
	q->packet[5] = 1;
	q->len = HEAD + put_name(q->packet + HEAD, name);
	q->packet[q->len++] = (unsigned char)(type >> 8);
	q->packet[q->len++] = (unsigned char)type;
	q->packet[q->len++] = 0;
	q->packet[q->len++] = 1;
	asked++;
	send_question(q);
	return true;
}

static void hear(void)
{
	static unsigned char packet[ANSWER_MAX];
	ssize_t n = recv(fd, packet, sizeof packet, 0);
	if (n < HEAD)
		return;
	int place = packet[0] << 8 | packet[1];
	struct question *q = place < window ? &slots[place] : NULL;
	if (!q || q->sent_ms == 0 || (size_t)n < q->len ||
	    memcmp(packet + HEAD, q->packet + HEAD, q->len - HEAD) != 0)
		return; /* of one that was asked again */
	answered++;
	proven += (packet[3] & 0x20) != 0;
	failed += (packet[3] & 0x0f) != 0 && (packet[3] & 0x0f) != 3;
	q->sent_ms = 0;
	begin_next(place);
}

static void ask_again(void)
{
	int64_t now = clock_steady_ms();
	for (int i = 0; i < window; i++)
		if (slots[i].sent_ms > 0 && now - slots[i].sent_ms > AGAIN_MS)
			send_question(&slots[i]);
}

static void open_socket(const char *address, int port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	inet_pton(AF_INET, address, &to.sin_addr);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
		fail("socket");
}

int main(int argc, char **argv)
{
	if (argc != 4 || (window = atoi(argv[3])) < 1 || window > WINDOW_MAX) {
		fputs("usage: bench_names ADDRESS PORT WINDOW\n", stderr);
		return 2;
	}
	open_socket(argv[1], atoi(argv[2]));
	int64_t began_ms = clock_steady_ms();
	for (int i = 0; i < window && begin_next(i);)
		i++;
	while (answered < asked) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		if (poll(&p, 1, AGAIN_MS) > 0)
			hear();
		else
			ask_again();
	}
	printf("{\"questions\": %d, \"seconds\": %.3f, \"proven\": %d, \"failed\": %d}\n", answered,
	       (double)(clock_steady_ms() - began_ms) / 1000, proven, failed);
	return 0;
}
