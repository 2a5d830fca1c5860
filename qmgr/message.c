/* SPDX-License-Identifier: ISC */
#include "qmgr/message.h"

#include "base/clock.h"
#include "base/mem.h"
#include "qmgr/dest/site.h"
#include "qmgr/dest/suspend.h"
#include "qmgr/reader.h"
#include "qmgr/report_rate.h"
#include "qmgr/retry.h"
#include "qmgr/router.h"
#include "qmgr/sched/flow.h"
#include "qmgr/sched/job.h"
#include "qmgr/sched/pool.h"

#include <assert.h>
#include <stdlib.h>

enum {
	FEW = 16,	/* recipients of most messages: these are all of one size */
	LOOK_MS = 10000 /* whether the place of one that has ended is wanted by others */
};

void message_init(struct qmgr *q)
{
	few_init(&q->alike, sizeof(struct message) + FEW);
}

void message_fini(struct qmgr *q)
{
	assert(!q->messages);
	few_fini(&q->alike);
}

static struct message *message_alloc(struct qmgr *q, uint32_t nrcpt)
{
	bool alike = nrcpt <= FEW;
	struct message *m =
		alike ? few_take(&q->alike) : mem_zalloc(sizeof *m + nrcpt * sizeof m->owed[0]);
	m->alike = alike;
	m->qmgr = q;
	return m;
}

static void message_release(struct message *m)
{
	if (m->alike)
		few_give(&m->qmgr->alike, m);
	else
		free(m);
}

static struct message *message_new(struct qmgr *q, struct spool_arrival *a)
{
	struct message *m = message_alloc(q, a->envelope->nrcpt);
	work_begin(&m->work, &q->sched, a->envelope, a->content);
	m->taken_ms = clock_wall_ms();
	list_init(&m->in_starved);
	list_init(&m->in_router);
	list_init(&m->in_reports);
	HASH_ADD(hh, q->messages, work.id, sizeof m->work.id, m);
	return m;
}

struct message *message_pseudo(struct qmgr *q, struct envelope *e, struct verifying *owner,
			       void (*take)(struct message *, uint32_t recipient, struct verdict *))
{
	assert(owner && take);
	assert(e->nrcpt > 0);
	struct message *m = message_alloc(q, e->nrcpt);
	work_begin(&m->work, &q->sched, e, content_in_memory(mem_strdup(""), 0));
	m->work.verification = true;
	m->work.rcpt_limit = e->nrcpt;
	m->next = e->nrcpt;
	m->verifying = owner;
	m->take = take;
	list_init(&m->in_starved);
	list_init(&m->in_router);
	list_init(&m->in_reports);
	return m;
}

/* Others of its flow, or all that were tried before, wait in the queue until a place comes free. Whom no report goes to
 * for now makes no room for them: it would come back at once. */
static bool places_are_scarce(const struct message *m)
{
	struct qmgr *q = m->qmgr;
	const struct conf *c = q->sched.conf;
	int64_t n = HASH_COUNT(q->messages), nfree = c->queue.message_active_limit - n;
	const struct flow *f = m->work.flow;
	bool room = conf_below_share(f->nwork, f->settings->share, nfree) &&
		    conf_below_share(n, c->flow[0].share, nfree);
	return !room && report_rate_has_room(&q->reports, &c->queue, m->work.envelope->sender,
					     scheduler_now_ms(&q->sched));
}

static int64_t waits_for_ms(const struct message *m, bool scarce, int64_t now_ms)
{
	const struct envelope *e = m->work.envelope;
	const struct retry_terms terms = retry_terms_of(m->qmgr->sched.conf, e);
	int64_t until_ms = retry_wait_ms(&terms, e, m->taken_ms, scarce);
	return until_ms > now_ms ? until_ms - now_ms : 0;
}

/* Most mail is gone long before an end of it comes: whose end is far off gets its timer when it is near. By then places may
 * be scarce. */
static void set_end(struct message *m, int64_t now_ms)
{
	int64_t left_ms = waits_for_ms(m, true, now_ms);
	assert(!m->verifying && !m->reporting);
	timer_stop(&m->qmgr->sched.loop->timers, &m->end);
	if (left_ms <= 2 * MESSAGE_ENDS_MS)
		loop_timer_in(m->qmgr->sched.loop, &m->end, left_ms);
}

static void look_again(struct message *m, int64_t left_ms)
{
	loop_timer_in(m->qmgr->sched.loop, &m->end, left_ms < LOOK_MS ? left_ms : LOOK_MS);
}

static void let_go(struct qmgr *q, struct message *m, bool keep)
{
	assert(!m->verifying);
	m->work.cancelled = true;
	m->kept = keep;
	message_drop_waiting(m);
	message_check(q, m);
}

static void cite_site(struct message *m, const struct peer *p)
{
	struct verdict *why = site_keeps_waiting(site_of_queue(p->queue));
	list_each (link, tmp, &p->entries) {
		const struct entry *e = list_entry(link, struct entry, in_peer);
		for (uint32_t i = 0; why && i < e->n; i++) {
			struct recipient *r = &m->work.envelope->rcpt[e->recipient[i]];
			if (!r->last)
				r->last = verdict_ref(why);
		}
	}
	verdict_unref(why);
}

