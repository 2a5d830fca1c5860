/* SPDX-License-Identifier: ISC */
/* Where an entry can go now: places on ready connections, and the pace of the site. */
#include "qmgr/conn.h"
#include "qmgr/indoubt.h"
#include "qmgr/message.h"
#include "qmgr/site.h"

static bool bytes_fit(const struct site *s, int64_t bytes)
{
	int64_t limit = s->transport->settings->pipeline_bytes;
	return limit == 0 || bytes <= limit;
}

bool site_one_at_a_time(const struct site *s)
{
	return s->transport->settings->destination_rate_delay > 0;
}

int64_t site_paused_until_ms(const struct site *s)
{
	int64_t due_ms = pace_due_ms(&s->pace, &s->transport->settings->destination_rate);
	return due_ms > s->delay_until_ms ? due_ms : s->delay_until_ms;
}

bool site_paused(const struct site *s)
{
	return site_paused_until_ms(s) > scheduler_now_ms(s->qmgr) ||
	       (site_one_at_a_time(s) && s->busy > 0);
}

/* The newest connection with nothing to do; else the newest with a place, so that the older ones
 * fall idle and close when the load drops. */
static struct conn *place_for(const struct site *s, const struct entry *e)
{
	if (e->alone)
		return indoubt_place(s, e);
	list_each (link, tmp, &s->open) {
		struct conn *c = list_entry(link, struct conn, in_site);
		if (c->busy == 0 && !c->reserve)
			return c;
	}
	int64_t size = (int64_t)e->peer->job->message->content->size;
	list_each (link, tmp, &s->open) {
		struct conn *c = list_entry(link, struct conn, in_site);
		if (!c->reserve && bytes_fit(s, c->bytes + size))
			return c;
	}
	return NULL;
}

struct conn *site_place(const struct site *s, const struct peer *p)
{
	return site_paused(s) ? NULL : place_for(s, peer_first(p));
}

void site_count_delivery(struct site *s)
{
	pace_count(&s->pace, &s->transport->settings->destination_rate, scheduler_now_ms(s->qmgr));
}

void site_delivery_ended(struct site *s)
{
	if (site_one_at_a_time(s))
		s->delay_until_ms =
			scheduler_now_ms(s->qmgr) + s->transport->settings->destination_rate_delay;
}
