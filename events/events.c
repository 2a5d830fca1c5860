/* SPDX-License-Identifier: ISC */
#include "events/events.h"

#include "base/clock.h"
#include "base/conf_note.h"
#include "base/event_line.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "events/receiver.h"

#include <assert.h>
#include <curl/curl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	EVENTS_CONF = NOTES_FROM(NOTES_OF_EVENTS),
	RETRY_FIRST_MS = 1000,
	FAREWELL_MS = 1000,
};

/* Each wake-up for one event would cost more than the event. */
static const double GATHER_SECONDS = 0.02;

struct events {
	struct loop *loop;
	struct conf *conf;
	struct receiver *receiver; /* or NULL */
	_Atomic int64_t end_ms;	   /* steady clock: its last chance, for the stop; 0: none yet */
	struct buf waiting;	   /* whole lines */
	int64_t count;		   /* of them */
	bool away;		   /* it was said, and not that it is back */
	int64_t wait_ms;	   /* before it is tried again; 0: nothing went wrong last */
	struct timer due;
	bool ended;
};

static int64_t count_lines(const char *text, size_t len)
{
	assert(len == 0 || text[len - 1] == '\n');
	int64_t n = 0;
	for (const char *end = text + len; text < end; n++)
		text = (const char *)memchr(text, '\n', (size_t)(end - text)) + 1;
	return n;
}

static void add_lines(struct events *e, const char *lines, size_t len, int64_t n)
{
	assert(n > 0 || len == 0);
	buf_append(&e->waiting, lines, len);
	e->count += n;
}

static void say_state(const struct events *e, const char *state, const char *why)
{
	log_event(why ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "events", "to", e->conf->events.to,
		  "state", state, "reason", why, "waiting", log_number(e->count), NULL);
}

static void say_refused(const struct events *e, int64_t n, const char *why)
{
	log_event(LOG_LEVEL_WARNING, "events", "to", e->conf->events.to, "state", "refused",
		  "reason", why, "refused", log_number(n), NULL);
}

/* The lines are the receiver's, or nobody's: there is room for others. */
static int64_t forget_lines(struct events *e, size_t len, enum metric as)
{
	int64_t n = count_lines(buf_data(&e->waiting), len);
	buf_consume(&e->waiting, len);
	buf_release(&e->waiting);
	assert(e->count >= n);
	e->count -= n;
	event_line_room_give(len);
	metrics_add(METRIC_events_waiting, -n);
	metrics_add(as, n);
	return n;
}

static void put_off(struct events *e, const char *why)
{
	int64_t asked_ms = receiver_retry_ms(e->receiver);
	int64_t most_ms = e->conf->events.backoff_max;
	if (!e->away)
		say_state(e, "away", why);
	e->away = true;
	e->wait_ms = e->wait_ms ? e->wait_ms * 2 : RETRY_FIRST_MS;
	if (e->wait_ms > most_ms)
		e->wait_ms = most_ms;
	if (asked_ms > e->wait_ms)
		e->wait_ms = asked_ms;
	assert(e->wait_ms > 0);
}

/* False: not now. */
static bool give_once(struct events *e)
{
	size_t taken;
	struct buf why = {0};
	enum receiver_answer answer = receiver_give(e->receiver, buf_data(&e->waiting),
						    buf_len(&e->waiting), &taken, &why);
	assert(taken <= buf_len(&e->waiting));
	bool refused = answer == RECEIVER_REFUSES;
	int64_t n = forget_lines(e, taken, refused ? METRIC_events_refused : METRIC_events_taken);
	if (refused)
		say_refused(e, n, buf_cstr(&why));
	if (answer == RECEIVER_AWAY) {
		put_off(e, buf_cstr(&why));
	} else {
		e->wait_ms = 0;
		if (e->away)
			say_state(e, "back", NULL);
		e->away = false;
	}
	buf_fini(&why);
	return answer != RECEIVER_AWAY;
}

/* Notes are taken between two batches, so that a stop or a reload is not kept waiting. */
static void give_waiting(void *owner)
{
	struct events *e = owner;
	assert(e->receiver && e->count > 0);
	bool taken = give_once(e);
	if (e->count > 0)
		loop_timer_in(e->loop, &e->due, taken ? 0 : e->wait_ms);
}

