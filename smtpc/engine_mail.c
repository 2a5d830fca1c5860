/* SPDX-License-Identifier: ISC */
#include "smtpc/engine_impl.h"

#include "base/clock.h"
#include "base/fence.h"
#include "base/log.h"
#include "smtpc/envelope_out.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum {
	PIECE = 32 << 10,   /* bytes of content at once */
	OUT_MAX = 64 << 10, /* bytes in out above which no content is added */
};

static bool in_step(const struct engine *e)
{
	return !expected_first(&e->expected);
}

/* Does this transaction have to wait for replies before its next command? */
static bool must_wait(const struct engine *e, const struct transaction *t)
{
	return (!e->can.pipelining || t->alone) && !in_step(e);
}

static struct transaction *one_before(const struct engine *e, const struct transaction *t)
{
	return t->link.prev == &e->transactions
		       ? NULL
		       : list_entry(t->link.prev, struct transaction, link);
}

static bool keeps_apart(const struct transaction *t)
{
	return t && (t->apart || t->alone);
}

/* Does it have to wait until all before it is over? */
static bool must_not_ride(const struct engine *e, const struct transaction *t)
{
	const struct transaction *front = one_before(e, t);
	if (!e->apart && !keeps_apart(t) && !keeps_apart(front))
		return false;
	return front || !in_step(e);
}

/* The one whose turn it is: those before it only wait for replies. */
static struct transaction *current_transaction(const struct engine *e)
{
	list_each (link, tmp, &e->transactions) {
		struct transaction *t = list_entry(link, struct transaction, link);
		if (t->stage < TRANSACTION_DOT)
			return t;
	}
	return NULL;
}

bool engine_sending(const struct engine *e)
{
	const struct transaction *t = current_transaction(e);
	return t && t->stage == TRANSACTION_CONTENT && e->state == ENGINE_READY;
}

int engine_depth(const struct engine *e)
{
	bool rides = e->can.pipelining && !e->apart;
	return rides && e->setup.transport->pipeline_depth > 1 ? 2 : 1;
}

int engine_depth_most(const struct engine *e)
{
	int depth = engine_depth(e);
	return depth > 1 && e->can.chunking ? (int)e->setup.transport->pipeline_depth + 1 : depth;
}

/* As many wait for their answers as may. One that has its answer, and still waits for the reply
 * that shows whether it was that, keeps nobody: else its place would idle for as long as the host is
 * behind with what follows. */
static bool pipeline_full(const struct engine *e)
{
	int64_t unanswered = 0;
	list_each (link, tmp, &e->transactions) {
		const struct transaction *t = list_entry(link, struct transaction, link);
		if (t->stage == TRANSACTION_QUEUED)
			break;
		unanswered += t->stage != TRANSACTION_ANSWERED;
	}
	return e->can.chunking && unanswered >= e->setup.transport->pipeline_depth;
}

/* Those whom this host can not have, whatever comes of the others. */
static void refuse_recipients(struct engine *e, struct transaction *t)
{
	const struct delivery *d = t->delivery;
	for (uint32_t i = 0; i < d->nrcpt; i++) {
		struct verdict *v =
			transaction_waits(t, i)
				? envelope_out_rcpt_refusal(d, i, &e->can, e->setup.peer)
				: NULL;
		if (v) {
			transaction_refuse(t, i, v);
			transaction_settle(t, i);
			verdict_unref(v);
		}
	}
}

/* Who is postponed has none, and is left. */
static bool all_have_verdicts(const struct delivery *d)
{
	for (uint32_t i = 0; i < d->nrcpt; i++)
		if (!d->rcpt[i].verdict)
			return false;
	return true;
}

