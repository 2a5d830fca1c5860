/* SPDX-License-Identifier: ISC */
#include "base/thread_pool.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOGETHER = 4 };

struct queue {
	struct thread_pool_job *first, **last;
};

struct thread_pool {
	const char *name;
	pthread_mutex_t lock; /* of all below but the threads */
	pthread_cond_t more;
	struct queue counted, always;
	int in_a_row; /* of always, while some of the others wait */
	int waiting, queue_max;
	bool stopped, gives_way;
	int threads, nthread; /* wanted; running */
	pthread_t thread[];
};

static void queue_init(struct queue *q)
{
	q->first = NULL;
	q->last = &q->first;
}

static void queue_append(struct queue *q, struct thread_pool_job *job)
{
	job->next = NULL;
	*q->last = job;
	q->last = &job->next;
}

static void queue_shift(struct queue *q)
{
	assert(q->first);
	q->first = q->first->next;
	if (!q->first)
		q->last = &q->first;
}

/* Whose turn it is; that queue is empty if both are. */
static struct queue *next_queue(struct thread_pool *p)
{
	bool always = p->always.first && (!p->counted.first || p->in_a_row < THREAD_POOL_IN_A_ROW);
	return always ? &p->always : &p->counted;
}

static void take_first(struct thread_pool *p, struct queue *q)
{
	struct thread_pool_job *job = q->first;
	assert(job->counts == (q == &p->counted));
	p->in_a_row = q == &p->always && p->counted.first ? p->in_a_row + 1 : 0;
	queue_shift(q);
	assert(p->waiting >= job->counts);
	p->waiting -= job->counts;
}

/* The next job; NULL: there will be no more. Or the next of the brief ones; NULL: it is not such a one, and
 * nobody waits for it. */
static struct thread_pool_job *take_job(struct thread_pool *p, bool only_brief)
{
	pthread_mutex_lock(&p->lock);
	while (!next_queue(p)->first && !p->stopped && !only_brief)
		pthread_cond_wait(&p->more, &p->lock);
	struct queue *q = next_queue(p);
	struct thread_pool_job *job = p->stopped ? NULL : q->first;
	if (job && only_brief && !job->brief)
		job = NULL;
	if (job)
		take_first(p, q);
	pthread_mutex_unlock(&p->lock);
	return job;
}

/* Jobs that have been worked on, and not told yet. */
struct finished {
	int n;
	struct thread_pool_job *job[TOGETHER];
};

static void tell_finished(struct finished *f)
{
	for (int i = 0; i < f->n; i++)
		f->job[i]->done(f->job[i]);
	f->n = 0;
	log_flush();
}

/* A loop that is told wakes up, and takes the processor from us: so brief jobs are told of a few at a time,
 * as long as there are more. False: the end. */
static bool work_on(struct thread_pool *p, struct finished *f)
{
	struct thread_pool_job *job = take_job(p, f->n > 0);
	if (!job && f->n == 0)
		return false;
	if (job) {
		assert(!job->worked && f->n < TOGETHER);
		job->work(job);
		job->worked = true;
		f->job[f->n++] = job;
	}
	if (!job || !job->brief || f->n == TOGETHER)
		tell_finished(f);
	return true;
}

static void *run_worker(void *arg)
{
	struct thread_pool *p = arg;
	struct finished f = {0};
	if (p->gives_way)
		thread_give_way();
	while (work_on(p, &f))
		;
	return NULL;
}

struct thread_pool *thread_pool_new(const char *name, int threads, int queue_max)
{
	assert(threads > 0 && queue_max > 0 && strlen(name) <= 15);
	struct thread_pool *p = mem_zalloc(sizeof *p + (size_t)threads * sizeof p->thread[0]);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->more, NULL);
	p->name = name;
	queue_init(&p->counted);
	queue_init(&p->always);
	p->queue_max = queue_max;
	p->threads = threads;
	return p;
}

void thread_pool_give_way(struct thread_pool *p)
{
	assert(p->nthread == 0);
	p->gives_way = true;
}

void thread_pool_start(struct thread_pool *p)
{
	assert(!p->stopped && p->nthread == 0);
	for (; p->nthread < p->threads; p->nthread++)
		thread_need(&p->thread[p->nthread], p->name, run_worker, p);
}

static bool give_job(struct thread_pool *p, struct thread_pool_job *job, bool counts)
{
	assert(job->work && job->done);
	pthread_mutex_lock(&p->lock);
	bool room = !p->stopped && (!counts || p->waiting < p->queue_max);
	if (room) {
		job->worked = false;
		job->counts = counts;
		queue_append(counts ? &p->counted : &p->always, job);
		p->waiting += counts;
		pthread_cond_signal(&p->more);
	}
	pthread_mutex_unlock(&p->lock);
	return room;
}

bool thread_pool_give(struct thread_pool *p, struct thread_pool_job *job)
{
	return give_job(p, job, true);
}

bool thread_pool_give_always(struct thread_pool *p, struct thread_pool_job *job)
{
	return give_job(p, job, false);
}

static void give_back(struct thread_pool *p, struct queue *q)
{
	while (q->first) {
		struct thread_pool_job *job = q->first;
		take_first(p, q);
		assert(!job->worked);
		job->done(job);
	}
}

void thread_pool_stop(struct thread_pool *p)
{
	pthread_mutex_lock(&p->lock);
	p->stopped = true;
	pthread_cond_broadcast(&p->more);
	pthread_mutex_unlock(&p->lock);
	for (; p->nthread > 0; p->nthread--)
		pthread_join(p->thread[p->nthread - 1], NULL);
	give_back(p, &p->counted);
	give_back(p, &p->always);
	assert(p->waiting == 0);
}

void thread_pool_free(struct thread_pool **pp)
{
	struct thread_pool *p = *pp;
	if (!p)
		return;
	thread_pool_stop(p);
	assert(p->nthread == 0 && !p->counted.first && !p->always.first);
	pthread_cond_destroy(&p->more);
	pthread_mutex_destroy(&p->lock);
	free(p);
	*pp = NULL;
}
