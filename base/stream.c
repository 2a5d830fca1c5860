/* SPDX-License-Identifier: ISC */
#include "base/stream_impl.h"

#include "base/clock.h"
#include "base/mem.h"

#include <assert.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	LINGER_SEND_MS = 10000,	 /* for what is still in s->out */
	GATHERED_MOST = 4 << 10, /* bytes that wait for the end of the turn */
};

static void set_fd(struct stream *s, int fd)
{
	s->fd = fd;
	ev_io_set(&s->reader, fd, EV_READ);
	ev_io_set(&s->writer, fd, EV_WRITE);
}

static struct stream *stream_new(struct loop *l, void (*event)(void *, enum stream_event),
				 void *owner)
{
	assert(event);
	struct stream *s = mem_zalloc(sizeof *s);
	s->magic = STREAM_MAGIC;
	s->loop = l;
	s->event = event;
	s->owner = owner;
	s->fd = -1;
	ev_io_init(&s->reader, stream_on_ready, -1, EV_READ);
	ev_io_init(&s->writer, stream_on_ready, -1, EV_WRITE);
	ev_io_init(&s->kick, stream_on_kick, -1, 0);
	s->reader.data = s->writer.data = s->kick.data = s;
	timer_init(&s->deadline, stream_on_deadline, s);
	list_init(&s->in_gathered);
	list_init(&s->in_lingering);
	return s;
}

struct stream *stream_accepted(struct loop *l, int fd, void (*event)(void *, enum stream_event),
			       void *owner)
{
	assert(fd >= 0);
	struct stream *s = stream_new(l, event, owner);
	set_fd(s, fd);
	s->state = STREAM_PLAIN;
	s->connected = true;
	stream_set_watchers(s);
	return s;
}

struct stream *stream_connect(struct loop *l, const union address *to, const union address *from,
			      void (*event)(void *, enum stream_event), void *owner)
{
	struct stream *s = stream_new(l, event, owner);
	s->state = STREAM_CONNECTING;
	int fd = stream_open_socket(s, to, from);
	if (fd < 0)
		return s; /* the failure is on its way */
	stream_nodelay(fd);
	set_fd(s, fd);
	stream_set_watchers(s);
	return s;
}

void stream_free(struct stream **sp)
{
	struct stream *s = mem_take(sp);
	if (!s)
		return;
	magic_check(s, STREAM_MAGIC);
	assert(!s->dead);
	if (s->gathered)
		stream_send_out(s);
	struct ev_loop *ev = s->loop->ev;
	ev_io_stop(ev, &s->reader);
	ev_io_stop(ev, &s->writer);
	ev_clear_pending(ev, &s->kick);
	timer_stop(&s->loop->timers, &s->deadline);
	list_remove(&s->in_lingering);
	assert(!s->gathered);
	if (s->ssl && !s->ending)
		stream_shut(s);
	SSL_free(s->ssl);
	if (s->fd >= 0)
		close(s->fd);
	if (s->closed)
		s->closed(s->closed_owner);
	(s->secret ? buf_wipe : buf_fini)(&s->in);
	buf_fini(&s->out);
	free(s->error);
	s->dead = true;
	stream_bury(s);
}

void stream_when_closed(struct stream *s, void (*closed)(void *), void *owner)
{
	assert(!s->dead && !s->closed); /* there is one who counts it */
	s->closed = closed;
	s->closed_owner = owner;
}

void stream_linger_close(struct stream **sp)
{
	struct stream *s = mem_take(sp);
	if (!s)
		return;
	magic_check(s, STREAM_MAGIC);
	assert(!s->dead);
	if (s->failed || !s->connected || s->state == STREAM_HANDSHAKE) {
		stream_free(&s);
		return;
	}
	stream_ungather(s);
	stream_move(s, STREAM_LINGERING);
	list_append(&s->loop->lingering, &s->in_lingering);
	buf_fini(&s->in);
	timer_start(&s->loop->timers, &s->deadline, clock_steady_ms() + LINGER_SEND_MS);
	ev_feed_event(s->loop->ev, &s->kick, EV_CUSTOM);
}

void stream_close_quietly(struct stream **sp)
{
	struct stream *s = *sp;
	magic_check(s, STREAM_MAGIC);
	assert(!s->dead);
	if (s->state == STREAM_PLAIN || s->state == STREAM_SECURE)
		stream_send_out(s);
	if (buf_len(&s->out) == 0)
		stream_free(sp);
	else
		stream_linger_close(sp);
}

