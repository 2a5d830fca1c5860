/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/host_text.h"

#include "base/address.h"
#include "base/mem.h"
#include "qmgr/dest/fields.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	DEPTH_MAX = 1000,
	MODE_MAX = CONNECTION_NO_CHUNKING | CONNECTION_LOCKSTEP | CONNECTION_APART |
		   CONNECTION_SMALL_HELLO,
};

void host_text_put_reply(struct buf *to, const struct verdict *v)
{
	if (!v)
		return;
	buf_printf(to, "\tcode=%d\tdsn=%s\tby=%s", v->code, v->dsn, v->host);
	fields_put_moment(to, "when", v->when_ms);
	buf_printf(to, "\twhy=%s", v->text);
}

static void put_why(struct buf *to, const struct host *h)
{
	if (h->why)
		buf_printf(to, "\tcalled=%s", h->why_name);
	host_text_put_reply(to, h->why);
}

static void put_health(struct buf *to, const struct host *h)
{
	fields_put_number(to, "failures", h->failures);
	fields_put_time(to, "retry", h->retry_ms);
	fields_put_number(to, "proven", h->proven);
	put_why(to, h);
}

static void put_speed(struct buf *to, const struct host *h)
{
	fields_put_number(to, "r", h->speed.r_us);
	fields_put_number(to, "s", h->speed.s_us);
	fields_put_number(to, "setup", h->speed.setup_us);
}

static void put_limit(struct buf *to, const struct host *h)
{
	fields_put_number(to, "limit", h->limit.n);
	fields_put_number(to, "limit_wait", h->limit.wait_ms);
	fields_put_time(to, "limit_again", h->limit.again_ms);
}

static void put_pipeline(struct buf *to, const struct host *h)
{
	fields_put_number(to, "depth", h->depth > 1 ? h->depth : 0);
	fields_put_number(to, "mode", h->mode);
	fields_put_time(to, "simple", h->mode_until_ms);
	fields_put_number(to, "messages", h->messages_until_ms > 0 ? h->messages_most : 0);
	fields_put_time(to, "limited", h->messages_until_ms);
	fields_put_number(to, "recipients", h->recipients_until_ms > 0 ? h->recipients_most : 0);
	fields_put_time(to, "fewer", h->recipients_until_ms);
}

static void put_pace(struct buf *to, const struct host *h)
{
	fields_put_number(to, "pace", host_pace_units(h->pace.rate));
	if (h->pace.rate <= 0)
		return;
	fields_put_number(to, "since", h->pace.since_ms);
	host_text_put_reply(to, h->pace.why);
}

void host_text_put_plain(struct buf *to, const struct host_plain *p)
{
	buf_printf(to, "\tname=%s", p->name);
	fields_put_time(to, "until", p->until_ms);
}

static void put_address(struct buf *to, const struct host *h)
{
	char where[ADDRESS_WHERE_MAX];
	buf_printf(to, "\taddress=%s\tport=%d", address_where(&h->address, where),
		   address_port(&h->address));
}

void host_text_put(struct buf *to, const struct host *h, enum fact_which which)
{
	static void (*const put[])(struct buf *, const struct host *) = {
		[FACT_HEALTH] = put_health,	[FACT_SPEED] = put_speed, [FACT_LIMIT] = put_limit,
		[FACT_PIPELINE] = put_pipeline, [FACT_PACE] = put_pace,
	};
	assert(which < FACT_PART_COUNT);
	if (which == FACT_HEALTH)
		put_address(to, h);
	if (which != FACT_PLAIN)
		put[which](to, h);
	else if (h->plain)
		host_text_put_plain(to, h->plain);
}

struct verdict *host_text_reply(const char *line, struct buf *room)
{
	const char *text = fields_get(line, "why", room);
	if (!text)
		return NULL;
	char *why = mem_strdup(text), *dsn = mem_strdup(fields_get(line, "dsn", room));
	int code = (int)fields_number(line, "code", room);
	int64_t when_ms = fields_moment(line, "when", room);
	bool good = dsn && strlen(dsn) < sizeof((struct verdict *)0)->dsn &&
		    (code == 0 || (code > 199 && code < 600));
	struct verdict *v = verdict_at(VERDICT_DEFERRED, good ? code : 0, good ? dsn : NULL,
				       fields_get(line, "by", room), why, when_ms);
	free(why);
	free(dsn);
	return v;
}

static void read_why(struct host *h, const char *line, struct buf *room)
{
	struct verdict *why = host_text_reply(line, room);
	if (!why)
		return;
	const char *called = fields_get(line, "called", room);
	verdict_unref(h->why);
	free(h->why_name);
	h->why = why;
	h->why_name = mem_strdup(called ? called : "");
}

static void read_speed(struct host *h, const char *line, struct buf *room)
{
	const int64_t hour_us = INT64_C(3600000000);
	h->speed.r_us = fields_measured(line, "r", room, hour_us);
	h->speed.s_us = fields_measured(line, "s", room, hour_us);
	h->speed.setup_us = fields_measured(line, "setup", room, hour_us);
}

