/* SPDX-License-Identifier: ISC */
#include "tests/unit/spool/edges.h"

#include "base/clock.h"
#include "base/fine_timer.h"
#include "base/thread_pool.h"

#include <assert.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ids begin anew with each history; what the spool has opened is read from the memdisk. */
#include "base/ident.c"
#include "tests/unit/spool/memdisk.h"
#define pread memdisk_pread
#define close memdisk_close
#include "base/content.c"
#undef pread
#undef close

enum { LOOPS = 8, THREADS = 4 };

struct thread {
	pthread_t id;
	void *(*run)(void *);
	void *arg;
	sem_t go, back;
	int calls; /* that it may make before it waits again */
	bool made, ended;
};

int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __real_pthread_join(pthread_t, void **);
int __real_sem_wait(sem_t *);
int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_join(pthread_t, void **);
int __wrap_sem_wait(sem_t *);
int __wrap_usleep(useconds_t);

static const int64_t started_ms = INT64_C(1700000000000);
static int64_t clock_ms;
static struct loop *loops[LOOPS];
static struct thread threads[THREADS];
static _Thread_local struct thread *self; /* NULL: the test's */

static struct thread_pool {
	struct thread_pool_job *first, **last;
	bool runs;
	struct thread_pool *next;
} * pools;
static bool stepped;
static void (*listener)(void *owner, const struct edges_line *);
static void *listener_owner;

int64_t clock_steady_ms(void)
{
	return clock_ms;
}

int64_t clock_up_ms(void)
{
	return clock_ms;
}

int64_t clock_steady_us(void)
{
	return clock_ms * 1000;
}

int64_t clock_wall_ms(void)
{
	return started_ms + clock_ms;
}

int64_t clock_wall_us(void)
{
	return clock_wall_ms() * 1000;
}

void edges_begin(void)
{
	clock_ms = 1000000;
	atomic_store(&last, 0);
}

/* Mailboxes and loops without libev. */

void mailbox_init(struct mailbox *m, struct ev_loop *loop, void (*receive)(void *, struct note *),
		  void (*received_all)(void *), void *owner)
{
	(void)loop;
	memset(m, 0, sizeof *m);
	m->receive = receive;
	m->received_all = received_all;
	m->owner = owner;
}

bool mailbox_drain(struct mailbox *m)
{
	struct note *note = atomic_exchange(&m->top, NULL), *first = NULL;
	bool any = note;
	for (struct note *next; note; note = next) {
		next = note->next;
		note->next = first;
		first = note;
	}
	for (struct note *next; first; first = next) {
		next = first->next;
		first->next = NULL;
		m->receive(m->owner, first);
	}
	return any;
}

void mailbox_fini(struct mailbox *m)
{
	while (mailbox_drain(m))
		;
}

void mailbox_post(struct mailbox *m, struct note *note)
{
	note->next = atomic_load(&m->top);
	atomic_store(&m->top, note);
}

/* Loops are looked at whenever there is something for them: nobody has to be woken. */
void mailbox_post_awaited(struct mailbox *m, struct note *note)
{
	mailbox_post(m, note);
}

void mailbox_post_idly(struct mailbox *m, struct note *note)
{
	mailbox_post(m, note);
}

void mailbox_rest(struct mailbox *m, int awaited)
{
	(void)m;
	assert(awaited > 0);
}

struct loop *loop_new(const char *name, void (*receive)(void *owner, struct note *),
		      void (*received_all)(void *owner), void *owner)
{
	struct loop *l = mem_zalloc(sizeof *l);
	l->name = name;
	l->now_ms = clock_ms;
	timers_init(&l->timers);
	list_init(&l->lingering);
	mailbox_init(&l->mailbox, NULL, receive, received_all, owner);
	return l;
}

void loop_start(struct loop *l)
{
	int i = 0;
	while (loops[i])
		assert(++i < LOOPS);
	loops[i] = l;
	l->running = true;
}

void loop_stop(struct loop *l)
{
	for (int i = 0; i < LOOPS; i++)
		if (loops[i] == l)
			loops[i] = NULL;
	l->running = false;
}

void loop_free(struct loop **lp)
{
	if (!*lp)
		return;
	loop_stop(*lp);
	mailbox_fini(&(*lp)->mailbox);
	timers_fini(&(*lp)->timers);
	free(*lp);
	*lp = NULL;
}

/* There is but one thread. */
bool loop_is_ours(const struct loop *l)
{
	(void)l;
	return true;
}

void loop_timer_in(struct loop *l, struct timer *t, int64_t delay_ms)
{
	timer_start(&l->timers, t, l->now_ms + delay_ms);
}

/* What a pool is given is worked on when the loops have nothing to do: one job, then they again. */

void thread_pool_start(struct thread_pool *p)
{
	p->runs = true;
}

struct thread_pool *thread_pool_new(const char *name, int count, int queue_max)
{
	(void)name;
	assert(count > 0 && queue_max > 0);
	struct thread_pool *p = mem_zalloc(sizeof *p);
	p->last = &p->first;
	p->next = pools;
	pools = p;
	return p;
}

bool thread_pool_give(struct thread_pool *p, struct thread_pool_job *job)
{
	job->next = NULL;
	*p->last = job;
	p->last = &job->next;
	return true;
}

static bool work_on_one(void)
{
	struct thread_pool *p = pools;
	while (p && !(p->runs && p->first))
		p = p->next;
	if (!p)
		return false;
	struct thread_pool_job *job = p->first;
	p->first = job->next;
	if (!p->first)
		p->last = &p->first;
	job->work(job);
	job->done(job);
	return true;
}

void thread_pool_stop(struct thread_pool *p)
{
	for (struct thread_pool_job *job; (job = p->first);) {
		p->first = job->next;
		job->done(job);
	}
	p->last = &p->first;
	p->runs = false;
}

