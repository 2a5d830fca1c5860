/* SPDX-License-Identifier: ISC */
#include "spool/effect.h"

#include "base/clock.h"
#include "base/ident.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "spool/disk.h"
#include "spool/removal.h"
#include "spool/spool_file.h"
#include "spool/op.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static void post_arrival(struct spool *s, const struct op *op, struct envelope *e,
			 struct content *c)
{
	struct spool_arrival *a = mem_zalloc(sizeof *a);
	a->note.type = SPOOL_ARRIVAL;
	a->envelope = e;
	a->content = c;
	a->urgent = op->urgent;
	loop_post(s->qmgr, &a->note);
}

static void answer_store(const struct spool *s, struct spool_store *store, bool stored)
{
	assert(!store->file && !store->with); /* they were given away */
	store->id = store->envelope ? store->envelope->id : store->id;
	envelope_free(&store->envelope);
	content_unref(store->content);
	store->content = NULL;
	log_held_free(&store->log);
	if (!store->reply_to) {
		free(store);
		return;
	}
	store->stored = stored;
	store->answered_us = s->replication.waits ? clock_steady_us() : s->gather.answered_us;
	store->note.type = SPOOL_STORED;
	loop_post(store->reply_to, &store->note);
}

/* The content that qmgr reads the new message from: in memory, as long as there is enough of it. */
static struct content *take_content(struct spool *s, struct op *op)
{
	struct spool_store *store = op->store;
	if (store->file)
		return spool_file_content(&store->file);
	if (content_memory_bytes() <= s->conf->content_memory_limit)
		return content_ref(store->content);
	return content_in_file(op->content_at.segment->file,
			       op->content_at.offset + (uint64_t)RECORD_HEAD, store->content->size);
}

/* The runner starts it, in a later turn. */
static void untake_message(struct spool *s, uint64_t id)
{
	char name[IDENT_TEXT];
	s->more = true;
	s->untaken = true;
	if (disk_unlink(s->taken, ident_text(id, name)) != 0 && errno != ENOENT)
		log_event(LOG_LEVEL_ERROR, "taken_left", "id", name, "error", strerror(errno),
			  NULL);
}

void effect_sync_taken(struct spool *s)
{
	if (s->untaken && disk_sync(s->taken) != 0)
		log_event(LOG_LEVEL_ERROR, "taken_left", "error", strerror(errno), NULL);
	s->untaken = false;
}

static void watch_content(struct stub *stub, const struct content *c)
{
	if (stub->large)
		stub->work->file = content_file_ref(c->file);
}

/* Where one that waits is to wait. One of another node keeps what its envelope says until it is released. The runner looked
 * before this batch was written, and nothing else may wake the thread. */
static void wait_for_turn(struct spool *s, struct stub *stub, const struct spool_store *store)
{
	stub_wait_for(stub, store->envelope);
	if (store->adopted) {
		stub->held = store->envelope->held;
		stub_enter(s, stub, STUB_ADOPTED);
	} else if (stub->scheduled && !store->envelope->held) {
		stub_enter(s, stub, STUB_DEFERRED);
	} else {
		uint16_t row = places_row(s, store->envelope);
		stub->site = store->envelope->held ? 0 : (uint32_t)row & SPOOL_SITE_MAX;
		stub_enter(s, stub, store->envelope->held ? STUB_HELD : STUB_INCOMING);
		s->more |= s->credit > 0;
	}
}

static struct stub *stub_of(struct spool *s, const struct op *op)
{
	const struct spool_store *store = op->store;
	struct stub *stub = stub_new(&s->stubs);
	stub->id = store->envelope->id;
	stub->state = STUB_GONE;
	stub->generation = op->generation & STUB_GENERATION_MAX;
	stub->envelope = op->at;
	segment_hold(&op->at, USE_ENVELOPE);
	stub->large = store->file;
	stub->content = op->content_at;
	segment_hold(&op->content_at, USE_CONTENT);
	domains_set(&s->domains, stub, store->envelope);
	if (store->file)
		s->large_bytes += (int64_t)spool_file_size(store->file);
	return stub;
}

