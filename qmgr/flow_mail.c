/* SPDX-License-Identifier: ISC */
#include "qmgr/flow_mail.h"

#include "base/magic.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "qmgr/dest/suspend.h"
#include "qmgr/sched/flow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 500, FLOW_RELEASE_MAGIC = 0xf10e4e1e };

struct flow_release {
	unsigned magic;
	char *flow; /* NULL: what waits for a suspended site or host */
	struct list in_qmgr;
};

/* --- suspended */

static void stop_message(struct qmgr *q, struct message *m)
{
	assert(!m->verifying);
	m->stopped = m->work.cancelled = m->kept = true;
	message_drop_waiting(m);
	message_check(q, m);
}

/* The end of one may bring that of another: they are found by their ids. */
void flow_mail_stop(struct qmgr *q, const char *flow)
{
	size_t n = 0;
	uint64_t *id = mem_alloc((HASH_COUNT(q->messages) + 1) * sizeof *id);
	for (const struct message *m = q->messages; m; m = m->hh.next)
		if (name_key_same(flow, m->work.flow->name) && !m->work.cancelled)
			id[n++] = m->work.id;
	for (size_t i = 0; i < n; i++) {
		struct message *m;
		HASH_FIND(hh, q->messages, &id[i], sizeof id[i], m);
		if (m)
			stop_message(q, m);
	}
	free(id);
}

/* --- resumed */

static void post_command(struct qmgr *q, struct spool_command *c)
{
	q->db.edges.to_spool(q->db.edges.context, &c->note);
}

static void ask_for_page(struct qmgr *q, struct flow_release *r, uint64_t after)
{
	struct spool_command *c = spool_command_new(SPOOL_LIST, q->sched.loop, r);
	c->after = after;
	c->limit = PAGE;
	post_command(q, c);
}

static void release_end(struct flow_release *r)
{
	list_remove(&r->in_qmgr);
	free(r->flow);
	magic_clear(r);
	free(r);
}

void flow_mail_release(struct qmgr *q, const char *flow)
{
	struct flow_release *r = mem_zalloc(sizeof *r);
	r->magic = FLOW_RELEASE_MAGIC;
	r->flow = flow ? mem_strdup(flow) : NULL;
	list_append(&q->releases, &r->in_qmgr);
	ask_for_page(q, r, 0);
}

static void flush_one(struct qmgr *q, uint64_t id)
{
	struct spool_command *c = spool_command_new(SPOOL_FLUSH, q->sched.loop, q);
	c->id = id;
	post_command(q, c);
}

static bool waits_for_suspended(const struct envelope *e)
{
	for (uint32_t i = 0; i < e->nrcpt; i++)
		if (!e->rcpt[i].done && suspend_verdict_is(e->rcpt[i].last))
			return true;
	return false;
}

static bool is_released(const struct flow_release *r, const struct envelope *e)
{
	return r->flow ? name_key_same(r->flow, envelope_flow(e)) : waits_for_suspended(e);
}

void flow_mail_listed(struct qmgr *q, struct spool_command *c)
{
	struct flow_release *r = c->owner;
	magic_check(r, FLOW_RELEASE_MAGIC);
	assert(c->op == SPOOL_LIST);
	uint64_t last = c->after;
	bool again = c->nrow > 0 && !(r->flow && suspend_covers_flow(&q->db, r->flow));
	for (int i = 0; i < c->nrow && again; i++) {
		const struct envelope *e = c->row[i].envelope;
		last = e->id > last ? e->id : last;
		if (c->row[i].queue == SPOOL_DEFERRED && is_released(r, e))
			flush_one(q, e->id);
	}
	spool_command_free(&c);
	if (again)
		ask_for_page(q, r, last);
	else
		release_end(r);
}

void flow_mail_drop_releases(struct qmgr *q)
{
	list_each (link, tmp, &q->releases)
		release_end(list_entry(link, struct flow_release, in_qmgr));
}
