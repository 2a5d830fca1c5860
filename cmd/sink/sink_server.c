/* SPDX-License-Identifier: ISC */
#include "cmd/sink/sink_server.h"

#include "base/file_io.h"
#include "base/stream.h"
#include "cmd/sink/sink_session.h"
#include "cmd/sink/sink_tls.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	ENDING_MS = 100, /* for the last replies to go out */
	PAUSE_MS = 100,	 /* without a descriptor to accept with */
};

static void ignore_note(void *owner, struct note *note)
{
	(void)owner;
	(void)note;
}

/* The connection that waits would call again at once, for as long as it can't be had. */
static void pause_accepting(struct sink *k)
{
	if (!k->starved)
		fprintf(stderr, "sluice: accept: %s; further clients wait\n", strerror(errno));
	k->starved = true;
	ev_io_stop(k->loop->ev, &k->acceptor);
	loop_timer_in(k->loop, &k->pause, PAUSE_MS);
}

static void on_pause_over(void *owner)
{
	struct sink *k = owner;
	ev_io_start(k->loop->ev, &k->acceptor);
}

static void on_accept(struct ev_loop *ev, ev_io *w, int revents)
{
	(void)ev;
	(void)revents;
	struct sink *k = w->data;
	for (int i = 0; i < 100; i++) {
		int fd = accept4(k->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			    errno == ENOMEM)
				pause_accepting(k);
			return;
		}
		k->connections++;
		sink_session_new(k, fd);
	}
}

static void on_signal(struct ev_loop *ev, ev_signal *w, int revents)
{
	(void)w;
	(void)revents;
	ev_break(ev, EVBREAK_ALL);
}

static void on_ending(void *owner)
{
	struct sink *k = owner;
	ev_break(k->loop->ev, EVBREAK_ALL);
}

/* Lines are written when there is nothing else to do, not a line at a time. */
static void on_sleep(struct ev_loop *ev, ev_prepare *w, int revents)
{
	(void)ev;
	(void)w;
	(void)revents;
	fflush(stdout);
}

static bool print_errno(const char *what)
{
	fprintf(stderr, "sluice: %s: %s\n", what, strerror(errno));
	return false;
}

static bool open_folder(struct sink *k)
{
	const char *dir = k->options->dir;
	if (!dir)
		return true;
	if (mkdir(dir, 0777) != 0 && errno != EEXIST)
		return print_errno(dir);
	k->folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return k->folder >= 0 || print_errno(dir);
}

static bool open_socket(struct sink *k)
{
	const union address *at = &k->options->listen;
	char text[64], where[80];
	int on = 1;
	snprintf(where, sizeof where, "%s:%d", address_text(at, text), address_port(at));
	k->fd = socket(at->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (k->fd < 0 || setsockopt(k->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
	    bind(k->fd, &at->sa, address_size(at)) != 0 || listen(k->fd, 4096) != 0)
		return print_errno(where);
	stream_nodelay(k->fd);
	if (!k->options->quiet)
		printf("listening on %s\n", where);
	return true;
}

static void print_certificate(const struct sink *k)
{
	const struct sink_options *o = k->options;
	struct buf key = {0};
	sink_tls_print_key(k->tls, &key);
	printf("certificate for tls_policy: verify:sha256=%s\n", buf_cstr(&key));
	if (o->tlsa)
		printf("_%d._tcp.%s. IN TLSA 3 1 1 %s\n", address_port(&o->listen), o->name,
		       buf_cstr(&key));
	buf_fini(&key);
}

static bool open_tls(struct sink *k)
{
	struct buf why = {0};
	if (!k->options->starttls)
		return true;
	k->tls = sink_tls_new(k->options, &why);
	if (!k->tls)
		fprintf(stderr, "sluice: %s\n", buf_cstr(&why));
	else if (!k->options->quiet || k->options->tlsa)
		print_certificate(k);
	buf_fini(&why);
	return k->tls != NULL;
}

static void start_watchers(struct sink *k)
{
	ev_io_init(&k->acceptor, on_accept, k->fd, EV_READ);
	ev_signal_init(&k->term, on_signal, SIGTERM);
	ev_signal_init(&k->interrupt, on_signal, SIGINT);
	ev_prepare_init(&k->writer, on_sleep);
	k->acceptor.data = k;
	ev_io_start(k->loop->ev, &k->acceptor);
	ev_signal_start(k->loop->ev, &k->term);
	ev_signal_start(k->loop->ev, &k->interrupt);
	ev_prepare_start(k->loop->ev, &k->writer);
}

bool sink_open(struct sink *k, const struct sink_options *options)
{
	*k = (struct sink){.options = options, .fd = -1, .folder = -1, .next_file = 1};
	list_init(&k->sessions);
	timer_init(&k->ending, on_ending, k);
	timer_init(&k->pause, on_pause_over, k);
	if (!open_folder(k) || !open_tls(k) || !open_socket(k))
		return false;
	k->loop = loop_new("sink", ignore_note, NULL, k);
	start_watchers(k);
	return true;
}

void sink_run(struct sink *k)
{
	ev_run(k->loop->ev, 0);
}

void sink_counted(struct sink *k)
{
	if (k->options->count > 0 && k->messages >= k->options->count && !timer_active(&k->ending))
		loop_timer_in(k->loop, &k->ending, ENDING_MS + k->options->delay_ms);
}

void sink_close(struct sink *k)
{
	list_each (link, tmp, &k->sessions)
		sink_session_drop(link);
	assert(list_empty(&k->sessions) && k->open == 0);
	if (k->loop) {
		ev_io_stop(k->loop->ev, &k->acceptor);
		ev_signal_stop(k->loop->ev, &k->term);
		ev_signal_stop(k->loop->ev, &k->interrupt);
		ev_prepare_stop(k->loop->ev, &k->writer);
		timer_stop(&k->loop->timers, &k->ending);
		timer_stop(&k->loop->timers, &k->pause);
		loop_free(&k->loop);
		printf("-- %" PRId64 " messages, %" PRId64 " recipients, %" PRId64
		       " bytes, %" PRId64 " connections (at most %" PRId64 " at once, %" PRId64
		       " turned away), %" PRId64 " refusals\n",
		       k->messages, k->recipients, k->bytes, k->connections, k->most,
		       k->turned_away, k->refused);
	}
	sink_mood_fini(&k->mood);
	SSL_CTX_free(k->tls);
	file_close(k->fd);
	file_close(k->folder);
}
