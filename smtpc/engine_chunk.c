/* SPDX-License-Identifier: ISC */
/*	BDAT n LAST, and n bytes		RFC 3030 2
 *
 * All of a message is one chunk, of a size known beforehand. What was announced has to be sent, even
 * when a reply meanwhile refuses the envelope.
 */
#include "smtpc/engine_impl.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool engine_say_chunk(struct engine *e, struct transaction *t)
{
	char line[40];
	if (!t->ahead && expected_first(&e->expected))
		return false;
	assert(t->chunked && !t->seven_bit); /* else its size would be another */
	snprintf(line, sizeof line, "BDAT %" PRIu64 " LAST", t->delivery->content->size);
	engine_say(e, line, (struct expected){.kind = EXPECTED_BDAT, .transaction = t});
	content_out_init(&t->content_out, t->delivery->body == BODY_BINARYMIME ? CONTENT_OUT_BINARY
									       : CONTENT_OUT_CHUNK);
	t->next++;
	t->expects_dot = true;
	transaction_move(t, TRANSACTION_CONTENT);
	return true;
}

/* The envelope had nobody left: its replies count, whatever this one says. A host that took the
 * chunk all the same has taken it for nobody. */
static void answered_for_nobody(struct engine *e, const struct expected *x)
{
	struct transaction *t = x->transaction;
	bool positive = engine_positive(e->reply.code);
	if ((!positive && !engine_negative(e->reply.code)) ||
	    (positive && transaction_doubted(t))) {
		engine_unexpected(e, x);
		return;
	}
	t->delivery->wasted = true;
	if (e->reply.code == 421)
		engine_end_told(e, t);
	else
		engine_end_chunk(e, t, true);
}

/* BDAT itself is refused, by a host that announced it. The message is as good as never sent; but
 * what the host makes of the bytes of the chunk nobody knows, so that no more is said to it. */
static void not_understood(struct engine *e, struct transaction *t)
{
	transaction_give_back(t);
	t->delivery->wasted = true;
	engine_finish(e, t);
	engine_out_of_step(e, verdict_printf(VERDICT_DEFERRED, 0, "4.5.0", e->setup.peer,
					     "%s does not understand BDAT, which it announces: %d",
					     e->setup.peer, e->reply.code));
}

/* RFC 2033 4.2: of LMTP each reply has an enhanced code. RFC 3463 3.6: X.5 is about commands. */
static bool speaks_of_recipient(const struct engine *e)
{
	const char *dsn = e->reply.dsn;
	return dsn[0] != '\0' && strncmp(dsn + 1, ".5.", 3) != 0;
}

/* Who does not know BDAT reads the chunk as commands, and answers each of its lines: no reply behind
 * that is what it seems. A chunk that went ahead of its turn may be refused for its order alone, but
 * not with these two codes. */
static bool as_command(const struct engine *e, const struct expected *x)
{
	int code = e->reply.code;
	if (x->transaction->each && speaks_of_recipient(e))
		return false;
	if (code == 500 || code == 502)
		return true;
	return code >= 500 && code <= 504 && !x->early && x->transaction->accepted > 0;
}

static void chunk_refused(struct engine *e, const struct expected *x)
{
	if (engine_believes(e, x)) {
		engine_heed_number(e, x->transaction);
	} else {
		engine_suspect(e, x);
		transaction_doubt_all(x->transaction);
	}
}

void engine_on_bdat(struct engine *e, const struct expected *x)
{
	struct transaction *t = x->transaction;
	const struct expected *next = expected_first(&e->expected);
	int code = e->reply.code;
	if (!t->answer && as_command(e, x)) {
		not_understood(e, t);
	} else if (!engine_sent(e, t)) {
		engine_answered_early(e, x);
	} else if (t->accepted == 0) {
		answered_for_nobody(e, x);
	} else if (t->each) {
		engine_answered_each(e, x);
	} else if (!engine_positive(code) && !engine_negative(code)) {
		engine_unexpected(e, x);
	} else {
		assert(!t->answer);
		t->answer = engine_verdict(e, engine_positive(code) ? VERDICT_SENT
								    : engine_refusal_class(e));
		if (!engine_positive(code))
			chunk_refused(e, x);
		if (next && next->kind == EXPECTED_RSET && code != 421)
			transaction_move(t, TRANSACTION_ANSWERED);
		else
			engine_concluded(e, t);
	}
}

/* Behind a chunk a host may refuse it for its order alone: then MAIL is refused likewise, or has a code
 * of its own, and shows that the answer before this was the chunk's. Any other code may be the chunk's,
 * and the answer before it that to RSET: a host that mixes up two replies would have us believe that
 * a message was taken which it refused. */
static void rset_refused(struct engine *e, const struct expected *x)
{
	struct transaction *t = engine_answered_one(e);
	bool order = e->reply.code >= 500 && e->reply.code <= 504;
	if (!order || (t && t->answer->class != VERDICT_SENT)) {
		engine_unexpected(e, x);
		return;
	}
	if (t)
		t->unsure = true;
	engine_suspect(e, x);
	x->transaction->suspected = EXPECTED_MAIL;
	x->transaction->suspect = true;
}

void engine_on_rset(struct engine *e, const struct expected *x)
{
	if (engine_positive(e->reply.code))
		engine_believe_answer(e);
	else if (engine_negative(e->reply.code) && x->transaction && x->transaction->behind)
		rset_refused(e, x);
	else
		engine_unexpected(e, x);
}
