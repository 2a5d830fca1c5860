/* SPDX-License-Identifier: ISC */
#include "base/fine_timer.h"

#include <assert.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { A_SECOND_US = 1000000, A_MILLISECOND_US = 1000 };

static void arm_timer(const struct fine_timer *t, int64_t us)
{
	struct itimerspec in = {
		.it_value = {.tv_sec = us / A_SECOND_US, .tv_nsec = us % A_SECOND_US * 1000}};
	timerfd_settime(t->fd, 0, &in, NULL);
}

static void on_time(struct ev_loop *ev, ev_io *w, int revents)
{
	(void)ev;
	(void)revents;
	struct fine_timer *t = w->data;
	t->started = false;
	t->expired(t->owner);
	if (!t->started) /* to be armed anew makes the descriptor silent, too */
		arm_timer(t, 0);
}

void fine_timer_init(struct fine_timer *t, struct loop *l, void (*expired)(void *owner),
		     void *owner)
{
	assert(expired && loop_is_ours(l));
	*t = (struct fine_timer){.loop = l, .expired = expired, .owner = owner};
	timer_init(&t->coarse, expired, owner);
	t->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	ev_io_init(&t->watcher, on_time, t->fd, EV_READ);
	t->watcher.data = t;
	if (t->fd >= 0)
		ev_io_start(l->ev, &t->watcher);
}

void fine_timer_fini(struct fine_timer *t)
{
	fine_timer_stop(t);
	assert(!t->started && !timer_active(&t->coarse));
	ev_io_stop(t->loop->ev, &t->watcher);
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

void fine_timer_start(struct fine_timer *t, int64_t delay_us)
{
	assert(loop_is_ours(t->loop) && delay_us >= 0);
	t->started = true;
	if (t->fd < 0)
		loop_timer_in(t->loop, &t->coarse,
			      (delay_us + A_MILLISECOND_US - 1) / A_MILLISECOND_US);
	else
		arm_timer(t, delay_us > 0 ? delay_us : 1);
}

void fine_timer_stop(struct fine_timer *t)
{
	if (!t->started)
		return;
	assert(loop_is_ours(t->loop));
	t->started = false;
	timer_stop(&t->loop->timers, &t->coarse);
	ev_clear_pending(t->loop->ev, &t->watcher);
	if (t->fd >= 0)
		arm_timer(t, 0);
}
