/* SPDX-License-Identifier: ISC */
#include "cmd/text/queue_print.h"

#include "base/ident.h"
#include "base/utf8.h"
#include "cmd/text/json_put.h"
#include "cmd/text/moment.h"
#include "cmd/text/reply_words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RECIPIENTS_A_LINE = 3 };

const char *queue_print_error(int error)
{
	return error == EBADMSG ? "it is damaged" : strerror(error);
}

void queue_unread_add(struct queue_unread *u, const struct spool_command *listed)
{
	u->messages += listed->unread;
	if (listed->unread > 0)
		u->error = listed->error;
}

void queue_print_unread(struct buf *to, const struct queue_unread *u)
{
	buf_printf(to, "%" PRId64 " other message%s in the queue cannot be read: %s", u->messages,
		   u->messages == 1 ? "" : "s", queue_print_error(u->error));
}

void queue_print_unread_json(struct buf *to, const struct queue_unread *u)
{
	buf_puts(to, "{");
	json_put_number(to, "unread", u->messages);
	json_put_text(to, "error", queue_print_error(u->error));
	json_put_line(to);
}

static const char *size_text(uint64_t bytes, char text[16])
{
	static const char units[] = "BKMGT";
	double n = (double)bytes;
	int unit = 0;
	for (; n >= 1000 && unit < 4; unit++)
		n /= 1024;
	snprintf(text, 16, n < 10 && unit > 0 ? "%.1f%c" : "%.0f%c", n, units[unit]);
	return text;
}

const char *queue_time_span(int64_t ms, char text[16])
{
	int64_t s = ms > 0 ? ms / 1000 : 0;
	int64_t n = s < 120 ? s : s < 7200 ? s / 60 : s < 172800 ? s / 3600 : s / 86400;
	char unit = s < 120 ? 's' : s < 7200 ? 'm' : s < 172800 ? 'h' : 'd';
	snprintf(text, 16, "%" PRId64 "%c", n, unit);
	return text;
}

static const char *due_text(const struct spool_row *row, int64_t now_ms, char text[32])
{
	char span[16];
	int64_t due = row->envelope->due_ms;
	if (row->queue == SPOOL_ACTIVE || row->queue == SPOOL_HOLD)
		return spool_queue_name(row->queue);
	if (due <= now_ms)
		return "now";
	snprintf(text, 32, "in %s", queue_time_span(due - now_ms, span));
	return text;
}

static void put_recipients(struct buf *to, const struct envelope *e)
{
	uint32_t shown = 0, open = envelope_open(e);
	for (uint32_t i = 0; i < e->nrcpt && shown < RECIPIENTS_A_LINE; i++) {
		if (e->rcpt[i].done)
			continue;
		buf_puts(to, shown++ ? ",<" : "<");
		utf8_put(to, e->rcpt[i].address);
		buf_puts(to, ">");
	}
	buf_printf(to, "%s %" PRIu32 "/%" PRIu32, open > shown ? ",..." : "", open, e->nrcpt);
}

void queue_print_line(struct buf *to, const struct spool_row *row, int64_t now_ms)
{
	const struct envelope *e = row->envelope;
	char id[IDENT_TEXT], size[16], age[16], due[32];
	buf_printf(to, "%s %-8s %5s %4s from=<", ident_text(e->id, id),
		   spool_queue_name(row->queue), size_text(e->size, size),
		   queue_time_span(now_ms - e->arrived_ms, age));
	utf8_put(to, e->sender);
	buf_puts(to, "> to=");
	put_recipients(to, e);
	buf_printf(to, " next=%s", due_text(row, now_ms, due));
	const struct verdict *v = envelope_latest_verdict(e);
	if (row->queue == SPOOL_DEFERRED && envelope_is_scheduled(e)) {
		buf_puts(to, " (not before, as its sender wants)");
	} else if (v) {
		buf_puts(to, " (");
		reply_words_put(to, v, false);
		buf_puts(to, ")");
	}
	buf_puts(to, "\n");
}

static const char *status_of(const struct recipient *r)
{
	if (r->last)
		return verdict_class_name(r->last->class);
	return r->done ? "done" : "waiting";
}

static void put_recipient_json(struct buf *to, const struct recipient *r)
{
	const struct verdict *v = r->last;
	buf_puts(to, "{");
	json_put_text(to, "to", r->address);
	json_put_text(to, "status", status_of(r));
	json_put_code(to, v ? v->code : 0);
	json_put_text(to, "dsn", v ? v->dsn : NULL);
	json_put_text(to, "reason", v ? v->text : NULL);
	json_put_number(to, "tries", r->tries);
	json_put_number(to, "in_doubt", r->doubts);
	json_put_flag(to, "done", r->done);
	json_put_end(to, '}');
}

static void put_history_json(struct buf *to, const struct envelope *e, const struct history *h)
{
	const struct verdict *v = h->verdict;
	buf_puts(to, "{");
	json_put_number(to, "round", h->round);
	json_put_time(to, "when", v->when_ms);
	json_put_text(to, "to", e->rcpt[h->recipient].address);
	json_put_number(to, "rcpts", h->nrcpt);
	json_put_text(to, "status", verdict_class_name(v->class));
	json_put_code(to, v->code);
	json_put_text(to, "dsn", v->dsn);
	json_put_said(to, "host", v->host);
	json_put_text(to, "reason", v->text);
	json_put_end(to, '}');
}

/* In the words of RFC 8689. */
static const char *tls_wish(const struct envelope *e)
{
	return e->tls == ENVELOPE_TLS_REQUIRED ? "REQUIRETLS" : "TLS-Required: No";
}

