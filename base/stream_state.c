/* SPDX-License-Identifier: ISC */
#include "base/stream_impl.h"

#include "base/clock.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

enum {
	READ_MOST = 64 << 10,	    /* bytes a wake-up: the others of the loop want their turn */
	READS_MOST = 64,	    /* likewise of TLS, of which each reads a record */
	LINGER_READ_MS = 2000,	    /* for the peer to end */
	LINGER_READ_MOST = 1 << 20, /* bytes read away */
	SECRET_ROOM = 1 << 10,
};

static const unsigned may_follow[] = {
#define S(state, after) [STREAM_##state] = after,
	STREAM_STATES(S)
#undef S
};

void stream_move(struct stream *s, enum stream_state to)
{
	assert(may_follow[s->state] & 1U << to);
	s->state = to;
}

void stream_bury(struct stream *s)
{
	if (!s->dead || s->depth > 0)
		return;
	assert(!ev_is_active(&s->reader) && !ev_is_active(&s->writer) && !ev_is_pending(&s->kick));
	assert(!timer_active(&s->deadline));
	assert(list_empty(&s->in_gathered) && list_empty(&s->in_lingering));
	magic_free(s);
}

static bool emit_event(struct stream *s, enum stream_event event)
{
	assert(!s->dead && s->state != STREAM_LINGERING);
	s->depth++;
	s->event(s->owner, event);
	assert(s->depth > 0);
	s->depth--;
	bool ours = !s->dead && s->state != STREAM_LINGERING;
	stream_bury(s);
	return ours;
}

static void set_error(struct stream *s, const char *what, const char *why)
{
	if (!s->error)
		s->error = mem_printf("%s: %s", what, why);
}

void stream_fail(struct stream *s, const char *what, const char *why)
{
	assert(!s->dead);
	set_error(s, what, why);
	s->failed = true;
	ev_feed_event(s->loop->ev, &s->kick, EV_CUSTOM);
}

static bool may_read(const struct stream *s)
{
	return (s->state == STREAM_PLAIN || s->state == STREAM_SECURE) && !s->eof && !s->failed &&
	       !s->paused && buf_len(&s->in) < STREAM_IN_MAX;
}

static void set_watcher(struct stream *s, ev_io *w, bool on)
{
	if (on && !ev_is_active(w))
		ev_io_start(s->loop->ev, w);
	else if (!on && ev_is_active(w))
		ev_io_stop(s->loop->ev, w);
}

/* Wait for what the state needs, and for nothing else. */
void stream_set_watchers(struct stream *s)
{
	bool reads = false, writes = false;
	assert(!s->dead);
	switch (s->state) {
	case STREAM_CONNECTING:
		writes = true;
		break;
	case STREAM_PLAIN:
	case STREAM_STARTING:
	case STREAM_SECURE:
		reads = may_read(s) || s->write_wants_read;
		writes = (s->read_wants_write && may_read(s)) ||
			 (buf_len(&s->out) > 0 && !s->gathered && !s->write_wants_read);
		break;
	case STREAM_HANDSHAKE:
		reads = !s->read_wants_write;
		writes = s->read_wants_write;
		break;
	case STREAM_LINGERING:
		reads = s->ending || s->write_wants_read;
		writes = !s->ending && !s->write_wants_read;
		break;
	}
	set_watcher(s, &s->reader, reads && !s->failed && s->fd >= 0);
	set_watcher(s, &s->writer, writes && !s->failed && s->fd >= 0);
}

/* An idle connection holds no buffers. */
static void settle_stream(struct stream *s)
{
	buf_release(&s->in);
	buf_release(&s->out);
	stream_set_watchers(s);
}

/* False: nothing more is to be had now, or ever. */
static bool fill_input(struct stream *s, size_t *got)
{
	assert(buf_len(&s->in) < STREAM_IN_MAX);
	char bytes[STREAM_IN_MAX];
	size_t room = STREAM_IN_MAX - buf_len(&s->in);
	enum stream_io io = stream_read(s, bytes, room, got);
	if (io == STREAM_IO_DONE) {
		assert(*got > 0 && *got <= room);
		/* At once as large as the line of a password is, so that none outgrows it. */
		if (s->secret)
			buf_reserve(&s->in, *got < SECRET_ROOM ? SECRET_ROOM : *got);
		buf_append(&s->in, bytes, *got);
		if (s->secret)
			explicit_bzero(bytes, *got);
		/* A short read has emptied a plain socket; more would wake us again. */
		return s->ssl || *got == room;
	}
	if (io == STREAM_IO_END)
		s->eof = true;
	return false;
}

/* Read and offer. False: the stream is no longer the owner's. */
static bool read_some(struct stream *s)
{
	size_t total = 0;
	int reads = 0;
	bool more = true;
	while (more && may_read(s) && total < READ_MOST && reads++ < READS_MOST) {
		size_t got = 0;
		more = fill_input(s, &got);
		total += got;
		if (got > 0 && !emit_event(s, STREAM_DATA))
			return false;
	}
	if (s->eof && !s->eof_told) {
		s->eof_told = true;
		return emit_event(s, STREAM_EOF);
	}
	/* Bytes that OpenSSL holds already are not announced again by the socket. */
	if (more && s->ssl && may_read(s) && SSL_has_pending(s->ssl))
		ev_feed_event(s->loop->ev, &s->kick, EV_CUSTOM);
	return true;
}

