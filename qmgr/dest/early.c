/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/early.h"

#include "qmgr/sched/pool.h"

#include <assert.h>

static void count_connection(const struct early *x, int n)
{
	struct transport *t = x->site->queue.transport;
	x->site->busy += n;
	t->connections += n;
	assert(x->site->busy >= 0 && t->connections >= 0);
}

void early_take(struct early *x, struct peer *p)
{
	assert(!x->entry);
	assert(site_of_queue(p->queue)->db->bind_early);
	x->site = site_of_queue(p->queue);
	site_count_delivery(x->site);
	x->entry = peer_take(p);
	count_connection(x, 1);
}

void early_failed(struct early *x, struct verdict *why)
{
	struct site *s = x->site;
	const struct conf_queue *limits = &s->db->sched->conf->queue;
	s->db->thread.defer(s, x->entry, why, false);
	site_adopt_failure(s, why);
	if (window_on_failure(&s->window, s->queue.transport->settings))
		s->dead_until_ms = destdb_now_ms(s->db) + limits->minimal_backoff_time;
}

void early_delivered(struct early *x, struct verdict *const *verdict)
{
	assert(x->site->busy > 0);
	x->site->db->thread.record(x->site, x->entry, verdict);
	site_worked(x->site, x->site->busy);
}

static struct job *end_entry(struct early *x)
{
	struct job *job = x->entry->peer->job;
	job_entry_done(x->entry);
	x->entry = NULL;
	job_left_place(job);
	count_connection(x, -1);
	return job;
}

void early_end(struct early *x)
{
	const struct destdb_thread *thread = &x->site->db->thread;
	assert(x->entry->n == 0);
	struct job *job = end_entry(x);
	site_delivery_ended(x->site);
	site_touch(x->site);
	thread->check(job->work);
	thread->settle(thread->context);
}

void early_drop(struct early *x)
{
	pool_free(x->entry->peer->job, x->entry->n);
	end_entry(x);
}

void early_see_to(struct site *s)
{
	if (s->db->bind_early && window_dead(&s->window) &&
	    destdb_now_ms(s->db) >= s->dead_until_ms)
		window_revive(&s->window, s->queue.transport->settings);
}
