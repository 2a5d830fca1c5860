/* SPDX-License-Identifier: ISC */
#include "qmgr/retry.h"

#include "base/number.h"

#include <assert.h>

enum { GRACE_MS = 3600000 };

struct retry_terms retry_terms_of(const struct conf *c, const struct envelope *e)
{
	const struct conf_flow *flow = conf_flow_find(c, envelope_flow(e));
	return (struct retry_terms){&c->queue, e->archive ? 0 : flow->lifetime};
}

static int64_t queue_end_ms(const struct retry_terms *t, const struct envelope *e)
{
	return envelope_began_ms(e) +
	       (e->sender[0] ? t->queue->maximal_queue_lifetime : t->queue->bounce_queue_lifetime);
}

static int64_t lifetime_end_ms(const struct retry_terms *t, const struct envelope *e)
{
	return t->lifetime > 0 ? envelope_began_ms(e) + t->lifetime : INT64_MAX;
}

static int64_t by_end_ms(const struct envelope *e)
{
	return e->by & ENVELOPE_BY_RETURN ? e->by_ms : INT64_MAX;
}

int64_t retry_end_ms(const struct retry_terms *t, const struct envelope *e)
{
	return number_min(lifetime_end_ms(t, e), by_end_ms(e));
}

enum retry_end retry_ended(const struct retry_terms *t, const struct envelope *e, int64_t now_ms)
{
	if (now_ms < retry_end_ms(t, e))
		return RETRY_GOES_ON;
	return by_end_ms(e) <= lifetime_end_ms(t, e) ? RETRY_BY : RETRY_LIFETIME;
}

int64_t retry_last_ms(const struct retry_terms *t, const struct envelope *e)
{
	return number_min(retry_end_ms(t, e), queue_end_ms(t, e));
}

int64_t retry_tell_ms(const struct envelope *e)
{
	return e->by & ENVELOPE_BY_NOTIFY && !(e->by & ENVELOPE_BY_TOLD) && e->sender[0]
		       ? e->by_ms
		       : INT64_MAX;
}

/* Where places are scarce: a delivery begins in this time, if nothing is in its way; word needs none, and the mail goes on. */
enum { SCARCE_TURN_MS = 10000, SCARCE_WORD_MS = 1000 };

/* An age that is reached at at_ms, while the message waits. What is taken up about then, or later, has as long as it may
 * be until the next attempt. */
static int64_t waits_until(int64_t most, int64_t at_ms, int64_t age, int64_t taken_ms)
{
	if (age <= 0)
		return INT64_MAX;
	int64_t turn_ms = taken_ms + (taken_ms < at_ms ? number_min(age, most) : most);
	return at_ms > turn_ms ? at_ms : turn_ms;
}

int64_t retry_wait_ms(const struct retry_terms *t, const struct envelope *e, int64_t taken_ms,
		      bool scarce)
{
	int64_t most = t->queue->maximal_backoff_time;
	int64_t turn = scarce ? number_min(most, SCARCE_TURN_MS) : most;
	int64_t word = scarce ? number_min(most, SCARCE_WORD_MS) : most;
	int64_t began_ms = envelope_began_ms(e), warn_after = t->queue->delay_warning_time;
	int64_t queue_ms = queue_end_ms(t, e), tell_ms = retry_tell_ms(e);
	int64_t until_ms = retry_end_ms(t, e);
	until_ms = number_min(until_ms, waits_until(turn, queue_ms, queue_ms - began_ms, taken_ms));
	if (!e->warned && e->sender[0])
		until_ms = number_min(
			until_ms, waits_until(word, began_ms + warn_after, warn_after, taken_ms));
	if (tell_ms < INT64_MAX)
		until_ms = number_min(until_ms,
				      waits_until(word, tell_ms, tell_ms - began_ms, taken_ms));
	return until_ms;
}

/* Bring due forward to `at`, unless that has passed. */
static int64_t not_after(int64_t due_ms, int64_t at_ms, int64_t now_ms)
{
	return at_ms > now_ms && at_ms < due_ms ? at_ms : due_ms;
}

bool retry_lacks_names(const struct envelope *e)
{
	bool any = false;
	for (uint32_t i = 0; i < e->nrcpt; i++) {
		if (e->rcpt[i].done)
			continue;
		if (!e->rcpt[i].last || !verdict_lacks_names(e->rcpt[i].last))
			return false;
		any = true;
	}
	return any;
}

static int64_t least_delay(const struct conf_queue *q, const struct envelope *e)
{
	return retry_lacks_names(e) ? number_min(q->minimal_backoff_time, RETRY_NAMES_MS)
				    : q->minimal_backoff_time;
}

int64_t retry_due_ms(const struct retry_terms *t, const struct envelope *e, int64_t now_ms,
		     double chance)
{
	assert(chance >= 0 && chance <= 1);
	const struct conf_queue *q = t->queue;
	/* A clock that went back makes an age negative; it counts as young. */
	int64_t delay = now_ms - envelope_began_ms(e), least = least_delay(q, e);
	if (delay < least)
		delay = least;
	if (delay > q->maximal_backoff_time)
		delay = q->maximal_backoff_time;
	delay += (int64_t)((double)delay * q->jitter * (2 * chance - 1));
	if (delay < 1)
		delay = 1;

	int64_t due_ms = not_after(now_ms + delay, queue_end_ms(t, e), now_ms);
	due_ms = not_after(due_ms, retry_end_ms(t, e), now_ms);
	if (retry_tell_ms(e) < INT64_MAX)
		due_ms = not_after(due_ms, retry_tell_ms(e), now_ms);
	if (q->delay_warning_time > 0 && !e->warned && e->sender[0])
		due_ms = not_after(due_ms, envelope_began_ms(e) + q->delay_warning_time, now_ms);
	assert(due_ms > now_ms);
	return due_ms;
}

int64_t retry_grace_ms(const struct retry_terms *t, const struct envelope *e, int64_t began_ms)
{
	int64_t end_ms = queue_end_ms(t, e);
	return end_ms <= began_ms ? number_min(end_ms - envelope_began_ms(e), GRACE_MS) : 0;
}

bool retry_expired(const struct retry_terms *t, const struct envelope *e, int64_t now_ms)
{
	return now_ms >= queue_end_ms(t, e);
}

bool retry_warning_due(const struct retry_terms *t, const struct envelope *e, int64_t now_ms)
{
	bool aged = t->queue->delay_warning_time > 0 && !e->warned && e->sender[0] &&
		    now_ms - envelope_began_ms(e) >= t->queue->delay_warning_time;
	return aged || now_ms >= retry_tell_ms(e);
}
