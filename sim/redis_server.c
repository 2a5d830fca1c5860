/* SPDX-License-Identifier: ISC */
#include "sim/redis_server.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cluster/resp.h"
#include "sim/redis_keys.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS_MAX = 8, REACHED_US = 1000 };

struct redis_server {
	struct world *world;
	struct redis_keys *keys;
	struct list ends; /* struct end */
	struct list said; /* struct message: on their way */
	double free_us;	  /* all that has come is carried out */
	struct timer outage;
	bool out;
};

/* A connection of a node's. */
struct end {
	struct redis_server *server;
	struct stage *stage;
	struct wire *wire;
	struct list in_server;
	struct list replies; /* struct message */
	struct timer reached;
	int64_t last_us; /* when the last reply comes: they keep their order */
	int nchannel;
	char *channel[CHANNELS_MAX];
};

/* On its way to one end; or, where that is NULL, to all who have subscribed to the channel. */
struct message {
	struct redis_server *server;
	struct end *to;
	struct list link;
	struct timer timer;
	char *channel;
	struct buf bytes;
};

static struct tally_nodes *tally_of(const struct redis_server *r)
{
	return &r->world->tally->nodes;
}

static bool is_counting(const struct redis_server *r)
{
	return r->world->now_us >= stage_us(r->world->scenario->simulation.settle);
}

static double half_trip_us(const struct redis_server *r)
{
	return (double)stage_us(r->world->scenario->redis.round_trip) / 2;
}

static void free_message(struct message *m)
{
	timer_stop(&m->server->world->events, &m->timer);
	list_remove(&m->link);
	buf_fini(&m->bytes);
	free(m->channel);
	free(m);
}

static bool hears_channel(const struct end *e, const char *channel)
{
	for (int i = 0; i < e->nchannel; i++)
		if (strcmp(e->channel[i], channel) == 0)
			return true;
	return false;
}

static void bring_bytes(struct end *e, struct buf *bytes)
{
	stage_touch(e->stage);
	wire_heard(e->wire, buf_data(bytes), buf_len(bytes));
}

static void on_message(void *owner)
{
	struct message *m = owner;
	if (m->to)
		bring_bytes(m->to, &m->bytes);
	else
		list_each_entry (struct end, e, in_server, &m->server->ends)
			if (hears_channel(e, m->channel))
				bring_bytes(e, &m->bytes);
	free_message(m);
}

static struct message *send_message(struct redis_server *r, struct end *to, struct list *among)
{
	struct message *m = mem_zalloc(sizeof *m);
	m->server = r;
	m->to = to;
	timer_init(&m->timer, on_message, m);
	list_append(among, &m->link);
	int64_t comes_us = (int64_t)(r->free_us + half_trip_us(r));
	if (to && comes_us <= to->last_us)
		comes_us = to->last_us + 1;
	if (to)
		to->last_us = comes_us;
	world_after(r->world, &m->timer, comes_us - r->world->now_us);
	return m;
}

/* A command is carried out when what came before it is. */
static void take_time(struct redis_server *r, enum redis_op op, double us)
{
	double comes_us = (double)r->world->now_us + half_trip_us(r);
	double waits_us = r->free_us > comes_us ? r->free_us - comes_us : 0;
	struct tally_nodes *t = tally_of(r);
	r->free_us = comes_us + waits_us + us;
	if (!is_counting(r))
		return;
	t->ops[op]++;
	t->busy_us[op] += us;
	t->waits++;
	t->wait_us += waits_us;
	if ((int64_t)waits_us > t->wait_most_us)
		t->wait_most_us = (int64_t)waits_us;
}

static void publish_message(struct redis_server *r, const char *channel, const char *payload)
{
	int64_t n = 0;
	double us = 1e6 / (double)r->world->scenario->redis.deliveries;
	list_each (link, tmp, &r->ends)
		n += hears_channel(list_entry(link, struct end, in_server), channel);
	r->free_us += us * (double)n;
	if (is_counting(r)) {
		tally_of(r)->ops[REDIS_DELIVERY] += n;
		tally_of(r)->busy_us[REDIS_DELIVERY] += us * (double)n;
	}
	struct message *m = send_message(r, NULL, &r->said);
	m->channel = mem_strdup(channel);
	const char *arg[] = {"message", channel, payload};
	resp_put(&m->bytes, 3, arg, NULL);
}

static void take_subscription(struct end *e, const struct redis_command *c)
{
	struct redis_server *r = e->server;
	take_time(r, REDIS_OTHER, 1e6 / (double)r->world->scenario->redis.commands);
	struct message *m = send_message(r, e, &e->replies);
	for (int i = 1; i < c->n && e->nchannel < CHANNELS_MAX; i++) {
		e->channel[e->nchannel++] = mem_strdup(c->arg[i]);
		buf_printf(&m->bytes, "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:%d\r\n",
			   strlen(c->arg[i]), c->arg[i], e->nchannel);
	}
}

/* One that has subscribed is answered otherwise. */
static void answer_ping(struct end *e)
{
	struct redis_server *r = e->server;
	take_time(r, REDIS_PING, 1e6 / (double)r->world->scenario->redis.commands);
	buf_puts(&send_message(r, e, &e->replies)->bytes,
		 e->nchannel > 0 ? "*2\r\n$4\r\npong\r\n$0\r\n\r\n" : "+PONG\r\n");
}

