/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/pool.h"

#include "base/number.h"

#include <assert.h>

static void lend_unused(struct transport *t, struct job *job)
{
	if (!job || t->rcpt_unused <= 0)
		return;
	job->rcpt_limit += t->rcpt_unused;
	job->work->rcpt_limit += t->rcpt_unused;
	t->rcpt_unused = 0;
}

static struct job *unread_behind(const struct job *job)
{
	for (struct list *l = job->in_time.next; l != &job->transport->jobs; l = l->next) {
		struct job *next = list_entry(l, struct job, in_time);
		if (next->work->unread > 0)
			return next;
	}
	return NULL;
}

void pool_return(struct job *job)
{
	struct transport *t = job->transport;
	struct work *w = job->work;
	if (t->next_unread == job && w->unread == 0)
		t->next_unread = unread_behind(job);
	/* The job keeps its slots while there is something to read into them. */
	bool keeps = w->unread > 0 && (job == t->next_unread || job->stack.level > 0);
	int64_t unused = job->rcpt_limit - job->rcpt_count;
	int64_t of_message = w->rcpt_limit - w->rcpt_count;
	if (unused > of_message)
		unused = of_message;
	if (keeps || unused <= 0)
		return;
	job->rcpt_limit -= unused;
	w->rcpt_limit -= unused;
	t->rcpt_unused += unused;
	lend_unused(t, t->next_unread);
}

void pool_enter(struct job *job)
{
	struct transport *t = job->transport;
	struct job *unread = t->next_unread;
	if (!unread || unread->work->order > job->work->order) {
		t->next_unread = job;
		if (unread)
			pool_return(unread);
	}
	lend_unused(t, job);
}

void pool_leave(struct job *job)
{
	struct transport *t = job->transport;
	assert(job->rcpt_count == 0);
	job->work->unread = 0;
	if (t->next_unread == job)
		t->next_unread = unread_behind(job);
	assert(job->rcpt_limit >= 0 && job->work->rcpt_limit >= job->rcpt_limit);
	job->work->rcpt_limit -= job->rcpt_limit;
	t->rcpt_unused += job->rcpt_limit;
	job->rcpt_limit = 0;
	lend_unused(t, t->next_unread);
}

static void count_recipients(struct job *job, int64_t n)
{
	job->rcpt_count += n;
	job->work->rcpt_count += n;
	job->transport->rcpt_count += n;
	job->transport->scheduler->rcpt_count += n;
	assert(job->rcpt_count >= 0);
	assert(job->work->rcpt_count >= job->rcpt_count);
	assert(job->transport->rcpt_count >= job->rcpt_count);
	assert(job->transport->scheduler->rcpt_count >= job->transport->rcpt_count);
}

void pool_take(struct job *job)
{
	count_recipients(job, 1);
}

void pool_free(struct job *job, int64_t n)
{
	assert(n >= 0);
	count_recipients(job, -n);
	job->transport->scheduler->reader_due = true;
	pool_return(job);
}

void pool_preempted(struct job *job)
{
	struct transport *t = job->transport;
	int64_t slots = (t->settings->extra_recipient_limit + t->rcpt_unused + 1) / 2;
	if (job->work->unread == 0 || slots <= 0)
		return;
	job->rcpt_limit += slots;
	job->work->rcpt_limit += slots;
	t->rcpt_unused -= slots;
}

static int64_t minimum_of_all(const struct scheduler *sched)
{
	return sched->conf->queue.message_recipient_minimum *
	       sched->conf->queue.message_active_limit;
}

static int64_t slots_of(const struct transport *t)
{
	return t->settings->recipient_limit + t->settings->extra_recipient_limit;
}

static int64_t recipient_bound(const struct scheduler *sched)
{
	int64_t sum = minimum_of_all(sched);
	for (const struct transport *t = sched->transports; t; t = t->hh.next)
		sum += slots_of(t);
	return number_max(sum, sched->conf->queue.message_recipient_limit);
}

static int64_t bound_of(const struct transport *t)
{
	const struct scheduler *sched = t->scheduler;
	return number_max(minimum_of_all(sched) + slots_of(t),
			  sched->conf->queue.message_recipient_limit);
}

int64_t pool_room(struct scheduler *sched)
{
	return recipient_bound(sched) - sched->rcpt_count;
}

int64_t pool_transport_room(const struct transport *t)
{
	return bound_of(t) - t->rcpt_count;
}

static void check_transport(const struct transport *t)
{
	int64_t in_memory = 0, slots = t->rcpt_unused;
	uint64_t order = 0;
	bool seen_unread = false;
	for (struct list *l = t->jobs.next; l != &t->jobs; l = l->next) {
		const struct job *job = list_entry(l, struct job, in_time);
		in_memory += job->rcpt_count;
		slots += job->rcpt_limit;
		assert(job->work->order > order);
		order = job->work->order;
		seen_unread |= job == t->next_unread;
		assert(job->work->unread == 0 || seen_unread);
		assert(job->rcpt_limit >= 0);
	}
	assert(in_memory == t->rcpt_count && in_memory <= bound_of(t));
	assert(slots == t->settings->recipient_limit);
	assert(t->rcpt_unused >= -t->settings->extra_recipient_limit);
}

void pool_check(struct scheduler *sched)
{
	int64_t in_memory = 0, in_messages = 0;
	for (const struct transport *t = sched->transports; t; t = t->hh.next) {
		check_transport(t);
		in_memory += t->rcpt_count;
	}
	for (struct list *l = sched->active.next; l != &sched->active; l = l->next)
		in_messages += list_entry(l, struct work, in_active)->rcpt_count;
	assert(in_memory == sched->rcpt_count && in_messages == in_memory &&
	       in_memory <= recipient_bound(sched));
}
