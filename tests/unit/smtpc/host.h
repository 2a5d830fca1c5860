/* host.h - a small SMTP server in a thread, and a loop that stands in for qmgr.
 *
 * The server plays one function for each connection, with blocking reads and writes, plain or TLS.
 */
#ifndef TESTS_UNIT_SMTPC_HOST_H
#define TESTS_UNIT_SMTPC_HOST_H

#include "tests/unit/base/unit.h"

#include "base/delivery.h"
#include "base/loop.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct host {
	int listener, port;
	pthread_t thread;
	SSL_CTX *context;
	/* of the connection being served: */
	int fd, number; /* the first is 1 */
	SSL *ssl;
	char heard[1 << 16];
	size_t nheard;
	char in[1 << 16];
	size_t in_at, in_len; /* read ahead */
	void (*serve)(struct host *);
	atomic_bool resumed; /* a TLS session was */
};

static inline void host_says(struct host *h, const char *text)
{
	if (h->ssl)
		SSL_write(h->ssl, text, (int)strlen(text));
	else if (send(h->fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		return;
}

/* The next byte, or -1. */
static inline int host_byte(struct host *h)
{
	if (h->in_at == h->in_len) {
		ssize_t n = h->ssl ? SSL_read(h->ssl, h->in, sizeof h->in)
				   : recv(h->fd, h->in, sizeof h->in, 0);
		if (n <= 0)
			return -1;
		h->in_at = 0;
		h->in_len = (size_t)n;
	}
	return (unsigned char)h->in[h->in_at++];
}

/* Read until all that was heard since the last call ends with these bytes. False: they hung up. */
static inline bool host_hears(struct host *h, const char *end)
{
	size_t n = strlen(end);
	h->nheard = 0;
	while (h->nheard < n || memcmp(h->heard + h->nheard - n, end, n) != 0) {
		if (h->nheard == sizeof h->heard - 1) {
			/* Large content: only its end matters. */
			memmove(h->heard, h->heard + h->nheard - n, n);
			h->nheard = n;
		}
		int c = host_byte(h);
		if (c < 0)
			return false;
		h->heard[h->nheard++] = (char)c;
		h->heard[h->nheard] = '\0';
	}
	return true;
}

static inline void host_greets(struct host *h, const char *ehlo)
{
	host_says(h, "220 host.test\r\n");
	host_hears(h, "\r\n");
	host_says(h, ehlo);
}

static inline SSL_CTX *host_context(void)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	X509_gmtime_adj(X509_getm_notBefore(cert), 0);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	X509_set_pubkey(cert, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
				   (const unsigned char *)"host.test", -1, -1, 0);
	X509_set_issuer_name(cert, X509_get_subject_name(cert));
	X509_sign(cert, key, EVP_sha256());
	SSL_CTX *c = SSL_CTX_new(TLS_server_method());
	SSL_CTX_use_certificate(c, cert);
	SSL_CTX_use_PrivateKey(c, key);
	X509_free(cert);
	EVP_PKEY_free(key);
	return c;
}

static inline void host_starts_tls(struct host *h)
{
	h->ssl = SSL_new(h->context);
	SSL_set_fd(h->ssl, h->fd);
	SSL_accept(h->ssl);
	if (SSL_session_reused(h->ssl))
		h->resumed = true;
}

static inline void *host_run(void *arg)
{
	struct host *h = arg;
	while ((h->fd = accept(h->listener, NULL, NULL)) >= 0) {
		h->number++;
		h->in_at = h->in_len = 0;
		h->serve(h);
		if (h->ssl)
			SSL_shutdown(h->ssl);
		SSL_free(h->ssl);
		h->ssl = NULL;
		close(h->fd);
	}
	return NULL;
}

static inline struct host *host_new(void (*serve)(struct host *))
{
	struct host *h = mem_zalloc(sizeof *h);
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof in;
	h->serve = serve;
	h->context = host_context();
	h->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(h->listener, (struct sockaddr *)&in, sizeof in), 0);
	assert_int_equal(listen(h->listener, 16), 0);
	getsockname(h->listener, (struct sockaddr *)&in, &len);
	h->port = ntohs(in.sin_port);
	pthread_create(&h->thread, NULL, host_run, h);
	return h;
}

static inline void host_free(struct host *h)
{
	shutdown(h->listener, SHUT_RDWR);
	pthread_join(h->thread, NULL);
	close(h->listener);
	SSL_CTX_free(h->context);
	free(h);
}

/* What comes back to qmgr, in order. */
struct inbox {
	struct loop *loop;
	pthread_mutex_t lock;
	pthread_cond_t came;
	struct note *notes[64];
	int n;
};

static inline void inbox_receive(void *owner, struct note *note)
{
	struct inbox *b = owner;
	pthread_mutex_lock(&b->lock);
	b->notes[b->n++] = note;
	pthread_cond_signal(&b->came);
	pthread_mutex_unlock(&b->lock);
}

static inline void inbox_init(struct inbox *b)
{
	memset(b, 0, sizeof *b);
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->came, NULL);
	b->loop = loop_new("qmgr", inbox_receive, NULL, b);
	loop_start(b->loop);
}

static inline void inbox_fini(struct inbox *b)
{
	loop_stop(b->loop);
	loop_free(&b->loop);
	assert_int_equal(b->n, 0);
	pthread_mutex_destroy(&b->lock);
	pthread_cond_destroy(&b->came);
}

/* The next note, of any type. */
static inline struct note *inbox_any(struct inbox *b)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 120;
	pthread_mutex_lock(&b->lock);
	int waited = 0;
	while (b->n == 0 && waited == 0)
		waited = pthread_cond_timedwait(&b->came, &b->lock, &until);
	struct note *note = b->n ? b->notes[0] : NULL;
	if (b->n)
		memmove(b->notes, b->notes + 1, (size_t)--b->n * sizeof b->notes[0]);
	pthread_mutex_unlock(&b->lock);
	assert_non_null(note);
	return note;
}

/* The next note, which must be of this type. Where that is not what is waited for, a busy machine makes a host slow. */
static inline void *inbox_next(struct inbox *b, int type)
{
	struct note *note;
	while ((note = inbox_any(b))->type == CONNECTION_SLOW && type != CONNECTION_SLOW)
		free(note);
	assert_int_equal(note->type, type);
	return note;
}

#endif
