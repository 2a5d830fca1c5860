/* SPDX-License-Identifier: ISC */
#include "tests/unit/histories/seams.h"

#include "base/clock.h"
#include "base/fine_timer.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/thread.h"
#include "base/thread_pool.h"
#include "tests/unit/histories/fibers.h"
#include "tests/unit/spool/memdisk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What they keep is exchanged when another process goes on. */
#define pread memdisk_pread
#include "base/content.c"
#undef pread
#include "base/fence.c"
#include "base/ident.c"

enum { POOL_THREADS = 2 };

int __real_close(int);
int __real_access(const char *, int);
int __real_unlinkat(int, const char *, int);
int __wrap_close(int);
int __wrap_access(const char *, int);
int __wrap_unlinkat(int, const char *, int);
int __wrap_usleep(useconds_t);
int __wrap_sem_wait(sem_t *);
int __wrap_sem_timedwait(sem_t *, const struct timespec *);
int __wrap_pthread_join(pthread_t, void **);

static const int64_t right_ms = INT64_C(1700000000000);

static struct kept {
	int64_t fence_ms, memory;
	uint64_t ident_last;
	unsigned ident_node;
	int64_t up_us, ahead_us;
} kept[FIBER_PROCESSES];
static int inside = FIBER_NOBODY;
static void (*listener)(int, const struct seams_line *);

static void begin_kept(struct kept *k)
{
	k->fence_ms = FENCE_NEVER;
	k->memory = 0;
	k->ident_last = 0;
	k->ident_node = 0;
}

void seams_begin(void)
{
	inside = FIBER_NOBODY;
	memset(kept, 0, sizeof kept);
	for (int i = 0; i < FIBER_PROCESSES; i++)
		begin_kept(&kept[i]);
}

static void load(int of)
{
	const struct kept *k = &kept[of];
	until_ms = k->fence_ms;
	memory_bytes = k->memory;
	last = k->ident_last;
	node = k->ident_node;
}

void seams_enter(int of)
{
	if (inside >= 0) {
		struct kept *k = &kept[inside];
		k->fence_ms = until_ms;
		k->memory = memory_bytes;
		k->ident_last = last;
		k->ident_node = node;
	}
	inside = of;
	if (of >= 0)
		load(of);
}

void seams_process_begins(int of)
{
	begin_kept(&kept[of]);
	if (inside == of)
		load(of);
}

/* Clocks. */

void seams_clock(int of, int64_t up_ms, int64_t wall_ahead_ms)
{
	kept[of].up_us = up_ms * 1000;
	kept[of].ahead_us = wall_ahead_ms * 1000;
}

void seams_wall_jump(int of, int64_t ms)
{
	kept[of].ahead_us += ms * 1000;
}

static int64_t since_boot_us(void)
{
	int of = fibers_process();
	return fibers.now_us + (of >= 0 ? kept[of].up_us : 0);
}

int64_t clock_steady_us(void)
{
	return since_boot_us();
}

int64_t clock_steady_ms(void)
{
	return since_boot_us() / 1000;
}

int64_t clock_up_ms(void)
{
	return since_boot_us() / 1000;
}

int64_t clock_wall_us(void)
{
	int of = fibers_process();
	return right_ms * 1000 + fibers.now_us + (of >= 0 ? kept[of].ahead_us : 0);
}

int64_t clock_wall_ms(void)
{
	return clock_wall_us() / 1000;
}

/* Loops. libev's loop is ours. */

struct sim_loop {
	struct loop loop;
	struct fiber *fiber;
	int of;
	bool ends;
};

static struct sim_loop *sim_of(const struct loop *l)
{
	return (struct sim_loop *)l;
}

void mailbox_init(struct mailbox *m, struct ev_loop *loop, void (*receive)(void *, struct note *),
		  void (*received_all)(void *), void *owner)
{
	memset(m, 0, sizeof *m);
	m->loop = loop;
	m->receive = receive;
	m->received_all = received_all;
	m->owner = owner;
}

bool mailbox_drain(struct mailbox *m)
{
	struct note *note = m->top, *first = NULL;
	bool any = note;
	m->top = NULL;
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
	note->next = m->top;
	m->top = note;
}

/* Whoever has something goes on: nobody has to be woken. */
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
	struct sim_loop *s = mem_zalloc(sizeof *s);
	struct loop *l = &s->loop;
	s->of = fibers_process();
	l->name = name;
	l->ev = (struct ev_loop *)l;
	l->now_ms = clock_steady_ms();
	timers_init(&l->timers);
	list_init(&l->gathered);
	list_init(&l->lingering);
	mailbox_init(&l->mailbox, l->ev, receive, received_all, owner);
	return l;
}

static bool has_work(void *loop)
{
	const struct sim_loop *s = loop;
	return s->ends || s->loop.mailbox.top;
}

static void turn(struct loop *l)
{
	int64_t due_ms = timers_next(&l->timers);
	fiber_wait(has_work, l,
		   due_ms == INT64_MAX ? INT64_MAX : due_ms * 1000 - kept[sim_of(l)->of].up_us);
	l->now_ms = clock_steady_ms();
	timers_run(&l->timers, l->now_ms);
	if (mailbox_drain(&l->mailbox) && l->mailbox.received_all)
		l->mailbox.received_all(l->mailbox.owner);
}

static void *run_loop(void *loop)
{
	while (!sim_of(loop)->ends)
		turn(loop);
	return NULL;
}

int ev_run(struct ev_loop *ev, int flags)
{
	assert(flags == EVRUN_ONCE);
	turn((struct loop *)ev);
	return 0;
}

