/* SPDX-License-Identifier: ISC */
#include "smtpd/smtpd_worker.h"

#include "base/address.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/stream.h"
#include "smtpd/response.h"
#include "smtpd/proxied.h"
#include "smtpd/session_run.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	BACKLOG = 1024,
	ACCEPT_MOST = 16, /* a wake-up: sessions that are there want their turn */
};

bool listener_parse(const char *text, union address *a)
{
	char host[64];
	const char *colon = strrchr(text, ':');
	if (!colon || colon[1] < '0' || colon[1] > '9')
		return false;
	char *end;
	long port = strtol(colon + 1, &end, 10);
	size_t len = (size_t)(colon - text);
	if (*end || port > 65535 || len >= sizeof host)
		return false;
	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	memcpy(host, text, len);
	host[len] = '\0';
	bool good = address_parse(len > 0 ? host : "0.0.0.0", (int)port, a);
	address_unmask(a);
	return good;
}

static int set_option(int fd, int level, int option)
{
	int on = 1;
	return setsockopt(fd, level, option, &on, sizeof on);
}

/* Sockets of this program share a port, those of two programs must not: the first of them is tried
 * without sharing, which fails when anybody listens already. */
static bool port_free(const union address *a)
{
	int fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	set_option(fd, SOL_SOCKET, SO_REUSEADDR);
	if (a->sa.sa_family == AF_INET6)
		set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY);
	bool good = bind(fd, &a->sa, address_size(a)) == 0;
	file_close(fd);
	return good;
}

static bool say_error(struct buf *error, const union address *a)
{
	char text[64];
	buf_printf(error, "%s port %d: %s", address_text(a, text), address_port(a),
		   strerror(errno));
	return false;
}

bool listener_port_free(const union address *a, struct buf *error)
{
	return port_free(a) || say_error(error, a);
}

int listener_bind(union address *a, struct buf *error)
{
	socklen_t size = sizeof *a;
	int fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		say_error(error, a);
		return -1;
	}
	set_option(fd, SOL_SOCKET, SO_REUSEADDR);
	set_option(fd, SOL_SOCKET, SO_REUSEPORT);
	/* "0.0.0.0:25" and "[::]:25" can stand side by side. */
	if (a->sa.sa_family == AF_INET6)
		set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY);
	if (bind(fd, &a->sa, address_size(a)) == 0 && listen(fd, BACKLOG) == 0 &&
	    getsockname(fd, &a->sa, &size) == 0)
		return fd;
	say_error(error, a);
	close(fd);
	return -1;
}

