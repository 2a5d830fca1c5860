/* SPDX-License-Identifier: ISC */
#include "cluster/link.h"

#include "base/address.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/list.h"
#include "base/log.h"
#include "base/magic.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/number.h"
#include "cluster/wire.h"

#include <assert.h>
#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINK_MAGIC = 0x6c696e6b, REST_FIRST_MS = 100, TICK_MOST_MS = 100, PING_MS = 1000 };

enum link_state { LINK_AWAY, LINK_RESOLVING, LINK_OPENING, LINK_READY };

struct awaited {
	struct list in_fifo;
	int64_t sent_ms;
	link_answered *answered;
	void *owner;
	const struct link_script *script; /* of an EVALSHA; else NULL */
	int n;				  /* arguments of the command */
	struct buf rest;		  /* of the script's command, all behind its hash */
};

struct channel {
	char *name; /* with the prefix */
	void (*heard)(void *owner, const char *payload, size_t len);
	void *owner;
};

struct watcher {
	void (*changed)(void *owner, bool ready);
	void *owner;
};

struct link {
	unsigned magic;
	enum link_state state;
	struct loop *loop, *dns;
	struct conf *conf;
	const struct conf_cluster *c;
	char *host;
	int port;
	const struct wire_far *far; /* or NULL */
	struct wire *commands, *ears;
	struct list fifo; /* struct awaited, oldest first */
	int nawaited;
	struct channel channel[LINK_CHANNELS_MAX];
	struct watcher watcher[LINK_WATCHERS_MAX];
	int nchannel, nwatcher, nsubscribed;
	int64_t pinged_ms, ear_pinged_ms;
	bool ear_silent; /* has not answered that yet */
	struct timer rest, tick;
	int64_t rest_ms;
	int64_t tried_ms; /* steady clock: the last attempt began */
	unsigned tries;
	bool said_away, said_ready;
	bool written;	       /* on the present connection: it was asked to, and has answered */
	int64_t asked_ms;      /* steady clock: the last question that opens it was asked then */
	int64_t ready_ms;      /* steady clock: since then */
	char *since, *passing; /* keys */
	struct link_script write_since;
	struct link_mark mark; /* key NULL: none yet */
	bool tells_again;
};

/* How Redis says that its user may not: of a command, and of one in a script (from 7.2 on, and before). */
#define DENIED "NOPERM"
#define DENIED_IN_SCRIPT "ACL failure in script"
#define DENIED_IN_SCRIPT_ONCE "user executing the script"

/* KEYS: since, one that is made and gone, and the mark's hash. ARGV: its field, its number. Since is written in any case: that shows whether it can be. Before that
 * whatever our commands and scripts use is used once, so that a right that the user lacks is missed here, and not each
 * time that somebody needs it: an error that begins with DENIED. Other errors of these don't count. */
const char link_since_script[] =
	"local uses = {{'TIME'}, {'SET', KEYS[2], '', 'PX', '1000'}, {'GET', KEYS[2]},\n"
	"  {'PTTL', KEYS[2]}, {'TYPE', KEYS[2]}, {'HSET', KEYS[2], 'a', '1'}, {'HSETNX', KEYS[2], "
	"'a', '1'},\n"
	"  {'HINCRBY', KEYS[2], 'a', '1'}, {'HGET', KEYS[2], 'a'}, {'HMGET', KEYS[2], 'a'},\n"
	"  {'HGETALL', KEYS[2]}, {'HLEN', KEYS[2]}, {'HEXISTS', KEYS[2], 'a'},\n"
	"  {'HDEL', KEYS[2], 'a'}, {'PEXPIRE', KEYS[2], '1000'}, {'DEL', KEYS[2]},\n"
	"  {'SCAN', '0', 'COUNT', '1'}, {'PUBLISH', KEYS[2], ''}}\n"
	"for i = 1, #uses do\n"
	"  local got = redis.pcall(unpack(uses[i]))\n"
	"  local why = type(got) == 'table' and got.err or ''\n"
	"  if string.find(why, '" DENIED "', 1, true) or\n"
	"    string.find(why, '" DENIED_IN_SCRIPT "', 1, true) or\n"
	"    string.find(why, '" DENIED_IN_SCRIPT_ONCE "', 1, true) then\n"
	"    return redis.error_reply('" DENIED " ' .. uses[i][1] .. ': ' .. why)\n"
	"  end\n"
	"end\n"
	"local t = redis.call('TIME')\n"
	"local now_ms = t[1] * 1000 + math.floor(t[2] / 1000)\n" LINK_LUA_SINCE(
		"KEYS[1]") "local row = redis.pcall('HGET', KEYS[3], ARGV[1])\n"
			   "row = type(row) == 'string' and string.match(row, '^%d+') or '0'\n"
			   "if tonumber(row) < tonumber(ARGV[2]) then since = now_ms end\n"
			   "redis.call('SET', KEYS[1], string.format('%.0f', since))\n"
			   "return 1\n";

