/* SPDX-License-Identifier: ISC */
#include "base/condition.h"

#include "base/date.h"
#include "base/internet_time.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/utf8.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	bool stops;
	const char *effect, *remedy;
} rows[CONDITION_COUNT] = {
#define C(row, name, stops, effect, remedy) {name, stops, effect, remedy},
	CONDITIONS(C)
#undef C
};

static struct {
	pthread_mutex_t lock;
	struct condition_row row[CONDITIONS_MAX]; /* the oldest first */
	int n;
	atomic_int stopping; /* of them, those that stop mail */
} list = {.lock = PTHREAD_MUTEX_INITIALIZER};

const char *condition_name(enum condition c)
{
	assert(c < CONDITION_COUNT);
	return rows[c].name;
}

const char *condition_effect(enum condition c)
{
	assert(c < CONDITION_COUNT);
	return rows[c].effect;
}

const char *condition_remedy(enum condition c)
{
	assert(c < CONDITION_COUNT);
	return rows[c].remedy;
}

bool condition_stops(enum condition c)
{
	assert(c < CONDITION_COUNT);
	return rows[c].stops;
}

bool condition_stops_mail(void)
{
	return atomic_load_explicit(&list.stopping, memory_order_relaxed) > 0;
}

static bool is_of(const struct condition_row *r, enum condition c)
{
	return strcmp(rows[r->is].name, rows[c].name) == 0;
}

static struct condition_row *find_row(enum condition c, const char *subject)
{
	assert(c < CONDITION_COUNT);
	for (int i = 0; i < list.n; i++)
		if (is_of(&list.row[i], c) && strcmp(list.row[i].subject, subject) == 0)
			return &list.row[i];
	return NULL;
}

static enum log_level level_of(const struct condition_row *r, bool on)
{
	if (!on)
		return LOG_LEVEL_INFO;
	return rows[r->is].stops ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING;
}

static void log_row(const struct condition_row *r, bool on)
{
	char since[INTERNET_TIME_TEXT];
	log_event(level_of(r, on), "condition", "name", rows[r->is].name, "subject",
		  *r->subject ? r->subject : NULL, "state", on ? "on" : "off", "since",
		  internet_time_text(r->since_ms, since), "effect", rows[r->is].effect, "remedy",
		  rows[r->is].remedy, "reason", on ? r->reason : NULL, NULL);
}

static void count_row(const struct condition_row *r, int n)
{
	metric_cell_add(metric_cell(FAMILY_conditions, rows[r->is].name, NULL), n);
	if (rows[r->is].stops)
		atomic_fetch_add(&list.stopping, n);
	assert(atomic_load(&list.stopping) >= 0);
}

/* So that an alarm finds the series before there is anything to tell. */
static void name_all(void)
{
	for (int i = 0; i < CONDITION_COUNT; i++)
		metric_cell(FAMILY_conditions, rows[i].name, NULL);
}

/* Peers may have had a hand in it. */
static void put_reason(struct condition_row *r, const char *reason)
{
	char *old = r->reason;
	size_t len = reason ? strlen(reason) : 0;
	r->reason = reason ? mem_zalloc(len + 1) : NULL;
	if (reason)
		utf8_clean(r->reason, reason, len);
	free(old);
}

static void add_row(enum condition c, const char *subject, const char *reason)
{
	if (list.n == CONDITIONS_MAX)
		return;
	struct condition_row *r = &list.row[list.n++];
	*r = (struct condition_row){.is = c, .subject = mem_strdup(subject), .since_ms = date_ms()};
	put_reason(r, reason);
	count_row(r, 1);
	log_row(r, true);
}

/* The same name, and more or less harm. */
static void turn_into(struct condition_row *r, enum condition c)
{
	assert(r->is != c && is_of(r, c));
	count_row(r, -1);
	r->is = c;
	count_row(r, 1);
	log_row(r, true);
}

void condition_set(enum condition c, const char *subject, const char *reason)
{
	pthread_mutex_lock(&list.lock);
	struct condition_row *r = find_row(c, subject);
	if (!r) {
		add_row(c, subject, reason);
	} else {
		put_reason(r, reason);
		if (r->is != c)
			turn_into(r, c);
	}
	pthread_mutex_unlock(&list.lock);
}

static void row_fini(struct condition_row *r)
{
	free(r->subject);
	free(r->reason);
}

static void end_row(struct condition_row *r)
{
	assert(r >= list.row && r < list.row + list.n);
	log_row(r, false);
	count_row(r, -1);
	row_fini(r);
	assert(list.n > 0);
	list.n--;
	memmove(r, r + 1, (size_t)(&list.row[list.n] - r) * sizeof *r);
}

void condition_clear(enum condition c, const char *subject)
{
	pthread_mutex_lock(&list.lock);
	struct condition_row *r = find_row(c, subject);
	if (r)
		end_row(r);
	pthread_mutex_unlock(&list.lock);
}

void condition_turn(enum condition c, bool on, const char *subject, const char *reason)
{
	if (on)
		condition_set(c, subject, reason);
	else
		condition_clear(c, subject);
}

void condition_clear_all(enum condition c)
{
	pthread_mutex_lock(&list.lock);
	for (int i = list.n - 1; i >= 0; i--)
		if (is_of(&list.row[i], c))
			end_row(&list.row[i]);
	pthread_mutex_unlock(&list.lock);
}

void conditions_end(void)
{
	pthread_mutex_lock(&list.lock);
	while (list.n > 0)
		end_row(&list.row[list.n - 1]);
	assert(atomic_load(&list.stopping) == 0);
	pthread_mutex_unlock(&list.lock);
}

static void copy_rows(struct conditions *to, bool stopping)
{
	for (int i = 0; i < list.n; i++) {
		const struct condition_row *r = &list.row[i];
		if (rows[r->is].stops != stopping)
			continue;
		assert(to->n < list.n);
		struct condition_row *own = &to->row[to->n++];
		*own = *r;
		own->subject = mem_strdup(r->subject);
		own->reason = r->reason ? mem_strdup(r->reason) : NULL;
	}
}

void conditions_take(struct conditions *to)
{
	*to = (struct conditions){0};
	pthread_mutex_lock(&list.lock);
	name_all();
	to->row = mem_zalloc((size_t)(list.n + 1) * sizeof *to->row);
	copy_rows(to, true);
	copy_rows(to, false);
	assert(to->n == list.n);
	pthread_mutex_unlock(&list.lock);
}

void conditions_fini(struct conditions *c)
{
	for (int i = 0; i < c->n; i++)
		row_fini(&c->row[i]);
	free(c->row);
	*c = (struct conditions){0};
}
