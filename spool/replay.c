/* SPDX-License-Identifier: ISC */
#include "spool/replay.h"

#include "base/mem.h"
#include "spool/journal.h"
#include "spool/payload.h"

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
static void content(struct stub *stub, const struct place *here)
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

static uint32_t generation_of(const struct stub *stub, const struct segment *g, uint32_t written)
{
	return g->head.version > 1 ? written : (uint32_t)stub->generation + 1;
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

static void take_domains(struct replay *r, struct stub *stub, const struct scan *scan)
{
	struct envelope *e =
		payload_get_envelope(scan->record.id, scan->payload, scan->record.length);
	if (e)
		domains_set(&r->found.domains, stub, e);
	envelope_free(&e);
}

static void envelope(struct replay *r, struct stub *stub, const struct scan *scan,
		     const struct place *here)
{
	struct envelope_head h;
	if (scan->record.flags & RECORD_GARBAGE || here->segment->spent)
		return;
	if (!payload_get_envelope_head(scan->payload, scan->record.length, &h))
		return;
	uint32_t generation = generation_of(stub, here->segment, h.generation);
	if (stub->state == STUB_GONE || generation <= stub->generation) {
		segment_dead(here);
		return;
	}
	if (stub->envelope.segment)
		segment_dead(&stub->envelope);
	take_content(r, stub, &h);
	take_domains(r, stub, scan);
	stub->envelope = *here;
	stub->generation = generation & STUB_GENERATION_MAX;
	stub_set_due(stub, h.due_ms);
	stub->state = h.held			       ? STUB_HELD
		      : h.rounds == 0 && h.due_ms == 0 ? STUB_INCOMING
						       : STUB_DEFERRED;
}

/* What is known of the work on the envelope of this generation; NULL if a later one is known. That of
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

static void start(struct stub *stub, const struct scan *scan, const struct place *here)
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

static void delivery(struct stub *stub, const struct scan *scan, const struct place *here)
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

static void finish(struct replay *r, struct stub *stub)
{
	domains_drop(&r->found.domains, stub);
	if (stub->envelope.segment)
		segment_dead(&stub->envelope);
	stub->envelope.segment = NULL;
	forget_work(stub);
	stub->state = STUB_GONE;
}

void replay_record(struct replay *r, struct segment *g, const struct scan *scan)
{
	const struct place here = {.segment = g,
				   .offset = (uint32_t)scan->from,
				   .size = (uint32_t)(scan->to - scan->from)};
	struct stub *stub = found_get(&r->found, scan->record.id);
	if (scan->record.id > r->newest)
		r->newest = scan->record.id;
	const bool gone = stub->state == STUB_GONE;
	switch ((enum record_type)scan->record.type) {
	case RECORD_CONTENT:
		if (!gone)
			content(stub, &here);
		break;
	case RECORD_ENVELOPE:
	case RECORD_REPLACEMENT:
		envelope(r, stub, scan, &here);
		break;
	case RECORD_START:
		if (!gone)
			start(stub, scan, &here);
		break;
	case RECORD_DELIVERY:
		if (!gone)
			delivery(stub, scan, &here);
		break;
	case RECORD_FINISH:
		finish(r, stub);
		break;
	default:
		break;
	}
}

void replay_end(struct stub *stub)
{
	struct journal none = {.emptied = false};
	struct work *mine = NULL;
	for (struct work *w; (w = stub->work);) {
		stub->work = w->lower;
		w->lower = NULL;
		if (w->generation == stub->generation)
			mine = w;
		else
			work_free(w, &none);
	}
	stub->work = mine;
	if (stub->work && stub->envelope.segment)
		stub->state = STUB_ACTIVE;
}
