/* SPDX-License-Identifier: ISC */
#include "dns/ub_loop.h"

#include "base/mem.h"

#include <assert.h>
#include <ev.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unbound-event.h>

struct ub_loop {
	struct ub_event_base base; /* first: libunbound knows this part */
	struct loop *loop;
	int events;
};

/* One event of libunbound's: a socket, a time-out, or both. */
struct ub_watch {
	struct ub_event event; /* first, likewise */
	struct ub_loop *all;
	ev_io io;
	ev_timer timer;
	int fd;
	short bits;
	void (*call)(int fd, short bits, void *arg);
	void *arg;
};

static void stop_watch(struct ub_watch *w)
{
	ev_io_stop(w->all->loop->ev, &w->io);
	ev_timer_stop(w->all->loop->ev, &w->timer);
}

/* The watch may be gone when call() returns. */
static void fire_watch(struct ub_watch *w, short bits)
{
	if (!(w->bits & UB_EV_PERSIST))
		stop_watch(w);
	w->call(w->fd, bits, w->arg);
}

static void on_io(struct ev_loop *ev, ev_io *io, int revents)
{
	struct ub_watch *w = io->data;
	short bits = (short)((revents & EV_READ ? UB_EV_READ : 0) |
			     (revents & EV_WRITE ? UB_EV_WRITE : 0));
	if (ev_is_active(&w->timer))
		ev_timer_again(ev, &w->timer);
	fire_watch(w, bits);
}

static void on_timer(struct ev_loop *ev, ev_timer *timer, int revents)
{
	(void)ev;
	(void)revents;
	fire_watch(timer->data, UB_EV_TIMEOUT);
}

static void start_timer(struct ub_watch *w, const struct timeval *in)
{
	w->timer.repeat = (double)in->tv_sec + (double)in->tv_usec / 1e6;
	if (w->timer.repeat <= 0)
		w->timer.repeat = 1e-6;
	ev_timer_again(w->all->loop->ev, &w->timer);
}

static void add_bits(struct ub_event *e, short bits)
{
	struct ub_watch *w = (struct ub_watch *)e;
	stop_watch(w);
	w->bits = (short)(w->bits | bits);
}

static void del_bits(struct ub_event *e, short bits)
{
	struct ub_watch *w = (struct ub_watch *)e;
	stop_watch(w);
	w->bits = (short)(w->bits & ~bits);
}

static void set_fd(struct ub_event *e, int fd)
{
	struct ub_watch *w = (struct ub_watch *)e;
	stop_watch(w);
	w->fd = fd;
}

static void free_event(struct ub_event *e)
{
	struct ub_watch *w = (struct ub_watch *)e;
	stop_watch(w);
	assert(w->all->events > 0);
	w->all->events--;
	free(w);
}

static int add_event(struct ub_event *e, struct timeval *in)
{
	struct ub_watch *w = (struct ub_watch *)e;
	int events = (w->bits & UB_EV_READ ? EV_READ : 0) | (w->bits & UB_EV_WRITE ? EV_WRITE : 0);
	stop_watch(w);
	if (events) {
		ev_io_set(&w->io, w->fd, events);
		ev_io_start(w->all->loop->ev, &w->io);
	}
	if (in && (w->bits & UB_EV_TIMEOUT))
		start_timer(w, in);
	return 0;
}

static int del_event(struct ub_event *e)
{
	stop_watch((struct ub_watch *)e);
	return 0;
}

static int add_timer(struct ub_event *e, struct ub_event_base *base,
		     void (*call)(int, short, void *), void *arg, struct timeval *in)
{
	struct ub_watch *w = (struct ub_watch *)e;
	(void)base;
	stop_watch(w);
	w->bits = UB_EV_TIMEOUT;
	w->call = call;
	w->arg = arg;
	start_timer(w, in);
	return 0;
}

static struct ub_event_vmt event_calls = {
	.add_bits = add_bits,
	.del_bits = del_bits,
	.set_fd = set_fd,
	.free = free_event,
	.add = add_event,
	.del = del_event,
	.add_timer = add_timer,
	.del_timer = del_event,
};

static struct ub_event *new_event(struct ub_event_base *base, int fd, short bits,
				  void (*call)(int, short, void *), void *arg)
{
	struct ub_watch *w = mem_zalloc(sizeof *w);
	w->event = (struct ub_event){.magic = UB_EVENT_MAGIC, .vmt = &event_calls};
	w->all = (struct ub_loop *)base;
	w->all->events++;
	w->fd = fd;
	w->bits = bits;
	w->call = call;
	w->arg = arg;
	ev_init(&w->io, on_io);
	ev_init(&w->timer, on_timer);
	w->io.data = w->timer.data = w;
	return &w->event;
}

static struct ub_event_base_vmt base_calls = {.new_event = new_event};

struct ub_loop *ub_loop_new(struct loop *loop)
{
	struct ub_loop *all = mem_zalloc(sizeof *all);
	all->base = (struct ub_event_base){.magic = UB_EVENT_MAGIC, .vmt = &base_calls};
	all->loop = loop;
	return all;
}

void ub_loop_free(struct ub_loop **lp)
{
	struct ub_loop *all = mem_take(lp);
	if (!all)
		return;
	assert(all->events == 0);
	free(all);
}

struct ub_event_base *ub_loop_base(struct ub_loop *all)
{
	return &all->base;
}