void stream_ungather(struct stream *s)
{
	assert(s->gathered == !list_empty(&s->in_gathered));
	list_remove(&s->in_gathered);
	s->gathered = false;
}

void stream_send_out(struct stream *s)
{
	stream_ungather(s);
	while (buf_len(&s->out) > 0 && !s->failed) {
		size_t sent = 0;
		enum stream_io io = stream_write(s, buf_data(&s->out), buf_len(&s->out), &sent);
		if (io != STREAM_IO_DONE)
			break;
		buf_consume(&s->out, sent);
	}
	s->behind = buf_len(&s->out) > 0;
}

/* True: what was left is out, or nearly. */
static bool has_drained(struct stream *s)
{
	if (!s->left || buf_len(&s->out) >= STREAM_LOW)
		return false;
	s->left = false;
	return true;
}

static void end_connecting(struct stream *s)
{
	int error = 0;
	socklen_t len = sizeof error;
	getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (error) {
		stream_fail(s, "connect", strerror(error));
		stream_set_watchers(s);
		return;
	}
	stream_move(s, STREAM_PLAIN);
	s->connected = true;
	if (emit_event(s, STREAM_CONNECTED))
		settle_stream(s);
}

static void shake_hands(struct stream *s)
{
	enum stream_io io = stream_handshake(s);
	if (io == STREAM_IO_DONE) {
		stream_move(s, STREAM_SECURE);
		if (!emit_event(s, STREAM_TLS))
			return;
		ev_feed_event(s->loop->ev, &s->kick, EV_CUSTOM); /* data may have come with it */
	}
	settle_stream(s);
}

/* The reply that belongs before the handshake has to be out first. */
static void start_tls(struct stream *s)
{
	stream_send_out(s);
	if (buf_len(&s->out) == 0 && !s->failed) {
		stream_move(s, STREAM_HANDSHAKE);
		shake_hands(s);
	} else {
		stream_set_watchers(s);
	}
}

static void step_lingering(struct stream *s)
{
	char away[16 << 10];
	assert(!list_empty(&s->in_lingering) && s->depth == 0);
	if (!s->ending) {
		stream_send_out(s);
		if (buf_len(&s->out) > 0 && !s->failed) {
			stream_set_watchers(s);
			return;
		}
		stream_shut(s);
		s->ending = true;
		timer_start(&s->loop->timers, &s->deadline, clock_steady_ms() + LINGER_READ_MS);
	}
	/* Past OpenSSL, which is at its end: these bytes are looked at by nobody. */
	ssize_t n = 1;
	for (int turns = 0; turns < 4 && n > 0 && !s->failed; turns++) {
		n = recv(s->fd, away, sizeof away, 0);
		s->lingered += n > 0 ? (size_t)n : 0;
	}
	bool waiting = n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
	if (s->failed || !waiting || s->lingered > LINGER_READ_MOST)
		stream_free(&s);
	else
		stream_set_watchers(s);
}

/* After a write that failed, a last reply of the peer may still be there to be read. */
static void tell_failure(struct stream *s)
{
	if (s->error_told)
		return;
	if (s->write_failed && (s->state == STREAM_PLAIN || s->state == STREAM_SECURE)) {
		s->failed = false;
		s->eof_told = true; /* one ending is enough */
		if (!read_some(s))
			return;
		s->failed = true;
	}
	s->error_told = true;
	stream_set_watchers(s);
	emit_event(s, STREAM_ERROR);
}

static void transfer_bytes(struct stream *s)
{
	if (!s->gathered)
		stream_send_out(s);
	if (has_drained(s) && !emit_event(s, STREAM_DRAINED))
		return;
	if (may_read(s) && !read_some(s))
		return;
	/* The reading may have let a write go on, or the owner have left something. */
	settle_stream(s);
}

static void go_on(struct stream *s)
{
	magic_check(s, STREAM_MAGIC);
	if (s->state == STREAM_LINGERING)
		step_lingering(s);
	else if (s->failed)
		tell_failure(s);
	else if (s->state == STREAM_CONNECTING)
		end_connecting(s);
	else if (s->state == STREAM_STARTING)
		start_tls(s);
	else if (s->state == STREAM_HANDSHAKE)
		shake_hands(s);
	else
		transfer_bytes(s);
}

void stream_on_ready(struct ev_loop *ev, ev_io *w, int revents)
{
	(void)ev;
	(void)revents;
	go_on(w->data);
}

void stream_on_kick(struct ev_loop *ev, ev_io *w, int revents)
{
	(void)ev;
	(void)revents;
	struct stream *s = w->data;
	magic_check(s, STREAM_MAGIC);
	if (s->offer && !s->failed && !s->paused && s->state != STREAM_LINGERING) {
		s->offer = false;
		if (buf_len(&s->in) > 0 && !emit_event(s, STREAM_DATA))
			return;
	}
	go_on(s);
}

void stream_on_deadline(void *owner)
{
	struct stream *s = owner;
	magic_check(s, STREAM_MAGIC);
	if (s->state == STREAM_LINGERING)
		stream_free(&s);
	else if (emit_event(s, STREAM_TIMEOUT))
		settle_stream(s);
}
