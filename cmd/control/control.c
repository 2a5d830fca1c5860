/* SPDX-License-Identifier: ISC */
#include "cmd/control/control.h"

#include "base/descriptors.h"
#include "base/file_io.h"
#include "base/list.h"
#include "base/magic.h"
#include "base/mem.h"
#include "base/stream.h"
#include "cmd/control/control_path.h"
#include "cmd/control/control_wire.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REQUEST_TIMEOUT_MS = 10000 };

enum { CONNECTION_MAGIC = 0xc0272011 };

struct connection {
	struct request request; /* first: requests are handed out by this address */
	struct list link;
	struct control *control;
	struct stream *stream;
	unsigned magic;
	struct buf words;
	enum { READING, ANSWERING, ANSWERED } state;
};

struct control {
	struct loop *loop;
	struct control_path path;
	int fd, connections;
	ev_io acceptor;
	struct timer pause; /* of the acceptor */
	struct list list;
	void (*handle)(void *owner, struct request *);
	void (*ended)(void *owner); /* or NULL */
	void *owner;
};

static struct connection *connection_of(struct request *r)
{
	struct connection *c = (struct connection *)r;
	magic_check(c, CONNECTION_MAGIC);
	return c;
}

static void connection_free(struct connection *c, bool linger)
{
	struct control *k = c->control;
	list_remove(&c->link);
	assert(k->connections > 0);
	k->connections--;
	if (c->state == ANSWERING && c->request.gone)
		c->request.gone(&c->request);
	if (linger)
		stream_linger_close(&c->stream);
	else
		stream_free(&c->stream);
	buf_fini(&c->words);
	free(c->request.argv);
	magic_free(c);
	if (k->ended)
		k->ended(k->owner);
}

/* Complete when the bytes end with a NUL in the place of a word: two NULs, or a NUL alone. */
static bool is_complete(const struct buf *words)
{
	size_t len = buf_len(words);
	const char *end = buf_data(words) + len;
	return len > 0 && end[-1] == '\0' && (len == 1 || end[-2] == '\0');
}

static void split_words(struct connection *c)
{
	char *word = buf_data(&c->words), *end = word + buf_len(&c->words);
	size_t n = 0;
	for (char *w = word; *w; w += strlen(w) + 1)
		n++;
	c->request.argv = mem_zalloc((n + 1) * sizeof *c->request.argv);
	for (; word < end && *word; word += strlen(word) + 1)
		c->request.argv[c->request.argc++] = word + 1; /* behind the mark */
}

static void take_progress(struct request *r)
{
	r->progress = r->argc > 0 && strcmp(r->argv[0], CONTROL_WANTS_PROGRESS) == 0;
	if (r->progress)
		memmove(r->argv, r->argv + 1, (size_t)r->argc-- * sizeof *r->argv);
}

static void gather_words(struct connection *c)
{
	struct buf *in = stream_in(c->stream);
	buf_append(&c->words, buf_data(in), buf_len(in));
	buf_consume(in, buf_len(in));
	if (buf_len(&c->words) > CONTROL_REQUEST_MAX) {
		connection_free(c, false);
	} else if (is_complete(&c->words)) {
		split_words(c);
		take_progress(&c->request);
		stream_deadline(c->stream, 0);
		c->state = ANSWERING;
		c->control->handle(c->control->owner, &c->request);
	}
}

static void on_event(void *owner, enum stream_event event)
{
	struct connection *c = owner;
	magic_check(c, CONNECTION_MAGIC);
	switch (event) {
	case STREAM_DATA:
		if (c->state == READING)
			gather_words(c);
		else
			buf_clear(stream_in(c->stream));
		break;
	case STREAM_DRAINED:
		if (c->state == ANSWERING && c->request.resume)
			c->request.resume(&c->request);
		break;
	case STREAM_CONNECTED:
	case STREAM_TLS:
		break;
	default:
		connection_free(c, false);
	}
}

/* A socket that can't be accepted stays readable, and would keep the loop awake for nothing. */
static void pause_accepting(struct control *k)
{
	ev_io_stop(k->loop->ev, &k->acceptor);
	loop_timer_in(k->loop, &k->pause, DESCRIPTORS_PAUSE_MS);
}

static void on_pause_over(void *owner)
{
	struct control *k = owner;
	ev_io_start(k->loop->ev, &k->acceptor);
}

static void on_closed(void *unused)
{
	(void)unused;
	descriptors_give(DESCRIPTORS_CONTROL);
}

static struct connection *take_connection(struct control *k, int fd)
{
	struct connection *c = mem_zalloc(sizeof *c);
	c->magic = CONNECTION_MAGIC;
	c->control = k;
	list_append(&k->list, &c->link);
	k->connections++;
	c->stream = stream_accepted(k->loop, fd, on_event, c);
	stream_deadline(c->stream, REQUEST_TIMEOUT_MS);
	return c;
}

static void on_accept(struct ev_loop *ev, ev_io *w, int revents)
{
	(void)ev;
	(void)revents;
	struct control *k = w->data;
	int fd = accept4(k->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			pause_accepting(k);
		return;
	}
	if (k->connections >= CONTROL_CONNECTIONS_MAX || !descriptors_take(DESCRIPTORS_CONTROL)) {
		close(fd);
		return;
	}
	struct connection *c = take_connection(k, fd);
	stream_when_closed(c->stream, on_closed, NULL);
}

