/* SPDX-License-Identifier: ISC */
#include "spool/replicate.h"

#include "base/clock.h"
#include "base/condition.h"
#include "base/fence.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "spool/bytes.h"
#include "spool/checkpoint.h"
#include "spool/commit.h"
#include "spool/effect.h"
#include "spool/inbox.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { RENEW_BYTES = 1 << 20 }; /* what is less may well be sent */

static struct replicate *note_new(enum replicate_note type, uint64_t of, uint32_t n)
{
	struct replicate *r = mem_zalloc(sizeof *r + n);
	r->note.type = type;
	r->of = of;
	r->n = n;
	return r;
}

static void say(struct loop *keeper, enum replicate_note type, uint64_t of, uint64_t end)
{
	if (!keeper)
		return;
	struct replicate *r = note_new(type, of, 0);
	r->end = end;
	loop_post(keeper, &r->note);
}

void replicate_to(struct spool *s, struct loop *keeper, bool waits, bool degrade)
{
	struct replication *p = &s->replication;
	p->keeper = s->journal.keeper = keeper;
	p->waits = waits;
	p->degrade = degrade;
	for (struct list *l = s->journal.segments.next; l != &s->journal.segments; l = l->next)
		replicate_segment(keeper, list_entry(l, struct segment, link), false);
}

void replicate_starts(struct spool *s, bool wait)
{
	s->replication.starts_wait = wait;
}

void replicate_segment(struct loop *keeper, const struct segment *g, bool older)
{
	if (!keeper)
		return;
	struct replicate *r = note_new(REPLICATE_SEGMENT, g->head.seq, 0);
	r->file = content_file_ref(g->file);
	r->end = g->passed_over ? g->size : g->end; /* nobody has read where it ends */
	r->older = older;
	loop_post(keeper, &r->note);
}

void replicate_written(struct loop *keeper, const struct segment *g)
{
	say(keeper, REPLICATE_WRITTEN, g->head.seq, g->end);
}

void replicate_cut(struct loop *keeper, const struct segment *g, uint64_t from)
{
	if (!keeper)
		return;
	struct replicate *r = note_new(REPLICATE_CUT, g->head.seq, 0);
	r->from = from;
	r->end = g->end;
	loop_post(keeper, &r->note);
}

void replicate_marked(struct loop *keeper, const struct segment *g)
{
	if (!keeper || g->ndead == 0)
		return;
	struct replicate *r = note_new(REPLICATE_MARKED, g->head.seq, (uint32_t)g->ndead * 4);
	for (size_t i = 0; i < g->ndead; i++)
		put_le(r->bytes + 4 * i, g->dead[i], 4);
	loop_post(keeper, &r->note);
}

void replicate_spent(struct loop *keeper, const struct segment *g)
{
	/* To the keeper both are like records. */
	const uint64_t at = SEGMENT_FLAGS_AT - RECORD_FLAGS_AT;
	if (!keeper)
		return;
	struct replicate *r = note_new(REPLICATE_MARKED, g->head.seq, 8);
	put_le(r->bytes, at, 4);
	put_le(r->bytes + 4, SEGMENT_HEAD_AGAIN + at, 4);
	loop_post(keeper, &r->note);
}

static void say_checkpoint(struct loop *keeper, enum replicate_note type, const struct buf *b)
{
	struct replicate *r = note_new(type, 0, (uint32_t)buf_len(b));
	if (r->n > 0)
		memcpy(r->bytes, buf_data(b), r->n);
	loop_post(keeper, &r->note);
}

void replicate_checkpoint(struct loop *keeper, const struct buf *b)
{
	if (keeper)
		say_checkpoint(keeper, REPLICATE_CHECKPOINT, b);
}

void replicate_gone(struct loop *keeper, uint64_t seq)
{
	say(keeper, REPLICATE_GONE, seq, 0);
}

void replicate_large(struct loop *keeper, uint64_t id, uint64_t size, bool older)
{
	if (!keeper)
		return;
	struct replicate *r = note_new(REPLICATE_LARGE, id, 0);
	r->end = size;
	r->older = older;
	loop_post(keeper, &r->note);
}

void replicate_large_gone(struct loop *keeper, uint64_t id)
{
	say(keeper, REPLICATE_LARGE_GONE, id, 0);
}

void replicate_known(struct spool *s, struct stub *const *found, size_t n)
{
	if (!s->replication.keeper)
		return;
	for (struct list *l = s->journal.older.next; l != &s->journal.older; l = l->next)
		replicate_segment(s->replication.keeper, list_entry(l, struct segment, link), true);
	for (size_t i = 0; i < n; i++)
		if (found[i]->large)
			replicate_large(s->replication.keeper, found[i]->id, 0, true);
	struct buf b = {0};
	checkpoint_text(s->journal.folder, &b);
	say_checkpoint(s->replication.keeper, REPLICATE_KNOWN, &b);
	buf_fini(&b);
}

