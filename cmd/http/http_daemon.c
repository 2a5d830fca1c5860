/* SPDX-License-Identifier: ISC */
#include "cmd/http/http_daemon.h"

#include "base/clock.h"
#include "base/descriptors.h"

#include <assert.h>
#include <unistd.h>

static void run_library(struct http_daemon *d)
{
	MHD_UNSIGNED_LONG_LONG ms;
	if (!d->library)
		return;
	d->closed = false;
	MHD_run(d->library);
	if (d->closed)
		http_daemon_wake(d);
	else if (MHD_get_timeout(d->library, &ms) == MHD_YES)
		timer_start(&d->loop->timers, &d->due, clock_steady_ms() + (int64_t)ms);
	else
		timer_stop(&d->loop->timers, &d->due);
}

/* Where it has no client and can't accept one, the library would try for ever. */
static bool is_starved(const struct http_daemon *d)
{
	int fd = d->clients->n > 0 ? -1 : dup(d->ready.fd);
	if (fd >= 0)
		close(fd);
	return d->clients->n == 0 && fd < 0;
}

static void on_ready(struct ev_loop *ev, ev_io *w, int revents)
{
	(void)revents;
	struct http_daemon *d = w->data;
	if (is_starved(d)) {
		ev_io_stop(ev, w);
		timer_start(&d->loop->timers, &d->due, clock_steady_ms() + DESCRIPTORS_PAUSE_MS);
		return;
	}
	run_library(d);
}

static void on_due(void *owner)
{
	struct http_daemon *d = owner;
	if (d->library)
		ev_io_start(d->loop->ev, &d->ready);
	run_library(d);
}

void http_daemon_init(struct http_daemon *d, struct loop *loop, const struct http_clients *clients)
{
	d->loop = loop;
	d->clients = clients;
	ev_init(&d->ready, on_ready);
	d->ready.data = d;
	timer_init(&d->due, on_due, d);
}

void http_daemon_open(struct http_daemon *d, struct MHD_Daemon *library)
{
	assert(!d->library && library);
	d->library = library;
	int fd = MHD_get_daemon_info(library, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	ev_io_set(&d->ready, fd, EV_READ);
	ev_io_start(d->loop->ev, &d->ready);
	http_daemon_wake(d);
}

void http_daemon_close(struct http_daemon *d)
{
	if (!d->library)
		return;
	ev_io_stop(d->loop->ev, &d->ready);
	MHD_stop_daemon(d->library);
	timer_stop(&d->loop->timers, &d->due);
	d->library = NULL;
}

void http_daemon_wake(struct http_daemon *d)
{
	assert(loop_is_ours(d->loop));
	timer_start(&d->loop->timers, &d->due, clock_steady_ms());
}

/* At its limit the library listens no more, and begins again only when it is called once more. */
void http_daemon_lost_one(struct http_daemon *d)
{
	d->closed = true;
}
