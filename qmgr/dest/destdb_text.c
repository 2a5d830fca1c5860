/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/destdb_text.h"

#include "base/address.h"
#include "base/clock.h"
#include "base/mem.h"
#include "qmgr/dest/destdb.h"
#include "qmgr/dest/pooling.h"
#include "qmgr/dest/remembered.h"
#include "qmgr/dest/suspend.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	DEPTH_MAX = 1000,
	MODE_MAX = CONNECTION_NO_CHUNKING | CONNECTION_LOCKSTEP | CONNECTION_APART |
		   CONNECTION_SMALL_HELLO,
};

/* From the steady clock to the wall clock; 0 stays 0. */
static int64_t to_wall(int64_t steady_ms)
{
	return steady_ms ? steady_ms - clock_steady_ms() + clock_wall_ms() : 0;
}

static void put_time(struct buf *to, const char *name, int64_t steady_ms)
{
	if (steady_ms > 0)
		buf_printf(to, "\t%s=%" PRId64, name, to_wall(steady_ms));
}

static void put_number(struct buf *to, const char *name, int64_t n)
{
	if (n > 0)
		buf_printf(to, "\t%s=%" PRId64, name, n);
}

static void put_why(struct buf *to, const struct host *h)
{
	const struct verdict *v = h->why;
	if (v)
		buf_printf(to, "\tcode=%d\tdsn=%s\tby=%s\tcalled=%s\twhen=%" PRId64 "\twhy=%s",
			   v->code, v->dsn, v->host, h->why_name, v->when_ms, v->text);
}

static bool worth_keeping(const struct host *h, int64_t now_ms)
{
	return h->proven || h->failures > 0 || h->plain || h->depth > 1 ||
	       h->mode_until_ms > now_ms || h->messages_until_ms > now_ms || h->limit.n > 0;
}

static void put_health(struct buf *to, const struct host *h)
{
	put_number(to, "failures", h->failures);
	put_time(to, "retry", h->retry_ms);
	put_number(to, "proven", h->proven);
	put_why(to, h);
}

static void put_speed(struct buf *to, const struct host *h)
{
	put_number(to, "r", h->speed.r_us);
	put_number(to, "s", h->speed.s_us);
	put_number(to, "setup", h->speed.setup_us);
}

static void put_limit(struct buf *to, const struct host *h)
{
	put_number(to, "limit", h->limit.n);
	put_number(to, "limit_wait", h->limit.wait_ms);
	put_time(to, "limit_again", h->limit.again_ms);
}

static void put_pipeline(struct buf *to, const struct host *h)
{
	put_number(to, "depth", h->depth > 1 ? h->depth : 0);
	put_number(to, "mode", h->mode);
	put_time(to, "simple", h->mode_until_ms);
	put_number(to, "messages", h->messages_until_ms > 0 ? h->messages_most : 0);
	put_time(to, "limited", h->messages_until_ms);
}

static void put_plain(struct buf *to, const struct host_plain *p)
{
	buf_printf(to, "\tname=%s", p->name);
	put_time(to, "until", p->until_ms);
}

static void put_host(struct buf *to, const struct host *h)
{
	char where[ADDRESS_WHERE_MAX];
	buf_printf(to, "host\tkey=%s\taddress=%s\tport=%d", h->key,
		   address_where(&h->address, where), address_port(&h->address));
	put_time(to, "opened", h->opened_ms);
	put_pipeline(to, h);
	put_limit(to, h);
	put_speed(to, h);
	put_health(to, h);
	buf_puts(to, "\n");
	for (const struct host_plain *p = h->plain; p; p = p->next) {
		buf_printf(to, "plain\tkey=%s", h->key);
		put_plain(to, p);
		buf_puts(to, "\n");
	}
}

void destdb_put_part(struct buf *to, const struct host *h, enum fact_which which)
{
	static void (*const put[])(struct buf *, const struct host *) = {
		[FACT_HEALTH] = put_health,
		[FACT_SPEED] = put_speed,
		[FACT_LIMIT] = put_limit,
		[FACT_PIPELINE] = put_pipeline,
	};
	char where[ADDRESS_WHERE_MAX];
	if (which == FACT_HEALTH)
		buf_printf(to, "\taddress=%s\tport=%d", address_where(&h->address, where),
			   address_port(&h->address));
	if (which != FACT_PLAIN)
		put[which](to, h);
	else if (h->plain)
		put_plain(to, h->plain);
}

