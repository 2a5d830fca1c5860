/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/site_pace.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/site.h"
#include "qmgr/dest/source.h"

#include <assert.h>

static const char *const states[] = {[LEARNT_PACE_FREE] = "free",
				     [LEARNT_PACE_PACED] = "paced",
				     [LEARNT_PACE_ASKING] = "asking"};

bool site_pace_wanted(const struct site *s)
{
	return s->queue.transport->settings->pace && !s->db->bind_early;
}

bool site_pace_shared(const struct site *s)
{
	return s->pacing != &s->own_pace;
}

void site_pace_touch(struct site *s)
{
	site_touch(s);
	if (!site_pace_shared(s))
		return;
	for (struct site *other = s->db->sites; other; other = other->hh.next)
		if (other->pacing == s->pacing)
			site_touch(other);
}

double site_pace_rate(const struct site *s)
{
	return learnt_pace_rate(&s->pacing->learnt);
}

bool site_pace_is_news(const struct site *s)
{
	double a = site_pace_rate(s), b = s->pacing->logged;
	return 2 * a > 3 * b || 2 * b > 3 * a;
}

/* Why it is another than the log knows. */
static const char *reason_of_change(const struct site_pace *p, double rate)
{
	if (p->learnt.state == LEARNT_PACE_FREE)
		return "forgotten";
	if (p->learnt.state == LEARNT_PACE_ASKING)
		return "nothing is taken";
	return p->logged > 0 && rate > p->logged ? "what was sent is taken" : "refused";
}

void site_pace_log(struct site *s)
{
	const struct site_pace *p = s->pacing;
	double rate = site_pace_rate(s);
	bool shared = site_pace_shared(s);
	assert(p->learnt.state < sizeof states / sizeof states[0]);
	char text[NUMBER_RATE_MAX];
	log_event(LOG_LEVEL_INFO, "pace", "provider", shared ? s->provider->name : NULL, "site",
		  shared ? NULL : s->name, "transport", shared ? NULL : s->queue.transport->title,
		  "source", source_name(s), "state", states[p->learnt.state], "pace",
		  rate > 0 ? number_rate(text, rate) : NULL, "reason", reason_of_change(p, rate),
		  "reply", p->why ? log_reply(p->why->code, p->why->text) : NULL, NULL);
	s->pacing->logged = rate;
}

bool site_pace_open(const struct site *s)
{
	return site_pace_lets_begin(s->pacing, destdb_now_ms(s->db));
}

int64_t site_pace_due_ms(const struct site *s)
{
	return learnt_pace_due_ms(&s->pacing->learnt);
}

bool site_pace_asks(const struct site *s)
{
	return s->pacing->learnt.state == LEARNT_PACE_ASKING;
}

bool site_pace_narrow(const struct site *s)
{
	return learnt_pace_narrow(&s->pacing->learnt, destdb_now_ms(s->db));
}

bool site_pace_refuses(const struct site *s)
{
	return site_pace_asks(s) &&
	       s->pacing->learnt.ask_ms > s->queue.transport->settings->site_patience;
}

void site_pace_restore(struct site_pace *p, struct destdb *db, double rate, int64_t since_ms,
		       int64_t refused_ms, struct verdict *why)
{
	int64_t age_ms = clock_wall_ms() - refused_ms, now_ms = destdb_now_ms(db);
	if (age_ms < 0 || age_ms >= LEARNT_PACE_KEPT_MS) {
		verdict_unref(why);
		return;
	}
	learnt_pace_recall(&p->learnt, rate, now_ms, db->sched->conf->queue.maximal_backoff_time);
	p->learnt.refused_ms = now_ms - age_ms;
	p->since_ms = since_ms;
	verdict_unref(p->why);
	p->why = why;
	p->logged = learnt_pace_rate(&p->learnt);
}

void site_pace_recall(struct site *s, double rate, int64_t since_ms, int64_t refused_ms,
		      struct verdict *why)
{
	if (site_pace_wanted(s))
		site_pace_restore(s->pacing, s->db, rate, since_ms, refused_ms, why);
	else
		verdict_unref(why);
}

void site_pace_forget(struct site *s)
{
	bool had = s->pacing->learnt.state != LEARNT_PACE_FREE;
	learnt_pace_forget(&s->pacing->learnt);
	agreement_taken(&s->pacing->agreement);
	verdict_unref(s->pacing->why);
	s->pacing->why = NULL;
	s->pacing->since_ms = 0;
	if (had) {
		site_pace_log(s);
		site_pace_touch(s);
	}
}
