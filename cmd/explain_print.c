/* SPDX-License-Identifier: ISC */
#include "cmd/explain_print.h"

#include "base/ident.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cmd/queue_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { REASONS_MAX = 50 }; /* lines of a deferred message: one a reply */

/* What is said of each constraint; %s is its number of connections, or what else it is a number of. */
static const struct {
	const char *why, *relief;
} words[CONSTRAINT_COUNT] = {
	[CONSTRAINT_REPORTING] = {"the report to its sender is being stored",
				  "the disk: as soon as it is synced"},
	[CONSTRAINT_CANCELLED] = {"the operator wants it, and a delivery is under way",
				  "the end of that delivery"},
	[CONSTRAINT_MEMORY] = {"not read into memory yet, for there is no room for more recipients",
			       "deliveries that end; message_recipient_limit, recipient_limit"},
	[CONSTRAINT_LOOKUP] =
		{"waits for its turn to look up the next hop",
		 "look-ups that end; router_concurrency_limit, max_message_concurrency"},
	[CONSTRAINT_DNS] = {"waits for the answer of DNS", "that answer, or its time-out"},
	[CONSTRAINT_SENDING] = {"is being sent", "the reply of the host, or a time-out"},
	[CONSTRAINT_CONNECTING] = {"waits for a connection that is being opened",
				   "that connection, as soon as it is ready"},
	[CONSTRAINT_SUSPENDED] = {"the operator has suspended it", "sluice dest resume"},
	[CONSTRAINT_DEAD] = {"the site is dead: it has failed too often",
			     "the answer of one of its hosts, which are tried from time to time; "
			     "sluice queue flush"},
	[CONSTRAINT_OUT] = {"all hosts of the site are out",
			    "the answer of one of them, which are tried from time to time; sluice "
			    "queue flush"},
	[CONSTRAINT_RATE] = {"destination_rate: the next delivery is not due", "that time"},
	[CONSTRAINT_RATE_DELAY] =
		{"destination_rate_delay: one delivery at a time, and a pause after it",
		 "the end of the one before, and of the pause"},
	[CONSTRAINT_WINDOW] = {"its window of %s connections is full",
			       "deliveries that end; successes, which widen the window up to "
			       "destination_concurrency_limit"},
	[CONSTRAINT_SHARE] = {"its message has its share of connections",
			      "places on the connections of others; max_message_concurrency, "
			      "scale_max_concurrency"},
	[CONSTRAINT_SILENT] =
		{"its hosts have never answered, and %s connections to them are being "
		 "tried",
		 "their answer, or a time-out"},
	[CONSTRAINT_UNREADY_LIMIT] = {"%s connections of the transport are being opened at once",
				      "those that become ready, or are silent; connection_limit"},
	[CONSTRAINT_CONNECTION_LIMIT] = {"the transport has all of its %s connections",
					 "connections that end; connection_limit"},
	[CONSTRAINT_HOST_CONNECTION_LIMIT] = {"each host in service has all of its %s connections",
					      "connections that end; host_connection_limit"},
	[CONSTRAINT_HOST_PAUSE] = {"its hosts have as many connections as they were seen to take",
				   "places on these; that time, when one more is tried"},
	[CONSTRAINT_ORDER] = {"others come first", "their deliveries"},
	[CONSTRAINT_IDLE] = {"nothing waits", "mail for it"},
};

static void put_clean(struct buf *to, const char *text)
{
	size_t len = strlen(text);
	char *clean = buf_reserve(to, len + 1);
	buf_commit(to, utf8_clean(clean, text, len));
}

static void put_time(struct buf *to, int64_t ms, int64_t now_ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;
	char text[40], span[16];
	int64_t left_ms = ms > now_ms ? ms - now_ms : 0;
	gmtime_r(&seconds, &tm);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (left_ms < 100000)
		buf_printf(to, "%s, in %.3g s", text, (double)left_ms / 1000);
	else
		buf_printf(to, "%s, in %s", text, queue_time_span(left_ms, span));
}

static void put_why(struct buf *to, const struct explain_row *row)
{
	const char *why = words[row->constraint].why, *mark = strstr(why, "%s");
	if (!mark) {
		buf_puts(to, why);
		return;
	}
	buf_append(to, why, (size_t)(mark - why));
	buf_printf(to, "%" PRId64 "%s", row->limit, mark + 2);
}

