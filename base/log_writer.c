/* SPDX-License-Identifier: ISC */
#include "base/log_writer.h"

#include "base/clock.h"
#include "base/date.h"
#include "base/log.h"
#include "base/log_format.h"
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
	TOGETHER = 256 << 10, /* bytes of lines that are written in one */
};

struct out {
	struct log_place place;
	enum log_format form;
	struct buf lines;	    /* not written yet */
	_Atomic int64_t give_up_ms; /* 0: a place that takes nothing is waited for */
};

/* A change of the log that main wants from now on. */
struct move {
	bool elsewhere;
	struct log_place place; /* where that is so */
	enum log_format form;
};

static struct {
	_Atomic(struct log_held *) top; /* newest first */
	_Atomic(struct move *) move;
	_Atomic size_t backlog;	  /* bytes taken and not yet written */
	_Atomic uint64_t dropped; /* lines */
	atomic_bool running, reopen, end;
	sem_t wake;
	pthread_t thread;
	bool threaded;	/* main's: there is such a thread */
	struct out out; /* the thread's, while it runs */
	uint64_t told;	/* of the dropped lines, how many the log has been told */
} w = {.out.place = {.fd = STDERR_FILENO, .blocks = true}};

static void count_dropped(int count)
{
	assert(count > 0);
	atomic_fetch_add(&w.dropped, (uint64_t)count);
	metrics_add(METRIC_log_dropped, count);
}

static void change_place(void)
{
	struct move *m = atomic_exchange(&w.move, NULL);
	if (m)
		w.out.form = m->form;
	if (m && m->elsewhere) {
		log_place_close(&w.out.place);
		w.out.place = m->place;
	}
	free(m);
	if (atomic_exchange(&w.reopen, false))
		log_place_reopen(&w.out.place);
}

static void format_record(struct out *out, const struct log_record *r)
{
	switch (out->form) {
	case LOG_JSON:
		log_format_json(&out->lines, r);
		break;
	case LOG_POSTFIX:
		log_format_postfix(&out->lines, r);
		break;
	case LOG_TEXT:
		log_format_text(&out->lines, r);
	}
}

/* Returns how many lines were lost. */
static int write_lines(struct out *out)
{
	const char *lines = buf_data(&out->lines);
	size_t len = buf_len(&out->lines);
	int lost = len > 0 ? log_place_write(&out->place, lines, len, &out->give_up_ms) : 0;
	buf_clear(&out->lines);
	return lost;
}

/* Its lines gather; syslog gets them at once. Returns how many were lost. */
static int write_record(struct out *out, struct log_record *r)
{
	r->syslog = out->place.syslog;
	format_record(out, r);
	if (!r->syslog)
		return 0;
	int lost = log_place_send(&out->place, (int)r->level, buf_data(&out->lines),
				  buf_len(&out->lines), &out->give_up_ms);
	buf_clear(&out->lines);
	return lost;
}

static int write_held(struct out *out, const struct log_held *held)
{
	int lost = 0;
	const void *at = held->packed;
	for (int i = 0; i < held->count; i++) {
		struct log_record r;
		at = log_record_unpack(&r, at);
		lost += write_record(out, &r);
	}
	assert(at == (const char *)held->packed + held->len);
	return lost;
}

/* Told only when it was written: before that, there may be no room for it either. */
static void tell_dropped(void)
{
	uint64_t dropped = atomic_load(&w.dropped);
	if (dropped == w.told)
		return;
	assert(dropped > w.told);
	const char *lines = log_number((int64_t)(dropped - w.told));
	struct log_record r = {.level = LOG_LEVEL_WARNING,
			       .event = "log_dropped",
			       .wall_ms = date_ms(),
			       .npair = 1,
			       .pair = {{"lines", lines, strlen(lines), true}}};
	if (write_record(&w.out, &r) + write_lines(&w.out) == 0)
		w.told = dropped;
}

