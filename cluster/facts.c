/* SPDX-License-Identifier: ISC */
#include "cluster/facts.h"

#include "base/buf.h"
#include "base/date.h"
#include "base/list.h"
#include "base/log.h"
#include "base/magic.h"
#include "base/mem.h"
#include "base/number.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FACTS_MAGIC = 0x66616374,
	UNDER_WAY_MAX = 256,	/* facts being written, or hashes being read: of a node, */
	UNDER_WAY_ALL = 1000,	/* and of all, who may all begin at once, when Redis is back */
	WAITING_MAX = 100000,	/* facts, or keys, that wait for these */
	KEPT_MS = 24 * 3600000, /* in Redis */
	PROBE_MS = 30000,
	DOUBTS_MAX = 1000000000, /* of a node */
};

#define AHEAD_MS "60000" /* FACT_AHEAD_MS */

/* A fact from a clock that is ahead of Redis' is dropped, and what is there of one counts as nothing: else all that
 * others tell would be older until their clocks are there.
 * KEYS: the hash, the probe. ARGV: node, kept for so long, channel, key, doubts, and part, stamp, text of each part.
 * Whoever told what came of his probe keeps it for half a second: others may have asked before they hear that. The channel is told first: that works also when there is no memory left for the hash. */
const char facts_script[] =
	"local kind = redis.call('TYPE', KEYS[1]).ok\n"
	"if kind ~= 'hash' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end\n"
	"local t = redis.call('TIME')\n"
	"local most = t[1] * 1000 + math.floor(t[2] / 1000) + " AHEAD_MS "\n"
	"local set, said, health, ahead = {}, {ARGV[4]}, false, false\n"
	"for i = 6, #ARGV, 3 do\n"
	"  local known = redis.call('HGET', KEYS[1], ARGV[i])\n"
	"  local at, by = string.match(known or '', '^(%d+)\\t([^\\t]*)\\t')\n"
	"  at = tonumber(at) or 0\n"
	"  if at > most then at = 0 end\n"
	"  local new = tonumber(ARGV[i + 1])\n"
	"  if new > most then\n"
	"    ahead = true\n"
	"  elseif new > at or (new == at and ARGV[1] > (by or '')) then\n"
	"    local value = ARGV[i + 1] .. '\\t' .. ARGV[1] .. '\\t' .. ARGV[i + 2]\n"
	"    set[#set + 1] = ARGV[i]\n"
	"    set[#set + 1] = value\n"
	"    said[#said + 1] = ARGV[i] .. '\\t' .. value\n"
	"    health = health or ARGV[i] == 'health'\n"
	"  end\n"
	"end\n"
	"local own, doubts = 'doubts:' .. ARGV[1], tonumber(ARGV[5])\n"
	"if tonumber(redis.call('HGET', KEYS[1], own) or '0') ~= doubts then\n"
	"  set[#set + 1] = own\n"
	"  set[#set + 1] = ARGV[5]\n"
	"end\n"
	"if #set == 0 then return ahead and -1 or 0 end\n"
	"local all = redis.call('HGETALL', KEYS[1])\n"
	"for i = 1, #all, 2 do\n"
	"  if string.sub(all[i], 1, 7) == 'doubts:' and all[i] ~= own then\n"
	"    doubts = doubts + (tonumber(all[i + 1]) or 0)\n"
	"  end\n"
	"end\n"
	"said[#said + 1] = 'doubts\\t' .. doubts\n"
	"redis.call('PUBLISH', ARGV[3], table.concat(said, '\\n'))\n"
	"if health and redis.pcall('GET', KEYS[2]) == ARGV[1] then\n"
	"  redis.call('PEXPIRE', KEYS[2], 500)\n"
	"end\n"
	"redis.call('HSET', KEYS[1], 'key', ARGV[4], unpack(set))\n"
	"redis.call('PEXPIRE', KEYS[1], ARGV[2])\n"
	"return ahead and -1 or #set / 2\n";

/* A key that stays, or is there for longer, is none of ours: nobody would try the host again for it. */
const char facts_probe_script[] = "local left = redis.call('PTTL', KEYS[1])\n"
				  "if left >= 0 and left <= tonumber(ARGV[2]) then return 0 end\n"
				  "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])\n"
				  "return 1\n";

/* A fact to be written, or the name of a hash to be read. */
struct task {
	struct list in_list;
	struct fact *fact;
	char *hash;
};

struct facts {
	unsigned magic;
	struct link *link;
	const struct nodes *seen;
	char *node, *channel;
	struct loop *qmgr;
	struct link_script write, probe;
	struct list waiting;
	int nwaiting, under_way;
	bool ahead; /* our clock, of Redis' */
};

static void free_task(struct facts *f, struct task *t)
{
	list_remove(&t->in_list);
	assert(f->nwaiting > 0);
	f->nwaiting--;
	fact_free(&t->fact);
	free(t->hash);
	free(t);
}

