/* SPDX-License-Identifier: ISC */
/* LMTP: the content has a reply for each recipient that was accepted, in the order of their RCPT.
 *
 *	DOT, BDAT is the first expected --> reply for one --> more are owed: it is expected again
 *	                                                  --> that was the last: over, or ANSWERED
 *
 * Messages are in flight behind one another as in SMTP, and RSET goes between them after DATA too: a
 * host that gives a reply too many or too few would else have one message's replies taken for those
 * of the next. RFC 2033 4.2 asks for enhanced codes, which show such a step (engine_step.c).
 *
 * When the connection ends between the replies, those that came stand, and who has none is in doubt. The
 * same after a 421, which speaks for its recipient alone.
 */
#include "smtpc/engine_impl.h"

static void take_answer(struct engine *e, const struct expected *x, uint32_t i)
{
	struct transaction *t = x->transaction;
	int code = e->reply.code;
	verdict_unref(t->answer);
	t->answer =
		engine_verdict(e, engine_positive(code) ? VERDICT_SENT : engine_refusal_class(e));
	t->unclear |= !engine_positive(code);
	if (engine_positive(code) || engine_believes(e, x)) {
		transaction_answer(t, i, t->answer);
		return;
	}
	engine_suspect(e, x);
	transaction_doubt(t, i);
}

static void conclude_last(struct engine *e, struct transaction *t)
{
	const struct expected *next = expected_first(&e->expected);
	if (next && next->kind == EXPECTED_RSET && e->reply.code != 421)
		transaction_move(t, TRANSACTION_ANSWERED);
	else
		engine_concluded(e, t);
}

void engine_answered_each(struct engine *e, const struct expected *x)
{
	struct transaction *t = x->transaction;
	uint32_t i;
	if (!engine_positive(e->reply.code) && !engine_negative(e->reply.code)) {
		engine_unexpected(e, x);
		return;
	}
	if (transaction_owed(t, &i))
		take_answer(e, x, i);
	if (!transaction_owed(t, &i)) {
		conclude_last(e, t);
		return;
	}
	e->quit |= e->reply.code == 421;
	expected_again(&e->expected, *x);
}
