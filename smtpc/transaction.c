/* SPDX-License-Identifier: ISC */
#include "smtpc/transaction.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

enum {
	RCPT_WAITING,
	RCPT_ACCEPTED,
	RCPT_ANSWERED,	/* LMTP: and the content has a reply for it */
	RCPT_REFUSED,	/* and has its verdict */
	RCPT_SETTLED,	/* likewise, or sent; that stands */
	RCPT_POSTPONED, /* another time */
	RCPT_DOUBTED,	/* refused ahead of its turn */
};

struct transaction *transaction_new(struct delivery *d)
{
	struct transaction *t = mem_zalloc(sizeof *t + d->nrcpt);
	list_init(&t->link);
	t->delivery = d;
	t->apart = d->verification;
	return t;
}

void transaction_move(struct transaction *t, enum transaction_stage to)
{
	assert(to > t->stage);
	t->stage = to;
}

/* Either all of it is to be tried again, or each recipient was decided or postponed. */
static bool is_settled(const struct transaction *t)
{
	const struct delivery *d = t->delivery;
	for (uint32_t i = 0; i < d->nrcpt; i++)
		if (d->returned && d->rcpt[i].verdict)
			return false;
	return true;
}

struct delivery *transaction_end(struct transaction **tp)
{
	struct transaction *t = *tp;
	struct delivery *d = t->delivery;
	assert(is_settled(t));
	list_remove(&t->link);
	verdict_unref(t->answer);
	verdict_unref(t->refusal);
	seven_bit_free(&t->seven_bit);
	free(t);
	*tp = NULL;
	return d;
}

void transaction_accept(struct transaction *t, uint32_t i)
{
	assert(i < t->delivery->nrcpt);
	assert(t->rcpt[i] == RCPT_WAITING);
	t->rcpt[i] = RCPT_ACCEPTED;
	t->accepted++;
}

static void decide_recipient(struct transaction *t, uint32_t i, struct verdict *v)
{
	struct delivery_recipient *r = &t->delivery->rcpt[i];
	assert(!r->verdict && v);
	r->verdict = verdict_ref(v);
}

bool transaction_waits(const struct transaction *t, uint32_t i)
{
	assert(i < t->delivery->nrcpt);
	return t->rcpt[i] == RCPT_WAITING;
}

void transaction_refuse(struct transaction *t, uint32_t i, struct verdict *v)
{
	assert(i < t->delivery->nrcpt);
	assert(t->rcpt[i] == RCPT_WAITING || t->rcpt[i] == RCPT_ACCEPTED);
	t->rcpt[i] = RCPT_REFUSED;
	decide_recipient(t, i, v);
}

void transaction_settle(struct transaction *t, uint32_t i)
{
	assert(i < t->delivery->nrcpt);
	if (t->delivery->rcpt[i].verdict)
		t->rcpt[i] = RCPT_SETTLED;
}

void transaction_doubt(struct transaction *t, uint32_t i)
{
	assert(i < t->delivery->nrcpt);
	assert(t->rcpt[i] == RCPT_WAITING || t->rcpt[i] == RCPT_ACCEPTED);
	assert(t->rcpt[i] != RCPT_ACCEPTED || t->accepted > 0);
	t->accepted -= t->rcpt[i] == RCPT_ACCEPTED;
	t->rcpt[i] = RCPT_DOUBTED;
}

void transaction_doubt_all(struct transaction *t)
{
	for (uint32_t i = 0; i < t->delivery->nrcpt; i++)
		if (t->rcpt[i] == RCPT_WAITING || t->rcpt[i] == RCPT_ACCEPTED)
			transaction_doubt(t, i);
}

bool transaction_doubted(const struct transaction *t)
{
	for (uint32_t i = 0; i < t->delivery->nrcpt; i++)
		if (t->rcpt[i] == RCPT_DOUBTED)
			return true;
	return false;
}

void transaction_again(struct transaction *t)
{
	assert(!t->alone && t->stage > TRANSACTION_QUEUED);
	for (uint32_t i = 0; i < t->delivery->nrcpt; i++)
		if (t->rcpt[i] == RCPT_DOUBTED)
			t->rcpt[i] = RCPT_WAITING;
	verdict_unref(t->answer);
	t->answer = NULL;
	t->alone = true;
	t->stage = TRANSACTION_QUEUED;
	t->next = t->offset = 0;
	t->sum = 0;
	t->accepted = 0;
	t->mail_accepted = t->suspect = t->unsure = t->unclear = t->expects_dot = false;
	t->crowded = t->fewer = false;
	/* Whoever was postponed: others have their verdicts yet to come. */
	t->delivery->returned = false;
}

bool transaction_owed(const struct transaction *t, uint32_t *i)
{
	for (*i = 0; *i < t->delivery->nrcpt; ++*i)
		if (t->rcpt[*i] == RCPT_ACCEPTED)
			return true;
	return false;
}

