/* SPDX-License-Identifier: ISC */
#include "smtpc/connection_impl.h"

#include "base/address.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/mem.h"
#include "base/metrics.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A connection that never carried anything is left a moment for its first delivery, even where idle
 * ones are closed at once, and however old it was when the host let it be ready. */
enum { FIRST_IDLE_MS = 1000 };

static void on_event(void *owner, enum stream_event);
static void settle_connection(struct connection *);

static void on_age(void *owner)
{
	struct connection *c = owner;
	magic_check(c, CONNECTION_MAGIC);
	engine_quit(&c->engine);
	settle_connection(c);
}

static void on_slow(void *owner)
{
	connection_post_slow(owner, CONNECTION_BESIDE);
}

static void on_late(void *owner)
{
	connection_post_slow(owner, CONNECTION_LATE);
}

static void on_silent(void *owner)
{
	connection_post_slow(owner, CONNECTION_SILENT);
}

static void start_timer(struct connection *c, struct timer *t, int64_t delay_ms)
{
	if (delay_ms > 0)
		loop_timer_in(c->worker->loop, t, delay_ms);
}

/* The host has given a sign of life, or is about to be asked for one. */
static void hear_host(struct connection *c)
{
	if (!c->announced)
		loop_timer_in(c->worker->loop, &c->silent, CONNECTION_SILENT_MS);
}

/* The connection is ready, or will never be. */
static void stop_waiting(struct connection *c)
{
	timer_stop(&c->worker->loop->timers, &c->slow);
	timer_stop(&c->worker->loop->timers, &c->late);
}

/* TCP stands, also with a machine whose program hangs. Some greet late on purpose: an equal is tried beside it as late as another
 * preference is where TCP does not stand, and that when a black hole would have failed. */
static void wait_for_greeting(struct connection *c)
{
	const struct conf_transport *t = c->open->transport;
	stop_waiting(c);
	if (c->announced || t->backup_attempt_delay == 0)
		return;
	start_timer(c, &c->slow, t->connection_attempt_delay > 0 ? t->backup_attempt_delay : 0);
	start_timer(c, &c->late, t->connect_timeout);
}

/* A password or token is not sent without TLS, nor is the connection made again without. */
static bool needs_tls(const struct connection *c)
{
	return c->open->credential && !c->open->credential->clear;
}

/* Whoever listens on the way may have a certificate of his own. A policy that demands no proof of the host is
 * then as if it said verify, of the next hop that the login is for. */
static void demand_proof(struct connection *c)
{
	const struct credential *of = c->open->credential;
	enum transport_tls level = tls_policy_level(c->tls);
	if (!of || of->unproven || address_is_unix(&c->open->address) ||
	    (level != TRANSPORT_TLS_OPPORTUNISTIC && level != TRANSPORT_TLS_REQUIRED))
		return;
	c->demanded = tls_policy_of_hop("verify", of->hop ? of->hop : c->open->host);
	c->tls = c->demanded;
}

/* Mail over a Unix socket leaves no machine: there is nothing that TLS could add. */
static enum transport_tls wanted_tls(const struct connection *c)
{
	enum transport_tls tls = tls_policy_level(c->tls);
	if (c->plain || address_is_unix(&c->open->address))
		return TRANSPORT_TLS_NONE;
	return tls == TRANSPORT_TLS_OPPORTUNISTIC && needs_tls(c) ? TRANSPORT_TLS_REQUIRED : tls;
}

static void begin_connection(struct connection *c)
{
	union address from[2];
	const struct conf_transport *t = c->open->transport;
	assert(!c->stream);
	c->stream = stream_connect(
		c->worker->loop, &c->open->address,
		conf_transport_from(t, c->open->source, c->open->address.sa.sa_family, from),
		on_event, c);
	struct engine_setup setup = {
		.hostname = conf_hello(c->open->conf, t, c->open->source),
		.peer = c->peer,
		.transport = t,
		.tls = wanted_tls(c),
		.spared_tls = c->plain,
		.mode = c->open->mode,
		.requiretls =
			tls_policy_has_requiretls(c->tls) && !address_is_unix(&c->open->address),
		.local = address_is_unix(&c->open->address),
		.login = c->open->credential ? &c->login : NULL,
	};
	engine_init(&c->engine, &setup, stream_out(c->stream));
	c->begun = true;
	c->connected = c->handshaking = c->large = c->hello_answered = c->failed_test = false;
	c->turn = c->engine.turn;
	stream_deadline(c->stream, t->connect_timeout);
}

