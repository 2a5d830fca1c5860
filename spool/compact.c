/* SPDX-License-Identifier: ISC */
#include "spool/compact.h"

#include "base/mem.h"
#include "base/metrics.h"
#include "spool/commit.h"
#include "spool/copy_wait.h"
#include "spool/op.h"

#include <assert.h>
#include <stdlib.h>

enum { STEP_BYTES = 256 << 10, STEP_PAUSE_MS = 10, LOOK_MS = 200, AGAIN_MS = 5000 };

static bool lies_at(const struct place *p, const struct segment *g, uint64_t offset)
{
	return p->segment == g && p->offset == offset;
}

static bool worked_in(const struct stub *stub, const struct segment *g)
{
	const struct work *w = stub->state == STUB_ACTIVE ? stub->work : NULL;
	for (size_t i = 0; w && i < w->nplace; i++)
		if (w->place[i].segment == g)
			return true;
	return false;
}

/* Whether what the record there says is needed of this message. */
static bool is_needed(const struct stub *stub, const struct segment *g, const struct scan *scan)
{
	switch ((enum record_type)scan->record.type) {
	case RECORD_CONTENT:
		return lies_at(&stub->content, g, scan->from);
	case RECORD_ENVELOPE:
	case RECORD_REPLACEMENT:
		return lies_at(&stub->envelope, g, scan->from);
	case RECORD_START:
	case RECORD_DELIVERY:
		return worked_in(stub, g);
	default:
		return false;
	}
}

/* Bytes that will be written for it; 0: it stays where it is. */
static uint64_t take_message(struct compact *c, struct stub *stub)
{
	assert(c->victim && c->victim->busy);
	/* One whose start the copy of the queue has not yet has no work. */
	bool starting = stub->state == STUB_ACTIVE && !stub->work;
	if (stub->unsettled || stub->releasing || stub->wish || stub->moving || starting)
		return 0;
	if (c->n == c->cap) {
		c->cap = c->cap ? c->cap * 2 : 64;
		c->moving = mem_realloc(c->moving, c->cap * sizeof *c->moving);
	}
	c->moving[c->n++] = (struct moving){.stub = stub};
	stub->moving = true;
	return stub->envelope.size + (stub->content.segment == c->victim ? stub->content.size : 0);
}

/* Choose the messages of one step. True: the segment has been read to its end. */
static bool gather_messages(struct spool *s)
{
	struct compact *c = &s->compact;
	uint64_t bytes = 0;
	enum scan_result result = SCAN_RECORD;
	c->n = 0;
	while (bytes < STEP_BYTES) {
		result = scan_next(&c->scan);
		if (result == SCAN_DAMAGE)
			continue;
		if (result != SCAN_RECORD)
			break;
		struct stub *stub = catalog_find(&s->catalog, c->scan.record.id);
		if (stub && is_needed(stub, c->victim, &c->scan))
			bytes += take_message(c, stub);
	}
	metrics_add(METRIC_compacted_bytes, (int64_t)bytes);
	return result != SCAN_RECORD;
}

/* The content is on stable storage before an envelope refers to it: else a crash between the two
 * could leave a newer envelope without its content. */
static bool copy_contents(struct spool *s)
{
	struct compact *c = &s->compact;
	for (size_t i = 0; i < c->n; i++) {
		struct stub *stub = c->moving[i].stub;
		struct content *content =
			stub->content.segment == c->victim ? fetch_copy(stub) : NULL;
		if (!content)
			continue;
		struct op *op = op_add(s, OP_COPY, stub);
		op->content = content;
		op->copied = &c->moving[i].copy;
	}
	return commit_now(s);
}

static bool move_envelopes(struct spool *s)
{
	struct compact *c = &s->compact;
	for (size_t i = 0; i < c->n; i++) {
		const struct moving *m = &c->moving[i];
		/* Its content could not be read: then all of it stays. */
		if (m->stub->content.segment == c->victim && !m->copy.segment)
			continue;
		struct envelope *e = fetch_envelope(m->stub);
		if (!e)
			continue;
		struct op *op = op_add(s, OP_MOVE, m->stub);
		op->envelope = e;
		op->content_at = m->copy;
		op->moves_content = m->copy.segment;
	}
	return commit_now(s);
}

static bool move_gathered(struct spool *s)
{
	struct compact *c = &s->compact;
	assert(list_empty(&s->todo) && list_empty(&s->written));
	bool ok = copy_contents(s) && move_envelopes(s);
	for (size_t i = 0; i < c->n; i++) {
		const struct moving *m = &c->moving[i];
		assert(m->stub->moving);
		m->stub->moving = false;
		if (m->copy.segment && (m->stub->content.segment != m->copy.segment ||
					m->stub->content.offset != m->copy.offset))
			journal_let_go(&s->journal, &m->copy, USE_CONTENT);
	}
	c->n = 0;
	return ok;
}

static void begin_segment(struct compact *c, struct segment *g)
{
	assert(!c->victim && !g->busy);
	c->victim = g;
	g->busy = true;
	scan_init(&c->scan, g->file->fd, g->seed, g->end > SEGMENT_BEGIN ? g->end : g->size);
}

static void end_segment(struct compact *c)
{
	assert(c->n == 0); /* those of a step are marked until its end */
	if (c->victim) {
		assert(c->victim->busy);
		c->victim->busy = false;
		scan_fini(&c->scan);
	}
	c->victim = NULL;
}

