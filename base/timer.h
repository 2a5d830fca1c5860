/* timer.h - many deadlines, one heap.
 *
 * A struct timer lies inside the object that waits. Whoever owns the heap asks it for the next
 * deadline and runs what is due: the loop does so with a real clock, a simulation with its own.
 *
 * OWNERSHIP  The heap owns only its array; a timer must be stopped before its object is freed.
 * THREAD     One thread a heap.
 * ERRORS     None.
 */
#ifndef BASE_TIMER_H
#define BASE_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
	int64_t due_ms; /* steady clock */
	size_t slot;	/* place in the heap, from 1; 0 when not started */
	void (*expired)(void *owner);
	void *owner;
};

struct timers {
	struct timer **heap; /* heap[0] is not used */
	size_t n, cap;
};

void timers_init(struct timers *);
void timers_fini(struct timers *);

void timer_init(struct timer *, void (*expired)(void *owner), void *owner);

void timer_start(struct timers *, struct timer *, int64_t due_ms);
/* Expire at due_ms; a timer already started is moved. */

void timer_stop(struct timers *, struct timer *);
/* Harmless on a timer that is not started. */

static inline bool timer_active(const struct timer *t)
{
	return t->slot != 0;
}

int64_t timers_next(const struct timers *);
/* The earliest due_ms, or INT64_MAX when nothing waits. */

void timers_run(struct timers *, int64_t now_ms);
/* Stop and call what is due at now_ms, earliest first, at most as many as were started when the
 * call began. Callbacks may start and stop any timer. */

#endif
