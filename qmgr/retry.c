/* SPDX-License-Identifier: ISC */
#include "qmgr/retry.h"

static int64_t lifetime_ms(const struct conf_queue *q, const struct envelope *e)
{
	return e->sender[0] ? q->maximal_queue_lifetime : q->bounce_queue_lifetime;
}

/* Bring due forward to `at`, unless that has passed. */
static int64_t not_after(int64_t due_ms, int64_t at_ms, int64_t now_ms)
{
	return at_ms > now_ms && at_ms < due_ms ? at_ms : due_ms;
}

int64_t retry_due_ms(const struct conf_queue *q, const struct envelope *e, int64_t now_ms,
		     double chance)
{
	/* A clock that went back makes an age negative; it counts as young. */
	int64_t delay = now_ms - e->arrived_ms;
	if (delay < q->minimal_backoff_time)
		delay = q->minimal_backoff_time;
	if (delay > q->maximal_backoff_time)
		delay = q->maximal_backoff_time;
	delay += (int64_t)((double)delay * q->jitter * (2 * chance - 1));
	if (delay < 1)
		delay = 1;

	int64_t due_ms = not_after(now_ms + delay, e->arrived_ms + lifetime_ms(q, e), now_ms);
	if (q->delay_warning_time > 0 && !e->warned)
		due_ms = not_after(due_ms, e->arrived_ms + q->delay_warning_time, now_ms);
	return due_ms;
}

bool retry_expired(const struct conf_queue *q, const struct envelope *e, int64_t now_ms)
{
	return now_ms - e->arrived_ms >= lifetime_ms(q, e);
}

bool retry_warning_due(const struct conf_queue *q, const struct envelope *e, int64_t now_ms)
{
	return q->delay_warning_time > 0 && !e->warned && e->sender[0] &&
	       now_ms - e->arrived_ms >= q->delay_warning_time;
}
