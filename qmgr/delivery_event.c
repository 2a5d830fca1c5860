/* SPDX-License-Identifier: ISC */
#include "qmgr/delivery_event.h"

#include "base/clock.h"
#include "base/date.h"
#include "base/event_line.h"
#include "base/log.h"
#include "base/log_format.h"
#include "base/metrics.h"
#include "base/reason.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TELL_LOST_MS = 60000 };

static void put_text(struct buf *to, const char *key, const char *value)
{
	if (!value)
		return;
	buf_printf(to, "\"%s\":", key);
	log_json_string(to, value);
	buf_puts(to, ",");
}

/* Each has a name of its own, greater than those before, also over restarts: whoever gets one twice
 * knows it. */
static uint64_t next_id(struct qmgr *q)
{
	if (q->events.id == 0)
		q->events.id = (uint64_t)date_ms() * 1000;
	return ++q->events.id;
}

static void begin_line(struct qmgr *q, struct buf *to, const char *event)
{
	buf_puts(to, "{");
	log_json_time(to, "time", date_ms());
	buf_printf(to, "\"event\":\"%s\",\"event_id\":\"%016" PRIx64 "\",", event, next_id(q));
}

static void put_delays(struct buf *to, const struct delivery_event *d)
{
	buf_printf(to, "\"delay\":%s,",
		   log_seconds(d->now_ms - envelope_began_ms(d->message->work.envelope)));
	buf_printf(to, "\"delays\":[%s,%s,%s,%s]", log_seconds(d->before_ms),
		   log_seconds(d->queued_ms), log_seconds(d->setup_ms),
		   log_seconds(d->transmission_ms));
}

static void put_reason(struct buf *to, const char *key, const struct verdict *v)
{
	if (v && v->class != VERDICT_SENT)
		put_text(to, key, reason_word(reason_of(v)));
}

static void put_line(struct qmgr *q, struct buf *to, const struct delivery_event *d)
{
	const struct verdict *v = d->verdict;
	const struct envelope *e = d->message->work.envelope;
	bool final = v->class == VERDICT_SENT || v->class == VERDICT_FAILED;
	begin_line(q, to, verdict_class_name(v->class));
	put_text(to, "id", log_id(d->message->work.id));
	put_text(to, "envid", e->envid);
	put_text(to, "from", e->sender);
	put_text(to, "flow", envelope_flow(e));
	put_text(to, "user", e->user);
	put_text(to, "client", e->client);
	put_text(to, "to", d->recipient->address);
	put_text(to, "orig_to", d->recipient->orcpt);
	put_text(to, "site", d->site);
	put_text(to, "transport", d->transport);
	put_text(to, "source", d->source);
	put_text(to, "relay", v->host[0] ? v->host : NULL);
	if (v->code)
		buf_printf(to, "\"code\":%d,", v->code);
	put_text(to, "dsn", v->dsn);
	put_text(to, "reply", v->text);
	put_reason(to, "reason", v);
	put_reason(to, "cause", d->cause);
	buf_printf(to, "\"final\":%s,\"tried\":%s,\"tries\":%u,", final ? "true" : "false",
		   d->tried ? "true" : "false", (unsigned)d->recipient->tries);
	buf_printf(to, "\"size\":%" PRIu64 ",", e->size);
	log_json_time(to, "arrived", e->arrived_ms + date_ahead_ms());
	put_delays(to, d);
	buf_puts(to, "}\n");
}

void delivery_event_say_lost(struct qmgr *q)
{
	if (q->events.untold == 0)
		return;
	log_event(LOG_LEVEL_WARNING, "events", "to", q->sched.conf->events.to, "state", "lost",
		  "reason", "events.buffer is full", "lost", log_number(q->events.untold), NULL);
	q->events.untold = 0;
	q->events.told_ms = clock_steady_ms();
}

static void count_lost(struct qmgr *q)
{
	q->events.unmarked++;
	q->events.untold++;
	metrics_add(METRIC_events_lost, 1);
	if (q->events.told_ms == 0 || clock_steady_ms() - q->events.told_ms >= TELL_LOST_MS)
		delivery_event_say_lost(q);
}

static bool post_line(struct qmgr *q, struct buf *line)
{
	if (!event_line_room_take(buf_len(line)))
		return false;
	metrics_add(METRIC_events_waiting, 1);
	q->db.edges.to_events(q->db.edges.context,
			      &event_line_new(buf_data(line), buf_len(line))->note);
	return true;
}

/* Those who count by events know then how many they lack. */
static bool mark_gap(struct qmgr *q)
{
	struct buf line = {0};
	if (q->events.unmarked == 0)
		return true;
	begin_line(q, &line, "lost");
	buf_printf(&line, "\"count\":%" PRId64 "}\n", q->events.unmarked);
	bool posted = post_line(q, &line);
	if (posted)
		q->events.unmarked = 0;
	buf_fini(&line);
	return posted;
}

static bool is_wanted(const struct qmgr *q, const struct verdict *v)
{
	const struct conf_events *c = &q->sched.conf->events;
	if (!*c->to || !q->db.edges.to_events)
		return false;
	for (int i = 0; i < c->only.n; i++)
		if (strcmp(c->only.item[i], verdict_class_name(v->class)) == 0)
			return true;
	return c->only.n == 0;
}

void delivery_event_tell(struct qmgr *q, const struct delivery_event *d)
{
	struct buf line = {0};
	if (!is_wanted(q, d->verdict))
		return;
	put_line(q, &line, d);
	if (!mark_gap(q) || !post_line(q, &line))
		count_lost(q);
	buf_fini(&line);
}
