/* SPDX-License-Identifier: ISC */
#include "spool/replay.h"

#include "base/mem.h"
#include "spool/journal.h"
#include "spool/payload.h"
#include "spool/verify.h"

#include <assert.h>
#include <stdlib.h>

static int compare_seq(const void *key, const void *segment)
{
	uint64_t a = *(const uint64_t *)key, b = (*(struct segment *const *)segment)->head.seq;
	return (a > b) - (a < b);
}

static struct segment *find_segment(const struct replay *r, uint64_t seq)
{
	struct segment **found =
		bsearch(&seq, r->segment, r->nsegment, sizeof(struct segment *), compare_seq);
	return found ? *found : NULL;
}

static bool same_place(const struct place *a, const struct place *b)
{
	return a->segment == b->segment && a->offset == b->offset;
}

/* An envelope may have named it already; another record than that one is an older copy. */
static void apply_content(struct stub *stub, const struct place *here)
{
	if (stub->envelope.segment && !same_place(&stub->content, here))
		return;
	stub->content = *here;
	stub->seen = true;
}

/* The other thread has not begun to count, so nothing can fall to zero here. */
static void forget_work(struct stub *stub)
{
	struct journal none = {.emptied = false};
	work_free(stub->work, &none);
	stub->work = NULL;
}

enum { FIRST_1 = 1, LATER_1 = 2 };

/* Version 1 has none, and not all that was ever written of a message is still there to be counted. */
static uint32_t generation_of(const struct segment *g, const struct scan *scan, uint32_t written)
{
	if (g->head.version > 1)
		return written;
	return scan->record.type == RECORD_ENVELOPE ? FIRST_1 : LATER_1;
}

static bool of_version_1(const struct stub *stub)
{
	return stub->envelope.segment && stub->envelope.segment->head.version == 1;
}

/* No envelope has a higher one than that. */
static bool is_over(const struct stub *stub)
{
	return stub->state == STUB_GONE && stub->generation == STUB_GENERATION_MAX;
}

/* Version 1 has one lane: the order is that of the log. */
static bool holds_now(const struct stub *stub, const struct segment *g, uint32_t generation)
{
	bool follows = g->head.version == 1 && stub->state != STUB_GONE &&
		       (!stub->envelope.segment || of_version_1(stub));
	return !is_over(stub) && (follows || generation > stub->generation);
}

static void take_content(const struct replay *r, struct stub *stub, const struct envelope_head *h)
{
	stub->large = h->content.own_file;
	struct place named = {.offset = (uint32_t)h->content.offset,
			      .size = (uint32_t)record_size((uint32_t)h->size)};
	if (!stub->large)
		named.segment = find_segment(r, h->content.seq);
	stub->damaged = !stub->large && !named.segment;
	if (!same_place(&stub->content, &named))
		stub->seen = false;
	stub->content = named;
}

/* The parts of an envelope that are not in the record's head. */
static void take_rest(struct replay *r, struct stub *stub, const struct scan *scan)
{
	struct envelope *e =
		payload_get_envelope(scan->record.id, scan->payload, scan->record.length);
	stub->scheduled = e && envelope_is_scheduled(e);
	if (e)
		domains_set(&r->found.domains, stub, e);
	envelope_free(&e);
}

static void add_pair(struct replay *r, const struct stub *stub, const struct envelope_head *h)
{
	if (!h->content.partner)
		return;
	r->pair = mem_realloc(r->pair, (r->npair + 1) * sizeof *r->pair);
	r->pair[r->npair++] = (struct pair){.id = stub->id, .partner = h->content.partner};
}

static void apply_envelope(struct replay *r, struct stub *stub, const struct scan *scan,
			   const struct place *here)
{
	struct envelope_head h;
	if (scan->record.flags & RECORD_GARBAGE || here->segment->spent)
		return;
	if (!payload_get_envelope_head(scan->payload, scan->record.length, &h))
		return;
	uint32_t generation = generation_of(here->segment, scan, h.generation);
	if (!holds_now(stub, here->segment, generation)) {
		segment_dead(here);
		return;
	}
	if (here->segment->head.version == 1)
		forget_work(stub); /* it was about those before */
	if (stub->envelope.segment)
		segment_dead(&stub->envelope);
	take_content(r, stub, &h);
	add_pair(r, stub, &h);
	take_rest(r, stub, scan);
	assert(stub->state != STUB_ACTIVE);
	stub->envelope = *here;
	stub->first = scan->record.type == RECORD_ENVELOPE;
	stub->generation = generation & STUB_GENERATION_MAX;
	stub_set_due(stub, h.due_ms);
	stub->state = h.held			       ? STUB_HELD
		      : h.rounds == 0 && h.due_ms == 0 ? STUB_INCOMING
						       : STUB_DEFERRED;
}

/* The work on the envelope of this generation, as far as it is known; NULL if a later one is known. That of
 * lower ones stays until all is read: this one's envelope may have been lost. */
static struct work *work_of(struct stub *stub, uint32_t generation)
{
	struct work **at = &stub->work;
	if (generation < stub->generation)
		return NULL;
	while (*at && (*at)->generation > generation)
		at = &(*at)->lower;
	if (!*at || (*at)->generation < generation) {
		struct work *w = mem_zalloc(sizeof *w);
		w->generation = generation;
		w->lower = *at;
		*at = w;
	}
	return *at;
}

static void apply_start(struct stub *stub, const struct scan *scan, const struct place *here)
{
	uint32_t generation;
	uint64_t seq, offset;
	bool ok = payload_get_start(scan->payload, scan->record.length, &generation);
	if (here->segment->head.version == 1) {
		const struct place *e = &stub->envelope;
		ok = payload_get_start_1(scan->payload, scan->record.length, &seq, &offset) &&
		     e->segment && e->segment->head.seq == seq && e->offset == offset;
		generation = stub->generation;
	}
	struct work *w = ok ? work_of(stub, generation) : NULL;
	if (w)
		work_hold(w, here);
}

