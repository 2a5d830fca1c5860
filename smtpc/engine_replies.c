/* SPDX-License-Identifier: ISC */
#include "smtpc/engine_impl.h"

#include <string.h>

enum verdict_class engine_refusal_class(int code)
{
	return code / 100 == 5 ? VERDICT_FAILED : VERDICT_DEFERRED;
}

/* To a MAIL behind others this is no word on its sender: RSET has cleared the way. */
static bool out_of_order(const struct transaction *t, int code)
{
	return t->chunked && t->behind && (code == 500 || code == 502 || code == 503);
}

void engine_on_mail(struct engine *e, const struct expected *x)
{
	struct transaction *t = x->transaction;
	if (engine_positive(e->reply.code)) {
		t->mail_accepted = true;
		return;
	}
	if (!engine_negative(e->reply.code) || out_of_order(t, e->reply.code)) {
		engine_unexpected(e, x);
		return;
	}
	/* The replies to what was sent with it may still come, or not: this one counts. */
	struct verdict *v = engine_verdict(e, engine_refusal_class(e->reply.code));
	transaction_refuse_all(t, v);
	verdict_unref(v);
	if (!e->can.pipelining)
		engine_finish(e, t);
}

/* RFC 5321 4.5.3.1.10: 452 after some were accepted asks for another transaction, not for patience;
 * but 4.2.2 and the like speak of the mailbox. */
static bool too_many(const struct engine *e, const struct transaction *t)
{
	return e->reply.code == 452 && t->accepted > 0 &&
	       (e->reply.dsn[0] == '\0' || strcmp(e->reply.dsn, "4.5.3") == 0);
}

void engine_on_rcpt(struct engine *e, const struct expected *x)
{
	struct transaction *t = x->transaction;
	if (!engine_positive(e->reply.code) && !engine_negative(e->reply.code)) {
		engine_unexpected(e, x);
	} else if (!t->mail_accepted) {
		return;
	} else if (engine_positive(e->reply.code)) {
		transaction_accept(t, x->rcpt);
	} else if (too_many(e, t)) {
		transaction_postpone(t, x->rcpt);
	} else {
		struct verdict *v = engine_verdict(e, engine_refusal_class(e->reply.code));
		transaction_refuse(t, x->rcpt, v);
		verdict_unref(v);
	}
}

static void data_refused(struct engine *e, struct transaction *t)
{
	struct verdict *v = engine_verdict(e, engine_refusal_class(e->reply.code));
	transaction_conclude(t, v);
	verdict_unref(v);
	e->owes_rset = t->mail_accepted;
	engine_finish(e, t);
}

void engine_on_data(struct engine *e, const struct expected *x)
{
	struct transaction *t = x->transaction;
	if (engine_negative(e->reply.code)) {
		data_refused(e, t);
	} else if (e->reply.code != 354) {
		engine_unexpected(e, x);
	} else if (t->accepted > 0) {
		t->stage = TRANSACTION_CONTENT;
	} else {
		e->owes_dot = true; /* RFC 2920 3.1: a lone dot, whatever comes of it */
		engine_finish(e, t);
	}
}

/* The host did not wait for the end of the content. A refusal counts, but the connection is of no
 * more use; anything else can't be the truth. */
void engine_answered_early(struct engine *e, const struct expected *x)
{
	if (e->reply.code == 421) {
		engine_close(e, BREAK_TOLD, engine_verdict(e, VERDICT_DEFERRED));
		return;
	}
	if (!engine_negative(e->reply.code)) {
		engine_unexpected(e, x);
		return;
	}
	struct verdict *v = engine_verdict(e, engine_refusal_class(e->reply.code));
	transaction_conclude(x->transaction, v);
	verdict_unref(v);
	engine_finish(e, x->transaction);
	engine_close(e, BREAK_TOLD, NULL);
}

void engine_on_dot(struct engine *e, const struct expected *x)
{
	struct transaction *t = x->transaction;
	int code = e->reply.code;
	if (!engine_sent(e, t)) {
		engine_answered_early(e, x);
		return;
	}
	if (!engine_positive(code) && !engine_negative(code)) {
		engine_unexpected(e, x);
		return;
	}
	struct verdict *v = engine_verdict(e, engine_positive(code) ? VERDICT_SENT
								    : engine_refusal_class(code));
	transaction_conclude(t, v);
	engine_finish(e, t);
	if (code == 421)
		engine_close(e, BREAK_TOLD, verdict_ref(v));
	verdict_unref(v);
}

void engine_on_empty_dot(struct engine *e, const struct expected *x)
{
	if (e->reply.code / 100 == 3)
		engine_unexpected(e, x);
}
