/* SPDX-License-Identifier: ISC */
#include "qmgr/site.h"

#include "base/mem.h"
#include "qmgr/conn.h"
#include "qmgr/indoubt.h"
#include "qmgr/job.h"
#include "qmgr/message.h"
#include "qmgr/outcome.h"
#include "qmgr/pool.h"
#include "qmgr/selection.h"
#include "qmgr/suspend.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void on_wake(void *owner)
{
	struct site *s = owner;
	site_touch(s);
	scheduler_settle(s->qmgr);
}

struct site *site_get(struct qmgr *q, struct transport *t, const char *name)
{
	char *key = mem_printf("%s %s", t->title, name);
	struct site *s;
	HASH_FIND_STR(q->sites, key, s);
	if (s) {
		free(key);
		return s;
	}
	s = mem_zalloc(sizeof *s);
	s->key = key;
	s->name = key + strlen(t->title) + 1;
	s->transport = t;
	s->qmgr = q;
	window_init(&s->window, t->settings);
	list_init(&s->peers);
	list_init(&s->open);
	list_init(&s->rest);
	list_init(&s->in_dirty);
	list_init(&s->granted);
	list_init(&s->in_full);
	list_init(&s->in_parked);
	selection_init_site(s);
	timer_init(&s->wake, on_wake, s);
	s->suspended = suspend_covers_site(q, s);
	HASH_ADD_KEYPTR(hh, q->sites, s->key, strlen(s->key), s);
	return s;
}

static void drop_hosts(struct site *s)
{
	for (int i = 0; i < s->nhost; i++)
		host_unref(s->hosts[i].host);
	free(s->hosts);
}

void site_set_hosts(struct site *s, struct site_host *hosts, int n)
{
	drop_hosts(s);
	s->hosts = hosts;
	s->nhost = n;
	list_remove(&s->in_full); /* what it waited for may be gone */
	site_touch(s);
}

void site_touch(struct site *s)
{
	if (list_empty(&s->in_dirty))
		list_append(&s->qmgr->dirty, &s->in_dirty);
}

void site_defer_all(struct site *s, struct verdict *why)
{
	assert(why);
	struct outcome_context context = {.site = s, .transport = s->transport};
	for (struct list *first; (first = list_first(&s->peers)) != NULL;) {
		struct peer *p = list_entry(first, struct peer, in_site);
		struct job *job = p->job;
		struct entry *e = peer_drop(p);
		for (uint32_t i = 0; i < e->n; i++)
			outcome_apply(job->message, e->recipient[i], why, &context);
		pool_free(job, e->n);
		job_entry_done(e);
		message_check(s->qmgr, job->message);
	}
}

/* Grants come first; they were selected when the connection was begun. */
static void serve_granted(struct site *s)
{
	while (s->ngranted > 0) {
		struct peer *p = list_entry(list_first(&s->granted), struct peer, in_granted);
		struct conn *c = site_place(s, p);
		if (!c)
			break;
		site_count_delivery(s);
		conn_give(s->qmgr, c, peer_take(p));
	}
	/* One that is slow to connect leaves its entry to another. */
	while (s->ngranted > s->connecting - s->slow)
		peer_ungrant(list_entry(s->granted.prev, struct peer, in_granted));
}

int site_limit(const struct site *s)
{
	return site_one_at_a_time(s) && s->window.concurrency > 1 ? 1 : s->window.concurrency;
}

static bool may_grow(const struct site *s)
{
	int used = s->qmgr->bind_early ? s->busy : s->connections - s->slow;
	return s->waiting > s->connecting - s->slow && used < site_limit(s);
}

static enum site_state assess(struct site *s)
{
	struct heap_item *first = heap_first(&s->order);
	if (site_paused(s)) {
		/* What is granted waits for the same time. */
		if (s->waiting > 0 && site_paused_until_ms(s) > scheduler_now_ms(s->qmgr))
			timer_start(&s->qmgr->loop->timers, &s->wake, site_paused_until_ms(s));
		return SITE_QUIET;
	}
	if (!first)
		return SITE_QUIET;
	if (site_place(s, heap_entry(first, struct peer, in_order)))
		return SITE_PLACED;
	return !window_dead(&s->window) && may_grow(s) ? SITE_HUNGRY : SITE_QUIET;
}

static void defer_suspended(struct site *s)
{
	struct verdict *why = suspend_verdict("site");
	site_defer_all(s, why);
	verdict_unref(why);
}

void site_run(struct site *s)
{
	site_revive(s);
	if (s->suspended)
		defer_suspended(s);
	serve_granted(s);
	list_remove(&s->in_parked);
	selection_set(s, assess(s));
	if (s->waiting > 0 && window_dead(&s->window) && s->connections == 0)
		site_fail_all(s);
}

bool site_idle(const struct site *s)
{
	return s->refs == 0 && s->waiting == 0 && s->connections == 0 && s->busy == 0 &&
	       !site_paused(s);
}

void site_free(struct site *s)
{
	assert(list_empty(&s->peers));
	timer_stop(&s->qmgr->loop->timers, &s->wake);
	list_remove(&s->in_dirty);
	list_remove(&s->in_full);
	list_remove(&s->in_parked);
	selection_set(s, SITE_QUIET);
	selection_fini_site(s);
	HASH_DEL(s->qmgr->sites, s);
	drop_hosts(s);
	verdict_unref(s->last_failure);
	verdict_unref(s->last_verdict);
	free(s->key);
	free(s);
}