void transaction_answer(struct transaction *t, uint32_t i, struct verdict *v)
{
	assert(i < t->delivery->nrcpt && t->rcpt[i] == RCPT_ACCEPTED);
	t->rcpt[i] = RCPT_ANSWERED;
	decide_recipient(t, i, v);
}

void transaction_postpone(struct transaction *t, uint32_t i)
{
	assert(i < t->delivery->nrcpt);
	assert(t->rcpt[i] == RCPT_WAITING && !t->delivery->rcpt[i].verdict);
	t->rcpt[i] = RCPT_POSTPONED;
}

void transaction_refuse_all(struct transaction *t, struct verdict *v)
{
	for (uint32_t i = 0; i < t->delivery->nrcpt; i++)
		if (t->rcpt[i] == RCPT_WAITING || t->rcpt[i] == RCPT_ACCEPTED)
			transaction_refuse(t, i, v);
	t->accepted = 0;
}

void transaction_told(struct transaction *t, struct verdict *why)
{
	assert(!t->delivery->refusal);
	t->delivery->refusal = verdict_ref(why);
}

void transaction_ended_at(struct transaction *t, enum expected_kind kind, bool for_number)
{
	assert(t->accepted <= t->delivery->nrcpt);
	t->delivery->rcpt_taken = kind == EXPECTED_RCPT ? t->accepted : 0;
	t->delivery->rcpt_told = t->delivery->rcpt_taken > 0 && for_number;
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

static void postpone_accepted(struct transaction *t)
{
	assert(t->crowded && t->accepted > 0);
	transaction_ended_at(t, EXPECTED_RCPT, true);
	for (uint32_t i = 0; i < t->delivery->nrcpt; i++)
		if (t->rcpt[i] == RCPT_ACCEPTED)
			t->rcpt[i] = RCPT_POSTPONED;
	t->accepted = 0;
	transaction_give_back(t);
}

void transaction_conclude(struct transaction *t, struct verdict *v)
{
	if (t->fewer) {
		postpone_accepted(t);
		return;
	}
	for (uint32_t i = 0; i < t->delivery->nrcpt; i++) {
		if (t->rcpt[i] == RCPT_ACCEPTED)
			transaction_answer(t, i, v);
		if (t->rcpt[i] == RCPT_ANSWERED)
			t->rcpt[i] = RCPT_SETTLED;
	}
}

/* Of a host that has lost count nobody knows which of its replies were about whom, but for those that
 * it gave one by one. */
static void distrust_replies(struct transaction *t)
{
	for (uint32_t i = 0; i < t->delivery->nrcpt; i++) {
		struct delivery_recipient *r = &t->delivery->rcpt[i];
		if (t->rcpt[i] == RCPT_POSTPONED || t->rcpt[i] == RCPT_SETTLED)
			continue;
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
		"all of the message was sent, but %s, so that it may have arrived: %s",
		t->unsure ? "what came need not be its answer" : "no answer came",
		why ? why->text : "connection lost");
	transaction_refuse_all(t, doubt);
	verdict_unref(doubt);
}

/* Other replies stand beside that to the content, for which they could be taken. */
static bool several_ways(const struct transaction *t)
{
	return t->chunked || t->each;
}

/* After DATA a final reply that is none refuses the message, unless it began as consent: nothing else was
 * asked. A chunk may well have been taken, and the wrong reply be another command's. One that has an answer was not sent
 * behind what the host has said last. */
static bool in_doubt(const struct transaction *t, enum transaction_break how, bool sent)
{
	bool unclear = several_ways(t) || t->agreed;
	return sent && (how == BREAK_LOST || t->unsure || (unclear && how != BREAK_TOLD));
}

/* Those without a verdict get none now: it is not they that this connection has failed on. */
static bool to_return(const struct transaction *t, enum transaction_break how, bool sent)
{
	if (t->next == 0)
		return true; /* nothing of it was sent */
	if (how == BREAK_PROTOCOL || (how == BREAK_CONFUSED && sent))
		return false;
	bool fewer_may_go = how == BREAK_LOST && t->delivery->rcpt_taken > 0;
	return t->apart || t->alone || how == BREAK_CONFUSED || fewer_may_go || !any_verdict(t);
}

void transaction_broken(struct transaction *t, enum transaction_break how, bool sent,
			struct verdict *why, const char *host)
{
	assert(t->stage != TRANSACTION_ANSWERED || t->answer);
	if (t->stage == TRANSACTION_ANSWERED && how <= BREAK_TOLD && !t->unsure) {
		transaction_conclude(t, t->answer);
		return;
	}
	t->delivery->wasted = t->chunked && t->stage >= TRANSACTION_CONTENT;
	if (how == BREAK_CONFUSED && (several_ways(t) || !sent))
		distrust_replies(t);
	if (in_doubt(t, how, sent))
		leave_in_doubt(t, why, host);
	else if (why && !to_return(t, how, sent))
		transaction_refuse_all(t, why);
	transaction_give_back(t);
}
