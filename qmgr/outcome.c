/* SPDX-License-Identifier: ISC */
#include "qmgr/outcome.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "qmgr/bounce.h"

#include <stdio.h>

static void count(enum verdict_class class)
{
	static const enum metric of[] = {[VERDICT_SENT] = METRIC_sent,
					 [VERDICT_DEFERRED] = METRIC_deferred,
					 [VERDICT_FAILED] = METRIC_failed,
					 [VERDICT_IN_DOUBT] = METRIC_in_doubt};
	metrics_add(of[class], 1);
}

/* Before the queue manager / in the queue / connection set-up / transmission. */
static const char *delays(const struct message *m, const struct delivery *d, int64_t now_ms)
{
	int64_t before = m->taken_ms - m->envelope->arrived_ms;
	int64_t setup = d ? d->setup_ms : 0;
	int64_t transmission = d ? (d->ended_us - d->began_us) / 1000 : 0;
	int64_t queued = now_ms - m->taken_ms - setup - transmission;
	return log_text("%s/%s/%s/%s", log_seconds(before > 0 ? before : 0),
			log_seconds(queued > 0 ? queued : 0), log_seconds(setup),
			log_seconds(transmission));
}

static void write_log(const struct message *m, const struct recipient *r, const struct verdict *v,
		      const struct outcome_context *c)
{
	int64_t now_ms = clock_wall_ms();
	log_event(v->class == VERDICT_SENT ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING,
		  verdict_class_name(v->class), "id", log_id(m->id), "to", r->address, "orig_to",
		  r->orcpt, "site", c->site ? c->site->name : "none", "relay",
		  v->host[0] ? v->host : "none", "transport",
		  c->transport ? c->transport->title : "none", "delay",
		  log_seconds(now_ms - m->envelope->arrived_ms), "delays",
		  delays(m, c->delivery, now_ms), "dsn", v->dsn, "reply",
		  v->code ? log_text("%d %s", v->code, v->text) : v->text, "tries",
		  log_number(r->tries), NULL);
}

static void owe(struct message *m, uint32_t recipient, enum report_kind kind)
{
	const struct recipient *r = &m->envelope->rcpt[recipient];
	/* What fails without a sender is the postmaster's to know: NOTIFY speaks of the sender, and
	 * every report of ours goes out with NEVER. */
	bool no_sender = !m->envelope->sender[0] && kind == REPORT_FAILED;
	if (no_sender || bounce_wants(r, kind))
		m->owed[recipient] = (uint8_t)(kind + 1);
}

void outcome_apply(struct message *m, uint32_t recipient, struct verdict *v,
		   const struct outcome_context *context)
{
	struct recipient *r = &m->envelope->rcpt[recipient];
	r->tries++;
	verdict_unref(r->last);
	r->last = verdict_ref(v);
	count(v->class);
	write_log(m, r, v, context);
	if (v->class == VERDICT_SENT) {
		r->done = true;
		if (!context->dsn_passed_on)
			owe(m, recipient, REPORT_RELAYED);
	} else if (v->class == VERDICT_FAILED) {
		owe(m, recipient, REPORT_FAILED);
	}
}

void outcome_owe(struct message *m, uint32_t recipient)
{
	struct recipient *r = &m->envelope->rcpt[recipient];
	bool sent = r->last->class == VERDICT_SENT;
	r->done = sent;
	owe(m, recipient, sent ? REPORT_RELAYED : REPORT_FAILED);
}

void outcome_give_up(struct message *m, uint32_t recipient, const char *dsn, const char *why)
{
	struct recipient *r = &m->envelope->rcpt[recipient];
	const struct verdict *last = r->last;
	char text[VERDICT_TEXT_MAX];
	snprintf(text, sizeof text, "%s%s; last attempt: %s", why,
		 r->doubts > 0 ? ", but the message may have arrived" : "",
		 last ? last->text : "none");
	struct verdict *v = verdict_new(VERDICT_FAILED, last ? last->code : 0, dsn,
					last ? last->host : NULL, text);
	struct outcome_context none = {0};
	outcome_apply(m, recipient, v, &none);
	r->tries--; /* no attempt of its own */
	verdict_unref(v);
}