static bool can_go(const struct spool *s, const struct segment *g)
{
	return g->live > 0 && !g->dirty && s->loop->now_ms >= g->stubborn_ms &&
	       !journal_open_segment(&s->journal, g);
}

/* On a full disk what is moved would use up the reserve, and leave the segment where it is. */
static bool has_room_for_move(const struct spool *s, const struct segment *g)
{
	const struct segment *current = s->journal.lane[LANE_MAIN].current;
	uint64_t rest = current && current->size > current->end ? current->size - current->end : 0;
	if (journal_lacks_room(&s->journal))
		return g->live_bytes < rest;
	return s->room.free < 0 || g->live_bytes < (uint64_t)s->room.free + rest;
}

static struct segment *find_emptiest(const struct spool *s)
{
	struct segment *best = NULL;
	for (struct list *l = s->journal.segments.next; l != &s->journal.segments; l = l->next) {
		struct segment *g = list_entry(l, struct segment, link);
		if (can_go(s, g) && has_room_for_move(s, g) &&
		    g->live_bytes * COMPACT_RATIO < g->size &&
		    (!best || g->live_bytes * best->size < best->live_bytes * g->size))
			best = g;
	}
	return best;
}

static void tell_bytes(struct compact *c, int64_t bytes, int64_t live)
{
	metrics_add(METRIC_queue_bytes, bytes - c->told_bytes);
	metrics_add(METRIC_queue_live_bytes, live - c->told_live);
	c->told_bytes = bytes;
	c->told_live = live;
}

static void look_at_journal(struct spool *s)
{
	struct compact *c = &s->compact;
	uint64_t live, open_live;
	c->bytes = (int64_t)journal_bytes(&s->journal, &live);
	c->live = (int64_t)live;
	int64_t open = (int64_t)journal_open_bytes(&s->journal, &open_live);
	tell_bytes(c, c->bytes + open + s->large_bytes,
		   c->live + (int64_t)open_live + s->large_bytes);
	c->looked_ms = s->loop->now_ms;
	c->stale = false;
}

/* Dead bytes take at most as much as is still free: else they would refuse mail on a small disk. */
static int64_t allowed_dead_bytes(const struct spool *s)
{
	int64_t most = COMPACT_SPARE * (int64_t)s->journal.lane[LANE_MAIN].segment_size;
	int64_t room = journal_usable_room(&s->journal);
	return room < most ? room : most;
}

static int64_t allowed_bytes(const struct spool *s)
{
	return COMPACT_RATIO * s->compact.live + allowed_dead_bytes(s);
}

static void choose_victim(struct spool *s)
{
	struct compact *c = &s->compact;
	if (s->journal.removing) /* there will be less before long */
		return;
	if (c->looked_ms && s->loop->now_ms - c->looked_ms < LOOK_MS)
		return;
	look_at_journal(s);
	struct segment *g = c->bytes > allowed_bytes(s) ? find_emptiest(s) : NULL;
	if (g)
		begin_segment(c, g);
}

/* A message that is moved is to be copied, too, and nothing goes before it is; the room that the copy keeps is for less. */
static bool waits_for_copy(const struct spool *s)
{
	return copy_wait_refuses(s) && !s->room.low && !journal_reserve_error(&s->journal);
}

void compact_run(struct spool *s)
{
	struct compact *c = &s->compact;
	assert(loop_is_ours(s->loop));
	if (s->journal.stuck)
		end_segment(c); /* it could not go: there is nothing to come back for */
	if (waits_for_copy(s))
		c->next_ms = s->loop->now_ms + AGAIN_MS;
	if (!s->recovered || s->room.commits_failed || s->journal.stuck ||
	    s->loop->now_ms < c->next_ms)
		return;
	if (!c->victim)
		choose_victim(s);
	/* Nothing may be under way that refers to where things lie. */
	if (!c->victim || !list_empty(&s->todo) || !commit_now(s))
		return;
	bool ended = gather_messages(s);
	if (!move_gathered(s)) {
		c->next_ms = s->loop->now_ms + AGAIN_MS;
		end_segment(c);
		return;
	}
	if (ended || c->victim->live == 0) {
		if (c->victim->live > 0)
			c->victim->stubborn_ms = s->loop->now_ms + AGAIN_MS;
		end_segment(c);
		c->looked_ms = 0;
	}
	bool behind = c->bytes > allowed_bytes(s) + c->live / 4;
	c->next_ms = behind ? 0 : s->loop->now_ms + STEP_PAUSE_MS;
}

int64_t compact_delay_ms(const struct spool *s)
{
	const struct compact *c = &s->compact;
	int64_t delay_ms = c->next_ms - s->loop->now_ms;
	if (!c->victim) {
		return s->recovered && (c->stale || c->bytes > allowed_bytes(s)) ? LOOK_MS : -1;
	}
	return delay_ms > 0 ? delay_ms : 0;
}

bool compact_segment(struct spool *s, struct segment *g)
{
	struct compact *c = &s->compact;
	end_segment(c);
	begin_segment(c, g);
	bool ended = false, ok = true;
	while (ok && !ended) {
		ok = commit_now(s);
		ended = ok && gather_messages(s);
		ok = ok && move_gathered(s);
	}
	end_segment(c);
	return ok && g->live == 0;
}

void compact_fini(struct compact *c)
{
	end_segment(c);
	tell_bytes(c, 0, 0);
	free(c->moving);
}
