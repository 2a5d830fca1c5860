/* SPDX-License-Identifier: ISC */
/* What smtpc is to the scheduler: connections that become ready or not, carry deliveries one after
 * the other, and close when they are idle, old or worn. See base/delivery.h. */
#include "sim/model_host.h"

#include "base/clock.h"
#include "base/delivery.h"
#include "base/mem.h"
#include "qmgr/conn.h"
#include "sim/watch.h"

#include <stdlib.h>

struct client {
	struct stage *stage;
	uint64_t number;
	struct connection_open *open;
	const char *site; /* in the tally */
	struct attempt attempt;
	struct note *first; /* struct delivery: what it carries, linked by the notes */
	struct note **last;
	int64_t ready_us;
	int64_t done;
	bool closing;
	struct timer timer; /* of the first delivery, or idle */
	UT_hash_handle hh;
};

static int64_t age_ms(const struct client *c)
{
	return (c->stage->now_us - c->ready_us) / 1000;
}

static void give_back(struct client *c, struct delivery *d)
{
	d->note.type = DELIVERY_BACK;
	stage_post(c->stage, &d->note);
}

static struct delivery *take_first(struct client *c)
{
	struct delivery *d = (struct delivery *)c->first;
	c->first = d->note.next;
	if (!c->first)
		c->last = &c->first;
	d->note.next = NULL;
	return d;
}

/* The last word on it. cause: CAUSE_NONE for an orderly end. */
static void close_client(struct client *c, int cause)
{
	struct stage *st = c->stage;
	while (c->first) {
		struct delivery *d = take_first(c);
		d->returned = true;
		give_back(c, d);
	}
	timer_stop(&st->events, &c->timer);
	attempt_close(&c->attempt);
	c->open->note.type = CONNECTION_CLOSED;
	if (cause != CAUSE_NONE) {
		c->open->why = cause_verdict((enum cause)cause, VERDICT_DEFERRED, c->open->host);
		if (!c->open->was_ready)
			st->tally->useless[cause]++;
		stage_feed(st, c->site);
	}
	stage_post(st, &c->open->note);
	HASH_DEL(st->clients, c);
	free(c);
}

/* Of what was being done when it broke: had all been sent, and only the reply not come? */
static void lose(struct client *c)
{
	struct delivery *d = take_first(c);
	d->returned = dice_happens(&c->attempt.host->dice, 0.5);
	if (!d->returned)
		watch_ended(c->stage, c->site);
	for (uint32_t i = 0; i < d->nrcpt && !d->returned; i++)
		d->rcpt[i].verdict = cause_verdict(CAUSE_LOST, VERDICT_IN_DOUBT, c->open->host);
	if (!d->returned)
		stage_feed(c->stage, c->site);
	give_back(c, d);
	close_client(c, CAUSE_LOST);
}

static void work(struct client *c, bool distance)
{
	struct delivery *d = (struct delivery *)c->first;
	d->began_us = clock_steady_us();
	stage_after(c->stage, &c->timer,
		    host_transaction_us(c->attempt.host, d->nrcpt, d->content->size, distance));
}

static void rest(struct client *c)
{
	stage_after(c->stage, &c->timer, stage_us(c->open->transport->connection_idle_timeout));
}

static bool worn(const struct client *c)
{
	const struct conf_transport *t = c->open->transport;
	return (c->closing && !c->first) ||
	       (t->connection_max_age > 0 && age_ms(c) >= t->connection_max_age) ||
	       (t->connection_max_messages > 0 && c->done >= t->connection_max_messages);
}

static void finish_first(struct client *c)
{
	struct delivery *d = take_first(c);
	d->ended_us = clock_steady_us();
	if (c->done++ == 0)
		d->setup_ms = (int)((c->ready_us - c->attempt.began_us) / 1000);
	for (uint32_t i = 0; i < d->nrcpt; i++)
		d->rcpt[i].verdict = host_verdict(c->attempt.host);
	c->stage->tally->transactions++;
	watch_ended(c->stage, c->site);
	stage_feed(c->stage, c->site);
	give_back(c, d);
}

static void on_timer(void *owner)
{
	struct client *c = owner;
	if (!c->first) {
		close_client(c, CAUSE_NONE);
		return;
	}
	if (host_breaks(c->attempt.host)) {
		lose(c);
		return;
	}
	finish_first(c);
	if (worn(c))
		close_client(c, CAUSE_NONE);
	else if (c->first)
		work(c, false);
	else
		rest(c);
}

static void on_attempt(void *owner, int cause)
{
	struct client *c = owner;
	if (cause != CAUSE_NONE) {
		close_client(c, cause);
		return;
	}
	int64_t depth = c->attempt.host->is->depth, most = c->open->transport->pipeline_depth;
	struct connection_ready *ready = mem_zalloc(sizeof *ready);
	ready->note.type = CONNECTION_READY;
	ready->connection = c->number;
	ready->owner = c->open->owner;
	ready->depth = (int)(depth < most ? depth : most);
	ready->pipelining = ready->depth > 1;
	ready->setup_ms = (int)((c->stage->now_us - c->attempt.began_us) / 1000);
	c->open->was_ready = true;
	c->ready_us = c->stage->now_us;
	c->stage->tally->connected++;
	stage_post(c->stage, &ready->note);
	rest(c);
}

static void open_client(struct stage *st, struct connection_open *open)
{
	struct client *c = mem_zalloc(sizeof *c);
	c->stage = st;
	c->number = open->connection;
	c->open = open;
	c->site = tally_site(st->tally, ((struct conn *)open->owner)->site->key)->key;
	c->last = &c->first;
	c->attempt.ended = on_attempt;
	c->attempt.owner = c;
	timer_init(&c->timer, on_timer, c);
	HASH_ADD(hh, st->clients, number, sizeof c->number, c);
	st->tally->connections++;
	attempt_start(&c->attempt, model_host_at(st, &open->address), open->transport);
}

static struct client *find(struct stage *st, uint64_t number)
{
	struct client *c;
	HASH_FIND(hh, st->clients, &number, sizeof number, c);
	return c;
}

static void give(struct stage *st, struct delivery *d)
{
	struct client *c = find(st, d->connection);
	if (!c || c->closing) {
		d->returned = true;
		d->note.type = DELIVERY_BACK;
		stage_post(st, &d->note);
		return;
	}
	bool idle = !c->first;
	watch_begun(st, c->site, c->open->transport);
	d->note.next = NULL;
	*c->last = &d->note;
	c->last = &d->note.next;
	if (idle)
		work(c, true);
}

static void close_when_done(struct stage *st, const struct connection_close *note)
{
	struct client *c = find(st, note->connection);
	if (c && c->first)
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
		give(st, (struct delivery *)note);
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
	struct client *c, *tmp;
	HASH_ITER(hh, st->clients, c, tmp)
	{
		while (c->first) {
			struct delivery *d = take_first(c);
			delivery_free(&d);
		}
		connection_open_free(&c->open);
		HASH_DEL(st->clients, c);
		free(c);
	}
}
