/* SPDX-License-Identifier: ISC */
#include "sim/redis_keys.h"

#include "base/keyed_hash.h"
#include "base/mem.h"
#include "cluster/facts.h"
#include "cluster/link.h"
#include "cluster/nodes.h"
#include "sim/model_redis.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A hash, or a string with an expiry. */
struct redis_key {
	UT_hash_handle hh;
	struct model_lease lease; /* nodes 0: it is none */
	struct model_rate rate;
	int nfield;
	struct redis_field {
		char *name, *value;
	} * field;
	char *text; /* NULL: none */
	int64_t until_us;
	char name[];
};

struct redis_keys {
	int nodes;
	struct redis_key *key;
	struct link_script lease, reserve, fact, beat, look, since, probe;
	uint32_t known; /* a bit for each script */
};

/* A command, and what comes of it. */
struct act {
	struct redis_keys *r;
	const struct redis_command *c;
	char *const *key; /* of a script, or behind the verb */
	char *const *arg; /* behind the keys */
	int narg;
	struct buf *reply;
	struct redis_done *done;
};

static void put_text(struct buf *to, const char *text)
{
	buf_printf(to, "$%zu\r\n", strlen(text));
	buf_puts(to, text);
	buf_puts(to, "\r\n");
}

static void put_number(struct buf *to, int64_t n)
{
	buf_printf(to, ":%" PRId64 "\r\n", n);
}

static struct redis_key *find_key(struct redis_keys *r, const char *name)
{
	struct redis_key *k;
	HASH_FIND_STR(r->key, name, k);
	return k;
}

static struct redis_key *get_key(struct redis_keys *r, const char *name)
{
	struct redis_key *k = find_key(r, name);
	size_t len = strlen(name);
	if (k)
		return k;
	k = mem_zalloc(sizeof *k + len + 1);
	memcpy(k->name, name, len);
	HASH_ADD_KEYPTR(hh, r->key, k->name, len, k);
	return k;
}

static struct redis_field *find_field(struct redis_key *k, const char *name)
{
	for (int i = 0; i < k->nfield; i++)
		if (strcmp(k->field[i].name, name) == 0)
			return &k->field[i];
	return NULL;
}

static void set_field(struct redis_key *k, const char *name, char *value)
{
	struct redis_field *f = find_field(k, name);
	if (f) {
		free(f->value);
	} else {
		k->field = mem_realloc(k->field, (size_t)(k->nfield + 1) * sizeof *k->field);
		f = &k->field[k->nfield++];
		f->name = mem_strdup(name);
	}
	f->value = value;
}

static const char *text_now(const struct redis_key *k, int64_t now_us)
{
	return k && k->text && now_us < k->until_us ? k->text : NULL;
}

static void set_text(struct redis_key *k, const char *text, int64_t until_us)
{
	free(k->text);
	k->text = mem_strdup(text);
	k->until_us = until_us;
}

static int64_t number_of(const char *text)
{
	return strtoll(text, NULL, 10);
}

/* When what is kept here began, in milliseconds: with the first who asked for it. */
static int64_t since_ms(struct act *a, const char *name)
{
	struct redis_key *k = get_key(a->r, name);
	char now[24];
	snprintf(now, sizeof now, "%" PRId64, a->c->now_us / 1000);
	if (!k->text)
		set_text(k, now, INT64_MAX);
	return number_of(k->text);
}

static void do_since(struct act *a)
{
	since_ms(a, a->key[0]);
	put_number(a->reply, 1);
}

static void do_lease(struct act *a)
{
	assert(a->narg > 8);
	struct redis_key *k = get_key(a->r, a->key[0]);
	int64_t now_ms = a->c->now_us / 1000;
	struct lease_ask ask = {number_of(a->arg[1]), number_of(a->arg[2]), number_of(a->arg[3])};
	struct lease_answer answer;
	if (k->lease.nodes == 0)
		model_lease_init(&k->lease, a->r->nodes);
	if (now_ms < since_ms(a, a->key[1]) + number_of(a->arg[8]) && ask.want > ask.hold)
		ask.want = ask.hold > 1 ? ask.hold : 1;
	model_lease_eval(&k->lease, a->c->node, &ask, now_ms, number_of(a->arg[6]), &answer);
	a->done->fields = k->lease.scanned;
	buf_puts(a->reply, "*4\r\n");
	put_number(a->reply, answer.granted);
	put_number(a->reply, answer.fair);
	put_number(a->reply, answer.others);
	put_number(a->reply, answer.wanting);
}

static void do_reserve(struct act *a)
{
	assert(a->narg > 7);
	struct redis_key *k = get_key(a->r, a->key[0]);
	struct reserve_ask ask = {.interval_us = number_of(a->arg[0]),
				  .spent = number_of(a->arg[1]),
				  .want = number_of(a->arg[2]),
				  .ahead_us = number_of(a->arg[3]),
				  .most_us = number_of(a->arg[4]),
				  .forget = number_of(a->arg[5]) != 0,
				  .since = number_of(a->arg[6]),
				  .known_us = number_of(a->arg[7])};
	struct reserve_answer answer;
	answer.since = since_ms(a, a->key[1]);
	if (answer.since != ask.since && k->rate.at_us < a->c->now_us + ask.known_us)
		k->rate.at_us = a->c->now_us + ask.known_us;
	model_rate_eval(&k->rate, &ask, a->c->now_us, &answer);
	buf_puts(a->reply, "*4\r\n");
	put_number(a->reply, answer.granted);
	put_number(a->reply, answer.from_us);
	put_number(a->reply, answer.next_us);
	put_number(a->reply, answer.since);
}

