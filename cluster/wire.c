/* SPDX-License-Identifier: ISC */
#include "cluster/wire.h"

#include "base/file_io.h"
#include "base/magic.h"
#include "base/mem.h"
#include "base/stream.h"
#include "base/tls.h"
#include "base/tls_verify.h"
#include "cluster/resp.h"

#include <assert.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIRE_MAGIC = 0x77697265, PASSWORD_MAX = 1024, HELLO_ANSWERS = 2 /* TLS and hello */ };

enum wire_state { WIRE_CONNECTING, WIRE_TLS, WIRE_HELLO, WIRE_READY, WIRE_CLOSED };

struct wire {
	unsigned magic;
	enum wire_state state;
	struct loop *loop;
	const struct conf_cluster *conf;
	const char *host;
	const struct wire_hooks *hooks;
	void *owner;
	struct stream *stream; /* NULL: far is there instead */
	const struct wire_far *far;
	void *end;	    /* of far's */
	struct buf in, out; /* likewise */
	struct resp resp;
	struct timer deadline;
	int greetings; /* commands of hello that were not answered yet */
	SSL_CTX *tls;
	bool doomed; /* why says why: it ends when what is heard now is dealt with */
	struct buf why;
};

static void move_to(struct wire *w, enum wire_state to)
{
	static const unsigned from[] = {
		[WIRE_TLS] = 1U << WIRE_CONNECTING,
		[WIRE_HELLO] = 1U << WIRE_CONNECTING | 1U << WIRE_TLS,
		[WIRE_READY] = 1U << WIRE_HELLO,
		[WIRE_CLOSED] = ~(1U << WIRE_CLOSED),
	};
	assert(from[to] & 1U << w->state);
	w->state = to;
}

/* A server that takes no packet is left after one of them; one that is there may take a while longer to be ready. */
static void await_steps(struct wire *w, int answers)
{
	loop_timer_in(w->loop, &w->deadline, answers * w->conf->redis_timeout);
}

static void close_wire(struct wire *w, const char *why)
{
	timer_stop(&w->loop->timers, &w->deadline);
	move_to(w, WIRE_CLOSED);
	w->hooks->closed(w->owner, w, why);
}

static struct buf *out_of(struct wire *w)
{
	return w->far ? &w->out : stream_out(w->stream);
}

static void flush_out(struct wire *w)
{
	if (w->far)
		w->far->flushed(w->end, &w->out);
	else
		stream_flush(w->stream);
}

void wire_doom(struct wire *w, const char *why)
{
	if (w->doomed)
		return;
	w->doomed = true;
	buf_clear(&w->why);
	buf_puts(&w->why, why);
}

static bool put_auth(struct wire *w, struct buf *out)
{
	char password[PASSWORD_MAX];
	if (!file_read_line(w->conf->redis_password, password, sizeof password, &w->why))
		return false;
	const char *as_user[] = {"AUTH", w->conf->redis_user, password};
	const char *as_default[] = {"AUTH", password};
	if (*w->conf->redis_user)
		resp_put(out, 3, as_user, NULL);
	else
		resp_put(out, 2, as_default, NULL);
	explicit_bzero(password, sizeof password);
	w->greetings++;
	return true;
}

static void say_hello(struct wire *w)
{
	struct buf *out = out_of(w);
	char database[24];
	assert(w->greetings == 0 && !w->doomed);
	move_to(w, WIRE_HELLO);
	if (*w->conf->redis_password && !put_auth(w, out)) {
		close_wire(w, buf_cstr(&w->why));
		return;
	}
	if (w->conf->redis_database > 0) {
		snprintf(database, sizeof database, "%lld", (long long)w->conf->redis_database);
		const char *select[] = {"SELECT", database};
		resp_put(out, 2, select, NULL);
		w->greetings++;
	}
	const char *ping[] = {"PING"};
	resp_put(out, 1, ping, NULL);
	w->greetings++;
	flush_out(w);
}

static bool prepare_tls(struct wire *w)
{
	const struct conf_cluster *c = w->conf;
	w->tls = tls_client_context();
	if (!*c->redis_certificate)
		return true;
	SSL_CTX *identity = tls_identity(c->redis_certificate, c->redis_key, &w->why);
	if (!identity)
		return false;
	bool good = SSL_CTX_use_certificate(w->tls, SSL_CTX_get0_certificate(identity)) == 1 &&
		    SSL_CTX_use_PrivateKey(w->tls, SSL_CTX_get0_privatekey(identity)) == 1;
	SSL_CTX_free(identity);
	if (!good)
		buf_puts(&w->why, "OpenSSL takes its own certificate no more");
	return good;
}

static void on_connected(struct wire *w)
{
	assert(w->state == WIRE_CONNECTING && !w->far);
	await_steps(w, HELLO_ANSWERS);
	if (!w->conf->redis_tls) {
		say_hello(w);
	} else if (prepare_tls(w)) {
		move_to(w, WIRE_TLS);
		stream_start_tls(w->stream, w->tls, false, tls_server_name(w->host), NULL);
		SSL *ssl = stream_ssl(w->stream);
		if (ssl)
			tls_demand(ssl, TRANSPORT_TLS_VERIFY, TLS_MINIMUM_1_2);
	} else {
		close_wire(w, buf_cstr(&w->why));
	}
}

