/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/flow_rate.h"

#include "qmgr/sched/backlog.h"
#include "qmgr/sched/selection.h"

static void bar(struct flow *f)
{
	f->barred = true;
	list_each (link, tmp, &f->backlogs) {
		struct backlog *b = list_entry(link, struct backlog, in_flow);
		struct queue *queue = b->queue;
		if (queue->backlogs.n == 1)
			selection_set(queue, QUEUE_QUIET);
		backlog_bar(b);
		scheduler_touch(queue);
	}
}

static void unbar(struct flow *f)
{
	f->barred = false;
	list_each (link, tmp, &f->backlogs) {
		struct backlog *b = list_entry(link, struct backlog, in_flow);
		backlog_unbar(b);
		scheduler_touch(b->queue);
	}
}

static void expired(void *owner);

/* In even steps from then on. */
static int64_t even_ms(const struct flow *f)
{
	return (f->pace.deliveries.next_us + 999) / 1000;
}

static void watch(struct flow *f)
{
	struct timers *timers = &f->scheduler->loop->timers;
	if (!pace_used(&f->pace, scheduler_now_ms(f->scheduler))) {
		timer_stop(timers, &f->due);
		return;
	}
	if (!timer_active(&f->due))
		timer_init(&f->due, expired, f);
	timer_start(timers, &f->due, even_ms(f));
}

static void look(struct flow *f)
{
	int64_t now_ms = scheduler_now_ms(f->scheduler);
	if (!f->barred && pace_due_ms(&f->pace, &f->settings->rate) > now_ms)
		bar(f);
	else if (f->barred && !pace_used(&f->pace, now_ms))
		unbar(f);
	watch(f);
}

static void expired(void *owner)
{
	struct flow *f = owner;
	struct scheduler *sched = f->scheduler;
	look(f);
	flow_free_unused(f);
	sched->settle(sched);
}

void flow_rate_count(struct flow *f)
{
	if (f->settings->rate.events == 0)
		return;
	pace_count(&f->pace, &f->settings->rate, scheduler_now_ms(f->scheduler));
	look(f);
}

void flow_rate_uncount(struct flow *f)
{
	pace_uncount(&f->pace, &f->settings->rate);
	look(f);
}

void flow_rates_configure(struct scheduler *sched)
{
	struct flow *f, *next;
	HASH_ITER(hh, sched->flows, f, next)
	{
		pace_cap(&f->pace, &f->settings->rate, scheduler_now_ms(sched));
		look(f);
		flow_free_unused(f);
	}
}

int64_t flow_rate_due_ms(const struct flow *f)
{
	return f->barred ? even_ms(f) : 0;
}
