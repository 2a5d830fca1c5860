/* SPDX-License-Identifier: ISC */
#include "smtpc/engine_impl.h"

#include <string.h>

/* The replies to what was sent with it may still come, or not: this one counts. */
static void mail_refused(struct engine *e, const struct expected *x)
{
	struct transaction *t = x->transaction;
	if (!engine_believes(e, x)) {
		engine_suspect(e, x);
		t->suspect = true;
		transaction_doubt_all(t);
	} else if (e->reply.code / 100 == 4 && e->carried > 0 && !engine_speaks_of_us(e)) {
		/* The host may have had enough of this connection: another will show it. But what
		 * is in flight behind this may be taken: then it is asked again when that is over. */
		if (!engine_followed(e, t)) {
			engine_renew(e, e->carried);
			return;
		}
		transaction_doubt_all(t);
	} else {
		struct verdict *v = engine_verdict(e, engine_refusal_class(e));
		transaction_refuse_all(t, v);
		verdict_unref(v);
	}
	if (!e->can.pipelining || t->alone)
		engine_end_transaction(e, t);
}

void engine_on_mail(struct engine *e, const struct expected *x)
{
	struct transaction *t = x->transaction;
	if (engine_positive(e->reply.code) && t->suspect && engine_only_rset_refused(e)) {
		t->suspect = false;
		t->blame = CONNECTION_FULL;
		engine_believe_answer(e);
	}
	if (engine_positive(e->reply.code) && !t->suspect) {
		t->mail_accepted = true;
		e->carried++;
	} else if (engine_negative(e->reply.code) &&
		   (!t->suspect || e->reply.code == t->refusal->code)) {
		engine_believe_answer(e);
		mail_refused(e, x);
	} else {
		engine_unexpected(e, x);
	}
}

/* RFC 5321 4.5.3.1.10: 452 after some were accepted asks for another transaction, not for patience; but 4.2.2 and the like speak of
 * the mailbox. Other hosts say so in words: 552 those of RFC 821, 550 and 450 some. Where it is meant for good, the first of the next
 * transaction has it. */
static bool too_many(const struct engine *e, const struct transaction *t)
{
	bool bare = e->reply.dsn[0] == '\0';
	int code = e->reply.code;
	if (t->accepted == 0 || code == 421)
		return false;
	return (bare && code == 452) || engine_speaks_of_number(e);
}

static void recipient_too_many(struct transaction *t, uint32_t i)
{
	transaction_postpone(t, i);
	t->crowded = true;
}

static void rcpt_refused(struct engine *e, const struct expected *x)
{
	struct transaction *t = x->transaction;
	if (!engine_believes(e, x)) {
		engine_suspect(e, x);
		transaction_doubt(t, x->rcpt);
		return;
	}
	struct verdict *v = engine_verdict(e, engine_refusal_class(e));
	transaction_refuse(t, x->rcpt, v);
	verdict_unref(v);
	if (!x->early)
		transaction_settle(t, x->rcpt);
}

/* That is all that was wanted of it. */
static void rcpt_verified(struct engine *e, const struct expected *x)
{
	struct verdict *v = engine_verdict(e, VERDICT_SENT);
	transaction_refuse(x->transaction, x->rcpt, v);
	transaction_settle(x->transaction, x->rcpt);
	verdict_unref(v);
}

void engine_on_rcpt(struct engine *e, const struct expected *x)
{
	struct transaction *t = x->transaction;
	bool positive = engine_positive(e->reply.code);
	if ((!positive && !engine_negative(e->reply.code)) || (positive && t->suspect))
		engine_unexpected(e, x);
	else if (!t->mail_accepted)
		return;
	else if (positive && t->delivery->verification)
		rcpt_verified(e, x);
	else if (positive)
		transaction_accept(t, x->rcpt);
	else if (too_many(e, t))
		recipient_too_many(t, x->rcpt);
	else
		rcpt_refused(e, x);
}

static void message_taken(struct engine *e, struct transaction *t)
{
	struct verdict *v = engine_verdict(e, VERDICT_SENT);
	transaction_conclude(t, v);
	verdict_unref(v);
}

static void data_refused(struct engine *e, const struct expected *x)
{
	struct transaction *t = x->transaction;
	engine_message_refused(e, x);
	e->owes_rset = t->mail_accepted;
	engine_end_transaction(e, t);
}

/* RFC 5321 4.2: the first digit decides. */
void engine_on_data(struct engine *e, const struct expected *x)
{
	struct transaction *t = x->transaction;
	if (engine_negative(e->reply.code)) {
		data_refused(e, x);
	} else if (e->reply.code / 100 != 3) {
		engine_unexpected(e, x);
	} else if (t->accepted > 0) {
		transaction_move(t, TRANSACTION_CONTENT);
	} else if (t->each) {
		engine_unexpected(e, x); /* RFC 2033 4.2: nobody knows what would answer the dot */
	} else {
		e->owes_dot = true; /* RFC 2920 3.1: a lone dot, whatever comes of it */
		engine_end_transaction(e, t);
	}
}

void engine_on_dot(struct engine *e, const struct expected *x)
{
	struct transaction *t = x->transaction;
	int code = e->reply.code;
	if (!engine_sent(e, t)) {
		engine_answered_early(e, x);
		return;
	}
	if (t->each) {
		engine_answered_each(e, x);
		return;
	}
	if (!engine_positive(code) && !engine_negative(code)) {
		engine_unexpected(e, x);
		return;
	}
	if (engine_positive(code))
		message_taken(e, t);
	else
		engine_message_refused(e, x);
	if (code == 421)
		engine_close(e, BREAK_TOLD, engine_verdict(e, VERDICT_DEFERRED));
	else
		engine_end_transaction(e, t);
}

void engine_on_empty_dot(struct engine *e, const struct expected *x)
{
	if (e->reply.code / 100 == 3)
		engine_unexpected(e, x);
}
