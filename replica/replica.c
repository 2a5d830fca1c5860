/* SPDX-License-Identifier: ISC */
#include "replica/replica.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "replica/replica_core.h"
#include "spool/replicate.h"

#include <assert.h>
#include <stdlib.h>

enum {
	TICK_MS = 50,
	PATIENCE_MS = 2000,
	PATIENCE_MOST_MS = 30000,
	AGAIN_MS = 100,
	AGAIN_MOST_MS = 2000,
	BEAT_EARLY_MS = 1000,	/* so that what is sent all the time need not wait for it */
	LOOK_MS = 10000,	/* at the stream: what was sent long ago may be there no more */
	NEARLY_BYTES = 1 << 20, /* so much may be missing when it is said to be back */
};

static int64_t lag_of_new(const struct replica *r)
{
	return r->copies.lag[COPY_LARGE] + r->copies.lag[COPY_LOG];
}

/* All that was begun is there, what was there at the start as well. */
static bool is_alone_no_more(struct replica *r)
{
	return !r->alone && r->says_alone && r->complete && r->heard &&
	       goals_reached(&r->unheard, &r->copies);
}

static void set_up(void *owner)
{
	struct replica *r = owner;
	assert(r->phase == PHASE_WAITING);
	assert(r->row.epoch > 0);
	r->phase = PHASE_SETTING_UP;
	r->row.alone = r->alone ? ALONE_SAID : is_alone_no_more(r) ? ALONE_PAST : ALONE_AS_BEFORE;
	nats_link_set_up(r->link, &r->row, r->denied);
	mem_free(&r->denied);
}

void replica_resend(struct replica *r)
{
	flight_drop(&r->flight);
	copies_again(&r->copies, false);
	orders_again(&r->orders);
}

void replica_log_up(const struct replica *r)
{
	log_event(LOG_LEVEL_INFO, "replica", "state", "up", "epoch", log_number((int64_t)r->epoch),
		  "missing", log_number(copies_lag(&r->copies)), NULL);
}

void replica_complain(struct replica *r, const char *of)
{
	const char *why = *of && r->denied ? r->denied : of;
	if (trouble_failed(&r->trouble, why))
		log_event(LOG_LEVEL_WARNING, "replica", "state", "failed", "reason", why, "missing",
			  log_number(copies_lag(&r->copies)), NULL);
}

void replica_failed(struct replica *r, const char *why)
{
	if (r->phase == PHASE_FENCED)
		return;
	replica_complain(r, why);
	if (r->flight.n > 0)
		metrics_add(METRIC_replica_failures, 1);
	replica_resend(r);
	if (r->phase == PHASE_RUNNING)
		replica_again(r);
}

void replica_again(struct replica *r)
{
	assert(r->phase == PHASE_RUNNING || r->phase == PHASE_SETTING_UP);
	r->phase = PHASE_WAITING;
	loop_timer_in(r->loop, &r->again, r->again_ms);
	r->again_ms = r->again_ms ? r->again_ms * 2 : AGAIN_MS;
	if (r->again_ms > AGAIN_MOST_MS)
		r->again_ms = AGAIN_MOST_MS;
}

static void drop_barriers(struct replica *r)
{
	list_each_entry (struct barrier, t, link, &r->barriers) {
		list_remove(&t->link);
		goals_fini(&t->goals);
		free(t);
	}
}

void replica_tell_spool(struct replica *r, bool alone)
{
	assert(loop_is_ours(r->loop));
	struct replicate *n = mailbox_note(sizeof *n, SPOOL_REPLICA_AWAY);
	n->away = r->away;
	n->alone = alone;
	n->of = ++r->turns;
	r->told_alone = alone;
	r->heard = false;
	loop_post(spool_loop(r->spool), &n->note);
}

static void turn_away(struct replica *r, bool away)
{
	assert(r->away != away);
	r->away = away;
	metrics_add(METRIC_replica_away, away ? 1 : -1);
	log_event(away ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "replica", "state",
		  away ? "away" : "back", "missing", log_number(copies_lag(&r->copies)), NULL);
	if (away) {
		goals_fini(&r->missed);
		goals_set(&r->missed, &r->copies, COPY_OLDER);
		drop_barriers(r); /* what is still waited for is asked for again */
	}
	list_each (link, tmp, &r->barriers)
		list_entry(link, struct barrier, link)->since_ms = r->loop->now_ms;
	r->alone &= away;
	replica_tell_spool(r, false);
}