/* Before a word is said. True: nobody is left to send to. */
static bool refuse_beforehand(struct engine *e, struct transaction *t)
{
	struct delivery *d = t->delivery;
	refuse_recipients(e, t);
	if (all_have_verdicts(d))
		return true;
	struct verdict *refusal = envelope_out_refusal(d, &e->can, e->setup.peer);
	if (refusal)
		transaction_refuse_all(t, refusal);
	verdict_unref(refusal);
	return refusal != NULL;
}

/* Each step returns false when it has to wait for something. */
static bool begin_transaction(struct engine *e, struct transaction *t)
{
	if (must_wait(e, t) || must_not_ride(e, t) || pipeline_full(e))
		return false;
	if (refuse_beforehand(e, t)) {
		engine_finish(e, t);
		return true;
	}
	if (!session_limits_fit(&e->domains, &e->can, t)) {
		if (!one_before(e, t) && in_step(e))
			engine_renew(e, 0);
		return false;
	}
	seven_bit_free(&t->seven_bit);
	if (e->setup.transport->convert_8bit && envelope_out_converts(t->delivery, &e->can))
		t->seven_bit = seven_bit_new();
	t->chunked = e->can.chunking && !t->seven_bit;
	t->ahead = t->delivery->ahead && e->can.pipelining && !e->apart && !keeps_apart(t);
	t->behind = one_before(e, t);
	t->each = engine_speaks_lmtp(e);
	t->after_rset = e->owes_rset || (t->behind && (t->chunked || t->each));
	if (t->after_rset) {
		e->owes_rset = false;
		engine_say(e, "RSET",
			   (struct expected){.kind = EXPECTED_RSET,
					     .transaction = t->behind || t->alone ? t : NULL});
	}
	transaction_move(t, TRANSACTION_ENVELOPE);
	t->delivery->began_us = clock_steady_us();
	return true;
}

static void say_envelope(struct engine *e, struct transaction *t)
{
	struct expected x = {.kind = EXPECTED_MAIL, .transaction = t};
	assert(t->stage == TRANSACTION_ENVELOPE && t->next <= t->delivery->nrcpt);
	size_t before = buf_len(e->out);
	if (t->next == 0) {
		envelope_out_mail(e->out, t->delivery, &e->can, t->seven_bit);
	} else {
		x.kind = EXPECTED_RCPT;
		x.rcpt = (uint32_t)(t->next - 1);
		envelope_out_rcpt(e->out, t->delivery, x.rcpt, &e->can);
	}
	t->next++;
	e->produced += buf_len(e->out) - before;
	engine_expect(e, x);
}

static void say_data(struct engine *e, struct transaction *t)
{
	t->next++;
	content_out_init(&t->content_out, CONTENT_OUT_DATA);
	engine_say(e, "DATA", (struct expected){.kind = EXPECTED_DATA, .transaction = t});
}

/* A host may keep a mailbox locked, or count us among those who are busy, while an envelope is open. */
static void say_reset(struct engine *e)
{
	e->owes_rset = false;
	engine_say(e, "RSET", (struct expected){.kind = EXPECTED_RSET});
}

static bool go_on_with_envelope(struct engine *e, struct transaction *t)
{
	uint64_t data = (uint64_t)t->delivery->nrcpt + 1;
	if (t->next > data || must_wait(e, t))
		return false;
	while (t->next > 0 && t->next < data && !transaction_waits(t, (uint32_t)t->next - 1))
		t->next++;
	if (t->next < data) {
		say_envelope(e, t);
		return true;
	}
	if (in_step(e) && t->accepted == 0) {
		bool at_once = t->mail_accepted && t->delivery->verification;
		e->owes_rset = t->mail_accepted; /* and nobody to send to */
		engine_end_transaction(e, t);
		if (at_once)
			say_reset(e);
		return true;
	}
	if (t->apart)
		return false;
	if (t->chunked)
		return engine_say_chunk(e, t);
	say_data(e, t);
	return true;
}

