/* SPDX-License-Identifier: ISC */
#include "smtpd/milter/milter_health.h"

#include "base/clock.h"
#include "base/date.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct row {
	struct list link;
	char *name;
	struct milter_health is;
	enum milter_fault fault; /* of the last failure */
	int64_t failed_ms;	 /* steady clock */
	bool gone; /* of the configuration: sessions that have the old one still are not heard */
};

static struct {
	pthread_mutex_t lock;
	struct list rows;
} all = {PTHREAD_MUTEX_INITIALIZER, {&all.rows, &all.rows}};

static struct row *find_row(const char *name)
{
	list_each (link, tmp, &all.rows)
		if (strcmp(list_entry(link, struct row, link)->name, name) == 0)
			return list_entry(link, struct row, link);
	return NULL;
}

static struct row *row_of(const char *name)
{
	struct row *r = find_row(name);
	if (r)
		return r;
	r = mem_zalloc(sizeof *r);
	r->name = mem_strdup(name);
	list_append(&all.rows, &r->link);
	return r;
}

enum condition milter_health_condition(const struct conf_milter *c)
{
	static const enum condition of[] = {[MILTER_DEFAULT_TEMPFAIL] = CONDITION_filter_defers,
					    [MILTER_DEFAULT_ACCEPT] = CONDITION_filter_passes,
					    [MILTER_DEFAULT_REJECT] = CONDITION_filter_rejects,
					    [MILTER_DEFAULT_QUARANTINE] = CONDITION_filter_holds};
	return of[c->default_action];
}

/* True: this is news. */
static bool turn_row(struct row *r, bool away)
{
	if (r->is.away == away)
		return false;
	r->is.away = away;
	r->is.since_ms = date_ms();
	metric_cell_set(metric_cell(FAMILY_milter_up, r->name, NULL), away ? 0 : 1);
	return true;
}

static void note_failure(struct row *r, enum milter_fault fault, const char *why)
{
	char *old = r->is.why;
	r->is.why = mem_strdup(why);
	free(old);
	r->fault = fault;
	r->failed_ms = clock_steady_ms();
}

void milter_health_broke(const struct conf_milter *c, enum milter_fault fault, const char *why)
{
	pthread_mutex_lock(&all.lock);
	struct row *r = row_of(c->title);
	if (r->gone) {
		pthread_mutex_unlock(&all.lock);
		return;
	}
	note_failure(r, fault, why);
	metric_cell_add(metric_cell(FAMILY_milter_failures, c->title, NULL), 1);
	if (turn_row(r, true))
		log_event(LOG_LEVEL_ERROR, "milter", "milter", c->title, "address", c->address,
			  "state", "away", "reason", why, NULL);
	condition_set(milter_health_condition(c), c->title, why);
	pthread_mutex_unlock(&all.lock);
}

static void come_back(struct row *r, const struct conf_milter *c)
{
	if (r->gone)
		return;
	if (turn_row(r, false))
		log_event(LOG_LEVEL_INFO, "milter", "milter", c->title, "address", c->address,
			  "state", "ready", NULL);
	condition_clear(CONDITION_filter_defers, c->title);
}

void milter_health_passed(const struct conf_milter *c)
{
	pthread_mutex_lock(&all.lock);
	struct row *r = row_of(c->title);
	r->is.seen_ms = clock_steady_ms();
	come_back(r, c);
	pthread_mutex_unlock(&all.lock);
}

void milter_health_negotiated(const struct conf_milter *c, int64_t asked_ms)
{
	pthread_mutex_lock(&all.lock);
	struct row *r = row_of(c->title);
	int64_t now_ms = clock_steady_ms();
	r->is.seen_ms = now_ms;
	bool newer = asked_ms > r->failed_ms;
	if (newer && (r->fault == MILTER_UNREACHED || now_ms - r->failed_ms >= MILTER_DOUBT_MS))
		come_back(r, c);
	pthread_mutex_unlock(&all.lock);
}

bool milter_health_seen_since(const char *name, int64_t steady_ms)
{
	pthread_mutex_lock(&all.lock);
	const struct row *r = find_row(name);
	bool seen = r && r->is.seen_ms > steady_ms;
	pthread_mutex_unlock(&all.lock);
	return seen;
}

static const char *answer_name(enum milter_answer_kind kind, const char *reply)
{
	static const char *const names[MILTER_ANSWER_COUNT] = {
		[MILTER_ANSWER_CONTINUE] = "continue", [MILTER_ANSWER_ACCEPT] = "accept",
		[MILTER_ANSWER_REJECT] = "reject",     [MILTER_ANSWER_TEMPFAIL] = "tempfail",
		[MILTER_ANSWER_DISCARD] = "discard",   [MILTER_ANSWER_SKIP] = "skip",
		[MILTER_ANSWER_SHUTDOWN] = "shutdown", [MILTER_ANSWER_GIVE_UP] = "give_up"};
	if (kind == MILTER_ANSWER_REPLY)
		return reply[0] == '4' ? "tempfail" : "reject";
	return names[kind];
}

void milter_health_answered(const char *name, enum milter_answer_kind kind, const char *reply,
			    int64_t took_us)
{
	metric_cell_add(metric_cell(FAMILY_milter_answers, name, answer_name(kind, reply)), 1);
	pthread_mutex_lock(&all.lock);
	struct milter_health *h = &row_of(name)->is;
	h->seen_ms = clock_steady_ms();
	h->answers++;
	h->answer_us += took_us;
	if (took_us > h->longest_us)
		h->longest_us = took_us;
	pthread_mutex_unlock(&all.lock);
}

void milter_health_take(const char *name, struct milter_health *to)
{
	pthread_mutex_lock(&all.lock);
	const struct row *r = find_row(name);
	*to = r ? r->is : (struct milter_health){0};
	to->why = r && r->is.why ? mem_strdup(r->is.why) : NULL;
	pthread_mutex_unlock(&all.lock);
}

void milter_health_fini(struct milter_health *h)
{
	mem_free(&h->why);
}

void milter_health_begin(const struct conf_milter *c)
{
	pthread_mutex_lock(&all.lock);
	row_of(c->title)->gone = false;
	metric_cell_set(metric_cell(FAMILY_milter_up, c->title, NULL), 1);
	pthread_mutex_unlock(&all.lock);
}

void milter_health_forget(const char *name)
{
	pthread_mutex_lock(&all.lock);
	struct row *r = row_of(name);
	condition_clear(CONDITION_filter_defers, name);
	metric_cell_set(metric_cell(FAMILY_milter_up, name, NULL), METRIC_GONE);
	milter_health_fini(&r->is);
	r->is = (struct milter_health){0};
	r->gone = true;
	pthread_mutex_unlock(&all.lock);
}