/* After the stream says so. */
static void go_alone(struct replica *r)
{
	log_event(LOG_LEVEL_ERROR, "replica", "state", "alone", "reason",
		  "NATS is full: deliveries begin without it; if another node adopts this queue, "
		  "all of it is in doubt",
		  "missing", log_number(copies_lag(&r->copies)), NULL);
	replica_tell_spool(r, true);
}

static bool too_late(const struct replica *r)
{
	int64_t longest_ms = r->conf->cluster.replicate_timeout;
	const struct list *first = list_first(&r->barriers);
	if (first &&
	    r->loop->now_ms - list_entry(first, struct barrier, link)->since_ms >= longest_ms)
		return true;
	return r->loop->now_ms - r->progress_ms >= longest_ms;
}

static void judge_copy(struct replica *r)
{
	if (lag_of_new(r) == 0)
		r->progress_ms = r->loop->now_ms;
	if (!r->away && (r->phase == PHASE_FENCED || r->room != ROOM_IS_THERE || too_late(r)))
		turn_away(r, true);
	else if (r->away && r->room == ROOM_IS_THERE && r->phase == PHASE_RUNNING &&
		 lag_of_new(r) <= NEARLY_BYTES && goals_reached(&r->missed, &r->copies))
		turn_away(r, false);
	if (r->away && r->alone && r->says_alone && !r->told_alone)
		go_alone(r);
	if (r->phase == PHASE_RUNNING && is_alone_no_more(r))
		replica_failed(r, ""); /* the next set-up says so */
}

static bool is_whole(const struct replica *r, int64_t but_bytes)
{
	return r->phase == PHASE_RUNNING && r->complete && copies_lag(&r->copies) <= but_bytes;
}

/* Whoever adopts this queue unasked has what an older epoch says, too: it need not be complete. */
static bool is_enough(const struct replica *r)
{
	if (r->stop->hands_over)
		return is_whole(r, 0);
	return r->phase == PHASE_RUNNING && lag_of_new(r) == 0 &&
	       (r->orders.n == 0 || !r->complete);
}

/* Whoever waits for the end need not wait for what can't be had; but who hands over waits for a set-up, too. */
static bool gives_up(const struct replica *r)
{
	if (r->phase == PHASE_FENCED || r->loop->now_ms >= r->stop_ms)
		return true;
	return !r->stop->hands_over && (r->phase != PHASE_RUNNING || r->away);
}

static void judge_end(struct replica *r)
{
	if (!r->stop || (!is_enough(r) && !gives_up(r)))
		return;
	r->closing = true;
	r->stop->whole = is_whole(r, 0);
	sem_post(r->stop->done);
	r->stop = NULL;
}

void replica_note_beat(struct replica *r)
{
	struct epoch_own next = r->own;
	assert(!r->beating);
	next.beat++;
	r->sent = false;
	r->beating = true;
	nats_link_note_beat(r->link, r->conf->spool, &next);
}

/* The stream's last message bears the last beat, also when nothing else comes for hours. */
static void note_beat_when_due(struct replica *r)
{
	const bool due = r->sent && r->loop->now_ms >= r->beat_ms - BEAT_EARLY_MS;
	if (!r->beating && (due || r->beat_tries > 0))
		replica_note_beat(r);
}

static void look_when_due(struct replica *r)
{
	if (r->looking || r->phase != PHASE_RUNNING || r->loop->now_ms < r->look_ms)
		return;
	r->look_ms = r->loop->now_ms + LOOK_MS;
	r->looking = true;
	nats_link_look(r->link, r->acked);
}

/* A unit that could not be read is tried again. */
static void try_again(struct replica *r)
{
	bool any = false;
	for (int i = 0; i < 2; i++) {
		bool due = r->unread_ms[i] > 0 && r->loop->now_ms >= r->unread_ms[i];
		r->unread_ms[i] = due ? 0 : r->unread_ms[i];
		any |= due;
	}
	if (any || r->spare < SPARES)
		pump(r);
}