static void close_link(struct link *, const char *why);

static void move_to(struct link *l, enum link_state to)
{
	static const unsigned from[] = {
		[LINK_AWAY] = ~(1U << LINK_AWAY),
		[LINK_RESOLVING] = 1U << LINK_AWAY,
		[LINK_OPENING] = 1U << LINK_AWAY | 1U << LINK_RESOLVING,
		[LINK_READY] = 1U << LINK_OPENING,
	};
	assert(from[to] & 1U << l->state);
	l->state = to;
}

/* The condition has the reason of the last attempt: it may be another one once Redis runs again. */
static void say_state(struct link *l, const char *why)
{
	if (why)
		condition_set(CONDITION_redis_away, "", why);
	if (why ? l->said_away : l->said_ready)
		return;
	if (why || l->said_away)
		metrics_add(METRIC_cluster_away, why ? 1 : -1);
	if (!why)
		condition_clear(CONDITION_redis_away, "");
	l->said_away = why != NULL;
	l->said_ready = why == NULL;
	log_event(why ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "cluster", "node",
		  *l->c->name ? l->c->name : l->conf->own_name, "redis", l->c->redis, "state",
		  why ? "away" : "ready", "reason", why, NULL);
}

static void tell_watchers(struct link *l, bool ready)
{
	for (int i = 0; i < l->nwatcher; i++)
		l->watcher[i].changed(l->watcher[i].owner, ready);
}

static void drop_awaited(struct link *l, struct awaited *a)
{
	list_remove(&a->in_fifo);
	assert(l->nawaited > 0);
	l->nawaited--;
	buf_fini(&a->rest);
	free(a);
}

/* Takes it. */
static void answer_awaited(struct link *l, struct awaited *a, const redisReply *reply)
{
	link_answered *answered = a->answered;
	void *owner = a->owner;
	metrics_add(!reply			       ? METRIC_cluster_commands_lost
		    : reply->type == REDIS_REPLY_ERROR ? METRIC_cluster_commands_refused
						       : METRIC_cluster_commands_answered,
		    1);
	drop_awaited(l, a);
	if (answered)
		answered(owner, reply);
}

static void put_script(struct link *l, const struct awaited *a, const char *verb, const char *what)
{
	struct buf *out = wire_out(l->commands);
	buf_printf(out, "*%d\r\n$%zu\r\n%s\r\n$%zu\r\n", a->n, strlen(verb), verb, strlen(what));
	buf_puts(out, what);
	buf_puts(out, "\r\n");
	buf_append(out, buf_data(&a->rest), buf_len(&a->rest));
	wire_flush(l->commands);
}

