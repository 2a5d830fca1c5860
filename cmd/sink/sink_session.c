/* SPDX-License-Identifier: ISC */
#include "cmd/sink/sink_session.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDLE_MS = 600000 };

/* Replies that were made in one turn, and go out in one. */
struct held {
	struct list link;
	int64_t due_ms;
	struct buf text;
};

static void held_free(struct sink_session *s, struct held *h)
{
	list_remove(&h->link);
	assert(s->held_bytes >= buf_len(&h->text));
	s->held_bytes -= buf_len(&h->text);
	buf_fini(&h->text);
	free(h);
}

void sink_session_reset(struct sink_session *s)
{
	for (int i = 0; i < s->nto; i++)
		free(s->to[i]);
	free(s->to);
	free(s->from);
	s->to = NULL;
	s->from = NULL;
	s->nto = 0;
	s->size = 0;
	buf_clear(&s->content);
	s->data = (struct sink_data){0};
}

static void session_free(struct sink_session *s, bool linger)
{
	list_each (link, tmp, &s->held)
		held_free(s, list_entry(link, struct held, link));
	timer_stop(&s->sink->loop->timers, &s->hold);
	sink_session_reset(s);
	list_remove(&s->link);
	assert(s->sink->open >= s->served && list_empty(&s->held));
	s->sink->open -= s->served;
	sink_auth_free(&s->auth);
	free(s->login);
	if (linger)
		stream_linger_close(&s->stream);
	else
		stream_free(&s->stream);
	buf_fini(&s->content);
	buf_fini(&s->reply);
	free(s);
}

void sink_session_drop(struct list *link)
{
	session_free(list_entry(link, struct sink_session, link), false);
}

void sink_session_reply(struct sink_session *s, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	buf_vprintf(&s->reply, fmt, args);
	va_end(args);
	buf_puts(&s->reply, "\r\n");
}

/* Its 220 has gone out. What came in clear behind the command is forgotten: RFC 3207 4.2, 5. */
static void shake_hands(struct sink_session *s)
{
	assert(!s->tls);
	buf_clear(stream_in(s->stream));
	stream_start_tls(s->stream, s->sink->tls, true, NULL, NULL);
	stream_resume(s->stream);
}

static void on_secured(struct sink_session *s)
{
	assert(s->state == SINK_HANDSHAKE && !s->tls);
	s->tls = true;
	s->greeted = false;
	sink_session_reset(s);
	s->state = SINK_COMMANDS;
	stream_deadline(s->stream, IDLE_MS);
}

static void send_held(void *owner)
{
	struct sink_session *s = owner;
	int64_t now = s->sink->loop->now_ms;
	struct list *first;
	while ((first = list_first(&s->held)) &&
	       list_entry(first, struct held, link)->due_ms <= now) {
		struct held *h = list_entry(first, struct held, link);
		buf_append(stream_out(s->stream), buf_data(&h->text), buf_len(&h->text));
		held_free(s, h);
	}
	if (first)
		timer_start(&s->sink->loop->timers, &s->hold,
			    list_entry(first, struct held, link)->due_ms);
	stream_flush(s->stream);
	if (s->state == SINK_CLOSING && !first)
		session_free(s, true);
	else if (s->state == SINK_HANDSHAKE && !first)
		shake_hands(s);
	else if (s->state != SINK_CLOSING && s->state != SINK_HANDSHAKE)
		stream_resume(s->stream);
}

static void hold_reply(struct sink_session *s)
{
	struct held *h = mem_zalloc(sizeof *h);
	h->due_ms = s->sink->loop->now_ms + s->sink->options->delay_ms;
	buf_append(&h->text, buf_data(&s->reply), buf_len(&s->reply));
	s->held_bytes += buf_len(&s->reply);
	list_append(&s->held, &h->link);
	buf_clear(&s->reply);
	if (!timer_active(&s->hold))
		timer_start(&s->sink->loop->timers, &s->hold, h->due_ms);
}

/* No command is read now. */
static bool is_deaf(const struct sink_session *s)
{
	return s->state == SINK_CLOSING || s->state == SINK_HANDSHAKE;
}

static bool unread_replies(struct sink_session *s)
{
	return buf_len(&s->reply) + s->held_bytes + buf_len(stream_out(s->stream)) > SINK_OUT_HIGH;
}

static void send_reply(struct sink_session *s)
{
	bool full = unread_replies(s);
	buf_append(stream_out(s->stream), buf_data(&s->reply), buf_len(&s->reply));
	buf_clear(&s->reply);
	stream_flush(s->stream);
	/* Where the socket has taken all at once, no STREAM_DRAINED comes. */
	if (full && !is_deaf(s) && !unread_replies(s))
		stream_resume(s->stream);
}

