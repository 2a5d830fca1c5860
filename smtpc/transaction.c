/* SPDX-License-Identifier: ISC */
#include "smtpc/transaction.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

enum { RCPT_WAITING, RCPT_ACCEPTED, RCPT_REFUSED, RCPT_POSTPONED };

struct transaction *transaction_new(struct delivery *d)
{
	struct transaction *t = mem_zalloc(sizeof *t + d->nrcpt);
	list_init(&t->link);
	t->delivery = d;
	return t;
}

struct delivery *transaction_end(struct transaction **tp)
{
	struct transaction *t = *tp;
	struct delivery *d = t->delivery;
	list_remove(&t->link);
	verdict_unref(t->answer);
	free(t);
	*tp = NULL;
	return d;
}

void transaction_accept(struct transaction *t, uint32_t i)
{
	assert(t->rcpt[i] == RCPT_WAITING);
	t->rcpt[i] = RCPT_ACCEPTED;
	t->accepted++;
}

static void decide(struct transaction *t, uint32_t i, struct verdict *v)
{
	struct delivery_recipient *r = &t->delivery->rcpt[i];
	assert(!r->verdict && v);
	r->verdict = verdict_ref(v);
}

void transaction_refuse(struct transaction *t, uint32_t i, struct verdict *v)
{
	t->rcpt[i] = RCPT_REFUSED;
	decide(t, i, v);
}

void transaction_postpone(struct transaction *t, uint32_t i)
{
	t->rcpt[i] = RCPT_POSTPONED;
}

void transaction_refuse_all(struct transaction *t, struct verdict *v)
{
	for (uint32_t i = 0; i < t->delivery->nrcpt; i++)
		if (t->rcpt[i] == RCPT_WAITING || t->rcpt[i] == RCPT_ACCEPTED)
			transaction_refuse(t, i, v);
	t->accepted = 0;
}

void transaction_conclude(struct transaction *t, struct verdict *v)
{
	for (uint32_t i = 0; i < t->delivery->nrcpt; i++)
		if (t->rcpt[i] == RCPT_ACCEPTED)
			decide(t, i, v);
}

static bool any_verdict(const struct transaction *t)
{
	for (uint32_t i = 0; i < t->delivery->nrcpt; i++)
		if (t->delivery->rcpt[i].verdict)
			return true;
	return false;
}

void transaction_give_back(struct transaction *t)
{
	t->delivery->returned = !any_verdict(t);
}

/* Of a host that has lost count nobody knows which of its replies were about whom. */
static void distrust(struct transaction *t)
{
	for (uint32_t i = 0; i < t->delivery->nrcpt; i++) {
		struct delivery_recipient *r = &t->delivery->rcpt[i];
		if (t->rcpt[i] != RCPT_POSTPONED)
			t->rcpt[i] = RCPT_ACCEPTED;
		verdict_unref(r->verdict);
		r->verdict = NULL;
	}
}

/* Those that no reply has refused, whether their own replies have come or not. */
static void leave_in_doubt(struct transaction *t, struct verdict *why, const char *host)
{
	struct verdict *doubt = verdict_printf(
		VERDICT_IN_DOUBT, 0, "4.4.2", host,
		"all of the message was sent, but no answer came, so that it may have arrived: %s",
		why ? why->text : "connection lost");
	transaction_refuse_all(t, doubt);
	verdict_unref(doubt);
}

/* After DATA a final reply that is none refuses the message: nothing else was asked. A chunk may
 * well have been taken, and the wrong reply be another command's. */
static bool in_doubt(const struct transaction *t, enum transaction_break how, bool sent)
{
	return sent && (how == BREAK_LOST || (t->chunked && how != BREAK_TOLD));
}

static bool to_return(const struct transaction *t, enum transaction_break how, bool sent)
{
	if (t->next == 0)
		return true; /* nothing of it was sent */
	return how != BREAK_PROTOCOL && !(how == BREAK_CONFUSED && sent) && !any_verdict(t);
}

void transaction_broken(struct transaction *t, enum transaction_break how, bool sent,
			struct verdict *why, const char *host)
{
	if (t->stage == TRANSACTION_ANSWERED && how <= BREAK_TOLD) {
		transaction_conclude(t, t->answer);
		return;
	}
	t->delivery->wasted = t->chunked && t->stage >= TRANSACTION_CONTENT;
	if (how == BREAK_CONFUSED && (t->chunked || !sent))
		distrust(t);
	if (in_doubt(t, how, sent))
		leave_in_doubt(t, why, host);
	else if (to_return(t, how, sent))
		t->delivery->returned = true;
	else if (why)
		transaction_refuse_all(t, why);
}