void destdb_write(struct destdb *db, struct buf *to)
{
	int64_t now_ms = clock_steady_ms();
	for (const struct host *h = db->hosts; h; h = h->hh.next)
		if (worth_keeping(h, now_ms))
			put_host(to, h);
	for (const struct site *s = db->sites; s; s = s->hh.next)
		remembered_keep(s);
	for (const struct remembered *r = db->remembered; r; r = r->hh.next)
		buf_printf(to, "site\tkey=%s\twindow=%d\tat=%" PRId64 "\n", r->key, r->concurrency,
			   r->at_ms);
	for (const struct suspended *n = db->suspended; n; n = n->hh.next)
		buf_printf(to, "suspended\t%s=%s\n", suspend_kind_name(n->kind), n->name);
}

/* The value of a field of this line, in room; NULL: it has none. */
static const char *field(const char *line, const char *name, struct buf *room)
{
	size_t len = strlen(name);
	for (const char *at = strchr(line, '\t'); at; at = strchr(at, '\t')) {
		at++;
		if (strncmp(at, name, len) != 0 || at[len] != '=')
			continue;
		buf_clear(room);
		buf_append(room, at + len + 1, strcspn(at + len + 1, "\t"));
		return buf_cstr(room);
	}
	return NULL;
}

static int64_t number(const char *line, const char *name, struct buf *room)
{
	const char *text = field(line, name, room);
	return text ? strtoll(text, NULL, 10) : 0;
}

/* To the steady clock. A wall clock that was put back must not keep a host out for years. */
static int64_t future(const char *line, const char *name, struct buf *room, int64_t most_ms)
{
	int64_t at_ms = number(line, name, room), wall_ms = clock_wall_ms();
	if (at_ms <= wall_ms)
		return 0;
	int64_t in_ms = at_ms - wall_ms;
	return clock_steady_ms() + (in_ms < most_ms ? in_ms : most_ms);
}

static void read_why(struct host *h, const char *line, struct buf *room)
{
	const char *text = field(line, "why", room);
	if (!text)
		return;
	char *why = mem_strdup(text), *dsn = mem_strdup(field(line, "dsn", room));
	char *called = mem_strdup(field(line, "called", room));
	int code = (int)number(line, "code", room);
	int64_t when_ms = number(line, "when", room);
	bool good = dsn && strlen(dsn) < sizeof h->why->dsn &&
		    (code == 0 || (code > 199 && code < 600));
	verdict_unref(h->why);
	free(h->why_name);
	h->why = verdict_at(VERDICT_DEFERRED, good ? code : 0, good ? dsn : NULL,
			    field(line, "by", room), why, when_ms);
	h->why_name = called ? called : mem_strdup("");
	free(why);
	free(dsn);
}

/* What was measured can't be negative, or more than this. */
static int64_t measured(const char *line, const char *name, struct buf *room, int64_t most)
{
	int64_t n = number(line, name, room);
	return n > 0 && n <= most ? n : 0;
}

static void read_speed(struct host *h, const char *line, struct buf *room)
{
	const int64_t hour_us = INT64_C(3600000000);
	h->speed.r_us = measured(line, "r", room, hour_us);
	h->speed.s_us = measured(line, "s", room, hour_us);
	h->speed.setup_us = measured(line, "setup", room, hour_us);
}

static void read_limit(struct host *h, const char *line, struct buf *room)
{
	h->limit.n = (int)measured(line, "limit", room, HOST_COUNT_MAX);
	h->limit.wait_ms = measured(line, "limit_wait", room, HOST_LIMIT_MOST_MS);
	h->limit.again_ms = future(line, "limit_again", room, HOST_LIMIT_MOST_MS);
}

static void read_messages(struct host *h, const char *line, struct buf *room)
{
	h->messages_most = (int)measured(line, "messages", room, HOST_COUNT_MAX);
	if (h->messages_most > 0)
		h->messages_until_ms = future(line, "limited", room, HOST_MODE_MS);
}

static void read_depth(struct host *h, const char *line, struct buf *room)
{
	int64_t depth = number(line, "depth", room);
	if (depth > 1 && depth <= DEPTH_MAX)
		h->depth = (int)depth;
}

static void read_mode(struct host *h, const char *line, struct buf *room)
{
	int64_t mode = number(line, "mode", room);
	if (mode > CONNECTION_FULL && mode <= MODE_MAX) {
		h->mode = (enum connection_mode)mode;
		h->mode_until_ms = future(line, "simple", room, HOST_MODE_MS);
	}
}

/* It was out: its probe is due when it was to be, or now. */
static void read_failures(struct host *h, const char *line, struct buf *room)
{
	h->failures = (int)measured(line, "failures", room, HOST_COUNT_MAX);
	if (h->failures == 0)
		return;
	read_why(h, line, room);
	if (h->why)
		host_recall_out(h, future(line, "retry", room, HOST_BACKOFF_KEPT_MS));
}

