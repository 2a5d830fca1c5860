/* SPDX-License-Identifier: ISC */
#include "smtpc/engine_impl.h"

#include <assert.h>
#include <string.h>

enum {
	VAIN_TRIPS = 10, /* so long an answer may take that may never come */
	VAIN_MS = 2000,
	LISTEN_MS = 5000, /* behind a 421 */
};

static void engine_say_nothing(struct engine *e)
{
	(void)e;
}

/* The command of each state. */
static void (*const say_in[])(struct engine *) = {
#define X(state, text, what, ...) engine_say_##what,
	ENGINE_STATES(X)
#undef X
};

static const struct {
	void (*handle)(struct engine *, const struct expected *);
	size_t timeout; /* offset in struct conf_transport */
} kinds[] = {
#define X(kind, text, handler, timeout, ...)                                                       \
	{engine_on_##handler, offsetof(struct conf_transport, timeout)},
	EXPECTED_KINDS(X)
#undef X
};

void engine_init(struct engine *e, const struct engine_setup *setup, struct buf *out)
{
	memset(e, 0, sizeof *e);
	e->setup = *setup;
	e->out = out;
	note_queue_init(&e->done);
	reply_init(&e->reply);
	reply_init(&e->told);
	expected_init(&e->expected);
	list_init(&e->transactions);
	engine_expect(e, (struct expected){.kind = EXPECTED_GREETING});
}

void engine_fini(struct engine *e)
{
	assert(list_empty(&e->transactions) && !e->done.first);
	reply_fini(&e->reply);
	reply_fini(&e->told);
	expected_fini(&e->expected);
	engine_end_auth(e);
	session_domains_fini(&e->domains);
	verdict_unref(e->why);
	e->why = NULL;
}

/* 421 in answer to anything but QUIT and the end of data: the host closes. RFC 5321 3.8. */
static bool goes_away(const struct engine *e, const struct expected *x)
{
	return e->reply.code == 421 && x->kind != EXPECTED_QUIT && x->kind != EXPECTED_DOT &&
	       x->kind != EXPECTED_BDAT;
}

static void handle_reply(struct engine *e, const struct expected *x)
{
	engine_compare(e, x);
	kinds[x->kind].handle(e, x);
}

static void take_reply(struct engine *e, const struct buf *in)
{
	struct expected x = expected_pop(&e->expected);
	e->answering = x.kind;
	if (e->state != ENGINE_LISTENING)
		e->turn++;
	if (e->state == ENGINE_LISTENING)
		engine_hear_late(e, &x);
	else if (goes_away(e, &x))
		engine_told(e, &x);
	else if (engine_misplaced(e, &x))
		engine_unexpected(e, &x);
	else
		handle_reply(e, &x);
	reply_reset(&e->reply);
	if (e->state == ENGINE_CLOSED)
		return;
	if (buf_len(in) > 0 && !expected_first(&e->expected))
		engine_unsolicited(e, in);
	else
		engine_resume(e);
}

void engine_input(struct engine *e, struct buf *in)
{
	while (e->state != ENGINE_CLOSED && buf_len(in) > 0) {
		if (!expected_first(&e->expected)) {
			engine_unsolicited(e, in);
			break;
		}
		size_t used;
		enum reply_result r = reply_feed(&e->reply, buf_data(in), buf_len(in), &used);
		buf_consume(in, used);
		if (r == REPLY_DONE)
			take_reply(e, in);
		else if (r == REPLY_BAD && e->state == ENGINE_LISTENING)
			engine_obey(e);
		else if (r == REPLY_BAD)
			engine_garbage(e);
	}
}

void engine_resume(struct engine *e)
{
	say_in[e->state](e);
}

void engine_give(struct engine *e, struct delivery *d)
{
	assert(d->nrcpt > 0);
	d->returned = d->closing = d->wasted = d->hung_up = false;
	verdict_unref(d->refusal);
	d->refusal = NULL;
	if (e->quit || e->state == ENGINE_QUITTING || e->state == ENGINE_CLOSED) {
		d->returned = d->closing = true;
		engine_put_done(e, d);
		return;
	}
	struct transaction *t = transaction_new(d);
	list_append(&e->transactions, &t->link);
	engine_resume(e);
}

int64_t engine_timeout_ms(const struct engine *e)
{
	const struct conf_transport *t = e->setup.transport;
	const struct expected *x = expected_first(&e->expected);
	if (e->state == ENGINE_HANDSHAKE)
		return t->starttls_timeout;
	if (e->state == ENGINE_LISTENING)
		return LISTEN_MS;
	if (!x)
		return t->connection_idle_timeout;
	if ((x->kind == EXPECTED_DOT || x->kind == EXPECTED_BDAT) &&
	    x->transaction->stage == TRANSACTION_CONTENT)
		return t->data_block_timeout;
	int64_t most_ms = *(const int64_t *)((const char *)t + kinds[x->kind].timeout);
	int64_t soon_ms = VAIN_TRIPS * e->round_trip_us / 1000 + VAIN_MS;
	return engine_waits_in_vain(e) && soon_ms < most_ms ? soon_ms : most_ms;
}

bool engine_owed(const struct engine *e)
{
	return e->state != ENGINE_LISTENING && expected_first(&e->expected) != NULL;
}

bool engine_idle(const struct engine *e)
{
	return e->state == ENGINE_READY && !expected_first(&e->expected) &&
	       list_empty(&e->transactions);
}
