/* SPDX-License-Identifier: ISC */
/* The end of a round of attempts: what is owed to the sender, then back to the spool. */
#include "base/utf8.h"
#include "qmgr/message.h"

#include "base/dkim_rows.h"
#include "base/clock.h"
#include "base/ident.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "qmgr/bounce.h"
#include "qmgr/dest/suspend.h"
#include "qmgr/outcome.h"
#include "qmgr/retry.h"
#include "qmgr/sched/flow.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { REPORTS_STORING_MAX = 100 };

/* Of a site or of the DNS, of which a message waits for one at most; 0: for none that has one. */
static uint16_t number_of_wait(const struct message *m, bool names)
{
	if (names)
		return SPOOL_SITE_NAMES;
	return m->site ? m->site->parked.number : 0;
}

static void release_message(struct qmgr *q, struct message *m, bool keep)
{
	assert(!m->reporting && !m->verifying && m->work.rcpt_count == 0);
	assert(list_empty(&m->in_reports));
	struct spool_release *note = mem_zalloc(sizeof *note);
	note->note.type = SPOOL_RELEASE;
	note->id = m->work.id;
	note->delivers = m->delivers;
	if (keep) {
		assert(!m->delivers);
		bool names = retry_lacks_names(m->work.envelope);
		note->envelope = m->work.envelope;
		m->work.envelope = NULL;
		note->site = number_of_wait(m, names);
		note->parked = names || (m->site && message_waits_for_site(m));
		message_leave_site(m, !names);
	}
	q->db.edges.to_spool(q->db.edges.context, &note->note);
	message_free(q, m);
}

static bool failed_now(const struct recipient *r)
{
	return !r->done && r->last && r->last->class == VERDICT_FAILED;
}

/* A failure for good is final once the sender's report is safe. */
static void record_failed(struct qmgr *q, struct message *m)
{
	struct envelope *e = m->work.envelope;
	uint32_t n = 0;
	for (uint32_t i = 0; i < e->nrcpt; i++)
		n += failed_now(&e->rcpt[i]);
	if (n == 0)
		return;
	struct spool_delivered *note = mem_zalloc(sizeof *note + n * sizeof note->of[0]);
	note->note.type = SPOOL_DELIVERED;
	note->id = m->work.id;
	for (uint32_t i = 0; i < e->nrcpt; i++) {
		struct recipient *r = &e->rcpt[i];
		if (!failed_now(r))
			continue;
		note->of[note->n].recipient = i;
		note->of[note->n++].verdict = verdict_ref(r->last);
		r->done = true;
	}
	assert(note->n == n);
	q->db.edges.to_spool(q->db.edges.context, &note->note);
}

static bool tried_or_done(const struct message *m, const struct recipient *r)
{
	return r->done ||
	       (r->last && (r->last->class == VERDICT_FAILED || r->last->when_ms >= m->taken_ms));
}

/* The round was ended only to tell its sender: what has had no turn in it waits for that as before. */
static bool waits_on(const struct message *m)
{
	for (uint32_t i = 0; m->interrupted && i < m->work.envelope->nrcpt; i++)
		if (!tried_or_done(m, &m->work.envelope->rcpt[i]))
			return true;
	return false;
}

/* Its flow was suspended meanwhile, or a domain of it; and is no more. */
static bool was_resumed(const struct qmgr *q, const struct message *m)
{
	bool flow = m->stopped && !suspend_covers_flow(&q->db, m->work.flow->name);
	return flow || (m->domain_held && m->resumes != q->db.resumes);
}

static void finish_round(struct qmgr *q, struct message *m, int64_t now_ms)
{
	struct envelope *e = m->work.envelope;
	record_failed(q, m);
	if (envelope_open(e) == 0) {
		log_event(LOG_LEVEL_INFO, "done", "id", log_id(m->work.id), "age",
			  log_seconds(now_ms - e->arrived_ms), NULL);
		release_message(q, m, false);
		return;
	}
	e->rounds++;
	const struct retry_terms terms = retry_terms_of(q->sched.conf, e);
	e->due_ms = retry_due_ms(&terms, e, now_ms, scheduler_chance(&q->sched));
	if (was_resumed(q, m) || waits_on(m))
		e->due_ms = now_ms;
	release_message(q, m, true);
}

/* Its flow is suspended: what was not tried in this round waits in the queue. */
static void put_off_untried(struct message *m)
{
	const struct envelope *e = m->work.envelope;
	const struct outcome_context context = {.untried = true};
	assert(m->stopped);
	int64_t until_ms = suspend_flow_until_ms(&m->qmgr->db, m->work.flow->name);
	struct verdict *why = suspend_verdict("flow", until_ms);
	for (uint32_t i = 0; i < e->nrcpt; i++)
		if (!tried_or_done(m, &e->rcpt[i]))
			outcome_apply(m, i, why, &context);
	verdict_unref(why);
}

