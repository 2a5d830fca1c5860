/* SPDX-License-Identifier: ISC */
/* bench_tls - the two ends of a relay, under TLS or in clear.
 *
 *	bench_tls source PORT SESSIONS MESSAGES BYTES WORD...
 *	bench_tls sink PORT MESSAGES CERTIFICATE KEY WORD...
 *
 * The source sends so many messages, shared among so many sessions, to the loopback address: on a connection for
 * each session, or with `each` for each message. With `clear` it leaves STARTTLS alone, with `fresh` it never resumes a
 * session of TLS. The sink ends when it has got so many, and says with one line of JSON how many connections there were, and how
 * many of them were resumed. With `clear` it offers no STARTTLS, with `fresh` it lets nobody resume. A reply of another code
 * than expected ends the program with it on standard error.
 *
 * A thread for each connection, which blocks: both are here to be the same to all that are measured, not to be the fastest.
 */
#include "base/buf.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINE = 78, IN = 4096, BACKLOG = 1024 };

struct wire {
	int fd;
	SSL *ssl;
	struct buf out;
	size_t at, end;
	char in[IN];
};

static bool each, clear, fresh;
static int port, messages;
static SSL_CTX *context;
static struct buf content;
static atomic_int taken, connections, resumed;

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "bench_tls: %s: %s\n", what, why);
	exit(1);
}

static void wire_end(struct wire *w)
{
	if (w->ssl) {
		SSL_shutdown(w->ssl); /* or the session counts as broken and is not resumed */
		SSL_free(w->ssl);
	}
	close(w->fd);
	buf_fini(&w->out);
	*w = (struct wire){0};
}

static bool flush(struct wire *w)
{
	while (buf_len(&w->out) > 0) {
		size_t n = 0;
		if (w->ssl) {
			if (SSL_write_ex(w->ssl, buf_data(&w->out), buf_len(&w->out), &n) != 1)
				return false;
		} else {
			ssize_t sent = send(w->fd, buf_data(&w->out), buf_len(&w->out), 0);
			if (sent <= 0)
				return false;
			n = (size_t)sent;
		}
		buf_consume(&w->out, n);
	}
	return true;
}

/* What is to be said goes out when there is nothing left to be read. */
static bool fill(struct wire *w)
{
	size_t n = 0;
	if (!flush(w))
		return false;
	memmove(w->in, w->in + w->at, w->end - w->at);
	w->end -= w->at;
	w->at = 0;
	if (w->end == IN)
		fail("line", "too long");
	if (w->ssl) {
		if (SSL_read_ex(w->ssl, w->in + w->end, IN - w->end, &n) != 1)
			return false;
	} else {
		ssize_t got = recv(w->fd, w->in + w->end, IN - w->end, 0);
		if (got <= 0)
			return false;
		n = (size_t)got;
	}
	w->end += n;
	return true;
}

/* The next line, without its end, until the next call; NULL at the end of all. */
static const char *line(struct wire *w)
{
	for (;;) {
		char *end = memchr(w->in + w->at, '\n', w->end - w->at);
		if (end) {
			const char *at = w->in + w->at;
			*end = '\0';
			w->at = (size_t)(end + 1 - w->in);
			return at;
		}
		if (!fill(w))
			return NULL;
	}
}

static void nodelay(int fd)
{
	int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void shake_hands(struct wire *w, bool server, SSL_SESSION *session)
{
	w->ssl = SSL_new(context);
	SSL_set_fd(w->ssl, w->fd);
	if (session)
		SSL_set_session(w->ssl, session);
	if ((server ? SSL_accept(w->ssl) : SSL_connect(w->ssl)) != 1)
		fail("handshake", ERR_reason_error_string(ERR_peek_last_error()));
	resumed += SSL_session_reused(w->ssl);
}

/* The source. */

static void hear(struct wire *w, char code)
{
	const char *said;
	do {
		said = line(w);
		if (!said || said[0] != code)
			fail("reply", said ? said : "none");
	} while (said[3] == '-');
}

static void ask(struct wire *w, const char *what, char code)
{
	buf_puts(&w->out, what);
	hear(w, code);
}

static void greet(struct wire *w, SSL_SESSION *session)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	w->fd = socket(AF_INET, SOCK_STREAM, 0);
	if (w->fd < 0 || connect(w->fd, (struct sockaddr *)&to, sizeof to) != 0)
		fail("connect", strerror(errno));
	nodelay(w->fd);
	hear(w, '2');
	ask(w, "EHLO bench.test\r\n", '2');
	if (clear)
		return;
	ask(w, "STARTTLS\r\n", '2');
	shake_hands(w, false, session);
	ask(w, "EHLO bench.test\r\n", '2');
}

static void send_message(struct wire *w)
{
	buf_puts(&w->out, "MAIL FROM:<a@bench.test>\r\nRCPT TO:<b@bench.test>\r\nDATA\r\n");
	hear(w, '2');
	hear(w, '2');
	hear(w, '3');
	buf_append(&w->out, buf_data(&content), buf_len(&content));
	hear(w, '2');
}