/* The reply is computed now: nothing that comes later is carried out before it. */
static void carry_out(struct end *e, struct redis_command *c)
{
	struct redis_server *r = e->server;
	const struct scenario_redis *is = &r->world->scenario->redis;
	struct buf reply = {0};
	struct redis_done done;
	double comes_us = (double)r->world->now_us + half_trip_us(r);
	double later_us =
		(r->free_us > comes_us ? r->free_us : comes_us) - (double)r->world->now_us;
	c->now_us = clock_wall_us() + (int64_t)later_us;
	c->node = e->stage->number;
	redis_keys_do(r->keys, c, &reply, &done);
	take_time(r, done.op,
		  1e6 / (double)(done.script ? is->scripts : is->commands) +
			  1e6 * (double)done.fields / (double)is->fields);
	if (done.published)
		publish_message(r, done.channel, done.published);
	free(done.published);
	struct message *m = send_message(r, e, &e->replies);
	m->bytes = reply;
}

/* "*3\r\n$3\r\nSET\r\n...": what cluster/resp.h has written, whole. Its texts are ended in place. */
static char *cut_command(char *at, struct redis_command *c)
{
	int n = (int)strtol(at + 1, &at, 10);
	assert(n >= 1 && n <= REDIS_ARGS_MAX);
	at += 2;
	for (c->n = 0; c->n < n; c->n++) {
		size_t len = strtoul(at + 1, &at, 10);
		c->arg[c->n] = at + 2;
		at += 2 + len;
		*at = '\0';
		at += 2;
	}
	return at;
}

static void take_commands(void *owner, struct buf *out)
{
	struct end *e = owner;
	char *at = buf_cstr(out), *end = at + buf_len(out);
	while (at < end && !e->server->out) {
		struct redis_command c = {0};
		at = cut_command(at, &c);
		if (strcmp(c.arg[0], "SUBSCRIBE") == 0)
			take_subscription(e, &c);
		else if (strcmp(c.arg[0], "PING") == 0)
			answer_ping(e);
		else
			carry_out(e, &c);
	}
	buf_clear(out);
}

static void on_reached(void *owner)
{
	struct end *e = owner;
	stage_touch(e->stage);
	if (e->server->out)
		wire_broken(e->wire, "it can not be reached");
	else
		wire_reached(e->wire);
}

static void *open_end(void *owner, struct wire *w)
{
	struct stage *st = owner;
	struct end *e = mem_zalloc(sizeof *e);
	e->server = st->world->redis;
	e->stage = st;
	e->wire = w;
	list_init(&e->replies);
	list_append(&e->server->ends, &e->in_server);
	timer_init(&e->reached, on_reached, e);
	stage_after(st, &e->reached, stage_us(st->scenario->redis.round_trip) + REACHED_US);
	return e;
}

static void close_end(void *owner)
{
	struct end *e = owner;
	struct redis_server *r = e->server;
	timer_stop(&r->world->events, &e->reached);
	/* Each node has one connection that hears. */
	tally_of(r)->given_up += is_counting(r) && !r->out && !r->world->ended && e->nchannel > 0;
	list_each (link, tmp, &e->replies)
		free_message(list_entry(link, struct message, link));
	list_remove(&e->in_server);
	for (int i = 0; i < e->nchannel; i++)
		free(e->channel[i]);
	free(e);
}

struct wire_far redis_server_far(struct stage *st)
{
	return (struct wire_far){open_end, take_commands, close_end, st};
}

/* All connections break; what is under way is lost. */
static void break_all(struct redis_server *r)
{
	list_each (link, tmp, &r->said)
		free_message(list_entry(link, struct message, link));
	for (struct list *first; (first = list_first(&r->ends)) != NULL;) {
		struct end *e = list_entry(first, struct end, in_server);
		stage_touch(e->stage);
		wire_broken(e->wire, "it has closed the connection");
	}
}

static void on_outage(void *owner)
{
	struct redis_server *r = owner;
	const struct scenario_redis *is = &r->world->scenario->redis;
	int64_t now_ms = r->world->now_us / 1000, next_ms = INT64_MAX;
	r->out = false;
	for (int i = 0; i < is->nspan; i++) {
		const struct scenario_span *s = &is->span[i];
		r->out |= now_ms >= s->from_ms && now_ms < s->to_ms;
		int64_t at_ms = now_ms < s->from_ms ? s->from_ms : s->to_ms;
		if (at_ms > now_ms && at_ms < next_ms)
			next_ms = at_ms;
	}
	if (r->out)
		break_all(r);
	if (next_ms != INT64_MAX)
		world_after(r->world, &r->outage, stage_us(next_ms - now_ms));
}

struct redis_server *redis_server_new(struct world *w)
{
	struct redis_server *r = mem_zalloc(sizeof *r);
	r->world = w;
	r->keys = redis_keys_new((int)w->scenario->nodes);
	list_init(&r->ends);
	list_init(&r->said);
	timer_init(&r->outage, on_outage, r);
	world_after(w, &r->outage, 0);
	return r;
}

void redis_server_free(struct redis_server **rp)
{
	struct redis_server *r = mem_take(rp);
	if (!r)
		return;
	assert(list_empty(&r->ends));
	list_each (link, tmp, &r->said)
		free_message(list_entry(link, struct message, link));
	timer_stop(&r->world->events, &r->outage);
	redis_keys_free(&r->keys);
	free(r);
}
