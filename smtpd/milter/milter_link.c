/* SPDX-License-Identifier: ISC */
#include "smtpd/milter/milter_link.h"

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/magic.h"
#include "base/mem.h"
#include "base/number.h"
#include "smtpd/milter/milter_health.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	LINK_MAGIC = 0x3117e411,
	FULL = 256 << 10, /* bytes that it has not read */
	REST_FIRST_MS = 100,
	REST_MOST_MS = 5000,
	NO_REUSE_MS = 600000, /* until it is tried again */
};

/* One filter, as a thread knows it. */
struct milter_site {
	struct list link;
	struct milters *milters;
	char *name, *address;
	union address to;
	struct list idle;	   /* the latest first */
	struct list parting;	   /* that negotiate again */
	int nidle, nlink;	   /* of both; all of them */
	int64_t rest_ms, until_ms; /* until_ms: steady clock; it is left alone, */
	int64_t failed_ms;	   /* since then, unless another thread finds it well */
	int64_t no_reuse_ms;	   /* steady clock; until then a connection is for one client */
};

struct milters {
	struct loop *loop;
	struct list sites;
};

static struct loop *loop_of(const struct milter_link *l)
{
	return l->site->milters->loop;
}

struct milters *milters_new(struct loop *loop)
{
	struct milters *m = mem_zalloc(sizeof *m);
	m->loop = loop;
	list_init(&m->sites);
	return m;
}

static void site_free(struct milter_site *s)
{
	assert(s->nidle == 0 && s->nlink == 0);
	list_remove(&s->link);
	free(s->name);
	free(s->address);
	free(s);
}

static void drop_all(struct list *links)
{
	list_each_entry (struct milter_link, l, link, links)
		milter_link_drop(&l);
}

void milters_free(struct milters **mp)
{
	struct milters *m = *mp;
	if (!m)
		return;
	list_each_entry (struct milter_site, s, link, &m->sites) {
		drop_all(&s->idle);
		drop_all(&s->parting);
		site_free(s);
	}
	free(m);
	*mp = NULL;
}

static struct milter_site *find_site(struct milters *m, const struct conf_milter *c)
{
	list_each_entry (struct milter_site, s, link, &m->sites)
		if (strcmp(s->name, c->title) == 0 && strcmp(s->address, c->address) == 0)
			return s;
	struct milter_site *s = mem_zalloc(sizeof *s);
	s->milters = m;
	s->name = mem_strdup(c->title);
	s->address = mem_strdup(c->address);
	s->to = c->to;
	s->rest_ms = REST_FIRST_MS;
	list_init(&s->idle);
	list_init(&s->parting);
	list_append(&m->sites, &s->link);
	return s;
}

/* The filter has given a sign of life. */
static void restart_deadline(struct milter_link *l)
{
	int64_t left = l->until_ms - clock_steady_ms();
	left = number_min(left, l->timeout_ms);
	loop_timer_in(loop_of(l), &l->deadline, left > 1 ? left : 1);
}

static void fail_link(struct milter_link *l, const char *why)
{
	struct milter_site *s = l->site;
	timer_stop(&loop_of(l)->timers, &l->deadline);
	if (!l->owner) {
		milter_link_drop(&l);
		return;
	}
	assert(!l->why); /* it is told once, and drops it */
	if (!l->ready && s->until_ms <= clock_steady_ms()) {
		s->failed_ms = clock_steady_ms();
		s->until_ms = s->failed_ms + s->rest_ms;
		s->rest_ms = number_min(s->rest_ms * 2, REST_MOST_MS);
	}
	l->why = why;
	l->event(l->owner, MILTER_LINK_FAILED, NULL);
}

static void become_idle(struct milter_link *l)
{
	list_remove(&l->link);
	list_prepend(&l->site->idle, &l->link);
	loop_timer_in(loop_of(l), &l->deadline, MILTER_IDLE_MS);
}

static void become_ready(struct milter_link *l)
{
	l->ready = true;
	if (!l->owner) {
		become_idle(l);
		return;
	}
	l->site->rest_ms = REST_FIRST_MS;
	l->site->until_ms = 0;
	timer_stop(&loop_of(l)->timers, &l->deadline);
	l->event(l->owner, MILTER_LINK_READY, NULL);
}

/* After an answer, or once it is ready, whoever has it may drop it, and all that refers to it: nothing of
 * it is touched afterwards. */
static void hear_answers(struct milter_link *l)
{
	struct milter_answer a;
	for (;;) {
		switch (milter_engine_take(&l->engine, stream_in(l->stream), &a)) {
		case MILTER_SAYS_NOTHING:
			return;
		case MILTER_SAYS_READY:
			become_ready(l);
			return;
		case MILTER_SAYS_CHANGE:
			l->reused = false;
			restart_deadline(l);
			if (!l->event(l->owner, MILTER_LINK_CHANGE, &a))
				return;
			break;
		case MILTER_SAYS_WAIT:
			l->reused = false;
			restart_deadline(l);
			break;
		case MILTER_SAYS_ANSWER:
			l->reused = false;
			timer_stop(&loop_of(l)->timers, &l->deadline);
			milter_health_answered(l->site->name, a.kind, a.reply,
					       clock_steady_us() - l->asked_us);
			l->event(l->owner, MILTER_LINK_ANSWER, &a);
			return;
		case MILTER_SAYS_FAULT:
			fail_link(l, l->engine.fault);
			return;
		}
	}
}