/* The connection has not begun: no word of it to anybody. */
static void take_back(struct connection *c)
{
	timer_stop(&c->worker->loop->timers, &c->silent);
	stream_free(&c->stream);
	engine_fini(&c->engine);
	worker_remove(c->worker, c);
	mem_free_secret(c->secret);
	free(c->demanded);
	magic_clear(c);
	free(c);
}

/* False: there is no descriptor. */
static bool connect_now(struct connection *c)
{
	begin_connection(c);
	if (stream_starved(c->stream)) {
		take_back(c);
		return false;
	}
	metrics_add(METRIC_client_connected, 1);
	start_timer(c, &c->slow, c->open->transport->connection_attempt_delay);
	start_timer(c, &c->late, c->open->transport->backup_attempt_delay);
	return true;
}

bool connection_start(struct worker *w, struct connection_open *open)
{
	struct connection *c = mem_zalloc(sizeof *c);
	c->magic = CONNECTION_MAGIC;
	c->worker = w;
	c->open = open;
	c->number = open->connection;
	c->began_ms = clock_steady_ms();
	c->tls = open->tls ? open->tls : open->transport->tls;
	demand_proof(c);
	c->plain = open->plain && tls_policy_level(c->tls) == TRANSPORT_TLS_OPPORTUNISTIC &&
		   !needs_tls(c);
	c->small = open->mode & CONNECTION_SMALL_HELLO;
	address_peer(&open->address, open->host, c->peer);
	timer_init(&c->age, on_age, c);
	timer_init(&c->slow, on_slow, c);
	timer_init(&c->late, on_late, c);
	timer_init(&c->silent, on_silent, c);
	connection_stall_init(c);
	connection_keep_to(c, open->transport->connection_max_messages);
	connection_keep_to(c, open->messages_most);
	worker_add(w, c);
	if (!open->credential && !connect_now(c))
		return false;
	hear_host(c);
	if (open->credential)
		secrets_ask(w->secrets, open->credential, w->loop, c->number);
	return true;
}

/* The last thing done with a connection. */
static void end_connection(struct connection *c, struct verdict *why)
{
	connection_post_done(c);
	timer_stop(&c->worker->loop->timers, &c->age);
	timer_stop(&c->worker->loop->timers, &c->silent);
	timer_stop(&c->worker->loop->timers, &c->stall);
	stop_waiting(c);
	if (c->stream && buf_len(stream_out(c->stream)) > 0)
		stream_flush(c->stream); /* a QUIT */
	stream_free(&c->stream);
	worker_remove(c->worker, c);
	connection_post_closed(c, why);
	if (c->begun)
		engine_fini(&c->engine);
	mem_free_secret(c->secret);
	free(c->demanded);
	descriptors_give(DESCRIPTORS_HOSTS);
	assert(!c->choked);
	assert(!timer_active(&c->age) && !timer_active(&c->slow) && !timer_active(&c->late) &&
	       !timer_active(&c->silent) && !timer_active(&c->stall));
	magic_clear(c);
	free(c);
}

/* If it waits for a descriptor, its secret is asked for again then. */
static void connect_or_wait(struct connection *c)
{
	struct worker *w = c->worker;
	struct connection_open *open = c->open;
	if (!connect_now(c)) {
		descriptors_give(DESCRIPTORS_HOSTS);
		worker_open(w, open);
	}
}

void connection_have_secret(struct connection *c, struct secret_ask *a)
{
	struct credential *of = c->open->credential;
	assert(!c->begun && !c->secret);
	c->secret = a->secret;
	a->secret = NULL;
	if (!c->secret) {
		end_connection(c, verdict_ref(a->failure));
	} else {
		c->login = (struct engine_login){.context = c->worker->sasl,
						 .login = of->login,
						 .secret = c->secret,
						 .token = of->kind != CREDENTIAL_PASSWORD,
						 .clear = of->clear,
						 .unproven = of->unproven};
		connect_or_wait(c);
	}
	secret_ask_free(&a);
}

/* Once more, in the clear: TLS was only wished for. */
static void begin_plain(struct connection *c)
{
	const struct verdict *why = c->engine.why;
	assert(!c->plain && !c->announced);
	connection_log(c, "without TLS", why ? why->text : NULL);
	metrics_add(METRIC_tls_client_broken, 1);
	connection_report(c, c->engine.lacks_tls ? TLS_RESULT_NO_STARTTLS : TLS_RESULT_FAILED,
			  why ? why->text : NULL);
	connection_log_unverified(c, why ? why->text : "broken");
	connection_post_done(c);
	connection_forget_session(c);
	c->plain = true;
	stream_free(&c->stream);
	engine_fini(&c->engine);
	begin_connection(c);
}

