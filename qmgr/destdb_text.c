/* SPDX-License-Identifier: ISC */
#include "qmgr/destdb_text.h"

#include "base/address.h"
#include "base/clock.h"
#include "base/mem.h"
#include "qmgr/destdb.h"
#include "qmgr/suspend.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	DEPTH_MAX = 1000,
	MODE_MAX = CONNECTION_NO_CHUNKING | CONNECTION_LOCKSTEP | CONNECTION_APART,
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

static void put_why(struct buf *to, const struct verdict *v)
{
	if (v)
		buf_printf(to, "\tcode=%d\tdsn=%s\tby=%s\twhen=%" PRId64 "\twhy=%s", v->code,
			   v->dsn, v->host, v->when_ms, v->text);
}

static bool worth_keeping(const struct host *h, int64_t now_ms)
{
	return h->failures > 0 || h->plain_until_ms > now_ms || h->depth > 1 ||
	       h->mode_until_ms > now_ms || h->messages_until_ms > now_ms;
}

static void put_host(struct buf *to, const struct host *h)
{
	char ip[64];
	buf_printf(to, "host\tkey=%s\tname=%s\taddress=%s\tport=%d", h->key, h->name,
		   address_text(&h->address, ip), address_port(&h->address));
	if (h->failures > 0)
		buf_printf(to, "\tfailures=%d", h->failures);
	put_time(to, "retry", h->retry_ms);
	put_time(to, "plain", h->plain_until_ms);
	if (h->depth > 1)
		buf_printf(to, "\tdepth=%d", h->depth);
	if (h->mode_until_ms > 0)
		buf_printf(to, "\tmode=%d", (int)h->mode);
	put_time(to, "simple", h->mode_until_ms);
	if (h->messages_until_ms > 0)
		buf_printf(to, "\tmessages=%d", h->messages_most);
	put_time(to, "limited", h->messages_until_ms);
	put_why(to, h->why);
	buf_puts(to, "\n");
}

void destdb_write(struct qmgr *q, struct buf *to)
{
	int64_t now_ms = clock_steady_ms();
	for (const struct host *h = q->hosts; h; h = h->hh.next)
		if (worth_keeping(h, now_ms))
			put_host(to, h);
	for (const struct suspended *n = q->suspended; n; n = n->hh.next)
		buf_printf(to, "suspended\t%s=%s\n", n->host ? "host" : "site", n->name);
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
	int64_t in_ms = number(line, name, room) - clock_wall_ms();
	if (in_ms <= 0)
		return 0;
	return clock_steady_ms() + (in_ms < most_ms ? in_ms : most_ms);
}

static void read_why(struct host *h, const char *line, struct buf *room)
{
	const char *text = field(line, "why", room);
	if (!text)
		return;
	char *why = mem_strdup(text), *dsn = mem_strdup(field(line, "dsn", room));
	int code = (int)number(line, "code", room);
	int64_t when_ms = number(line, "when", room);
	bool good = dsn && strlen(dsn) < sizeof h->why->dsn &&
		    (code == 0 || (code > 199 && code < 600));
	verdict_unref(h->why);
	h->why = verdict_at(VERDICT_DEFERRED, good ? code : 0, good ? dsn : NULL,
			    field(line, "by", room), why, when_ms);
	free(why);
	free(dsn);
}

static void read_pipeline(struct host *h, const char *line, struct buf *room)
{
	int64_t depth = number(line, "depth", room), mode = number(line, "mode", room);
	if (depth > 1 && depth <= DEPTH_MAX)
		h->depth = (int)depth;
	if (mode > CONNECTION_FULL && mode <= MODE_MAX) {
		h->mode = (enum connection_mode)mode;
		h->mode_until_ms = future(line, "simple", room, HOST_MODE_MS);
	}
}

static void read_limit(struct host *h, const char *line, struct buf *room)
{
	int64_t messages = number(line, "messages", room);
	if (messages > 0 && messages < INT_MAX) {
		h->messages_most = (int)messages;
		h->messages_until_ms = future(line, "limited", room, HOST_MODE_MS);
	}
}

static void read_host(struct qmgr *q, const char *line, struct buf *room)
{
	union address address;
	int64_t port = number(line, "port", room);
	const char *ip = field(line, "address", room);
	if (!ip || port < 1 || port > 65535 || !address_parse(ip, (int)port, &address))
		return;
	char *name = mem_strdup(field(line, "name", room));
	const char *key = name ? field(line, "key", room) : NULL;
	if (key) {
		struct host *h = destdb_host(q, key, name, &address);
		int64_t failures = number(line, "failures", room);
		h->failures = failures > 0 && failures < 1000000 ? (int)failures : 0;
		h->retry_ms = future(line, "retry", room, q->conf->queue.minimal_backoff_time);
		h->plain_until_ms = future(line, "plain", room, HOST_PLAIN_MS);
		h->opened_ms = clock_steady_ms(); /* used lately */
		read_pipeline(h, line, room);
		read_limit(h, line, room);
		if (h->failures > 0)
			read_why(h, line, room);
		if (!h->why)
			h->retry_ms = 0; /* being out wants a reason */
	}
	free(name);
}

static void read_suspended(struct qmgr *q, const char *line, struct buf *room)
{
	const char *name;
	if ((name = field(line, "site", room)))
		suspend_begin(q, name, false);
	else if ((name = field(line, "host", room)))
		suspend_begin(q, name, true);
}

void destdb_read(struct qmgr *q, const char *text)
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
			read_host(q, one, &room);
		else if (strncmp(one, "suspended\t", 10) == 0)
			read_suspended(q, one, &room);
		text += len + (text[len] == '\n');
	}
	buf_fini(&line);
	buf_fini(&room);
	q->learnt = false; /* all of it is on disk */
}
