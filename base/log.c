/* SPDX-License-Identifier: ISC */
#include "base/log.h"

#include "base/date.h"
#include "base/log_format.h"
#include "base/log_values.h"
#include "base/log_writer.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
	FLUSH_AT = 64 << 10, /* bytes a thread gathers before it hands them over unasked */
	DRAIN_MS = 1000,
};

struct lines {
	struct buf text;
	int count;
	bool marked; /* for syslog: each begins with its level */
	size_t before; /* bytes that were handed over last: as much room there is at once for those to come */
};

struct log_held {
	struct lines lines;
};

static _Thread_local struct lines *mine;
static pthread_key_t at_thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int level_least = LOG_LEVEL_INFO;
static atomic_int form = LOG_TEXT;

static void hand_over(struct lines *l)
{
	if (buf_len(&l->text) == 0)
		return;
	l->before = buf_len(&l->text);
	log_writer_take(&l->text, l->count, l->marked);
	l->count = 0;
}

static void end_of_thread(void *arg)
{
	struct lines *l = arg;
	hand_over(l);
	buf_fini(&l->text);
	free(l);
	mine = NULL;
}

static void make_key(void)
{
	pthread_key_create(&at_thread_end, end_of_thread);
}

static struct lines *lines_of_thread(void)
{
	if (!mine) {
		pthread_once(&once, make_key);
		mine = mem_zalloc(sizeof *mine);
		pthread_setspecific(at_thread_end, mine);
	}
	return mine;
}

static void format_record(struct lines *l, const struct log_record *r)
{
	int count = 1;
	switch (atomic_load_explicit(&form, memory_order_relaxed)) {
	case LOG_JSON:
		log_format_json(&l->text, r);
		break;
	case LOG_POSTFIX:
		count = log_format_postfix(&l->text, r);
		break;
	default:
		log_format_text(&l->text, r);
	}
	l->count += count;
}

static bool is_below_least(enum log_level level)
{
	return (int)level < atomic_load_explicit(&level_least, memory_order_relaxed);
}

/* Whoever chooses a value may choose a long one: at each line a megabyte of it would soon be a full
 * disk. The copy is the record's. */
static void cut_value(struct log_pair *p, size_t len)
{
	size_t n = LOG_VALUE_MAX;
	while (n > LOG_VALUE_MAX - 4 && ((unsigned char)p->value[n] & 0xc0) == 0x80)
		n--; /* not in the middle of a character */
	p->value = mem_printf("%.*s...(cut, %zu bytes)", (int)n, p->value, len);
	p->cut = true;
}

static void record_fini(struct log_record *r)
{
	for (int i = 0; i < r->npair; i++)
		if (r->pair[i].cut)
			free((char *)(size_t)r->pair[i].value);
}

static void fill_record(struct log_record *r, enum log_level level, const char *event, va_list args)
{
	r->level = level;
	r->event = event;
	r->wall_ms = date_ms();
	r->syslog = log_writer_is_syslog();
	r->npair = 0; /* more than a kilobyte of pairs is not cleared for each line */
	const char *key;
	while (r->npair < LOG_PAIRS_MAX && (key = va_arg(args, const char *))) {
		const char *value = va_arg(args, const char *);
		if (!value)
			continue;
		struct log_pair *p = &r->pair[r->npair++];
		*p = (struct log_pair){key, value, .number = log_is_number(value)};
		size_t len = strlen(value);
		if (len > LOG_VALUE_MAX)
			cut_value(p, len);
	}
}

/* This thread's lines, with no others than such in it: the log may have moved. */
static struct lines *lines_marked(bool marked)
{
	struct lines *l = lines_of_thread();
	if (l->marked != marked)
		hand_over(l);
	l->marked = marked;
	if (buf_len(&l->text) == 0)
		buf_reserve(&l->text, l->before);
	return l;
}

void log_event(enum log_level level, const char *event, ...)
{
	if (is_below_least(level))
		return;
	struct log_record r;
	va_list args;
	va_start(args, event);
	fill_record(&r, level, event, args);
	va_end(args);
	struct lines *l = lines_marked(r.syslog);
	format_record(l, &r);
	record_fini(&r);
	if (buf_len(&l->text) >= FLUSH_AT || !log_writer_running())
		hand_over(l);
}

struct log_held *log_hold(enum log_level level, const char *event, ...)
{
	if (is_below_least(level))
		return NULL;
	struct log_held *held = mem_zalloc(sizeof *held);
	struct log_record r;
	va_list args;
	va_start(args, event);
	fill_record(&r, level, event, args);
	va_end(args);
	held->lines.marked = r.syslog;
	format_record(&held->lines, &r);
	record_fini(&r);
	return held;
}

void log_release(struct log_held **heldp)
{
	struct log_held *held = *heldp;
	if (!held)
		return;
	struct lines *l = lines_marked(held->lines.marked);
	buf_append(&l->text, buf_data(&held->lines.text), buf_len(&held->lines.text));
	l->count += held->lines.count;
	hand_over(l);
	log_held_free(heldp);
}

void log_held_free(struct log_held **heldp)
{
	if (*heldp)
		buf_fini(&(*heldp)->lines.text);
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

bool log_open(const char *where, enum log_format format_wanted, enum log_level level,
	      struct buf *error)
{
	log_flush();
	if (!log_writer_start(where, error))
		return false;
	atomic_store_explicit(&form, (int)format_wanted, memory_order_relaxed);
	log_set_level(level);
	return true;
}

bool log_start(struct buf *error)
{
	return log_writer_run(error);
}

bool log_take_own(struct buf *to, const char *event, const char *key, int64_t value)
{
	struct lines own = {.marked = log_writer_is_syslog()};
	struct log_record r = {.level = LOG_LEVEL_WARNING,
			       .event = event,
			       .wall_ms = date_ms(),
			       .syslog = own.marked,
			       .npair = 1,
			       .pair = {{.key = key, .value = log_number(value), .number = true}}};
	format_record(&own, &r);
	buf_append(to, buf_data(&own.text), buf_len(&own.text));
	buf_fini(&own.text);
	return own.marked;
}

bool log_move(const char *where, enum log_format format_wanted, struct buf *error)
{
	if (where && !log_writer_move(where, error))
		return false;
	atomic_store_explicit(&form, (int)format_wanted, memory_order_relaxed);
	return true;
}

void log_reopen(void)
{
	log_writer_reopen();
}

void log_close(void)
{
	log_flush();
	log_writer_stop();
	atomic_store_explicit(&form, LOG_TEXT, memory_order_relaxed);
}

uint64_t log_dropped(void)
{
	return log_writer_dropped();
}
