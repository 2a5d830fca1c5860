/* SPDX-License-Identifier: ISC */
/* What a client says to the HTTP server, by a socket given to the library: replies begin as such, have
 * no status but those that the server gives, and nothing is left when the client goes.
 *
 * The first byte is the size of the pieces in which it comes; 255: all at once, and the server ends while it waits for its neighbours,
 * who answer then. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/neighbours.h"

#include "base/address.h"
#include "base/clock.h"
#include "cmd/http/http_core.h"

#include <signal.h>
#include <sys/socket.h>

enum { MINUTE_US = 60000000, ENDS_MEANWHILE = 255 };

static struct http *http;
static int64_t now_us = 1000000000;

struct loop *__wrap_qmgr_loop(struct qmgr *);
struct loop *__wrap_spool_loop(struct spool *);
bool __wrap_spool_accepting(const struct spool *);

struct loop *__wrap_qmgr_loop(struct qmgr *q)
{
	(void)q;
	return neighbours;
}

struct loop *__wrap_spool_loop(struct spool *s)
{
	(void)s;
	return neighbours;
}

bool __wrap_spool_accepting(const struct spool *s)
{
	(void)s;
	return true;
}

static bool neighbours_rest;

static void turn(void)
{
	for (int quiet = 0; quiet < 3; quiet++) {
		ev_run(http->loop->ev, EVRUN_NOWAIT);
		if ((!neighbours_rest && neighbours_turn()) || mailbox_drain(&http->loop->mailbox))
			quiet = 0;
	}
}

static void begin(void)
{
	struct buf error;
	fuzz_quiet();
	clock_stand(now_us);
	signal(SIGPIPE, SIG_IGN);
	buf_init(&error);
	struct conf *conf = conf_defaults();
	free(conf->http);
	conf->http = mem_strdup("127.0.0.1:0");
	free(conf->own_name);
	conf->own_name = mem_strdup("relay.test");
	if (!neighbours)
		neighbours_begin();
	http = http_new(conf, &(struct http_asks){0}, 0);
	bool listens = http_move(http, conf, &error);
	if (!listens)
		fprintf(stderr, "%s", buf_cstr(&error));
	assert(listens);
	conf_unref(conf);
	buf_fini(&error);
	turn();
}

static bool hear(int fd, struct buf *said)
{
	char bytes[8192];
	ssize_t n = 1, all = 0;
	for (int i = 0; i < 64 && n > 0; i++) {
		turn();
		n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
		if (n > 0 && (all += n) < 1 << 20)
			buf_append(said, bytes, (size_t)n);
	}
	return n != 0;
}

static void check(struct buf *said)
{
	static const int known[] = {100, 200, 400, 403, 404, 405, 408, 411,
				    413, 414, 431, 500, 501, 503, 505};
	const char *text = buf_cstr(said);
	if (buf_len(said) == 0)
		return;
	assert(strncmp(text, "HTTP/1.", 7) == 0 && strlen(text) > 12);
	bool found = false;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		found |= atoi(text + 9) == known[i];
	assert(found);
}

static void end_meanwhile(void)
{
	http_leave(http);
	neighbours_rest = false;
	neighbours_turn();
	http_free(&http);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	union address peer;
	struct buf said;
	int fd[2];
	if (size < 1)
		return 0;
	if (!http)
		begin();
	neighbours_rest = data[0] == ENDS_MEANWHILE;
	size_t piece = data[0] && !neighbours_rest ? data[0] : size;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) != 0)
		abort();
	address_parse("127.0.0.1", 4000, &peer);
	if (MHD_add_connection(http->daemon.library, fd[1], &peer.sa, sizeof peer.in) != MHD_YES)
		abort();
	buf_init(&said);
	http_daemon_wake(&http->daemon);
	bool open = hear(fd[0], &said);
	for (size_t at = 1; at < size && open; at += piece) {
		size_t n = size - at < piece ? size - at : piece;
		open = send(fd[0], data + at, n, MSG_NOSIGNAL) >= 0 && hear(fd[0], &said);
	}
	check(&said);
	close(fd[0]);
	if (neighbours_rest) {
		end_meanwhile();
		buf_fini(&said);
		return 0;
	}
	for (int i = 0; i < 3 && (http->clients.n > 0 || !list_empty(&http->asks)); i++) {
		clock_stand(now_us += MINUTE_US);
		http_daemon_wake(&http->daemon);
		turn();
	}
	assert(list_empty(&http->asks) && http->heavy == 0 && http->clients.n == 0);
	buf_fini(&said);
	return 0;
}
