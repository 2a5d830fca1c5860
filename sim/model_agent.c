/* SPDX-License-Identifier: ISC */
/* An agent, as Postfix's: it has been given an entry, and only then looks for a connection. Who gives it
 * one, and what becomes of its verdicts, is qmgr's own (early.h). */
#include "sim/model_host.h"
#include "sim/watch.h"

#include "base/clock.h"
#include "base/mem.h"
#include "qmgr/dest/early.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CACHE_MS = 2000, HOSTS_TRIED = 5 };

struct agent {
	struct stage *stage;
	struct early early;
	struct session *session; /* what it delivers by */
	int host, ntried;	 /* index in the site's hosts */
	int cause;		 /* of the last failure */
	struct timer timer;
	struct list link;
};

/* A connection, of an agent or kept for the next. */
struct session {
	struct stage *stage;
	char *site;
	int64_t most_us; /* no reuse after this time; 0: for ever */
	bool lost;	 /* while it carried a delivery */
	struct attempt attempt;
	struct timer idle;
	struct list link; /* stage->cached */
};

static void session_free(struct session *s)
{
	attempt_close(&s->attempt);
	timer_stop(&s->stage->world->events, &s->idle);
	list_remove(&s->link);
	free(s->site);
	free(s);
}

/* One that is kept is found to be closed before it is used again. */
static void on_session_lost(struct attempt *a)
{
	struct session *s = list_entry(a, struct session, attempt);
	if (list_empty(&s->link))
		s->lost = true;
	else
		session_free(s);
}

static void on_session_idle(void *owner)
{
	session_free(owner);
}

static struct session *take_cached(struct stage *st, const struct site *site)
{
	list_each_entry (struct session, s, link, &st->cached) {
		if (strcmp(s->site, site->key) != 0)
			continue;
		list_remove(&s->link);
		timer_stop(&st->world->events, &s->idle);
		return s;
	}
	return NULL;
}

/* The entry has its verdicts: the agent is gone. */
static void retire_agent(struct agent *a)
{
	struct stage *st = a->stage;
	struct site *s = a->early.site;
	tally_window(st->tally, s->key, s->window.concurrency);
	assert(st->agents_busy > 0);
	st->agents_busy--;
	watch_ended(st, s->key);
	early_end(&a->early);
	list_remove(&a->link);
	free(a);
}

static void fail_agent(struct agent *a)
{
	struct verdict *why =
		cause_verdict((enum cause)a->cause, VERDICT_DEFERRED, a->early.site->name);
	early_failed(&a->early, why);
	verdict_unref(why);
	retire_agent(a);
}

static void keep_session(struct agent *a)
{
	struct session *s = a->session;
	bool old = s->most_us > 0 && a->stage->world->now_us >= s->most_us;
	if (old || !a->stage->scenario->simulation.connection_cache) {
		session_free(s);
		return;
	}
	list_prepend(&a->stage->cached, &s->link);
	stage_after(a->stage, &s->idle, stage_us(CACHE_MS));
}

static void on_delivered(void *owner)
{
	struct agent *a = owner;
	struct model_host *h = a->session->attempt.host;
	bool broken = a->session->lost || host_breaks(h);
	enum verdict_class lost = dice_happens(&h->dice, 0.5) ? VERDICT_IN_DOUBT : VERDICT_DEFERRED;
	uint32_t n = a->early.entry->n;
	struct verdict **verdict = mem_zalloc(n * sizeof *verdict);
	const struct envelope *e = a->early.entry->peer->job->work->envelope;
	int64_t age_ms = clock_wall_ms() - e->arrived_ms;
	for (uint32_t i = 0; i < n; i++)
		verdict[i] = broken ? cause_verdict(CAUSE_LOST, lost, h->is->title)
				    : host_verdict(h, NULL, age_ms);
	a->stage->tally->transactions += !broken;
	if (broken)
		session_free(a->session);
	else
		keep_session(a);
	early_delivered(&a->early, verdict);
	for (uint32_t i = 0; i < n; i++)
		verdict_unref(verdict[i]);
	free(verdict);
	retire_agent(a);
}

