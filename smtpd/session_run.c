/* SPDX-License-Identifier: ISC */
#include "smtpd/session_run.h"

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/ident.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/tls_groups.h"
#include "smtpd/auth.h"
#include "smtpd/client_certificate.h"
#include "smtpd/filtering.h"
#include "smtpd/consult.h"
#include "smtpd/greeting.h"
#include "smtpd/limit_check.h"
#include "smtpd/reception.h"
#include "smtpd/session_read.h"

#include <assert.h>
#include <openssl/ssl.h>
#include <stdlib.h>

enum { OUT_MAX = 64 << 10 }; /* bytes of replies not read, beyond which no command is taken */

static void log_session(const struct session *s, const char *event, const char *reason)
{
	char client[64];
	bool end = reason != NULL;
	log_event(LOG_LEVEL_INFO, event, "session", log_id(s->number), "client",
		  address_text(&s->peer, client), "messages", end ? log_number(s->messages) : NULL,
		  "reason", reason, NULL);
}

static void session_free(struct session *s)
{
	wait_cancel(s);
	assert(!s->stream && !s->wait.kind);
	list_remove(&s->link);
	reception_free(&s->tx);
	auth_free(&s->auth);
	consult_free(&s->consult);
	service_unref(s->service);
	filtering_free(&s->filtering);
	free(s->client_name);
	free(s->login);
	free(s->helo);
	magic_free(s);
}

/* The client is gone, or sent away: its socket is about to be closed, at once or after lingering. */
static void part_from_client(struct session *s, const char *reason)
{
	assert(s->stream); /* it is counted until then */
	log_session(s, "disconnect", reason);
	metrics_add(METRIC_server_connections, -1);
	session_count(s, -1);
	if (wait_outlives(s))
		return;
	filtering_free(&s->filtering);
	reception_free(&s->tx);
}

/* Only now is there a place for another: a client that does not close its end would have as many
 * descriptors of ours as it likes. The object outlives the socket while the spool has its message. */
static void free_place(void *owner)
{
	struct session *s = owner;
	magic_check(s, SESSION_MAGIC);
	long before = atomic_fetch_sub_explicit(s->connections, 1, memory_order_relaxed);
	assert(before > 0);
	clients_leave(s->worker->clients, &s->peer, s->listener);
	descriptors_give(DESCRIPTORS_CLIENTS);
	if (!wait_outlives(s))
		session_free(s);
}

/* The one deadline of the stream: of silence, or of what has to end in time. While it waits for us, only that it reads. */
static int64_t time_left(struct session *s)
{
	const struct conf_listener *l = s->service->listener;
	int64_t now = clock_steady_ms(), left = l->timeout, limit = 0, since = s->begun_ms;
	if (s->state == SESSION_WAIT)
		return left;
	if (s->state == SESSION_HANDSHAKE) {
		limit = l->tls_timeout;
	} else if (s->tx && s->tx->began_ms) {
		limit = l->message_timeout;
		since = s->tx->began_ms;
	} else if (s->state == SESSION_CHUNK) {
		limit = l->message_timeout;
	} else if (buf_len(stream_in(s->stream)) > 0 || s->swallowed > 0) {
		limit = l->command_timeout;
	} else {
		s->begun_ms = 0;
	}
	if (limit > 0 && since == 0)
		since = s->begun_ms = now;
	if (limit > 0 && (s->state == SESSION_HANDSHAKE || since + limit - now < left))
		left = since + limit - now;
	return left > 0 ? left : 1;
}

static void set_deadline(struct session *s)
{
	bool unread = stream_behind(s->stream);
	assert(s->state != SESSION_CLOSED);
	/* Whoever reads no replies gets no more time by sending. */
	if (!unread || !s->unread)
		stream_deadline(s->stream, time_left(s));
	s->unread = unread;
}

/* Use what input there is, and send the replies. False: the session is gone. */
static bool run_session(struct session *s)
{
	if (!s->stream)
		return true;
	while (s->state != SESSION_CLOSED) {
		if (buf_len(stream_out(s->stream)) > OUT_MAX) {
			stream_flush(s->stream);
			if (buf_len(stream_out(s->stream)) > OUT_MAX)
				break;
		}
		if (!session_read(s))
			break;
	}
	bool ended = s->eof && s->state != SESSION_WAIT;
	if (s->state == SESSION_CLOSED || ended) {
		bool quietly = ended || s->ending == RESPONSE_BYE;
		part_from_client(s, s->state == SESSION_CLOSED ? response_reason(s->ending)
							       : "client closed");
		(quietly ? stream_close_quietly : stream_linger_close)(&s->stream);
		return false;
	}
	stream_flush_soon(s->stream);
	set_deadline(s);
	return true;
}

/* The session waits no more: use the input that came meanwhile. One without a client ends, unless it waits
 * again. */
static void go_on_after_wait(struct session *s)
{
	if (!s->stream) {
		if (!s->wait.kind)
			session_free(s);
		return;
	}
	/* Only when input waits: this offers it again, and what TLS may hold. */
	bool more = buf_len(stream_in(s->stream)) > 0;
	if (run_session(s) && more)
		stream_resume(s->stream);
}