/* Of the connection that ends: with TLS 1.3 the ticket came with the replies. */
static SSL_SESSION *leave(struct wire *w, SSL_SESSION *before)
{
	SSL_SESSION *session = NULL;
	ask(w, "QUIT\r\n", '2');
	if (w->ssl && !fresh)
		session = SSL_get1_session(w->ssl);
	SSL_SESSION_free(before);
	wire_end(w);
	return session;
}

static void *source_session(void *unused)
{
	struct wire w = {0};
	SSL_SESSION *session = NULL;
	bool open = false;
	while (atomic_fetch_sub(&taken, 1) > 0) {
		if (!open)
			greet(&w, session);
		open = !each;
		send_message(&w);
		if (each)
			session = leave(&w, session);
	}
	if (open)
		session = leave(&w, session);
	SSL_SESSION_free(session);
	return unused;
}

static void make_content(size_t bytes)
{
	buf_puts(&content, "Subject: bench\r\n\r\n");
	while (buf_len(&content) < bytes) {
		char text[LINE + 1];
		memset(text, 'x', LINE);
		memcpy(text + LINE - 2, "\r\n", 3);
		buf_append(&content, text, LINE);
	}
	buf_puts(&content, ".\r\n");
}

static void source(int sessions, size_t bytes)
{
	pthread_t *threads = mem_zalloc((size_t)sessions * sizeof *threads);
	context = SSL_CTX_new(TLS_client_method());
	make_content(bytes);
	taken = messages;
	for (int i = 0; i < sessions; i++)
		pthread_create(&threads[i], NULL, source_session, NULL);
	for (int i = 0; i < sessions; i++)
		pthread_join(threads[i], NULL);
	free(threads);
}

/* The sink. */

static void finish(void)
{
	printf("{\"connections\": %d, \"resumed\": %d}\n", connections, resumed);
	fflush(stdout);
	_exit(0);
}

static bool take_content(struct wire *w)
{
	buf_puts(&w->out, "354 go on\r\n");
	for (const char *text = line(w); text; text = line(w))
		if (strcmp(text, ".\r") == 0) {
			buf_puts(&w->out, "250 2.0.0 taken\r\n");
			return true;
		}
	return false;
}

static bool verb(const char *said, const char *name)
{
	return strncasecmp(said, name, strlen(name)) == 0;
}

/* False: it is over. */
static bool answer(struct wire *w, const char *said)
{
	if (verb(said, "EHLO")) {
		buf_puts(&w->out, "250-sink.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n");
		buf_puts(&w->out, clear || w->ssl ? "250 DSN\r\n" : "250 STARTTLS\r\n");
	} else if (verb(said, "STARTTLS")) {
		buf_puts(&w->out, "220 2.0.0 go on\r\n");
		if (!flush(w))
			return false;
		shake_hands(w, true, NULL);
	} else if (verb(said, "DATA")) {
		if (!take_content(w) || !flush(w))
			return false;
		if (++taken == messages)
			finish();
	} else if (verb(said, "QUIT")) {
		buf_puts(&w->out, "221 2.0.0 bye\r\n");
		flush(w);
		return false;
	} else {
		buf_puts(&w->out, "250 2.0.0 ok\r\n");
	}
	return true;
}

static void *sink_session(void *fd)
{
	struct wire w = {.fd = (int)(intptr_t)fd};
	const char *said;
	connections++;
	nodelay(w.fd);
	buf_puts(&w.out, "220 sink.test ESMTP\r\n");
	do
		said = line(&w);
	while (said && answer(&w, said));
	wire_end(&w);
	return NULL;
}

static int listening(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, BACKLOG) != 0)
		fail("listen", strerror(errno));
	return fd;
}

static void sink(const char *certificate, const char *key)
{
	pthread_attr_t detached;
	int listener = listening();
	context = SSL_CTX_new(TLS_server_method());
	if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1 ||
	    SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
		fail("certificate", ERR_reason_error_string(ERR_peek_last_error()));
	if (fresh) {
		SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
		SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
		SSL_CTX_set_num_tickets(context, 0);
	}
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	for (;;) {
		pthread_t thread;
		int fd = accept(listener, NULL, NULL);
		if (fd < 0 ||
		    pthread_create(&thread, &detached, sink_session, (void *)(intptr_t)fd) != 0)
			fail("accept", strerror(errno));
	}
}

int main(int argc, char **argv)
{
	bool sends = argc >= 6 && strcmp(argv[1], "source") == 0;
	if (argc < 6 || (!sends && strcmp(argv[1], "sink") != 0)) {
		fputs("usage: bench_tls source PORT SESSIONS MESSAGES BYTES WORD...\n"
		      "       bench_tls sink PORT MESSAGES CERTIFICATE KEY WORD...\n",
		      stderr);
		return 2;
	}
	for (int i = 6; i < argc; i++) {
		each |= strcmp(argv[i], "each") == 0;
		clear |= strcmp(argv[i], "clear") == 0;
		fresh |= strcmp(argv[i], "fresh") == 0;
	}
	signal(SIGPIPE, SIG_IGN);
	port = atoi(argv[2]);
	messages = atoi(argv[sends ? 4 : 3]);
	if (sends)
		source(atoi(argv[3]), (size_t)atoll(argv[5]));
	else
		sink(argv[4], argv[5]);
	return 0;
}