/* Nobody wants them any more. */
static void drop_waiting(struct events *e)
{
	int64_t n = forget_lines(e, buf_len(&e->waiting), METRIC_events_lost);
	log_event(LOG_LEVEL_WARNING, "events", "state", "lost", "reason", "events.to is empty now",
		  "lost", log_number(n), NULL);
}

/* When a batch is full, or the first of it has waited long enough. */
static void look_when(struct events *e)
{
	if (e->count > 0 && !e->receiver)
		drop_waiting(e);
	if (e->count == 0 || e->wait_ms > 0)
		return;
	if (e->count >= e->conf->events.batch)
		loop_timer_in(e->loop, &e->due, 0);
	else if (!timer_active(&e->due))
		loop_timer_in(e->loop, &e->due, e->conf->events.delay);
}

static void use_conf(struct events *e, struct conf *conf)
{
	receiver_free(&e->receiver);
	e->receiver = receiver_new(conf, &e->end_ms);
	conf_unref(e->conf);
	e->conf = conf;
	event_line_room_limit(conf->events.buffer);
	e->away = false;
	e->wait_ms = 0;
	timer_stop(&e->loop->timers, &e->due);
}

static void receive_note(void *owner, struct note *note)
{
	struct events *e = owner;
	struct event_line *event = (struct event_line *)note;
	switch (note->type) {
	case EVENT_LINE:
		add_lines(e, event->line, event->len, count_lines(event->line, event->len));
		free(note);
		break;
	case EVENTS_CONF:
		use_conf(e, conf_note_take(note));
		break;
	default:
		assert(0 && "a note that events does not know");
	}
}

static void received_all(void *owner)
{
	look_when(owner);
}

struct events *events_new(struct conf *conf)
{
	struct events *e = mem_zalloc(sizeof *e);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	e->loop = loop_new("events", receive_note, received_all, e);
	ev_set_io_collect_interval(e->loop->ev, GATHER_SECONDS);
	timer_init(&e->due, give_waiting, e);
	use_conf(e, conf_ref(conf));
	return e;
}

void events_start(struct events *e)
{
	look_when(e);
	loop_start(e->loop);
}

void events_reload(struct events *e, struct conf *conf)
{
	conf_note_post(e->loop, EVENTS_CONF, conf);
}

struct loop *events_loop(struct events *e)
{
	return e->loop;
}

/* Whoever was away keeps nobody waiting. */
static void say_farewell(struct events *e)
{
	int64_t end_ms = atomic_load(&e->end_ms);
	mailbox_drain(&e->loop->mailbox);
	while (e->receiver && e->count > 0 && e->wait_ms == 0 && clock_steady_ms() < end_ms)
		give_once(e);
	e->ended = true;
}

void events_stop(struct events *e)
{
	if (e->ended)
		return;
	atomic_store(&e->end_ms, clock_steady_ms() + FAREWELL_MS);
	loop_stop(e->loop);
	say_farewell(e);
}

void events_recall(struct events *e, const char *text)
{
	assert(!e->loop->running && !e->ended);
	size_t len = strlen(text);
	int64_t n = count_lines(text, len);
	/* The last line was within the room that there was; what comes next waits for less of it. */
	if (!event_line_room_take(len)) {
		metrics_add(METRIC_events_lost, n);
		log_event(LOG_LEVEL_WARNING, "events", "state", "lost", "lost", log_number(n),
			  "reason", "events.buffer has become too small for those that waited",
			  NULL);
		return;
	}
	add_lines(e, text, len, n);
	metrics_add(METRIC_events_waiting, n);
}

const char *events_left(struct events *e)
{
	assert(e->ended);
	return buf_cstr(&e->waiting);
}

void events_free(struct events **ep)
{
	struct events *e = *ep;
	if (!e)
		return;
	loop_stop(e->loop);
	timer_stop(&e->loop->timers, &e->due);
	mailbox_drain(&e->loop->mailbox);
	receiver_free(&e->receiver);
	loop_free(&e->loop);
	buf_fini(&e->waiting);
	conf_unref(e->conf);
	curl_global_cleanup();
	free(e);
	*ep = NULL;
}
