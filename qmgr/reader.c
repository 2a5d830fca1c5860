/* SPDX-License-Identifier: ISC */
#include "qmgr/reader.h"

#include "base/mem.h"
#include "qmgr/message.h"
#include "qmgr/outcome.h"
#include "qmgr/reading_order.h"
#include "qmgr/retry.h"
#include "qmgr/router.h"
#include "qmgr/sched/pool.h"
#include "qmgr/sched/shelf.h"

#include <assert.h>
#include <stdlib.h>

/* Recipients that a batch may look at in vain: their transport has no room. */
enum { VAIN_MAX = 1000 };

static bool is_open(const struct recipient *r)
{
	bool final =
		r->last && (r->last->class == VERDICT_SENT || r->last->class == VERDICT_FAILED);
	return !r->done && !final;
}

/* A recipient is put back unread. */
static void hold_recipient(struct message *m, uint32_t recipient)
{
	assert(m->nheld < m->work.unread);
	if ((m->nheld & (m->nheld - 1)) == 0)
		m->held = mem_realloc(m->held, (m->nheld ? m->nheld * 2 : 1) * sizeof *m->held);
	m->held[m->nheld++] = recipient;
}

enum read { READ_TAKEN, READ_ENDED, READ_NO_ROOM };

static enum read read_one(struct message *m, uint32_t recipient)
{
	assert(is_open(&m->work.envelope->rcpt[recipient]) && m->work.unread > 0);
	const struct route *route = router_route(m, recipient);
	if (route->action != ROUTE_DELIVER) {
		assert(m->work.unread > 0);
		m->work.unread--;
		router_end(m, recipient, route);
		return READ_ENDED;
	}
	struct job *job = router_job(m, route);
	if (pool_transport_room(job->transport) <= 0)
		return READ_NO_ROOM;
	assert(m->work.unread > 0);
	m->work.unread--;
	job->routing++;
	pool_take(job);
	router_add_by(job, recipient, route);
	return READ_TAKEN;
}

static int64_t read_held(struct message *m, int64_t n)
{
	uint32_t *held = m->held, nheld = m->nheld;
	int64_t got = 0;
	m->held = NULL;
	m->nheld = 0;
	for (uint32_t i = 0; i < nheld; i++) {
		enum read result = got < n ? read_one(m, held[i]) : READ_NO_ROOM;
		got += result == READ_TAKEN;
		if (result == READ_NO_ROOM)
			hold_recipient(m, held[i]);
	}
	free(held);
	return got;
}

static void read_on(struct message *m, int64_t n)
{
	const struct envelope *e = m->work.envelope;
	int vain = 0;
	for (; n > 0 && m->next < e->nrcpt && vain < VAIN_MAX; m->next++) {
		uint32_t recipient = m->order ? m->order[m->next] : m->next;
		if (!is_open(&e->rcpt[recipient]))
			continue;
		enum read result = read_one(m, recipient);
		n -= result == READ_TAKEN;
		if (result == READ_NO_ROOM) {
			hold_recipient(m, recipient);
			vain++;
		}
	}
}

/* All is read: slots that are not used go on along the list. */
static void return_slots(struct message *m)
{
	list_each (link, tmp, &m->work.jobs)
		pool_return(list_entry(link, struct job, in_message));
}

static void read_batch(struct message *m, int64_t n)
{
	int64_t room = pool_room(&m->qmgr->sched);
	m->refilled_ms = scheduler_now_ms(&m->qmgr->sched);
	n = n < room ? n : room;
	if (n > 0 && m->nheld > 0)
		n -= read_held(m, n);
	if (n > 0)
		read_on(m, n);
	assert(m->nheld <= m->work.unread);
	assert(m->next < m->work.envelope->nrcpt || m->nheld == m->work.unread);
	list_each (link, tmp, &m->work.jobs)
		shelf_resize(list_entry(link, struct job, in_message));
	if (m->work.unread == 0)
		return_slots(m);
}

static bool is_starved(const struct message *m)
{
	return m->work.unread > 0 && m->work.rcpt_count == 0 && !m->work.cancelled;
}

static void wait_for_room(struct message *m)
{
	if (is_starved(m) && list_empty(&m->in_starved))
		list_append(&m->qmgr->starved, &m->in_starved);
}

/* So many may be one transaction, by the transport that the first of them has. */
static uint32_t recipients_together(struct message *m)
{
	const struct conf_transport *t = router_route(m, 0)->by;
	return t && t->destination_recipient_limit > 0 ? (uint32_t)t->destination_recipient_limit
						       : UINT32_MAX;
}

void reader_begin(struct message *m)
{
	const struct envelope *e = m->work.envelope;
	const struct conf_queue *limits = &m->qmgr->sched.conf->queue;
	const struct retry_terms terms = retry_terms_of(m->qmgr->sched.conf, e);
	assert(!m->verifying);
	bool shut =
		e->returned || m->stopped || retry_ended(&terms, e, m->taken_ms) != RETRY_GOES_ON;
	assert(m->next == 0 && !m->order && m->nheld == 0 && m->work.unread == 0);
	m->work.rcpt_limit = limits->message_recipient_minimum;
	for (uint32_t i = 0; i < e->nrcpt; i++) {
		if (is_open(&e->rcpt[i]))
			m->work.unread += !shut;
		else if (!e->rcpt[i].done)
			outcome_owe(m, i);
	}
	if (shut)
		m->next = e->nrcpt;
	int64_t n = limits->message_recipient_limit - m->qmgr->sched.rcpt_count;
	n = n > m->work.rcpt_limit ? n : m->work.rcpt_limit;
	if (m->work.unread > n)
		m->order = reading_order(e, recipients_together(m));
	read_batch(m, n);
	wait_for_room(m);
}

void reader_refill(struct job *job)
{
	struct message *m = message_of_work(job->work);
	const struct conf_transport *t = job->transport->settings;
	int64_t room = m->work.rcpt_limit - m->work.rcpt_count;
	if (m->work.unread == 0 || room <= 0)
		return;
	if (room >= t->refill_limit || list_empty(&job->ready) ||
	    scheduler_now_ms(&m->qmgr->sched) - m->refilled_ms >= t->refill_delay)
		read_batch(m, room);
}

bool reader_more(struct message *m)
{
	if (m->work.unread > 0 && list_empty(&m->in_starved)) {
		read_batch(m, m->work.rcpt_limit - m->work.rcpt_count);
		wait_for_room(m);
	}
	return m->work.unread > 0 || m->work.rcpt_count > 0;
}

void reader_feed(struct qmgr *q)
{
	if (!q->sched.reader_due)
		return;
	q->sched.reader_due = false;
	list_each (link, tmp, &q->starved) {
		struct message *m = list_entry(link, struct message, in_starved);
		assert(m->work.unread > 0 && !m->reporting);
		if (pool_room(&q->sched) <= 0)
			return;
		read_batch(m, m->work.rcpt_limit);
		if (is_starved(m))
			continue;
		list_remove(&m->in_starved);
		q->db.thread.check(&m->work); /* all may have had their verdicts at once */
	}
}

void reader_drop(struct message *m)
{
	m->work.unread = 0;
	m->nheld = 0;
	free(m->held);
	free(m->order);
	m->held = m->order = NULL;
	list_remove(&m->in_starved);
	return_slots(m);
}
