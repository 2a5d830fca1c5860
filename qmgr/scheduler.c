/* SPDX-License-Identifier: ISC */
#include "qmgr/scheduler.h"

#include "base/mem.h"
#include "qmgr/congestion.h"
#include "qmgr/conn.h"
#include "qmgr/dest_command.h"
#include "qmgr/destdb_text.h"
#include "qmgr/dispatch.h"
#include "qmgr/message.h"
#include "qmgr/nexthop.h"
#include "qmgr/reader.h"
#include "qmgr/remembered.h"
#include "qmgr/router.h"
#include "qmgr/suspend.h"

#include <stdlib.h>
#include <sys/random.h>

enum { COLLECT_MS = 10000 };

int64_t scheduler_now_ms(const struct qmgr *q)
{
	return q->loop->now_ms;
}

double scheduler_chance(struct qmgr *q)
{
	/* xorshift64*: not for secrets, only to keep equals apart. */
	q->chance ^= q->chance >> 12;
	q->chance ^= q->chance << 25;
	q->chance ^= q->chance >> 27;
	return (double)((q->chance * UINT64_C(2685821657736338717)) >> 11) / 9007199254740992.0;
}

static void run_dirty(struct qmgr *q)
{
	for (struct list *first; (first = list_first(&q->dirty)) != NULL;) {
		list_remove(first);
		site_run(list_entry(first, struct site, in_dirty));
	}
}

/* One slot of each transport in turn. */
static bool run_transports(struct qmgr *q)
{
	bool some = false;
	for (struct transport *t = q->transports; t; t = t->hh.next) {
		if (t->unpark) {
			t->unpark = false;
			dispatch_unpark(t);
			run_dirty(q);
		}
		some |= dispatch_one(t);
		run_dirty(q);
		some |= t->unpark;
	}
	return some;
}

void scheduler_settle(struct qmgr *q)
{
	if (q->resting)
		return;
	q->rounds++;
	do {
		reader_feed(q);
		router_run(q);
		run_dirty(q);
	} while (run_transports(q));
	q->rounds++; /* what comes until the next one is news */
}

void scheduler_seed(struct qmgr *q)
{
	while (q->chance == 0 && getrandom(&q->chance, sizeof q->chance, 0) >= 0)
		;
}

void scheduler_save(struct qmgr *q)
{
	if (!q->learnt || !q->edges.to_main)
		return;
	struct dest_save *note = mem_zalloc(sizeof *note);
	struct buf text;
	buf_init(&text);
	destdb_write(q, &text);
	note->note.type = DEST_SAVE;
	note->text = buf_steal(&text, NULL);
	q->edges.to_main(q->edges.context, &note->note);
	q->learnt = false;
}

/* Records of what nobody has asked for lately. */
static void collect(void *owner)
{
	struct qmgr *q = owner;
	int64_t now_ms = scheduler_now_ms(q);
	struct nexthop *n, *next_n;
	HASH_ITER(hh, q->nexthops, n, next_n)
	if (n->refs == 0 && n->asking == 0 && n->fresh_until_ms < now_ms)
		nexthop_free(n);
	struct site *s, *next_s;
	HASH_ITER(hh, q->sites, s, next_s)
	{
		if (site_idle(s) && s->dead_until_ms <= now_ms)
			site_free(s);
		else
			site_ask_for_mail(s);
	}
	struct host *h, *next_h;
	HASH_ITER(hh, q->hosts, h, next_h)
	if (host_stale(h, now_ms))
		host_free(q, h);
	congestion_look(q);
	scheduler_save(q);
	loop_timer_in(q->loop, &q->collect, COLLECT_MS);
}

void scheduler_start_collecting(struct qmgr *q)
{
	timer_init(&q->collect, collect, q);
	loop_timer_in(q->loop, &q->collect, COLLECT_MS);
}

static void free_messages(struct qmgr *q)
{
	struct message *m, *tmp;
	HASH_ITER(hh, q->messages, m, tmp)
	{
		message_drop_waiting(m);
		message_free(q, m);
	}
}

void scheduler_fini(struct qmgr *q)
{
	timer_stop(&q->loop->timers, &q->collect);
	conns_free(q);
	struct nexthop *n, *next_n;
	HASH_ITER(hh, q->nexthops, n, next_n)
	nexthop_drop(n);
	free_messages(q);
	HASH_ITER(hh, q->nexthops, n, next_n)
	nexthop_free(n);
	struct site *s, *next_s;
	HASH_ITER(hh, q->sites, s, next_s)
	site_free(s);
	struct host *h, *next_h;
	HASH_ITER(hh, q->hosts, h, next_h)
	host_free(q, h);
	transports_free(q);
	suspend_free(q);
	remembered_free(q);
}
