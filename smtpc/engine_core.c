/* SPDX-License-Identifier: ISC */
/* For all parts of the engine: a state, a command, what a reply says, a transaction that is over. */
#include "smtpc/engine_impl.h"

#include "base/clock.h"

#include <assert.h>
#include <string.h>

static const struct {
	const char *text;
	unsigned may_follow;
} states[] = {
#define X(state, text, say, may_follow) {text, may_follow},
	ENGINE_STATES(X)
#undef X
};

void engine_move(struct engine *e, enum engine_state to)
{
	assert(states[e->state].may_follow & 1u << to);
	e->state = to;
	e->turn++;
}

void engine_expect(struct engine *e, struct expected x)
{
	x.early = expected_first(&e->expected);
	if (!x.early)
		e->turn++;
	expected_push(&e->expected, x);
}

void engine_say(struct engine *e, const char *line, struct expected x)
{
	size_t before = buf_len(e->out);
	assert(!strpbrk(line, "\r\n")); /* it would be two commands */
	buf_puts(e->out, line);
	buf_puts(e->out, "\r\n");
	e->produced += buf_len(e->out) - before;
	engine_expect(e, x);
}

bool engine_sent(const struct engine *e, const struct transaction *t)
{
	return t->stage >= TRANSACTION_DOT && e->produced - buf_len(e->out) >= t->dot_end;
}

struct verdict *engine_verdict(const struct engine *e, enum verdict_class class)
{
	char text[REPLY_TEXT_MAX + 1], dsn[sizeof e->reply.dsn];
	memcpy(dsn, e->reply.dsn, sizeof dsn);
	/* A refusal for good that is only a reason to come back says so in its enhanced code. */
	if (class == VERDICT_DEFERRED && dsn[0])
		dsn[0] = '4';
	return verdict_answering(expected_stage(e->answering), class, e->reply.code,
				 dsn[0] ? dsn : NULL, e->setup.peer, reply_text(&e->reply, text));
}

void engine_put_done(struct engine *e, struct delivery *d)
{
	d->ended_us = clock_steady_us();
	note_queue_put(&e->done, &d->note);
}

void engine_finish(struct engine *e, struct transaction *t)
{
	struct delivery *d = transaction_end(&t);
	e->answered += !d->returned;
	d->wants_tls = e->wants_tls;
	engine_put_done(e, d);
}

struct delivery *engine_take(struct engine *e)
{
	return (struct delivery *)note_queue_take(&e->done);
}

const char *engine_state_name(const struct engine *e)
{
	return states[e->state].text;
}