/* A refusal for reasons of the host's own was no attempt; and yet the sender is told what was said. */
static void cite_sites(struct message *m)
{
	list_each (in_message, tmp, &m->work.jobs) {
		struct job *job = list_entry(in_message, struct job, in_message);
		list_each (in_job, tmp_of_job, &job->peers)
			cite_site(m, list_entry(in_job, struct peer, in_job));
	}
}

static bool has_ended(const struct message *m, int64_t now_ms)
{
	const struct envelope *e = m->work.envelope;
	const struct retry_terms terms = retry_terms_of(m->qmgr->sched.conf, e);
	return retry_expired(&terms, e, now_ms) || retry_ended(&terms, e, now_ms) != RETRY_GOES_ON;
}

/* A message is in memory for as long as it waits for its turn: that may be longer than it has. */
static void end_now(void *owner)
{
	struct message *m = owner;
	struct qmgr *q = m->qmgr;
	assert(!m->verifying);
	if (m->work.cancelled || m->reporting)
		return;
	int64_t left_ms = waits_for_ms(m, places_are_scarce(m), clock_wall_ms());
	if (left_ms > 0) {
		look_again(m, left_ms); /* it may wait on; or the clock has gone back */
		return;
	}
	m->interrupted = true;
	if (has_ended(m, clock_wall_ms()))
		cite_sites(m);
	let_go(q, m, true);
	q->db.thread.settle(q->db.thread.context);
}

void message_set_ends(struct qmgr *q)
{
	int64_t now_ms = clock_wall_ms();
	for (struct message *m = q->messages; m; m = m->hh.next)
		if (!m->reporting)
			set_end(m, now_ms);
}

void message_arrived(struct qmgr *q, struct spool_arrival *a)
{
	assert(loop_is_ours(q->sched.loop) && a->content);
	struct message *m = message_new(q, a);
	m->urgent = a->urgent;
	m->stopped = suspend_covers_flow(&q->db, m->work.flow->name);
	free(a);
	timer_init(&m->end, end_now, m);
	set_end(m, m->taken_ms);
	reader_begin(m);
	message_check(q, m);
}

bool message_owes(const struct message *m)
{
	for (uint32_t i = 0; i < m->work.envelope->nrcpt; i++)
		if (m->owed[i])
			return true;
	return false;
}

void message_free(struct qmgr *q, struct message *m)
{
	assert(m->lookups == 0);
	assert(m->to_route_first == 0 && m->nto_route == 0);
	assert(!m->to_route && list_empty(&m->in_router));
	timer_stop(&q->sched.loop->timers, &m->end);
	message_leave_site(m, false);
	reader_drop(m);
	assert(list_empty(&m->in_starved) && m->nheld == 0);
	list_remove(&m->in_reports);
	work_end(&m->work, &q->sched);
	if (!m->verifying)
		HASH_DEL(q->messages, m);
	envelope_free(&m->work.envelope);
	content_unref(m->work.content);
	message_release(m);
}

void message_leave_site(struct message *m, bool in_queue)
{
	struct site *s = m->site;
	if (!s)
		return;
	struct site_parked *p = &s->parked;
	bool parked = in_queue && message_waits_for_site(m);
	m->site = NULL;
	assert(p->leaving > 0);
	p->leaving--;
	p->deferred += in_queue;
	p->parked += parked;
	p->late += in_queue;
	p->late_parked += parked;
	assert(p->parked <= p->deferred && p->late_parked <= p->late);
	site_touch(s);
}

void message_check(struct qmgr *q, struct message *m)
{
	if (m->verifying || m->reporting || m->work.rcpt_count > 0 || reader_more(m)) {
		assert(!m->delivers);
		return;
	}
	message_end_round(q, m);
}

/* Entries that wait are taken out of their peers; those in flight come back by themselves. */
static void drop_waiting(struct job *job)
{
	list_each (link, tmp, &job->peers) {
		struct peer *peer = list_entry(link, struct peer, in_job);
		while (peer->waiting > 0) {
			struct entry *e = peer_drop(peer);
			pool_free(job, e->n);
			job_entry_done(e);
		}
	}
}

void message_drop_waiting(struct message *m)
{
	reader_drop(m);
	router_drop(m);
	list_each (link, tmp, &m->work.jobs)
		drop_waiting(list_entry(link, struct job, in_message));
}

void message_moved(struct qmgr *q, struct spool_moved *moved)
{
	struct message *m;
	HASH_FIND(hh, q->messages, &moved->id, sizeof moved->id, m);
	if (m && m->work.content->file) {
		/* Deliveries under way keep what they read from. */
		content_unref(m->work.content);
		m->work.content = moved->content;
		moved->content = NULL;
	}
	content_unref(moved->content);
	free(moved);
}

void message_cancel(struct qmgr *q, uint64_t id, bool keep)
{
	struct message *m;
	HASH_FIND(hh, q->messages, &id, sizeof id, m);
	if (!m)
		return; /* its release is on the way */
	m->wanted = keep;
	let_go(q, m, keep);
}