void stream_end_lingering(struct loop *l)
{
	assert(!l->running);
	list_each_entry (struct stream, s, in_lingering, &l->lingering)
		stream_free(&s);
}

static bool takes_bytes(const struct stream *s)
{
	return !s->failed && (s->state == STREAM_PLAIN || s->state == STREAM_SECURE);
}

void stream_flush(struct stream *s)
{
	magic_check(s, STREAM_MAGIC);
	assert(!s->dead && s->state != STREAM_LINGERING);
	/* During a handshake it waits; before one, nothing may be added to what is still plain. */
	if (!takes_bytes(s)) {
		s->left = s->state == STREAM_HANDSHAKE && buf_len(&s->out) > 0;
		return;
	}
	stream_send_out(s);
	if (buf_len(&s->out) > 0)
		s->left = true;
	else
		buf_release(&s->out);
	stream_set_watchers(s);
}

void stream_flush_soon(struct stream *s)
{
	magic_check(s, STREAM_MAGIC);
	assert(!s->dead && s->state != STREAM_LINGERING);
	if (!takes_bytes(s) || s->behind || buf_len(&s->out) > GATHERED_MOST) {
		stream_flush(s);
		return;
	}
	if (buf_len(&s->out) > 0 && !s->gathered) {
		if (list_empty(&s->loop->gathered))
			ev_feed_event(s->loop->ev, &s->loop->turn_end, EV_CUSTOM);
		list_append(&s->loop->gathered, &s->in_gathered);
		s->gathered = true;
	}
	stream_set_watchers(s);
}

void stream_send_gathered(struct loop *l)
{
	list_each_entry (struct stream, s, in_gathered, &l->gathered) {
		assert(s->gathered);
		stream_ungather(s);
		stream_flush(s);
	}
}

bool stream_behind(const struct stream *s)
{
	return s->behind;
}

void stream_secret(struct stream *s, bool secret)
{
	s->secret = secret;
}

void stream_pause(struct stream *s)
{
	magic_check(s, STREAM_MAGIC);
	assert(!s->dead && s->state != STREAM_LINGERING);
	s->paused = true;
	stream_set_watchers(s);
}

void stream_resume(struct stream *s)
{
	magic_check(s, STREAM_MAGIC);
	assert(!s->dead && s->state != STREAM_LINGERING);
	bool hidden = s->ssl && SSL_has_pending(s->ssl);
	s->paused = false;
	s->offer = buf_len(&s->in) > 0;
	if (s->offer || hidden)
		ev_feed_event(s->loop->ev, &s->kick, EV_CUSTOM);
	stream_set_watchers(s);
}

void stream_deadline(struct stream *s, int64_t delay_ms)
{
	magic_check(s, STREAM_MAGIC);
	assert(!s->dead && s->state != STREAM_LINGERING);
	if (delay_ms > 0)
		timer_start(&s->loop->timers, &s->deadline, clock_steady_ms() + delay_ms);
	else
		timer_stop(&s->loop->timers, &s->deadline);
}

void stream_start_tls(struct stream *s, SSL_CTX *context, bool server, const char *sni,
		      SSL_SESSION *resume)
{
	magic_check(s, STREAM_MAGIC);
	assert(!s->dead && s->state == STREAM_PLAIN && buf_len(&s->in) == 0);
	assert(!s->ssl && !s->begun_tls);
	if (!stream_make_ssl(s, context, server, sni, resume)) {
		stream_fail(s, "TLS", "no memory or socket for the handshake");
		return;
	}
	stream_ungather(s);
	stream_move(s, STREAM_STARTING);
	s->left = false;
	ev_feed_event(s->loop->ev, &s->kick, EV_CUSTOM);
	stream_set_watchers(s);
}

void stream_watch_handshake(struct stream *s, void (*message)(void *, bool, const void *, size_t))
{
	s->handshake = message;
}

struct buf *stream_in(struct stream *s)
{
	return &s->in;
}

struct buf *stream_out(struct stream *s)
{
	return &s->out;
}

SSL *stream_ssl(const struct stream *s)
{
	return s->ssl;
}

const char *stream_error(const struct stream *s)
{
	return s->error ? s->error : "";
}

bool stream_starved(const struct stream *s)
{
	return s->starved;
}

bool stream_tls_impossible(const struct stream *s)
{
	return s->tls_impossible;
}