static void apply_store(struct spool *s, struct op *op)
{
	struct spool_store *store = op->store;
	assert(!op->stub && !op->effective && store->envelope);
	struct stub *stub = op->stub = stub_of(s, op);
	log_release(&store->log);
	store->id = stub->id;
	catalog_add(&s->catalog, stub);
	s->compact.stale = true;
	struct content *content = take_content(s, op);
	if (op->first) {
		stub->work = mem_zalloc(sizeof *stub->work);
		work_hold(stub->work, &op->start_at);
		watch_content(stub, content);
		stub_enter(s, stub, STUB_ACTIVE);
		stub->site = (uint32_t)op->row & SPOOL_SITE_MAX;
		post_arrival(s, op, store->envelope, content);
		store->envelope = NULL;
	} else {
		wait_for_turn(s, stub, store);
		content_unref(content);
	}
	if (store->taken)
		untake_message(s, stub->id);
	if (op->replaces) {
		assert(!op->replaces
				->unsettled); /* the sync of this batch was one of its envelope, too */
		op_finish(s, op->replaces);
	}
	metrics_add(METRIC_received, !store->adopted && !op->replaces);
	answer_store(s, store, true);
	op->store = NULL;
}

void effect_cancel(struct spool *s, const struct stub *stub)
{
	assert(stub->state == STUB_ACTIVE && stub->wish != WISH_NONE);
	struct spool_cancel *c = mem_zalloc(sizeof *c);
	c->note.type = SPOOL_CANCEL;
	c->id = stub->id;
	c->keep = stub->wish != WISH_DELETE;
	loop_post(s->qmgr, &c->note);
}

static void apply_start(struct spool *s, struct op *op)
{
	work_hold(op->work, &op->start_at);
	if (op->effective)
		return;
	assert(op->stub->state == STUB_ACTIVE && !op->stub->releasing);
	assert(op->stub->unsettled || !op->stub->work);
	op->stub->work = op->work;
	watch_content(op->stub, op->content);
	post_arrival(s, op, op->envelope, op->content);
	op->envelope = NULL;
	op->content = NULL;
	if (op->stub->wish) /* since before qmgr knew of it */
		effect_cancel(s, op->stub);
}

static void apply_keep(struct spool *s, struct op *op)
{
	struct stub *stub = op->stub;
	if (op->effective)
		journal_let_go(&s->journal, &stub->envelope, USE_ENVELOPE);
	else
		op->was = stub->envelope;
	stub->envelope = op->at;
	segment_hold(&op->at, USE_ENVELOPE);
	if (op->effective)
		return;
	assert(stub->state == STUB_ACTIVE && stub->releasing);
	assert(!stub->unsettled);
	stub->generation = op->generation & STUB_GENERATION_MAX;
	op->work = stub->work;
	stub->keep = op;
	stub->unsettled = true;
	stub->releasing = false;
	stub_wait_for(stub, op->envelope);
	domains_set(&s->domains, stub, op->envelope);
	stub_enter(s, stub, op->envelope->held ? STUB_HELD : STUB_DEFERRED);
	if (stub->state != STUB_DEFERRED)
		return;
	parked_enter(&s->parked, stub, op->site, op->parked);
	stub->urgent = op->urgent;
}

static void tell_moved(struct spool *s, const struct op *op)
{
	struct spool_moved *m = mem_zalloc(sizeof *m);
	m->note.type = SPOOL_MOVED;
	m->id = op->stub->id;
	m->content =
		content_in_file(op->content_at.segment->file,
				op->content_at.offset + (uint64_t)RECORD_HEAD, op->envelope->size);
	loop_post(s->qmgr, &m->note);
}

/* A move is synced in the same batch, so that it settles at once. */
static void apply_move(struct spool *s, struct op *op)
{
	struct stub *stub = op->stub;
	assert(!op->effective && stub->moving);
	assert(!stub->unsettled && !stub->releasing);
	op->was = stub->envelope;
	stub->envelope = op->at;
	stub->generation = op->generation & STUB_GENERATION_MAX;
	segment_hold(&op->at, USE_ENVELOPE);
	if (op->moves_content) {
		op->content_was = stub->content;
		stub->content = op->content_at;
	}
	if (stub->state != STUB_ACTIVE)
		return;
	op->work = stub->work;
	stub->work = mem_zalloc(sizeof *stub->work);
	stub->work->file = op->work->file ? content_file_ref(op->work->file) : NULL;
	work_hold(stub->work, &op->start_at);
	if (op->moves_content)
		tell_moved(s, op);
}

