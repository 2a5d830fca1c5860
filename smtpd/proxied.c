/* SPDX-License-Identifier: ISC */
#include "smtpd/proxied.h"

#include "base/log.h"
#include "base/address.h"
#include "base/descriptors.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "smtpd/proxy_header.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { PIECE = 512 };

struct proxied {
	struct list link;
	struct listener *listener;
	atomic_long *connections; /* where it counts: of the section that its listener was in */
	int fd;
	union address peer;
	struct proxy_header header;
	proxied_welcome *welcome;
	ev_io ready;
	struct timer deadline;
};

static void log_reject(const union address *peer, const char *reason)
{
	char client[64];
	metric_cell_add(metric_cell(FAMILY_rejects, "PROXY", NULL), 1);
	log_event(LOG_LEVEL_INFO, "reject", "client", address_text(peer, client), "stage", "PROXY",
		  "reason", reason, NULL);
}

/* Returns the socket, the caller's. */
static int leave_proxied(struct proxied *p)
{
	struct loop *loop = p->listener->worker->loop;
	int fd = p->fd;
	ev_io_stop(loop->ev, &p->ready);
	timer_stop(&loop->timers, &p->deadline);
	list_remove(&p->link);
	long before = atomic_fetch_sub_explicit(p->connections, 1, memory_order_relaxed);
	assert(before > 0);
	descriptors_give(DESCRIPTORS_CLIENTS);
	free(p);
	return fd;
}

static void end_proxied(struct proxied *p, const char *reason)
{
	log_reject(&p->peer, reason);
	close(leave_proxied(p));
}

static void on_deadline(void *owner)
{
	end_proxied(owner, "no PROXY header in time");
}

static void welcome_client(struct proxied *p)
{
	struct listener *l = p->listener;
	union address peer = p->header.state == PROXY_HEADER_CLIENT ? p->header.client : p->peer;
	proxied_welcome *welcome = p->welcome;
	welcome(l, leave_proxied(p), &peer);
}

static void on_ready(struct ev_loop *ev, ev_io *w, int revents)
{
	(void)ev;
	(void)revents;
	struct proxied *p = w->data;
	unsigned char piece[PIECE];
	ssize_t n = recv(p->fd, piece, sizeof piece, MSG_PEEK);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		end_proxied(p, "the proxy closed before its PROXY header ended");
		return;
	}
	size_t used = proxy_header_feed(&p->header, piece, (size_t)n);
	if (recv(p->fd, piece, used, 0) != (ssize_t)used || p->header.state == PROXY_HEADER_BAD)
		end_proxied(p, "malformed PROXY header");
	else if (p->header.state != PROXY_HEADER_MORE)
		welcome_client(p);
}

void proxied_begin(struct listener *l, int fd, const union address *peer, proxied_welcome *welcome)
{
	const struct conf_listener *limits = l->service->listener;
	struct loop *loop = l->worker->loop;
	if (!netlist_match(&l->service->proxies, peer)) {
		log_reject(peer, "not one of the proxies of this listener");
		close(fd);
		return;
	}
	if (!descriptors_take(DESCRIPTORS_CLIENTS)) {
		log_reject(peer, "too many connections");
		close(fd);
		return;
	}
	long others = atomic_fetch_add_explicit(l->connections, 1, memory_order_relaxed);
	struct proxied *p = mem_zalloc(sizeof *p);
	p->listener = l;
	p->connections = l->connections;
	p->fd = fd;
	p->peer = *peer;
	p->welcome = welcome;
	list_append(&l->proxied, &p->link);
	ev_io_init(&p->ready, on_ready, fd, EV_READ);
	p->ready.data = p;
	timer_init(&p->deadline, on_deadline, p);
	if (limits->connection_limit && others >= limits->connection_limit) {
		end_proxied(p, "too many connections");
		return;
	}
	ev_io_start(loop->ev, &p->ready);
	loop_timer_in(loop, &p->deadline, limits->proxy_timeout);
}

void proxied_end_all(struct listener *l)
{
	list_each (link, tmp, &l->proxied)
		close(leave_proxied(list_entry(link, struct proxied, link)));
}
