/* SPDX-License-Identifier: ISC */
#include "cmd/page_watch.h"

#include "base/clock.h"
#include "cmd/explain_print.h"
#include "cmd/http_core.h"
#include "cmd/shape_args.h"
#include "qmgr/explain.h"

#include <assert.h>

enum { TICK_MS = 1000, SELDOM_MS = 5000, SELDOM_MAX_MS = 60000, SHARE = 100 };

/* How many of all are still in a ring, and where it begins. */
static int held(unsigned all, int size)
{
	return all < (unsigned)size ? (int)all : size;
}

static int oldest_of(unsigned all, int size)
{
	return all < (unsigned)size ? 0 : (int)(all % (unsigned)size);
}

static bool watched(const struct page_watch *w)
{
	return w->http->events.n > 0;
}

/* --- what is asked seldom */

static bool due(struct page_question *q)
{
	int64_t now_ms = clock_steady_ms();
	if (q->in_flight || now_ms < q->next_ms)
		return false;
	q->in_flight = true;
	q->asked_ms = now_ms;
	return true;
}

static void answered(struct page_question *q)
{
	int64_t now_ms = clock_steady_ms(), pause_ms = (now_ms - q->asked_ms) * SHARE;
	if (pause_ms < SELDOM_MS)
		pause_ms = SELDOM_MS;
	if (pause_ms > SELDOM_MAX_MS)
		pause_ms = SELDOM_MAX_MS;
	q->in_flight = false;
	q->next_ms = now_ms + pause_ms;
	q->number++;
}

static void take_shape(struct asker *asker, struct note *note)
{
	struct page_question *q = (struct page_question *)asker;
	struct page_watch *w = q->watch;
	struct spool_command *c = (struct spool_command *)note;
	struct page_ages *ages = &w->ages[w->nages++ % PAGE_SHAPES];
	ages->at_ms = clock_wall_ms();
	for (int i = 0; i < c->shape->buckets; i++)
		ages->count[i] = c->shape->all.count[i];
	answered(q);
	buf_clear(&q->text);
	page_print_shape(&q->text, c->shape, SHAPE_MINUTES, w->ages, held(w->nages, PAGE_SHAPES),
			 oldest_of(w->nages, PAGE_SHAPES));
	spool_command_free(&c);
}

static void ask_shape(struct page_watch *w)
{
	struct http *h = w->http;
	if (!due(&w->shape))
		return;
	struct spool_command *c = spool_command_new(SPOOL_SHAPE, h->loop, &w->shape.asker);
	c->shape = shape_new();
	c->shape->queues =
		1u << SPOOL_INCOMING | 1u << SPOOL_ACTIVE | 1u << SPOOL_DEFERRED | 1u << SPOOL_HOLD;
	loop_post(spool_loop(h->spool), &c->note);
}

/* --- the oldest messages */

static void print_oldest(struct page_watch *w)
{
	struct buf *to = &w->slow.text;
	buf_clear(to);
	buf_puts(to, "{\"messages\":[");
	for (int i = 0; i < w->oldest->nrow; i++) {
		const struct spool_row *row = &w->oldest->row[i];
		if (buf_len(&w->why[i]) == 0)
			explain_print_spooled(&w->why[i], row, true, clock_wall_ms());
		buf_puts(to, i > 0 ? "," : "");
		page_print_message(to, row, buf_cstr(&w->why[i]));
	}
	buf_puts(to, "]}");
	spool_command_free(&w->oldest);
	answered(&w->slow);
}

static void take_why(struct page_watch *w, struct explain_question *x)
{
	assert(w->oldest && w->unexplained > 0);
	for (int i = 0; i < w->oldest->nrow; i++)
		if (w->oldest->row[i].envelope->id == x->id)
			explain_print(&w->why[i], x, true, clock_wall_ms());
	explain_question_free(&x);
	if (--w->unexplained == 0)
		print_oldest(w);
}