static void apply_delivery(struct stub *stub, const struct scan *scan, const struct place *here)
{
	uint32_t generation = stub->generation;
	struct spool_delivered *d =
		here->segment->head.version == 1
			? payload_get_delivery_1(stub->id, scan->payload, scan->record.length)
			: payload_get_delivery(stub->id, scan->payload, scan->record.length,
					       &generation);
	struct work *w = d ? work_of(stub, generation) : NULL;
	if (w) {
		work_add(w, d);
		work_hold(w, here);
	} else if (d) {
		delivered_free(d);
	}
}

/* Work that was recorded against a later envelope stays. */
static void end_up_to(struct replay *r, struct stub *stub, uint32_t generation)
{
	domains_drop(&r->found.domains, stub);
	if (stub->envelope.segment)
		segment_dead(&stub->envelope);
	stub->envelope.segment = NULL;
	stub->generation = generation & STUB_GENERATION_MAX;
	stub->state = STUB_GONE;
}

static void end_message(struct replay *r, struct stub *stub)
{
	forget_work(stub);
	end_up_to(r, stub, STUB_GENERATION_MAX);
}

static void apply_finish(struct replay *r, struct stub *stub, const struct scan *scan)
{
	uint32_t generation;
	if (payload_get_finish_to(scan->payload, scan->record.length, &generation)) {
		if (generation >= stub->generation)
			end_up_to(r, stub, generation);
		return;
	}
	uint64_t partner = payload_get_finish(scan->payload, scan->record.length);
	end_message(r, stub);
	if (partner)
		end_message(r, found_get(&r->found, partner));
}

void replay_record(struct replay *r, struct segment *g, const struct scan *scan)
{
	const struct place here = {.segment = g,
				   .offset = (uint32_t)scan->from,
				   .size = (uint32_t)(scan->to - scan->from)};
	struct stub *stub = found_get(&r->found, scan->record.id);
	if (scan->record.id > r->newest)
		r->newest = scan->record.id;
	const bool gone = is_over(stub);
	switch ((enum record_type)scan->record.type) {
	case RECORD_CONTENT:
		if (!gone)
			apply_content(stub, &here);
		break;
	case RECORD_ENVELOPE:
	case RECORD_REPLACEMENT:
		apply_envelope(r, stub, scan, &here);
		break;
	case RECORD_START:
		if (!gone)
			apply_start(stub, scan, &here);
		break;
	case RECORD_DELIVERY:
		if (!gone)
			apply_delivery(stub, scan, &here);
		break;
	case RECORD_FINISH:
		apply_finish(r, stub, scan);
		break;
	default:
		break;
	}
}

void replay_said(struct replay *r, const struct segment *g)
{
	size_t kept = 0;
	for (size_t i = 0; i < r->npair; i++) {
		const struct stub *stub = found_get(&r->found, r->pair[i].id);
		if (stub->envelope.segment != g || verify_by_chance(stub))
			r->pair[kept++] = r->pair[i];
	}
	r->npair = kept;
}

/* A message that is done was there once. */
static bool is_torn(const struct stub *stub)
{
	if (stub->state == STUB_GONE)
		return false;
	if (!stub->envelope.segment)
		return true;
	return verify_by_chance(stub) && !stub->large && !stub->seen &&
	       !(stub->content.segment && stub->content.segment->passed_over);
}

void replay_end_all(struct replay *r)
{
	for (size_t i = 0; i < r->npair; i++)
		r->pair[i].torn = is_torn(found_get(&r->found, r->pair[i].partner));
	for (size_t i = 0; i < r->npair; i++) {
		struct stub *stub = found_get(&r->found, r->pair[i].id);
		if (r->pair[i].torn && verify_by_chance(stub))
			end_message(r, stub);
	}
}

void replay_fini(struct replay *r)
{
	free(r->pair);
	found_fini(&r->found);
}

bool replay_was_given_back(const struct stub *stub)
{
	return stub->state == STUB_GONE && !is_over(stub);
}

/* Programs that counted envelopes of version 1 have counted other numbers. */
static void join_work(struct stub *stub)
{
	for (struct work *w = stub->work; w; w = w->lower)
		w->generation = stub->generation;
	for (struct work *w; stub->work && (w = stub->work->lower);) {
		struct journal none = {.emptied = false};
		struct work *higher = stub->work;
		for (size_t i = 0; i < higher->nplace; i++)
			work_hold(w, &higher->place[i]);
		for (struct spool_delivered *d; (d = higher->first);) {
			higher->first = (struct spool_delivered *)d->note.next;
			work_add(w, d);
		}
		higher->lower = NULL;
		work_free(higher, &none);
		stub->work = w;
	}
	assert(!stub->work || !stub->work->lower);
}

void replay_end(struct stub *stub)
{
	struct journal none = {.emptied = false};
	struct work *mine = NULL;
	bool lost = false; /* an envelope that was worked on */
	if (of_version_1(stub))
		join_work(stub);
	for (struct work *w; (w = stub->work);) {
		stub->work = w->lower;
		w->lower = NULL;
		lost |= w->generation > stub->generation;
		if (w->generation == stub->generation)
			mine = w;
		else
			work_free(w, &none);
	}
	/* Its verdicts are of other recipients, by their numbers: what came of it is not known, and is to be said. */
	if (lost && !mine && stub->envelope.segment)
		mine = mem_zalloc(sizeof *mine);
	stub->work = mine;
	if (stub->work && stub->envelope.segment)
		stub->state = STUB_ACTIVE;
}
