/* SPDX-License-Identifier: ISC */
/* Does the host owe us an answer for long, on a connection that was ready? Qmgr hears of it once, and once when that is over: it may
 * end the connection where another destination has none. */
#include "smtpc/connection_impl.h"

#include <assert.h>

/* As it is now, with what the host owes for so long. */
static enum connection_slowness judge_wait(const struct connection *c, int64_t waited_ms)
{
	if (engine_awaited(&c->engine))
		return CONNECTION_AWAITED;
	return waited_ms < CONNECTION_STUCK_MS ? CONNECTION_STALLED : CONNECTION_STUCK;
}

static void tell_stall(struct connection *c, enum connection_slowness how)
{
	if (how == c->stalled)
		return;
	c->stalled = how;
	connection_post_slow(c, how);
}

/* The timer runs on while the host answers: started anew with each answer it would cost more than all else here. */
static void on_stall(void *owner)
{
	struct connection *c = owner;
	magic_check(c, CONNECTION_MAGIC);
	struct loop *l = c->worker->loop;
	int64_t waited_ms = l->now_ms - c->waits_ms;
	if (!engine_owed(&c->engine))
		return;
	if (waited_ms < CONNECTION_STALLED_MS) {
		loop_timer_in(l, &c->stall, CONNECTION_STALLED_MS - waited_ms);
		return;
	}
	tell_stall(c, judge_wait(c, waited_ms));
	if (c->stalled == CONNECTION_STALLED)
		loop_timer_in(l, &c->stall, CONNECTION_STUCK_MS - waited_ms);
}

void connection_stall_init(struct connection *c)
{
	c->stalled = CONNECTION_MOVES;
	timer_init(&c->stall, on_stall, c);
}

void connection_wait_anew(struct connection *c)
{
	struct loop *l = c->worker->loop;
	assert(loop_is_ours(l));
	if (!c->announced)
		return;
	c->waits_ms = l->now_ms;
	if (c->stalled != CONNECTION_MOVES)
		timer_stop(&l->timers, &c->stall);
	tell_stall(c, CONNECTION_MOVES);
	if (!timer_active(&c->stall) && engine_owed(&c->engine))
		loop_timer_in(l, &c->stall, CONNECTION_STALLED_MS);
}
