/* SPDX-License-Identifier: ISC */
/* What connections and deliveries tell the window: narrower, wider, dead, alive again. */
#include "base/log.h"
#include "qmgr/site.h"

static void log_state(const struct site *s, const char *state)
{
	log_event(LOG_LEVEL_INFO, "site", "site", s->name, "transport", s->transport->title,
		  "state", state, "window", log_number(s->window.concurrency), "reason",
		  s->last_failure ? s->last_failure->text : NULL, NULL);
}

void site_revive(struct site *s)
{
	if (!window_dead(&s->window) || scheduler_now_ms(s->qmgr) < s->dead_until_ms)
		return;
	window_revive(&s->window, s->transport->settings);
	log_state(s, "alive");
}

static void log_step(const struct site *s, const char *state)
{
	const struct window *w = &s->window;
	if (s->transport->settings->destination_concurrency_feedback_debug)
		log_event(LOG_LEVEL_INFO, "site", "site", s->name, "transport", s->transport->title,
			  "state", state, "window", log_number(w->concurrency), "success",
			  log_text("%.3f", w->success), "failure", log_text("%.3f", w->failure),
			  "fail_cohorts", log_text("%.3f", w->fail_cohorts), "busy",
			  log_number(s->busy), NULL);
}

void site_worked(struct site *s, int busy)
{
	window_on_success(&s->window, s->transport->settings, busy);
	log_step(s, "success");
}

void site_connection_failed(struct site *s, struct host *host, struct verdict *why, bool fatal)
{
	verdict_unref(s->last_failure);
	s->last_failure = verdict_ref(why);
	site_touch(s);

	/* One dead host of several is the destination database's business: the site goes on with
	 * the others and its window stays. A host that takes some connections and refuses more is
	 * telling us how many it wants. */
	int64_t now_ms = scheduler_now_ms(s->qmgr);
	if (host->ready == 0)
		for (int i = 0; i < s->nhost; i++)
			if (s->hosts[i].host != host && !host_out(s->hosts[i].host, now_ms))
				return;
	bool died = false;
	/* A host that serves is not dead, however many more it turns away. */
	if (fatal && !host_serves(host, now_ms))
		died = window_on_failure(&s->window, s->transport->settings);
	else
		window_narrow(&s->window, s->transport->settings);
	log_step(s, fatal ? "failure" : "cut off");
	if (died) {
		s->dead_until_ms = now_ms + s->qmgr->conf->queue.minimal_backoff_time;
		log_state(s, "dead");
	}
}

void sites_revive(struct qmgr *q)
{
	struct host *h, *next_h;
	HASH_ITER(hh, q->hosts, h, next_h)
	h->retry_ms = h->cool_ms = 0;
	struct site *s, *next_s;
	HASH_ITER(hh, q->sites, s, next_s)
	{
		s->dead_until_ms = 0;
		site_touch(s);
	}
}