static const char *by_mode(const struct envelope *e)
{
	return e->by & ENVELOPE_BY_RETURN ? "return" : "notify";
}

static void put_wishes_json(struct buf *to, const struct envelope *e)
{
	if (e->tls != ENVELOPE_TLS_USUAL)
		json_put_text(to, "tls", tls_wish(e));
	if (e->priority != 0)
		json_put_number(to, "priority", e->priority);
	if (e->by) {
		json_put_text(to, "by_mode", by_mode(e));
		json_put_time(to, "by", e->by_ms);
	}
	if (e->not_before_ms > 0)
		json_put_time(to, "not_before", e->not_before_ms);
}

void queue_print_json(struct buf *to, const struct spool_row *row)
{
	const struct envelope *e = row->envelope;
	char id[IDENT_TEXT];
	buf_puts(to, "{");
	json_put_text(to, "id", ident_text(e->id, id));
	json_put_text(to, "queue", spool_queue_name(row->queue));
	json_put_text(to, "from", e->sender);
	json_put_text(to, "flow", envelope_flow(e));
	json_put_text(to, "user", e->user);
	json_put_text(to, "client", e->client);
	json_put_number(to, "size", (int64_t)e->size);
	json_put_time(to, "arrived", e->arrived_ms);
	json_put_time(to, "due", e->due_ms);
	put_wishes_json(to, e);
	json_put_number(to, "tries", e->rounds);
	buf_puts(to, "\"rcpts\":[");
	for (uint32_t i = 0; i < e->nrcpt; i++)
		put_recipient_json(to, &e->rcpt[i]);
	json_put_end(to, ']');
	buf_puts(to, "\"history\":[");
	for (uint32_t i = 0; i < e->nhistory; i++)
		put_history_json(to, e, &e->history[i]);
	json_put_end(to, ']');
	json_put_line(to);
}

static void put_named(struct buf *to, const char *name, const char *value)
{
	if (!value)
		return;
	buf_printf(to, "%-9s", name);
	utf8_put(to, value);
	buf_puts(to, "\n");
}

static void put_recipient(struct buf *to, const struct recipient *r)
{
	buf_puts(to, "to:      <");
	utf8_put(to, r->address);
	buf_printf(to, "> %s", status_of(r));
	if (r->tries > 0)
		buf_printf(to, ", %" PRIu32 " %s", r->tries, r->tries == 1 ? "try" : "tries");
	if (r->doubts > 0)
		buf_printf(to, ", %d in doubt", r->doubts);
	if (r->last) {
		buf_puts(to, ", ");
		moment_put(to, r->last->when_ms, false);
		buf_puts(to, ": ");
		reply_words_put(to, r->last, false);
	}
	buf_puts(to, "\n");
}

static void put_history(struct buf *to, const struct envelope *e)
{
	for (uint32_t i = 0; i < e->nhistory; i++) {
		const struct history *h = &e->history[i];
		buf_printf(to, "round %" PRIu32 ": ", h->round);
		moment_put(to, h->verdict->when_ms, false);
		buf_puts(to, " <");
		utf8_put(to, e->rcpt[h->recipient].address);
		if (h->nrcpt > 1)
			buf_printf(to, "> and %" PRIu32 " more", h->nrcpt - 1);
		else
			buf_puts(to, ">");
		buf_printf(to, " %s: ", verdict_class_name(h->verdict->class));
		reply_words_put(to, h->verdict, false);
		buf_puts(to, "\n");
	}
}

void queue_print_envelope(struct buf *to, const struct spool_row *row, int64_t now_ms)
{
	const struct envelope *e = row->envelope;
	char id[IDENT_TEXT], due[32];
	buf_printf(to, "id:      %s\nqueue:   %s\nsize:    %" PRIu64 "\narrived: ",
		   ident_text(e->id, id), spool_queue_name(row->queue), e->size);
	moment_put(to, e->arrived_ms, false);
	buf_puts(to, ", ");
	moment_put_span(to, now_ms - e->arrived_ms);
	buf_puts(to, " ago\nnext:    ");
	if (row->queue == SPOOL_DEFERRED && e->due_ms > now_ms)
		moment_put_due(to, e->due_ms, now_ms, false);
	else
		buf_puts(to, due_text(row, now_ms, due));
	buf_printf(to, "\nrounds:  %" PRIu32 "\nfrom:    <", e->rounds);
	utf8_put(to, e->sender);
	buf_puts(to, ">\n");
	put_named(to, "flow:", envelope_flow(e));
	put_named(to, "user:", e->user);
	put_named(to, "client:", e->client);
	put_named(to, "envid:", e->envid);
	if (e->tls != ENVELOPE_TLS_USUAL)
		buf_printf(to, "tls:     %s\n", tls_wish(e));
	if (e->priority != 0)
		buf_printf(to, "priority: %d\n", e->priority);
	if (e->not_before_ms > 0) {
		buf_puts(to, "release: ");
		moment_put_due(to, e->not_before_ms, now_ms, false);
		buf_puts(to, ", as its sender wants\n");
	}
	if (e->by) {
		buf_puts(to, "by:      ");
		moment_put_due(to, e->by_ms, now_ms, false);
		buf_printf(to, ", else %s\n", by_mode(e));
	}
	for (uint32_t i = 0; i < e->nrcpt; i++)
		put_recipient(to, &e->rcpt[i]);
	put_history(to, e);
}

void queue_print_summary(struct buf *to, int64_t messages, uint64_t bytes)
{
	buf_printf(to, "-- %" PRId64 " message%s, %" PRIu64 " KB\n", messages,
		   messages == 1 ? "" : "s", (bytes + 1023) / 1024);
}