static void put_order(struct buf *to, const struct explain_row *row)
{
	char id[IDENT_TEXT];
	if (row->ahead > 0)
		buf_printf(to, "; %" PRId64 " deliver%s come%s first there", row->ahead,
			   row->ahead == 1 ? "y" : "ies", row->ahead == 1 ? "s" : "");
	if (row->first)
		buf_printf(to, "; next is %s, which needs %" PRId64 " slots",
			   ident_text(row->first, id), row->first_slots);
	if (row->slipped > 0)
		buf_printf(to, "; %d with fewer recipients slipped past", row->slipped);
}

void explain_print_last(struct buf *to, const struct verdict *v)
{
	if (!v)
		return;
	buf_puts(to, "; last said: ");
	if (*v->host) {
		put_clean(to, v->host);
		buf_puts(to, " ");
	}
	if (v->code > 0)
		buf_printf(to, "%d ", v->code);
	put_clean(to, v->text);
}

static bool tells_failure(enum constraint c)
{
	return c == CONSTRAINT_DEAD || c == CONSTRAINT_OUT || c == CONSTRAINT_HOST_PAUSE;
}

static void put_when(struct buf *to, int64_t until_ms, int64_t now_ms, const char *relief)
{
	buf_puts(to, "; looked at again ");
	if (until_ms)
		put_time(to, until_ms, now_ms);
	else
		buf_puts(to, "when one of these happens");
	buf_printf(to, "; what lets it go: %s", relief);
}

static void put_sentence(struct buf *to, const struct explain_row *row, bool of_site,
			 int64_t now_ms)
{
	put_why(to, row);
	if (of_site && row->first)
		buf_printf(to, "; %" PRId64 " deliveries wait", row->recipients);
	put_order(to, row);
	if (row->sending > 0 && row->constraint != CONSTRAINT_SENDING)
		buf_printf(to, "; %" PRId64 "%s being sent", row->sending,
			   of_site ? " connections are" : " more are");
	if (tells_failure(row->constraint))
		explain_print_last(to, row->last);
	put_when(to, row->until_ms, now_ms, words[row->constraint].relief);
}

static void put_recipients(struct buf *to, int64_t n)
{
	buf_printf(to, "%" PRId64 " recipient%s", n, n == 1 ? "" : "s");
}

static void put_line(struct buf *to, const struct explain_question *x,
		     const struct explain_row *row, int64_t now_ms)
{
	char id[IDENT_TEXT];
	if (x->id) {
		buf_printf(to, "%s: ", ident_text(x->id, id));
		put_recipients(to, row->recipients ? row->recipients : row->sending);
		if (row->site)
			buf_puts(to, " for ");
	}
	if (row->site)
		put_clean(to, row->site);
	if (row->transport)
		buf_printf(to, " (%s)", row->transport);
	buf_puts(to, ": ");
	put_sentence(to, row, !x->id, now_ms);
	buf_puts(to, "\n");
}

static void put_string(struct buf *to, const char *name, const char *value)
{
	buf_printf(to, ",\"%s\":", name);
	if (value)
		log_json_string(to, value);
	else
		buf_puts(to, "null");
}

static void put_until(struct buf *to, int64_t until_ms)
{
	if (until_ms)
		buf_printf(to, ",\"until\":%.3f", (double)until_ms / 1000);
	else
		buf_puts(to, ",\"until\":null");
}

static void put_id(struct buf *to, const char *name, uint64_t id)
{
	char text[IDENT_TEXT];
	if (id)
		buf_printf(to, "\"%s\":\"%s\"", name, ident_text(id, text));
	else
		buf_printf(to, "\"%s\":null", name);
}

static void put_object(struct buf *to, const struct explain_question *x,
		       const struct explain_row *row, int64_t now_ms)
{
	struct buf sentence;
	buf_init(&sentence);
	put_sentence(&sentence, row, !x->id, now_ms);
	buf_puts(to, "{");
	put_id(to, "id", x->id);
	put_string(to, "site", row->site);
	put_string(to, "transport", row->transport);
	put_string(to, "constraint", constraint_name(row->constraint));
	put_string(to, "says", buf_cstr(&sentence));
	put_string(to, "relief", words[row->constraint].relief);
	put_until(to, row->until_ms);
	buf_printf(
		to,
		",\"%s\":%" PRId64 ",\"sending\":%" PRId64 ",\"limit\":%" PRId64
		",\"window\":%d,\"connections\":%d,\"connecting\":%d,\"busy\":%d,\"ahead\":%" PRId64
		",",
		x->id ? "recipients" : "waiting", row->recipients, row->sending, row->limit,
		row->window, row->connections, row->connecting, row->busy, row->ahead);
	put_id(to, "next", row->first);
	buf_printf(to, ",\"next_slots\":%" PRId64 ",\"slipped\":%d", row->first_slots,
		   row->slipped);
	put_string(to, "last", row->last ? row->last->text : NULL);
	buf_puts(to, "}\n");
	buf_fini(&sentence);
}

