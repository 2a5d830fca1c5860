/* SPDX-License-Identifier: ISC */
/* The model of smtpc, as the scheduler knows it: connections that become ready or not, carry deliveries one after
 * the other, and close when they are idle, old or worn. See base/delivery.h. */
#include "sim/model_host.h"

#include "base/clock.h"
#include "base/delivery.h"
#include "base/mem.h"
#include "base/note_queue.h"
#include "qmgr/dest/conn.h"
#include "sim/watch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	CHUNKING_DEPTH = 3, /* hosts of this depth and above take messages in chunks */
	FIRST_IDLE_MS = 1000,
};

struct client {
	struct stage *stage;
	uint64_t number;
	struct connection_open *open;
	struct attempt attempt;
	struct note_queue carries; /* struct delivery */
	int64_t ready_us;
	int64_t done;
	bool closing;
	bool greeted;	    /* it has been seen to be, and is not ready yet */
	struct timer timer; /* of the first delivery, or idle */
	struct timer silent, slow, late;
	struct timer stall;		  /* of the first delivery */
	enum connection_slowness stalled; /* as qmgr was told */
	bool awaited, awaited_longer;	  /* TCP stood when that was looked at */
	UT_hash_handle hh;
};

static int64_t age_ms(const struct client *c)
{
	return (c->stage->world->now_us - c->ready_us) / 1000;
}

/* In the tally: of the delivery, and that the connection is lent to. */
static const char *site_of(const struct client *c, const struct delivery *d)
{
	return tally_site(c->stage->tally,
			  site_of_queue(((struct entry *)d->owner)->peer->queue)->key)
		->key;
}

static const char *site_now(const struct client *c)
{
	return tally_site(c->stage->tally, ((struct conn *)c->open->owner)->site->key)->key;
}

static void give_back(struct client *c, struct delivery *d)
{
	d->note.type = DELIVERY_BACK;
	stage_post(c->stage, &d->note);
}

static struct delivery *take_first(struct client *c)
{
	return (struct delivery *)note_queue_take(&c->carries);
}

/* The connection is ready, or will never be. */
static void stop_waiting(struct client *c)
{
	timer_stop(&c->stage->world->events, &c->silent);
	timer_stop(&c->stage->world->events, &c->slow);
	timer_stop(&c->stage->world->events, &c->late);
}

static void post_slow(struct client *c, enum connection_slowness how)
{
	struct connection_slow *slow = mailbox_note(sizeof *slow, CONNECTION_SLOW);
	slow->owner = c->open->owner;
	slow->how = how;
	stage_post(c->stage, &slow->note);
}

static void on_stall(void *owner)
{
	struct client *c = owner;
	bool once = c->stalled == CONNECTION_MOVES;
	c->stalled = once ? CONNECTION_STALLED : CONNECTION_STUCK;
	post_slow(c, c->stalled);
	if (once)
		stage_after(c->stage, &c->stall,
			    stage_us(CONNECTION_STUCK_MS - CONNECTION_STALLED_MS));
}

/* The host has answered. */
static void stop_stalling(struct client *c)
{
	timer_stop(&c->stage->world->events, &c->stall);
	if (c->stalled != CONNECTION_MOVES)
		post_slow(c, CONNECTION_MOVES);
	c->stalled = CONNECTION_MOVES;
}

/* The last word on it. cause: CAUSE_NONE for an orderly end. */
static void close_client(struct client *c, int cause)
{
	struct stage *st = c->stage;
	for (struct delivery *d; (d = take_first(c));) {
		d->returned = true;
		give_back(c, d);
	}
	timer_stop(&st->world->events, &c->timer);
	timer_stop(&st->world->events, &c->stall);
	attempt_close(&c->attempt);
	stop_waiting(c);
	c->open->note.type = CONNECTION_CLOSED;
	if (cause != CAUSE_NONE) {
		c->open->why = cause_verdict((enum cause)cause, VERDICT_DEFERRED, c->open->host);
		if (!c->open->was_ready)
			st->tally->useless[cause]++;
		stage_feed(st, site_now(c));
	}
	stage_post(st, &c->open->note);
	HASH_DEL(st->clients, c);
	free(c);
}

/* Content went before the envelope was answered. */
static bool went_ahead(const struct client *c, const struct delivery *d)
{
	return d->ahead && c->attempt.host->is->depth >= CHUNKING_DEPTH;
}

/* Of what was being done when it broke: had all been sent, and only the reply not come? */
static void lose_connection(struct client *c)
{
	assert(c->carries.first);
	struct delivery *d = take_first(c);
	d->returned = dice_happens(&c->attempt.host->dice, 0.5);
	if (!d->returned)
		watch_ended(c->stage, site_of(c, d));
	for (uint32_t i = 0; i < d->nrcpt && !d->returned; i++)
		d->rcpt[i].verdict = cause_verdict(CAUSE_LOST, VERDICT_IN_DOUBT, c->open->host);
	d->wasted = !d->returned && went_ahead(c, d);
	if (!d->returned)
		stage_feed(c->stage, site_of(c, d));
	give_back(c, d);
	close_client(c, CAUSE_LOST);
}

