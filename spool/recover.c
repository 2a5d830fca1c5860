/* SPDX-License-Identifier: ISC */
#include "spool/recover.h"

#include "base/clock.h"
#include "base/condition.h"
#include "base/ident.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "spool/adoption.h"
#include "spool/disk.h"
#include "spool/inventory.h"
#include "spool/overdue.h"
#include "spool/recovered.h"
#include "spool/op.h"
#include "spool/checkpoint.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void remove_orphan(void *owner, const char *name)
{
	struct recovered *r = owner;
	uint64_t id;
	if (!inventory_large(name, &id)) {
		quarantine_file(r->spool, r->spool->large, name, "not a file of this queue");
		return;
	}
	if (id > r->spool->newest)
		return; /* of a message that is just coming in */
	if (found_among(r->stub, r->n, id))
		return;
	if (!r->spool->keeps_orphans)
		disk_unlink(r->spool->large, name);
	else if (!quarantine_file(r->spool, r->spool->large, name, "it belongs to no message"))
		r->orphans_left = true;
}

/* The next start that finds none of these segments removes what is left of their messages: those are safe first. */
static void put_headless_aside(struct spool *s)
{
	char name[SEGMENT_NAME];
	if (s->nheadless == 0 || disk_sync(s->quarantine) != 0 || disk_sync(s->large) != 0)
		return;
	for (size_t i = 0; i < s->nheadless; i++)
		quarantine_file(s, s->journal.folder, segment_name(s->headless[i], name),
				"its head is damaged, and the copy of it; nothing in it is read");
}

/* A flag that a killed process has set may not be on the disk. An older program has said so in the checkpoint only. */
static void make_spent_stable(struct segment *g)
{
	if (!g->says_spent || disk_datasync(g->file->fd) != 0)
		segment_spend(g);
}

/* From now on all that lies in it counts as promised: what was not must say so itself before, by a filler on
 * stable storage. */
static void make_end(struct segment *g)
{
	if ((g->ndead == 0 || segment_mark(g)) && disk_datasync(g->file->fd) == 0)
		segment_seal(g, g->end);
}

static void seal_segments(struct recovered *r)
{
	for (size_t i = 0; i < r->replay.nsegment; i++) {
		struct segment *g = r->replay.segment[i];
		if (g->to_seal)
			make_end(g);
		if (g->passed_over && !g->gone)
			make_spent_stable(g);
	}
}

/* The crash came between its store and the removal of what it was stored from. */
static void remove_taken(void *owner, const char *name)
{
	struct recovered *r = owner;
	uint64_t id;
	if (ident_parse(name, &id) && found_among(r->stub, r->n, id))
		disk_unlink(r->spool->taken, name);
}

static bool run_recovery(struct recovered *r)
{
	struct spool *s = r->spool;
	for (size_t i = 0; i < r->replay.nsegment && !atomic_load(&s->interrupt); i++)
		if (!r->replay.segment[i]->passed_over)
			recovered_read(r, i);
	if (atomic_load(&s->interrupt))
		return false;
	ident_floor(r->replay.newest);
	if (!adoption_read(&r->adoption, s->folder))
		log_event(LOG_LEVEL_ERROR, "adopting_unread", "error", strerror(errno), NULL);
	recovered_conclude(r);
	/* On a disk that fails, what makes a record dead may not stay. */
	if (!r->unsafe) {
		seal_segments(r);
		r->orphans_left |= disk_each(s->large, remove_orphan, r) != 0;
		if (!r->orphans_left)
			put_headless_aside(s);
	}
	disk_each(s->taken, remove_taken, r);
	if (disk_sync(s->taken) != 0)
		log_event(LOG_LEVEL_ERROR, "taken_left", "error", strerror(errno), NULL);
	/* The next start will not know who was being delivered at this one: that must be written
	 * before the queue forgets it. */
	log_drain();
	return true;
}

static void *recover(void *arg)
{
	struct recovered *r = arg;
	if (run_recovery(r))
		loop_post(r->spool->loop, &r->note);
	else
		recovered_free(r);
	return NULL;
}

static struct recovered *recovered_new(struct spool *s)
{
	struct recovered *r = mem_zalloc(sizeof *r);
	struct replay *p = &r->replay;
	r->note.type = SPOOL_NOTE_RECOVERED;
	r->spool = s;
	r->began_ms = clock_steady_ms();
	for (struct list *l = s->journal.older.next; l != &s->journal.older; l = l->next) {
		p->segment = mem_realloc(p->segment, (p->nsegment + 1) * sizeof *p->segment);
		p->segment[p->nsegment++] = list_entry(l, struct segment, link);
	}
	return r;
}

