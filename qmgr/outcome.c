/* SPDX-License-Identifier: ISC */
#include "qmgr/outcome.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/reason.h"
#include "qmgr/bounce.h"
#include "qmgr/dest/source.h"
#include "qmgr/delivery_event.h"
#include "qmgr/qmgr_thread.h"
#include "qmgr/route/route.h"
#include "qmgr/sched/flow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void count_verdict(enum verdict_class class, const struct transport *t)
{
	assert(class < VERDICT_CLASSES);
	metric_cell_add(t ? t->outcome[class]
			  : metric_cell(FAMILY_deliveries, verdict_class_name(class), "none"),
			1);
	if (class == VERDICT_IN_DOUBT)
		metrics_add(METRIC_in_doubt, 1);
}

/* Before the queue manager / in the queue / connection set-up / transmission. */
struct delays {
	int64_t before_ms, queued_ms, setup_ms, transmission_us;
};

static struct delays delays_of(const struct message *m, const struct delivery *d, int64_t now_ms)
{
	bool spoken = d && d->began_us > 0 && d->ended_us > d->began_us;
	struct delays of = {.before_ms = m->taken_ms - envelope_began_ms(m->work.envelope),
			    .setup_ms = d ? d->setup_ms : 0,
			    .transmission_us = spoken ? d->ended_us - d->began_us : 0};
	of.queued_ms = now_ms - m->taken_ms - of.setup_ms - of.transmission_us / 1000;
	if (of.before_ms < 0)
		of.before_ms = 0;
	if (of.queued_ms < 0)
		of.queued_ms = 0;
	return of;
}

static void observe_delays(const struct delays *of)
{
	metrics_observe(HISTOGRAM_before_queue_manager, of->before_ms * 1000);
	metrics_observe(HISTOGRAM_in_queue, of->queued_ms * 1000);
	metrics_observe(HISTOGRAM_connection_setup, of->setup_ms * 1000);
	metrics_observe(HISTOGRAM_transmission, of->transmission_us);
}

static void tell_others(const struct message *m, const struct recipient *r, const struct verdict *v,
			const struct outcome_context *c, const struct delays *of, int64_t now_ms)
{
	struct delivery_event event = {.message = m,
				       .recipient = r,
				       .verdict = v,
				       .cause = c->cause,
				       .site = c->site ? c->site->name : NULL,
				       .source = c->site ? source_name(c->site) : NULL,
				       .transport = c->transport ? c->transport->title : NULL,
				       .tried = !c->untried,
				       .now_ms = now_ms,
				       .before_ms = of->before_ms,
				       .queued_ms = of->queued_ms,
				       .setup_ms = of->setup_ms,
				       .transmission_ms = of->transmission_us / 1000};
	delivery_event_tell(m->qmgr, &event);
}

/* Log it, tell whoever wants to know, and count how long it took. */
static void tell_verdict(const struct message *m, const struct recipient *r,
			 const struct verdict *v, const struct outcome_context *c, int64_t now_ms)
{
	struct delays of = delays_of(m, c->delivery, now_ms);
	const int64_t each[] = {of.before_ms, of.queued_ms, of.setup_ms, of.transmission_us / 1000};
	if (c->delivery)
		observe_delays(&of);
	log_event(v->class == VERDICT_SENT ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING,
		  verdict_class_name(v->class), "id", log_id(m->work.id), "to", r->address,
		  "orig_to", r->orcpt, "site", c->site ? c->site->name : "none", "relay",
		  v->host[0] ? v->host : "none", "transport",
		  c->transport ? c->transport->title : "none", "delay",
		  log_seconds(now_ms - envelope_began_ms(m->work.envelope)), "delays",
		  log_seconds_each(each, 4), "dsn", v->dsn, "reply", log_reply(v->code, v->text),
		  "source", c->site ? source_name(c->site) : NULL, "tries", log_number(r->tries),
		  "flow", envelope_flow(m->work.envelope), "user", m->work.envelope->user, "client",
		  m->work.envelope->client, NULL);
	tell_others(m, r, v, c, &of, now_ms);
}

static void owe_report(struct message *m, uint32_t recipient, enum report_kind kind)
{
	const struct recipient *r = &m->work.envelope->rcpt[recipient];
	assert(!m->reporting);
	/* Mail that fails without a sender is the postmaster's to know of, and nothing else of it: NOTIFY speaks of the
	 * sender, and every report of ours goes out with NEVER. */
	if (m->work.envelope->sender[0] ? bounce_wants(r, kind) : kind == REPORT_FAILED)
		m->owed[recipient] = (uint8_t)(kind + 1);
}

/* RFC 2852: where each host that it has passed is to be told, and where the next one does not know of its time, unless
 * that is where it was to arrive. */
static bool by_is_told(const struct message *m, const struct recipient *r,
		       const struct outcome_context *context)
{
	const struct envelope *e = m->work.envelope;
	bool lost = (e->by & ENVELOPE_BY_NOTIFY) && !context->by_passed_on && !context->delivered;
	return e->sender[0] && !(r->notify & NOTIFY_NEVER) && (lost || (e->by & ENVELOPE_BY_TRACE));
}

static void owe_word_of_sent(struct message *m, uint32_t recipient,
			     const struct outcome_context *context)
{
	if (context->discarded)
		return;
	enum report_kind kind = context->delivered ? REPORT_DELIVERED : REPORT_RELAYED;
	if (!context->dsn_passed_on)
		owe_report(m, recipient, kind);
	if (by_is_told(m, &m->work.envelope->rcpt[recipient], context))
		m->owed[recipient] = (uint8_t)(kind + 1);
}

/* A copy for an archive is tried again whatever is said of it, until the operator wants it no more. NULL:
 * the verdict is good as it is. */
