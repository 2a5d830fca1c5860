/* SPDX-License-Identifier: ISC */
#include "cluster/orders.h"

#include "base/date.h"
#include "base/fact.h"
#include "base/log.h"
#include "base/magic.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/text_note.h"

#include <assert.h>
#include <inttypes.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ORDERS_MAGIC = 0x6f726465, ID_MAX = 32, MARK_MAX = 12, ORDER_NAME_MAX = 4095 };

#define UNTIL_MAX_MS INT64_C(253402300799999) /* the year 9999 */

const char orders_give_script[] =
	"local kind = redis.call('TYPE', KEYS[1]).ok\n"
	"if kind ~= 'hash' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end\n"
	"local most = tonumber(ARGV[6])\n"
	"if redis.call('HLEN', KEYS[1]) >= most then\n"
	"  local all = redis.call('HGETALL', KEYS[1])\n"
	"  for i = 1, #all, 2 do\n"
	"    local ends = string.match(all[i + 1], '^%d+\\tsuspend\\t[^\\t]*\\t(%d+)$')\n"
	"    local over = ends and tonumber(ends) < tonumber(ARGV[8])\n"
	"    local stays = string.find(all[i + 1], '^%d+\\tsuspend\\t') and not over\n"
	"    if string.find(all[i], ' ') and not stays then\n"
	"      redis.call('HDEL', KEYS[1], all[i])\n"
	"    end\n"
	"  end\n"
	"end\n"
	"if redis.call('HLEN', KEYS[1]) >= most and redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 "
	"then\n"
	"  return redis.error_reply('too many names are suspended')\n"
	"end\n"
	"redis.call('HSETNX', KEYS[1], 'id', ARGV[1])\n"
	"local n = redis.call('HINCRBY', KEYS[1], 'last', 1)\n"
	"redis.call('HSET', KEYS[1], ARGV[3], n .. '\\t' .. ARGV[4] .. '\\t' .. ARGV[5])\n"
	"local marks = (redis.call('HGET', KEYS[1], 'marks') or '') .. n .. ':' .. ARGV[7] .. ' '\n"
	"if #marks > 8000 then\n"
	"  marks = string.sub(marks, string.find(marks, ' ', #marks - 4000, true) + 1)\n"
	"end\n"
	"redis.call('HSET', KEYS[1], 'marks', marks)\n"
	"redis.call('PUBLISH', ARGV[2], n)\n"
	"return n\n";

static const char *const kinds[] = {
#define X(kind, word) word,
	CLUSTER_KINDS(X)
#undef X
};

/* A reset leaves a suspension as it is, and must not take its place. */
#define OF_RESET "/reset"

/* An order as Redis has it. */
struct kept {
	int64_t number;
	enum cluster_kind kind;
	enum order verb;
	const char *name;
	int64_t until_ms;
};

struct orders {
	unsigned magic;
	struct link *link;
	struct loop *main;
	char *node, *key, *channel;
	struct link_script give;
	char id[ID_MAX + 1];	 /* of the hash whose orders were carried out */
	int64_t done;		 /* up to this number, */
	char mark[MARK_MAX + 1]; /* whose order had this mark; "": not known */
	bool looking, again;
};

struct cluster_order *cluster_order_new(enum cluster_kind kind, enum order verb, const char *name,
					struct loop *reply_to, void *owner)
{
	struct cluster_order *o = mailbox_note(sizeof *o, CLUSTER_ORDER);
	o->kind = kind;
	o->verb = verb;
	o->name = mem_strdup(name);
	o->reply_to = reply_to;
	o->owner = owner;
	return o;
}

void cluster_order_free(struct cluster_order **op)
{
	struct cluster_order *o = mem_take(op);
	if (!o)
		return;
	free(o->name);
	free(o->why);
	free(o);
}

static void save_progress(const struct orders *o)
{
	struct buf text = {0};
	buf_printf(&text, "%s %" PRId64 " %s\n", o->id, o->done, o->mark);
	loop_post(o->main, text_note_new(CLUSTER_SAVE, &text));
}

static int find_kind(const char *text, size_t len)
{
	for (int i = 0; i < CLUSTER_KIND_COUNT; i++)
		if (strlen(kinds[i]) == len && memcmp(kinds[i], text, len) == 0)
			return i;
	return -1;
}

static size_t kind_length(const char *field, size_t len)
{
	const size_t tail = strlen(OF_RESET);
	bool of_reset = len > tail && memcmp(field + len - tail, OF_RESET, tail) == 0;
	return of_reset ? len - tail : len;
}

