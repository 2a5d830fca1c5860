/* SPDX-License-Identifier: ISC */
#include "cmd/http/page_watch.h"

#include "base/clock.h"
#include "cmd/http/http_core.h"
#include "cmd/http/page_print.h"

enum { TICK_MS = 1000 };

static void send_all(struct page_watch *w)
{
	const struct http_event events[EVENTS_KINDS] = {
		{"hour", &w->past, w->hour.taken},
		{"now", &w->now, w->ticks},
	};
	http_events_send(&w->http->events, events);
}

static void print_now(struct glancer *g, const struct snapshot *snapshot)
{
	struct page_watch *w = list_entry(g, struct page_watch, glancer);
	struct page_now now = {.hostname = w->http->conf->own_name,
			       .uptime_ms = clock_steady_ms() - w->http->started_ms,
			       .accepting = spool_accepting(w->http->spool),
			       .active_limit = w->http->conf->queue.message_active_limit,
			       .snapshot = snapshot,
			       .conf = w->http->conf,
			       .logins = w->http->top,
			       .nodes = w->http->nodes,
			       .epochs = w->http->epochs};
	page_point_take(&now.point, clock_wall_ms());
	w->ticks++;
	buf_clear(&w->now);
	page_print_now(&w->now, &now);
	buf_clear(&w->past);
	page_hour_print(&w->past, &w->hour);
	send_all(w);
}

static void keep_point(struct page_watch *w)
{
	int64_t now_ms = clock_steady_ms();
	if (now_ms < w->next_ms)
		return;
	w->next_ms = now_ms + PAGE_HOUR_STEP_MS;
	page_hour_take(&w->hour, clock_wall_ms());
}

static void on_tick(void *owner)
{
	struct page_watch *w = owner;
	loop_timer_in(w->http->loop, &w->tick, TICK_MS);
	keep_point(w);
	if (w->http->events.n == 0)
		return;
	glance_leave(&w->glancer); /* one that was not answered in a second */
	glance_at(&w->http->glance, &w->glancer);
}

void page_watch_init(struct page_watch *w, struct http *h)
{
	w->http = h;
	w->glancer.look = print_now;
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
	keep_point(w);
	loop_timer_in(w->http->loop, &w->tick, TICK_MS);
}

void page_watch_stop(struct page_watch *w)
{
	timer_stop(&w->http->loop->timers, &w->tick);
	glance_leave(&w->glancer);
}