void effect_written(struct spool *s, struct op *op)
{
	switch (op->kind) {
	case OP_STORE:
		apply_store(s, op);
		break;
	case OP_START:
		apply_start(s, op);
		break;
	case OP_DELIVERED:
		assert(!op->effective && op->delivered && op->stub->work);
		work_hold(op->stub->work, &op->at);
		work_add(op->stub->work, op->delivered);
		op->delivered = NULL;
		break;
	case OP_KEEP:
		apply_keep(s, op);
		break;
	case OP_FINISH:
		if (!op->effective && op->worked)
			op->work = op->stub->work;
		break;
	case OP_COPY:
		assert(!op->effective && !op->copied->segment);
		*op->copied = op->content_at;
		segment_hold(op->copied, USE_CONTENT);
		break;
	case OP_MOVE:
		apply_move(s, op);
		break;
	}
	op->effective = true;
}

static void let_go(struct spool *s, const struct place *envelope)
{
	segment_dead(envelope);
	journal_let_go(&s->journal, envelope, USE_ENVELOPE);
}

static int64_t size_of(int folder, const char *name)
{
	uint64_t bytes = 0;
	int64_t changed_ms;
	int fd = disk_open(folder, name, O_RDONLY);
	if (fd >= 0) {
		disk_size(fd, &bytes, &changed_ms);
		disk_close(fd);
	}
	return (int64_t)bytes;
}

/* A message that is taken once more has a file of the same name, which nobody may remove then: not later, and not where its own has
 * gone into the quarantine, or was missing. */
static void drop_large(struct spool *s, const struct op *op)
{
	const struct stub *stub = op->stub;
	char name[IDENT_TEXT];
	if (stub->damaged)
		return;
	s->large_bytes -= size_of(s->large, ident_text(stub->id, name));
	if (op->given_back)
		disk_unlink(s->large, name);
	else
		removal_of_large(s->syncers, s->large, stub->id,
				 op->work && op->work->file ? content_file_ref(op->work->file)
							    : NULL);
}

static void drop_message(struct spool *s, struct op *op)
{
	struct stub *stub = op->stub;
	assert(stub->state == STUB_GONE);
	assert(!stub->moving && !stub->unsettled);
	let_go(s, &stub->envelope);
	journal_let_go(&s->journal, &stub->content, USE_CONTENT);
	if (stub->large) {
		drop_large(s, op);
		replicate_large_gone(s->replication.keeper, stub->id);
	}
	work_free(op->work, &s->journal);
	domains_drop(&s->domains, stub);
	stub_free(&s->stubs, stub);
}

void effect_settled(struct spool *s, struct op *op)
{
	assert(op->effective);
	if (op->kind == OP_KEEP) {
		let_go(s, &op->was);
		work_free(op->work, &s->journal);
		assert(op->stub->unsettled);
		op->stub->unsettled = false;
		if (op->stub->keep == op)
			op->stub->keep = NULL; /* and no work: a start may wait to be written */
	} else if (op->kind == OP_MOVE) {
		let_go(s, &op->was);
		journal_let_go(&s->journal, &op->content_was, USE_CONTENT);
		work_free(op->work, &s->journal);
	} else if (op->kind == OP_FINISH) {
		drop_message(s, op);
	}
	op_free(op);
}

void effect_refused(struct spool *s, struct op *op)
{
	assert(op->kind == OP_STORE);
	assert(!op->effective); /* its client has been told that it is stored */
	if (op->first)
		places_give_back(s, op->row); /* taken when the batch was put together */
	if (op->replaces)
		op->replaces->releasing = false;
	if (op->store->file)
		replicate_large_gone(s->replication.keeper, op->store->envelope->id);
	spool_store_free(&op->store->with);
	spool_file_discard(&op->store->file);
	answer_store(s, op->store, false);
	op_free(op);
}

void effect_withdraw(struct spool *s, struct op *op)
{
	assert(op->kind == OP_STORE && !op->effective && !op->replaces);
	struct op *finish = op_add(s, OP_FINISH, stub_of(s, op));
	assert(!finish->worked);
	finish->partner = op->partner;
	if (op->first)
		places_give_back(s, op->row);
	/* The file stays until that record is synced. */
	spool_file_leave(&op->store->file);
	answer_store(s, op->store, false);
	op_free(op);
}
