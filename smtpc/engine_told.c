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

/* A host that has carried mail and is asked for more goes away for the sake of its limits. */
static void obey(struct engine *e, const struct expected *x)
{
	struct verdict *why = engine_verdict(e, VERDICT_DEFERRED);
	if (x->transaction)
		transaction_told(x->transaction, why);
	if (x->kind == EXPECTED_MAIL && e->carried > 0 && !e->confused && !engine_speaks_of_us(e)) {
		verdict_unref(why);
		engine_renew(e, e->carried);
	} else {
		engine_close(e, BREAK_TOLD, why);
	}
}

bool engine_listens(const struct engine *e)
{
	return e->told.code != 0;
}

/* The reply at hand is the 421 again. */
static struct expected recall_told(struct engine *e)
{
	struct reply told = e->told;
	assert(engine_listens(e));
	e->told = e->reply;
	e->reply = told;
	reply_reset(&e->told);
	e->answering = e->told_to.kind;
	return e->told_to;
}

void engine_told(struct engine *e, const struct expected *x)
{
	assert(e->reply.code == 421 && !engine_listens(e));
	if (!any_may_be_taken(e)) {
		obey(e, x);
		return;
	}
	struct reply fresh = e->told;
	e->told = e->reply;
	e->told_to = *x;
	e->reply = fresh;
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
	obey(e, &x);
}

static void simplify_mode(struct engine *e)
{
	e->confused = true;
	e->mode |= CONNECTION_APART;
}

void engine_heard_nothing(struct engine *e)
{
	recall_told(e);
	simplify_mode(e);
	engine_close(e, BREAK_LOST, engine_verdict(e, VERDICT_DEFERRED));
}

static void content_taken(struct engine *e, struct transaction *t)
{
	struct verdict *v = engine_verdict(e, VERDICT_SENT);
	transaction_conclude(t, v);
	verdict_unref(v);
	if (e->told_to.transaction == t)
		e->told_to.transaction = NULL;
	simplify_mode(e);
	engine_finish(e, t);
}

/* Consent counts, and nothing else. */
static void take_late(struct engine *e, const struct expected *x)
{
	struct transaction *t = x->transaction;
	bool positive = engine_positive(e->reply.code);
	if (x->kind == EXPECTED_MAIL)
		t->mail_accepted |= positive;
	else if (x->kind == EXPECTED_RCPT && positive && t->mail_accepted &&
		 transaction_waits(t, x->rcpt))
		transaction_accept(t, x->rcpt);
	else if (x->kind == EXPECTED_BDAT)
		t->expects_dot = false;
	if (x->kind == EXPECTED_BDAT && positive && t->accepted > 0 && engine_sent(e, t))
		content_taken(e, t);
}

void engine_hear_late(struct engine *e, const struct expected *x)
{
	assert(engine_listens(e));
	take_late(e, x);
	if (!any_may_be_taken(e))
		engine_obey(e);
}