static void give_up_rest(struct message *m, const char *dsn, const char *why)
{
	struct envelope *e = m->work.envelope;
	for (uint32_t i = 0; i < e->nrcpt; i++)
		if (!e->rcpt[i].done && !failed_now(&e->rcpt[i]))
			outcome_give_up(m, i, dsn, why);
}

/* A copy that an archive has not taken in all its time, which the operator has to see to. */
static bool is_to_hold(const struct message *m, const struct retry_terms *terms, int64_t now_ms)
{
	const struct envelope *e = m->work.envelope;
	return e->archive && !e->returned && !m->wanted && envelope_open(e) > 0 &&
	       retry_expired(terms, e, now_ms);
}

static void hold_copy(struct qmgr *q, struct message *m, int64_t now_ms)
{
	struct envelope *e = m->work.envelope;
	e->held = true;
	metrics_add(METRIC_archive_held, 1);
	log_event(LOG_LEVEL_ERROR, "archive", "id", log_id(m->work.id), "result", "held", "reason",
		  "the archive has not taken this copy in all its time; sluice queue release, when "
		  "it does",
		  NULL);
	finish_round(q, m, now_ms);
}

/* Of word that was asked for with a time to deliver by, NOTIFY=NEVER alone keeps any back. */
static bool wants_warning(const struct recipient *r, bool by)
{
	return by ? !(r->notify & NOTIFY_NEVER) : bounce_wants(r, REPORT_DELAYED);
}

static void owe_warnings(struct message *m)
{
	struct envelope *e = m->work.envelope;
	bool by = clock_wall_ms() >= retry_tell_ms(e);
	for (uint32_t i = 0; i < e->nrcpt; i++)
		if (!e->rcpt[i].done && !m->owed[i] && wants_warning(&e->rcpt[i], by))
			m->owed[i] = REPORT_DELAYED + 1;
	m->tells_by = by;
	if (by)
		e->by |= ENVELOPE_BY_TOLD;
	else
		e->warned = true;
}

/* Who is told; NULL: nobody. A bounce is never answered with a bounce, and a message to the postmaster about one
 * ends there. */
static const char *report_to(const struct qmgr *q, const struct message *m)
{
	const struct envelope *e = m->work.envelope;
	if (e->sender[0])
		return e->sender;
	if (!q->sched.conf->postmaster[0] || envelope_has(e, q->sched.conf->postmaster))
		return NULL;
	return q->sched.conf->postmaster;
}