/* RFC 2920, RFC 3030: behind another, a message waits for one of its two round trips where it may not
 * come in chunks, and for none where it may. */
static double way_behind(const struct client *c)
{
	return c->attempt.host->is->depth >= CHUNKING_DEPTH ? 0 : 0.5;
}

static void begin_work(struct client *c, double way)
{
	struct delivery *d = (struct delivery *)c->carries.first;
	d->began_us = clock_steady_us();
	stage_after(c->stage, &c->stall, stage_us(CONNECTION_STALLED_MS));
	stage_after(c->stage, &c->timer,
		    host_transaction_us(c->attempt.host, d->nrcpt, d->content->size, way));
}

/* One that never carried anything is left a moment, as smtpc does. */
static void begin_idle(struct client *c)
{
	int64_t ms = c->open->transport->connection_idle_timeout;
	int64_t least = c->done == 0 ? FIRST_IDLE_MS : 0;
	stage_after(c->stage, &c->timer, stage_us(ms > least ? ms : least));
}

static bool is_worn(const struct client *c)
{
	const struct conf_transport *t = c->open->transport;
	return (c->closing && !c->carries.first) ||
	       (t->connection_max_age > 0 && age_ms(c) >= t->connection_max_age) ||
	       (t->connection_max_messages > 0 && c->done >= t->connection_max_messages);
}

static int64_t age_of_entry(const struct entry *e)
{
	return clock_wall_ms() - e->peer->job->work->envelope->arrived_ms;
}

static void finish_first(struct client *c)
{
	assert(c->carries.first && c->open->was_ready);
	struct delivery *d = take_first(c);
	d->ended_us = clock_steady_us();
	stop_stalling(c);
	if (c->done++ == 0)
		d->setup_ms = (int)((c->ready_us - c->attempt.began_us) / 1000);
	d->wasted = went_ahead(c, d);
	int64_t age = age_of_entry(d->owner);
	for (uint32_t i = 0; i < d->nrcpt; i++) {
		d->rcpt[i].verdict = host_verdict(c->attempt.host, c->attempt.source, age);
		if (d->rcpt[i].verdict->class == VERDICT_SENT)
			d->wasted = false;
		c->stage->tally->paced += strcmp(d->rcpt[i].verdict->dsn, "4.7.28") == 0;
	}
	c->stage->tally->transactions++;
	watch_ended(c->stage, site_of(c, d));
	stage_feed(c->stage, site_of(c, d));
	give_back(c, d);
}

static void on_timer(void *owner)
{
	struct client *c = owner;
	if (!c->carries.first) {
		close_client(c, CAUSE_NONE);
		return;
	}
	if (host_breaks(c->attempt.host)) {
		lose_connection(c);
		return;
	}
	finish_first(c);
	if (is_worn(c))
		close_client(c, CAUSE_NONE);
	else if (c->carries.first)
		begin_work(c, way_behind(c));
	else
		begin_idle(c);
}

/* Round trips in what a transaction takes for the distance. */
static int round_trips(int64_t depth)
{
	return depth > 1 ? 2 : 4;
}

static void on_attempt(void *owner, int cause)
{
	struct client *c = owner;
	if (cause != CAUSE_NONE) {
		close_client(c, cause);
		return;
	}
	int64_t depth = c->attempt.host->is->depth, most = c->open->transport->pipeline_depth;
	struct connection_ready *ready = mailbox_note(sizeof *ready, CONNECTION_READY);
	ready->connection = c->number;
	ready->owner = c->open->owner;
	ready->depth_most = (int)(depth < most ? depth : most);
	ready->depth = ready->depth_most < 2 ? ready->depth_most : 2;
	ready->pipelining = depth > 1;
	ready->chunking = depth >= CHUNKING_DEPTH;
	ready->round_trip_us = stage_us(c->attempt.host->is->round_trip) / round_trips(depth);
	ready->setup_ms = (int)((c->stage->world->now_us - c->attempt.began_us) / 1000);
	c->open->was_ready = true;
	c->ready_us = c->stage->world->now_us;
	stop_waiting(c);
	c->stage->tally->connected++;
	stage_post(c->stage, &ready->note);
	begin_idle(c);
}

static void on_lost(struct attempt *a)
{
	struct client *c = a->owner;
	if (c->carries.first)
		lose_connection(c);
	else
		close_client(c, CAUSE_LOST);
}

