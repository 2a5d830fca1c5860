/* SPDX-License-Identifier: ISC */
/* 421: the host closes, and does nothing of what was sent behind that. RFC 5321 3.8. One that does not close may take it all the
 * same. So where all of a message was sent behind the 421, nothing more is said, and the connection is listened to:
 *
 *	what comes			then
 *	the end of the connection	as the host has said
 *	consent to a message		it is sent, and the host is asked in a simpler mode next time
 *	refusals			of no account: the host has said why it takes nothing
 *	nothing, for LISTEN_MS		what was sent as a whole is in doubt, and the mode simpler
 *
 * In LMTP, where the content has several answers, the 421 is taken at its word.
 */
#include "smtpc/engine_impl.h"

#include <assert.h>

static bool may_be_taken(const struct engine *e, const struct transaction *t)
{
	return t->stage == TRANSACTION_DOT && t->expects_dot && !t->each && engine_sent(e, t);
}

static bool any_may_be_taken(const struct engine *e)
{
	list_each (link, tmp, &e->transactions)
		if (may_be_taken(e, list_entry(link, struct transaction, link)))
			return true;
	return false;
}

/* A host that has carried mail and is asked for more goes away for the sake of its limits; but not one that has just refused RSET. */
static bool has_enough(const struct engine *e, const struct expected *x)
{
	bool refused_rset = x->transaction && x->transaction->suspect;
	return x->kind == EXPECTED_MAIL && e->carried > 0 && !e->confused && !refused_rset &&
	       !engine_speaks_of_us(e);
}

static void obey_421(struct engine *e, const struct expected *x)
{
	struct verdict *why = engine_verdict(e, VERDICT_DEFERRED);
	if (x->transaction) {
		transaction_told(x->transaction, why);
		transaction_ended_at(x->transaction, x->kind, engine_speaks_of_number(e));
	}
	if (has_enough(e, x)) {
		verdict_unref(why);
		engine_renew(e, e->carried);
	} else {
		engine_close(e, BREAK_TOLD, why);
	}
}

static void swap_replies(struct engine *e)
{
	struct reply r = e->reply;
	e->reply = e->told;
	e->told = r;
}

/* The reply at hand is the 421 again. */
static struct expected recall_told(struct engine *e)
{
	assert(e->state == ENGINE_LISTENING && e->told.code == 421);
	swap_replies(e);
	e->answering = e->told_to.kind;
	return e->told_to;
}

void engine_told(struct engine *e, const struct expected *x)
{
	assert(e->reply.code == 421);
	if (!any_may_be_taken(e)) {
		obey_421(e, x);
		return;
	}
	swap_replies(e);
	e->told_to = *x;
	engine_move(e, ENGINE_LISTENING);
}

void engine_end_told(struct engine *e, struct transaction *t)
{
	t->delivery->wasted = t->chunked;
	transaction_give_back(t);
	engine_finish(e, t);
	engine_told(e, &(struct expected){.kind = EXPECTED_BDAT});
}

void engine_obey(struct engine *e)
{
	struct expected x = recall_told(e);
	e->hung_up = false; /* as it has said */
	obey_421(e, &x);
}

static void ask_apart(struct engine *e)
{
	e->confused = true;
	e->mode |= CONNECTION_APART;
}

void engine_heard_nothing(struct engine *e)
{
	recall_told(e);
	ask_apart(e);
	engine_close(e, BREAK_LOST, engine_verdict(e, VERDICT_DEFERRED));
}

static void content_taken(struct engine *e, struct transaction *t)
{
	struct verdict *v = engine_verdict(e, VERDICT_SENT);
	transaction_conclude(t, v);
	verdict_unref(v);
	if (e->told_to.transaction == t)
		e->told_to.transaction = NULL;
	ask_apart(e);
	engine_finish(e, t);
}

static void recipient_accepted(struct transaction *t, uint32_t i)
{
	if (t->mail_accepted && transaction_waits(t, i))
		transaction_accept(t, i);
}

static void chunk_answered(struct engine *e, struct transaction *t)
{
	t->expects_dot = false;
	if (engine_positive(e->reply.code) && t->accepted > 0 && engine_sent(e, t))
		content_taken(e, t);
}

/* Consent counts, and nothing else. */
void engine_hear_late(struct engine *e, const struct expected *x)
{
	assert(e->state == ENGINE_LISTENING);
	if (x->kind == EXPECTED_BDAT)
		chunk_answered(e, x->transaction);
	else if (x->kind == EXPECTED_MAIL)
		x->transaction->mail_accepted |= engine_positive(e->reply.code);
	else if (x->kind == EXPECTED_RCPT && engine_positive(e->reply.code))
		recipient_accepted(x->transaction, x->rcpt);
	if (!any_may_be_taken(e))
		engine_obey(e);
}