static void on_tick(void *owner)
{
	struct replica *r = owner;
	if (r->closing)
		return;
	if (r->flight.n == 0) {
		r->patience_ms = PATIENCE_MS;
	} else if (r->loop->now_ms - flight_since_ms(&r->flight) > r->patience_ms) {
		r->patience_ms *= r->patience_ms < PATIENCE_MOST_MS ? 2 : 1;
		replica_failed(r, "what was sent is not acknowledged");
	}
	judge_copy(r);
	if (r->phase == PHASE_RUNNING && trouble_over(&r->trouble, r->loop->now_ms))
		replica_log_up(r);
	note_beat_when_due(r);
	look_when_due(r);
	try_again(r);
	atomic_store(&r->whole, !r->away && is_whole(r, NEARLY_BYTES));
	atomic_store(&r->even, !r->away && is_whole(r, 0));
	judge_end(r);
	loop_timer_in(r->loop, &r->tick, TICK_MS);
}

static void received_all(void *owner)
{
	struct replica *r = owner;
	if (r->closing)
		return;
	pump_acknowledged(r);
	judge_copy(r); /* before more mail comes: it would take the room that was given up */
	pump(r);
	judge_end(r);
}

struct replica *replica_new(struct conf *conf, struct spool *spool)
{
	const struct conf_cluster *c = &conf->cluster;
	if (c->replicate == REPLICATE_OFF)
		return NULL;
	struct replica *r = mem_zalloc(sizeof *r);
	r->conf = conf_ref(conf);
	r->spool = spool;
	r->node = mem_strndup(*c->name ? c->name : conf->own_name, REPLICA_NODE_MAX);
	r->phase = PHASE_WAITING;
	r->heard = true; /* it waits from the first */
	r->patience_ms = PATIENCE_MS;
	r->message = mem_alloc(REPLICA_MESSAGE_MAX);
	copies_init(&r->copies);
	flight_init(&r->flight);
	orders_init(&r->orders);
	list_init(&r->barriers);
	r->loop = loop_new("replica", replica_notes_receive, received_all, r);
	timer_init(&r->tick, on_tick, r);
	timer_init(&r->again, set_up, r);
	r->link = nats_link_new(conf, r->node, r->loop);
	spool_replicate(spool, r->loop, c->replicate == REPLICATE_SYNC, c->degrade);
	replicate_starts(spool, c->adopt_after > 0);
	return r;
}

void replica_start(struct replica *r)
{
	if (!r)
		return;
	nats_link_start(r->link);
	r->progress_ms = r->loop->now_ms;
	loop_timer_in(r->loop, &r->tick, TICK_MS);
	loop_start(r->loop);
}

void replica_begin(struct replica *r, const struct epoch_own *own, const struct replica_epoch *row)
{
	struct replica_begin *n = mailbox_note(sizeof *n, REPLICA_NOTE_EPOCH);
	n->own = *own;
	n->row = *row;
	loop_post(r->loop, &n->note);
}

bool replica_fenced(const struct replica *r)
{
	return atomic_load(&r->fenced);
}

bool replica_whole(const struct replica *r)
{
	return atomic_load(&r->whole);
}

bool replica_even(const struct replica *r)
{
	return atomic_load(&r->even);
}

bool replica_stop(struct replica *r, bool hands_over)
{
	if (!r || !r->loop->running)
		return false;
	sem_t done;
	struct replica_stop stop = {
		.note.type = REPLICA_NOTE_STOP, .done = &done, .hands_over = hands_over};
	sem_init(&done, 0, 0);
	loop_post(r->loop, &stop.note);
	while (sem_wait(&done) != 0)
		;
	sem_destroy(&done);
	loop_stop(r->loop);
	nats_link_stop(r->link);
	return stop.whole;
}

void replica_free(struct replica **rp)
{
	struct replica *r = *rp;
	if (!r)
		return;
	r->closing = true;
	assert(!r->stop);
	nats_link_free(&r->link);
	loop_free(&r->loop);
	drop_barriers(r);
	orders_fini(&r->orders);
	flight_drop(&r->flight);
	copies_fini(&r->copies);
	goals_fini(&r->missed);
	goals_fini(&r->named);
	goals_fini(&r->unheard);
	buf_fini(&r->checkpoint);
	conf_unref(r->conf);
	free(r->message);
	trouble_fini(&r->trouble);
	free(r->denied);
	free(r->node);
	free(r);
	*rp = NULL;
}
