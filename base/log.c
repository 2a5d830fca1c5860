/* SPDX-License-Identifier: ISC */
#include "base/log.h"

#include "base/date.h"
#include "base/log_record.h"
#include "base/log_values.h"
#include "base/log_writer.h"
#include "base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
	FLUSH_AT = 64 << 10, /* bytes a thread gathers before it hands them over unasked */
	DRAIN_MS = 1000,
};

/* Events of a thread that it has not handed over yet. */
struct gathered {
	struct log_held *held;
	size_t room; /* bytes of records that fit into it */
	size_t before; /* bytes that were handed over last: as much room there is at once for those to come */
};

static _Thread_local struct gathered *mine;
static pthread_key_t at_thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int level_least = LOG_LEVEL_INFO;

static void hand_over(struct gathered *of)
{
	if (!of->held)
		return;
	of->before = of->held->len;
	log_writer_take(of->held);
	of->held = NULL;
	of->room = 0;
}

static void end_of_thread(void *arg)
{
	struct gathered *of = arg;
	hand_over(of);
	free(of);
	mine = NULL;
}

static void make_key(void)
{
	pthread_key_create(&at_thread_end, end_of_thread);
}

static struct gathered *gathered_of_thread(void)
{
	if (!mine) {
		pthread_once(&once, make_key);
		mine = mem_zalloc(sizeof *mine);
		pthread_setspecific(at_thread_end, mine);
	}
	return mine;
}

static bool is_below_least(enum log_level level)
{
	return (int)level < atomic_load_explicit(&level_least, memory_order_relaxed);
}

/* Returns the bytes that it takes when packed. */
static size_t fill_record(struct log_record *r, enum log_level level, const char *event,
			  va_list args)
{
	r->level = level;
	assert(level < LOG_LEVEL_NONE);
	r->event = event;
	r->wall_ms = date_ms();
	r->npair = 0; /* more than a kilobyte of pairs is not cleared for each line */
	const char *key;
	while (r->npair < LOG_PAIRS_MAX && (key = va_arg(args, const char *))) {
		const char *value = va_arg(args, const char *);
		if (value)
			r->pair[r->npair++] =
				(struct log_pair){key, value, strlen(value), log_is_number(value)};
	}
	return log_record_size(r);
}

static void make_room(struct gathered *of, size_t size)
{
	size_t len = of->held ? of->held->len : 0;
	assert(of->room >= len);
	if (of->room - len >= size)
		return;
	size_t room = len > 0 ? 2 * of->room : of->before;
	of->room = room >= len + size ? room : len + size;
	of->held = mem_realloc(of->held, sizeof *of->held + of->room);
	if (len == 0)
		*of->held = (struct log_held){.next = NULL};
}

static void put_record(struct log_held *held, const struct log_record *r, size_t size)
{
	log_record_pack(r, size, (char *)held->packed + held->len);
	held->len += size;
	held->count++;
}

void log_event(enum log_level level, const char *event, ...)
{
	if (is_below_least(level))
		return;
	struct log_record r;
	va_list args;
	va_start(args, event);
	size_t size = fill_record(&r, level, event, args);
	va_end(args);
	struct gathered *of = gathered_of_thread();
	make_room(of, size);
	put_record(of->held, &r, size);
	assert(of->held->len <= of->room);
	if (of->held->len >= FLUSH_AT || !log_writer_running())
		hand_over(of);
}

struct log_held *log_hold(enum log_level level, const char *event, ...)
{
	if (is_below_least(level))
		return NULL;
	struct log_record r;
	va_list args;
	va_start(args, event);
	size_t size = fill_record(&r, level, event, args);
	va_end(args);
	struct log_held *held = mem_alloc(sizeof *held + size);
	*held = (struct log_held){.next = NULL};
	put_record(held, &r, size);
	return held;
}

void log_release(struct log_held **heldp)
{
	if (!*heldp)
		return;
	log_flush();
	log_writer_take(*heldp);
	*heldp = NULL;
}

void log_held_free(struct log_held **heldp)
{
	free(*heldp);
	*heldp = NULL;
}

void log_flush(void)
{
	if (mine)
		hand_over(mine);
}

void log_drain(void)
{
	log_flush();
	log_writer_wait(DRAIN_MS);
}

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&level_least, (int)level, memory_order_relaxed);
}

bool log_open(const char *where, enum log_format form, enum log_level level, struct buf *error)
{
	log_flush();
	if (!log_writer_start(where, form, error))
		return false;
	log_set_level(level);
	return true;
}

bool log_start(struct buf *error)
{
	return log_writer_run(error);
}

bool log_move(const char *where, enum log_format form, struct buf *error)
{
	return log_writer_move(where, form, error);
}

void log_reopen(void)
{
	log_writer_reopen();
}

void log_close(void)
{
	log_flush();
	log_writer_stop();
}