/* Recipients without a verdict are kept, in their order; the rest goes back to qmgr. */
static void keep_returned(struct connection *c, struct note_queue *kept)
{
	note_queue_init(kept);
	for (struct delivery *d; (d = engine_take(&c->engine));) {
		if (d->returned)
			note_queue_put(kept, &d->note);
		else
			connection_post_back(d);
	}
}

/* On another connection, with what it was given. */
static void begin_again(struct connection *c, struct note_queue *kept)
{
	c->closing |= c->engine.quit;
	c->given = 0;
	stream_flush(c->stream); /* a QUIT */
	stream_free(&c->stream);
	engine_fini(&c->engine);
	begin_connection(c);
	for (struct note *n; (n = note_queue_take(kept)); c->given++)
		engine_give(&c->engine, (struct delivery *)n);
}

/* The host wants no more on the connection that it was. */
static void begin_fresh(struct connection *c)
{
	struct note_queue kept;
	keep_returned(c, &kept);
	if (!kept.first) {
		end_connection(c, NULL);
		return;
	}
	connection_log(c, "once more", NULL);
	c->enough = c->engine.enough;
	c->open->mode |= c->engine.setup.mode | c->engine.mode;
	begin_again(c, &kept);
}

/* Nothing that it was given has begun. */
static void begin_small(struct connection *c)
{
	struct note_queue kept;
	assert(!c->small && !c->choked);
	c->small = true;
	c->choked = verdict_printf(VERDICT_DEFERRED, 0, "4.7.5", c->peer,
				   "%s, after a ClientHello of %zu bytes", c->engine.why->text,
				   c->hello_bytes);
	connection_log(c, "with a small ClientHello", c->choked->text);
	connection_forget_session(c);
	keep_returned(c, &kept);
	begin_again(c, &kept);
}

/* With a handshake that shows what the host has now. Nothing that it was given has begun. */
static void begin_anew(struct connection *c)
{
	struct note_queue kept;
	assert(!c->anew && !c->announced);
	c->spoilt = false;
	c->anew = true;
	connection_log(c, "without the session", c->engine.why->text);
	keep_returned(c, &kept);
	begin_again(c, &kept);
}

/* The connection has been given all that it may carry, or was told to close before it began afresh. */
static bool is_worn(const struct connection *c)
{
	return c->closing || (c->most > 0 && c->given >= c->most);
}

static void limit_age(struct connection *c)
{
	int64_t age_ms = c->open->transport->connection_max_age;
	int64_t end_ms = c->began_ms + age_ms;
	int64_t least_ms = c->given == 0 ? c->began_ms + c->setup_ms + FIRST_IDLE_MS : 0;
	if (age_ms > 0)
		timer_start(&c->worker->loop->timers, &c->age,
			    end_ms > least_ms ? end_ms : least_ms);
}

static void become_ready(struct connection *c)
{
	assert(c->begun && !c->announced);
	connection_keep_to(c, c->engine.can.mail_max);
	c->setup_ms = (int)(clock_steady_ms() - c->began_ms);
	limit_age(c);
	timer_stop(&c->worker->loop->timers, &c->silent);
	stop_waiting(c);
	if (!c->engine.secure) {
		metrics_add(METRIC_tls_client_clear, 1);
		connection_failed_test(c, "there is no TLS");
		if (!c->plain)
			connection_report(c, TLS_RESULT_NO_STARTTLS, NULL);
	}
	connection_post_ready(c);
}

static void set_deadline(struct connection *c)
{
	int64_t ms = engine_timeout_ms(&c->engine);
	bool idle = c->engine.state == ENGINE_READY && !expected_first(&c->engine.expected);
	int64_t least = idle && c->given == 0 ? FIRST_IDLE_MS : 1;
	stream_deadline(c->stream, ms > least ? ms : least);
	c->turn = c->engine.turn;
	connection_wait_anew(c);
}

/* Of what the engine has left: bytes to send, content to write as long as the socket takes it. */
static void send_out(struct connection *c)
{
	if (!engine_sending(&c->engine)) {
		stream_flush_soon(c->stream);
		return;
	}
	stream_flush(c->stream);
	while (engine_sending(&c->engine) && buf_len(stream_out(c->stream)) == 0) {
		engine_resume(&c->engine);
		stream_flush(c->stream);
	}
}

static void conclude_closed(struct connection *c)
{
	struct engine *e = &c->engine;
	if (c->spoilt) {
		begin_anew(c);
	} else if (connection_choked(c)) {
		begin_small(c);
	} else if (e->try_plain && !c->plain) {
		begin_plain(c);
	} else if (e->renew) {
		begin_fresh(c);
	} else {
		connection_lacks_tls(c);
		end_connection(c, engine_why(e));
	}
}