/* "dest example.com" and "7<TAB>suspend<TAB>node<TAB>1764000000000". */
static bool read_order(struct kept *k, const char *field, const char *value)
{
	char *rest;
	size_t len = strcspn(field, " ");
	int kind = find_kind(field, kind_length(field, len));
	k->number = strtoll(value, &rest, 10);
	bool good = *rest == '\t' && order_find(rest + 1, strcspn(rest + 1, "\t"), &k->verb) &&
		    order_changes(k->verb);
	if (kind < 0 || !good || !field[len] || !fact_word_good(field + len + 1, ORDER_NAME_MAX))
		return false;
	k->kind = (enum cluster_kind)kind;
	k->name = field + len + 1;
	const char *node = strchr(rest + 1, '\t'), *until = node ? strchr(node + 1, '\t') : NULL;
	k->until_ms =
		until ? number_max(1, number_min(strtoll(until + 1, NULL, 10), UNTIL_MAX_MS)) : 0;
	return true;
}

static int by_number(const void *a, const void *b)
{
	int64_t x = ((const struct kept *)a)->number, y = ((const struct kept *)b)->number;
	return (x > y) - (x < y);
}

static void apply_order(struct orders *o, const struct kept *k)
{
	struct cluster_order *order = cluster_order_new(k->kind, k->verb, k->name, NULL, NULL);
	order->note.type = CLUSTER_APPLY;
	assert(k->kind < CLUSTER_KIND_COUNT && order_changes(k->verb));
	/* A date in Redis; here by the clock of the queue. */
	order->until_ms = k->until_ms ? k->until_ms - date_ahead_ms() : 0;
	loop_post(o->main, &order->note);
}

static const char *value_of(const redisReply *all, const char *field)
{
	for (size_t i = 0; resp_is_array(all, i + 2); i += 2)
		if (strcmp(resp_text(all->element[i]), field) == 0)
			return resp_text(all->element[i + 1]);
	return "";
}

/* "N:MARK " of each of the last orders. "": it is not among them. */
static void find_mark(const redisReply *all, int64_t number, char mark[MARK_MAX + 1])
{
	mark[0] = '\0';
	for (const char *p = value_of(all, "marks"); *p; p += strcspn(p, " "), p += *p == ' ') {
		char *rest;
		if (strtoll(p, &rest, 10) != number || *rest != ':')
			continue;
		snprintf(mark, MARK_MAX + 1, "%.*s", (int)strcspn(rest + 1, " "), rest + 1);
	}
}

/* A Redis that comes back without its last writes gives their numbers again, to other orders. */
static bool has_lost_some(const struct orders *o, const redisReply *all)
{
	char mark[MARK_MAX + 1];
	if (o->done == 0)
		return false;
	if (strtoll(value_of(all, "last"), NULL, 10) < o->done)
		return true;
	find_mark(all, o->done, mark);
	return *o->mark && strcmp(mark, o->mark) != 0;
}

/* All that is there counts as new then. */
static bool see_whether_lost(struct orders *o, const redisReply *all)
{
	const char *id = value_of(all, "id");
	bool same = strcmp(id, o->id) == 0;
	if (same && !has_lost_some(o, all))
		return false;
	if (o->done > 0)
		log_event(LOG_LEVEL_ERROR, "cluster", "node", o->node, "state", "lost", "reason",
			  "Redis has not the orders that were carried out here: what it has is "
			  "carried out again, and what it has not is unknown to nodes that start "
			  "later",
			  NULL);
	snprintf(o->id, sizeof o->id, "%s", id);
	o->done = 0;
	o->mark[0] = '\0';
	return true;
}

static void apply_all(struct orders *o, const redisReply *all)
{
	struct kept *kept = mem_zalloc(all->elements * sizeof *kept + 1);
	size_t n = 0;
	bool lost = see_whether_lost(o, all);
	for (size_t i = 0; i + 1 < all->elements; i += 2)
		n += read_order(&kept[n], resp_text(all->element[i]),
				resp_text(all->element[i + 1])) &&
		     kept[n].number > o->done;
	qsort(kept, n, sizeof *kept, by_number);
	for (size_t i = 0; i < n; i++)
		apply_order(o, &kept[i]);
	if (n > 0)
		o->done = kept[n - 1].number;
	if (n > 0)
		find_mark(all, o->done, o->mark);
	free(kept);
	if (n > 0 || lost)
		save_progress(o);
}

static void look_for_orders(struct orders *);