static void read_limit(struct host *h, const char *line, struct buf *room)
{
	h->limit.n = (int)fields_measured(line, "limit", room, HOST_COUNT_MAX);
	h->limit.wait_ms = fields_measured(line, "limit_wait", room, HOST_LIMIT_MOST_MS);
	h->limit.again_ms = fields_future(line, "limit_again", room, HOST_LIMIT_MOST_MS);
}

static void read_messages(struct host *h, const char *line, struct buf *room)
{
	h->messages_most = (int)fields_measured(line, "messages", room, HOST_COUNT_MAX);
	if (h->messages_most > 0)
		h->messages_until_ms = fields_future(line, "limited", room, HOST_MODE_MS);
}

static void read_recipients(struct host *h, const char *line, struct buf *room)
{
	h->recipients_most = (uint32_t)fields_measured(line, "recipients", room, HOST_COUNT_MAX);
	if (h->recipients_most > 0)
		h->recipients_until_ms = fields_future(line, "fewer", room, HOST_MODE_MS);
}

static void read_depth(struct host *h, const char *line, struct buf *room)
{
	int64_t depth = fields_number(line, "depth", room);
	if (depth > 1 && depth <= DEPTH_MAX)
		h->depth = (int)depth;
}

static void read_mode(struct host *h, const char *line, struct buf *room)
{
	int64_t mode = fields_number(line, "mode", room);
	if (mode > CONNECTION_FULL && mode <= MODE_MAX) {
		h->mode = (enum connection_mode)mode;
		h->mode_until_ms = fields_future(line, "simple", room, HOST_MODE_MS);
	}
}

/* The host was out: its probe is due when it was to be, or now. */
static void read_failures(struct host *h, const char *line, struct buf *room)
{
	h->failures = (int)fields_measured(line, "failures", room, HOST_COUNT_MAX);
	if (h->failures == 0)
		return;
	read_why(h, line, room);
	if (h->why)
		host_recall_out(h, fields_future(line, "retry", room, HOST_BACKOFF_KEPT_MS));
}

bool host_text_address(const char *text, union address *to)
{
	struct buf room = {0};
	int64_t port = fields_number(text, "port", &room);
	const char *where = fields_get(text, "address", &room);
	bool good = where && (address_parse_unix(where, to) ||
			      (port > 0 && port <= 65535 && address_parse(where, (int)port, to)));
	buf_fini(&room);
	return good;
}

static void read_pace(struct host *h, const char *line, struct buf *room)
{
	int64_t pace = fields_measured(line, "pace", room, HOST_PACE_MOST);
	struct verdict *why = host_text_reply(line, room);
	host_paced(h, (double)pace / HOST_PACE_UNIT, fields_number(line, "since", room), why);
	verdict_unref(why);
}

static void read_health(struct host *h, const char *text, struct buf *room)
{
	h->proven = fields_number(text, "proven", room) > 0;
	h->failures = (int)fields_measured(text, "failures", room, HOST_COUNT_MAX);
	h->retry_ms = fields_future(text, "retry", room, HOST_BACKOFF_KEPT_MS);
	read_why(h, text, room);
}

void host_text_read(struct host *h, enum fact_which which, const char *text)
{
	assert(which < FACT_PART_COUNT);
	struct buf room = {0};
	if (which == FACT_HEALTH)
		read_health(h, text, &room);
	if (which == FACT_SPEED)
		read_speed(h, text, &room);
	if (which == FACT_LIMIT)
		read_limit(h, text, &room);
	if (which == FACT_PACE)
		read_pace(h, text, &room);
	if (which == FACT_PIPELINE) {
		h->depth = 1;
		h->mode = CONNECTION_FULL;
		h->mode_until_ms = h->messages_until_ms = h->recipients_until_ms = 0;
		read_depth(h, text, &room);
		read_mode(h, text, &room);
		read_messages(h, text, &room);
		read_recipients(h, text, &room);
	}
	int64_t until_ms =
		which == FACT_PLAIN ? fields_future(text, "until", &room, HOST_PLAIN_MS) : 0;
	const char *name = until_ms ? fields_get(text, "name", &room) : NULL;
	if (name)
		host_set_plain(h, name, until_ms);
	buf_fini(&room);
}

void host_text_put_all(struct buf *to, const struct host *h)
{
	put_address(to, h);
	fields_put_time(to, "opened", h->opened_ms);
	put_pipeline(to, h);
	put_limit(to, h);
	put_speed(to, h);
	put_health(to, h);
}

void host_text_read_all(struct host *h, const char *line, struct buf *room)
{
	h->proven = fields_number(line, "proven", room) > 0;
	read_failures(h, line, room);
	read_depth(h, line, room);
	read_mode(h, line, room);
	read_messages(h, line, room);
	read_recipients(h, line, room);
	read_speed(h, line, room);
	read_limit(h, line, room);
}
