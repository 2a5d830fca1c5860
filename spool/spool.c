/* SPDX-License-Identifier: ISC */
#include "spool/spool.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "spool/commit.h"
#include "spool/disk.h"
#include "spool/effect.h"
#include "spool/layout.h"
#include "spool/payload.h"
#include "spool/recover.h"
#include "spool/spool_file.h"

#include <assert.h>
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_MS = 1000 };

struct new_conf {
	struct note note;
	struct conf *conf;
};

struct stop {
	struct note note;
	sem_t done;
};

static struct stub *active(struct spool *s, uint64_t id)
{
	struct stub *stub = catalog_find(&s->catalog, id);
	assert(stub && stub->state == STUB_ACTIVE && !stub->releasing);
	return stub;
}

static void release(struct spool *s, struct spool_release *r)
{
	struct stub *stub = active(s, r->id);
	s->credit++;
	stub->releasing = true;
	if (r->envelope && stub->wish != WISH_DELETE) {
		operator_fulfil((enum stub_wish)stub->wish, r->envelope);
		stub->wish = WISH_NONE;
		envelope_remember(r->envelope);
		commit_add(s, OP_KEEP, stub)->envelope = r->envelope;
		r->envelope = NULL;
	} else {
		commit_finish(s, stub);
	}
	envelope_free(&r->envelope);
	free(r);
}

static void add_command(struct spool *s, struct note *note)
{
	*s->commands_end = note;
	s->commands_end = &note->next;
}

static void drop_store(struct spool_store *store)
{
	envelope_free(&store->envelope);
	content_unref(store->content);
	spool_file_discard(&store->file);
	log_held_free(&store->log);
	free(store);
}

static void drop_release(struct spool_release *r)
{
	envelope_free(&r->envelope);
	free(r);
}

static void drop(struct note *note)
{
	struct spool_command *c = (struct spool_command *)note;
	switch (note->type) {
	case SPOOL_STORE:
		drop_store((struct spool_store *)note);
		break;
	case SPOOL_DELIVERED:
		delivered_free((struct spool_delivered *)note);
		break;
	case SPOOL_RELEASE:
		drop_release((struct spool_release *)note);
		break;
	case SPOOL_COMMAND:
		spool_command_free(&c);
		break;
	case SPOOL_CONF:
		conf_unref(((struct new_conf *)note)->conf);
		free(note);
		break;
	case SPOOL_NOTE_RECOVERED:
		recovered_free((struct recovered *)note);
		break;
	default:
		free(note);
	}
}

static void take_conf(struct spool *s, struct new_conf *n)
{
	conf_unref(s->conf);
	s->conf = n->conf;
	free(n);
}

static void add_store(struct spool *s, struct spool_store *store)
{
	bool known = store->taken && catalog_find(&s->catalog, store->envelope->id);
	struct op *op = commit_add(s, OP_STORE, NULL);
	op->store = store;
	s->stores++;
	if (!known)
		return;
	/* It is in the queue, and only its file could not be removed. */
	list_remove(&op->link);
	effect_refused(s, op);
}

static void receive(void *owner, struct note *note)
{
	struct spool *s = owner;
	if (s->closing) {
		drop(note);
		return;
	}
	switch (note->type) {
	case SPOOL_STORE:
		add_store(s, (struct spool_store *)note);
		break;
	case SPOOL_DELIVERED: {
		struct spool_delivered *d = (struct spool_delivered *)note;
		commit_add(s, OP_DELIVERED, active(s, d->id))->delivered = d;
		break;
	}
	case SPOOL_RELEASE:
		release(s, (struct spool_release *)note);
		break;
	case SPOOL_CREDIT:
		s->credit += ((struct spool_credit *)note)->n;
		free(note);
		break;
	case SPOOL_COMMAND:
		add_command(s, note);
		break;
	case SPOOL_CONF:
		take_conf(s, (struct new_conf *)note);
		break;
	case SPOOL_NOTE_RECOVERED:
		recover_merge(s, (struct recovered *)note);
		break;
	case SPOOL_NOTE_STOP:
		s->stop = note;
		break;
	default:
		assert(0 && "a note that is not for the spool");
	}
}