static void add_task(struct facts *f, struct fact *fact, const char *hash)
{
	if (f->nwaiting >= WAITING_MAX) {
		fact_free(&fact);
		return;
	}
	struct task *t = mem_zalloc(sizeof *t);
	t->fact = fact;
	t->hash = mem_strdup(hash);
	list_init(&t->in_list);
	list_append(&f->waiting, &t->in_list);
	f->nwaiting++;
	assert(f->nwaiting <= WAITING_MAX && (fact != NULL) != (hash != NULL));
}

static void drop_tasks(struct facts *f)
{
	for (struct list *first; (first = list_first(&f->waiting)) != NULL;)
		free_task(f, list_entry(first, struct task, in_list));
}

static void pump_tasks(struct facts *);

static void hear_fact(struct facts *f, struct fact *fact)
{
	bool any = fact->doubts > 0;
	for (int i = 0; i < FACT_PART_COUNT; i++)
		any |= fact->part[i].text != NULL;
	if (any && fact_word_good(fact->key, FACT_KEY_MAX))
		loop_post(f->qmgr, &fact->note);
	else
		fact_free(&fact);
}

/* Once for each change: either clock may be the wrong one. */
static void see_whether_ahead(struct facts *f, bool ahead)
{
	if (ahead == f->ahead)
		return;
	f->ahead = ahead;
	log_event(ahead ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "cluster", "node", f->node, "state",
		  ahead ? "ahead" : "ready", "reason",
		  ahead ? "its clock is ahead of Redis' by more than a minute: what it tells of "
			  "hosts is not heard"
			: NULL,
		  NULL);
}

static void on_written(void *owner, const redisReply *reply)
{
	struct facts *f = owner;
	magic_check(f, FACTS_MAGIC);
	if (reply && reply->type == REDIS_REPLY_INTEGER)
		see_whether_ahead(f, reply->integer < 0);
	assert(f->under_way > 0);
	f->under_way--;
	pump_tasks(f);
}

/* Whoever may write to Redis may say anything: the sum of all nodes' must not overflow. */
static int64_t read_doubts(const char *value)
{
	return number_max(0, number_min(strtoll(value, NULL, 10), DOUBTS_MAX));
}

static void on_read(void *owner, const redisReply *reply)
{
	struct facts *f = owner;
	struct fact *fact = NULL;
	int64_t now_ms = date_ms();
	magic_check(f, FACTS_MAGIC);
	assert(f->under_way > 0);
	f->under_way--;
	for (size_t i = 0; resp_is_array(reply, i + 2); i += 2)
		if (strcmp(resp_text(reply->element[i]), "key") == 0 && !fact)
			fact = fact_new(FACT_HEARD, resp_text(reply->element[i + 1]));
	for (size_t i = 0; fact && resp_is_array(reply, i + 2); i += 2) {
		const char *name = resp_text(reply->element[i]);
		const char *value = resp_text(reply->element[i + 1]);
		if (strncmp(name, "doubts:", 7) == 0)
			fact->doubts += read_doubts(value);
		else
			fact_parse_part(fact, name, value, now_ms);
	}
	if (fact)
		hear_fact(f, fact);
	pump_tasks(f);
}

static bool write_fact(struct facts *f, const struct fact *fact)
{
	char kept[24], doubts[24], stamp[FACT_PART_COUNT][24];
	const char *arg[7 + 3 * FACT_PART_COUNT];
	int n = 0;
	char *hash = mem_printf("%shost:%s", link_prefix(f->link), fact->key);
	char *probe = mem_printf("%sprobe:%s", link_prefix(f->link), fact->key);
	snprintf(kept, sizeof kept, "%d", KEPT_MS);
	snprintf(doubts, sizeof doubts, "%" PRId64, fact->doubts);
	const char *fixed[] = {hash, probe, f->node, kept, f->channel, fact->key, doubts};
	for (; n < 7; n++)
		arg[n] = fixed[n];
	for (int i = 0; i < FACT_PART_COUNT; i++) {
		const struct fact_part *p = &fact->part[i];
		if (!p->text)
			continue;
		snprintf(stamp[i], sizeof stamp[i], "%" PRId64, p->stamp);
		arg[n++] = fact_part_name((enum fact_which)i);
		arg[n++] = stamp[i];
		arg[n++] = p->text;
	}
	assert(n <= (int)(sizeof arg / sizeof arg[0]));
	bool sent = link_eval(f->link, &f->write, on_written, f, 2, n, arg);
	free(hash);
	free(probe);
	return sent;
}

static bool do_task(struct facts *f, const struct task *t)
{
	const char *arg[] = {"HGETALL", t->hash};
	return t->fact ? write_fact(f, t->fact) : link_send(f->link, on_read, f, 2, arg, NULL);
}

static int under_way_most(const struct facts *f)
{
	assert(nodes_alive(f->seen) > 0);
	int part = UNDER_WAY_ALL / nodes_alive(f->seen);
	if (part < 1)
		return 1;
	return part < UNDER_WAY_MAX ? part : UNDER_WAY_MAX;
}

static void pump_tasks(struct facts *f)
{
	if (!link_ready(f->link)) {
		drop_tasks(f);
		return;
	}
	while (f->under_way < under_way_most(f) && !list_empty(&f->waiting)) {
		struct task *t = list_entry(list_first(&f->waiting), struct task, in_list);
		f->under_way += do_task(f, t);
		free_task(f, t);
	}
	assert(f->under_way <= UNDER_WAY_MAX);
}

