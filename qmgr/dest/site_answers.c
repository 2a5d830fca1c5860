/* SPDX-License-Identifier: ISC */
/* Answers of the hosts of a site, and how they change its pace. */
#include "base/clock.h"
#include "base/metrics.h"
#include "base/reason.h"
#include "qmgr/dest/conn.h"
#include "qmgr/dest/pooling.h"
#include "qmgr/dest/provider.h"

#include <assert.h>

bool site_pace_rules(const struct site *s, const struct host *h)
{
	return site_pace_wanted(s) && !site_has_other(s, h);
}

/* The log hears of changes, the disk and other nodes likewise. */
static void tell_pace_changed(struct site *s, struct host *h, enum learnt_pace_state before)
{
	struct site_pace *p = s->pacing;
	if (p->learnt.state != before || site_pace_is_news(s))
		site_pace_log(s);
	host_paced(h, site_pace_rate(s), p->since_ms, p->why);
	pooling_changed(s->db, h);
	s->db->learnt = true;
	if (p->learnt.state != before || site_pace_asks(s))
		site_pace_touch(s);
	else
		site_touch(s);
}

static void host_refused(struct conn *c, const struct entry *e, struct verdict *why)
{
	struct site *s = c->site;
	struct site_pace *p = s->pacing;
	enum learnt_pace_state before = p->learnt.state;
	int64_t most_ms = s->db->sched->conf->queue.maximal_backoff_time;
	metrics_add(METRIC_pace_refusals, 1);
	provider_count_refusal(s->provider);
	verdict_ref(why);
	verdict_unref(p->why);
	p->why = why;
	if (p->since_ms == 0)
		p->since_ms = clock_wall_ms();
	site_adopt_failure(s, why);
	if (learnt_pace_refused(&p->learnt, e->era, destdb_now_ms(s->db), most_ms))
		tell_pace_changed(s, c->host, before);
}

static void host_took(struct conn *c, const struct entry *e)
{
	struct site *s = c->site;
	enum learnt_pace_state before = s->pacing->learnt.state;
	agreement_taken(&s->pacing->agreement);
	if (learnt_pace_taken(&s->pacing->learnt, e->era, destdb_now_ms(s->db)) ||
	    (before == LEARNT_PACE_PACED && site_pace_is_news(s)))
		tell_pace_changed(s, c->host, before);
}

/* Whose refusal it is: the one place where that is decided. */
static bool is_of_host(struct site *s, const struct entry *e, const struct verdict *v)
{
	assert(e->n > 0);
	const struct envelope *env = e->peer->job->work->envelope;
	if (v->class != VERDICT_DEFERRED)
		return false;
	switch (reason_whose(v)) {
	case REASON_OF_HOST:
		return true;
	case REASON_OF_MESSAGE:
		return false;
	default:
		return agreement_refused(&s->pacing->agreement, env->sender,
					 env->rcpt[e->recipient[0]].address, v) ||
		       site_pace_asks(s);
	}
}

/* A message that has ended on its way has no other turn: its sender is told what came of this one. */
static bool may_be_refused(const struct site *s, struct entry *e)
{
	return !e->peer->job->work->cancelled &&
	       e->refusals++ < s->queue.transport->settings->pace_retries;
}

/* The entry may try again at the pace, without an attempt counted. */
static bool may_go_back(const struct site *s, struct entry *e)
{
	return site_pace_rate(s) >= LEARNT_PACE_FLOOR && may_be_refused(s, e);
}

/* Of the host: those of its refusals that were, as a mask would have it, by recipient. */
static void take_back(struct delivery *d, const struct verdict *why)
{
	for (uint32_t i = 0; i < d->nrcpt; i++) {
		struct verdict *v = d->rcpt[i].verdict;
		bool same = v && v->class == VERDICT_DEFERRED && v->code == why->code &&
			    v->stage == why->stage;
		if (!same)
			continue;
		verdict_unref(v);
		d->rcpt[i].verdict = NULL;
	}
}

/* Nothing is taken, and there is another host to ask; or only mail will show that this one takes some again. */
static bool is_hosts_alone(const struct site *s, const struct host *h)
{
	return site_has_other(s, h) && (h->told || site_pace_asks(s));
}

static void leave_connections(struct site *s, const struct host *h)
{
	hash_each (struct conn, c, s->db->conns)
		if (c->site == s && c->host == h && conn_ready(c))
			conn_end(s->db, c);
}