void explain_print(struct buf *to, const struct explain_question *x, bool json, int64_t now_ms)
{
	for (int i = 0; i < x->nrow; i++) {
		if (json)
			put_object(to, x, &x->row[i], now_ms);
		else
			put_line(to, x, &x->row[i], now_ms);
	}
}

/* --- what the scheduler does not have */

struct spooled {
	const char *constraint, *why, *relief;
	int64_t until_ms;
};

static struct spooled spooled_of(const struct spool_row *row, bool in_doubt, int64_t now_ms)
{
	int64_t due_ms = row->envelope->due_ms;
	if (row->queue == SPOOL_HOLD)
		return (struct spooled){"hold", "on hold", "sluice queue release", 0};
	if (row->queue == SPOOL_ACTIVE)
		return (struct spooled){"handover", "on its way between queue and scheduler",
					"nothing is needed: ask again", 0};
	if (row->queue == SPOOL_DEFERRED && due_ms > now_ms)
		return in_doubt ? (struct spooled){"in_doubt",
						   "in doubt: all was sent, and no reply came; "
						   "deferred",
						   "that time; sluice queue flush", due_ms}
				: (struct spooled){"deferred", "deferred",
						   "that time; sluice queue flush", due_ms};
	return (struct spooled){"credit", "the scheduler has all the messages it may have",
				"messages that are done; message_active_limit", 0};
}

static bool same(const struct verdict *a, const struct verdict *b)
{
	return a == b || (a && b && a->class == b->class && strcmp(a->host, b->host) == 0 &&
			  strcmp(a->text, b->text) == 0);
}

static void put_reason(struct buf *to, const struct spool_row *row, const struct verdict *last,
		       int64_t n, bool json, int64_t now_ms)
{
	struct spooled s = spooled_of(row, last && last->class == VERDICT_IN_DOUBT, now_ms);
	char id[IDENT_TEXT];
	struct buf sentence;
	buf_init(&sentence);
	buf_puts(&sentence, s.why);
	explain_print_last(&sentence, last);
	put_when(&sentence, s.until_ms, now_ms, s.relief);
	if (json) {
		buf_puts(to, "{");
		put_id(to, "id", row->envelope->id);
		buf_puts(to, ",\"site\":null,\"transport\":null");
		put_string(to, "constraint", s.constraint);
		put_string(to, "says", buf_cstr(&sentence));
		put_string(to, "relief", s.relief);
		put_until(to, s.until_ms);
		buf_printf(to, ",\"recipients\":%" PRId64, n);
		put_string(to, "last", last ? last->text : NULL);
		buf_puts(to, "}\n");
	} else {
		buf_printf(to, "%s: ", ident_text(row->envelope->id, id));
		put_recipients(to, n);
		buf_printf(to, ": %s\n", buf_cstr(&sentence));
	}
	buf_fini(&sentence);
}

void explain_print_spooled(struct buf *to, const struct spool_row *row, bool json, int64_t now_ms)
{
	const struct envelope *e = row->envelope;
	const struct verdict *last[REASONS_MAX];
	int64_t n[REASONS_MAX] = {0};
	int nreason = 0;
	for (uint32_t i = 0; i < e->nrcpt; i++) {
		int k = 0;
		if (e->rcpt[i].done)
			continue;
		while (k < nreason && !same(last[k], e->rcpt[i].last))
			k++;
		if (k == REASONS_MAX)
			k--; /* too many to tell apart: they count with the last */
		else if (k == nreason)
			last[nreason++] = e->rcpt[i].last;
		n[k]++;
	}
	for (int k = 0; k < nreason; k++)
		put_reason(to, row, last[k], n[k], json, now_ms);
}