/* Nothing was heard of it; but who has been greeted was heard of lately. */
static void on_silent(void *owner)
{
	struct client *c = owner;
	if (c->attempt.state == ATTEMPT_GREETED && !c->greeted) {
		c->greeted = true;
		stage_after(c->stage, &c->silent, stage_us(CONNECTION_SILENT_MS));
		return;
	}
	post_slow(c, CONNECTION_SILENT);
}

/* TCP stands, and has not for that long. */
static bool await_greeting(struct client *c, struct timer *t, bool *awaited, int64_t delay_ms)
{
	bool anew = attempt_stands(&c->attempt) && !*awaited;
	if (anew && c->open->transport->backup_attempt_delay > 0)
		stage_after(c->stage, t, stage_us(delay_ms));
	*awaited |= anew;
	return anew;
}

static void on_slow(void *owner)
{
	struct client *c = owner;
	if (!await_greeting(c, &c->slow, &c->awaited, c->open->transport->backup_attempt_delay))
		post_slow(c, CONNECTION_BESIDE);
}

static void on_late(void *owner)
{
	struct client *c = owner;
	if (!await_greeting(c, &c->late, &c->awaited_longer, c->open->transport->connect_timeout))
		post_slow(c, CONNECTION_LATE);
}

static void wait_for_it(struct client *c)
{
	const struct conf_transport *t = c->open->transport;
	stage_after(c->stage, &c->silent, stage_us(CONNECTION_SILENT_MS));
	if (t->connection_attempt_delay > 0)
		stage_after(c->stage, &c->slow, stage_us(t->connection_attempt_delay));
	if (t->backup_attempt_delay > 0)
		stage_after(c->stage, &c->late, stage_us(t->backup_attempt_delay));
}

static void say_source(struct client *c)
{
	const union address *a =
		c->open->source
			? conf_source_address(c->open->source, c->open->address.sa.sa_family)
			: NULL;
	if (a)
		address_where(a, c->attempt.source);
}

static void open_client(struct stage *st, struct connection_open *open)
{
	assert(open->owner);
	struct client *c = mem_zalloc(sizeof *c);
	c->stage = st;
	c->number = open->connection;
	c->open = open;
	note_queue_init(&c->carries);
	c->attempt.ended = on_attempt;
	c->attempt.lost = on_lost;
	c->attempt.owner = c;
	say_source(c);
	timer_init(&c->timer, on_timer, c);
	timer_init(&c->silent, on_silent, c);
	timer_init(&c->slow, on_slow, c);
	timer_init(&c->late, on_late, c);
	timer_init(&c->stall, on_stall, c);
	c->stalled = CONNECTION_MOVES;
	wait_for_it(c);
	HASH_ADD(hh, st->clients, number, sizeof c->number, c);
	st->tally->connections++;
	struct model_host *h = model_host_at(st->world, &open->address);
	if (!h->key && h->is->nspan > 0)
		h->key = mem_strdup(((struct conn *)open->owner)->host->key);
	attempt_start(&c->attempt, h, open->transport);
}

static struct client *find_client(struct stage *st, uint64_t number)
{
	struct client *c;
	HASH_FIND(hh, st->clients, &number, sizeof number, c);
	return c;
}

static void give_delivery(struct stage *st, struct delivery *d)
{
	struct client *c = find_client(st, d->connection);
	if (!c || c->closing) {
		d->returned = true;
		d->note.type = DELIVERY_BACK;
		stage_post(st, &d->note);
		return;
	}
	bool idle = !c->carries.first;
	watch_begun(st, site_of(c, d), c->open->transport);
	watch_goes_to(st, site_of(c, d), d->owner);
	note_queue_put(&c->carries, &d->note);
	if (idle)
		begin_work(c, 1);
}

static void close_when_done(struct stage *st, const struct connection_close *note)
{
	struct client *c = find_client(st, note->connection);
	if (c && c->carries.first && note->leave)
		close_client(c, CAUSE_LOST);
	else if (c && c->carries.first)
		c->closing = true;
	else if (c)
		close_client(c, CAUSE_NONE);
}

void model_client_note(void *context, int worker, struct note *note)
{
	struct stage *st = context;
	(void)worker; /* they are all one here */
	switch (note->type) {
	case CONNECTION_OPEN:
		open_client(st, (struct connection_open *)note);
		break;
	case DELIVERY_GIVE:
		give_delivery(st, (struct delivery *)note);
		break;
	case CONNECTION_CLOSE:
		close_when_done(st, (struct connection_close *)note);
		free(note);
		break;
	default:
		tally_fault(st->tally, "a note of type %d to a connection", note->type);
		free(note);
	}
}

void model_client_fini(struct stage *st)
{
	hash_each (struct client, c, st->clients) {
		for (struct delivery *d; (d = take_first(c));)
			delivery_free(&d);
		connection_open_free(&c->open);
		HASH_DEL(st->clients, c);
		free(c);
	}
}