/* The end of a turn: what was answered goes out, now or later. The session may be gone then. */
static void turn_ends(struct sink_session *s)
{
	bool at_once = s->sink->options->delay_ms == 0;
	if (buf_len(&s->reply) > 0 && !at_once) {
		hold_reply(s);
	} else if (buf_len(&s->reply) > 0) {
		send_reply(s);
	}
	if (s->state == SINK_CLOSING && list_empty(&s->held))
		session_free(s, true);
	else if (s->state == SINK_HANDSHAKE && list_empty(&s->held))
		shake_hands(s);
}

/* True: a line was dealt with. */
static bool take_line(struct sink_session *s, struct buf *in)
{
	char *line = buf_data(in), *end = memchr(line, '\n', buf_len(in));
	size_t len = end ? (size_t)(end - line) + 1 : buf_len(in);
	if (len > SINK_LINE_MAX) {
		sink_session_reply(s, "500 5.5.2 Line too long");
		s->state = SINK_CLOSING;
		return false;
	}
	if (!end)
		return false;
	*end = '\0';
	if (end > line && end[-1] == '\r')
		end[-1] = '\0';
	sink_command(s, line);
	buf_consume(in, len);
	return true;
}

/* Content over the limit is counted and not kept. */
static void keep_content(struct sink_session *s, size_t before)
{
	s->size += buf_len(&s->content) - before;
	if (s->sink->folder < 0 || s->size > (uint64_t)s->sink->options->size_max)
		buf_clear(&s->content);
}

static bool take_data(struct sink_session *s, struct buf *in)
{
	size_t before = buf_len(&s->content);
	buf_consume(in, sink_data_take(&s->data, buf_data(in), buf_len(in), &s->content));
	keep_content(s, before);
	if (s->data.state != SINK_DATA_END)
		return false;
	s->state = SINK_COMMANDS;
	sink_content_end(s);
	return true;
}

static bool take_chunk(struct sink_session *s, struct buf *in)
{
	size_t before = buf_len(&s->content), len = buf_len(in);
	len = s->chunk_left < len ? (size_t)s->chunk_left : len;
	if (!s->chunk_void) {
		buf_append(&s->content, buf_data(in), len);
		keep_content(s, before);
	}
	buf_consume(in, len);
	s->chunk_left -= len;
	if (s->chunk_left > 0)
		return false;
	s->state = SINK_COMMANDS;
	if (s->chunk_void)
		return true;
	if (s->chunk_last)
		sink_content_end(s);
	else
		sink_session_reply(s, "250 2.0.0 Chunk received");
	return true;
}

static void take_input(struct sink_session *s)
{
	struct buf *in = stream_in(s->stream);
	bool more = true;
	stream_deadline(s->stream, IDLE_MS);
	while (more && !is_deaf(s) && !unread_replies(s)) {
		if (s->state == SINK_BDAT) /* a chunk may be empty */
			more = take_chunk(s, in);
		else if (buf_len(in) == 0)
			more = false;
		else
			more = s->state == SINK_DATA ? take_data(s, in) : take_line(s, in);
	}
	if (is_deaf(s) || unread_replies(s))
		stream_pause(s->stream);
	turn_ends(s);
}

static void on_event(void *owner, enum stream_event event)
{
	struct sink_session *s = owner;
	switch (event) {
	case STREAM_DATA:
		if (!is_deaf(s))
			take_input(s);
		break;
	case STREAM_DRAINED:
		if (!is_deaf(s))
			stream_resume(s->stream);
		break;
	case STREAM_TLS:
		on_secured(s);
		break;
	case STREAM_CONNECTED:
		break;
	default:
		session_free(s, false);
	}
}

void sink_session_new(struct sink *k, int fd)
{
	struct sink_session *s = mem_zalloc(sizeof *s);
	s->sink = k;
	s->stream = stream_accepted(k->loop, fd, on_event, s);
	list_init(&s->held);
	list_append(&k->sessions, &s->link);
	timer_init(&s->hold, send_held, s);
	s->served = k->options->limit == 0 || k->open < k->options->limit;
	if (!s->served) {
		k->turned_away++;
		sink_session_reply(s, "421 4.3.2 %s Too many connections", k->options->name);
		s->state = SINK_CLOSING;
		stream_pause(s->stream);
	} else {
		k->open++;
		k->most = k->open > k->most ? k->open : k->most;
		sink_session_reply(s, "220 %s ESMTP sluice sink", k->options->name);
	}
	stream_deadline(s->stream, IDLE_MS);
	turn_ends(s);
}