/* A key that is no hash has none: the next that is given takes its place. */
static const redisReply *orders_of(const redisReply *reply)
{
	static const redisReply none = {.type = REDIS_REPLY_ARRAY};
	bool other = reply && reply->type == REDIS_REPLY_ERROR && strstr(reply->str, "WRONGTYPE");
	return other ? &none : reply;
}

static void on_look(void *owner, const redisReply *reply)
{
	struct orders *o = owner;
	bool again = o->again;
	const redisReply *all = orders_of(reply);
	magic_check(o, ORDERS_MAGIC);
	assert(o->looking);
	o->looking = o->again = false;
	if (resp_is_array(all, 0)) /* empty: of a Redis that has lost all, too */
		apply_all(o, all);
	if (again)
		look_for_orders(o);
}

static void look_for_orders(struct orders *o)
{
	const char *arg[] = {"HGETALL", o->key};
	o->again = o->looking;
	if (!o->looking)
		o->looking = link_send(o->link, on_look, o, 2, arg, NULL);
}

static void on_change(void *owner, bool ready)
{
	struct orders *o = owner;
	magic_check(o, ORDERS_MAGIC);
	if (ready)
		look_for_orders(o);
}

static void on_published(void *owner, const char *payload, size_t len)
{
	struct orders *o = owner;
	magic_check(o, ORDERS_MAGIC);
	(void)payload, (void)len;
	look_for_orders(o);
}

struct orders *orders_new(struct link *link, const char *node, struct loop *main)
{
	struct orders *o = mem_zalloc(sizeof *o);
	o->magic = ORDERS_MAGIC;
	o->link = link;
	o->main = main;
	o->node = mem_strdup(node);
	o->key = mem_printf("%sorders", link_prefix(link));
	o->channel = link_name_channel(link, "news");
	link_script_init(&o->give, orders_give_script);
	link_hear(link, "news", on_published, o);
	link_watch(link, on_change, o);
	return o;
}

void orders_recall(struct orders *o, const char *text)
{
	size_t len = strcspn(text, " ");
	if (text[len] != ' ' || len > ID_MAX)
		return;
	snprintf(o->id, sizeof o->id, "%.*s", (int)len, text);
	char *rest;
	o->done = strtoll(text + len + 1, &rest, 10);
	rest += *rest == ' ';
	if (strcspn(rest, "\n") <= MARK_MAX)
		snprintf(o->mark, sizeof o->mark, "%.*s", (int)strcspn(rest, "\n"), rest);
}

void orders_free(struct orders **op)
{
	struct orders *o = mem_take(op);
	if (!o)
		return;
	magic_check(o, ORDERS_MAGIC);
	magic_clear(o);
	free(o->node);
	free(o->key);
	free(o->channel);
	free(o);
}

static void finish_order(struct cluster_order *order, const char *why)
{
	assert(order->reply_to && !order->why);
	order->why = mem_strdup(why);
	loop_post(order->reply_to, &order->note);
}

static void on_given(void *owner, const redisReply *reply)
{
	struct cluster_order *order = owner;
	assert(order->note.type == CLUSTER_ORDER);
	if (!reply)
		finish_order(order, "Redis has not answered; it may have been taken all the same");
	else
		finish_order(order, reply->type == REDIS_REPLY_ERROR ? reply->str : NULL);
}

static void make_id(char id[ID_MAX + 1])
{
	unsigned char chance[ID_MAX / 2];
	if (RAND_bytes(chance, sizeof chance) != 1)
		abort();
	for (size_t i = 0; i < sizeof chance; i++)
		snprintf(id + 2 * i, 3, "%02x", chance[i]);
}

void orders_give(struct orders *o, struct cluster_order *order)
{
	char id[ID_MAX + 1], mark[ID_MAX + 1], most[12];
	assert(order->kind < CLUSTER_KIND_COUNT);
	assert(order_changes(order->verb));
	char *field = mem_printf("%s%s %s", kinds[order->kind],
				 order->verb == ORDER_RESET ? OF_RESET : "", order->name);
	make_id(id);
	make_id(mark);
	mark[MARK_MAX] = '\0';
	snprintf(most, sizeof most, "%d", ORDERS_MAX);
	char *from = order->until_ms > 0 ? mem_printf("%s\t%" PRId64, o->node,
						      order->until_ms + date_ahead_ms())
					 : mem_strdup(o->node);
	char *now = mem_printf("%" PRId64, date_ms());
	const char *arg[] = {o->key, id,   o->channel, field, order_word(order->verb),
			     from,   most, mark,       now};
	if (!link_eval(o->link, &o->give, on_given, order, 1, 9, arg))
		finish_order(order, "Redis is away");
	free(now);
	free(from);
	free(field);
}
