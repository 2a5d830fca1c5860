/* SPDX-License-Identifier: ISC */
#include "cmd/http/page_watch.h"

#include "base/clock.h"
#include "cmd/http/http_core.h"

enum { TICK_MS = 1000 };

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

static void send_all(struct page_watch *w)
{
	const struct http_event events[EVENTS_KINDS] = {
		{"past", &w->past, 1}, /* once to each */
		{"now", &w->now, w->ticks},
	};
	http_events_send(&w->http->events, events);
}

static void look(struct glancer *g, const struct snapshot *snapshot)
{
	struct page_watch *w = list_entry(g, struct page_watch, glancer);
	struct page_now now = {.hostname = w->http->conf->hostname,
			       .uptime_ms = clock_steady_ms() - w->http->started_ms,
			       .accepting = spool_accepting(w->http->spool),
			       .active_limit = w->http->conf->queue.message_active_limit,
			       .snapshot = snapshot,
			       .nodes = w->http->nodes,
			       .epochs = w->http->epochs};
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
	glance_leave(&w->glancer); /* one that was not answered in a second */
	glance_at(&w->http->glance, &w->glancer);
}

void page_watch_init(struct page_watch *w, struct http *h)
{
	w->http = h;
	w->glancer.look = look;
	list_init(&w->glancer.link);
	timer_init(&w->tick, on_tick, w);
}

void page_watch_fini(struct page_watch *w)
{
	buf_fini(&w->now);
	buf_fini(&w->past);
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
