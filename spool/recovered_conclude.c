/* SPDX-License-Identifier: ISC */
#include "spool/recovered.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "spool/verify.h"

#include <errno.h>

static bool large_damaged(struct recovered *r, const struct stub *stub)
{
	struct envelope *e = fetch_envelope(stub);
	bool damaged = e && verify_large_lost(r->spool->large, stub->id, e->size);
	if (e && !damaged)
		r->large_bytes += (int64_t)e->size;
	envelope_free(&e);
	return damaged;
}

/* A message that was passed over is looked at before it is delivered. */
static bool content_damaged(struct recovered *r, const struct stub *stub)
{
	if (stub->damaged)
		return true;
	if (stub->large)
		return large_damaged(r, stub);
	if (stub->seen || stub->content.segment->passed_over)
		return false;
	struct content *c = fetch_copy(stub);
	bool damaged = !c && errno == EBADMSG;
	content_unref(c);
	return damaged;
}

/* A message that can't be put aside stays in the queue, and is looked at once more when it is due. */
static void write_off(struct recovered *r, struct stub *stub, const char *why)
{
	struct journal none = {.emptied = false};
	r->damaged++;
	stub->damaged = quarantine_message(r->spool, stub, why);
	if (stub->damaged || stub->state != STUB_ACTIVE)
		return;
	work_free(stub->work, &none);
	stub->work = NULL;
	stub->state = STUB_DEFERRED;
}

/* Read what was being worked on. False: the disk fails. */
static bool read_working(struct recovered *r, struct stub *stub, struct envelope **envelope)
{
	while (!(*envelope = fetch_envelope(stub)) && errno != EBADMSG && recovered_tries_again(r))
		;
	if (!*envelope && errno != EBADMSG)
		recovered_disk_failed(r, stub->envelope.segment);
	/* Where a write or sync of this start has failed, the disk may give what was there before: the envelope of before
	 * may be what counts then, and only another start reads that. */
	if (!*envelope && r->unsafe)
		return false;
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
static bool conclude_message(struct recovered *r, struct stub *stub, struct envelope **envelope)
{
	*envelope = NULL;
	replay_end(stub);
	if (replay_was_given_back(stub))
		given_back_add(&r->given_back, stub->id, stub->generation);
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

static void forget_message(struct recovered *r, struct stub *stub)
{
	struct journal none = {.emptied = false};
	work_free(stub->work, &none);
	domains_drop(&r->replay.found.domains, stub);
	stub_free(&r->replay.found.pool, stub);
}

/* Its content as well, but for a file: that was safe before its envelope was written. */
static bool can_be_read(struct recovered *r, const struct stub *stub)
{
	struct envelope *e;
	struct content *c;
	bool good;
	if (stub->damaged)
		return false; /* the segment of its content is missing */
	do {
		e = fetch_envelope(stub);
		c = e && !stub->large ? fetch_copy(stub) : NULL;
		good = e && (stub->large || c);
		content_unref(c);
		envelope_free(&e);
	} while (!good && errno != EBADMSG && recovered_tries_again(r));
	if (!good && errno != EBADMSG)
		recovered_disk_failed(r, stub->envelope.segment);
	return good;
}

/* Records that were read when their segment came to its turn may be gone since, where this start could not make them stable.
 * Of two messages that were stored together, and of which nobody was told, it takes both then, or neither. */
static void leave_halves(struct recovered *r)
{
	struct found *f = &r->replay.found;
	for (size_t i = 0; i < r->replay.npair; i++) {
		struct stub *stub = found_get(f, r->replay.pair[i].id);
		struct stub *partner = found_get(f, r->replay.pair[i].partner);
		if (!verify_by_chance(stub) || !verify_by_chance(partner) ||
		    (can_be_read(r, stub) && can_be_read(r, partner)))
			continue;
		stub->damaged = partner->damaged = true;
	}
}

void recovered_conclude(struct recovered *r)
{
	size_t n, kept = 0;
	replay_end_all(&r->replay);
	leave_halves(r);
	r->stub = found_take(&r->replay.found, &n);
	r->envelope = mem_alloc(n * sizeof(struct envelope *));
	for (size_t i = 0; i < n; i++) {
		struct stub *stub = r->stub[i];
		if (conclude_message(r, stub, &r->envelope[kept]))
			r->stub[kept++] = stub;
		else
			forget_message(r, stub);
	}
	r->n = kept;
}
