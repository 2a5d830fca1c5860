/* SPDX-License-Identifier: ISC */
#include "base/stream_impl.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

/* Whether the next handshake can be expected to end as this one did. */
static bool will_fail_again(int reason)
{
	return reason != SSL_R_UNEXPECTED_EOF_WHILE_READING &&
	       reason != SSL_R_TLSV1_ALERT_INTERNAL_ERROR &&
	       reason != SSL_R_TLSV1_ALERT_USER_CANCELLED;
}

/* Each record that came tells its type once it is known: of TLS 1.3 in the clear first, then what it is inside. */
static bool is_idle_record(int type, const unsigned char *bytes)
{
	bool known = type == SSL3_RT_HEADER || type == SSL3_RT_INNER_CONTENT_TYPE;
	return known && *bytes != SSL3_RT_APPLICATION_DATA;
}

static void on_message(int sent, int version, int type, const void *bytes, size_t len, SSL *ssl,
		       void *arg)
{
	struct stream *s = arg;
	magic_check(s, STREAM_MAGIC);
	(void)version;
	(void)ssl;
	if (len == 0)
		return;
	if (!sent && is_idle_record(type, bytes) && s->idle_records <= STREAM_IDLE_RECORDS)
		s->idle_records++;
	if (type == SSL3_RT_HANDSHAKE && s->handshake)
		s->handshake(s->owner, sent, bytes, len);
}

static bool has_too_many_records(const struct stream *s)
{
	return s->idle_records > STREAM_IDLE_RECORDS;
}

/* OpenSSL gets no more bytes of a peer that has sent too many; nothing else ends a read of its. */
static long before_read(BIO *b, int operation, const char *bytes, size_t len, int argi, long argl,
			int ret, size_t *done)
{
	const struct stream *s = (const struct stream *)(const void *)BIO_get_callback_arg(b);
	(void)bytes;
	(void)len;
	(void)argi;
	(void)argl;
	(void)done;
	if (operation != BIO_CB_READ || !has_too_many_records(s))
		return ret;
	BIO_clear_retry_flags(b);
	return -1;
}

/* OpenSSL's result says how to go on: in one way for reading, writing and shaking hands. */
static enum stream_io tls_outcome(struct stream *s, int ret, bool writing)
{
	int saved = errno;
	unsigned long why;
	if (has_too_many_records(s)) {
		stream_fail(s, "TLS", "too many records that hold no data");
		return STREAM_IO_FAILED;
	}
	switch (SSL_get_error(s->ssl, ret)) {
	case SSL_ERROR_WANT_READ:
		if (writing)
			s->write_wants_read = true;
		return STREAM_IO_WAIT;
	case SSL_ERROR_WANT_WRITE:
		if (!writing)
			s->read_wants_write = true;
		return STREAM_IO_WAIT;
	case SSL_ERROR_ZERO_RETURN:
		return STREAM_IO_END;
	case SSL_ERROR_SYSCALL:
		if (saved == 0 && !writing && s->state == STREAM_SECURE)
			return STREAM_IO_END;
		s->write_failed |= writing;
		stream_fail(s, "TLS", saved ? strerror(saved) : "connection closed");
		return STREAM_IO_FAILED;
	default:
		why = ERR_peek_last_error();
		/* Many a peer closes without close_notify; SMTP has its own end of everything. */
		if (ERR_GET_REASON(why) == SSL_R_UNEXPECTED_EOF_WHILE_READING && !writing &&
		    s->state == STREAM_SECURE)
			return STREAM_IO_END;
		const char *reason = ERR_reason_error_string(why);
		s->tls_impossible = will_fail_again(ERR_GET_REASON(why));
		stream_fail(s, "TLS", reason ? reason : "protocol error");
		return STREAM_IO_FAILED;
	}
}

static enum stream_io plain_outcome(struct stream *s, const char *what)
{
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return STREAM_IO_WAIT;
	stream_fail(s, what, strerror(errno));
	return STREAM_IO_FAILED;
}

enum stream_io stream_read(struct stream *s, void *to, size_t len, size_t *got)
{
	assert(s->state == STREAM_PLAIN || s->state == STREAM_SECURE);
	assert(s->begun_tls == (s->state == STREAM_SECURE)); /* nothing plain behind TLS */
	if (s->begun_tls) {
		ERR_clear_error();
		errno = 0;
		s->read_wants_write = false;
		int ret = SSL_read_ex(s->ssl, to, len, got);
		s->write_wants_read = false; /* whatever it waited for may have come */
		return ret == 1 ? STREAM_IO_DONE : tls_outcome(s, ret, false);
	}
	ssize_t n;
	do
		n = recv(s->fd, to, len, 0);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return STREAM_IO_END;
	if (n < 0)
		return plain_outcome(s, "read");
	*got = (size_t)n;
	return STREAM_IO_DONE;
}

