/* SPDX-License-Identifier: ISC */
#include "qmgr/qmgr_thread.h"

#include "base/clock.h"
#include "base/text_note.h"
#include "qmgr/delivered.h"
#include "qmgr/dest/congestion.h"
#include "qmgr/dest/destdb_text.h"
#include "qmgr/dest/dispatch.h"
#include "qmgr/dest/pooling.h"
#include "qmgr/dest_command.h"
#include "qmgr/domain_mail.h"
#include "qmgr/flow_command.h"
#include "qmgr/flow_mail.h"
#include "qmgr/message.h"
#include "qmgr/nexthop.h"
#include "qmgr/reader.h"
#include "qmgr/retry.h"
#include "qmgr/router.h"
#include "qmgr/suppress_command.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

enum {
	COLLECT_MS = 10000,
	REST_US = 400,
	REST_LONG_US = 2000,
	COMPANY_SHARE = 4,
	COMPANY_MAX = 16
};

static void run_dirty(struct qmgr *q)
{
	for (struct list *first; (first = list_first(&q->sched.dirty)) != NULL;) {
		list_remove(first);
		site_run(site_of_queue(list_entry(first, struct queue, in_dirty)));
	}
}

/* One slot of each transport in turn. */
static bool run_transports(struct qmgr *q)
{
	bool some = false;
	for (struct transport *t = q->sched.transports; t; t = t->hh.next) {
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

void qmgr_thread_settle(struct qmgr *q)
{
	assert(loop_is_ours(q->sched.loop));
	if (q->resting)
		return;
	q->db.rounds++;
	do {
		verifier_run(q);
		reader_feed(q);
		router_run(q);
		run_dirty(q);
	} while (run_transports(q));
	leased_flush(&q->db);
	pooling_flush(&q->db);
	q->db.rounds++; /* what comes until the next one is news */
}

/* Nobody is helped by hearing of a delivery sooner: no mail waits for its place, no client for its answer, and the spool has
 * places for what comes. */
static bool nobody_waits(const struct qmgr *q)
{
	return q->sched.waiting == 0 && q->verifier.nunderway == 0 && list_empty(&q->starved) &&
	       2 * (int64_t)HASH_COUNT(q->messages) <= q->credit;
}

/* Of what is under way: so many places that are free together are as good as one after the other. */
static int company_of(const struct qmgr *q)
{
	int64_t n = q->sched.under_way / COMPANY_SHARE;
	return n < 1 ? 1 : n > COMPANY_MAX ? COMPANY_MAX : (int)n;
}

void qmgr_thread_rest(struct qmgr *q)
{
	struct loop *loop = q->sched.loop;
	if (!loop_is_here(loop) || q->resting || !q->messages)
		return;
	bool long_one = nobody_waits(q);
	int64_t now_us = clock_steady_us(), us = long_one ? REST_LONG_US : REST_US;
	mailbox_rest(&loop->mailbox, long_one ? INT_MAX : company_of(q));
	if (q->rest.started && q->rest_until_us <= now_us + us)
		return;
	q->rest_until_us = now_us + us;
	fine_timer_start(&q->rest, us);
}

/* Where nothing came there may be nothing to come for long: the next to come wakes the thread. */
static void end_rest(void *owner)
{
	struct qmgr *q = owner;
	if (!mailbox_drain(&q->sched.loop->mailbox))
		return;
	qmgr_thread_settle(q);
	qmgr_thread_rest(q);
}

void qmgr_thread_save(struct qmgr *q)
{
	if (!q->db.learnt || !q->db.edges.to_main)
		return;
	struct buf text = {0};
	destdb_write(&q->db, &text);
	q->db.edges.to_main(q->db.edges.context, text_note_new(DEST_SAVE, &text));
	q->db.learnt = false;
}

/* Records of what nobody has asked for lately. */
static void collect_records(void *owner)
{
	struct qmgr *q = owner;
	int64_t now_ms = scheduler_now_ms(&q->sched);
	struct nexthop *n, *next;
	HASH_ITER(hh, q->nexthops, n, next)
	if (n->way.peers == 0 && n->lookup.asking == 0 && n->fresh_until_ms < now_ms)
		nexthop_free(n);
	destdb_collect(&q->db);
	congestion_look(&q->db);
	congestion_count(&q->db);
	qmgr_thread_save(q);
	suppressed_age(&q->suppressed, clock_wall_ms(), q->sched.conf->suppress_most);
	suppress_save(q);
	flow_save(q);
	loop_timer_in(q->sched.loop, &q->collect, COLLECT_MS);
}

static void look_for_ends(void *owner)
{
	struct qmgr *q = owner;
	message_set_ends(q);
	loop_timer_in(q->sched.loop, &q->ends, MESSAGE_ENDS_MS);
}

/* Services of the thread that the rooms ask for. */

static void settle_thread(void *context)
{
	qmgr_thread_settle(context);
}

static void settle_for_scheduler(struct scheduler *sched)
{
	qmgr_thread_settle((struct qmgr *)((char *)sched - offsetof(struct qmgr, sched)));
}

static bool work_is_overdue(const struct work *w)
{
	const struct conf *conf = message_of_work(w)->qmgr->sched.conf;
	const struct retry_terms terms = retry_terms_of(conf, w->envelope);
	int64_t now_ms = clock_wall_ms();
	return retry_expired(&terms, w->envelope, now_ms) ||
	       retry_warning_due(&terms, w->envelope, now_ms);
}

static void check_work(struct work *w)
{
	struct message *m = message_of_work(w);
	message_check(m->qmgr, m);
}

static void release_flow(void *context, const char *flow)
{
	flow_mail_release(context, flow);
}

void qmgr_thread_init(struct qmgr *q, struct conf *conf, struct loop *loop)
{
	const struct destdb_thread thread = {.settle = settle_thread,
					     .take = delivered_take,
					     .defer = delivered_defer,
					     .hold = domain_mail_hold_entry,
					     .record = delivered_record,
					     .overdue = work_is_overdue,
					     .check = check_work,
					     .move = router_move,
					     .may_move = router_may_move,
					     .renew = router_renew,
					     .resumed = release_flow,
					     .context = q};
	scheduler_init(&q->sched, conf, loop, reader_refill, settle_for_scheduler);
	destdb_init(&q->db, &q->sched, &thread);
	q->began_ms = clock_wall_ms();
	q->began_steady_ms = scheduler_now_ms(&q->sched);
	message_init(q);
	router_init(q);
	list_init(&q->starved);
	list_init(&q->unreported);
	list_init(&q->releases);
	flow_tallies_init(&q->tallies);
	verifier_init(q);
	door_init(&q->door);
	suppressed_init(&q->suppressed);
	fine_timer_init(&q->rest, loop, end_rest, q);
	timer_init(&q->collect, collect_records, q);
	loop_timer_in(loop, &q->collect, COLLECT_MS);
	timer_init(&q->ends, look_for_ends, q);
	names_away_init(&q->names_away, loop, &q->db.edges);
	loop_timer_in(loop, &q->ends, MESSAGE_ENDS_MS);
}

static void free_messages(struct qmgr *q)
{
	struct message *m, *tmp;
	HASH_ITER(hh, q->messages, m, tmp)
	{
		message_drop_waiting(m);
		message_free(q, m);
	}
	assert(!q->messages);
}

void qmgr_thread_fini(struct qmgr *q)
{
	fine_timer_fini(&q->rest);
	timer_stop(&q->sched.loop->timers, &q->collect);
	timer_stop(&q->sched.loop->timers, &q->ends);
	names_away_fini(&q->names_away);
	conns_free(&q->db);
	struct nexthop *n, *next;
	HASH_ITER(hh, q->nexthops, n, next)
	router_forget(n);
	free_messages(q);
	verifier_drop(q);
	flow_mail_drop_releases(q);
	flow_tallies_fini(&q->tallies);
	assert(list_empty(&q->releases));
	assert(list_empty(&q->unreported) && list_empty(&q->starved));
	router_fini(q);
	verifier_fini(q);
	door_fini(&q->door);
	suppressed_fini(&q->suppressed);
	HASH_ITER(hh, q->nexthops, n, next)
	nexthop_free(n);
	assert(!q->nexthops && !q->led_last);
	buf_fini(&q->hop_key);
	destdb_fini(&q->db);
	scheduler_fini(&q->sched);
	message_fini(q);
}