static struct log_held *take_all(void)
{
	struct log_held *h = atomic_exchange_explicit(&w.top, NULL, memory_order_acquire);
	struct log_held *first = NULL;
	while (h) {
		struct log_held *next = h->next;
		h->next = first;
		first = h;
		h = next;
	}
	return first;
}

/* Threads hand over whenever they go to sleep, under load an event or two: the lines of what has gathered
 * are written in one. Returns what is left. */
static struct log_held *write_together(struct log_held *h)
{
	size_t len = 0;
	int lost = 0;
	while (h && buf_len(&w.out.lines) < TOGETHER) {
		struct log_held *next = h->next;
		lost += write_held(&w.out, h);
		len += h->len;
		free(h);
		h = next;
	}
	lost += write_lines(&w.out);
	if (lost > 0)
		count_dropped(lost);
	size_t before = atomic_fetch_sub(&w.backlog, len);
	assert(before >= len);
	buf_release(&w.out.lines);
	return h;
}

static void write_taken(void)
{
	struct log_held *h = take_all();
	while (h)
		h = write_together(h);
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

bool log_writer_start(const char *where, enum log_format form, struct buf *error)
{
	log_writer_stop();
	assert(!w.threaded);
	if (!log_place_open(&w.out.place, where, error))
		return false;
	w.out.form = form;
	sem_init(&w.wake, 0, 0);
	atomic_store(&w.end, false);
	atomic_store(&w.out.give_up_ms, 0);
	atomic_store(&w.running, true);
	return true;
}

bool log_writer_run(struct buf *error)
{
	assert(!w.threaded);
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
	atomic_store(&w.out.give_up_ms, clock_steady_ms() + FAREWELL_MS);
	atomic_store(&w.end, true);
	sem_post(&w.wake);
	if (w.threaded)
		pthread_join(w.thread, NULL);
	w.threaded = false;
	change_place();
	write_taken(); /* of a thread that was about to hand over when running went false */
	/* The semaphore stays: such a thread may be about to post it. */
	log_place_close(&w.out.place);
}

/* One that the thread has not come to yet is taken back; where it leads is kept if nothing else was said. */
static void take_back_move(struct move *m)
{
	struct move *before = atomic_exchange(&w.move, NULL);
	if (before && before->elsewhere && !m->elsewhere) {
		m->place = before->place;
		m->elsewhere = true;
	} else if (before && before->elsewhere) {
		log_place_close(&before->place);
	}
	free(before);
}

bool log_writer_move(const char *where, enum log_format form, struct buf *error)
{
	struct move *m = mem_zalloc(sizeof *m);
	m->form = form;
	m->elsewhere = where;
	if (where && !log_place_open(&m->place, where, error)) {
		free(m);
		return false;
	}
	take_back_move(m);
	atomic_store(&w.move, m);
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

static void write_to_stderr(const struct log_held *h)
{
	struct out out = {.place = {.fd = STDERR_FILENO, .blocks = true},
			  .give_up_ms = clock_steady_ms() + FAREWELL_MS};
	write_held(&out, h);
	write_lines(&out);
	buf_fini(&out.lines);
}

static void push_held(struct log_held *h)
{
	struct log_held *top = atomic_load_explicit(&w.top, memory_order_relaxed);
	do
		h->next = top;
	while (!atomic_compare_exchange_weak_explicit(&w.top, &top, h, memory_order_release,
						      memory_order_relaxed));
	if (!top)
		sem_post(&w.wake);
}

void log_writer_take(struct log_held *h)
{
	assert(h->count > 0 && h->len > 0);
	if (!log_writer_running()) {
		write_to_stderr(h);
		free(h);
	} else if (atomic_fetch_add(&w.backlog, h->len) + h->len > LOG_BACKLOG_MAX) {
		atomic_fetch_sub(&w.backlog, h->len);
		count_dropped(h->count);
		free(h);
	} else {
		push_held(h);
	}
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
