/* SPDX-License-Identifier: ISC */
/* Queue runners: messages whose time has come go to qmgr, as far as it has given credit. */
#include "base/clock.h"
#include "base/fence.h"
#include "base/log.h"
#include "base/mem.h"
#include "spool/op.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Content in the log is looked at before it is sent, and meanwhile nobody has a 250: so many messages, or bytes, a turn. */
enum { RUNNER_STEP = 500, RUNNER_STEP_BYTES = 1 << 20 };
enum { RUNNER_AGAIN_MS = 1000, UNREAD_AGAIN_MS = 60000 };
/* Nobody says when the fence opens, and it may be closed for as long as the other nodes can't be reached. */
enum { FENCE_LOOK_MS = 100 };

/* Incoming and deferred take turns, so that neither can starve the other. POSTFIX QSHAPE_README. */
static struct stub *choose_message(struct spool *s)
{
	struct stub *in = inflow_first(&s->incoming, s->credit);
	struct stub *back = inflow_spare(&s->incoming, s->credit) ? due_first(&s->deferred) : NULL;
	if (back && (back->due_ms > clock_wall_ms() || atomic_load(&s->draining)))
		back = NULL;
	if (in && back) {
		s->deferred_turn = !s->deferred_turn;
		return s->deferred_turn ? back : in;
	}
	return in ? in : back;
}

static bool is_damage(int error)
{
	return error == ENOENT || error == EBADMSG;
}

/* Where this start could not make safe what it had read, an older envelope may still be right: that is for
 * the next start to see. */
static bool may_pass_soon(const struct spool *s, int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM ||
	       (is_damage(error) && s->journal.stuck);
}

static void give_up(struct spool *s, struct stub *stub)
{
	int error = errno;
	bool soon = may_pass_soon(s, error), damaged = is_damage(error) && !soon;
	if (damaged && quarantine_message(s, stub, "it can't be read from the queue")) {
		op_finish(s, stub);
		return;
	}
	/* A disk that fails may take seconds for each try, and meanwhile nobody has a 250. */
	if (!damaged && !soon)
		log_event(LOG_LEVEL_ERROR, "content_unreadable", "id", log_id(stub->id), "reason",
			  strerror(error), NULL);
	stub->scheduled = false;
	stub_set_due(stub, clock_wall_ms() + (soon ? RUNNER_AGAIN_MS : UNREAD_AGAIN_MS));
	stub_enter(s, stub, STUB_DEFERRED);
}

static void start_message(struct spool *s, struct stub *stub)
{
	assert(stub->state == STUB_INCOMING || stub->state == STUB_DEFERRED);
	struct envelope *e = fetch_envelope(stub);
	struct content *c = e ? fetch_checked(s, stub, e) : NULL;
	if (!c) {
		envelope_free(&e);
		give_up(s, stub);
		return;
	}
	struct op *op = op_add(s, OP_START, stub);
	op->envelope = e;
	op->content = c;
	op->work = mem_zalloc(sizeof *op->work);
	op->urgent = stub->urgent;
	if (stub->state == STUB_INCOMING)
		inflow_served(&s->incoming, stub->site);
	stub_enter(s, stub, STUB_ACTIVE);
	stub->site = (uint32_t)places_row(s, e) & SPOOL_SITE_MAX;
	places_take(s, stub->site);
}

void runner_run(struct spool *s)
{
	struct stub *stub = NULL;
	uint64_t bytes = 0;
	int n = 0;
	assert(loop_is_ours(s->loop));
	while (s->credit > 0 && fence_open() && n++ < RUNNER_STEP && (stub = choose_message(s)) &&
	       bytes < RUNNER_STEP_BYTES) {
		bytes += stub->content.size;
		start_message(s, stub);
	}
	s->more = s->credit > 0 && stub;
	s->fenced = !fence_open();
}

/* Wall clock, by the queue alone. What is incoming is the concern of `more`, but for the fence. */
static int64_t due_ms(const struct spool *s)
{
	if (s->fenced && s->incoming.n > 0)
		return clock_wall_ms();
	const struct stub *back =
		inflow_spare(&s->incoming, s->credit) ? due_first(&s->deferred) : NULL;
	return back && !atomic_load(&s->draining) ? back->due_ms : INT64_MAX;
}

int64_t runner_next_ms(const struct spool *s)
{
	int64_t at_ms = s->credit > 0 ? due_ms(s) : INT64_MAX;
	int64_t look_ms = clock_wall_ms() + FENCE_LOOK_MS;
	return s->fenced && at_ms < look_ms ? look_ms : at_ms;
}
