/* SPDX-License-Identifier: ISC */
#include "spool/copy_wait.h"

#include "base/clock.h"
#include "base/condition.h"
#include "base/fence.h"
#include "base/metrics.h"
#include "spool/effect.h"
#include "spool/replicate.h"
#include "spool/op.h"
#include "spool/spool_file.h"

#include <assert.h>
#include <stdlib.h>

enum { RENEW_BYTES = 1 << 20 }; /* what is less may well be sent */

bool copy_wait_refuses(const struct spool *s)
{
	const struct replication *p = &s->replication;
	return p->waits && p->away && !p->degrade;
}

bool copy_wait_must(const struct spool *s, const struct op *op)
{
	const struct replication *p = &s->replication;
	if (op->kind == OP_START)
		return p->starts_wait && !p->alone && !op->effective;
	if (op->kind != OP_STORE)
		return false;
	return op->store->adopted ? p->keeper != NULL : p->waits && !p->away && op->store->promised;
}

bool copy_wait_may_start(const struct spool *s, const struct spool_store *store)
{
	const struct replication *p = &s->replication;
	return !p->starts_wait || p->alone || (p->waits && !p->away && store->promised);
}

static bool is_start(const struct op *op)
{
	return op->first || op->kind == OP_START;
}

/* Nothing else knows of it yet, and its segments must not go. */
static void hold_places(const struct op *op)
{
	segment_hold(&op->at, USE_ENVELOPE);
	segment_hold(&op->content_at, USE_CONTENT);
	if (is_start(op))
		segment_hold(&op->start_at, USE_WORK);
}

static void let_go(struct spool *s, const struct op *op)
{
	journal_let_go(&s->journal, &op->at, USE_ENVELOPE);
	journal_let_go(&s->journal, &op->content_at, USE_CONTENT);
	if (is_start(op))
		journal_let_go(&s->journal, &op->start_at, USE_WORK);
}

void copy_wait_add(struct spool *s, struct op *op)
{
	struct replication *p = &s->replication;
	assert(p->keeper); /* nobody else would ever conclude it */
	assert(!op->effective && (op->kind == OP_STORE || op->kind == OP_START));
	hold_places(op);
	op->barrier = p->barrier + 1;
	op->awaits_since_us = clock_steady_us();
	list_append(&p->awaiting, &op->link);
	p->nawaiting++;
}

void copy_wait_ask(struct spool *s)
{
	struct replication *p = &s->replication;
	if (list_empty(&p->awaiting) ||
	    list_entry(p->awaiting.prev, struct op, link)->barrier == p->barrier)
		return;
	assert(p->keeper);
	replicate_ask(p->keeper, ++p->barrier);
}

void copy_wait_order(struct spool *s, struct spool_command *c)
{
	struct replication *p = &s->replication;
	assert(loop_is_ours(s->loop));
	if (!p->keeper || p->away) {
		c->uncopied = p->keeper;
		loop_post(c->reply_to, &c->note);
		return;
	}
	c->barrier = p->barrier + 1;
	note_queue_put(&p->orders, &c->note);
}

/* Those that wait have barriers up to this one. */
void copy_wait_ask_orders(struct spool *s)
{
	struct replication *p = &s->replication;
	bool any = false;
	for (const struct note *n = p->orders.first; n; n = n->next)
		any = ((const struct spool_command *)n)->barrier > p->barrier;
	assert(!any || p->keeper);
	if (any)
		replicate_ask(p->keeper, ++p->barrier);
}

static void answer_orders(struct replication *p, uint64_t barrier, bool copied)
{
	for (struct spool_command *c;
	     (c = (struct spool_command *)p->orders.first) && c->barrier <= barrier;) {
		note_queue_take(&p->orders);
		c->uncopied = !copied;
		loop_post(c->reply_to, &c->note);
	}
}

static void take_awaiting(struct spool *s, struct op *op)
{
	struct replication *p = &s->replication;
	list_remove(&op->link);
	assert(p->nawaiting > 0);
	p->nawaiting--;
}

static void conclude_op(struct spool *s, struct op *op, bool stored)
{
	assert(op->kind == OP_STORE || op->kind == OP_START);
	metrics_observe(HISTOGRAM_replicate_seconds, clock_steady_us() - op->awaits_since_us);
	take_awaiting(s, op);
	/* Meanwhile another node may have become the one to answer for it. */
	bool client = op->kind == OP_STORE && op->store->promised;
	if (stored && (!client || fence_open())) {
		struct op held = *op;
		effect_written(s, op);
		let_go(s, &held);
		op_free(op);
	} else {
		let_go(s, op);
		if (client)
			op->store->uncopied = !stored;
		effect_withdraw(s, op);
	}
}

static void conclude_until(struct spool *s, uint64_t barrier)
{
	list_each (link, tmp, &s->replication.awaiting) {
		struct op *op = list_entry(link, struct op, link);
		if (op->barrier > barrier)
			break;
		conclude_op(s, op, true);
	}
	answer_orders(&s->replication, barrier, true);
}

/* Whoever keeps the copy has forgotten all barriers with that. */
static void ask_again(struct spool *s)
{
	struct replication *p = &s->replication;
	if (!list_empty(&p->awaiting))
		replicate_ask(p->keeper, ++p->barrier);
}

static void turn_away(struct spool *s, const struct replicate *r)
{
	struct replication *p = &s->replication;
	p->away = r->away;
	p->alone = r->alone;
	if (p->away)
		condition_set(copy_wait_refuses(s) ? CONDITION_copy_stops : CONDITION_copy_away, "",
			      NULL);
	else
		condition_clear(CONDITION_copy_away, "");
	list_each (link, tmp, &p->awaiting) {
		struct op *op = list_entry(link, struct op, link);
		if (op->kind == OP_START && p->alone)
			conclude_op(s, op, true);
		else if (p->away && op->kind == OP_STORE && !op->store->adopted)
			conclude_op(s, op, p->degrade);
	}
	if (p->away)
		answer_orders(p, UINT64_MAX, false);
	if (p->alone)
		s->journal.renew_above = RENEW_BYTES;
	else
		replicate_starts_wait(p->keeper, r->of);
	ask_again(s);
}

void copy_wait_receive(struct spool *s, struct note *note)
{
	struct replicate *r = (struct replicate *)note;
	assert(loop_is_ours(s->loop));
	assert(note->type != SPOOL_REPLICATED || r->of <= s->replication.barrier);
	if (note->type == SPOOL_REPLICATED)
		conclude_until(s, r->of);
	else
		turn_away(s, r);
	free(r);
}

bool copy_wait_keeps_from_ending(const struct spool *s)
{
	return !list_empty(&s->replication.awaiting) && !s->replication.away;
}

void copy_wait_drop(struct spool *s)
{
	list_each (link, tmp, &s->replication.awaiting) {
		struct op *op = list_entry(link, struct op, link);
		take_awaiting(s, op);
		let_go(s, op);
		work_free(op->work, &s->journal);
		if (op->store) { /* the log has its record, and so the next start */
			spool_file_leave(&op->store->file);
			spool_store_free(&op->store);
		}
		op_free(op);
	}
	assert(s->replication.nawaiting == 0);
}
