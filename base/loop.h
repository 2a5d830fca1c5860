/* loop.h - one thread: a libev loop, a heap of timers, a mailbox.
 *
 *	loop_new(name, receive, received_all, owner)   build; the mailbox takes notes from now on
 *	loop_start(loop)                               the thread runs
 *	loop_stop(loop)                                ask it to end, from any thread; wait for it
 *	loop_free(&loop)                               what is left in the mailbox goes to receive()
 *
 * OWNERSHIP  Whoever made the loop frees it.
 * THREAD     loop_stop() and loop_post(): any. Timers and the ev loop: the loop's own thread (or
 *            the maker's, before loop_start()).
 * ERRORS     A loop or thread that can't be made ends the program with a line on stderr.
 */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include "base/list.h"
#include "base/mailbox.h"
#include "base/timer.h"
#include "base/loop_turn.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct loop {
	struct ev_loop *ev;
	struct timers timers;
	struct mailbox mailbox;
	const char *name; /* the thread's, at most 15 characters */
	int64_t now_ms;	  /* steady clock, read once when the loop wakes */
	struct loop_turn turn;
	ev_prepare before_sleep;
	ev_check after_sleep;
	ev_timer alarm;
	ev_async end;
	pthread_t thread;
	bool running;
	ev_prepare turn_end;   /* never started, only fed: for when all else of a turn is done */
	struct list gathered;  /* struct stream: those that stream_flush_soon() has to serve then */
	struct list lingering; /* struct stream: those that stream_linger_close() still serves */
};

struct loop *loop_new(const char *name, void (*receive)(void *owner, struct note *),
		      void (*received_all)(void *owner), void *owner);
void loop_start(struct loop *);
void loop_stop(struct loop *);
void loop_free(struct loop **);

static inline void loop_post(struct loop *l, struct note *note)
{
	mailbox_post(&l->mailbox, note);
}

static inline void loop_post_awaited(struct loop *l, struct note *note)
{
	mailbox_post_awaited(&l->mailbox, note);
}

bool loop_is_ours(const struct loop *);
/* To assert, where what belongs to it is touched: this is not another loop's thread. */

bool loop_is_here(const struct loop *);
/* This is its thread. False also where no thread runs it, and somebody steps through its notes. */

void loop_timer_in(struct loop *, struct timer *, int64_t delay_ms);
/* Start a timer that expires delay_ms after the loop last woke. */

#endif