static struct verdict *never_given_up(const struct envelope *e, const struct verdict *v)
{
	if (!e->archive || e->returned || v->class == VERDICT_SENT)
		return NULL;
	metrics_add(METRIC_archive_failures, 1);
	return v->class == VERDICT_FAILED
		       ? verdict_reworded(v, VERDICT_DEFERRED, v->dsn, v->host, v->text)
		       : NULL;
}

/* A rule of the host's, or trouble with the message, says nothing of the mailbox. */
static bool says_unknown(const struct verdict *v)
{
	return v->class == VERDICT_FAILED && v->stage == VERDICT_AT_RCPT && v->host[0] &&
	       v->code / 100 == 5 && strcmp(v->dsn, "5.1.1") == 0 &&
	       reason_of(v) == REASON_INVALID_RECIPIENT;
}

/* Whom a host does not know is remembered until somebody does. */
static void learn_of_recipient(struct qmgr *q, const char *address, const struct verdict *v)
{
	const char *state = NULL;
	if (v->class == VERDICT_SENT && v->host[0]) {
		state = suppressed_forget(&q->suppressed, address) ? "forgotten" : NULL;
	} else if (q->sched.conf->suppress_most > 0 && says_unknown(v)) {
		bool new = suppressed_note(&q->suppressed, address, v->host, clock_wall_ms());
		state = new ? "added" : NULL;
	}
	if (state)
		log_event(LOG_LEVEL_INFO, "suppress", "to", address, "state", state, "relay",
			  v->host[0] ? v->host : "none", "reply", log_reply(v->code, v->text),
			  NULL);
}

/* A message is deferred for what the site has said or is: so it waits in the queue for that. */
static void defer_at(struct message *m, struct site *s, bool untried)
{
	assert(s->parked.leaving >= 0);
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

void outcome_apply(struct message *m, uint32_t recipient, struct verdict *v,
		   const struct outcome_context *context)
{
	struct recipient *r = &m->work.envelope->rcpt[recipient];
	assert(recipient < m->work.envelope->nrcpt && !r->done);
	assert(!m->reporting && !m->delivers);
	assert(v->class == VERDICT_SENT ? !context->untried : !context->discarded);
	if (m->take) {
		m->take(m, recipient, v);
		return;
	}
	int64_t now_ms = clock_wall_ms();
	struct verdict *again = never_given_up(m->work.envelope, v);
	v = again ? again : v;
	r->tries += !context->untried;
	if (v->class == VERDICT_DEFERRED && context->site)
		defer_at(m, context->site, context->untried);
	verdict_unref(r->last);
	r->last = verdict_ref(v);
	count_verdict(v->class, context->transport);
	if (context->site)
		site_hour_verdict(context->site, v->class);
	tell_verdict(m, r, v, context, now_ms);
	learn_of_recipient(m->qmgr, r->address, v);
	flow_tallies_count(&m->qmgr->tallies, envelope_flow(m->work.envelope), v->class, now_ms);
	if (v->class == VERDICT_SENT) {
		r->done = true;
		owe_word_of_sent(m, recipient, context);
	} else if (v->class == VERDICT_FAILED) {
		owe_report(m, recipient, REPORT_FAILED);
	}
	verdict_unref(again);
}

/* After a restart nobody remembers which transport it was: the one that has such mail now. */
static enum report_kind kind_of_sent(const struct message *m, const char *address)
{
	const struct route *way = route_find_of_flow(m->qmgr->routes, m->work.flow->settings,
						     m->work.envelope->sender, address);
	bool lmtp = way->by && way->by->protocol == TRANSPORT_PROTOCOL_LMTP;
	return lmtp ? REPORT_DELIVERED : REPORT_RELAYED;
}

void outcome_owe(struct message *m, uint32_t recipient)
{
	struct recipient *r = &m->work.envelope->rcpt[recipient];
	assert(recipient < m->work.envelope->nrcpt && !m->verifying);
	assert(!r->done && r->last &&
	       (r->last->class == VERDICT_SENT || r->last->class == VERDICT_FAILED));
	r->done = r->last->class == VERDICT_SENT;
	if (!r->done)
		owe_report(m, recipient, REPORT_FAILED);
	else if (envelope_wants_word(m->work.envelope, r))
		m->owed[recipient] = (uint8_t)(kind_of_sent(m, r->address) + 1);
}

/* A reply is cited with its code, and is no reply to this. */
static char *cite_last(const struct verdict *last)
{
	if (!last)
		return mem_strdup("none");
	return last->code ? mem_printf("%d %s", last->code, last->text) : mem_strdup(last->text);
}

/* Of the time of the last attempt: this is none. */
static struct verdict *give_up_verdict(const struct recipient *r, const char *dsn, const char *why)
{
	const struct verdict *last = r->last;
	char *cited = cite_last(last);
	char *text = mem_printf("%s%s; last attempt: %s", why,
				r->doubts > 0 ? ", but the message may have arrived" : "", cited);
	struct verdict *v = verdict_at(VERDICT_FAILED, 0, dsn, last ? last->host : NULL, text,
				       last ? last->when_ms : clock_wall_ms());
	free(text);
	free(cited);
	return v;
}

void outcome_give_up(struct message *m, uint32_t recipient, const char *dsn, const char *why)
{
	const struct recipient *r = &m->work.envelope->rcpt[recipient];
	assert(recipient < m->work.envelope->nrcpt && !m->verifying);
	assert(!r->last || (r->last->class != VERDICT_SENT && r->last->class != VERDICT_FAILED));
	struct verdict *v = give_up_verdict(r, dsn, why);
	struct outcome_context no_attempt = {.untried = true, .cause = r->last};
	outcome_apply(m, recipient, v, &no_attempt);
	verdict_unref(v);
}