/* As one that says 421 is: it is out, and others have its mail. */
static void leave_host(struct conn *c, struct verdict *why)
{
	struct site *s = c->site;
	struct host *h = c->host;
	int64_t most_ms = s->queue.transport->settings->host_backoff_max;
	h->told = true;
	s->db->learnt = true;
	site_adopt_failure(s, why);
	if (host_failed(h, why, c->name, c->era, destdb_now_ms(s->db), most_ms))
		site_host_changed(h);
	pooling_changed(s->db, h);
	leave_connections(s, h);
}

bool site_pace_answered(struct conn *c, struct entry *e, struct delivery *d)
{
	struct verdict *why = NULL;
	bool any_taken = false;
	if (!site_pace_wanted(c->site) || d->verification)
		return true;
	for (uint32_t i = 0; i < d->nrcpt; i++) {
		struct verdict *v = d->rcpt[i].verdict;
		if (v && !why && is_of_host(c->site, e, v))
			why = v;
		else if (v &&
			 (v->class == VERDICT_SENT || v->class == VERDICT_FAILED ||
			  (v->class == VERDICT_DEFERRED && reason_whose(v) == REASON_OF_MESSAGE)))
			any_taken = true;
	}
	if (any_taken)
		host_took(c, e);
	if (!why)
		return true;
	bool alone = !any_taken && is_hosts_alone(c->site, c->host);
	verdict_ref(why);
	if (alone)
		leave_host(c, why);
	else
		host_refused(c, e, why);
	if (alone ? may_be_refused(c->site, e) : may_go_back(c->site, e))
		take_back(d, why);
	verdict_unref(why);
	return !alone;
}

bool site_pace_told(struct conn *c, struct entry *e, struct delivery *d)
{
	assert(d->returned && d->refusal);
	host_refused(c, e, d->refusal);
	return d->verification || may_go_back(c->site, e);
}

void site_pace_unanswered(struct conn *c)
{
	if (!site_pace_asks(c->site) || !site_has_other(c->site, c->host))
		return;
	struct verdict *why = verdict_printf(VERDICT_DEFERRED, 0, "4.4.2", c->peer,
					     "%s does not answer, and others are asked", c->peer);
	conn_leave(c->site->db, c);
	leave_host(c, why);
	verdict_unref(why);
}

/* Who has a pace of its own knows better. */
static void adopt_pace(struct site *s, const struct host *h, int64_t refused_ms)
{
	if (s->pacing->learnt.state != LEARNT_PACE_FREE || site_has_other(s, h))
		return;
	site_pace_recall(s, h->pace.rate, h->pace.since_ms, refused_ms, verdict_ref(h->pace.why));
	if (s->pacing->learnt.state == LEARNT_PACE_FREE)
		return;
	site_pace_log(s);
	site_pace_touch(s);
}

static void hear_of_pace(struct site *s, const struct host *h)
{
	if (h->pace.rate > 0)
		adopt_pace(s, h, clock_wall_ms());
	else if (s->pacing->learnt.state != LEARNT_PACE_FREE)
		site_pace_forget(s);
	site_touch(s);
}

void site_pace_meet(struct site *s)
{
	for (int i = 0; i < s->nhost; i++) {
		const struct host *h = s->hosts[i].host;
		int64_t age_ms = pooling_heard_age_ms(s->db, h, FACT_PACE);
		if (age_ms >= 0 && h->pace.rate > 0)
			adopt_pace(s, h, clock_wall_ms() - age_ms);
	}
}

void site_pace_heard(struct host *h)
{
	list_each (link, tmp, &h->sites)
		hear_of_pace(list_entry(link, struct site_host, in_host)->site, h);
}

static void unpace_hosts(struct site *s)
{
	for (int i = 0; i < s->nhost; i++) {
		host_paced(s->hosts[i].host, 0, 0, NULL);
		pooling_changed(s->db, s->hosts[i].host);
	}
}

void site_pace_age(struct site *s)
{
	if (!learnt_pace_stale(&s->pacing->learnt, destdb_now_ms(s->db)))
		return;
	site_pace_forget(s);
	for (struct site *other = s->db->sites; other; other = other->hh.next)
		if (other->pacing == s->pacing)
			unpace_hosts(other);
	s->db->learnt = true;
}