static void look_at_free_space(struct spool *s)
{
	if (s->looked_ms && s->loop->now_ms - s->looked_ms < LOOK_MS)
		return;
	s->looked_ms = s->loop->now_ms;
	int64_t room = disk_free_bytes(s->folder);
	s->low = room >= 0 && room < s->conf->queue_minfree;
}

static void tell_accepting(struct spool *s)
{
	/* From the first message that qmgr has no credit for until all of them have gone to it. */
	if (s->incoming.n == 0)
		atomic_store(&s->behind, false);
	else if (s->credit <= 0)
		atomic_store(&s->behind, true);
	bool full = s->low || journal_on_reserve(&s->journal);
	atomic_store(&s->accepting, !s->failing && !full);
	if (full == s->full)
		return;
	s->full = full;
	metrics_add(METRIC_disk_full, full ? 1 : -1);
	log_event(full ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, full ? "disk_full" : "disk_room", "free",
		  log_number(disk_free_bytes(s->folder)), "queue_minfree",
		  log_number(s->conf->queue_minfree), NULL);
}

/* Milliseconds that the commit of what there is to do should wait for company; 0: none. Nobody
 * waits for a delivery's record; clients wait only when there are many of them. A command is
 * answered from what was posted before it, so that must be written first. */
static int64_t gather_ms(const struct spool *s)
{
	int64_t since_ms = s->loop->now_ms - s->committed_ms;
	int64_t wait_ms = SPOOL_GATHER_MS;
	int expected = atomic_load_explicit(&s->expected, memory_order_relaxed);
	if (list_empty(&s->todo) || s->commands || s->stop || s->failing || s->full)
		return 0;
	if (s->stores > 0 && expected < SPOOL_GATHER_TRANSACTIONS)
		return 0;
	if (s->stores > 0 && s->stores >= expected)
		wait_ms = SPOOL_GATHER_LEAST_MS;
	return wait_ms > since_ms ? wait_ms - since_ms : 0;
}

static void commit_some(struct spool *s)
{
	if (gather_ms(s) > 0)
		return;
	if (!list_empty(&s->todo))
		s->committed_ms = s->loop->now_ms;
	s->stores = 0;
	commit_run(s);
}

static void set_timer(struct spool *s, bool at_once)
{
	int64_t delay_ms = s->conf->queue.queue_run_delay; /* the wall clock may be set */
	int64_t due_ms = runner_next_ms(s);
	if (due_ms != INT64_MAX && due_ms - clock_wall_ms() < delay_ms)
		delay_ms = due_ms - clock_wall_ms();
	if ((!list_empty(&s->written) || s->failing || s->full || s->journal.emptied) &&
	    delay_ms > LOOK_MS)
		delay_ms = LOOK_MS;
	if (compact_delay_ms(s) >= 0 && delay_ms > compact_delay_ms(s))
		delay_ms = compact_delay_ms(s);
	if ((s->more || !list_empty(&s->todo)) && !s->failing)
		delay_ms = s->more ? 0 : gather_ms(s);
	if (s->recovered && s->commands)
		delay_ms = 0; /* one is not done yet */
	if (s->failing && delay_ms < SPOOL_RETRY_MS / 10)
		delay_ms = SPOOL_RETRY_MS / 10;
	loop_timer_in(s->loop, &s->tick, delay_ms > 0 && !at_once ? delay_ms : 0);
}

/* What has been synced is known to be whole after a crash only where the log says so. The next commit
 * says it of the one before; of the last for now, it is said when nothing has come for a while. */
static void say_synced(struct spool *s)
{
	if (s->failing || !list_empty(&s->todo) || !list_empty(&s->written) ||
	    s->loop->now_ms - s->committed_ms < SPOOL_LAZY_SYNC_MS)
		return;
	journal_say_synced(&s->journal);
}

static void stop_clean(struct spool *s)
{
	if (commit_now(s) && journal_say_synced(&s->journal))
		journal_sync(&s->journal);
}