void recover_start(struct spool *s)
{
	assert(!s->recovery_runs && !s->recovered);
	struct recovered *r = recovered_new(s);
	int error = thread_start(&s->recovery, "recover", recover, r);
	s->recovery_runs = error == 0;
	s->recovered = error != 0; /* nothing more will come of it */
	if (error != 0) {
		log_event(LOG_LEVEL_ERROR, "recover_failed", "error", strerror(error), NULL);
		recovered_free(r);
	}
}

void recover_here(struct spool *s)
{
	assert(!s->recovered && !s->recovery_runs);
	struct recovered *r = recovered_new(s);
	if (run_recovery(r))
		recover_merge(s, r);
	else
		recovered_free(r);
}

void recover_wait(struct spool *s)
{
	if (!s->recovery_runs)
		return;
	atomic_store(&s->interrupt, true);
	pthread_join(s->recovery, NULL);
	s->recovery_runs = false;
}

/* One that was being worked on goes back to the queue with what is known of it, due now. */
static void resume_message(struct spool *s, struct stub *stub, struct envelope *e)
{
	stub->releasing = true;
	if (envelope_open(e) == 0) {
		envelope_free(&e);
		op_finish(s, stub);
		return;
	}
	op_add(s, OP_KEEP, stub)->envelope = e;
}

/* The node that it was taken from has it still, from where it comes once more, under the same id. */
static void end_damaged(struct spool *s, struct stub *stub)
{
	if (stub->state == STUB_ADOPTED)
		op_give_back(s, stub);
	else
		op_finish(s, stub);
}

/* One of another node that nobody has worked on, and nobody may yet. */
static enum stub_state state_of(const struct recovered *r, size_t i)
{
	struct stub *stub = r->stub[i];
	if (r->envelope[i] || !adoption_has(&r->adoption, stub->id))
		return (enum stub_state)stub->state;
	stub->held = stub->state == STUB_HELD;
	return STUB_ADOPTED;
}

/* To the keeper of the copy. */
static void tell_known(struct spool *s, const struct recovered *r)
{
	struct buf checkpoint = {0};
	checkpoint_text(s->journal.folder, &checkpoint);
	replicate_known(s, r->stub, r->n, &checkpoint);
	buf_fini(&checkpoint);
}

void recover_merge(struct spool *s, struct recovered *r)
{
	assert(loop_is_ours(s->loop));
	assert(!s->recovered);
	assert(r->spool == s);
	stub_pool_join(&s->stubs, &r->replay.found.pool);
	domains_move(&s->domains, &r->replay.found.domains, r->stub, r->n);
	catalog_merge(&s->catalog, r->stub, r->n);
	for (size_t i = 0; i < r->n; i++) {
		struct stub *stub = r->stub[i];
		enum stub_state state = state_of(r, i);
		stub->state = STUB_GONE;
		stub_enter(s, stub, state);
		if (stub->damaged)
			end_damaged(s, stub);
		else if (r->envelope[i])
			resume_message(s, stub, r->envelope[i]);
	}
	tell_known(s, r);
	given_back_join(&s->given_back, &r->given_back);
	journal_join(&s->journal);
	s->journal.changed = true;
	s->journal.stuck |= r->unsafe;
	condition_turn(CONDITION_queue_incomplete, r->unsafe, "", NULL);
	s->large_bytes += r->large_bytes;
	s->recovered = true;
	log_event(LOG_LEVEL_INFO, "recover", "messages", log_number((int64_t)r->n), "working",
		  log_number((int64_t)r->working), "segments",
		  log_text("%zu/%zu", r->read, r->replay.nsegment), "seconds",
		  log_seconds(clock_steady_ms() - r->began_ms), "damaged",
		  log_number((int64_t)r->damaged), NULL);
	overdue_recall(s);
	if (s->released)
		adoption_release(s);
	free(r->stub);
	free(r->envelope);
	r->stub = NULL;
	r->envelope = NULL;
	r->n = 0;
	recovered_free(r);
}

void recovered_free(struct recovered *r)
{
	struct journal none = {.emptied = false};
	size_t n = r->n;
	if (!r->stub)
		r->stub = found_take(&r->replay.found, &n);
	for (size_t i = 0; i < n; i++) {
		work_free(r->stub[i]->work, &none);
		if (r->envelope)
			envelope_free(&r->envelope[i]);
	}
	free(r->stub);
	free(r->envelope);
	free(r->replay.segment);
	adoption_fini(&r->adoption);
	given_back_fini(&r->given_back);
	replay_fini(&r->replay);
	free(r);
}
