/* SPDX-License-Identifier: ISC */
#include "sim/staging.h"

#include "base/mem.h"
#include "cluster/cluster.h"
#include "qmgr/flow_command.h"
#include "sim/redis_server.h"
#include "sim/watch.h"

#include <assert.h>
#include <stdlib.h>

enum { WORKERS = 4, JOIN_US = 1000000 };

static void to_cluster(void *context, struct note *note)
{
	struct stage *st = context;
	loop_post(cluster_loop(st->cluster), note);
}

static void wire_qmgr(struct stage *st)
{
	struct qmgr_edges edges = {.to_spool = model_spool_note,
				   .to_dns = model_dns_note,
				   .to_worker = model_client_note,
				   .to_cluster = st->cluster ? to_cluster : NULL,
				   .context = st,
				   .workers = WORKERS};
	qmgr_seed(st->q, (st->seed * 2 + 1) ^ (uint64_t)st->number << 32);
	if (st->early)
		qmgr_bind_early(st->q, model_agent_bind);
	qmgr_wire(st->q, &edges);
}

/* The same for all, but for the name; it is freed by staging_fini(), whoever has had a reference. */
static struct conf *make_conf(const struct stage *st)
{
	struct conf *c = mem_zalloc(sizeof *c);
	*c = *st->scenario->conf;
	atomic_init(&c->refs, 1);
	c->cluster.name = mem_printf("node%04d", st->number);
	c->cluster.redis = "192.0.2.1:6379";
	return c;
}

static void on_join(void *owner)
{
	struct stage *st = owner;
	stage_touch(st);
	cluster_begin(st->cluster);
}

static void join_cluster(struct stage *st)
{
	struct loop *nobody = st->world->nobody;
	st->far = redis_server_far(st);
	struct cluster_edges edges = {.qmgr = qmgr_loop(st->q),
				      .main = nobody,
				      .watcher = nobody,
				      .limiter = nobody,
				      .redis = &st->far};
	st->cluster = cluster_new(st->conf, "sim", &edges);
	timer_init(&st->join, on_join, st);
	stage_after(st, &st->join, dice_between(&st->dice, 0, JOIN_US));
}

static void suspend_later(struct stage *st);

static void on_suspend(void *owner)
{
	struct stage *st = owner;
	const char *flow = st->scenario->simulation.suspended[st->nsuspended++].name;
	stage_post(st, &flow_command_new(ORDER_SUSPEND, flow, st->world->nobody, NULL)->note);
	suspend_later(st);
}

/* In the order of the file. */
static void suspend_later(struct stage *st)
{
	assert(st->nsuspended <= st->scenario->simulation.nsuspended);
	if (st->nsuspended == st->scenario->simulation.nsuspended)
		return;
	int64_t at_us = stage_us(st->scenario->simulation.suspended[st->nsuspended].span.from_ms);
	int64_t now_us = st->world->now_us;
	stage_after(st, &st->operator, at_us> now_us ? at_us - now_us : 0);
}

static void on_wake(void *owner)
{
	stage_touch(owner);
}

void staging_init(struct stage *st, struct world *w, int number, const struct arrivals *arrivals)
{
	*st = (struct stage){.world = w,
			     .scenario = w->scenario,
			     .arrivals = arrivals,
			     .number = number,
			     .seed = w->seed,
			     .early = w->early,
			     .tally = w->tally};
	list_init(&st->touched);
	list_init(&st->cached);
	list_init(&st->questions);
	list_init(&st->stores);
	list_init(&st->agents);
	timer_init(&st->wake, on_wake, st);
	timer_init(&st->operator, on_suspend, st);
	dice_init(&st->dice, st->seed, "stage");
	st->conf = make_conf(st);
	st->q = qmgr_new(st->conf);
	st->spool = model_spool_new(st);
	if (w->redis)
		join_cluster(st);
	wire_qmgr(st);
	suspend_later(st);
	stage_touch(st);
}

/* One wake-up of a thread. */
static bool turn_loop(struct loop *l)
{
	int64_t next = timers_next(&l->timers);
	timers_run(&l->timers, l->now_ms);
	if (mailbox_drain(&l->mailbox)) {
		if (l->mailbox.received_all)
			l->mailbox.received_all(l->mailbox.owner);
		return true;
	}
	return next <= l->now_ms;
}

static bool turn_all(struct stage *st)
{
	bool more = turn_loop(qmgr_loop(st->q));
	if (st->cluster)
		more |= turn_loop(cluster_loop(st->cluster));
	if (st->world->nobody)
		mailbox_drain(&st->world->nobody->mailbox);
	return more;
}

static void wake_in_time(struct stage *st)
{
	int64_t next_ms = timers_next(&qmgr_loop(st->q)->timers);
	int64_t other_ms =
		st->cluster ? timers_next(&cluster_loop(st->cluster)->timers) : INT64_MAX;
	if (other_ms < next_ms)
		next_ms = other_ms;
	if (next_ms == INT64_MAX)
		timer_stop(&st->world->wakes, &st->wake);
	else
		timer_start(&st->world->wakes, &st->wake, next_ms);
}

void staging_settle(struct stage *st)
{
	list_remove(&st->touched);
	while (turn_all(st))
		;
	wake_in_time(st);
	watch_now(st);
	/* Notes that were posted while it ran are done. */
	list_remove(&st->touched);
}

void staging_end(struct stage *st)
{
	timer_stop(&st->world->events, &st->join);
	timer_stop(&st->world->events, &st->operator);
	model_agent_fini(st); /* it holds entries of qmgr's */
	qmgr_stop(st->q);
	if (st->cluster)
		cluster_stop(st->cluster);
}

void staging_fini(struct stage *st)
{
	qmgr_free(&st->q);
	cluster_free(&st->cluster);
	model_client_fini(st);
	model_dns_fini(st);
	model_disk_fini(st);
	model_spool_free(&st->spool);
	timer_stop(&st->world->wakes, &st->wake);
	timer_stop(&st->world->events, &st->join);
	free(st->conf->cluster.name);
	free(st->conf);
	free(st->fed);
}
