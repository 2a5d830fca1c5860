/* SPDX-License-Identifier: ISC */
#include "base/loop.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stream.h"
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void before_sleep(struct ev_loop *ev, ev_prepare *w, int revents)
{
	(void)revents;
	struct loop *l = w->data;
	log_flush();
	if (loop_turn_end(&l->turn, clock_steady_us()))
		log_flush();
	int64_t next = timers_next(&l->timers);
	if (next == INT64_MAX) {
		ev_timer_stop(ev, &l->alarm);
		return;
	}
	int64_t delay = next - clock_steady_ms();
	l->alarm.repeat = delay > 0 ? (double)delay / 1000.0 : 1e-6;
	ev_timer_again(ev, &l->alarm);
}

static void after_sleep(struct ev_loop *ev, ev_check *w, int revents)
{
	(void)ev;
	(void)revents;
	struct loop *l = w->data;
	int64_t now_us = clock_steady_us();
	l->now_ms = now_us / 1000;
	loop_turn_begin(&l->turn, now_us);
	timers_run(&l->timers, l->now_ms);
}

static void on_alarm(struct ev_loop *ev, ev_timer *w, int revents)
{
	(void)ev;
	(void)w;
	(void)revents; /* The alarm only ends the sleep: after_sleep() has run the timers. */
}

/* Fed with the lowest priority, it comes behind all that has happened in this turn, and before the sleep. */
static void on_turn_end(struct ev_loop *ev, ev_prepare *w, int revents)
{
	(void)ev;
	(void)revents;
	stream_send_gathered(w->data);
}

static void on_end(struct ev_loop *ev, ev_async *w, int revents)
{
	(void)w;
	(void)revents;
	ev_break(ev, EVBREAK_ALL);
}

/* libev aborts where it can't go on. Without descriptors that is no fault of the program's; all else is. */
static void on_loop_fault(const char *what)
{
	bool none_left = errno == EMFILE || errno == ENFILE;
	fprintf(stderr,
		none_left ? "sluice: too few file descriptors (ulimit -n): %s: %s\n" : "%s: %s\n",
		what, strerror(errno));
	if (none_left)
		_exit(EXIT_FAILURE);
	abort();
}

struct loop *loop_new(const char *name, void (*receive)(void *owner, struct note *),
		      void (*received_all)(void *owner), void *owner)
{
	assert(strlen(name) <= 15);
	struct loop *l = mem_zalloc(sizeof *l);
	ev_set_syserr_cb(on_loop_fault);
	l->ev = ev_loop_new(EVFLAG_AUTO);
	if (!l->ev) {
		fprintf(stderr, "sluice: no event loop for thread %s\n", name);
		abort();
	}
	l->name = name;
	l->now_ms = clock_steady_ms();
	timers_init(&l->timers);
	list_init(&l->gathered);
	list_init(&l->lingering);
	mailbox_init(&l->mailbox, l->ev, receive, received_all, owner);
	loop_turn_init(&l->turn, name, &l->mailbox);
	ev_prepare_init(&l->before_sleep, before_sleep);
	ev_check_init(&l->after_sleep, after_sleep);
	ev_timer_init(&l->alarm, on_alarm, 0., 0.);
	ev_async_init(&l->end, on_end);
	ev_prepare_init(&l->turn_end, on_turn_end);
	ev_set_priority(&l->turn_end, EV_MINPRI);
	l->before_sleep.data = l->after_sleep.data = l->turn_end.data = l;
	/* Timers run before the io events of the same wake-up see l->now_ms. */
	ev_set_priority(&l->after_sleep, EV_MAXPRI);
	ev_prepare_start(l->ev, &l->before_sleep);
	ev_check_start(l->ev, &l->after_sleep);
	ev_async_start(l->ev, &l->end);
	return l;
}

/* Whose thread this is; NULL: of none that was started, such as main's. */
static _Thread_local const struct loop *here;

static void *run_loop(void *arg)
{
	struct loop *l = arg;
	here = l;
	ev_run(l->ev, 0);
	log_flush();
	return NULL;
}

void loop_start(struct loop *l)
{
	assert(!l->running);
	thread_need(&l->thread, l->name, run_loop, l);
	l->running = true;
}

void loop_stop(struct loop *l)
{
	assert(!loop_is_here(l));
	if (!l->running)
		return;
	ev_async_send(l->ev, &l->end);
	pthread_join(l->thread, NULL);
	l->running = false;
}

void loop_free(struct loop **lp)
{
	struct loop *l = *lp;
	if (!l)
		return;
	assert(!l->running);
	mailbox_fini(&l->mailbox);
	stream_end_lingering(l);
	assert(list_empty(&l->gathered) && list_empty(&l->lingering));
	timers_fini(&l->timers);
	ev_loop_destroy(l->ev);
	free(l);
	*lp = NULL;
}

bool loop_is_ours(const struct loop *l)
{
	return !here || here == l;
}

bool loop_is_here(const struct loop *l)
{
	return here == l;
}

void loop_timer_in(struct loop *l, struct timer *t, int64_t delay_ms)
{
	assert(loop_is_ours(l));
	timer_start(&l->timers, t, l->now_ms + delay_ms);
}
