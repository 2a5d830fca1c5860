/* SPDX-License-Identifier: ISC */
#include "spool/commit.h"

#include "base/clock.h"
#include "base/fence.h"
#include "spool/payload.h"
#include "spool/copy_wait.h"

#include <assert.h>

static bool add_record(struct spool *s, uint32_t lane, uint8_t type, uint64_t id,
		       struct buf *payload, struct place *at)
{
	struct record r = {.type = type, .id = id, .length = (uint32_t)buf_len(payload)};
	assert(buf_len(payload) <= RECORD_PAYLOAD_MAX);
	s->unsynced_bytes += (int64_t)buf_len(payload) + RECORD_HEAD;
	return journal_add(&s->journal, lane, &r, buf_data(payload), false, at);
}

static bool add_start(struct spool *s, struct op *op, uint64_t id, struct buf *payload)
{
	buf_clear(payload);
	payload_put_start(payload, op->generation);
	return add_record(s, LANE_MAIN, RECORD_START, id, payload, &op->start_at);
}

static bool add_content(struct spool *s, struct op *op, uint64_t id, const struct content *c)
{
	assert(c->memory || c->size == 0);
	assert(c->size <= RECORD_PAYLOAD_MAX);
	struct record r = {.type = RECORD_CONTENT, .id = id, .length = (uint32_t)c->size};
	return journal_add(&s->journal, LANE_MAIN, &r, c->memory, true, &op->content_at);
}

static void point_to(struct content_place *where, const struct place *content)
{
	where->own_file = !content->segment;
	if (where->own_file)
		return;
	where->seq = content->segment->head.seq;
	where->offset = content->offset;
}

/* Nothing waits that may go first. */
static bool may_be_next(struct spool *s, struct op *op)
{
	op->row = places_row(s, op->store->envelope);
	return inflow_may(&s->incoming, op->row, s->credit) &&
	       !inflow_first(&s->incoming, s->credit);
}

/* Of what was adopted its envelope says when it is due. */
static void schedule_new(struct spool_store *store)
{
	struct envelope *e = store->envelope;
	if (!store->adopted && e->not_before_ms > clock_wall_ms())
		e->due_ms = e->not_before_ms;
}

static bool add_store(struct spool *s, struct op *op, struct buf *payload)
{
	struct spool_store *store = op->store;
	struct content_place where = {.partner = op->partner};
	uint64_t id = store->envelope->id;
	op->generation = 1 + (store->adopted ? given_back_generation(&s->given_back, id) : 0);
	op->content_at.segment = NULL;
	schedule_new(store);
	if (!store->file && !add_content(s, op, id, store->content))
		return false;
	point_to(&where, &op->content_at);
	payload_put_envelope(payload, store->envelope, &where, op->generation);
	if (!add_record(s, LANE_MAIN, RECORD_ENVELOPE, id, payload, &op->at))
		return false;
	/* Those that wait already go first, and what lies in taken/ has to go from there. */
	op->first = !s->more && may_be_next(s, op) && !store->taken &&
		    store->envelope->due_ms == 0 && !store->adopted && !store->envelope->held &&
		    fence_open() && copy_wait_may_start(s, store);
	if (!op->first)
		return true;
	places_take(s, op->row);
	return add_start(s, op, id, payload);
}

/* Those that come due together lie together. What waits no longer lies with the new mail. */
static uint32_t lane_of(const struct spool *s, const struct op *op)
{
	int64_t delay_ms = op->envelope->due_ms - clock_wall_ms();
	if (op->envelope->held)
		return LANE_HOLD;
	if (delay_ms <= 0 || (op->kind == OP_MOVE && op->stub->state != STUB_DEFERRED))
		return LANE_MAIN;
	return lane_of_delay(delay_ms, s->conf->queue.minimal_backoff_time);
}

static bool add_replacement(struct spool *s, struct op *op, const struct place *content,
			    struct buf *payload)
{
	struct content_place where = {.own_file = false};
	point_to(&where, content);
	payload_put_envelope(payload, op->envelope, &where, op->generation);
	return add_record(s, lane_of(s, op), RECORD_REPLACEMENT, op->stub->id, payload, &op->at);
}

static bool add_move(struct spool *s, struct op *op, struct buf *payload)
{
	struct stub *stub = op->stub;
	if (!add_replacement(s, op, op->moves_content ? &op->content_at : &stub->content, payload))
		return false;
	return stub->state != STUB_ACTIVE || add_start(s, op, stub->id, payload);
}

static void put_finish(struct buf *payload, const struct op *op)
{
	assert(!op->given_back || !op->partner);
	if (op->given_back)
		payload_put_finish_to(payload, op->generation);
	else
		payload_put_finish(payload, op->partner);
}

bool commit_records(struct spool *s, struct op *op, struct buf *payload)
{
	const bool replaces = op->kind == OP_KEEP || op->kind == OP_MOVE;
	if (op->stub && !op->effective)
		op->generation = op->stub->generation + replaces;
	buf_clear(payload);
	switch (op->kind) {
	case OP_STORE:
		return add_store(s, op, payload);
	case OP_START:
		return add_start(s, op, op->stub->id, payload);
	case OP_DELIVERED:
		payload_put_delivery(payload, op->delivered, op->generation);
		return add_record(s, LANE_MAIN, RECORD_DELIVERY, op->stub->id, payload, &op->at);
	case OP_KEEP:
		return add_replacement(s, op, &op->stub->content, payload);
	case OP_FINISH:
		put_finish(payload, op);
		return add_record(s, LANE_MAIN, RECORD_FINISH, op->stub->id, payload, &op->at);
	case OP_COPY:
		return add_content(s, op, op->stub->id, op->content);
	case OP_MOVE:
		return add_move(s, op, payload);
	}
	assert(0 && "an op of no kind");
	return false;
}