/* From names our own host. */
static char *signed_by(const struct conf *c)
{
	const struct conf_dkim *by[CONF_DKIM_MAX];
	struct dkim_rows rows;
	struct buf text = {0};
	char *domain = mem_strdup(c->own_name);
	for (char *p = domain; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	int n = conf_dkim_find(c, domain, by);
	conf_dkim_names(by, n, &text);
	if (n == 0 && dkim_rows_find(c->tables, domain, &rows)) {
		n = rows.n;
		dkim_rows_names(&rows, &text);
		dkim_rows_fini(&rows);
	}
	free(domain);
	return n > 0 ? buf_steal(&text, NULL) : NULL;
}

static struct log_held *hold_log(const struct qmgr *q, const struct message *m,
				 const struct envelope *r)
{
	char *names = signed_by(q->sched.conf);
	struct log_held *held =
		log_hold(LOG_LEVEL_INFO, "queued", "id", log_id(r->id), "from", "", "to",
			 r->rcpt[0].address, "nrcpt", log_number(1), "size",
			 log_number((int64_t)r->size), "flow", ENVELOPE_FLOW_REPORTS, "message_id",
			 log_text("<%s@%s>", log_id(r->id), q->sched.conf->own_name), "report_of",
			 log_id(m->work.id), "signed", names, NULL);
	free(names);
	return held;
}

static struct spool_store *write_report(struct qmgr *q, struct message *m, const char *to)
{
	const struct envelope *e = m->work.envelope;
	const struct retry_terms terms = retry_terms_of(q->sched.conf, e);
	assert(m->reporting && message_owes(m));
	struct spool_store *store = mem_zalloc(sizeof *store);
	struct envelope *r = store->envelope = envelope_new();
	r->id = ident_new();
	r->arrived_ms = clock_wall_ms();
	r->sender = mem_strdup("");
	r->flow = mem_strdup(ENVELOPE_FLOW_REPORTS);
	r->smtputf8 = !utf8_is_ascii(to);
	r->tls = e->tls; /* RFC 8689 5: it tells of the message what that hides */
	envelope_add(r, to)->notify = NOTIFY_NEVER;

	struct report report = {.original = e,
				.content = m->work.content,
				.owed = m->owed,
				.to = to,
				.hostname = q->sched.conf->own_name,
				.size_max = q->sched.conf->queue.bounce_size_limit,
				.expires_ms = retry_last_ms(&terms, e),
				.now_ms = r->arrived_ms,
				.id = r->id};
	struct buf text = {0};
	bounce_write(&report, &text);
	size_t len;
	char *bytes = buf_steal(&text, &len);
	r->size = len;
	r->body = utf8_beyond_ascii(bytes, len) ? BODY_8BITMIME : BODY_7BIT;
	store->content = content_in_memory(bytes, len);
	store->note.type = SPOOL_STORE;
	store->reply_to = q->sched.loop;
	store->owner = m;
	store->id = r->id;
	store->log = hold_log(q, m, r);
	return store;
}

/* Who was to get a message without a sender, a bounce most often, and why that failed. */
static void log_untold(const struct message *m)
{
	for (uint32_t i = 0; i < m->work.envelope->nrcpt; i++) {
		const struct recipient *r = &m->work.envelope->rcpt[i];
		if (m->owed[i] != REPORT_FAILED + 1)
			continue;
		log_event(LOG_LEVEL_WARNING, "discarded", "id", log_id(m->work.id), "to",
			  r->address, "reason",
			  log_text("it cannot be delivered, and there is no sender to tell: %s",
				   r->last->text),
			  NULL);
	}
}

/* Of the two that there may be, the one that is owed. */
static void forget_warning(const struct message *m)
{
	struct envelope *e = m->work.envelope;
	assert(m->tells_by ? (e->by & ENVELOPE_BY_TOLD) != 0 : e->warned);
	if (m->tells_by)
		e->by &= (uint8_t)~ENVELOPE_BY_TOLD;
	else
		e->warned = false;
}

static bool is_to_be_tried(const struct recipient *r)
{
	return !r->done &&
	       !(r->last && (r->last->class == VERDICT_SENT || r->last->class == VERDICT_FAILED));
}

static bool any_to_be_tried(const struct envelope *e)
{
	for (uint32_t i = 0; i < e->nrcpt; i++)
		if (is_to_be_tried(&e->rcpt[i]))
			return true;
	return false;
}

/* Nothing that a report is owed for is taken as done: the next round comes to it again, though not to the delivery. Where
 * others of its recipients are only put off, their next attempt waits for no report. */
static void owe_again(struct qmgr *q, struct message *m, int64_t least_ms)
{
	struct envelope *e = m->work.envelope;
	int64_t now_ms = clock_wall_ms();
	bool delayed = false;
	assert(message_owes(m));
	for (uint32_t i = 0; i < e->nrcpt; i++) {
		delayed |= m->owed[i] == REPORT_DELAYED + 1;
		if (m->owed[i] >= REPORT_RELAYED + 1)
			e->rcpt[i].done = false;
	}
	if (delayed)
		forget_warning(m);
	const struct retry_terms terms = retry_terms_of(q->sched.conf, e);
	e->due_ms = retry_due_ms(&terms, e, now_ms, scheduler_chance(&q->sched));
	if (e->due_ms < now_ms + least_ms && !any_to_be_tried(e))
		e->due_ms = now_ms + least_ms;
	if (waits_on(m))
		e->due_ms = now_ms; /* and is told while it waits: retry_wait_ms() */
	release_message(q, m, true);
}

static void store_report(struct qmgr *q, struct spool_store *store)
{
	const struct qmgr_edges *edges = &q->db.edges;
	if (edges->report)
		edges->report(edges->context, q->sched.conf, store);
	else
		edges->to_spool(edges->context, &store->note);
}

/* Each holds what it returns in memory until it is stored: so few are under way at once. */
static void report_in_turn(struct qmgr *q)
{
	while (!q->concludes && q->storing < REPORTS_STORING_MAX && !list_empty(&q->unreported)) {
		struct message *m =
			list_entry(list_first(&q->unreported), struct message, in_reports);
		const char *to = report_to(q, m);
		assert(m->reporting);
		list_remove(&m->in_reports);
		if (to && (m->kept || !m->work.cancelled)) {
			q->storing++;
			store_report(q, write_report(q, m, to));
			continue;
		}
		/* Deleted meanwhile, or the configuration names nobody any more. */
		m->reporting = false;
		message_end_round(q, m);
	}
	assert(q->storing <= REPORTS_STORING_MAX);
}

static void send_report(struct qmgr *q, struct message *m, const char *to)
{
	int64_t now_ms = scheduler_now_ms(&q->sched);
	int64_t wait_ms = report_rate_take(&q->reports, &q->sched.conf->queue, to, now_ms);
	assert(!m->reporting && list_empty(&m->in_reports));
	assert(*to && wait_ms >= 0); /* never to the sender of a bounce */
	if (wait_ms == 0) {
		m->reporting = true;
		list_append(&q->unreported, &m->in_reports);
		report_in_turn(q);
		return;
	}
	if (report_rate_tell(&q->reports, now_ms))
		log_event(LOG_LEVEL_WARNING, "bounces_wait", "id", log_id(m->work.id), "to", to,
			  "reason",
			  "so many reports were sent that bounce_rate or bounce_address_rate is "
			  "reached; others wait in the queue, and are not named here for a minute",
			  NULL);
	owe_again(q, m, wait_ms);
}

/* Its time was over before the relay was started, and its one more attempt came to no host: a machine that boots after long, or by a
 * wrong clock, may have no network yet, and no name server. It waits for these, though not for long. */
static bool is_spared(const struct message *m, const struct retry_terms *terms)
{
	const struct qmgr *q = m->qmgr;
	return (retry_lacks_names(m->work.envelope) || message_waits_for_site(m)) &&
	       scheduler_now_ms(&q->sched) - q->began_steady_ms <
		       retry_grace_ms(terms, m->work.envelope, q->began_ms);
}

/* The operator's order comes first: on hold a message is kept however old it is, and its next round judges what is to be
 * tried anew. */
static void judge_age(struct message *m, const struct retry_terms *terms, int64_t now_ms)
{
	const struct envelope *e = m->work.envelope;
	const enum retry_end end = retry_ended(terms, e, now_ms);
	const bool expired = retry_expired(terms, e, now_ms);
	if (m->wanted && (end != RETRY_GOES_ON || expired))
		return;
	if (end == RETRY_BY)
		give_up_rest(m, "5.4.7", "not delivered by the time that its sender has set");
	else if (end == RETRY_LIFETIME)
		give_up_rest(m, "5.4.7", "the lifetime of its flow has passed");
	else if (expired && is_spared(m, terms))
		return;
	else if (expired)
		give_up_rest(m, "4.4.7", "delivery time expired");
	else if (retry_warning_due(terms, e, now_ms))
		owe_warnings(m);
}

void message_end_round(struct qmgr *q, struct message *m)
{
	assert(!m->verifying && !m->reporting);
	assert(m->work.rcpt_count == 0 && m->work.unread == 0);
	assert(m->nheld == 0 && list_empty(&m->in_starved) && list_empty(&m->in_reports));
	const struct retry_terms terms = retry_terms_of(q->sched.conf, m->work.envelope);
	int64_t now_ms = clock_wall_ms();
	if (m->work.cancelled && !m->kept) {
		log_event(LOG_LEVEL_INFO, "done", "id", log_id(m->work.id), "age",
			  log_seconds(now_ms - m->work.envelope->arrived_ms), "reason", "deleted",
			  NULL);
		release_message(q, m, false);
		return;
	}
	if (is_to_hold(m, &terms, now_ms)) {
		hold_copy(q, m, now_ms);
		return;
	}
	if (m->stopped && !m->work.envelope->returned)
		put_off_untried(m);
	if (m->work.envelope->returned)
		give_up_rest(m, "5.0.0", "returned by the postmaster");
	else
		judge_age(m, &terms, now_ms);

	const char *to = report_to(q, m);
	if (!message_owes(m)) {
		finish_round(q, m, now_ms);
	} else if (!to) {
		log_untold(m);
		finish_round(q, m, now_ms);
	} else {
		send_report(q, m, to);
	}
}

void message_reported(struct qmgr *q, struct spool_store *store)
{
	struct message *m = store->owner;
	bool stored = store->stored;
	free(store);
	assert(m->reporting && q->storing > 0);
	assert(list_empty(&m->in_reports));
	assert(m->work.rcpt_count == 0 && m->work.unread == 0);
	m->reporting = false;
	q->storing--;
	if (stored) {
		metrics_add(METRIC_bounces, 1);
		memset(m->owed, 0, m->work.envelope->nrcpt);
		finish_round(q, m, clock_wall_ms());
	} else {
		owe_again(q, m, 0);
	}
	report_in_turn(q);
}