/* "STAMP<TAB>NODE<TAB>TEXT": is what is told newer? */
static bool is_newer(const struct redis_field *known, int64_t stamp, const char *node)
{
	int64_t at = 0;
	const char *by = "";
	if (known) {
		char *rest;
		at = strtoll(known->value, &rest, 10);
		by = *rest == '\t' ? rest + 1 : "";
	}
	size_t len = strcspn(by, "\t");
	int order = strncmp(node, by, len);
	return stamp > at || (stamp == at && (order > 0 || (order == 0 && node[len])));
}

/* The parts that are news. */
static int take_parts(struct act *a, struct redis_key *k, struct buf *said, bool *health)
{
	int n = 0;
	for (int i = 5; i + 2 < a->narg; i += 3) {
		const char *part = a->arg[i];
		int64_t stamp = number_of(a->arg[i + 1]);
		if (!is_newer(find_field(k, part), stamp, a->arg[0]))
			continue;
		char *value = mem_printf("%s\t%s\t%s", a->arg[i + 1], a->arg[0], a->arg[i + 2]);
		buf_printf(said, "\n%s\t%s", part, value);
		set_field(k, part, value);
		*health |= strcmp(part, "health") == 0;
		n++;
	}
	return n;
}

static int64_t sum_of_doubts(const struct redis_key *k)
{
	int64_t sum = 0;
	for (int i = 0; i < k->nfield; i++)
		if (strncmp(k->field[i].name, "doubts:", 7) == 0)
			sum += number_of(k->field[i].value);
	return sum;
}

static void do_fact(struct act *a)
{
	assert(a->narg >= 5);
	struct redis_key *k = get_key(a->r, a->key[0]), *probe = find_key(a->r, a->key[1]);
	struct buf said = {0};
	bool health = false;
	buf_puts(&said, a->arg[3]);
	a->done->fields = k->nfield;
	int n = take_parts(a, k, &said, &health);
	char *own = mem_printf("doubts:%s", a->arg[0]);
	const struct redis_field *doubts = find_field(k, own);
	if (number_of(doubts ? doubts->value : "0") != number_of(a->arg[4])) {
		set_field(k, own, mem_strdup(a->arg[4]));
		n++;
	}
	free(own);
	put_number(a->reply, n);
	if (n > 0) {
		set_field(k, "key", mem_strdup(a->arg[3]));
		buf_printf(&said, "\ndoubts\t%" PRId64, sum_of_doubts(k));
		a->done->published = mem_strdup(buf_cstr(&said));
		a->done->channel = a->arg[2];
	}
	const char *by = text_now(probe, a->c->now_us);
	if (health && by && strcmp(by, a->arg[0]) == 0)
		probe->until_us = a->c->now_us + 500000;
	buf_fini(&said);
}

static void do_beat(struct act *a)
{
	assert(a->narg > 1);
	struct redis_key *k = get_key(a->r, a->key[0]);
	const struct redis_field *before = find_field(k, a->arg[0]);
	put_text(a->reply, before ? before->value : "");
	set_field(k, a->arg[0], mem_printf("%" PRId64 "\t%s", a->c->now_us / 1000, a->arg[1]));
}

static void do_look(struct act *a)
{
	const struct redis_key *k = get_key(a->r, a->key[0]);
	char now[24];
	snprintf(now, sizeof now, "%" PRId64, a->c->now_us / 1000);
	buf_printf(a->reply, "*%d\r\n", 1 + 2 * k->nfield);
	put_text(a->reply, now);
	for (int i = 0; i < k->nfield; i++) {
		put_text(a->reply, k->field[i].name);
		put_text(a->reply, k->field[i].value);
	}
	a->done->fields = k->nfield;
}

static void do_probe(struct act *a)
{
	assert(a->narg > 1);
	struct redis_key *k = get_key(a->r, a->key[0]);
	bool free = !text_now(k, a->c->now_us);
	if (free)
		set_text(k, a->arg[0], a->c->now_us + 1000 * number_of(a->arg[1]));
	put_number(a->reply, free);
}

static void do_hgetall(struct act *a)
{
	const struct redis_key *k = find_key(a->r, a->key[0]);
	int n = k ? k->nfield : 0;
	buf_printf(a->reply, "*%d\r\n", 2 * n);
	for (int i = 0; i < n; i++) {
		put_text(a->reply, k->field[i].name);
		put_text(a->reply, k->field[i].value);
	}
	a->done->fields = n;
}

static bool is_hash_of_host(const struct redis_key *k, const char *pattern)
{
	return k->nfield > 0 && strncmp(k->name, pattern, strlen(pattern) - 1) == 0;
}