static bool is_proven(struct wire *w)
{
	struct tls_authorities *ca = tls_authorities_new(w->conf->redis_ca, &w->why);
	if (!ca)
		return false;
	bool proven =
		tls_verify(stream_ssl(w->stream), ca, w->host, &w->why) >= TLS_VERIFIED_MATCHED;
	tls_authorities_free(&ca);
	return proven;
}

static void hear_greeting(struct wire *w, const redisReply *reply)
{
	assert(w->greetings > 0);
	if (reply->type == REDIS_REPLY_ERROR) {
		wire_doom(w, reply->str);
		return;
	}
	if (--w->greetings > 0)
		return;
	timer_stop(&w->loop->timers, &w->deadline);
	move_to(w, WIRE_READY);
	w->hooks->ready(w->owner, w);
}

static void on_data(struct wire *w, struct buf *in)
{
	redisReply *reply;
	enum resp_result result;
	while ((result = resp_next(&w->resp, in, &reply)) == RESP_REPLY) {
		if (w->state == WIRE_READY)
			w->hooks->heard(w->owner, w, reply);
		else
			hear_greeting(w, reply);
		freeReplyObject(reply);
		if (w->doomed) {
			close_wire(w, buf_cstr(&w->why));
			return;
		}
	}
	if (result == RESP_FAULT)
		close_wire(w, resp_fault(&w->resp));
}

static void on_event(void *owner, enum stream_event event)
{
	struct wire *w = owner;
	magic_check(w, WIRE_MAGIC);
	if (w->state == WIRE_CLOSED)
		return;
	switch (event) {
	case STREAM_CONNECTED:
		on_connected(w);
		break;
	case STREAM_TLS:
		if (is_proven(w))
			say_hello(w);
		else
			close_wire(w, buf_cstr(&w->why));
		break;
	case STREAM_DATA:
		on_data(w, stream_in(w->stream));
		break;
	case STREAM_EOF:
		close_wire(w, "it has closed the connection");
		break;
	case STREAM_ERROR:
		close_wire(w, stream_error(w->stream));
		break;
	case STREAM_TIMEOUT:
	case STREAM_DRAINED:
		break;
	}
}

static void on_deadline(void *owner)
{
	struct wire *w = owner;
	magic_check(w, WIRE_MAGIC);
	close_wire(w, w->state == WIRE_CONNECTING ? "it can not be reached in time"
						  : "it does not answer");
}

struct wire *wire_open(struct loop *loop, const struct conf_cluster *conf, const char *host,
		       const union address *to, const struct wire_far *far,
		       const struct wire_hooks *hooks, void *owner)
{
	struct wire *w = mem_zalloc(sizeof *w);
	w->magic = WIRE_MAGIC;
	w->state = WIRE_CONNECTING;
	w->loop = loop;
	w->conf = conf;
	w->host = host;
	w->hooks = hooks;
	w->owner = owner;
	resp_init(&w->resp);
	timer_init(&w->deadline, on_deadline, w);
	await_steps(w, 1);
	w->far = far;
	if (far)
		w->end = far->opened(far->owner, w);
	else
		w->stream = stream_connect(loop, to, NULL, on_event, w);
	return w;
}

void wire_reached(struct wire *w)
{
	magic_check(w, WIRE_MAGIC);
	assert(w->far && w->state == WIRE_CONNECTING);
	await_steps(w, HELLO_ANSWERS);
	say_hello(w);
}

void wire_heard(struct wire *w, const void *data, size_t len)
{
	assert(loop_is_ours(w->loop));
	magic_check(w, WIRE_MAGIC);
	assert(w->far);
	if (w->state == WIRE_CLOSED)
		return;
	buf_append(&w->in, data, len);
	on_data(w, &w->in);
}

void wire_broken(struct wire *w, const char *why)
{
	magic_check(w, WIRE_MAGIC);
	if (w->state != WIRE_CLOSED)
		close_wire(w, why);
}

void wire_free(struct wire **wp)
{
	struct wire *w = mem_take(wp);
	if (!w)
		return;
	magic_check(w, WIRE_MAGIC);
	timer_stop(&w->loop->timers, &w->deadline);
	if (w->far)
		w->far->closed(w->end);
	stream_free(&w->stream);
	buf_fini(&w->in);
	buf_fini(&w->out);
	SSL_CTX_free(w->tls);
	resp_fini(&w->resp);
	buf_fini(&w->why);
	magic_free(w);
}

struct buf *wire_out(struct wire *w)
{
	assert(w->state == WIRE_READY);
	return out_of(w);
}

void wire_flush(struct wire *w)
{
	assert(loop_is_ours(w->loop));
	flush_out(w);
}

bool wire_ready(const struct wire *w)
{
	return w && w->state == WIRE_READY;
}
