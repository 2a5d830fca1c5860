/* SPDX-License-Identifier: ISC */
#include "spool/commit.h"

#include "base/clock.h"
#include "base/fence.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/loop_turn.h"
#include "spool/effect.h"
#include "spool/copy_wait.h"
#include "spool/op.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Whether qmgr or a client waits for this to be on stable storage. A start is, before the delivery begins: else a power
 * failure behind that would leave no trace of it. Compaction asks for a sync itself (commit_now()). */
static bool needs_sync(const struct op *op)
{
	return op->kind == OP_STORE || op->kind == OP_START || op->kind == OP_DELIVERED ||
	       (op->kind == OP_FINISH && op->delivers);
}

static bool write_all(struct spool *s, bool *sync)
{
	struct buf payload;
	bool ok = journal_renew(&s->journal);
	buf_init(&payload);
	list_each (link, tmp, &s->todo) {
		struct op *op = op_of(link);
		if (!ok)
			break;
		*sync |= needs_sync(op) || copy_wait_must(s, op);
		ok = commit_records(s, op, &payload);
	}
	buf_fini(&payload);
	return ok && journal_write(&s->journal);
}

static bool lazy_sync_due(const struct spool *s)
{
	return !list_empty(&s->written) &&
	       (s->unsynced_bytes >= SPOOL_LAZY_SYNC_BYTES ||
		s->loop->now_ms - s->unsynced_since_ms >= SPOOL_LAZY_SYNC_MS);
}

static void settle_written(struct spool *s)
{
	list_each (link, tmp, &s->written) {
		list_remove(link);
		effect_settled(s, op_of(link));
	}
	assert(list_empty(&s->written));
	s->unsynced_bytes = 0;
	s->compact.stale = true;
}

static void count_commit(struct spool *s, int64_t began_us)
{
	int64_t stored = 0, took_us = clock_steady_us() - began_us;
	list_each (link, tmp, &s->todo)
		stored += op_of(link)->kind == OP_STORE;
	gather_synced(&s->gather, began_us + took_us, took_us);
	metrics_observe(HISTOGRAM_commit_seconds, took_us);
	metrics_observe(HISTOGRAM_commit_messages, stored);
	if (loop_turn_is_slow(took_us))
		log_event(LOG_LEVEL_WARNING, "slow", "thread", s->loop->name, "what", "commit",
			  "seconds", log_seconds(took_us / 1000), "messages", log_number(stored),
			  "bytes", log_number(s->unsynced_bytes), NULL);
}

/* One attempt at all there is to do. */
static bool attempt_commit(struct spool *s, bool sync)
{
	int64_t began_us = clock_steady_us();
	if (!write_all(s, &sync))
		return false;
	/* Records of a closed segment must be settled before anybody thinks it needless. */
	sync |= lazy_sync_due(s) || s->journal.closed;
	if (sync && !journal_sync(&s->journal))
		return false;
	if (sync) {
		count_commit(s, began_us);
		settle_written(s);
	}
	struct list done;
	list_init(&done);
	while (!list_empty(&s->todo))
		list_move(&done, list_first(&s->todo));
	/* Effects may add ops of the next batch. */
	list_each (link, tmp, &done) {
		struct op *op = op_of(link);
		list_remove(link);
		if (copy_wait_must(s, op)) {
			copy_wait_add(s, op);
			continue;
		}
		/* While it was synced another node may have become the one to answer for it. */
		if (op->kind == OP_STORE && op->store->promised && !fence_open()) {
			effect_withdraw(s, op);
			continue;
		}
		assert(sync || (op->kind != OP_COPY && op->kind != OP_MOVE));
		if (list_empty(&s->written))
			s->unsynced_since_ms = s->loop->now_ms;
		list_append(&s->written, link);
		effect_written(s, op);
	}
	copy_wait_ask(s);
	effect_sync_taken(s);
	if (sync)
		settle_written(s);
	return true;
}

static void refuse_stores(struct spool *s, bool all)
{
	list_each (link, tmp, &s->todo) {
		const struct op *op = op_of(link);
		if (op->kind != OP_STORE || (!all && !op->store->promised))
			continue;
		list_remove(link);
		effect_refused(s, op_of(link));
	}
}

/* Moves make room, or try to: if that fails, nothing is lost by not moving. */
static void forget_moves(struct spool *s)
{
	list_each (link, tmp, &s->todo) {
		if (op_of(link)->kind != OP_MOVE && op_of(link)->kind != OP_COPY)
			continue;
		list_remove(link);
		op_free(op_of(link));
	}
}

/* Ops that were written since the last sync are to be written once more, in the same order. */
static void put_back(struct spool *s)
{
	for (struct list *link; (link = s->written.prev) != &s->written;) {
		list_remove(link);
		list_prepend(&s->todo, link);
	}
	s->unsynced_bytes = 0;
}

static void set_failing(struct spool *s, int error)
{
	if (s->room.commits_failed && !error)
		log_event(LOG_LEVEL_INFO, "disk_works", NULL);
	s->room.commits_failed = error;
}

/* Until it works again an attempt a second fails, each for the same reason. */
static void say_failed(const struct spool *s, int error)
{
	if (error != s->room.commits_failed)
		log_event(LOG_LEVEL_ERROR, "commit_failed", "error", strerror(error), NULL);
}

static bool nothing_to_do(const struct spool *s, bool sync)
{
	return list_empty(&s->todo) && s->journal.renew_above == UINT64_MAX &&
	       (list_empty(&s->written) || (!sync && !lazy_sync_due(s)));
}

static void commit_batch(struct spool *s, bool sync)
{
	int error = 0;
	assert(!s->closing); /* the log gets nothing more */
	if (!room_for_mail(s) || !fence_open())
		refuse_stores(s, true);
	else if (copy_wait_refuses(s))
		refuse_stores(s, false);
	if (s->room.commits_failed ? s->loop->now_ms < s->retry_ms : nothing_to_do(s, sync))
		return;
	s->journal.reserve_allowed = s->room.commits_failed; /* nothing new is to be stored then */
	for (int tries = 2; tries > 0; tries--) {
		if (journal_fresh(&s->journal) && attempt_commit(s, sync)) {
			set_failing(s, 0);
			return;
		}
		error = errno;
		say_failed(s, error);
		journal_abandon(&s->journal);
		refuse_stores(s, true);
		put_back(s);
		forget_moves(s);
		s->journal.reserve_allowed = true;
	}
	set_failing(s, error);
	s->retry_ms = s->loop->now_ms + SPOOL_RETRY_MS;
}

void commit_run(struct spool *s)
{
	assert(loop_is_ours(s->loop));
	commit_batch(s, false);
}

bool commit_now(struct spool *s)
{
	assert(loop_is_ours(s->loop));
	commit_batch(s, true);
	return !s->room.commits_failed && list_empty(&s->todo) && list_empty(&s->written);
}
