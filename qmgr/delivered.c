/* SPDX-License-Identifier: ISC */
#include "qmgr/delivered.h"

#include "base/mem.h"
#include "qmgr/message.h"
#include "qmgr/outcome.h"
#include "qmgr/sched/pool.h"
#include "qmgr/verifier.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 2 };

/* A verdict on what was done, or may have been, is recorded before anything else happens to the message; and
 * with it that nothing is owed for it, since nobody could tell that after a crash: what the host said it would confirm is
 * known now only. note: NULL where all is recorded as one. */
static void record_verdict(struct spool_delivered *note, const struct message *m,
			   uint32_t recipient, struct verdict *v)
{
	const struct envelope *e = m->work.envelope;
	if (!note || (v->class != VERDICT_SENT && v->class != VERDICT_IN_DOUBT))
		return;
	note->of[note->n].recipient = recipient;
	note->of[note->n].settled = v->class == VERDICT_SENT && !m->owed[recipient] &&
				    envelope_wants_word(e, &e->rcpt[recipient]);
	note->of[note->n++].verdict = verdict_ref(v);
}

static struct spool_delivered *new_record(const struct message *m, uint32_t most)
{
	struct spool_delivered *note = mem_zalloc(sizeof *note + most * sizeof note->of[0]);
	note->note.type = SPOOL_DELIVERED;
	note->id = m->work.id;
	return note;
}

/* Most mail is delivered as a whole, and with that it is done: then its release, which follows at once, is the record. */
static bool may_be_all(const struct message *m, const struct delivery *d)
{
	if (m->verifying || d->nrcpt != m->work.envelope->nrcpt)
		return false;
	for (uint32_t i = 0; i < d->nrcpt; i++)
		if (!d->rcpt[i].verdict || d->rcpt[i].verdict->class != VERDICT_SENT)
			return false;
	return true;
}

static void post_record(struct site *s, struct spool_delivered *note)
{
	if (note->n > 0)
		s->db->edges.to_spool(s->db->edges.context, &note->note);
	else
		free(note);
}

/* All of it is sent: its sender may have to be told. */
static void record_all(struct site *s, struct message *m, const struct entry *e,
		       const struct delivery *d)
{
	assert(envelope_open(m->work.envelope) == 0);
	assert(d->nrcpt == m->work.envelope->nrcpt);
	m->delivers = !message_owes(m);
	if (m->delivers)
		return;
	struct spool_delivered *note = new_record(m, d->nrcpt);
	for (uint32_t i = 0; i < d->nrcpt; i++)
		record_verdict(note, m, e->recipient[i], d->rcpt[i].verdict);
	assert(note->n == d->nrcpt);
	post_record(s, note);
}

static struct verdict *final_verdict(const struct recipient *r, enum in_doubt_action action)
{
	const struct verdict *last = r->last;
	assert(r->doubts > 0);
	if (action == IN_DOUBT_DELIVERED)
		return verdict_printf(VERDICT_SENT, 0, "2.0.0", last->host,
				      "taken as delivered: sent as a whole %d times, and never "
				      "answered; %s",
				      r->doubts, last->text);
	return verdict_printf(VERDICT_FAILED, 0, "5.4.2", last->host,
			      "the message may have arrived: it was sent as a whole %d times, and "
			      "never answered. Last attempt: %s",
			      r->doubts, last->text);
}

/* After a verdict in doubt was applied: count it. True: that was once too often, and the recipient has
 * its final verdict. */
static bool judge_doubt(struct message *m, uint32_t recipient,
			const struct outcome_context *context)
{
	const struct conf_queue *limits = &m->qmgr->sched.conf->queue;
	struct recipient *r = &m->work.envelope->rcpt[recipient];
	assert(r->last && r->last->class == VERDICT_IN_DOUBT && !r->done);
	if (r->doubts < RECIPIENT_DOUBTS_MAX)
		r->doubts++;
	if (r->doubts <= limits->in_doubt_retries)
		return false;
	struct outcome_context unsure = *context;
	unsure.dsn_passed_on = false; /* nobody knows what the host will confirm */
	unsure.delivered = false;     /* nor what it has done */
	struct verdict *v = final_verdict(r, (enum in_doubt_action)limits->in_doubt_action);
	assert(r->tries > 0);
	r->tries--; /* this verdict is no attempt of its own */
	outcome_apply(m, recipient, v, &unsure);
	verdict_unref(v);
	return true;
}

