/* SPDX-License-Identifier: ISC */
#include "smtpc/connection_impl.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"

void connection_log(const struct connection *c, const char *what, const char *reason)
{
	log_event(LOG_LEVEL_DEBUG, "connection", "connection", log_number((int64_t)c->number),
		  "host", c->peer, "what", what, "reason", reason, NULL);
}

void connection_post_slow(struct connection *c, enum connection_slowness how)
{
	static const char *const names[] = {
		[CONNECTION_BESIDE] = "slow",	[CONNECTION_LATE] = "late",
		[CONNECTION_SILENT] = "silent", [CONNECTION_STALLED] = "stalled",
		[CONNECTION_STUCK] = "stuck",	[CONNECTION_AWAITED] = "awaited",
		[CONNECTION_MOVES] = "moves"};
	struct connection_slow *s = mem_zalloc(sizeof *s);
	s->note.type = CONNECTION_SLOW;
	s->owner = c->open->owner;
	s->how = how;
	connection_log(c, names[how], NULL);
	loop_post(c->open->reply_to, &s->note);
}

/* Why it wants a small ClientHello; NULL too where that was no help. */
static struct verdict *take_choked(struct connection *c)
{
	struct verdict *why = c->choked;
	bool helped = c->engine.secure || (c->hello_answered && !c->handshaking);
	c->choked = NULL;
	if (helped)
		return why;
	verdict_unref(why);
	return NULL;
}

void connection_post_ready(struct connection *c)
{
	const struct capability *can = &c->engine.can;
	struct connection_ready *r = mem_zalloc(sizeof *r);
	r->note.type = CONNECTION_READY;
	r->connection = c->number;
	r->owner = c->open->owner;
	r->depth = engine_depth(&c->engine);
	r->depth_most = engine_depth_most(&c->engine);
	r->setup_ms = c->setup_ms;
	r->round_trip_us = c->engine.round_trip_us;
	r->size_max = can->size_max;
	r->messages_most = c->most;
	r->tls_broken = c->plain && !c->open->plain;
	r->choked = take_choked(c);
	r->tls = c->engine.secure;
	r->pipelining = can->pipelining;
	r->chunking = can->chunking;
	r->dsn = can->dsn;
	r->smtputf8 = can->smtputf8;
	r->deliverby = can->deliverby;
	c->open->was_ready = true;
	c->announced = true;
	connection_log(c, "ready", NULL);
	loop_post(c->open->reply_to, &r->note);
}

/* The first word on a fresh connection tells why the one before it was refused more. */
static void find_out_limit(struct connection *c, struct delivery *d)
{
	if (c->enough > 0 && c->engine.carried > 0) {
		d->messages_most = c->enough;
		connection_keep_to(c, c->enough);
	}
	c->enough = 0;
}

void connection_post_back(struct delivery *d)
{
	d->note.type = DELIVERY_BACK;
	loop_post_awaited(d->reply_to, &d->note);
}

void connection_post_done(struct connection *c)
{
	struct delivery *d;
	while ((d = engine_take(&c->engine))) {
		if (!d->returned)
			find_out_limit(c, d);
		connection_post_back(d);
	}
}

void connection_post_closed(struct connection *c, struct verdict *why)
{
	struct connection_open *o = c->open;
	if (!o->was_ready)
		metrics_add(METRIC_client_connect_failed, 1);
	connection_log(c, "closed", why ? why->text : NULL);
	o->note.type = CONNECTION_CLOSED;
	o->why = why;
	o->refused = c->engine.refused;
	o->unfit = c->engine.unfit;
	o->login_refused = c->engine.login_refused;
	if (o->login_refused && o->credential->kind == CREDENTIAL_REFRESH)
		secrets_spoiled(c->worker->secrets, o->credential);
	o->choked = take_choked(c);
	o->hung_up = c->engine.hung_up;
	o->confused = c->engine.confused;
	if (o->confused)
		o->mode = c->engine.mode;
	c->open = NULL;
	loop_post(o->reply_to, &o->note);
}