struct control *control_new_at(struct loop *loop, int fd, void (*handle)(void *, struct request *),
			       void (*ended)(void *), void *owner)
{
	struct control *k = mem_zalloc(sizeof *k);
	k->loop = loop;
	k->handle = handle;
	k->ended = ended;
	k->owner = owner;
	k->fd = k->path.folder = -1;
	list_init(&k->list);
	take_connection(k, fd);
	return k;
}

/* -1: errno. */
static int listen_at(const struct control_path *path)
{
	const struct sockaddr_un *at = &path->address;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || ((unlink(at->sun_path) == 0 || errno == ENOENT) &&
		       bind(fd, (const struct sockaddr *)at, sizeof *at) == 0 &&
		       chmod(at->sun_path, 0660) == 0 && listen(fd, 100) == 0))
		return fd;
	file_close(fd);
	return -1;
}

static void begin_accepting(struct control *k)
{
	ev_io_init(&k->acceptor, on_accept, k->fd, EV_READ);
	k->acceptor.data = k;
	ev_io_start(k->loop->ev, &k->acceptor);
}

static void stop_accepting(struct control *k)
{
	ev_io_stop(k->loop->ev, &k->acceptor);
	timer_stop(&k->loop->timers, &k->pause);
	close(k->fd);
	k->fd = -1;
}

struct control *control_new(struct loop *loop, const char *folder,
			    void (*handle)(void *, struct request *), void *owner,
			    struct buf *error)
{
	struct control *k = mem_zalloc(sizeof *k);
	k->loop = loop;
	k->handle = handle;
	k->owner = owner;
	list_init(&k->list);
	timer_init(&k->pause, on_pause_over, k);
	k->fd = control_path_open(&k->path, folder) ? listen_at(&k->path) : -1;
	if (k->fd < 0) {
		buf_printf(error, "%s/control: %s", folder, strerror(errno));
		control_path_close(&k->path);
		free(k);
		return NULL;
	}
	begin_accepting(k);
	return k;
}

bool control_renew(struct control *k)
{
	if (k->fd < 0 || access(k->path.address.sun_path, F_OK) == 0 || errno != ENOENT)
		return true;
	int fd = listen_at(&k->path);
	if (fd < 0)
		return false;
	stop_accepting(k);
	k->fd = fd;
	begin_accepting(k);
	return true;
}

void control_close(struct control *k)
{
	if (k->fd < 0)
		return;
	stop_accepting(k);
	unlink(k->path.address.sun_path);
}

void control_drop(struct control *k)
{
	list_each_entry (struct connection, c, link, &k->list)
		if (c->state != ANSWERED)
			connection_free(c, false);
}

void control_free(struct control **kp)
{
	struct control *k = mem_take(kp);
	if (!k)
		return;
	control_close(k);
	list_each (link, tmp, &k->list)
		connection_free(list_entry(link, struct connection, link), false);
	assert(list_empty(&k->list) && k->connections == 0);
	control_path_close(&k->path);
	free(k);
}

static void append_frame(struct connection *c, const char *text, size_t len, bool is_error)
{
	assert(c->state == ANSWERING);
	unsigned char head[CONTROL_HEAD];
	control_head(head, len, is_error);
	buf_append(stream_out(c->stream), head, sizeof head);
	buf_append(stream_out(c->stream), text, len);
}

static void forget_request(struct request *r)
{
	struct request **of = r->job;
	*of = NULL;
}

void control_lend(struct request *r, struct request **to)
{
	*to = r;
	r->job = to;
	r->gone = forget_request;
}

void control_say(struct request *r, const char *text, size_t len)
{
	struct connection *c = connection_of(r);
	while (len > 0) {
		size_t part = len < CONTROL_FRAME_MAX ? len : CONTROL_FRAME_MAX;
		append_frame(c, text, part, false);
		text += part;
		len -= part;
	}
	stream_flush(c->stream);
}

static void send_error(struct request *r, const char *mark, const char *fmt, va_list args)
{
	struct buf text = {0};
	buf_puts(&text, mark);
	buf_vprintf(&text, fmt, args);
	append_frame(connection_of(r), buf_data(&text), buf_len(&text), true);
	stream_flush(connection_of(r)->stream);
	buf_fini(&text);
}

void control_complain(struct request *r, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	send_error(r, "", fmt, args);
	va_end(args);
}

void control_progress(struct request *r, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	if (r->progress)
		send_error(r, CONTROL_PROGRESS, fmt, args);
	va_end(args);
}

bool control_full(struct request *r)
{
	return buf_len(stream_out(connection_of(r)->stream)) > CONTROL_OUT_HIGH;
}

void control_finish_last(struct request *r, int status)
{
	struct connection *c = connection_of(r);
	char byte = (char)status;
	assert(c->state == ANSWERING);
	append_frame(c, "", 0, false);
	buf_append(stream_out(c->stream), &byte, 1);
	c->state = ANSWERED;
	stream_flush(c->stream);
}

void control_finish(struct request *r, int status)
{
	control_finish_last(r, status);
	connection_free(connection_of(r), true);
}