void thread_pool_free(struct thread_pool **pp)
{
	if (!*pp)
		return;
	thread_pool_stop(*pp);
	struct thread_pool **link = &pools;
	while (*link != *pp)
		link = &(*link)->next;
	*link = (*pp)->next;
	free(*pp);
	*pp = NULL;
}

/* Here the clock goes in milliseconds. */
void fine_timer_init(struct fine_timer *t, struct loop *l, void (*expired)(void *owner),
		     void *owner)
{
	*t = (struct fine_timer){.loop = l};
	timer_init(&t->coarse, expired, owner);
}

void fine_timer_fini(struct fine_timer *t)
{
	fine_timer_stop(t);
}

void fine_timer_start(struct fine_timer *t, int64_t delay_us)
{
	loop_timer_in(t->loop, &t->coarse, (delay_us + 999) / 1000);
}

void fine_timer_stop(struct fine_timer *t)
{
	timer_stop(&t->loop->timers, &t->coarse);
}

bool edges_turn(struct loop *l)
{
	l->now_ms = clock_ms;
	bool due = timers_next(&l->timers) <= clock_ms;
	timers_run(&l->timers, clock_ms);
	bool any = mailbox_drain(&l->mailbox);
	if (any && l->mailbox.received_all)
		l->mailbox.received_all(l->mailbox.owner);
	return any || due;
}

void edges_settle(void)
{
	for (bool any = true; any;) {
		any = false;
		for (int i = 0; i < LOOPS; i++)
			any |= loops[i] && edges_turn(loops[i]);
		any = any || work_on_one();
	}
}

void edges_pass(int64_t ms)
{
	int64_t end_ms = clock_ms + ms;
	edges_settle();
	while (clock_ms < end_ms) {
		int64_t next_ms = end_ms;
		for (int i = 0; i < LOOPS; i++)
			if (loops[i] && timers_next(&loops[i]->timers) < next_ms)
				next_ms = timers_next(&loops[i]->timers);
		clock_ms = next_ms > clock_ms ? next_ms : clock_ms;
		edges_settle();
	}
}

void edges_took(int64_t ms)
{
	clock_ms += ms;
}

/* Threads that take turns. */

void edges_stepped(bool wanted)
{
	stepped = wanted;
}

static void *begin(void *arg)
{
	struct thread *t = self = arg;
	__real_sem_wait(&t->go);
	t->run(t->arg);
	t->ended = true;
	sem_post(&t->back);
	return NULL;
}

static void let_run(struct thread *t, int calls)
{
	t->calls = calls;
	sem_post(&t->go);
	__real_sem_wait(&t->back);
}

void edges_disk_call(void)
{
	if (!self || self->calls-- > 0)
		return;
	struct thread *t = self;
	sem_post(&t->back);
	__real_sem_wait(&t->go);
}

void edges_threads(int calls)
{
	for (int i = 0; i < THREADS; i++)
		if (threads[i].made && !threads[i].ended)
			let_run(&threads[i], calls);
}

bool edges_threads_run(void)
{
	for (int i = 0; i < THREADS; i++)
		if (threads[i].made && !threads[i].ended)
			return true;
	return false;
}

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	int i = 0;
	while (threads[i].made)
		assert(++i < THREADS);
	struct thread *t = &threads[i];
	*t = (struct thread){.run = run, .arg = arg, .made = true};
	sem_init(&t->go, 0, 0);
	sem_init(&t->back, 0, 0);
	int error = __real_pthread_create(&t->id, attr, begin, t);
	assert(error == 0);
	*id = t->id;
	if (!stepped)
		let_run(t, INT32_MAX);
	return 0;
}

int __wrap_pthread_join(pthread_t id, void **result)
{
	struct thread *t = threads;
	while (!t->made || !pthread_equal(t->id, id))
		assert(++t < threads + THREADS);
	if (!t->ended)
		let_run(t, INT32_MAX);
	t->made = false;
	sem_destroy(&t->go);
	sem_destroy(&t->back);
	return __real_pthread_join(id, result);
}

/* Whoever waits for another thread waits here for what that thread's loop does. */
/* Who sleeps has the turn. */
int __wrap_usleep(useconds_t us)
{
	clock_ms += us / 1000;
	return 0;
}

int __wrap_sem_wait(sem_t *s)
{
	while (sem_trywait(s) != 0) {
		bool any = false;
		for (int i = 0; i < LOOPS; i++)
			any |= loops[i] && edges_turn(loops[i]);
		any = any || work_on_one();
		assert(any && "waits for what never comes");
	}
	return 0;
}

/* The log. */

void edges_listen(void (*heard)(void *owner, const struct edges_line *), void *owner)
{
	listener = heard;
	listener_owner = owner;
}

const char *edges_value(const struct edges_line *l, const char *key)
{
	for (int i = 0; i < l->n; i++)
		if (strcmp(l->key[i], key) == 0)
			return l->value[i];
	return NULL;
}

void log_event(enum log_level level, const char *event, ...)
{
	struct edges_line l = {.level = level, .event = event};
	va_list args;
	va_start(args, event);
	for (const char *key; l.n < 16 && (key = va_arg(args, const char *));) {
		l.key[l.n] = key;
		l.value[l.n] = va_arg(args, const char *);
		l.n += l.value[l.n] != NULL;
	}
	va_end(args);
	if (listener)
		listener(listener_owner, &l);
}

void log_flush(void)
{
}

/* Nobody here makes a line for later. */
void log_release(struct log_held **line)
{
	assert(!*line);
}

void log_held_free(struct log_held **line)
{
	assert(!*line);
}

void log_drain(void)
{
}

void log_set_level(enum log_level level)
{
	(void)level;
}