static bool has_prefix(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Older ones say of a script that it has failed, and then why. */
static bool can_not_serve(const char *error)
{
	return has_prefix(error, "LOADING") || has_prefix(error, "MASTERDOWN") ||
	       has_prefix(error, "NOAUTH") || has_prefix(error, DENIED) ||
	       strstr(error, "READONLY") || strstr(error, "NOREPLICAS") ||
	       strstr(error, DENIED_IN_SCRIPT) || strstr(error, DENIED_IN_SCRIPT_ONCE);
}

bool link_lacks_room(const char *error)
{
	return strstr(error, "OOM") || strstr(error, "MISCONF");
}

static void become_ready(struct link *l)
{
	if (l->state != LINK_OPENING || !l->written || !wire_ready(l->ears) ||
	    l->nsubscribed < l->nchannel)
		return;
	assert(l->nawaited == 0 && list_empty(&l->fifo)); /* what was asked before is answered */
	move_to(l, LINK_READY);
	l->ready_ms = clock_steady_ms();
	say_state(l, NULL);
	tell_watchers(l, true);
}

static void write_since(struct link *l, const char *verb, const char *script)
{
	const struct link_mark *m = &l->mark;
	char at[24];
	snprintf(at, sizeof at, "%" PRId64, m->at);
	const char *arg[] = {verb,
			     script,
			     "3",
			     l->since,
			     l->passing,
			     m->key ? m->key : l->passing,
			     m->key ? m->field : "",
			     at};
	resp_put(wire_out(l->commands), 8, arg, NULL);
	wire_flush(l->commands);
	l->asked_ms = clock_steady_ms();
}

/* Whether it has room is another matter. Any other error of what uses all that we use means that nothing of it would work: one
 * that is part of a Redis Cluster refuses keys of several slots, and others may lack scripts. */
static void hear_whether_it_writes(struct link *l, struct wire *w, const redisReply *reply)
{
	const char *error = reply->type == REDIS_REPLY_ERROR ? reply->str : "";
	if (has_prefix(error, "NOSCRIPT")) {
		write_since(l, "EVAL", l->write_since.text);
		return;
	}
	l->written = !*error || link_lacks_room(error);
	if (l->written)
		become_ready(l);
	else
		wire_doom(w, error);
}

static void hear_answer(struct link *l, struct wire *w, const redisReply *reply)
{
	struct list *first = list_first(&l->fifo);
	if (!l->written) {
		hear_whether_it_writes(l, w, reply);
		return;
	}
	if (!first) {
		wire_doom(w, "it answers what was not asked");
		return;
	}
	struct awaited *a = list_entry(first, struct awaited, in_fifo);
	assert(l->nawaited > 0);
	const char *error = reply->type == REDIS_REPLY_ERROR ? reply->str : "";
	if (a->script && has_prefix(error, "NOSCRIPT")) {
		list_move(&l->fifo, &a->in_fifo);
		a->sent_ms = clock_steady_ms();
		put_script(l, a, "EVAL", a->script->text);
		a->script = NULL;
		return;
	}
	if (can_not_serve(error))
		wire_doom(w, error);
	answer_awaited(l, a, reply);
}

static const struct channel *find_channel(const struct link *l, const char *name)
{
	for (int i = 0; i < l->nchannel; i++)
		if (strcmp(l->channel[i].name, name) == 0)
			return &l->channel[i];
	return NULL;
}

/* ["message", channel, payload], ["subscribe", channel, n] or ["pong", ""]. */
static void hear_ears(struct link *l, struct wire *w, const redisReply *reply)
{
	const char *what = resp_is_array(reply, 2) ? resp_text(reply->element[0]) : "";
	if (strcmp(what, "pong") == 0) {
		l->ear_silent = false;
	} else if (strcmp(what, "subscribe") == 0) {
		l->nsubscribed++;
		become_ready(l);
	} else if (strcmp(what, "message") == 0 && resp_is_array(reply, 3)) {
		const struct channel *c = find_channel(l, resp_text(reply->element[1]));
		const redisReply *payload = reply->element[2];
		if (c && payload->type == REDIS_REPLY_STRING)
			c->heard(c->owner, payload->str, (size_t)payload->len);
	} else {
		wire_doom(w, *resp_text(reply) ? resp_text(reply) : "it makes no sense");
	}
}

static void on_heard(void *owner, struct wire *w, const redisReply *reply)
{
	struct link *l = owner;
	magic_check(l, LINK_MAGIC);
	if (w == l->ears)
		hear_ears(l, w, reply);
	else
		hear_answer(l, w, reply);
}

static void subscribe_channels(struct link *l)
{
	const char *arg[LINK_CHANNELS_MAX + 1] = {"SUBSCRIBE"};
	for (int i = 0; i < l->nchannel; i++)
		arg[i + 1] = l->channel[i].name;
	if (l->nchannel > 0)
		resp_put(wire_out(l->ears), l->nchannel + 1, arg, NULL);
	wire_flush(l->ears);
	l->asked_ms = clock_steady_ms();
}

static void on_ready(void *owner, struct wire *w)
{
	struct link *l = owner;
	magic_check(l, LINK_MAGIC);
	if (w == l->ears)
		subscribe_channels(l);
	else
		write_since(l, "EVALSHA", l->write_since.sha);
	become_ready(l);
}

static void on_closed(void *owner, struct wire *w, const char *why)
{
	struct link *l = owner;
	magic_check(l, LINK_MAGIC);
	(void)w;
	close_link(l, why);
}

static const struct wire_hooks hooks = {on_ready, on_heard, on_closed};

static void open_wires(struct link *l, union address *to)
{
	assert(!l->commands && !l->ears);
	address_set_port(to, l->port);
	move_to(l, LINK_OPENING);
	l->nsubscribed = 0;
	l->written = l->tells_again = false;
	l->ear_silent = false;
	l->pinged_ms = l->ear_pinged_ms = clock_steady_ms();
	l->commands = wire_open(l->loop, l->c, l->host, to, l->far, &hooks, l);
	l->ears = wire_open(l->loop, l->c, l->host, to, l->far, &hooks, l);
}

static void connect_link(void *owner)
{
	struct link *l = owner;
	union address to;
	magic_check(l, LINK_MAGIC);
	l->tried_ms = clock_steady_ms();
	bool literal = has_prefix(l->host, "unix:") ? address_parse_unix(l->host, &to)
						    : address_parse(l->host, l->port, &to);
	if (literal) {
		open_wires(l, &to);
		return;
	}
	assert(l->dns);
	move_to(l, LINK_RESOLVING);
	struct resolve *ask = resolve_new(RESOLVE_HOST, l->host, l->loop, l);
	ask->trusted = true;
	ask->note.type = RESOLVE_ASK;
	loop_post(l->dns, &ask->note);
}

void link_resolved(struct link *l, struct resolve *answer)
{
	assert(l->state == LINK_RESOLVING && loop_is_ours(l->loop));
	union address to;
	int n = answer->nhost > 0 ? answer->host[0].naddress : 0;
	if (n > 0)
		to = answer->host[0].address[l->tries++ % (unsigned)n];
	if (n > 0)
		open_wires(l, &to);
	else
		close_link(l, answer->failure ? answer->failure->text : "its name has no address");
	resolve_free(&answer);
}

/* From the beginning of an attempt that failed: one may have lasted while Redis came back and another node had it. */
static int64_t rest_after(const struct link *l, bool was_ready)
{
	int64_t rest_ms = l->rest_ms / 2 + random() % (l->rest_ms / 2 + 1);
	int64_t lasted_ms = was_ready ? 0 : clock_steady_ms() - l->tried_ms;
	return number_max(rest_ms - lasted_ms, REST_FIRST_MS / 2);
}

static void close_link(struct link *l, const char *why)
{
	bool was_ready = l->state == LINK_READY;
	if (was_ready && clock_steady_ms() >= l->ready_ms + LINK_STEADY_MS)
		l->rest_ms = REST_FIRST_MS;
	move_to(l, LINK_AWAY);
	assert(!timer_active(&l->rest));
	say_state(l, why);
	assert(loop_is_ours(l->loop));
	wire_free(&l->commands);
	wire_free(&l->ears);
	loop_timer_in(l->loop, &l->rest, rest_after(l, was_ready));
	l->rest_ms = l->rest_ms * 2 < LINK_REST_MOST_MS ? l->rest_ms * 2 : LINK_REST_MOST_MS;
	while (!list_empty(&l->fifo))
		answer_awaited(l, list_entry(list_first(&l->fifo), struct awaited, in_fifo), NULL);
	assert(l->nawaited == 0);
	if (was_ready)
		tell_watchers(l, false);
}

static bool is_silent(const struct link *l, int64_t now_ms)
{
	struct list *first = list_first(&l->fifo);
	/* Until then each wire has a deadline of its own. */
	if (l->state == LINK_OPENING)
		return wire_ready(l->commands) && wire_ready(l->ears) &&
		       now_ms - l->asked_ms >= l->c->redis_timeout;
	return (first && now_ms - list_entry(first, struct awaited, in_fifo)->sent_ms >=
				 l->c->redis_timeout) ||
	       (l->ear_silent && now_ms - l->ear_pinged_ms >= l->c->redis_timeout);
}

static void ping_server(struct link *l, int64_t now_ms)
{
	static const char *const arg[] = {"PING"};
	if (now_ms - l->ear_pinged_ms >= PING_MS && !l->ear_silent) {
		l->ear_silent = true;
		l->ear_pinged_ms = now_ms;
		resp_put(wire_out(l->ears), 1, arg, NULL);
		wire_flush(l->ears);
	}
	if (now_ms - l->pinged_ms >= PING_MS && l->nawaited == 0) {
		l->pinged_ms = now_ms;
		link_send(l, NULL, NULL, 1, arg, NULL);
	}
}

static void tell_again(struct link *l)
{
	l->tells_again = false;
	tell_watchers(l, true);
}

static void on_tick(void *owner)
{
	struct link *l = owner;
	int64_t now_ms = clock_steady_ms();
	magic_check(l, LINK_MAGIC);
	int64_t wait_ms = l->c->redis_timeout / 4 + 1;
	loop_timer_in(l->loop, &l->tick, wait_ms < TICK_MOST_MS ? wait_ms : TICK_MOST_MS);
	if (l->state != LINK_READY && l->state != LINK_OPENING)
		return;
	if (is_silent(l, now_ms))
		close_link(l, "it does not answer");
	else if (l->state == LINK_READY)
		ping_server(l, now_ms);
	if (l->state == LINK_READY && l->tells_again)
		tell_again(l);
}

struct link *link_new(struct loop *loop, struct loop *dns, struct conf *conf)
{
	struct link *l = mem_zalloc(sizeof *l);
	bool bracketed;
	l->magic = LINK_MAGIC;
	l->loop = loop;
	l->dns = dns;
	l->conf = conf_ref(conf);
	l->c = &conf->cluster;
	bool good = conf_relay_parse(l->c->redis, &l->host, &l->port, &bracketed);
	assert(good);
	(void)good;
	l->since = mem_printf("%ssince", l->c->redis_prefix);
	l->passing = mem_printf("%spassing", l->c->redis_prefix);
	link_script_init(&l->write_since, link_since_script);
	list_init(&l->fifo);
	timer_init(&l->rest, connect_link, l);
	timer_init(&l->tick, on_tick, l);
	l->rest_ms = REST_FIRST_MS;
	return l;
}

void link_reach(struct link *l, const struct wire_far *far)
{
	l->far = far;
}

void link_begin(struct link *l)
{
	assert(l->state == LINK_AWAY && !timer_active(&l->tick));
	loop_timer_in(l->loop, &l->rest, 0);
	loop_timer_in(l->loop, &l->tick, TICK_MOST_MS);
}

void link_free(struct link **lp)
{
	struct link *l = mem_take(lp);
	if (!l)
		return;
	magic_check(l, LINK_MAGIC);
	timer_stop(&l->loop->timers, &l->rest);
	timer_stop(&l->loop->timers, &l->tick);
	wire_free(&l->commands);
	wire_free(&l->ears);
	l->state = LINK_AWAY;
	while (!list_empty(&l->fifo))
		answer_awaited(l, list_entry(list_first(&l->fifo), struct awaited, in_fifo), NULL);
	assert(l->nawaited == 0);
	if (l->said_away) {
		metrics_add(METRIC_cluster_away, -1);
		condition_clear(CONDITION_redis_away, "");
	}
	for (int i = 0; i < l->nchannel; i++)
		free(l->channel[i].name);
	free(l->host);
	free(l->since);
	free(l->passing);
	conf_unref(l->conf);
	magic_free(l);
}

void link_hear(struct link *l, const char *channel,
	       void (*heard)(void *owner, const char *payload, size_t len), void *owner)
{
	assert(l->nchannel < LINK_CHANNELS_MAX);
	assert(l->state == LINK_AWAY); /* it subscribes when it opens */
	l->channel[l->nchannel++] = (struct channel){link_name_channel(l, channel), heard, owner};
}

void link_watch(struct link *l, void (*changed)(void *owner, bool ready), void *owner)
{
	assert(l->nwatcher < LINK_WATCHERS_MAX);
	l->watcher[l->nwatcher++] = (struct watcher){changed, owner};
}

bool link_ready(const struct link *l)
{
	return l->state == LINK_READY;
}

void link_mark(struct link *l, const struct link_mark *mark)
{
	assert(loop_is_ours(l->loop));
	l->mark = *mark;
}

void link_tell_again(struct link *l)
{
	assert(loop_is_ours(l->loop));
	l->tells_again = true;
}

const char *link_prefix(const struct link *l)
{
	return l->c->redis_prefix;
}

char *link_name_channel(const struct link *l, const char *channel)
{
	if (l->c->redis_database == 0)
		return mem_printf("%s%s", l->c->redis_prefix, channel);
	return mem_printf("%s%" PRId64 "/%s", l->c->redis_prefix, (int64_t)l->c->redis_database,
			  channel);
}

const char *link_since(const struct link *l)
{
	return l->since;
}

static struct awaited *add_awaited(struct link *l, link_answered *answered, void *owner)
{
	if (l->state != LINK_READY || l->nawaited >= LINK_AWAITED_MAX ||
	    buf_len(wire_out(l->commands)) > LINK_UNSENT_MAX)
		return NULL;
	assert(list_empty(&l->fifo) == (l->nawaited == 0));
	struct awaited *a = mem_zalloc(sizeof *a);
	a->sent_ms = clock_steady_ms();
	a->answered = answered;
	a->owner = owner;
	list_init(&a->in_fifo);
	list_append(&l->fifo, &a->in_fifo);
	l->nawaited++;
	return a;
}

bool link_send(struct link *l, link_answered *answered, void *owner, int n, const char *const arg[],
	       const size_t len[])
{
	assert(loop_is_ours(l->loop));
	if (!add_awaited(l, answered, owner))
		return false;
	resp_put(wire_out(l->commands), n, arg, len);
	wire_flush(l->commands);
	return true;
}

void link_script_init(struct link_script *s, const char *text)
{
	unsigned char digest[SHA_DIGEST_LENGTH];
	s->text = text;
	SHA1((const unsigned char *)text, strlen(text), digest);
	for (int i = 0; i < SHA_DIGEST_LENGTH; i++)
		snprintf(s->sha + (size_t)i * 2, 3, "%02x", digest[i]);
}

static void put_bulk(struct buf *to, const char *data, size_t len)
{
	buf_printf(to, "$%zu\r\n", len);
	buf_append(to, data, len);
	buf_puts(to, "\r\n");
}

bool link_eval(struct link *l, const struct link_script *script, link_answered *answered,
	       void *owner, int nkeys, int n, const char *const arg[])
{
	struct awaited *a = add_awaited(l, answered, owner);
	char keys[12];
	assert(loop_is_ours(l->loop));
	assert(nkeys >= 0 && nkeys <= n);
	if (!a)
		return false;
	a->script = script;
	a->n = n + 3;
	snprintf(keys, sizeof keys, "%d", nkeys);
	put_bulk(&a->rest, keys, strlen(keys));
	for (int i = 0; i < n; i++)
		put_bulk(&a->rest, arg[i], strlen(arg[i]));
	put_script(l, a, "EVALSHA", script->sha);
	return true;
}

void link_publish(struct link *l, const char *channel, const char *payload, size_t len)
{
	char *name = link_name_channel(l, channel);
	const char *arg[] = {"PUBLISH", name, payload};
	size_t lens[] = {7, strlen(name), len};
	assert(loop_is_ours(l->loop));
	link_send(l, NULL, NULL, 3, arg, lens);
	free(name);
}
