/* SPDX-License-Identifier: ISC */
#include "spool/recover.h"

#include "base/clock.h"
#include "base/ident.h"
#include "base/log.h"
#include "base/mem.h"
#include "spool/commit.h"
#include "spool/disk.h"
#include "spool/inventory.h"
#include "spool/survey.h"
#include "spool/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What the thread of recovery hands over. */
struct recovered {
	struct note note;
	struct spool *spool;
	struct replay replay;
	struct stub **stub; /* sorted; the envelope beside those that were being worked on */
	struct envelope **envelope;
	size_t n, working, damaged;
	size_t read; /* segments */
	int64_t began_ms;
	bool unsafe; /* the disk has failed: not all is known, or not all of it is stable */
};

static void report_torn(const struct segment *g, const struct region *w)
{
	char name[SEGMENT_NAME];
	log_event(LOG_LEVEL_INFO, "torn", "segment", segment_name(g->head.seq, name), "offset",
		  log_number((int64_t)w->from), "bytes", log_number((int64_t)(w->to - w->from)),
		  NULL);
}

/* Each is reported once, and is a right record that says nothing from then on. */
static void report_regions(struct recovered *r, struct segment *g, const struct survey *v)
{
	for (size_t i = 0; i < v->n; i++) {
		const struct region *w = &v->region[i];
		bool kept = true;
		if (w->damage) {
			kept = quarantine_bytes(r->spool, g, w->from, w->to, w->id);
			r->damaged++;
		} else {
			report_torn(g, w);
		}
		g->unkept |= !kept;
		if (w->followed && kept && !v->unreadable)
			segment_fill(g, w->from, w->to);
	}
}

static void report_short(struct recovered *r, const struct segment *g)
{
	char name[SEGMENT_NAME];
	r->damaged++;
	log_event(LOG_LEVEL_ERROR, "damage", "segment", segment_name(g->head.seq, name), "offset",
		  log_number((int64_t)g->size), "reason", "the segment was cut short", "bytes",
		  log_number((int64_t)(g->head.size - g->size)), NULL);
}

/* Nothing is removed, or given up, because of what a failing disk has said: the next start may read
 * more. */
static void disk_failed(struct recovered *r, const struct segment *g)
{
	char name[SEGMENT_NAME];
	r->unsafe = true;
	log_event(LOG_LEVEL_ERROR, "recover_failed", "segment", segment_name(g->head.seq, name),
		  "error", strerror(errno), NULL);
}

static void read_segment(struct recovered *r, size_t i)
{
	struct segment *g = r->replay.segment[i];
	struct survey v;
	/* A process that was killed leaves in the kernel what it had not synced. It is read like the
	 * rest, and must be as safe before anything is removed because of it. */
	if (disk_datasync(g->file->fd) != 0)
		disk_failed(r, g);
	survey_segment(&v, &r->replay, i);
	if (v.cut_short)
		report_short(r, g);
	report_regions(r, g, &v);
	g->end = g->synced = v.end;
	g->to_seal = !v.sealed && !v.unreadable && !g->unkept;
	errno = EIO;
	if (v.unreadable)
		disk_failed(r, g);
	survey_fini(&v);
	r->read++;
}

static bool large_damaged(const struct spool *s, const struct stub *stub)
{
	struct envelope *e = fetch_envelope(stub);
	bool damaged = e && verify_large_lost(s->large, stub->id, e->size);
	envelope_free(&e);
	return damaged;
}

/* What was passed over is looked at before it is delivered. */
static bool content_damaged(const struct recovered *r, const struct stub *stub)
{
	if (stub->damaged)
		return true;
	if (stub->large)
		return large_damaged(r->spool, stub);
	if (stub->seen || stub->content.segment->passed_over)
		return false;
	struct content *c = fetch_copy(stub);
	bool damaged = !c && errno == EBADMSG;
	content_unref(c);
	return damaged;
}

static void write_off(struct recovered *r, struct stub *stub, const char *why)
{
	stub->damaged = true;
	quarantine_message(r->spool, stub, why);
	r->damaged++;
}

/* Read what was being worked on. False: the disk fails. */
static bool read_working(struct recovered *r, struct stub *stub, struct envelope **envelope)
{
	*envelope = fetch_envelope(stub);
	if (!*envelope && errno != EBADMSG) {
		disk_failed(r, stub->envelope.segment);
		return false;
	}
	if (!*envelope) {
		write_off(r, stub, "its envelope can't be read");
		return true;
	}
	r->working++;
	(*envelope)->due_ms = clock_wall_ms();
	if (envelope_open(*envelope) > 0)
		log_event(LOG_LEVEL_WARNING, "recovered", "id", log_id(stub->id), "reason",
			  "was being delivered when the relay stopped; recipients without a "
			  "recorded verdict are tried again",
			  NULL);
	return true;
}

/* Count what needs the segments, now that it is known. False: it is not in the queue, or it waits on
 * disk for a start at which it can be read. */
