/* SPDX-License-Identifier: ISC */
#include "cluster/nodes.h"

#include "base/clock.h"
#include "base/condition.h"
#include "base/fact.h"
#include "base/log.h"
#include "base/magic.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/words.h"

#include <assert.h>
#include <inttypes.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each look at all nodes costs Redis as much as there are: so many a second they all together take. */
enum {
	NODES_MAGIC = 0x6e6f6465,
	LOOK_MAGIC = 0x6c6f6f6b,
	LOOK_EVERY = 2 /* heartbeats */,
	LOOKS_A_SECOND = 50,
	WELL_BEATS = 5
};

/* KEYS: the hash. ARGV: name, text. Returns what was there of that name. */
const char nodes_beat_script[] =
	"local kind = redis.call('TYPE', KEYS[1]).ok\n"
	"if kind ~= 'hash' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end\n"
	"local t = redis.call('TIME')\n"
	"local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"
	"local before = redis.call('HGET', KEYS[1], ARGV[1])\n"
	"redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now) .. '\\t' .. ARGV[2])\n"
	"return before or ''\n";

/* KEYS: the hash. ARGV: at most so many; those that were seen longer ago are dropped, those that are no text of a
 * node's left out. Returns now, and name, text of each. */
const char nodes_look_script[] =
	"if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then return {} end\n"
	"local t = redis.call('TIME')\n"
	"local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"
	"local all, some = redis.call('HGETALL', KEYS[1]), {string.format('%.0f', now)}\n"
	"for i = 1, #all, 2 do\n"
	"  local seen = tonumber(string.match(all[i + 1], '^(%d+)\\t') or '0')\n"
	"  if now - seen > tonumber(ARGV[2]) then redis.call('HDEL', KEYS[1], all[i])\n"
	"  elseif #some <= 2 * tonumber(ARGV[1]) and #all[i + 1] <= 4000 then\n"
	"    some[#some + 1] = all[i]\n"
	"    some[#some + 1] = all[i + 1]\n"
	"  end\n"
	"end\n"
	"return some\n";

#define FORGET_MS "604800000" /* a week */

struct nodes {
	unsigned magic;
	struct loop *loop;
	struct link *link;
	char *key;
	struct node_text self;
	struct cluster_edges edges;
	struct link_script beat, look;
	struct timer timer;
	unsigned beats, phase; /* at which of them it looks */
	int alive;
	char run[2 * sizeof(uint64_t) + 1]; /* chance, which tells this process from others */
	int64_t many_ms; /* steady clock: as many as alive were there last, or Redis had just come */
	int others; /* heartbeats in a row before which another process had been there by our name */
	int64_t beat_ms; /* Redis' clock: a beat of this connection's was there then; 0: not known */
	bool beating, looking; /* a script is under way */
	bool full;
	int well; /* heartbeats in a row that were not refused for that */
};

/* Is a write refused for want of memory, or of room on its disk? At the edge of it some are and some are not, as keys expire: that
 * it is over is believed after some heartbeats. */
static void see_whether_full(struct nodes *n, const redisReply *reply)
{
	const char *error = reply->type == REDIS_REPLY_ERROR ? reply->str : "";
	bool full = link_lacks_room(error);
	if (*error && !full)
		return;
	n->well = full ? 0 : n->well + 1;
	if (full == n->full || (n->full && n->well < WELL_BEATS))
		return;
	n->full = full;
	metrics_add(METRIC_cluster_full, full ? 1 : -1);
	condition_turn(CONDITION_redis_full, full, "", error);
	log_event(full ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "cluster", "node", n->self.name, "state",
		  full ? "full" : "ready", "reason", full ? error : NULL, NULL);
}

/* A process of ours before this one has been there once, at most. */
static void see_whether_alone(struct nodes *n, const char *before)
{
	const char *run = strstr(before, "\trun=");
	bool other = run && strcmp(run + strlen("\trun="), n->run) != 0;
	n->others = other ? n->others + 1 : 0;
	if (n->others == 2)
		log_event(LOG_LEVEL_ERROR, "cluster", "node", n->self.name, "state", "twice",
			  "reason", "another node has the same name: neither hears the other",
			  NULL);
}

/* Where the beat before this one is not there any more, nor a later one, somebody has emptied it. */
static void see_whether_lost(struct nodes *n, const char *before)
{
	int64_t at_ms = strtoll(before, NULL, 10);
	if (at_ms < n->beat_ms)
		link_tell_again(n->link);
	n->beat_ms = at_ms;
	link_mark(n->link, &(struct link_mark){n->key, n->self.name, at_ms});
}

static void on_beat(void *owner, const redisReply *reply)
{
	struct nodes *n = owner;
	magic_check(n, NODES_MAGIC);
	assert(n->beating);
	n->beating = false;
	if (!reply)
		return;
	see_whether_full(n, reply);
	if (reply->type != REDIS_REPLY_STRING)
		return;
	see_whether_alone(n, reply->str);
	see_whether_lost(n, reply->str);
}

