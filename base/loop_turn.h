/* loop_turn.h - how long a thread works between two sleeps, and what of that was slow.
 *
 *	wakes -- loop_turn_begin() -- timers, notes, sockets -- loop_turn_end() -- sleeps
 *
 * Each turn is counted in the histogram of its thread. One that takes longer than log_slow is the event `slow`: with
 * the time that the thread has had of a processor, which tells work from waiting for the disk or for a
 * processor, with how many notes came, and the kind of that which took longest. It is logged once a second by each
 * thread; later ones say how many were not.
 *
 * OWNERSHIP  Embedded in struct loop.
 * THREAD     The loop's own; loop_turn_log_slower(): any.
 * ERRORS     None.
 */
#ifndef BASE_LOOP_TURN_H
#define BASE_LOOP_TURN_H

#include "base/mailbox.h"
#include "base/metrics.h"

struct loop_turn {
	const char *thread;
	struct mailbox *mailbox;
	enum metric_histogram histogram;
	int64_t began_us;     /* steady clock; 0: it never slept */
	int64_t processor_us; /* what the thread has had at that time; -1: not asked for */
	int64_t told_us;      /* when the event was last logged; 0: never */
	int64_t untold;	      /* slow turns since */
};

void loop_turn_init(struct loop_turn *, const char *thread, struct mailbox *);
void loop_turn_begin(struct loop_turn *, int64_t now_us);
bool loop_turn_end(struct loop_turn *, int64_t now_us); /* true: something was logged */

void loop_turn_log_slower(int64_t than_ms); /* 0: nothing is slow */

bool loop_turn_is_slow(int64_t took_us); /* also of what is a part of one */

#endif