/* SCAN cursor MATCH pattern COUNT n: the cursor is how many keys were seen. */
static void do_scan(struct act *a)
{
	assert(a->c->n > 5);
	int64_t from = number_of(a->key[0]), most = number_of(a->key[4]), at = 0, n = 0;
	char cursor[24];
	struct buf some = {0};
	for (struct redis_key *k = a->r->key; k && at < from + most; k = k->hh.next, at++) {
		if (at < from || !is_hash_of_host(k, a->key[2]))
			continue;
		put_text(&some, k->name);
		n++;
	}
	snprintf(cursor, sizeof cursor, "%" PRId64, at < HASH_COUNT(a->r->key) ? at : 0);
	buf_puts(a->reply, "*2\r\n");
	put_text(a->reply, cursor);
	buf_printf(a->reply, "*%" PRId64 "\r\n", n);
	buf_append(a->reply, buf_data(&some), buf_len(&some));
	a->done->fields = at - from;
	buf_fini(&some);
}

static void do_ping(struct act *a)
{
	buf_puts(a->reply, "+PONG\r\n");
}

struct work {
	const char *word; /* of a command; NULL: of a script */
	int nkeys;
	enum redis_op op;
	void (*act)(struct act *);
};

static const struct work works[] = {
	{NULL, 2, REDIS_LEASE, do_lease}, {NULL, 2, REDIS_RESERVE, do_reserve},
	{NULL, 2, REDIS_FACT, do_fact},	  {NULL, 1, REDIS_BEAT, do_beat},
	{NULL, 1, REDIS_LOOK, do_look},	  {NULL, 3, REDIS_OTHER, do_since},
	{NULL, 1, REDIS_PROBE, do_probe}, {"HGETALL", 0, REDIS_READ, do_hgetall},
	{"SCAN", 0, REDIS_READ, do_scan}, {"PING", 0, REDIS_PING, do_ping},
};

enum { SCRIPTS = 7, WORKS = sizeof works / sizeof works[0] };

static const struct link_script *script_of(const struct redis_keys *r, int i)
{
	assert(i >= 0 && i < SCRIPTS);
	const struct link_script *all[SCRIPTS] = {&r->lease, &r->reserve, &r->fact, &r->beat,
						  &r->look,  &r->since,	  &r->probe};
	return all[i];
}

/* Which one is it? -1: one that nobody has sent in full yet, or none of ours. */
static int find_script(struct redis_keys *r, const struct redis_command *c)
{
	bool whole = strcmp(c->arg[0], "EVAL") == 0;
	for (int i = 0; i < SCRIPTS; i++) {
		const struct link_script *s = script_of(r, i);
		if (strcmp(c->arg[1], whole ? s->text : s->sha) != 0)
			continue;
		if (whole)
			r->known |= 1U << i;
		return r->known & 1U << i ? i : -1;
	}
	return -1;
}

static int find_work(struct redis_keys *r, const struct redis_command *c)
{
	if (strncmp(c->arg[0], "EVAL", 4) == 0)
		return find_script(r, c);
	for (int i = SCRIPTS; i < WORKS; i++)
		if (strcmp(c->arg[0], works[i].word) == 0)
			return i;
	return -1;
}

void redis_keys_do(struct redis_keys *r, const struct redis_command *c, struct buf *reply,
		   struct redis_done *done)
{
	int i = find_work(r, c);
	int skip = i >= 0 && !works[i].word ? 3 : 1;
	*done = (struct redis_done){.op = REDIS_OTHER};
	if (i < 0) {
		buf_puts(reply, strncmp(c->arg[0], "EVAL", 4) == 0 ? "-NOSCRIPT unknown\r\n"
								   : "-ERR unknown\r\n");
		return;
	}
	struct act a = {.r = r,
			.c = c,
			.key = c->arg + skip,
			.arg = c->arg + skip + works[i].nkeys,
			.narg = c->n - skip - works[i].nkeys,
			.reply = reply,
			.done = done};
	assert(a.narg >= 0);
	done->op = works[i].op;
	done->script = !works[i].word;
	works[i].act(&a);
}

struct redis_keys *redis_keys_new(int nodes)
{
	struct redis_keys *r = mem_zalloc(sizeof *r);
	r->nodes = nodes;
	link_script_init(&r->lease, lease_script);
	link_script_init(&r->reserve, reserve_script);
	link_script_init(&r->fact, facts_script);
	link_script_init(&r->beat, nodes_beat_script);
	link_script_init(&r->look, nodes_look_script);
	link_script_init(&r->since, link_since_script);
	link_script_init(&r->probe, facts_probe_script);
	return r;
}

void redis_keys_free(struct redis_keys **rp)
{
	struct redis_keys *r = mem_take(rp);
	hash_each (struct redis_key, k, r->key) {
		HASH_DEL(r->key, k);
		for (int i = 0; i < k->nfield; i++) {
			free(k->field[i].name);
			free(k->field[i].value);
		}
		free(k->field);
		free(k->text);
		model_lease_fini(&k->lease);
		free(k);
	}
	free(r);
}