static void count_self(struct nodes *n)
{
	static_assert(NODE_COUNTER_COUNT == 10, "all of them are counted here");
	int64_t *c = n->self.count;
	c[NODE_RECEIVED] = metrics_sum(METRIC_received);
	c[NODE_SENT] = metric_cells_sum(FAMILY_deliveries, "sent");
	c[NODE_DEFERRED] = metric_cells_sum(FAMILY_deliveries, "deferred");
	c[NODE_BOUNCED] = metric_cells_sum(FAMILY_deliveries, "bounced");
	c[NODE_INCOMING] = metrics_sum(METRIC_queue_incoming);
	c[NODE_ACTIVE] = metrics_sum(METRIC_queue_active);
	c[NODE_WAITING] = metrics_sum(METRIC_queue_deferred);
	c[NODE_HELD] = metrics_sum(METRIC_queue_hold);
	c[NODE_CLIENTS] = metrics_sum(METRIC_server_connections);
	c[NODE_HOSTS] = metrics_sum(METRIC_client_connecting) + metrics_sum(METRIC_client_idle) +
			metrics_sum(METRIC_client_busy);
}

static bool send_beat(struct nodes *n)
{
	struct buf text = {0};
	node_text_put(&text, &n->self);
	buf_printf(&text, "\trun=%s", n->run);
	const char *arg[] = {n->key, n->self.name, buf_cstr(&text)};
	bool sent = link_eval(n->link, &n->beat, on_beat, n, 1, 3, arg);
	buf_fini(&text);
	return sent;
}

static struct node_text copy_node(const struct node_text *from)
{
	struct node_text n = *from;
	n.name = mem_strdup(from->name);
	return n;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct node_text *)a)->name, ((const struct node_text *)b)->name);
}

static void post_copy(const struct cluster_view *v, struct loop *to)
{
	struct cluster_view *copy = mem_zalloc(sizeof *copy);
	*copy = *v;
	copy->node = mem_zalloc((size_t)v->n * sizeof *copy->node + 1);
	for (int i = 0; i < v->n; i++)
		copy->node[i] = copy_node(&v->node[i]);
	loop_post(to, &copy->note);
}

static void count_all(const struct cluster_view *v)
{
	int64_t alive = 0;
	for (int i = 0; i < v->n; i++)
		alive += node_text_alive(&v->node[i]);
	metric_cell_set(metric_cell(FAMILY_cluster_nodes, "working", NULL), alive);
	metric_cell_set(metric_cell(FAMILY_cluster_nodes, "gone", NULL), v->n - alive);
}

/* Takes it. */
static void show_view(struct nodes *n, struct cluster_view *v)
{
	v->note.type = CLUSTER_VIEW;
	qsort(v->node, (size_t)v->n, sizeof v->node[0], by_name);
	count_all(v);
	post_copy(v, n->edges.watcher);
	loop_post(n->edges.main, &v->note);
}

static void add_node(struct cluster_view *v, const char *name, const char *text, int64_t now_ms)
{
	char *rest;
	int64_t seen_ms = strtoll(text, &rest, 10);
	if (*rest != '\t' || seen_ms < 0 || !fact_word_good(name, NODE_NAME_MAX) ||
	    words_unprintable(name))
		return;
	struct node_text *node = &v->node[v->n++];
	node_text_read(node, name, rest + 1);
	node->seen_ms = now_ms > seen_ms ? now_ms - seen_ms : 0;
	if (node->seen_ms > NODE_GONE_MS)
		snprintf(node->state, sizeof node->state, "gone");
}

/* Fewer than before are believed when they have been so few for a while: Redis may have forgotten them, and they
 * still use their part of each limit. */
static void count_alive(struct nodes *n, const struct cluster_view *v)
{
	int64_t now_ms = clock_steady_ms();
	int alive = 0;
	for (int i = 0; i < v->n; i++)
		alive += node_text_alive(&v->node[i]);
	if (alive >= n->alive)
		n->many_ms = now_ms;
	else if (now_ms < n->many_ms + NODE_GONE_MS)
		return;
	n->alive = alive > 1 ? alive : 1;
	assert(n->alive >= 1);
}

/* NULL: it makes no sense. */
static struct cluster_view *read_view(const redisReply *reply)
{
	if (!resp_is_array(reply, 1))
		return NULL;
	struct cluster_view *v = mem_zalloc(sizeof *v);
	int64_t now_ms = strtoll(resp_text(reply->element[0]), NULL, 10);
	v->redis = true;
	v->node = mem_zalloc(reply->elements * sizeof *v->node);
	for (size_t i = 1; i + 1 < reply->elements; i += 2)
		add_node(v, resp_text(reply->element[i]), resp_text(reply->element[i + 1]), now_ms);
	assert((size_t)v->n * 2 < reply->elements + 1);
	return v;
}