void session_hurry(struct session *s)
{
	if (wait_hurry(s))
		go_on_after_wait(s);
	else
		run_session(s);
}

void session_abandon(struct session *s)
{
	assert(loop_is_ours(s->worker->loop));
	/* The spool answers for a message that it has; nothing else is waited for. */
	bool over = s->wait.kind && (s->wait.kind->pause || s->wait.kind->ended);
	if (over)
		wait_cancel(s);
	if (s->stream) {
		part_from_client(s, "stopped");
		stream_free(&s->stream);
	} else if (over) {
		session_free(s);
	}
}

static void greet_client(struct session *s)
{
	session_move(s, SESSION_GREETED);
	greeting_begin(s);
}

static bool is_trusted(const SSL *ssl)
{
	return SSL_get0_peer_certificate(ssl) && SSL_get_verify_result(ssl) == X509_V_OK;
}

/* After STARTTLS the client has said nothing yet; with implicit TLS it waits for the greeting. */
static void begin_secured(struct session *s)
{
	bool first = !s->helo;
	assert(s->state == SESSION_HANDSHAKE && !s->tls && !s->tx && !s->auth);
	SSL *ssl = stream_ssl(s->stream);
	log_event(LOG_LEVEL_INFO, "tls", "session", log_id(s->number), "version",
		  SSL_get_version(ssl), "cipher", SSL_get_cipher_name(ssl), "group",
		  tls_groups_negotiated(ssl), "resumed", SSL_session_reused(ssl) ? "yes" : NULL,
		  "verified", is_trusted(ssl) ? "trusted" : "none", NULL);
	s->tls = true;
	s->esmtp = false;
	free(s->helo);
	free(s->login);
	s->helo = NULL;
	s->mechanism = NULL;
	s->login = client_certificate_login(s);
	limit_check_event(s, LIMITER_LOGGED_IN, s->login, 0);
	stream_secret(s->stream, s->service->listener->auth);
	if (!first) {
		session_move(s, SESSION_GREETED);
		return;
	}
	greet_client(s);
	if (s->state == SESSION_GREETED && SSL_has_pending(stream_ssl(s->stream)))
		session_close(s, RESPONSE_OUT_OF_STEP);
}

/* Its wait may take longer than a client may be silent: it has read what it was sent, or has just begun not to. */
static bool is_our_turn(const struct session *s)
{
	return s->state == SESSION_WAIT && !(s->unread && stream_behind(s->stream));
}

static void end_silence(struct session *s)
{
	if (is_our_turn(s)) {
		set_deadline(s);
		return;
	}
	if (s->state == SESSION_HANDSHAKE || s->unread) {
		part_from_client(s, "timed out");
		stream_free(&s->stream);
	} else {
		session_close(s, RESPONSE_TIMED_OUT);
		run_session(s);
	}
}

static void lose_client(struct session *s)
{
	const char *reason = log_text("%s", stream_error(s->stream));
	part_from_client(s, reason);
	stream_free(&s->stream);
}

static void on_event(void *owner, enum stream_event event)
{
	struct session *s = owner;
	magic_check(s, SESSION_MAGIC);
	switch (event) {
	case STREAM_TLS:
		begin_secured(s);
		run_session(s);
		break;
	case STREAM_EOF:
		s->eof = true;
		run_session(s);
		break;
	case STREAM_ERROR:
		lose_client(s);
		break;
	case STREAM_TIMEOUT:
		end_silence(s);
		break;
	default:
		run_session(s);
	}
}

void session_open(struct listener *l, int fd, const union address *peer)
{
	assert(loop_is_ours(l->worker->loop));
	struct session *s = mem_zalloc(sizeof *s);
	s->magic = SESSION_MAGIC;
	bool implicit = l->service->listener->tls == LISTENER_TLS_IMPLICIT;
	char byte;
	s->worker = l->worker;
	s->service = service_ref(l->service);
	s->connections = l->connections;
	s->listener = l->number;
	s->number = ident_new();
	s->peer = *peer;
	s->proxy = netlist_match(&s->service->xclient, peer);
	s->stage = "CONNECT";
	wait_init(s, go_on_after_wait);
	list_append(&l->worker->sessions, &s->link);
	metrics_add(METRIC_server_connected, 1);
	metrics_add(METRIC_server_connections, 1);
	log_session(s, "connect", NULL);
	/* Who speaks before the greeting speaks no SMTP, or does not listen. */
	bool early = !implicit && recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
	s->stream = stream_accepted(l->worker->loop, fd, on_event, s);
	stream_when_closed(s->stream, free_place, s);
	stream_secret(s->stream, s->service->listener->auth);
	session_count(s, 1);
	filtering_open(s);
	if (implicit) {
		stream_start_tls(s->stream, s->service->tls, true, NULL, NULL);
	} else {
		session_move(s, SESSION_GREETED);
		if (early)
			session_close(s, RESPONSE_OUT_OF_STEP);
		else
			greet_client(s);
	}
	run_session(s);
}
