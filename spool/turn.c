/* SPDX-License-Identifier: ISC */
#include "spool/turn.h"

#include "base/clock.h"
#include "spool/ahead.h"
#include "spool/commit.h"
#include "spool/inbox.h"
#include "spool/copy_wait.h"
#include "spool/overdue.h"
#include "spool/room.h"

#include <assert.h>

enum { LOOK_MS = 1000 };

static void tell_accepting(struct spool *s)
{
	inflow_tell(&s->incoming, s->credit);
	bool uncopied = copy_wait_refuses(s);
	atomic_store(&s->uncopied, uncopied);
	atomic_store(&s->accepting, room_for_mail(s) && !uncopied);
	room_tell(s);
}

/* Transactions that may still bring a message; those that have are counted until they are answered. */
static int under_way(const struct spool *s)
{
	return atomic_load_explicit(&s->expected, memory_order_relaxed) - s->gather.stores -
	       s->replication.nawaiting;
}

/* Microseconds that the commit of what there is to do should wait for company; 0: none. A command is
 * answered from what was posted before it, so that must be written first. */
static int64_t gather_us(const struct spool *s)
{
	if (s->commands.first || s->stop || !room_for_mail(s))
		return 0;
	return gather_wait_us(&s->gather, clock_steady_us(), under_way(s));
}

static void commit_some(struct spool *s)
{
	if (!list_empty(&s->todo)) {
		if (gather_us(s) > 0)
			return;
		s->committed_ms = s->loop->now_ms;
		gather_commit(&s->gather, clock_steady_us());
	}
	commit_run(s);
	parked_run(s);
}

/* Until then only those who are awaited, all of them, or who is in a hurry wake this thread. */
static void gather_stores(struct spool *s, int64_t wait_us)
{
	fine_timer_start(&s->gathered, wait_us);
	mailbox_rest(&s->loop->mailbox, gather_awaited(&s->gather, under_way(s)));
}

/* Milliseconds until there is something to do by the clock. */
static int64_t idle_ms(struct spool *s)
{
	int64_t delay_ms = s->conf->queue.queue_run_delay; /* the wall clock may be set */
	int64_t due_ms = runner_next_ms(s);
	if (due_ms != INT64_MAX && due_ms - clock_wall_ms() < delay_ms)
		delay_ms = due_ms - clock_wall_ms();
	if ((!list_empty(&s->written) || !room_for_mail(s) || s->journal.emptied) &&
	    delay_ms > LOOK_MS)
		delay_ms = LOOK_MS;
	if (s->journal.removing && !s->journal.planned && delay_ms > 0)
		delay_ms = 0;
	if (compact_delay_ms(s) >= 0 && delay_ms > compact_delay_ms(s))
		delay_ms = compact_delay_ms(s);
	return delay_ms;
}

static void set_timer(struct spool *s, bool at_once)
{
	int64_t delay_ms = idle_ms(s);
	int64_t wait_us = list_empty(&s->todo) || s->room.commits_failed ? 0 : gather_us(s);
	if (wait_us > 0 && !s->more) {
		gather_stores(s, wait_us);
		if (delay_ms <= wait_us / 1000)
			delay_ms = wait_us / 1000 + 1; /* all else comes after that commit */
	} else if ((s->more || !list_empty(&s->todo)) && !s->room.commits_failed) {
		delay_ms = 0;
	}
	if (s->recovered && s->commands.first)
		delay_ms = 0; /* one is not done yet */
	if (s->room.commits_failed && delay_ms < SPOOL_RETRY_MS / 10)
		delay_ms = SPOOL_RETRY_MS / 10;
	loop_timer_in(s->loop, &s->tick, delay_ms > 0 && !at_once ? delay_ms : 0);
}

/* Records that have been synced are known to be whole after a crash only where the log says so. The next commit
 * says it of the one before; of the last for now, it is said when nothing has come for a while. */
static void say_synced(struct spool *s)
{
	if (s->room.commits_failed || !list_empty(&s->todo) || !list_empty(&s->written) ||
	    s->loop->now_ms - s->committed_ms < SPOOL_LAZY_SYNC_MS)
		return;
	journal_say_synced(&s->journal);
}

static void stop_clean(struct spool *s)
{
	if (commit_now(s) && journal_say_synced(&s->journal))
		journal_sync(&s->journal);
}

static void answer_stop(struct spool *s)
{
	struct spool_stop *stop = (struct spool_stop *)s->stop;
	s->stop = NULL;
	assert(s->syncing == 0);
	if (!stop->settles) {
		overdue_keep(s); /* of generations that are on disk: the log gets nothing more */
		s->closing = true;
		timer_stop(&s->loop->timers, &s->tick);
	}
	sem_post(&stop->done);
}

static void take_turn(struct spool *s)
{
	fine_timer_stop(&s->gathered);
	room_look(s);
	tell_accepting(s); /* before the answers that follow from it */
	if (!s->room.commits_failed)
		runner_run(s);
	commit_some(s);
	/* The operator asks for the whole queue, not for what is known of it so far. */
	bool orders = s->recovered && operator_run(s);
	/* Notes that were posted before are answered first. */
	bool ends = s->stop && s->syncing == 0 && !copy_wait_keeps_from_ending(s);
	if (ends)
		stop_clean(s);
	journal_prepare(&s->journal, s->loop->now_ms);
	compact_run(s);
	say_synced(s);
	journal_collect(&s->journal, s->loop->now_ms);
	ahead_run(s); /* after that: it keeps segments from going meanwhile */
	spool_shrink(s);
	tell_accepting(s);
	set_timer(s, orders);
	if (ends)
		answer_stop(s);
}

void turn_run(void *owner)
{
	struct spool *s = owner;
	assert(loop_is_ours(s->loop));
	if (s->closing)
		return;
	atomic_store(&s->turn_began_ms, clock_steady_ms());
	take_turn(s);
	atomic_store(&s->turn_began_ms, 0);
}

void turn_gathered(void *owner)
{
	struct spool *s = owner;
	mailbox_drain(&s->loop->mailbox);
	turn_run(s);
}