/* After whatever happened to the engine. The connection may be gone afterwards. */
static void settle_connection(struct connection *c)
{
	assert(loop_is_ours(c->worker->loop));
	struct engine *e = &c->engine;
	if (e->state == ENGINE_READY && !c->announced)
		become_ready(c);
	if (e->state == ENGINE_READY && !e->quit && is_worn(c))
		engine_quit(e);
	if (e->state != ENGINE_CLOSED)
		send_out(c);
	if (e->state == ENGINE_CLOSED) {
		conclude_closed(c);
		return;
	}
	if (e->state == ENGINE_HANDSHAKE && !c->handshaking)
		connection_start_tls(c);
	connection_post_done(c);
	if (c->turn != e->turn)
		set_deadline(c);
}

/* Before there is a conversation. */
static void not_connected(struct connection *c, const char *why)
{
	static const char prefix[] = "connect: ", bind[] = "bind: ";
	c->open->unbound = strncmp(why, bind, strlen(bind)) == 0;
	if (strncmp(why, prefix, strlen(prefix)) == 0)
		why += strlen(prefix);
	struct verdict *v = verdict_printf(VERDICT_DEFERRED, 0, "4.4.1", NULL, "connect to %s: %s",
					   c->peer, why);
	engine_drop(&c->engine);
	end_connection(c, v);
}

static void lose_connection(struct connection *c, const char *how)
{
	if (!c->connected) {
		not_connected(c, how);
		return;
	}
	if (c->handshaking && stream_tls_impossible(c->stream))
		engine_unshaken(&c->engine, how);
	else
		engine_lost(&c->engine, how);
	settle_connection(c);
}

static void expire_connection(struct connection *c)
{
	if (!c->connected) {
		not_connected(c, "no answer in time");
		return;
	}
	engine_expired(&c->engine);
	settle_connection(c);
}

/* Only a whole reply is a sign of life: who stutters would never be silent. */
static void take_input(struct connection *c)
{
	uint64_t before = c->engine.turn;
	engine_input(&c->engine, stream_in(c->stream));
	if (c->engine.turn != before)
		hear_host(c);
}

static void on_event(void *owner, enum stream_event event)
{
	struct connection *c = owner;
	magic_check(c, CONNECTION_MAGIC);
	switch (event) {
	case STREAM_CONNECTED:
		c->connected = true;
		hear_host(c);
		wait_for_greeting(c);
		set_deadline(c);
		break;
	case STREAM_DATA:
		take_input(c);
		settle_connection(c);
		break;
	case STREAM_DRAINED:
		engine_resume(&c->engine);
		set_deadline(c); /* the host takes what we send: the time begins anew */
		settle_connection(c);
		break;
	case STREAM_TLS:
		c->handshaking = false;
		hear_host(c);
		connection_shaken(c);
		settle_connection(c);
		break;
	case STREAM_EOF:
		c->engine.hung_up = true;
		lose_connection(c, "connection closed");
		break;
	case STREAM_ERROR: /* what lies unread where a host closes makes a reset of it */
		c->engine.hung_up = true;
		lose_connection(c, stream_error(c->stream));
		break;
	case STREAM_TIMEOUT:
		expire_connection(c);
		break;
	}
}

/* A reply of the host, or its end, while nothing was asked may not have come to us yet. */
static bool gone_stale(struct connection *c)
{
	return engine_idle(&c->engine) && !stream_quiet(c->stream);
}

void connection_give(struct connection *c, struct delivery *d)
{
	assert(loop_is_ours(c->worker->loop) && d->nrcpt > 0);
	assert(c->begun);
	if (gone_stale(c))
		engine_lost(&c->engine, "it has spoken or gone unasked");
	bool first = c->given++ == 0;
	if (first) {
		d->setup_ms = c->setup_ms;
		limit_age(c);
	}
	engine_give(&c->engine, d);
	settle_connection(c);
}

void connection_close(struct connection *c)
{
	if (!c->begun) {
		end_connection(c, NULL);
		return;
	}
	engine_quit(&c->engine);
	settle_connection(c);
}

void connection_leave(struct connection *c)
{
	if (!c->begun || !engine_owed(&c->engine) || engine_awaited(&c->engine)) {
		connection_close(c);
		return;
	}
	engine_left(&c->engine, "no answer yet, and another host or destination is to be served");
	end_connection(c, engine_why(&c->engine));
}

void connection_part(struct connection *c)
{
	if (c->begun && engine_awaited(&c->engine))
		connection_close(c);
	else
		connection_drop(c);
}

void connection_drop(struct connection *c)
{
	if (c->begun)
		engine_drop(&c->engine);
	end_connection(c, c->begun ? engine_why(&c->engine) : NULL);
}