bool replicate_refuses(const struct spool *s)
{
	const struct replication *p = &s->replication;
	return p->waits && p->away && !p->degrade;
}

bool replicate_must_wait(const struct spool *s, const struct op *op)
{
	const struct replication *p = &s->replication;
	if (op->kind == OP_START)
		return p->starts_wait && !p->alone && !op->effective;
	if (op->kind != OP_STORE)
		return false;
	return op->store->adopted ? p->keeper != NULL : p->waits && !p->away && op->store->promised;
}

bool replicate_may_start(const struct spool *s, const struct spool_store *store)
{
	const struct replication *p = &s->replication;
	return !p->starts_wait || p->alone || (p->waits && !p->away && store->promised);
}

static bool starts(const struct op *op)
{
	return op->first || op->kind == OP_START;
}

/* Nothing else knows of it yet, and its segments must not go. */
static void hold(const struct op *op)
{
	segment_hold(&op->at, USE_ENVELOPE);
	segment_hold(&op->content_at, USE_CONTENT);
	if (starts(op))
		segment_hold(&op->start_at, USE_WORK);
}

static void let_go(struct spool *s, const struct op *op)
{
	journal_let_go(&s->journal, &op->at, USE_ENVELOPE);
	journal_let_go(&s->journal, &op->content_at, USE_CONTENT);
	if (starts(op))
		journal_let_go(&s->journal, &op->start_at, USE_WORK);
}

void replicate_await(struct spool *s, struct op *op)
{
	struct replication *p = &s->replication;
	hold(op);
	op->ticket = p->ticket + 1;
	op->awaits_since_us = clock_steady_us();
	list_append(&p->awaiting, &op->link);
	p->nawaiting++;
}

void replicate_ask(struct spool *s)
{
	struct replication *p = &s->replication;
	if (list_empty(&p->awaiting) ||
	    list_entry(p->awaiting.prev, struct op, link)->ticket == p->ticket)
		return;
	say(p->keeper, REPLICATE_ASK, ++p->ticket, 0);
}

static void take(struct spool *s, struct op *op)
{
	struct replication *p = &s->replication;
	list_remove(&op->link);
	assert(p->nawaiting > 0);
	p->nawaiting--;
}

static void conclude(struct spool *s, struct op *op, bool stored)
{
	metrics_observe(HISTOGRAM_replicate_seconds, clock_steady_us() - op->awaits_since_us);
	take(s, op);
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

static void conclude_until(struct spool *s, uint64_t ticket)
{
	list_each (link, tmp, &s->replication.awaiting) {
		struct op *op = list_entry(link, struct op, link);
		if (op->ticket > ticket)
			break;
		conclude(s, op, true);
	}
}

/* Whoever keeps the copy has forgotten all tickets with that. */
static void ask_again(struct spool *s)
{
	struct replication *p = &s->replication;
	if (!list_empty(&p->awaiting))
		say(p->keeper, REPLICATE_ASK, ++p->ticket, 0);
}

static void turn_away(struct spool *s, const struct replicate *r)
{
	struct replication *p = &s->replication;
	p->away = r->away;
	p->alone = r->alone;
	if (p->away)
		condition_set(replicate_refuses(s) ? CONDITION_copy_stops : CONDITION_copy_away, "",
			      NULL);
	else
		condition_clear(CONDITION_copy_away, "");
	list_each (link, tmp, &p->awaiting) {
		struct op *op = list_entry(link, struct op, link);
		if (op->kind == OP_START && p->alone)
			conclude(s, op, true);
		else if (p->away && op->kind == OP_STORE && !op->store->adopted)
			conclude(s, op, p->degrade);
	}
	if (p->alone)
		s->journal.renew_above = RENEW_BYTES;
	else
		say(p->keeper, REPLICATE_STARTS_WAIT, r->of, 0);
	ask_again(s);
}

void replicate_receive(struct spool *s, struct note *note)
{
	struct replicate *r = (struct replicate *)note;
	if (note->type == SPOOL_REPLICATED)
		conclude_until(s, r->of);
	else
		turn_away(s, r);
	free(r);
}

bool replicate_keeps_from_ending(const struct spool *s)
{
	return !list_empty(&s->replication.awaiting) && !s->replication.away;
}

void replicate_drop(struct spool *s)
{
	list_each (link, tmp, &s->replication.awaiting) {
		struct op *op = list_entry(link, struct op, link);
		take(s, op);
		let_go(s, op);
		work_free(op->work, &s->journal);
		if (op->store)
			spool_store_free(&op->store);
		op_free(op);
	}
}
