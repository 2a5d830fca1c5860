/* SPDX-License-Identifier: ISC */
#include "spool/replicate.h"

#include "base/mem.h"
#include "spool/bytes.h"
#include "spool/effect.h"

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

static void tell_keeper(struct loop *keeper, enum replicate_note type, uint64_t of, uint64_t end)
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
	assert(keeper && !p->keeper && !s->loop->running);
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
	tell_keeper(keeper, REPLICATE_WRITTEN, g->head.seq, g->end);
}

/* The keeper has the record from here: a disk that fails may have taken none. */
void replicate_cut(struct loop *keeper, const struct segment *g)
{
	if (!keeper)
		return;
	struct replicate *r = note_new(REPLICATE_CUT, g->head.seq, RECORD_HEAD);
	r->end = g->end;
	record_put(r->bytes, g->seed, &(struct record){.type = RECORD_END});
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
	tell_keeper(keeper, REPLICATE_GONE, seq, 0);
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
	tell_keeper(keeper, REPLICATE_LARGE_GONE, id, 0);
}

void replicate_known(struct spool *s, struct stub *const *found, size_t n,
		     const struct buf *checkpoint)
{
	if (!s->replication.keeper)
		return;
	for (struct list *l = s->journal.older.next; l != &s->journal.older; l = l->next)
		replicate_segment(s->replication.keeper, list_entry(l, struct segment, link), true);
	for (size_t i = 0; i < n; i++)
		if (found[i]->large)
			replicate_large(s->replication.keeper, found[i]->id, 0, true);
	say_checkpoint(s->replication.keeper, REPLICATE_KNOWN, checkpoint);
}

void replicate_ask(struct loop *keeper, uint64_t barrier)
{
	tell_keeper(keeper, REPLICATE_ASK, barrier, 0);
}

void replicate_starts_wait(struct loop *keeper, uint64_t of)
{
	tell_keeper(keeper, REPLICATE_STARTS_WAIT, of, 0);
}