static void on_event(void *owner, enum stream_event event)
{
	struct milter_link *l = owner;
	magic_check(l, LINK_MAGIC);
	switch (event) {
	case STREAM_CONNECTED:
		milter_engine_hello(&l->engine, stream_out(l->stream));
		stream_flush(l->stream);
		break;
	case STREAM_DATA:
		hear_answers(l);
		break;
	case STREAM_DRAINED:
		if (timer_active(&l->deadline))
			restart_deadline(l);
		if (l->owner && l->ready)
			l->event(l->owner, MILTER_LINK_DRAINED, NULL);
		break;
	case STREAM_EOF:
		fail_link(l, "it has closed the connection");
		break;
	case STREAM_ERROR:
		fail_link(l, stream_error(l->stream));
		break;
	default:
		break;
	}
}

static void on_deadline(void *owner)
{
	struct milter_link *l = owner;
	magic_check(l, LINK_MAGIC);
	if (!l->ready && !l->owner)
		l->site->no_reuse_ms = clock_steady_ms() + NO_REUSE_MS;
	fail_link(l, l->ready ? "it does not answer" : "it cannot be reached, or is silent");
}

static struct milter_link *link_new(struct milter_site *s)
{
	struct milter_link *l = mem_zalloc(sizeof *l);
	l->magic = LINK_MAGIC;
	list_init(&l->link);
	l->site = s;
	s->nlink++;
	descriptors_count(DESCRIPTORS_CLIENTS);
	timer_init(&l->deadline, on_deadline, l);
	milter_engine_init(&l->engine);
	l->stream = stream_connect(s->milters->loop, &s->to, NULL, on_event, l);
	return l;
}

static struct milter_link *take_idle(struct milter_site *s)
{
	struct list *first = list_first(&s->idle);
	if (!first)
		return NULL;
	struct milter_link *l = list_entry(first, struct milter_link, link);
	list_remove(&l->link);
	assert(s->nidle > 0);
	s->nidle--;
	assert(l->ready);
	timer_stop(&loop_of(l)->timers, &l->deadline);
	l->reused = true;
	return l;
}

static bool is_left_alone(const struct milter_site *s)
{
	return s->until_ms > clock_steady_ms() && !milter_health_seen_since(s->name, s->failed_ms);
}

struct milter_link *milter_link_get(struct milters *m, const struct conf_milter *c,
				    milter_link_handler *event, void *owner)
{
	struct milter_site *s = find_site(m, c);
	struct milter_link *l = take_idle(s);
	if (!l && is_left_alone(s))
		return NULL;
	if (!l)
		l = link_new(s);
	assert(owner && !l->owner);
	l->event = event;
	l->owner = owner;
	l->timeout_ms = c->timeout;
	milter_link_patience(l);
	if (!l->ready) {
		l->until_ms = clock_steady_ms() + l->timeout_ms;
		restart_deadline(l);
	}
	return l;
}

void milter_link_patience(struct milter_link *l)
{
	l->until_ms = clock_steady_ms() + MILTER_PATIENCE_TIMES * l->timeout_ms;
}

struct buf *milter_link_out(struct milter_link *l)
{
	return stream_out(l->stream);
}

bool milter_link_ask(struct milter_link *l, enum milter_event event, const void *data, size_t len)
{
	assert(l->ready);
	bool answers = milter_engine_ask(&l->engine, event, data, len, stream_out(l->stream));
	l->asked_us = clock_steady_us();
	if (answers || milter_link_full(l))
		restart_deadline(l);
	/* A header, or a body, goes out in few writes where nothing is said to its parts. */
	bool part = event == MILTER_HEADER || event == MILTER_BODY;
	if (answers || !part || buf_len(stream_out(l->stream)) > STREAM_LOW)
		stream_flush(l->stream);
	return answers;
}

bool milter_link_full(struct milter_link *l)
{
	return buf_len(stream_out(l->stream)) > FULL;
}

void milter_link_abort(struct milter_link *l)
{
	milter_engine_order(&l->engine, MILTER_ABORT, stream_out(l->stream));
	stream_flush(l->stream);
}

static bool is_of_use(struct milter_link *l)
{
	return l->ready && !l->why && l->engine.state == MILTER_IDLE &&
	       l->engine.version >= MILTER_VERSION && l->site->nidle < MILTER_IDLE_MAX &&
	       l->site->no_reuse_ms <= clock_steady_ms() && buf_len(stream_out(l->stream)) == 0 &&
	       stream_quiet(l->stream);
}

void milter_link_put(struct milter_link **lp)
{
	struct milter_link *l = mem_take(lp);
	if (!l)
		return;
	if (!is_of_use(l)) {
		milter_link_drop(&l);
		return;
	}
	assert(l->owner);
	milter_engine_again(&l->engine, stream_out(l->stream));
	stream_flush(l->stream);
	l->ready = false;
	l->owner = NULL;
	list_append(&l->site->parting, &l->link);
	l->site->nidle++;
	loop_timer_in(loop_of(l), &l->deadline, MILTER_AGAIN_MS);
}

void milter_link_drop(struct milter_link **lp)
{
	struct milter_link *l = mem_take(lp);
	if (!l)
		return;
	magic_check(l, LINK_MAGIC);
	timer_stop(&loop_of(l)->timers, &l->deadline);
	assert(l->owner || l->site->nidle > 0);
	if (!l->owner)
		l->site->nidle--;
	list_remove(&l->link);
	if (l->ready && !l->why && l->engine.state == MILTER_IDLE) {
		milter_engine_order(&l->engine, MILTER_QUIT, stream_out(l->stream));
		stream_close_quietly(&l->stream);
	} else {
		stream_free(&l->stream);
	}
	milter_engine_fini(&l->engine);
	descriptors_give(DESCRIPTORS_CLIENTS);
	assert(l->site->nlink > 0);
	l->site->nlink--;
	magic_free(l);
}
