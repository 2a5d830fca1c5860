/* SPDX-License-Identifier: ISC */
/* Connections and deliveries make the window narrower or wider, or the site dead. */
#include "base/log.h"
#include "qmgr/dest/site.h"
#include "qmgr/dest/source.h"

#include <assert.h>

static void log_step(const struct site *s, const char *state)
{
	const struct window *w = &s->window;
	if (s->queue.transport->settings->destination_concurrency_feedback_debug)
		log_event(LOG_LEVEL_INFO, "site", "site", s->name, "transport",
			  s->queue.transport->title, "state", state, "window",
			  log_number(w->concurrency), "success", log_text("%.3f", w->success),
			  "failure", log_text("%.3f", w->failure), "fail_cohorts",
			  log_text("%.3f", w->fail_cohorts), "busy", log_number(s->busy), NULL);
}

void site_worked(struct site *s, int busy)
{
	assert(busy > 0);
	window_on_success(&s->window, s->queue.transport->settings, busy);
	log_step(s, "success");
}

void site_adopt_failure(struct site *s, struct verdict *why)
{
	verdict_ref(why); /* before the other goes: it may be the same */
	verdict_unref(s->last_failure);
	s->last_failure = why;
}

/* One dead host of several is the destination database's business: the site goes on with the others
 * and its window stays. A host that takes some connections and refuses more is telling us how many
 * it wants. */
static bool others_serve(const struct site *s, const struct host *host)
{
	if (host->ready > 0)
		return false;
	for (int i = 0; i < s->nhost; i++)
		if (s->hosts[i].host != host && !site_host_out(&s->hosts[i]))
			return true;
	return false;
}

void site_connection_failed(struct site *s, struct host *host, struct verdict *why, bool fatal)
{
	site_adopt_failure(s, why);
	s->unreached++;
	site_hour_add(s, SITE_HOUR_UNREACHED);
	site_touch(s);
	if (others_serve(s, host))
		return;
	/* A host that serves is not dead, however many more it turns away. */
	if (fatal && !host_serves(host, destdb_now_ms(s->db)))
		window_on_failure(&s->window, s->queue.transport->settings);
	else
		window_narrow(&s->window, s->queue.transport->settings);
	log_step(s, fatal ? "failure" : "cut off");
}

int site_limit(const struct site *s)
{
	bool one = site_one_at_a_time(s) || site_pace_asks(s) || source_on_trial(s);
	return one && s->window.concurrency > 1 ? 1 : s->window.concurrency;
}

bool site_may_grow(const struct site *s)
{
	int used = s->db->bind_early ? s->busy : s->connections - s->slow;
	return s->queue.waiting > s->connecting - s->slow && used < site_limit(s);
}

void site_revive(struct site *s)
{
	if (window_dead(&s->window))
		window_revive(&s->window, s->queue.transport->settings);
}

void site_host_changed(struct host *h)
{
	list_each (link, tmp, &h->sites) {
		struct site *s = list_entry(link, struct site_host, in_host)->site;
		if (h->state == HOST_UP)
			site_revive(s);
		site_touch(s);
	}
}
