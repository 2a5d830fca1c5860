/* SPDX-License-Identifier: ISC */
/* When the next delivery may begin: destination_rate and destination_rate_delay, and the pace. */
#include "base/number.h"
#include "base/sharing.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/site.h"
#include "qmgr/dest/source.h"

#include <stdlib.h>

bool site_one_at_a_time(const struct site *s)
{
	return s->queue.transport->settings->destination_rate_delay > 0;
}

static const struct conf_rate *rate_of(const struct site *s)
{
	return &s->queue.transport->settings->destination_rate;
}

bool site_rate_shared(const struct site *s)
{
	return s->db->edges.to_cluster && rate_of(s)->events > 0;
}

int64_t site_rate_due_ms(const struct site *s)
{
	return site_rate_shared(s) ? pace_reserved_ms(&s->pace, rate_of(s), destdb_now_ms(s->db))
				   : pace_due_ms(&s->pace, rate_of(s));
}

void site_reserve(struct site *s)
{
	int64_t more = 0;
	if (site_rate_shared(s))
		more = pace_wants(&s->pace, rate_of(s), s->queue.waiting, destdb_now_ms(s->db));
	if (more == 0)
		return;
	struct sharing_want *w = sharing_want_new(s->db->sched->loop, s->key, rate_of(s), more);
	s->db->edges.to_cluster(s->db->edges.context, &w->note);
}

void site_reserved(struct destdb *db, struct sharing_want *w)
{
	struct site *s;
	HASH_FIND_STR(db->sites, w->key, s);
	if (s && s->pace.wanted) {
		pace_granted(&s->pace, w->n, w->from_us, w->again_us);
		site_touch(s);
	}
	free(w);
}

int64_t site_rated_until_ms(const struct site *s)
{
	return number_max(site_rate_due_ms(s), s->delay_until_ms);
}

bool site_rated(const struct site *s)
{
	return site_rated_until_ms(s) > destdb_now_ms(s->db) ||
	       (site_one_at_a_time(s) && s->busy > 0);
}

int64_t site_paused_until_ms(const struct site *s)
{
	return number_max(site_rated_until_ms(s), site_pace_shared(s) ? 0 : site_pace_due_ms(s));
}

bool site_paused(const struct site *s)
{
	return site_rated(s) || !site_pace_open(s) || provider_paused(s->provider) ||
	       source_paused(s->source);
}

void site_count_delivery(struct site *s)
{
	provider_count_delivery(s->provider);
	source_count_delivery(s->source);
	learnt_pace_begun(&s->pacing->learnt, destdb_now_ms(s->db));
	if (!site_rate_shared(s)) {
		pace_count(&s->pace, rate_of(s), destdb_now_ms(s->db));
		return;
	}
	pace_use(&s->pace, rate_of(s));
	site_reserve(s);
}

void site_cap_rate(struct site *s)
{
	int64_t now_ms = destdb_now_ms(s->db);
	int64_t most_ms = now_ms + s->queue.transport->settings->destination_rate_delay;
	pace_cap(&s->pace, rate_of(s), now_ms);
	if (s->delay_until_ms > most_ms)
		s->delay_until_ms = most_ms;
}

void site_delivery_ended(struct site *s)
{
	if (site_one_at_a_time(s))
		s->delay_until_ms =
			destdb_now_ms(s->db) + s->queue.transport->settings->destination_rate_delay;
}
