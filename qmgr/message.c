/* SPDX-License-Identifier: ISC */
#include "qmgr/message.h"

#include "base/clock.h"
#include "base/mem.h"
#include "qmgr/job.h"
#include "qmgr/pool.h"
#include "qmgr/reader.h"
#include "qmgr/router.h"
#include "qmgr/site.h"

#include <assert.h>
#include <stdlib.h>

static struct message *message_new(struct qmgr *q, struct spool_arrival *a)
{
	struct message *m = mem_zalloc(sizeof *m + a->envelope->nrcpt * sizeof m->owed[0]);
	m->id = a->envelope->id;
	m->envelope = a->envelope;
	m->content = a->content;
	m->order = ++q->last_order;
	m->qmgr = q;
	m->taken_ms = clock_wall_ms();
	m->taken_steady_ms = scheduler_now_ms(q);
	list_init(&m->jobs);
	list_init(&m->in_starved);
	list_init(&m->in_router);
	HASH_ADD(hh, q->messages, id, sizeof m->id, m);
	return m;
}

void message_arrived(struct qmgr *q, struct spool_arrival *a)
{
	struct message *m = message_new(q, a);
	m->urgent = a->urgent;
	free(a);
	reader_begin(m);
	message_check(q, m);
}

void message_free(struct qmgr *q, struct message *m)
{
	assert(m->rcpt_count == 0 && m->lookups == 0);
	message_leave_site(m, false);
	reader_drop(m);
	jobs_free(m);
	HASH_DEL(q->messages, m);
	envelope_free(&m->envelope);
	content_unref(m->content);
	free(m);
}

void message_deferred_at(struct message *m, struct site *s, bool untried)
{
	m->untried |= untried;
	m->put_off |= !untried;
	if (m->site)
		return;
	site_number(s);
	if (s->parked.number == 0)
		return; /* so many wait in the queue: it is found by its own time only */
	m->site = s;
	s->parked.leaving++;
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
	site_touch(s);
}

void message_check(struct qmgr *q, struct message *m)
{
	if (m->reporting || m->rcpt_count > 0 || reader_more(m))
		return;
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
	list_each (link, tmp, &m->jobs)
		drop_waiting(list_entry(link, struct job, in_message));
}

void message_moved(struct qmgr *q, struct spool_moved *moved)
{
	struct message *m;
	HASH_FIND(hh, q->messages, &moved->id, sizeof moved->id, m);
	if (m && m->content->file) {
		/* Deliveries under way keep what they read from. */
		content_unref(m->content);
		m->content = moved->content;
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
	m->cancelled = true;
	m->kept = keep;
	message_drop_waiting(m);
	message_check(q, m);
}
