/* SPDX-License-Identifier: ISC */
#include "cmd/watch/milter_watch.h"

#include "base/clock.h"
#include "base/mem.h"
#include "smtpd/milter/milter_health.h"
#include "smtpd/milter/milter_probe.h"

#include <assert.h>
#include <stdlib.h>

enum { LOOK_MS = 1000 };

struct watched {
	const struct conf_milter *filter;
	struct milter_probe *probe; /* under way, or NULL */
	int64_t asked_ms;	    /* steady clock: when that began */
};

struct milter_watch {
	struct loop *loop;
	struct timer look;
	struct conf *conf;	 /* a reference, or NULL */
	struct watched *watched; /* one a filter of it */
};

static void on_probed(void *owner, const char *why)
{
	struct watched *w = owner;
	assert(w->probe);
	if (why)
		milter_health_broke(w->filter, MILTER_UNREACHED, why);
	else
		milter_health_negotiated(w->filter, w->asked_ms);
	milter_probe_end(&w->probe);
}

static bool wants_look(const struct conf_milter *m)
{
	struct milter_health is;
	milter_health_take(m->title, &is);
	bool wants = is.away || is.seen_ms == 0 ||
		     clock_steady_ms() - is.seen_ms >= MILTER_WATCH_QUIET_MS;
	milter_health_fini(&is);
	return wants;
}

static void probe_milters(void *owner)
{
	struct milter_watch *w = owner;
	assert(w->conf && w->conf->nmilter > 0);
	loop_timer_in(w->loop, &w->look, LOOK_MS);
	for (int i = 0; i < w->conf->nmilter; i++) {
		struct watched *one = &w->watched[i];
		if (one->probe || !conf_milter_passed(w->conf, one->filter) ||
		    !wants_look(one->filter))
			continue;
		one->asked_ms = clock_steady_ms();
		one->probe = milter_probe_begin(w->loop, one->filter, on_probed, one);
	}
}

static void drop_conf(struct milter_watch *w)
{
	for (int i = 0; w->conf && i < w->conf->nmilter; i++)
		milter_probe_end(&w->watched[i].probe);
	free(w->watched);
	conf_unref(w->conf);
}

struct milter_watch *milter_watch_new(struct loop *loop)
{
	struct milter_watch *w = mem_zalloc(sizeof *w);
	w->loop = loop;
	timer_init(&w->look, probe_milters, w);
	return w;
}

void milter_watch_free(struct milter_watch **wp)
{
	struct milter_watch *w = mem_take(wp);
	if (!w)
		return;
	timer_stop(&w->loop->timers, &w->look);
	drop_conf(w);
	free(w);
}

void milter_watch_start(struct milter_watch *w, struct conf *conf)
{
	struct conf *new = conf_ref(conf);
	drop_conf(w);
	w->conf = new;
	w->watched = mem_zalloc(((size_t)conf->nmilter + 1) * sizeof *w->watched);
	for (int i = 0; i < conf->nmilter; i++)
		w->watched[i].filter = &conf->milter[i];
	if (conf->nmilter > 0)
		probe_milters(w);
	else
		timer_stop(&w->loop->timers, &w->look);
}