static void take_verdict(struct message *m, uint32_t recipient, struct verdict *v,
			 const struct outcome_context *context, struct spool_delivered *note)
{
	struct recipient *r = &m->work.envelope->rcpt[recipient];
	outcome_apply(m, recipient, v, context);
	record_verdict(note, m, recipient, v);
	if (v->class == VERDICT_IN_DOUBT && judge_doubt(m, recipient, context))
		record_verdict(note, m, recipient, r->last);
}

static void remember_last(struct site *s, struct verdict *v)
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

/* The host has ended a connection that was of use, as those do that take so many messages on one: the first times it is
 * tried again at once, alone. */
static bool again_at_once(const struct conn *c, const struct delivery *d, const struct recipient *r)
{
	return d->hung_up && c->answered > 0 && r->doubts <= AT_ONCE && r->last &&
	       r->last->class == VERDICT_IN_DOUBT;
}

static bool speaks_lmtp(const struct conn *c)
{
	return c->site->queue.transport->settings->protocol == TRANSPORT_PROTOCOL_LMTP;
}

void delivered_take(struct conn *c, struct entry *e, struct delivery *d)
{
	assert(!d->returned && d->nrcpt == e->n);
	struct message *m = message_of_work(e->peer->job->work);
	struct outcome_context context = {.site = c->site,
					  .transport = c->site->queue.transport,
					  .delivery = d,
					  .dsn_passed_on = c->dsn,
					  .by_passed_on = c->deliverby,
					  .delivered = speaks_lmtp(c)};
	bool all = may_be_all(m, d);
	struct spool_delivered *note = all ? NULL : new_record(m, 2 * d->nrcpt);
	uint32_t left = 0;
	bool doubt = false;
	if (d->hung_up)
		host_hung_up(c->host, c->answered);
	for (uint32_t i = 0; i < d->nrcpt; i++) {
		if (!d->rcpt[i].verdict) {
			e->recipient[left++] = e->recipient[i];
			continue;
		}
		call_by_our_name(c, &d->rcpt[i]);
		if (m->verifying) {
			m->take(m, e->recipient[i], d->rcpt[i].verdict);
			continue;
		}
		doubt |= d->rcpt[i].verdict->class == VERDICT_IN_DOUBT;
		remember_last(c->site, d->rcpt[i].verdict);
		take_verdict(m, e->recipient[i], d->rcpt[i].verdict, &context, note);
		if (again_at_once(c, d, &m->work.envelope->rcpt[e->recipient[i]])) {
			e->recipient[left++] = e->recipient[i];
			e->alone = true;
		}
	}
	assert(all ? left == 0 : note->n <= 2 * d->nrcpt);
	c->host->doubts += doubt;
	if (all)
		record_all(c->site, m, e, d);
	else
		post_record(c->site, note);
	pool_free(e->peer->job, e->n - left);
	e->n = left;
}

void delivered_defer(struct site *s, struct entry *e, struct verdict *why, bool untried)
{
	struct outcome_context context = {
		.site = s, .transport = s->queue.transport, .untried = untried};
	for (uint32_t i = 0; i < e->n; i++)
		outcome_apply(message_of_work(e->peer->job->work), e->recipient[i], why, &context);
	pool_free(e->peer->job, e->n);
	e->n = 0;
}

void delivered_record(struct site *s, struct entry *e, struct verdict *const *verdict)
{
	struct message *m = message_of_work(e->peer->job->work);
	struct outcome_context context = {.site = s, .transport = s->queue.transport};
	struct spool_delivered *note = new_record(m, e->n);
	for (uint32_t i = 0; i < e->n; i++) {
		outcome_apply(m, e->recipient[i], verdict[i], &context);
		if (verdict[i]->class == VERDICT_SENT)
			record_verdict(note, m, e->recipient[i], verdict[i]);
	}
	post_record(s, note);
	pool_free(e->peer->job, e->n);
	e->n = 0;
}
