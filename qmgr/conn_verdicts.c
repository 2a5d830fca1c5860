/* SPDX-License-Identifier: ISC */
/* What came back on a connection: each verdict is recorded, counted and logged. */
#include "base/mem.h"
#include "qmgr/conn.h"
#include "qmgr/indoubt.h"
#include "qmgr/message.h"
#include "qmgr/outcome.h"
#include "qmgr/pool.h"

#include <stdlib.h>
#include <string.h>

/* What was done, or may have been, is recorded before anything else happens to the message. */
static void record(struct spool_delivered *note, uint32_t recipient, struct verdict *v)
{
	if (v->class != VERDICT_SENT && v->class != VERDICT_IN_DOUBT)
		return;
	note->of[note->n].recipient = recipient;
	note->of[note->n++].verdict = verdict_ref(v);
}

static struct spool_delivered *new_record(const struct message *m, uint32_t most)
{
	struct spool_delivered *note = mem_zalloc(sizeof *note + most * sizeof note->of[0]);
	note->note.type = SPOOL_DELIVERED;
	note->id = m->id;
	return note;
}

static void take_verdict(struct message *m, uint32_t recipient, struct verdict *v,
			 const struct outcome_context *context, struct spool_delivered *note)
{
	struct recipient *r = &m->envelope->rcpt[recipient];
	record(note, recipient, v);
	outcome_apply(m, recipient, v, context);
	if (v->class == VERDICT_IN_DOUBT && indoubt_judge(m, recipient, context))
		record(note, recipient, r->last);
}

static void remember(struct site *s, struct verdict *v)
{
	s->verdicts++;
	if (v == s->last_verdict)
		return;
	verdict_unref(s->last_verdict);
	s->last_verdict = verdict_ref(v);
}

/* A connection that was opened for another site calls its host as that does. */
static void call_by_our_name(const struct conn *c, struct delivery_recipient *r)
{
	const struct site_host *it = site_host_of(c->site, c->host);
	if (!it || !r->verdict || strcmp(it->name, c->name) == 0)
		return;
	struct verdict *v = r->verdict;
	r->verdict = host_called(v, c->name, it->name);
	verdict_unref(v);
}

void conn_take_verdicts(struct qmgr *q, struct conn *c, struct entry *e, struct delivery *d)
{
	struct message *m = e->peer->job->message;
	struct outcome_context context = {.site = c->site,
					  .transport = c->site->transport,
					  .delivery = d,
					  .dsn_passed_on = c->dsn};
	struct spool_delivered *note = new_record(m, 2 * d->nrcpt);
	uint32_t left = 0;
	bool doubt = false;
	for (uint32_t i = 0; i < d->nrcpt; i++) {
		if (!d->rcpt[i].verdict) {
			e->recipient[left++] = e->recipient[i];
			continue;
		}
		call_by_our_name(c, &d->rcpt[i]);
		doubt |= d->rcpt[i].verdict->class == VERDICT_IN_DOUBT;
		remember(c->site, d->rcpt[i].verdict);
		take_verdict(m, e->recipient[i], d->rcpt[i].verdict, &context, note);
	}
	c->host->doubts += doubt;
	if (note->n > 0)
		q->edges.to_spool(q->edges.context, &note->note);
	else
		free(note);
	pool_free(e->peer->job, e->n - left);
	e->n = left;
}

void conn_give_up(struct entry *e, const struct conn *c)
{
	struct verdict *why =
		c->site->last_failure
			? verdict_ref(c->site->last_failure)
			: verdict_new(
				  VERDICT_DEFERRED, 0, "4.4.2", c->peer,
				  "the host drops every connection before it takes this message");
	struct outcome_context context = {.site = c->site, .transport = c->site->transport};
	for (uint32_t i = 0; i < e->n; i++)
		outcome_apply(e->peer->job->message, e->recipient[i], why, &context);
	verdict_unref(why);
	pool_free(e->peer->job, e->n);
	e->n = 0;
}