static void turn_away(int fd, enum response why, const struct listener *l,
		      const union address *peer)
{
	char text[64];
	struct buf line = {0};
	const struct response_row *row = response_row(why);
	if (l->service->listener->tls != LISTENER_TLS_IMPLICIT) {
		response_print(&line, why, l->service->hostname);
		/* Bytes that the socket's empty buffer does not take nobody misses. */
		send(fd, buf_data(&line), buf_len(&line), MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	buf_fini(&line);
	close(fd);
	metric_cell_add(metric_cell(FAMILY_rejects, "CONNECT", NULL), 1);
	log_event(LOG_LEVEL_INFO, "reject", "client", address_text(peer, text), "stage", "CONNECT",
		  "code", log_number(row->code), "dsn", row->dsn, "reason", response_reason(why),
		  NULL);
}

/* A socket that can't be accepted stays readable, and would keep the loop awake for nothing. */
static void pause_accepting(struct listener *l)
{
	ev_io_stop(l->worker->loop->ev, &l->accept);
	loop_timer_in(l->worker->loop, &l->pause, DESCRIPTORS_PAUSE_MS);
}

/* A session of this client, or a refusal; takes the socket. */
static void welcome_client(struct listener *l, int fd, const union address *peer)
{
	const struct conf_listener *limits = l->service->listener;
	enum response why = RESPONSE_OK;
	long others = atomic_fetch_add_explicit(l->connections, 1, memory_order_relaxed);
	bool room = descriptors_take(DESCRIPTORS_CLIENTS);
	if (!room || (limits->connection_limit && others >= limits->connection_limit)) {
		why = RESPONSE_OVERLOADED;
	} else {
		switch (clients_enter(l->worker->clients, peer, l->number, limits,
				      clock_steady_us())) {
		case CLIENTS_WELCOME:
			session_open(l, fd, peer);
			return;
		case CLIENTS_TOO_MANY:
			why = RESPONSE_CLIENT_CONNECTIONS;
			break;
		case CLIENTS_TOO_OFTEN:
			why = RESPONSE_CLIENT_RATE;
			break;
		}
	}
	long before = atomic_fetch_sub_explicit(l->connections, 1, memory_order_relaxed);
	assert(before > 0);
	turn_away(fd, why, l, peer);
	if (room)
		descriptors_give(DESCRIPTORS_CLIENTS);
	else
		pause_accepting(l); /* who waits in the kernel costs nothing */
}

static void no_descriptor(struct listener *l)
{
	struct smtpd_worker *w = l->worker;
	union address peer;
	socklen_t size = sizeof peer;
	if (w->reserve_fd >= 0) {
		close(w->reserve_fd);
		int fd = accept4(l->fd, &peer.sa, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			turn_away(fd, RESPONSE_OVERLOADED, l, &peer);
	}
	w->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pause_accepting(l);
}

static void meet_client(struct listener *l, int fd, const union address *peer)
{
	if (l->service->proxied)
		proxied_begin(l, fd, peer, welcome_client);
	else
		welcome_client(l, fd, peer);
}

static void on_accept(struct ev_loop *ev, ev_io *watcher, int revents)
{
	(void)ev;
	(void)revents;
	struct listener *l = watcher->data;
	for (int i = 0; i < ACCEPT_MOST; i++) {
		union address peer;
		socklen_t size = sizeof peer;
		int fd = accept4(l->fd, &peer.sa, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			address_unmask(&peer);
			meet_client(l, fd, &peer);
			if (timer_active(&l->pause))
				return;
		} else if (errno == EMFILE || errno == ENFILE) {
			no_descriptor(l);
			return;
		} else if (errno == ENOBUFS || errno == ENOMEM) {
			pause_accepting(l);
			return;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			return;
		} /* else that client has gone: the next */
	}
}

static void on_pause_over(void *owner)
{
	struct listener *l = owner;
	assert(l->fd >= 0);
	ev_io_start(l->worker->loop->ev, &l->accept);
}

struct listener *listener_new(struct smtpd_worker *w, int fd, const struct smtpd_worker_port *p)
{
	struct listener *l = mem_zalloc(sizeof *l);
	*l = (struct listener){.worker = w,
			       .port = p->port,
			       .number = p->number,
			       .connections = p->connections,
			       .fd = fd};
	l->service = service_ref(p->service);
	list_init(&l->proxied);
	stream_nodelay(fd);
	ev_io_init(&l->accept, on_accept, l->fd, EV_READ);
	l->accept.data = l;
	timer_init(&l->pause, on_pause_over, l);
	return l;
}

void listener_start(struct listener *l)
{
	list_append(&l->worker->listeners, &l->link);
	ev_io_start(l->worker->loop->ev, &l->accept);
}

void listener_stop(struct listener *l)
{
	if (l->fd < 0)
		return;
	ev_io_stop(l->worker->loop->ev, &l->accept);
	timer_stop(&l->worker->loop->timers, &l->pause);
	close(l->fd);
	l->fd = -1;
	proxied_end_all(l);
}

void listener_free(struct listener **lp)
{
	struct listener *l = *lp;
	listener_stop(l);
	assert(!ev_is_active(&l->accept) && !timer_active(&l->pause));
	list_remove(&l->link);
	service_unref(l->service);
	free(l);
	*lp = NULL;
}