static void on_look(void *owner, const redisReply *reply)
{
	struct nodes *n = owner;
	magic_check(n, NODES_MAGIC);
	assert(n->looking);
	n->looking = false;
	struct cluster_view *v = read_view(reply);
	if (!v)
		return;
	count_alive(n, v);
	show_view(n, v);
}

static bool ask_who_is_there(struct nodes *n, link_answered *answered, void *owner)
{
	const char *arg[] = {n->key, "1000", FORGET_MS};
	return link_eval(n->link, &n->look, answered, owner, 1, 3, arg);
}

struct look {
	unsigned magic;
	void (*seen)(void *owner, const struct cluster_view *);
	void *owner;
};

static void on_look_of_another(void *owner, const redisReply *reply)
{
	struct look *look = owner;
	magic_check(look, LOOK_MAGIC);
	struct cluster_view *v = read_view(reply);
	look->seen(look->owner, v);
	cluster_view_free(&v);
	magic_free(look);
}

bool nodes_look(struct nodes *n, void (*seen)(void *owner, const struct cluster_view *),
		void *owner)
{
	struct look *look = mem_zalloc(sizeof *look);
	assert(loop_is_ours(n->loop));
	*look = (struct look){LOOK_MAGIC, seen, owner};
	bool asked = ask_who_is_there(n, on_look_of_another, look);
	if (!asked)
		free(look);
	return asked;
}

/* All that is known while Redis is away. */
static void show_self(struct nodes *n)
{
	struct cluster_view *v = mem_zalloc(sizeof *v);
	v->node = mem_zalloc(sizeof *v->node);
	v->node[v->n++] = copy_node(&n->self);
	show_view(n, v);
}

static unsigned look_every(const struct nodes *n)
{
	assert(n->alive >= 1);
	unsigned beats = (unsigned)n->alive / LOOKS_A_SECOND;
	return beats > LOOK_EVERY ? beats : LOOK_EVERY;
}

/* At once when nothing is known, and then each at a time of its own: nodes that were started together would all look
 * together. */
static bool is_time_to_look(const struct nodes *n)
{
	unsigned every = look_every(n);
	return n->beats == 0 || n->beats % every == n->phase % every;
}

/* Of the name, the same in each run. */
static unsigned phase_of(const char *name)
{
	unsigned h = 2166136261U;
	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619U;
	return h >> 8;
}

static void on_tick(void *owner)
{
	struct nodes *n = owner;
	magic_check(n, NODES_MAGIC);
	loop_timer_in(n->loop, &n->timer, HEARTBEAT_MS);
	count_self(n);
	if (!n->beating)
		n->beating = send_beat(n);
	bool look = is_time_to_look(n);
	n->beats++;
	if (!look)
		return;
	if (!link_ready(n->link))
		show_self(n);
	else if (!n->looking)
		n->looking = ask_who_is_there(n, on_look, n);
}

static void on_change(void *owner, bool ready)
{
	struct nodes *n = owner;
	magic_check(n, NODES_MAGIC);
	n->beat_ms = 0;
	if (!ready || n->alive <= 2 * LOOKS_A_SECOND)
		n->beats = 0;
	if (!ready)
		return;
	n->many_ms = clock_steady_ms();
	loop_timer_in(n->loop, &n->timer, 0);
}

struct nodes *nodes_new(struct loop *loop, struct link *link, const char *name, const char *version,
			const struct cluster_edges *edges)
{
	struct nodes *n = mem_zalloc(sizeof *n);
	uint64_t run;
	n->magic = NODES_MAGIC;
	n->loop = loop;
	n->link = link;
	n->key = mem_printf("%snodes", link_prefix(link));
	n->self.name = mem_strdup(name);
	n->phase = phase_of(name);
	snprintf(n->self.version, sizeof n->self.version, "%s", version);
	snprintf(n->self.state, sizeof n->self.state, "working");
	n->edges = *edges;
	if (RAND_bytes((unsigned char *)&run, sizeof run) != 1)
		abort();
	snprintf(n->run, sizeof n->run, "%016" PRIx64, run);
	n->alive = 1;
	link_script_init(&n->beat, nodes_beat_script);
	link_script_init(&n->look, nodes_look_script);
	timer_init(&n->timer, on_tick, n);
	link_watch(link, on_change, n);
	return n;
}

void nodes_start(struct nodes *n)
{
	loop_timer_in(n->loop, &n->timer, 0);
}

void nodes_free(struct nodes **np)
{
	struct nodes *n = mem_take(np);
	if (!n)
		return;
	magic_check(n, NODES_MAGIC);
	timer_stop(&n->loop->timers, &n->timer);
	assert(!n->beating && !n->looking); /* an answer would find it gone */
	magic_clear(n);
	node_text_fini(&n->self);
	free(n->key);
	free(n);
}

int nodes_alive(const struct nodes *n)
{
	return n->alive;
}

void cluster_view_free(struct cluster_view **vp)
{
	struct cluster_view *v = mem_take(vp);
	if (!v)
		return;
	for (int i = 0; i < v->n; i++)
		node_text_fini(&v->node[i]);
	free(v->node);
	free(v);
}
