/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/flow_rate.h"

#include "base/mem.h"
#include "base/sharing.h"
#include "qmgr/sched/backlog.h"
#include "qmgr/sched/selection.h"

#include <stdlib.h>
#include <string.h>

/* To the cluster, and no destination's key is like it: those have a space. */
static const char shared_as[] = "flow/";

static void bar_flow(struct flow *f)
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

static void unbar_flow(struct flow *f)
{
	f->barred = false;
	list_each (link, tmp, &f->backlogs) {
		struct backlog *b = list_entry(link, struct backlog, in_flow);
		backlog_unbar(b);
		scheduler_touch(b->queue);
	}
}

static const struct conf_rate *rate_of(const struct flow *f)
{
	return &f->settings->rate;
}

static int64_t now_ms_of(const struct flow *f)
{
	return scheduler_now_ms(f->scheduler);
}

/* In even steps from then on. */
static int64_t even_ms(const struct flow *f)
{
	return flow_shares_rate(f) ? pace_reserved_ms(&f->pace, rate_of(f), now_ms_of(f))
				   : (f->pace.deliveries.next_us + 999) / 1000;
}

/* The next may not be selected before. */
static int64_t bar_ms(const struct flow *f)
{
	return flow_shares_rate(f) ? pace_early_ms(&f->pace, rate_of(f), now_ms_of(f))
				   : pace_due_ms(&f->pace, rate_of(f));
}

/* Is there something to be done, or to be remembered, until it is even? */
static bool has_time_to_wait_for(const struct flow *f)
{
	return flow_shares_rate(f) ? f->barred && f->unselected > 0
				   : pace_used(&f->pace, now_ms_of(f));
}

static void look_when_even(void *owner);

static void set_due_timer(struct flow *f)
{
	struct timers *timers = &f->scheduler->loop->timers;
	if (!has_time_to_wait_for(f)) {
		timer_stop(timers, &f->due);
		return;
	}
	if (!timer_active(&f->due))
		timer_init(&f->due, look_when_even, f);
	timer_start(timers, &f->due, even_ms(f));
}

static void use_reserved(struct flow *f)
{
	pace_keep(&f->pace, now_ms_of(f));
	pace_use(&f->pace, rate_of(f));
}

static void reserve_block(struct flow *f)
{
	pace_keep(&f->pace, now_ms_of(f));
	int64_t more = pace_wants(&f->pace, rate_of(f), f->unselected, now_ms_of(f));
	if (more == 0)
		return;
	char *key = mem_printf("%s%s", shared_as, f->name);
	f->scheduler->share(f->scheduler,
			    &sharing_want_new(f->scheduler->loop, key, rate_of(f), more)->note);
	free(key);
}

static void look_at_flow(struct flow *f)
{
	if (flow_shares_rate(f))
		reserve_block(f);
	if (!f->barred && bar_ms(f) > now_ms_of(f))
		bar_flow(f);
	else if (f->barred && even_ms(f) <= now_ms_of(f))
		unbar_flow(f);
	set_due_timer(f);
}

static void look_when_even(void *owner)
{
	struct flow *f = owner;
	struct scheduler *sched = f->scheduler;
	look_at_flow(f);
	flow_free_unused(f);
	sched->settle(sched);
}

void flow_rate_wait(struct flow *f)
{
	if (f->barred && flow_shares_rate(f) && !timer_active(&f->due))
		look_at_flow(f);
}

bool flow_rate_reserved(struct scheduler *sched, struct sharing_want *w)
{
	struct flow *f = NULL;
	size_t head = strlen(shared_as);
	if (strncmp(w->key, shared_as, head) == 0)
		HASH_FIND_STR(sched->flows, w->key + head, f);
	if (!f)
		return false;
	if (f->pace.wanted) {
		pace_granted(&f->pace, w->n, w->from_us, w->again_us);
		look_at_flow(f);
	}
	free(w);
	return true;
}

void flow_rate_count(struct flow *f)
{
	if (rate_of(f)->events == 0)
		return;
	if (flow_shares_rate(f))
		use_reserved(f);
	else
		pace_count(&f->pace, rate_of(f), now_ms_of(f));
	look_at_flow(f);
}

void flow_rate_uncount(struct flow *f)
{
	if (flow_shares_rate(f))
		pace_give_back(&f->pace, rate_of(f), now_ms_of(f));
	else
		pace_uncount(&f->pace, rate_of(f));
	look_at_flow(f);
}

void flow_rates_configure(struct scheduler *sched)
{
	struct flow *f, *next;
	HASH_ITER(hh, sched->flows, f, next)
	{
		pace_cap(&f->pace, rate_of(f), scheduler_now_ms(sched));
		look_at_flow(f);
		flow_free_unused(f);
	}
}

int64_t flow_rate_due_ms(const struct flow *f)
{
	return f->barred ? even_ms(f) : 0;
}