static bool read_address(const char *line, union address *to, struct buf *room)
{
	int64_t port = number(line, "port", room);
	const char *where = field(line, "address", room);
	return where && (address_parse_unix(where, to) ||
			 (port > 0 && port <= 65535 && address_parse(where, (int)port, to)));
}

struct host *destdb_read_address(struct destdb *db, const char *key, const char *text)
{
	struct buf room = {0};
	union address address;
	struct host *h = NULL;
	if (read_address(text, &address, &room)) {
		h = destdb_host(db, key, &address);
		h->opened_ms = clock_steady_ms(); /* used lately */
	}
	buf_fini(&room);
	return h;
}

static void read_health(struct host *h, const char *text, struct buf *room)
{
	h->proven = number(text, "proven", room) > 0;
	h->failures = (int)measured(text, "failures", room, HOST_COUNT_MAX);
	h->retry_ms = future(text, "retry", room, HOST_BACKOFF_KEPT_MS);
	read_why(h, text, room);
}

void destdb_read_part(struct host *h, enum fact_which which, const char *text)
{
	struct buf room = {0};
	if (which == FACT_HEALTH)
		read_health(h, text, &room);
	if (which == FACT_SPEED)
		read_speed(h, text, &room);
	if (which == FACT_LIMIT)
		read_limit(h, text, &room);
	if (which == FACT_PIPELINE) {
		h->depth = 1;
		h->mode = CONNECTION_FULL;
		h->mode_until_ms = h->messages_until_ms = 0;
		read_depth(h, text, &room);
		read_mode(h, text, &room);
		read_messages(h, text, &room);
	}
	int64_t until_ms = which == FACT_PLAIN ? future(text, "until", &room, HOST_PLAIN_MS) : 0;
	const char *name = until_ms ? field(text, "name", &room) : NULL;
	if (name)
		host_set_plain(h, name, until_ms);
	buf_fini(&room);
}

static void read_host(struct destdb *db, const char *line, struct buf *room)
{
	union address address;
	const char *key = read_address(line, &address, room) ? field(line, "key", room) : NULL;
	if (!key)
		return;
	struct host *h = destdb_host(db, key, &address);
	h->opened_ms = clock_steady_ms(); /* used lately */
	h->proven = number(line, "proven", room) > 0;
	read_failures(h, line, room);
	read_depth(h, line, room);
	read_mode(h, line, room);
	read_messages(h, line, room);
	read_speed(h, line, room);
	read_limit(h, line, room);
	pooling_quiet(h);
}

static void read_plain(struct destdb *db, const char *line, struct buf *room)
{
	struct host *h = NULL;
	const char *key = field(line, "key", room);
	if (key)
		HASH_FIND_STR(db->hosts, key, h);
	int64_t until_ms = future(line, "until", room, HOST_PLAIN_MS);
	const char *name = h && until_ms ? field(line, "name", room) : NULL;
	if (name)
		host_set_plain(h, name, until_ms);
}

static void read_site(struct destdb *db, const char *line, struct buf *room)
{
	int window = (int)measured(line, "window", room, HOST_COUNT_MAX);
	int64_t at_ms = number(line, "at", room);
	const char *key = field(line, "key", room);
	if (key && window > 0)
		remembered_add(db, key, window, at_ms);
}

static void read_suspended(struct destdb *db, const char *line, struct buf *room)
{
	for (int kind = 0; kind < SUSPEND_KIND_COUNT; kind++) {
		const char *name = field(line, suspend_kind_name((enum suspend_kind)kind), room);
		if (name)
			suspend_begin(db, name, (enum suspend_kind)kind);
	}
}

void destdb_read(struct destdb *db, const char *text)
{
	struct buf line, room;
	buf_init(&line);
	buf_init(&room);
	while (*text) {
		size_t len = strcspn(text, "\n");
		buf_clear(&line);
		buf_append(&line, text, len);
		const char *one = buf_cstr(&line);
		if (strncmp(one, "host\t", 5) == 0)
			read_host(db, one, &room);
		else if (strncmp(one, "plain\t", 6) == 0)
			read_plain(db, one, &room);
		else if (strncmp(one, "site\t", 5) == 0)
			read_site(db, one, &room);
		else if (strncmp(one, "suspended\t", 10) == 0)
			read_suspended(db, one, &room);
		text += len + (text[len] == '\n');
	}
	buf_fini(&line);
	buf_fini(&room);
	db->learnt = false; /* all of it is on disk */
}