static bool conclude(struct recovered *r, struct stub *stub, struct envelope **envelope)
{
	*envelope = NULL;
	replay_end(stub);
	if (!stub->envelope.segment)
		return false;
	stub->damaged = content_damaged(r, stub);
	if (stub->damaged && !verify_promised(stub)) {
		segment_dead(&stub->envelope);
		return false;
	}
	if (stub->damaged && r->unsafe)
		return false;
	if (stub->damaged)
		write_off(r, stub, "its content is damaged or missing");
	else if (stub->state == STUB_ACTIVE && !read_working(r, stub, envelope))
		return false;
	segment_hold(&stub->envelope, USE_ENVELOPE);
	segment_hold(&stub->content, USE_CONTENT);
	return true;
}

static void forget(struct recovered *r, struct stub *stub)
{
	struct journal none = {.emptied = false};
	work_free(stub->work, &none);
	domains_drop(&r->replay.found.domains, stub);
	stub_free(&r->replay.found.pool, stub);
}

static void conclude_all(struct recovered *r)
{
	size_t n, kept = 0;
	r->stub = found_take(&r->replay.found, &n);
	r->envelope = mem_alloc(n * sizeof(struct envelope *));
	for (size_t i = 0; i < n; i++) {
		struct stub *stub = r->stub[i];
		if (conclude(r, stub, &r->envelope[kept]))
			r->stub[kept++] = stub;
		else
			forget(r, stub);
	}
	r->n = kept;
}

static int compare_id(const void *key, const void *stub)
{
	uint64_t a = *(const uint64_t *)key, b = (*(struct stub *const *)stub)->id;
	return (a > b) - (a < b);
}

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
	if (r->n > 0 && bsearch(&id, r->stub, r->n, sizeof(struct stub *), compare_id))
		return;
	/* It may be of a message in the segment that was put aside. */
	if (r->spool->headless)
		disk_move(r->spool->large, name, r->spool->quarantine, name);
	else
		disk_unlink(r->spool->large, name);
}

/* From now on all that lies in them counts as promised: what was not must say so itself before. */
static void seal_segments(struct recovered *r)
{
	for (size_t i = 0; i < r->replay.nsegment; i++) {
		struct segment *g = r->replay.segment[i];
		if (g->to_seal && (g->ndead == 0 || segment_mark(g)))
			segment_seal(g, g->end);
	}
}

/* The crash came between its store and the removal of what it was stored from. */
static void remove_taken(void *owner, const char *name)
{
	struct recovered *r = owner;
	uint64_t id;
	if (ident_parse(name, &id) && r->n > 0 &&
	    bsearch(&id, r->stub, r->n, sizeof(struct stub *), compare_id))
		disk_unlink(r->spool->taken, name);
}

static bool run(struct recovered *r)
{
	struct spool *s = r->spool;
	for (size_t i = 0; i < r->replay.nsegment && !atomic_load(&s->interrupt); i++)
		if (!r->replay.segment[i]->passed_over)
			read_segment(r, i);
	if (atomic_load(&s->interrupt))
		return false;
	ident_floor(r->replay.newest);
	conclude_all(r);
	seal_segments(r);
	if (!r->unsafe)
		disk_each(s->large, remove_orphan, r);
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
	pthread_setname_np(pthread_self(), "recover");
	if (run(r))
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
	struct recovered *r = recovered_new(s);
	int error = pthread_create(&s->recovery, NULL, recover, r);
	s->recovery_runs = error == 0;
	s->recovered = error != 0; /* nothing more will come of it */
	if (error != 0) {
		log_event(LOG_LEVEL_ERROR, "recover_failed", "error", strerror(error), NULL);
		recovered_free(r);
	}
}

void recover_here(struct spool *s)
{
	struct recovered *r = recovered_new(s);
	if (run(r))
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
static void resume(struct spool *s, struct stub *stub, struct envelope *e)
{
	stub->releasing = true;
	if (envelope_open(e) == 0) {
		envelope_free(&e);
		commit_finish(s, stub);
		return;
	}
	commit_add(s, OP_KEEP, stub)->envelope = e;
}

void recover_merge(struct spool *s, struct recovered *r)
{
	stub_pool_join(&s->stubs, &r->replay.found.pool);
	domains_move(&s->domains, &r->replay.found.domains, r->stub, r->n);
	catalog_merge(&s->catalog, r->stub, r->n);
	for (size_t i = 0; i < r->n; i++) {
		struct stub *stub = r->stub[i];
		enum stub_state state = (enum stub_state)stub->state;
		stub->state = STUB_GONE;
		stub_enter(s, stub, state);
		if (stub->damaged)
			commit_finish(s, stub);
		else if (r->envelope[i])
			resume(s, stub, r->envelope[i]);
	}
	journal_join(&s->journal);
	s->journal.changed = true;
	s->journal.stuck |= r->unsafe;
	s->recovered = true;
	log_event(LOG_LEVEL_INFO, "recover", "messages", log_number((int64_t)r->n), "working",
		  log_number((int64_t)r->working), "segments",
		  log_text("%zu/%zu", r->read, r->replay.nsegment), "seconds",
		  log_seconds(clock_steady_ms() - r->began_ms), "damaged",
		  log_number((int64_t)r->damaged), NULL);
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
	found_fini(&r->replay.found);
	free(r);
}
