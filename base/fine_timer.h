/* fine_timer.h - one deadline in microseconds.
 *
 * The many timers of a loop (timer.h) are only as precise as the kernel's wait for descriptors: milliseconds.
 * A fine timer has a descriptor of its own.
 *
 * OWNERSHIP  Embedded in its owner; fine_timer_fini() before that or the loop is freed, but not in expired().
 * THREAD     The loop's.
 * ERRORS     Without such a descriptor it is as coarse as the other timers.
 */
#ifndef BASE_FINE_TIMER_H
#define BASE_FINE_TIMER_H

#include "base/loop.h"

struct fine_timer {
	struct loop *loop;
	ev_io watcher;
	int fd;
	bool started;
	struct timer coarse; /* without a descriptor */
	void (*expired)(void *owner);
	void *owner;
};

void fine_timer_init(struct fine_timer *, struct loop *, void (*expired)(void *owner), void *owner);
void fine_timer_fini(struct fine_timer *);

void fine_timer_start(struct fine_timer *, int64_t delay_us); /* again, if it is started */
void fine_timer_stop(struct fine_timer *);

#endif