static void scan_hosts(struct facts *, const char *cursor);

static void on_scanned(void *owner, const redisReply *reply)
{
	struct facts *f = owner;
	magic_check(f, FACTS_MAGIC);
	if (!resp_is_array(reply, 2))
		return;
	const redisReply *keys = reply->element[1];
	for (size_t i = 0; resp_is_array(keys, i + 1); i++)
		add_task(f, NULL, resp_text(keys->element[i]));
	if (strcmp(resp_text(reply->element[0]), "0") != 0)
		scan_hosts(f, resp_text(reply->element[0]));
	pump_tasks(f);
}

/* The prefix means itself, whatever is in it. */
static void put_pattern_of_hosts(struct buf *out, const char *prefix)
{
	for (const char *at = prefix; *at; at++) {
		if (strchr("*?[\\", *at))
			buf_puts(out, "\\");
		buf_append(out, at, 1);
	}
	buf_puts(out, "host:*");
}

static void scan_hosts(struct facts *f, const char *cursor)
{
	struct buf pattern = {0};
	put_pattern_of_hosts(&pattern, link_prefix(f->link));
	const char *arg[] = {"SCAN", cursor, "MATCH", buf_cstr(&pattern), "COUNT", "500"};
	link_send(f->link, on_scanned, f, 6, arg, NULL);
	buf_fini(&pattern);
}

static void on_change(void *owner, bool ready)
{
	struct facts *f = owner;
	magic_check(f, FACTS_MAGIC);
	if (!ready) {
		drop_tasks(f);
		return;
	}
	loop_post(f->qmgr, mailbox_note(sizeof(struct note), FACT_TELL));
	scan_hosts(f, "0");
}

/* KEY, and then a line for each part: its name, a tab, its value. */
static void on_published(void *owner, const char *payload, size_t len)
{
	struct facts *f = owner;
	int64_t now_ms = date_ms();
	magic_check(f, FACTS_MAGIC);
	if (memchr(payload, '\0', len))
		return;
	char *text = mem_strndup(payload, len), *rest = text;
	struct fact *fact = fact_new(FACT_HEARD, strsep(&rest, "\n"));
	bool ours = false;
	for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
		char *value = strchr(line, '\t');
		if (!value)
			continue;
		*value++ = '\0';
		if (strcmp(line, "doubts") == 0)
			fact->doubts = read_doubts(value);
		else
			fact_parse_part(fact, line, value, now_ms);
	}
	for (int i = 0; i < FACT_PART_COUNT; i++)
		ours |= fact->part[i].node && strcmp(fact->part[i].node, f->node) == 0;
	if (ours)
		fact_free(&fact);
	else
		hear_fact(f, fact);
	free(text);
}

struct facts *facts_new(struct link *link, const char *node, const struct nodes *seen,
			struct loop *qmgr)
{
	struct facts *f = mem_zalloc(sizeof *f);
	f->magic = FACTS_MAGIC;
	f->link = link;
	f->seen = seen;
	f->node = mem_strdup(node);
	f->channel = link_name_channel(link, "facts");
	f->qmgr = qmgr;
	list_init(&f->waiting);
	link_script_init(&f->write, facts_script);
	link_script_init(&f->probe, facts_probe_script);
	link_hear(link, "facts", on_published, f);
	link_watch(link, on_change, f);
	return f;
}

void facts_free(struct facts **fp)
{
	struct facts *f = mem_take(fp);
	if (!f)
		return;
	magic_check(f, FACTS_MAGIC);
	drop_tasks(f);
	assert(f->nwaiting == 0);
	assert(f->under_way == 0); /* an answer would find it gone */
	magic_clear(f);
	free(f->node);
	free(f->channel);
	free(f);
}

void facts_seen(struct facts *f, struct fact *fact)
{
	add_task(f, fact, NULL);
	pump_tasks(f);
}

static void give_leave(struct fact_probe *p, bool granted)
{
	assert(p->note.type == FACT_PROBE); /* it is answered once */
	p->note.type = FACT_LEAVE;
	p->granted = granted;
	loop_post(p->reply_to, &p->note);
}

/* Away, or an error: each by itself. */
static void on_probe(void *owner, const redisReply *reply)
{
	const struct fact_probe *p = owner;
	assert(p->note.type == FACT_PROBE);
	give_leave(owner, !reply || reply->type != REDIS_REPLY_INTEGER || reply->integer != 0);
}

void facts_probe(struct facts *f, struct fact_probe *p)
{
	assert(p->note.type == FACT_PROBE && p->reply_to);
	char expiry[24];
	char *key = mem_printf("%sprobe:%s", link_prefix(f->link), p->key);
	snprintf(expiry, sizeof expiry, "%d", PROBE_MS);
	const char *arg[] = {key, f->node, expiry};
	if (!link_eval(f->link, &f->probe, on_probe, p, 1, 3, arg))
		give_leave(p, true);
	free(key);
}
