/* SPDX-License-Identifier: ISC */
#include "sim/world.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sharing.h"
#include "cluster/cluster.h"
#include "qmgr/flow_command.h"
#include "sim/model_host.h"
#include "sim/redis_server.h"
#include "sim/staging.h"
#include "sim/watch.h"
#include "sim/watch_nodes.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/resource.h>

/* The clock begins here: a time of zero means "never" in places. */
static const int64_t began_us = INT64_C(1000000000);

enum {
	SAMPLE_MS = 1000, /* without a setting */
	SERIES_MAX = 2000,
	STALL_MS = 24 * 3600 * 1000,
};

static void set_clock(struct world *w, int64_t now_us)
{
	assert(now_us >= w->now_us);
	w->now_us = now_us;
	clock_stand(began_us + now_us);
}

static void hear_nothing(void *owner, struct note *note)
{
	(void)owner;
	switch (note->type) {
	case CLUSTER_VIEW:
		cluster_view_free(&(struct cluster_view *){(struct cluster_view *)note});
		break;
	case FLOW_COMMAND:
		flow_command_free(&(struct flow_command *){(struct flow_command *)note});
		break;
	case SHARING_PARTS:
		free(note);
		break;
	default:
		assert(0 && "a note for nobody");
	}
}

/* Two loops for each node, with descriptors of their own. */
static void have_descriptors(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void make_cluster(struct world *w, const struct arrivals *arrivals)
{
	struct dice dice;
	w->nstage = (int)w->scenario->nodes;
	watch_nodes_begin(w);
	w->redis = redis_server_new(w);
	w->dealt = mem_zalloc((size_t)w->nstage * sizeof *w->dealt);
	dice_init(&dice, w->seed, "balancer");
	arrivals_deal(arrivals, &dice, w->nstage, w->dealt);
	have_descriptors();
	srandom((unsigned)w->seed);
}

void world_init(struct world *w, const struct scenario *scenario, const struct arrivals *arrivals,
		uint64_t seed, bool early, struct tally *tally)
{
	int64_t sample_ms = scenario->simulation.sample;
	*w = (struct world){.scenario = scenario,
			    .seed = seed,
			    .early = early,
			    .sample_us = stage_us(sample_ms ? sample_ms : SAMPLE_MS),
			    .nstage = 1,
			    .tally = tally};
	tally->sample_ms = w->sample_us / 1000;
	clock_stand(began_us);
	/* That Redis is away is counted. */
	log_set_level(scenario->nodes > 0 ? LOG_LEVEL_NONE : LOG_LEVEL_ERROR);
	timers_init(&w->events);
	timers_init(&w->wakes);
	list_init(&w->touched);
	w->hosts = model_hosts_new(w);
	if (scenario->nodes > 0 || scenario->simulation.nsuspended > 0)
		w->nobody = loop_new("nobody", hear_nothing, NULL, NULL);
	if (scenario->nodes > 0)
		make_cluster(w, arrivals);
	w->stage = mem_zalloc((size_t)w->nstage * sizeof *w->stage);
	for (int i = 0; i < w->nstage; i++)
		staging_init(&w->stage[i], w, i, w->dealt ? &w->dealt[i] : arrivals);
}

static void settle_stages(struct world *w)
{
	for (struct list *first; (first = list_first(&w->touched)) != NULL;)
		staging_settle(list_entry(first, struct stage, touched));
}

static void take_samples(struct world *w, int64_t until_us)
{
	for (; w->next_sample_us <= until_us; w->next_sample_us += w->sample_us) {
		watch_sample(w, w->next_sample_us / 1000);
		if (++w->tally->nsample % SERIES_MAX == 0 && !w->scenario->simulation.sample &&
		    w->next_sample_us / 1000 / w->tally->sample_ms >= SERIES_MAX)
			tally_thin(w->tally);
	}
}

static int64_t next_wake(struct world *w)
{
	int64_t next_ms = timers_next(&w->wakes);
	return next_ms == INT64_MAX ? INT64_MAX : stage_us(next_ms) - began_us;
}

static bool nothing_is_left(const struct world *w)
{
	for (int i = 0; i < w->nstage; i++)
		if (!model_spool_done(w->stage[i].spool))
			return false;
	return true;
}

static bool is_over(struct world *w, int64_t next_us)
{
	int64_t end_us = stage_us(w->scenario->duration);
	if (end_us > 0 && next_us > end_us) {
		take_samples(w, end_us);
		set_clock(w, end_us);
		return true;
	}
	/* A cluster goes on by itself, and is watched to its end. */
	return !w->redis && nothing_is_left(w);
}

/* When something happens next: of the models, or of a node. */
static int64_t next_of_all(struct world *w)
{
	int64_t event_us = timers_next(&w->events), wake_us = next_wake(w);
	return event_us < wake_us ? event_us : wake_us;
}

/* Go there. True: something has happened around the schedulers. */
static bool step_to(struct world *w, int64_t next_us)
{
	bool event = timers_next(&w->events) <= next_us;
	set_clock(w, next_us > w->now_us ? next_us : w->now_us);
	/* Agents, which only one node has, call into the scheduler. */
	if (w->nstage == 1)
		stage_touch(&w->stage[0]);
	if (event)
		timers_run(&w->events, w->now_us);
	timers_run(&w->wakes, clock_steady_ms());
	settle_stages(w);
	return event;
}

void world_rest(struct world *w, int64_t time_ms)
{
	int64_t end_us = w->now_us + stage_us(time_ms);
	settle_stages(w);
	for (int64_t next_us; (next_us = next_of_all(w)) <= end_us;)
		step_to(w, next_us);
}

static int64_t count_active(const struct world *w)
{
	int64_t n = 0;
	for (int i = 0; i < w->nstage; i++)
		n += model_spool_active(w->stage[i].spool);
	return n;
}

/* Nothing is under way but qmgr's own timers, and has not been for long. */
static bool is_stalled(struct world *w, int64_t next_us, int64_t moved_us)
{
	if (timers_next(&w->events) != INT64_MAX || next_us - moved_us <= stage_us(STALL_MS))
		return false;
	tally_fault(w->tally, "the scheduler has stopped: %d messages wait for nothing",
		    (int)count_active(w));
	return true;
}

/* A cluster has no end of its own. */
static void look_at_the_end(struct world *w)
{
	if (w->redis || !nothing_is_left(w))
		return;
	world_rest(w, watch_rest_ms(&w->stage[0]));
	watch_end(&w->stage[0]);
}

void world_run(struct world *w)
{
	int64_t moved_us = 0;
	settle_stages(w);
	for (int64_t next_us; next_us = next_of_all(w), !is_over(w, next_us);) {
		if (is_stalled(w, next_us, moved_us))
			break;
		take_samples(w, next_us - 1);
		if (step_to(w, next_us))
			moved_us = w->now_us;
	}
	w->tally->ended_ms = w->now_us / 1000;
	for (int i = 0; i < w->nstage; i++)
		model_spool_end(w->stage[i].spool);
	w->ended = true;
	if (w->redis)
		watch_nodes_end(w);
	look_at_the_end(w);
}

void world_fini(struct world *w)
{
	for (int i = 0; i < w->nstage; i++)
		staging_end(&w->stage[i]);
	redis_server_free(&w->redis);
	/* From here on the events are of clients that are no more. */
	for (int i = 0; i < w->nstage; i++)
		staging_fini(&w->stage[i]);
	if (w->nobody)
		loop_free(&w->nobody);
	model_hosts_free(&w->hosts);
	arrivals_undeal(w->dealt, w->nstage);
	timers_fini(&w->events);
	timers_fini(&w->wakes);
	free(w->stage);
	clock_stand(0);
}