enum stream_io stream_write(struct stream *s, const void *from, size_t len, size_t *sent)
{
	assert(s->state != STREAM_CONNECTING && s->state != STREAM_HANDSHAKE && len > 0);
	assert(s->begun_tls || s->state != STREAM_SECURE);
	if (s->begun_tls) {
		ERR_clear_error();
		errno = 0;
		s->write_wants_read = false;
		int ret = SSL_write_ex(s->ssl, from, len, sent);
		return ret == 1 ? STREAM_IO_DONE : tls_outcome(s, ret, true);
	}
	ssize_t n;
	do
		n = send(s->fd, from, len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		s->write_failed = errno != EAGAIN && errno != EWOULDBLOCK;
		return plain_outcome(s, "write");
	}
	*sent = (size_t)n;
	return STREAM_IO_DONE;
}

bool stream_quiet(struct stream *s)
{
	char byte;
	if (buf_len(&s->in) > 0 || s->eof || s->failed)
		return false;
	if (s->begun_tls) {
		ERR_clear_error();
		int ret = SSL_peek(s->ssl, &byte,
				   1); /* tickets and the like are no word of the peer's */
		return ret <= 0 && SSL_get_error(s->ssl, ret) == SSL_ERROR_WANT_READ;
	}
	ssize_t n;
	do
		n = recv(s->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

enum stream_io stream_handshake(struct stream *s)
{
	assert(s->ssl && s->state == STREAM_HANDSHAKE);
	assert(buf_len(&s->in) == 0); /* what came before it would count as said under TLS */
	s->begun_tls = true;
	ERR_clear_error();
	errno = 0;
	s->read_wants_write = false;
	int ret = SSL_do_handshake(s->ssl);
	enum stream_io io = ret == 1 ? STREAM_IO_DONE : tls_outcome(s, ret, false);
	if (io == STREAM_IO_END) {
		stream_fail(s, "TLS", "closed by the peer during the handshake");
		io = STREAM_IO_FAILED;
	}
	return io;
}

bool stream_make_ssl(struct stream *s, SSL_CTX *context, bool server, const char *sni,
		     SSL_SESSION *resume)
{
	assert(!s->ssl && s->fd >= 0);
	s->ssl = SSL_new(context);
	if (!s->ssl || SSL_set_fd(s->ssl, s->fd) != 1)
		return false;
	SSL_set_mode(s->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				     SSL_MODE_RELEASE_BUFFERS);
	SSL_set_options(s->ssl, SSL_OP_NO_RENEGOTIATION);
	SSL_set_msg_callback(s->ssl, on_message);
	SSL_set_msg_callback_arg(s->ssl, s);
	BIO_set_callback_ex(SSL_get_rbio(s->ssl), before_read);
	BIO_set_callback_arg(SSL_get_rbio(s->ssl), (char *)s);
	SSL_set_read_ahead(s->ssl, 1); /* one system call a record, not two */
	if (server) {
		SSL_set_accept_state(s->ssl);
		return true;
	}
	SSL_set_connect_state(s->ssl);
	if (sni)
		SSL_set_tlsext_host_name(s->ssl, sni);
	if (resume)
		SSL_set_session(s->ssl, resume);
	return true;
}

void stream_shut(struct stream *s)
{
	/* Within a handshake there is no end of TLS that could be said. */
	if (s->begun_tls && !s->failed && SSL_is_init_finished(s->ssl)) {
		ERR_clear_error();
		SSL_shutdown(s->ssl);
	}
	if (s->fd >= 0)
		shutdown(s->fd, SHUT_WR);
}

void stream_nodelay(int fd)
{
	int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static int give_up(struct stream *s, int fd, const char *what)
{
	stream_fail(s, what, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

int stream_open_socket(struct stream *s, const union address *to, const union address *from)
{
	int on = 1;
	int fd = socket(to->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		s->starved = true;
		return give_up(s, fd, "socket");
	}
	if (from) {
		/* Without it each connection would use up a port for all destinations. */
		setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
		if (bind(fd, &from->sa, address_size(from)) != 0)
			return give_up(s, fd, "bind");
	}
	if (connect(fd, &to->sa, address_size(to)) != 0 && errno != EINPROGRESS)
		return give_up(s, fd, "connect");
	return fd;
}

void stream_local(const struct stream *s, union address *a)
{
	socklen_t len = sizeof *a;
	memset(a, 0, sizeof *a);
	if (s->fd >= 0)
		getsockname(s->fd, &a->sa, &len);
}
