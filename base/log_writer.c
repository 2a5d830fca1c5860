/* SPDX-License-Identifier: ISC */
#include "base/log_writer.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/log_place.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	GATHER_MS = 5,
	FAREWELL_MS = 2000,   /* at the end, for a place that takes nothing */
	TOGETHER = 256 << 10, /* bytes of chunks that are written in one */
};

struct chunk {
	struct chunk *next;
	char *text;
	size_t len;
	int count;
	bool marked;
};

static struct {
	_Atomic(struct chunk *) top;		/* newest first */
	_Atomic(struct log_place *) next_place; /* to be written to from now on */
	_Atomic size_t backlog;			/* bytes taken and not yet written */
	_Atomic uint64_t dropped;		/* lines */
	_Atomic int64_t give_up_ms;		/* 0 until the end */
	atomic_bool running, syslog, reopen, end;
	sem_t wake;
	pthread_t thread;
	bool threaded;		/* main's: there is such a thread */
	struct log_place place; /* the thread's, while it runs */
	uint64_t told;		/* of the dropped lines, how many the log has been told */
} w = {.place = {.fd = STDERR_FILENO, .blocks = true}};

static void count_dropped(int count)
{
	atomic_fetch_add(&w.dropped, (uint64_t)count);
	metrics_add(METRIC_log_dropped, count);
}

static void change_place(void)
{
	struct log_place *next = atomic_exchange(&w.next_place, NULL);
	if (next) {
		log_place_close(&w.place);
		w.place = *next;
		free(next);
	}
	if (atomic_exchange(&w.reopen, false))
		log_place_reopen(&w.place);
}

/* Told only when it was written: before that, there may be no room for it either. */
static void tell_dropped(void)
{
	uint64_t dropped = atomic_load(&w.dropped);
	if (dropped == w.told)
		return;
	struct buf line = {0};
	bool marked = log_take_own(&line, "log_dropped", "lines", (int64_t)(dropped - w.told));
	if (log_place_write(&w.place, buf_data(&line), buf_len(&line), marked, &w.give_up_ms) == 0)
		w.told = dropped;
	buf_fini(&line);
}

/* Threads hand over whenever they go to sleep, under load a line or two: what has gathered is written
 * in one. Returns what is left. */
static struct chunk *write_together(struct chunk *c)
{
	struct buf text = {0};
	bool marked = c->marked;
	while (c && c->marked == marked && buf_len(&text) < TOGETHER) {
		struct chunk *next = c->next;
		buf_append(&text, c->text, c->len);
		free(c->text);
		free(c);
		c = next;
	}
	int lost =
		log_place_write(&w.place, buf_data(&text), buf_len(&text), marked, &w.give_up_ms);
	if (lost > 0)
		count_dropped(lost);
	size_t before = atomic_fetch_sub(&w.backlog, buf_len(&text));
	assert(before >= buf_len(&text));
	buf_fini(&text);
	return c;
}

static void write_taken(void)
{
	struct chunk *c = atomic_exchange_explicit(&w.top, NULL, memory_order_acquire);
	struct chunk *first = NULL;
	while (c) {
		struct chunk *next = c->next;
		c->next = first;
		first = c;
		c = next;
	}
	while (first)
		first = write_together(first);
}

/* Under load each wake-up costs whoever caused it: let some more lines come first. */
static void wait_for_more(void)
{
	nanosleep(&(struct timespec){.tv_nsec = GATHER_MS * 1000000L}, NULL);
}

static void *write_until_end(void *arg)
{
	(void)arg;
	bool end;
	do {
		while (sem_wait(&w.wake) != 0)
			;
		end = atomic_load(&w.end);
		if (!end)
			wait_for_more();
		change_place();
		write_taken();
		tell_dropped();
	} while (!end);
	write_taken();
	return NULL;
}

bool log_writer_start(const char *where, struct buf *error)
{
	log_writer_stop();
	if (!log_place_open(&w.place, where, error))
		return false;
	atomic_store(&w.syslog, w.place.syslog);
	sem_init(&w.wake, 0, 0);
	atomic_store(&w.end, false);
	atomic_store(&w.give_up_ms, 0);
	atomic_store(&w.running, true);
	return true;
}

bool log_writer_run(struct buf *error)
{
	int failed = thread_start(&w.thread, "log", write_until_end, NULL);
	if (failed)
		buf_printf(error, "no thread for the log: %s", strerror(failed));
	w.threaded = failed == 0;
	return w.threaded;
}

void log_writer_stop(void)
{
	if (!atomic_exchange(&w.running, false))
		return;
	atomic_store(&w.give_up_ms, clock_steady_ms() + FAREWELL_MS);
	atomic_store(&w.end, true);
	sem_post(&w.wake);
	if (w.threaded)
		pthread_join(w.thread, NULL);
	w.threaded = false;
	write_taken(); /* of a thread that was about to hand over when running went false */
	/* The semaphore stays: such a thread may be about to post it. */
	atomic_store(&w.syslog, false);
	log_place_close(&w.place);
}

bool log_writer_move(const char *where, struct buf *error)
{
	struct log_place *next = mem_zalloc(sizeof *next);
	if (!log_place_open(next, where, error)) {
		free(next);
		return false;
	}
	atomic_store(&w.syslog, next->syslog);
	struct log_place *unused = atomic_exchange(&w.next_place, next);
	if (unused)
		log_place_close(unused);
	free(unused);
	sem_post(&w.wake);
	return true;
}

void log_writer_reopen(void)
{
	if (!log_writer_running())
		return;
	atomic_store(&w.reopen, true);
	sem_post(&w.wake);
}

void log_writer_take(struct buf *lines, int count, bool marked)
{
	size_t len = buf_len(lines);
	if (!log_writer_running()) {
		struct log_place standard = {.fd = STDERR_FILENO, .blocks = true};
		_Atomic int64_t soon = clock_steady_ms() + FAREWELL_MS;
		log_place_write(&standard, buf_data(lines), len, marked, &soon);
		buf_clear(lines);
		return;
	}
	if (atomic_fetch_add(&w.backlog, len) + len > LOG_BACKLOG_MAX) {
		atomic_fetch_sub(&w.backlog, len);
		count_dropped(count);
		buf_clear(lines);
		return;
	}
	struct chunk *c = mem_alloc(sizeof *c);
	c->text = buf_steal(lines, &c->len);
	c->count = count;
	c->marked = marked;
	struct chunk *top = atomic_load_explicit(&w.top, memory_order_relaxed);
	do
		c->next = top;
	while (!atomic_compare_exchange_weak_explicit(&w.top, &top, c, memory_order_release,
						      memory_order_relaxed));
	if (!top)
		sem_post(&w.wake);
}

void log_writer_wait(int most_ms)
{
	for (; most_ms > 0 && w.threaded && log_writer_running() && atomic_load(&w.backlog) > 0;
	     most_ms--)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

bool log_writer_running(void)
{
	return atomic_load_explicit(&w.running, memory_order_acquire);
}

bool log_writer_is_syslog(void)
{
	return atomic_load_explicit(&w.syslog, memory_order_relaxed);
}

uint64_t log_writer_dropped(void)
{
	return atomic_load_explicit(&w.dropped, memory_order_relaxed);
}