static void turn(void *owner)
{
	struct spool *s = owner;
	if (s->closing)
		return;
	look_at_free_space(s);
	tell_accepting(s); /* before the answers that follow from it */
	if (!s->failing)
		runner_run(s);
	commit_some(s);
	/* The operator asks for the whole queue, not for what is known of it so far. */
	bool orders = s->recovered && operator_run(s);
	if (s->stop)
		stop_clean(s);
	journal_prepare(&s->journal, s->loop->now_ms);
	compact_run(s);
	say_synced(s);
	journal_collect(&s->journal, s->loop->now_ms);
	spool_shrink(s);
	tell_accepting(s);
	set_timer(s, orders);
	if (s->stop) {
		s->closing = true;
		timer_stop(&s->loop->timers, &s->tick);
		sem_post(&((struct stop *)s->stop)->done);
	}
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
	list_init(&s->todo);
	list_init(&s->written);
	s->commands_end = &s->commands;
	s->loop = loop_new("spool", receive, turn, s);
	timer_init(&s->tick, turn, s);
	bool ok = layout_open(s, error) && layout_segments(s, error);
	if (ok)
		journal_prepare(&s->journal, clock_steady_ms());
	if (ok && !journal_fresh(&s->journal)) {
		buf_printf(error, "%s/log: %s", conf->spool, strerror(errno));
		ok = false;
	}
	if (!ok) {
		spool_free(&s);
		return NULL;
	}
	s->closing = false;
	atomic_init(&s->accepting, true);
	atomic_init(&s->behind, false);
	return s;
}

void spool_start(struct spool *s)
{
	recover_start(s);
	loop_start(s->loop);
}

void spool_stop(struct spool *s)
{
	if (!s->loop->running)
		return;
	recover_wait(s);
	struct stop stop = {.note.type = SPOOL_NOTE_STOP};
	sem_init(&stop.done, 0, 0);
	loop_post(s->loop, &stop.note);
	while (sem_wait(&stop.done) != 0)
		;
	sem_destroy(&stop.done);
	loop_stop(s->loop);
}

/* What hangs on ops that were never settled: the disk has failed to the end. */
static void free_ops(struct spool *s, struct list *ops)
{
	list_each (link, tmp, ops) {
		struct op *op = list_entry(link, struct op, link);
		if (op->kind == OP_FINISH && op->worked && !op->effective)
			op->work = op->stub->work;
		if (op->kind != OP_START || !op->effective)
			work_free(op->work, &s->journal);
		if (op->store)
			drop_store(op->store);
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
	loop_free(&s->loop);
	free_ops(s, &s->todo);
	free_ops(s, &s->written);
	operator_drop(s);
	for (size_t i = 0; i < s->catalog.n; i++) {
		struct stub *stub = s->catalog.row[i].stub;
		if (stub && stub->state == STUB_ACTIVE && !stub->unsettled)
			work_free(stub->work, &s->journal);
	}
	catalog_fini(&s->catalog);
	stub_pool_fini(&s->stubs);
	domains_fini(&s->domains);
	compact_fini(&s->compact);
	due_fini(&s->incoming);
	due_fini(&s->deferred);
	journal_fini(&s->journal);
	layout_close(s);
	conf_unref(s->conf);
	free(s);
	*sp = NULL;
}

struct loop *spool_loop(struct spool *s)
{
	return s->loop;
}

void spool_reload(struct spool *s, struct conf *conf)
{
	struct new_conf *n = mem_zalloc(sizeof *n);
	n->note.type = SPOOL_CONF;
	n->conf = conf_ref(conf);
	loop_post(s->loop, &n->note);
}

void spool_expect(struct spool *s, int n)
{
	atomic_fetch_add_explicit(&s->expected, n, memory_order_relaxed);
}

void spool_drain(struct spool *s)
{
	atomic_store(&s->draining, true);
}

bool spool_accepting(const struct spool *s)
{
	return atomic_load_explicit(&s->accepting, memory_order_relaxed);
}

bool spool_behind(const struct spool *s)
{
	return atomic_load_explicit(&s->behind, memory_order_relaxed);
}
