/* SPDX-License-Identifier: ISC */
/* null_milter - a filter that has nothing against anything.
 *
 *	null_milter PORT [all]
 *
 * The port is of the loopback address. It wants to know of the end of each body only, or with "all" of
 * everything, and answers each with "continue". One thread. SIGTERM ends it.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

enum { CLIENTS_MAX = 1000, ROOM = 256 << 10, HEAD = 4, NOTHING = 0x37f };

struct client {
	size_t len;
	char bytes[ROOM];
};

static struct pollfd fds[CLIENTS_MAX + 1];
static struct client *clients[CLIENTS_MAX + 1];
static nfds_t n = 1;
static bool all;

static void answer(int fd, char command)
{
	static const char go_on[] = {0, 0, 0, 1, 'c'};
	char hello[HEAD + 13] = {[3] = 13, 'O', [8] = 6};
	hello[15] = (char)(all ? 0 : NOTHING >> 8);
	hello[16] = (char)(all ? 0 : NOTHING & 0xff);
	const char *bytes = command == 'O' ? hello : go_on;
	size_t len = command == 'O' ? sizeof hello : sizeof go_on;
	if (strchr("DAKQ", command) == NULL && write(fd, bytes, len) != (ssize_t)len)
		exit(1);
}

static bool serve(nfds_t i)
{
	struct client *c = clients[i];
	ssize_t got = read(fds[i].fd, c->bytes + c->len, ROOM - c->len);
	size_t at = 0;
	if (got <= 0)
		return false;
	c->len += (size_t)got;
	while (c->len - at > HEAD) {
		uint32_t len;
		memcpy(&len, c->bytes + at, sizeof len);
		len = ntohl(len);
		if (len > ROOM - HEAD || c->len - at < HEAD + len)
			break;
		answer(fds[i].fd, c->bytes[at + HEAD]);
		at += HEAD + len;
	}
	c->len -= at;
	memmove(c->bytes, c->bytes + at, c->len);
	return true;
}

static void drop(nfds_t i)
{
	close(fds[i].fd);
	free(clients[i]);
	n--;
	fds[i] = fds[n];
	clients[i] = clients[n];
}

static void take(void)
{
	int fd = accept(fds[0].fd, NULL, NULL);
	if (fd < 0)
		return;
	if (n > CLIENTS_MAX || !(clients[n] = calloc(1, sizeof *clients[n]))) {
		close(fd);
		return;
	}
	fds[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

static bool open_port(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	fds[0] = (struct pollfd){.fd = fd, .events = POLLIN};
	return bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 512) == 0;
}

int main(int argc, char **argv)
{
	all = argc > 2;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (argc < 2 || !open_port(atoi(argv[1])))
		return 2;
	while (poll(fds, n, -1) >= 0) {
		for (nfds_t i = n; i-- > 1;)
			if (fds[i].revents && !serve(i))
				drop(i);
		if (fds[0].revents)
			take();
	}
	return 1;
}