void loop_start(struct loop *l)
{
	sim_of(l)->ends = false;
	sim_of(l)->fiber = fiber_new(fibers_process(), l->name, run_loop, l);
	l->running = true;
}

void loop_stop(struct loop *l)
{
	if (!l->running)
		return;
	sim_of(l)->ends = true;
	fiber_join(sim_of(l)->fiber);
	l->running = false;
}

void loop_free(struct loop **lp)
{
	struct loop *l = *lp;
	if (!l)
		return;
	assert(!l->running);
	mailbox_fini(&l->mailbox);
	timers_fini(&l->timers);
	free(l);
	*lp = NULL;
}

bool loop_is_ours(const struct loop *l)
{
	return ((const struct sim_loop *)l)->of == fibers_process();
}

void loop_timer_in(struct loop *l, struct timer *t, int64_t delay_ms)
{
	timer_start(&l->timers, t, l->now_ms + delay_ms);
}

/* Here the clock of loops goes in milliseconds. */
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

/* Threads. */

int thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *argument)
{
	*thread = (pthread_t)fiber_new(fibers_process(), name, run, argument);
	return 0;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
	(void)result;
	fiber_join((struct fiber *)thread);
	return 0;
}

static bool has_come(void *semaphore)
{
	int value = 0;
	sem_getvalue(semaphore, &value);
	return value > 0;
}

int __wrap_sem_wait(sem_t *s)
{
	while (sem_trywait(s) != 0)
		fiber_wait(has_come, s, INT64_MAX);
	return 0;
}

/* Whoever asks for a time has read the system's clock, which stands for another one here. */
int __wrap_sem_timedwait(sem_t *s, const struct timespec *until)
{
	(void)until;
	return __wrap_sem_wait(s);
}

int __wrap_usleep(useconds_t us)
{
	fiber_sleep((int64_t)us);
	return 0;
}

struct thread_pool {
	const char *name;
	struct thread_pool_job *first, **last;
	int waiting, queue_max, threads, nthread;
	bool stopped;
	struct fiber *thread[POOL_THREADS];
};

struct thread_pool *thread_pool_new(const char *name, int threads, int queue_max)
{
	struct thread_pool *p = mem_zalloc(sizeof *p);
	p->name = name;
	p->last = &p->first;
	p->queue_max = queue_max;
	p->threads = threads < POOL_THREADS ? threads : POOL_THREADS;
	return p;
}

static struct thread_pool_job *take_job(struct thread_pool *p)
{
	struct thread_pool_job *job = p->first;
	if (!job)
		return NULL;
	p->first = job->next;
	if (!p->first)
		p->last = &p->first;
	p->waiting--;
	return job;
}

static bool has_job(void *pool)
{
	const struct thread_pool *p = pool;
	return p->stopped || p->first;
}

static void *run_pool(void *pool)
{
	struct thread_pool *p = pool;
	while (!p->stopped) {
		struct thread_pool_job *job = take_job(p);
		if (!job) {
			fiber_wait(has_job, p, INT64_MAX);
			continue;
		}
		job->work(job);
		job->worked = true;
		job->done(job);
	}
	return NULL;
}

void thread_pool_start(struct thread_pool *p)
{
	while (p->nthread < p->threads)
		p->thread[p->nthread++] = fiber_new(fibers_process(), p->name, run_pool, p);
}

bool thread_pool_give(struct thread_pool *p, struct thread_pool_job *job)
{
	if (p->stopped || p->waiting >= p->queue_max)
		return false;
	job->next = NULL;
	job->worked = false;
	*p->last = job;
	p->last = &job->next;
	p->waiting++;
	return true;
}

void thread_pool_stop(struct thread_pool *p)
{
	p->stopped = true;
	while (p->nthread > 0)
		fiber_join(p->thread[--p->nthread]);
	for (struct thread_pool_job *job; (job = take_job(p));)
		job->done(job);
}

void thread_pool_free(struct thread_pool **pp)
{
	if (!*pp)
		return;
	thread_pool_stop(*pp);
	free(*pp);
	*pp = NULL;
}

/* The disk, where it is not asked by spool/disk.h. */

int __wrap_close(int fd)
{
	return memdisk_is_descriptor(fd) ? memdisk_close(fd) : __real_close(fd);
}

int __wrap_access(const char *path, int mode)
{
	if (fibers_process() == FIBER_NOBODY)
		return __real_access(path, mode);
	if (memdisk_there(path))
		return 0;
	errno = ENOENT;
	return -1;
}

int __wrap_unlinkat(int folder, const char *name, int flags)
{
	if (!memdisk_is_descriptor(folder))
		return __real_unlinkat(folder, name, flags);
	assert(flags == AT_REMOVEDIR);
	return memdisk_remove_folder(folder, name);
}

/* The log. */

void seams_listen(void (*heard)(int process, const struct seams_line *))
{
	listener = heard;
}

const char *seams_value(const struct seams_line *l, const char *key)
{
	for (int i = 0; i < l->n; i++)
		if (strcmp(l->key[i], key) == 0)
			return l->value[i];
	return NULL;
}

void log_event(enum log_level level, const char *event, ...)
{
	struct seams_line l = {.level = level, .event = event};
	va_list args;
	va_start(args, event);
	for (const char *key; l.n < 16 && (key = va_arg(args, const char *));) {
		l.key[l.n] = key;
		l.value[l.n] = va_arg(args, const char *);
		l.n += l.value[l.n] != NULL;
	}
	va_end(args);
	if (listener)
		listener(fibers_process(), &l);
}

struct log_held *log_hold(enum log_level level, const char *event, ...)
{
	(void)level;
	(void)event;
	return NULL;
}

void log_flush(void)
{
}

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