static void deliver_entry(struct agent *a)
{
	assert(attempt_stands(&a->session->attempt) && list_empty(&a->session->link));
	uint64_t size = a->early.entry->peer->job->work->content->size;
	stage_after(a->stage, &a->timer,
		    host_transaction_us(a->session->attempt.host, a->early.entry->n, size, 1));
}

static void connect_next(struct agent *a);

static void on_attempt(void *owner, int cause)
{
	struct agent *a = owner;
	if (cause == CAUSE_NONE) {
		a->stage->tally->connected++;
		deliver_entry(a);
		return;
	}
	a->stage->tally->useless[cause]++;
	a->cause = cause;
	session_free(a->session);
	a->session = NULL;
	connect_next(a);
}

/* In order of preference; of equals, from one at random on. */
static struct host *next_host(struct agent *a)
{
	const struct site *s = a->early.site;
	if (a->ntried >= HOSTS_TRIED || a->ntried >= s->nhost)
		return NULL;
	int first = 0, n = 0;
	while (first + n <= a->ntried) {
		first += n;
		for (n = 1; first + n < s->nhost; n++)
			if (s->hosts[first + n].preference != s->hosts[first].preference)
				break;
	}
	if (a->ntried == first)
		a->host = (int)dice_between(&a->stage->dice, 0, n - 1);
	return s->hosts[first + (a->host + a->ntried++) % n].host;
}

static void connect_next(struct agent *a)
{
	struct host *host = next_host(a);
	if (!host) {
		fail_agent(a);
		return;
	}
	int64_t age_ms = a->early.site->queue.transport->settings->connection_max_age;
	struct session *s = a->session = mem_zalloc(sizeof *s);
	s->stage = a->stage;
	s->most_us = age_ms ? a->stage->world->now_us + stage_us(age_ms) : 0;
	s->site = mem_strdup(a->early.site->key);
	list_init(&s->link);
	timer_init(&s->idle, on_session_idle, s);
	s->attempt.ended = on_attempt;
	s->attempt.lost = on_session_lost;
	s->attempt.owner = a;
	a->stage->tally->connections++;
	attempt_start(&s->attempt, model_host_at(a->stage->world, &host->address),
		      a->early.site->queue.transport->settings);
}

static void begin_agent(void *owner)
{
	struct agent *a = owner;
	timer_init(&a->timer, on_delivered, a);
	a->session = take_cached(a->stage, a->early.site);
	if (a->session) {
		a->session->attempt.owner = a;
		deliver_entry(a);
	} else {
		connect_next(a);
	}
}

/* Agents that are there already begin at once; others are started one after the other. */
static int64_t time_to_start_us(struct stage *st)
{
	if (st->agents_busy <= st->agents_made)
		return 0;
	st->agents_made++;
	if (st->agent_made_us < st->world->now_us)
		st->agent_made_us = st->world->now_us;
	st->agent_made_us += stage_us(st->scenario->simulation.agent_start);
	return st->agent_made_us - st->world->now_us;
}

void model_agent_bind(void *context, struct peer *p)
{
	assert(((struct stage *)context)->early);
	struct stage *st = context;
	struct site *s = site_of_queue(p->queue);
	struct agent *a = mem_zalloc(sizeof *a);
	watch_begun(st, s->key, s->queue.transport->settings);
	a->stage = st;
	early_take(&a->early, p);
	watch_goes_to(st, s->key, a->early.entry);
	a->cause = CAUSE_OTHER;
	timer_init(&a->timer, begin_agent, a);
	list_append(&st->agents, &a->link);
	st->agents_busy++;
	stage_after(st, &a->timer, time_to_start_us(st));
}

void model_agent_fini(struct stage *st)
{
	list_each_entry (struct agent, a, link, &st->agents) {
		if (a->session)
			session_free(a->session);
		early_drop(&a->early);
		free(a);
	}
	list_each (link, tmp, &st->cached)
		session_free(list_entry(link, struct session, link));
}
