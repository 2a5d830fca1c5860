/* SPDX-License-Identifier: ISC */
#include "sim/stage.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "sim/model_host.h"
#include "sim/watch.h"

#include <stdlib.h>

/* The clock begins here: a time of zero means "never" in places. */
static const int64_t began_us = INT64_C(1000000000);

enum {
	SAMPLE_MS = 1000, /* without a setting */
	SERIES_MAX = 2000,
	WORKERS = 4,
	STALL_MS = 24 * 3600 * 1000,
};

static void set_clock(struct stage *st, int64_t now_us)
{
	st->now_us = now_us;
	clock_stand(began_us + now_us);
	qmgr_loop(st->q)->now_ms = clock_steady_ms();
}

void stage_after(struct stage *st, struct timer *t, int64_t delay_us)
{
	timer_start(&st->events, t, st->now_us + (delay_us > 0 ? delay_us : 0));
}

void stage_post(struct stage *st, struct note *note)
{
	loop_post(qmgr_loop(st->q), note);
}

void stage_feed(struct stage *st, const char *site)
{
	if (st->nfed == st->fed_cap) {
		st->fed_cap = st->fed_cap ? st->fed_cap * 2 : 16;
		st->fed = mem_realloc(st->fed, (size_t)st->fed_cap * sizeof *st->fed);
	}
	st->fed[st->nfed++] = site;
}

static void wire(struct stage *st)
{
	struct qmgr_edges edges = {.to_spool = model_spool_note,
				   .to_dns = model_dns_note,
				   .to_worker = model_client_note,
				   .context = st,
				   .workers = WORKERS};
	qmgr_seed(st->q, st->seed * 2 + 1);
	if (st->early)
		qmgr_bind_early(st->q, model_agent_bind);
	qmgr_wire(st->q, &edges);
}

void stage_init(struct stage *st, const struct scenario *scenario, const struct arrivals *arrivals,
		uint64_t seed, bool early, struct tally *tally)
{
	int64_t sample_ms = scenario->simulation.sample;
	*st = (struct stage){.scenario = scenario,
			     .arrivals = arrivals,
			     .seed = seed,
			     .early = early,
			     .sample_us = stage_us(sample_ms ? sample_ms : SAMPLE_MS),
			     .tally = tally};
	tally->sample_ms = st->sample_us / 1000;
	clock_stand(began_us);
	log_set_level(LOG_LEVEL_ERROR);
	timers_init(&st->events);
	list_init(&st->cached);
	list_init(&st->questions);
	list_init(&st->stores);
	list_init(&st->agents);
	dice_init(&st->dice, seed, "stage");
	st->q = qmgr_new(scenario->conf);
	st->hosts = model_hosts_new(st);
	st->spool = model_spool_new(st);
	wire(st);
}

/* One wake-up of qmgr's thread. */
static bool turn(struct stage *st)
{
	struct loop *l = qmgr_loop(st->q);
	int64_t next = timers_next(&l->timers);
	timers_run(&l->timers, l->now_ms);
	if (mailbox_drain(&l->mailbox)) {
		l->mailbox.received_all(l->mailbox.owner);
		return true;
	}
	return next <= l->now_ms;
}

static void settle(struct stage *st)
{
	while (turn(st))
		;
	watch_now(st);
}

static void take_samples(struct stage *st, int64_t until_us)
{
	for (; st->next_sample_us <= until_us; st->next_sample_us += st->sample_us) {
		watch_sample(st, st->next_sample_us / 1000);
		if (++st->tally->nsample % SERIES_MAX == 0 && !st->scenario->simulation.sample &&
		    st->next_sample_us / 1000 / st->tally->sample_ms >= SERIES_MAX)
			tally_thin(st->tally);
	}
}

static int64_t next_of_qmgr(struct stage *st)
{
	int64_t next_ms = timers_next(&qmgr_loop(st->q)->timers);
	return next_ms == INT64_MAX ? INT64_MAX : stage_us(next_ms) - began_us;
}

static bool over(struct stage *st, int64_t next_us)
{
	int64_t end_us = stage_us(st->scenario->simulation.duration);
	if (end_us > 0 && next_us > end_us) {
		take_samples(st, end_us);
		set_clock(st, end_us);
		return true;
	}
	return model_spool_done(st->spool);
}

/* When something happens next: of the models, or of qmgr. */
static int64_t next_of_all(struct stage *st)
{
	int64_t event_us = timers_next(&st->events), qmgr_us = next_of_qmgr(st);
	return event_us < qmgr_us ? event_us : qmgr_us;
}

/* Go there. True: something has happened around the scheduler. */
static bool step(struct stage *st, int64_t next_us)
{
	bool event = timers_next(&st->events) <= next_us;
	set_clock(st, next_us > st->now_us ? next_us : st->now_us);
	if (event)
		timers_run(&st->events, st->now_us);
	settle(st);
	return event;
}

void stage_rest(struct stage *st, int64_t time_ms)
{
	int64_t end_us = st->now_us + stage_us(time_ms);
	for (int64_t next_us; (next_us = next_of_all(st)) <= end_us;)
		step(st, next_us);
}

/* Nothing is under way but qmgr's own timers, and has not been for long. */
static bool stalled(struct stage *st, int64_t next_us, int64_t moved_us)
{
	if (timers_next(&st->events) != INT64_MAX || next_us - moved_us <= stage_us(STALL_MS))
		return false;
	tally_fault(st->tally, "the scheduler has stopped: %d messages wait for nothing",
		    (int)model_spool_active(st->spool));
	return true;
}

void stage_run(struct stage *st)
{
	int64_t moved_us = 0;
	settle(st);
	for (int64_t next_us; next_us = next_of_all(st), !over(st, next_us);) {
		if (stalled(st, next_us, moved_us))
			break;
		take_samples(st, next_us - 1);
		if (step(st, next_us))
			moved_us = st->now_us;
	}
	st->tally->ended_ms = st->now_us / 1000;
	model_spool_end(st->spool);
	watch_end(st);
}

void stage_fini(struct stage *st)
{
	model_agent_fini(st); /* it holds entries of qmgr's */
	qmgr_free(&st->q);
	model_client_fini(st);
	model_dns_fini(st);
	model_disk_fini(st);
	model_hosts_free(&st->hosts);
	model_spool_free(&st->spool);
	timers_fini(&st->events);
	free(st->fed);
	clock_stand(0);
}