static void take_oldest(struct page_watch *w, struct spool_command *c)
{
	struct http *h = w->http;
	w->oldest = c;
	w->unexplained = 0;
	for (int i = 0; i < c->nrow; i++) {
		buf_clear(&w->why[i]);
		if (c->row[i].queue != SPOOL_ACTIVE || !watched(w))
			continue;
		struct explain_question *x =
			explain_question_new(c->row[i].envelope->id, NULL, h->loop, &w->slow.asker);
		w->unexplained++;
		loop_post(h->qmgr, &x->note);
	}
	if (w->unexplained == 0)
		print_oldest(w);
}

static void take_slow(struct asker *asker, struct note *note)
{
	struct page_watch *w = ((struct page_question *)asker)->watch;
	if (note->type == QMGR_EXPLAIN)
		take_why(w, (struct explain_question *)note);
	else
		take_oldest(w, (struct spool_command *)note);
}

static void ask_slow(struct page_watch *w)
{
	if (!due(&w->slow))
		return;
	struct spool_command *c = spool_command_new(SPOOL_LIST, w->http->loop, &w->slow.asker);
	c->limit = PAGE_MESSAGES;
	loop_post(spool_loop(w->http->spool), &c->note);
}

/* --- each second */

static void send_all(struct page_watch *w)
{
	const struct http_event events[EVENTS_KINDS] = {
		{"past", &w->past, 1}, /* once to each */
		{"now", &w->now, w->ticks},
		{"shape", &w->shape.text, w->shape.number},
		{"slow", &w->slow.text, w->slow.number},
	};
	http_events_send(&w->http->events, events);
}

static void look(struct glancer *g, const struct snapshot *snapshot)
{
	struct page_watch *w = list_entry(g, struct page_watch, glancer);
	struct page_now now = {.hostname = w->http->conf->hostname,
			       .uptime_ms = clock_steady_ms() - w->http->started_ms,
			       .accepting = spool_accepting(w->http->spool),
			       .snapshot = snapshot};
	page_sample_take(&now.sample, clock_wall_ms());
	w->ticks++;
	buf_clear(&w->now);
	page_print_now(&w->now, &now);
	buf_clear(&w->past);
	page_print_past(&w->past, w->sample, held(w->nsample, PAGE_SECONDS),
			oldest_of(w->nsample, PAGE_SECONDS));
	send_all(w);
}

static void on_tick(void *owner)
{
	struct page_watch *w = owner;
	loop_timer_in(w->http->loop, &w->tick, TICK_MS);
	page_sample_take(&w->sample[w->nsample++ % PAGE_SECONDS], clock_wall_ms());
	if (!watched(w))
		return;
	ask_shape(w);
	ask_slow(w);
	glance_leave(&w->glancer); /* one that was not answered in a second */
	glance_at(&w->http->glance, &w->glancer);
}

static void question_init(struct page_question *q, struct page_watch *w,
			  void (*answer)(struct asker *, struct note *))
{
	q->asker.answer = answer;
	q->watch = w;
}

void page_watch_init(struct page_watch *w, struct http *h)
{
	w->http = h;
	w->glancer.look = look;
	list_init(&w->glancer.link);
	timer_init(&w->tick, on_tick, w);
	question_init(&w->shape, w, take_shape);
	question_init(&w->slow, w, take_slow);
}

void page_watch_fini(struct page_watch *w)
{
	buf_fini(&w->now);
	buf_fini(&w->past);
	buf_fini(&w->shape.text);
	buf_fini(&w->slow.text);
	spool_command_free(&w->oldest);
	for (int i = 0; i < PAGE_MESSAGES; i++)
		buf_fini(&w->why[i]);
}

void page_watch_start(struct page_watch *w)
{
	loop_timer_in(w->http->loop, &w->tick, TICK_MS);
}

void page_watch_stop(struct page_watch *w)
{
	timer_stop(&w->http->loop->timers, &w->tick);
	glance_leave(&w->glancer);
}