/* In the midst of the content there is no other way to say that it ends here. */
static void break_off(struct engine *e, struct transaction *t, const char *words)
{
	struct verdict *why = verdict_printf(VERDICT_DEFERRED, 0, "4.3.0", NULL, "%s", words);
	transaction_refuse_all(t, why);
	verdict_unref(why);
	engine_close(e, BREAK_LOST, NULL);
}

static void content_unreadable(struct engine *e, struct transaction *t)
{
	log_event(LOG_LEVEL_ERROR, "content_unreadable", "id", log_id(t->delivery->id), "reason",
		  strerror(errno), NULL);
	break_off(e, t, "the message cannot be read from the queue");
}

static void put_content(struct engine *e, struct transaction *t, const char *bytes, size_t len)
{
	struct buf converted = {0};
	if (!t->seven_bit) {
		content_out_put(&t->content_out, bytes, len, e->out);
		return;
	}
	seven_bit_put(t->seven_bit, bytes, len, &converted);
	if (t->offset >= t->delivery->content->size)
		seven_bit_end(t->seven_bit, &converted);
	content_out_put(&t->content_out, buf_data(&converted), buf_len(&converted), e->out);
	buf_fini(&converted);
}

/* The next piece of content, or the dot. False: it can't be read, the engine is closed. */
static bool write_piece(struct engine *e, struct transaction *t)
{
	char piece[PIECE];
	const struct content *c = t->delivery->content;
	size_t before = buf_len(e->out);
	ssize_t n = c->memory ? 0 : content_read(c, t->offset, piece, sizeof piece);
	const char *bytes = piece;
	if (c->memory) {
		assert(t->offset <= c->size);
		uint64_t left = c->size - t->offset;
		n = left < PIECE ? (ssize_t)left : PIECE;
		bytes = c->memory + t->offset;
	}
	/* Content that is not as it was taken must not be sent to its end. */
	if (n < 0 || (n == 0 && t->offset < c->size) ||
	    !content_intact(c, &t->sum, t->offset, bytes, (size_t)n)) {
		content_unreadable(e, t);
		return false;
	}
	if (!fence_open()) { /* another node may have taken it up */
		break_off(e, t, "this node cannot prove its place in the cluster");
		return false;
	}
	t->offset += (uint64_t)n;
	put_content(e, t, bytes, (size_t)n);
	if (t->offset >= c->size)
		content_out_end(&t->content_out, e->out);
	e->produced += buf_len(e->out) - before;
	return true;
}

static bool write_content(struct engine *e, struct transaction *t)
{
	if (!t->expects_dot) {
		t->expects_dot = true;
		engine_expect(e, (struct expected){.kind = EXPECTED_DOT, .transaction = t});
	}
	if (buf_len(e->out) >= OUT_MAX || !write_piece(e, t))
		return false;
	if (t->offset >= t->delivery->content->size) {
		transaction_move(t, TRANSACTION_DOT);
		t->dot_end = e->produced;
		e->turn++;
	}
	return true;
}

static bool step_transaction(struct engine *e, struct transaction *t)
{
	switch (t->stage) {
	case TRANSACTION_QUEUED:
		return begin_transaction(e, t);
	case TRANSACTION_ENVELOPE:
		return go_on_with_envelope(e, t);
	case TRANSACTION_CONTENT:
		return write_content(e, t);
	case TRANSACTION_DOT:
	case TRANSACTION_ANSWERED:
		break;
	}
	return false;
}

void engine_say_transactions(struct engine *e)
{
	struct transaction *t;
	if (e->owes_dot) {
		e->owes_dot = false;
		engine_say(e, ".", (struct expected){.kind = EXPECTED_EMPTY_DOT});
	}
	while ((t = current_transaction(e)) && step_transaction(e, t))
		;
	if (e->state == ENGINE_READY && e->quit && list_empty(&e->transactions) && in_step(e)) {
		engine_move(e, ENGINE_QUITTING);
		engine_say(e, "QUIT", (struct expected){.kind = EXPECTED_QUIT});
	}
}
