/* SPDX-License-Identifier: ISC */
#include "spool/spool.h"

#include "base/clock.h"
#include "base/conf_note.h"
#include "base/fence.h"
#include "base/mem.h"
#include "spool/disk.h"
#include "spool/inbox.h"
#include "spool/large_sync.h"
#include "spool/layout.h"
#include "spool/payload.h"
#include "spool/recover.h"
#include "spool/turn.h"
#include "spool/copy_wait.h"
#include "spool/op.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* On a full disk there may be no segment to begin with: each commit tries to make one, and may use the reserve. */
static bool begin_journal(struct spool *s, struct buf *error)
{
	journal_prepare(&s->journal, clock_steady_ms());
	room_measure(s);
	if (journal_fresh(&s->journal) || disk_means_full(errno))
		return true;
	buf_printf(error, "%s/log: %s", s->conf->spool, strerror(errno));
	return false;
}

int64_t spool_turn_began_ms(const struct spool *s)
{
	return atomic_load(&s->turn_began_ms);
}

static bool format_is_known(int top, const char *folder, struct buf *why)
{
	int version, fd = disk_open(top, "format", O_RDONLY);
	bool known = fd < 0 || layout_format(fd, folder, &version, why);
	if (fd >= 0)
		disk_close(fd);
	return known;
}

bool spool_would_open(const char *folder, struct buf *why)
{
	int top = disk_open_top(folder);
	if (top < 0 && errno == ENOENT)
		return true; /* a start makes it */
	int lock = top >= 0 ? disk_open(top, "lock", O_RDWR | O_CREAT) : -1;
	if (lock < 0)
		buf_printf(why, "%s/lock: %s", folder, strerror(errno));
	else
		disk_close(lock);
	bool opens = lock >= 0 && format_is_known(top, folder, why);
	if (top >= 0)
		disk_close(top);
	return opens;
}

bool spool_is_taken(const char *folder)
{
	int top = disk_open_top(folder);
	int lock = top >= 0 ? disk_open(top, "lock", O_RDWR) : -1;
	bool taken = lock >= 0 && disk_lock(lock) != 0 && errno == EWOULDBLOCK;
	if (lock >= 0)
		disk_close(lock);
	if (top >= 0)
		disk_close(top);
	return taken;
}

struct spool *spool_new(struct conf *conf, struct loop *qmgr, struct buf *error)
{
	struct spool *s = mem_zalloc(sizeof *s);
	s->conf = conf_ref(conf);
	s->qmgr = qmgr;
	s->folder = s->lock = s->large = s->quarantine = s->taken = -1;
	s->closing = true;
	journal_init(&s->journal, (uint64_t)conf->segment_size);
	domains_init(&s->domains);
	parked_init(&s->parked);
	list_init(&s->todo);
	list_init(&s->written);
	list_init(&s->replication.awaiting);
	note_queue_init(&s->replication.orders);
	note_queue_init(&s->commands);
	large_sync_init(s);
	s->journal.removers = s->syncers;
	s->loop = loop_new("spool", inbox_receive, turn_run, s);
	timer_init(&s->tick, turn_gathered, s);
	fine_timer_init(&s->gathered, s->loop, turn_gathered, s);
	gather_init(&s->gather, clock_steady_us());
	if (!layout_open(s, error) || !layout_segments(s, error) || !begin_journal(s, error)) {
		spool_free(&s);
		return NULL;
	}
	s->closing = false;
	atomic_init(&s->accepting, true);
	atomic_init(&s->uncopied, false);
	atomic_init(&s->turn_began_ms, 0);
	inflow_init(&s->incoming);
	return s;
}

void spool_replicate(struct spool *s, struct loop *keeper, bool waits, bool degrade)
{
	replicate_to(s, keeper, waits, degrade);
}

void spool_start(struct spool *s)
{
	assert(!s->loop->running && !s->recovered);
	recover_start(s);
	large_sync_start(s);
	loop_start(s->loop);
}

static void wait_for_turn(struct spool *s, bool settles)
{
	recover_wait(s);
	struct spool_stop stop = {.note.type = SPOOL_NOTE_STOP, .settles = settles};
	sem_init(&stop.done, 0, 0);
	loop_post(s->loop, &stop.note);
	while (sem_wait(&stop.done) != 0)
		;
	sem_destroy(&stop.done);
}

void spool_settle(struct spool *s)
{
	assert(s->loop->running);
	wait_for_turn(s, true);
}

void spool_stop(struct spool *s)
{
	if (!s->loop->running)
		return;
	wait_for_turn(s, false);
	loop_stop(s->loop);
	large_sync_stop(s);
}

/* Memory of ops that were never settled: the disk has failed to the end. */
static void free_ops(struct spool *s, struct list *ops)
{
	list_each (link, tmp, ops) {
		struct op *op = list_entry(link, struct op, link);
		list_remove(link);
		if (op->kind == OP_FINISH && op->worked && !op->effective)
			op->work = op->stub->work;
		if (op->kind != OP_START || !op->effective)
			work_free(op->work, &s->journal);
		spool_store_free(&op->store);
		if (op->delivered)
			delivered_free(op->delivered);
		op_free(op);
	}
}

void spool_free(struct spool **sp)
{
	struct spool *s = *sp;
	if (!s)
		return;
	s->closing = true;
	recover_wait(s);
	large_sync_fini(s);
	fine_timer_fini(&s->gathered);
	loop_free(&s->loop);
	copy_wait_drop(s);
	free_ops(s, &s->todo);
	free_ops(s, &s->written);
	operator_drop(s);
	struct catalog_at at = catalog_from(&s->catalog, 0);
	for (struct stub *stub; (stub = catalog_step(&s->catalog, &at));)
		if (stub->state == STUB_ACTIVE && !stub->unsettled)
			work_free(stub->work, &s->journal);
	catalog_fini(&s->catalog);
	stub_pool_fini(&s->stubs);
	domains_fini(&s->domains);
	given_back_fini(&s->given_back);
	compact_fini(&s->compact);
	inflow_fini(&s->incoming);
	due_fini(&s->deferred);
	parked_fini(&s->parked);
	journal_fini(&s->journal);
	layout_close(s);
	free(s->headless);
	conf_unref(s->conf);
	free(s);
	*sp = NULL;
}

struct loop *spool_loop(struct spool *s)
{
	return s->loop;
}

void spool_post(struct spool *s, struct note *note)
{
	if (note->type == SPOOL_STORE)
		mailbox_post_awaited(&s->loop->mailbox, note);
	else if (note->type == SPOOL_DELIVERED || note->type == SPOOL_RELEASE)
		mailbox_post_idly(&s->loop->mailbox, note);
	else
		mailbox_post(&s->loop->mailbox, note);
}

void spool_reload(struct spool *s, struct conf *conf)
{
	conf_note_post(s->loop, SPOOL_CONF, conf);
}

void spool_expect(struct spool *s, int n)
{
	int before = atomic_fetch_add_explicit(&s->expected, n, memory_order_relaxed);
	assert(before + n >= 0);
}

void spool_drain(struct spool *s)
{
	atomic_store(&s->draining, true);
}

bool spool_uncopied(const struct spool *s)
{
	return atomic_load_explicit(&s->uncopied, memory_order_relaxed);
}

bool spool_accepting(const struct spool *s)
{
	return atomic_load_explicit(&s->accepting, memory_order_relaxed) && fence_open();
}

bool spool_behind(const struct spool *s, const char *flow)
{
	return inflow_behind(&s->incoming, flow);
}
