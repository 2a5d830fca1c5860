/* SPDX-License-Identifier: ISC */
#include "cmd/text/explain_print.h"

#include "base/date.h"
#include "base/ident.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/utf8.h"
#include "cmd/text/json_put.h"
#include "cmd/text/moment.h"
#include "cmd/text/reply_words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { REASONS_MAX = 50 }; /* lines of a deferred message: one a reply */

void explain_print_pace(struct buf *to, double rate, int64_t since_ms, bool utc)
{
	char text[NUMBER_RATE_MAX];
	if (rate >= 1)
		buf_printf(to, "%s/s", number_rate(text, rate));
	else if (rate > 0)
		buf_printf(to, "one in %.0f s", 1 / rate);
	if (since_ms > 0) {
		buf_puts(to, ", since ");
		moment_put(to, since_ms, utc);
	}
}

static void put_why(struct buf *to, const struct explain_row *row, bool utc)
{
	const char *why = constraint_row(row->constraint)->why;
	for (size_t n; *why; why += n) {
		n = strcspn(why, "%");
		buf_append(to, why, n);
		if (!why[n])
			break;
		if (why[n + 1] == 's')
			buf_printf(to, "%" PRId64 " %s%s", row->limit,
				   constraint_row(row->constraint)->counts,
				   row->limit == 1 ? "" : "s");
		else if (why[n + 1] == 'p')
			explain_print_pace(to, row->pace, row->paced_ms, utc);
		else
			buf_puts(to, row->limit == 1 ? "is" : "are");
		n += 2;
	}
}

static void put_order(struct buf *to, const struct explain_row *row)
{
	char id[IDENT_TEXT];
	if (row->ahead > 0)
		buf_printf(to, ". %" PRId64 " deliver%s come%s first there", row->ahead,
			   row->ahead == 1 ? "y" : "ies", row->ahead == 1 ? "s" : "");
	if (row->first)
		buf_printf(to, ". The next is message %s, which has %" PRId64 " deliver%s to begin",
			   ident_text(row->first, id), row->first_slots,
			   row->first_slots == 1 ? "y" : "ies");
	if (row->slipped > 0)
		buf_printf(to, ". %d with fewer recipients slipped past", row->slipped);
}

void explain_print_last(struct buf *to, const struct verdict *v)
{
	if (!v)
		return;
	buf_puts(to, ": ");
	reply_words_put(to, v, true);
}

/* Of a host that is not out of order, but refuses our login. */
static void put_login_relief(struct buf *to, const struct explain_row *row)
{
	buf_printf(to, "a login that it takes: sluice login --test %s",
		   row->login_of_sender ? "--from SENDER " : "");
	buf_puts(to, "'");
	utf8_put(to, row->login_hop);
	buf_puts(to, "' says what it answers; then sluice dest reset '");
	utf8_put(to, row->site);
	buf_puts(to, "'");
}

/* Hosts that are suspended are not tried, and no flush goes to them. */
static void put_resume(struct buf *to, const struct explain_row *row)
{
	buf_puts(to, "sluice dest resume '");
	utf8_put(to, row->resume);
	buf_puts(to, "', or the time that was said");
}

static char *relief_of(const struct explain_row *row, const char *usual)
{
	struct buf text = {0};
	bool of_hosts = row && constraint_row(row->constraint)->cites;
	if (of_hosts && row->resume)
		put_resume(&text, row);
	else if (of_hosts && row->login_hop)
		put_login_relief(&text, row);
	else
		buf_puts(&text, usual);
	return buf_steal(&text, NULL);
}

/* A suspension of no site is one of the flow that was asked about. */
static char *relief_of_row(const struct explain_row *row)
{
	if (row->constraint == CONSTRAINT_SUSPENDED && !row->site)
		return mem_strdup("sluice flow resume, or the time that was said");
	return relief_of(row, constraint_row(row->constraint)->relief);
}

static void put_relief(struct buf *to, int64_t until_ms, int64_t now_ms, const char *relief,
		       bool utc)
{
	if (until_ms) {
		buf_puts(to, ". It is looked at again ");
		moment_put_due(to, until_ms, now_ms, utc);
	}
	buf_printf(to, ". What lets it go: %s", relief);
}

/* How many are on connections, beside those that wait. */
static void put_sending(struct buf *to, const struct explain_row *row, bool of_site)
{
	const char *one = of_site ? "connection is busy" : "more is being sent";
	const char *more = of_site ? "connections are busy" : "more are being sent";
	if (row->sending > 0 && row->constraint != CONSTRAINT_SENDING)
		buf_printf(to, ". %" PRId64 " %s", row->sending, row->sending == 1 ? one : more);
}

static void put_sentence(struct buf *to, const struct explain_row *row, bool of_site,
			 int64_t now_ms, bool utc)
{
	put_why(to, row, utc);
	if (constraint_row(row->constraint)->cites)
		explain_print_last(to, row->last);
	if (of_site && row->first)
		buf_printf(to, ". %" PRId64 " deliver%s", row->recipients,
			   row->recipients == 1 ? "y waits" : "ies wait");
	if (of_site && row->parked > 0)
		buf_printf(to, ". %" PRId64 " message%s wait%s in the queue until it %s",
			   row->parked, row->parked == 1 ? "" : "s", row->parked == 1 ? "s" : "",
			   row->constraint == CONSTRAINT_SUSPENDED ? "is resumed" : "lives again");
	put_order(to, row);
	put_sending(to, row, of_site);
	char *relief = relief_of_row(row);
	put_relief(to, row->until_ms, now_ms, relief, utc);
	free(relief);
}

static void put_recipients(struct buf *to, int64_t n)
{
	buf_printf(to, "%" PRId64 " recipient%s", n, n == 1 ? "" : "s");
}

/* Of a message, or of all that a flow has there. */
static void put_whose(struct buf *to, const struct explain_question *x,
		      const struct explain_row *row)
{
	char id[IDENT_TEXT];
	int64_t n = row->recipients ? row->recipients : row->sending;
	if (x->id) {
		buf_puts(to, ident_text(x->id, id));
	} else {
		buf_puts(to, "flow ");
		utf8_put(to, x->flow);
	}
	if (n > 0 || x->id) {
		buf_puts(to, ": ");
		put_recipients(to, n);
	}
	if (row->site)
		buf_puts(to, " for ");
}

static void put_line(struct buf *to, const struct explain_question *x,
		     const struct explain_row *row, int64_t now_ms)
{
	if (x->id || x->flow)
		put_whose(to, x, row);
	if (row->site)
		utf8_put(to, row->site);
	if (row->transport)
		buf_printf(to, " (%s%s%s)", row->transport, row->provider ? ", of " : "",
			   row->provider ? row->provider : "");
	buf_puts(to, ": ");
	put_sentence(to, row, !x->id && !x->flow, now_ms, false);
	buf_puts(to, "\n");
}

static void put_id(struct buf *to, const char *name, uint64_t id)
{
	char text[IDENT_TEXT];
	json_put_text(to, name, id ? ident_text(id, text) : NULL);
}

static void put_object(struct buf *to, const struct explain_question *x,
		       const struct explain_row *row, int64_t now_ms)
{
	struct buf sentence = {0};
	put_sentence(&sentence, row, !x->id && !x->flow, now_ms, true);
	buf_puts(to, "{");
	put_id(to, "id", x->id);
	if (x->flow)
		json_put_text(to, "flow", x->flow);
	json_put_text(to, "site", row->site);
	json_put_text(to, "transport", row->transport);
	json_put_text(to, "key", row->key);
	json_put_text(to, "provider", row->provider);
	json_put_text(to, "source", row->source);
	json_put_text(to, "constraint", constraint_name(row->constraint));
	json_put_text(to, "says", buf_cstr(&sentence));
	char *relief = relief_of_row(row);
	json_put_text(to, "relief", relief);
	free(relief);
	json_put_time(to, "until", row->until_ms);
	json_put_number(to, x->id || x->flow ? "recipients" : "waiting", row->recipients);
	json_put_number(to, "sending", row->sending);
	json_put_number(to, "limit", row->limit);
	json_put_number(to, "window", row->window);
	json_put_number(to, "connections", row->connections);
	json_put_number(to, "connecting", row->connecting);
	json_put_number(to, "busy", row->busy);
	json_put_number(to, "ahead", row->ahead);
	put_id(to, "next", row->first);
	json_put_number(to, "next_slots", row->first_slots);
	json_put_number(to, "slipped", row->slipped);
	json_put_text(to, "last", row->last ? row->last->text : NULL);
	if (row->pace > 0)
		buf_printf(to, "\"pace\":%.3f,\"paced_since\":%.3f,", row->pace,
			   (double)(row->paced_ms + date_ahead_ms()) / 1000);
	json_put_line(to);
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

#define RELIEF_HOSTS                                                                               \
	"the answer of one of its hosts, which are tried from time to time; that time; sluice "    \
	"queue flush"

struct spooled {
	const char *constraint, *why;
	const char *site; /* a name in why, where there is %s; or NULL */
	const char *relief;
	int64_t until_ms;
};

struct explain_question *explain_print_asks(const struct spool_row *row, struct loop *reply_to,
					    void *owner)
{
	const struct envelope *e = row->envelope;
	if (row->queue != SPOOL_DEFERRED)
		return NULL;
	for (uint32_t i = 0; i < e->nrcpt; i++)
		if (!e->rcpt[i].done)
			return explain_question_of_queued(
				row->site, mailaddr_domain(e->rcpt[i].address), reply_to, owner);
	return NULL;
}

static const struct explain_row *find_suspension(const struct explain_question *answered)
{
	for (int i = 0; answered && i < answered->nrow; i++)
		if (answered->row[i].constraint == CONSTRAINT_SUSPENDED)
			return &answered->row[i];
	return NULL;
}

bool explain_print_of_suspension(const struct verdict *last)
{
	return last && last->code == 0 && strstr(last->text, "suspended by the operator");
}

bool explain_print_of_flow(const struct verdict *last)
{
	static const char text[] = "the flow is suspended by the operator";
	return last && last->code == 0 && strncmp(last->text, text, sizeof text - 1) == 0;
}

/* The message waits for a site, too; what is the matter with that the scheduler has said. */
static struct spooled parked_of(const struct spool_row *row,
				const struct explain_question *answered)
{
	const struct explain_row *site = answered && answered->nrow > 0 ? &answered->row[0] : NULL;
	int64_t due_ms = row->envelope->due_ms;
	if (!site)
		return (struct spooled){"deferred", "deferred until its destination answers again",
					NULL, RELIEF_HOSTS, due_ms};
	if (constraint_row(site->constraint)->cites && site->resume)
		return (struct spooled){
			"suspended", "deferred, for all hosts of %s are suspended by the operator",
			site->site, RELIEF_HOSTS, due_ms};
	if (constraint_row(site->constraint)->cites)
		return (struct spooled){"deferred", "deferred until %s answers again", site->site,
					RELIEF_HOSTS, due_ms};
	return (struct spooled){"deferred", "deferred, and due soon, for %s answers again",
				site->site, "nothing is needed: mail for it comes back bit by bit",
				due_ms};
}

static struct spooled suspended_of(const struct spool_row *row, const struct explain_row *s)
{
	int64_t due_ms = row->envelope->due_ms;
	bool ends = s->until_ms > 0 && s->until_ms < due_ms;
	return (struct spooled){"suspended", "deferred, for %s is suspended by the operator",
				s->site,
				s->until_ms ? "sluice dest resume, or the end of the suspension"
					    : "sluice dest resume",
				ends ? s->until_ms : due_ms};
}

/* mine: these recipients are those that wait for what was answered. */
static struct spooled spooled_of(const struct spool_row *row, const struct verdict *last,
				 const struct explain_question *answered, bool mine, int64_t now_ms)
{
	const struct explain_row *s = find_suspension(answered);
	bool in_doubt = last && last->class == VERDICT_IN_DOUBT;
	int64_t due_ms = row->envelope->due_ms;
	if (row->queue == SPOOL_DEFERRED && explain_print_of_flow(last))
		return (struct spooled){"suspended",
					"deferred, for its flow is suspended by the operator", NULL,
					"sluice flow resume", due_ms};
	if (row->queue == SPOOL_HOLD)
		return (struct spooled){"hold", "on hold", NULL, "sluice queue release", 0};
	if (row->queue == SPOOL_ACTIVE)
		return (struct spooled){"handover", "on its way between queue and scheduler", NULL,
					"nothing is needed: ask again", 0};
	if (row->queue == SPOOL_DEFERRED && due_ms > now_ms && envelope_is_scheduled(row->envelope))
		return (struct spooled){"scheduled", "not to be sent yet, as its sender wants",
					NULL, "that time; sluice queue release ID", due_ms};
	if (row->queue == SPOOL_DEFERRED && s && mine)
		return suspended_of(row, s);
	if (row->queue == SPOOL_DEFERRED && due_ms > now_ms && row->site && !s && !in_doubt)
		return parked_of(row, answered);
	if (row->queue == SPOOL_DEFERRED && due_ms > now_ms)
		return in_doubt ? (struct spooled){"in_doubt",
						   "deferred and in doubt, for all was sent and no "
						   "reply came",
						   NULL, "that time; sluice queue flush", due_ms}
				: (struct spooled){"deferred", "deferred", NULL,
						   "that time; sluice queue flush", due_ms};
	return (struct spooled){"credit", "the scheduler has all the messages it may have", NULL,
				"messages that are done; message_active_limit", 0};
}

static bool same_verdict(const struct verdict *a, const struct verdict *b)
{
	return a == b || (a && b && a->class == b->class && strcmp(a->host, b->host) == 0 &&
			  strcmp(a->text, b->text) == 0);
}

static void put_spooled(struct buf *to, const struct spooled *s)
{
	const char *name = s->site ? strstr(s->why, "%s") : NULL;
	if (!name) {
		buf_puts(to, s->why);
		return;
	}
	buf_append(to, s->why, (size_t)(name - s->why));
	utf8_put(to, s->site);
	buf_puts(to, name + 2);
}

/* site: that it waits for, where the scheduler knows it. */
static void put_reason(struct buf *to, const struct spool_row *row, const struct verdict *last,
		       const struct spooled *is, const struct explain_row *site, int64_t n,
		       bool json, int64_t now_ms)
{
	struct spooled s = *is;
	char id[IDENT_TEXT];
	bool flow = row->queue == SPOOL_DEFERRED && explain_print_of_flow(last);
	char *relief = flow ? mem_printf("%s '%s'", s.relief, envelope_flow(row->envelope))
			    : relief_of(s.site ? site : NULL, s.relief);
	struct buf sentence = {0};
	put_spooled(&sentence, &s);
	if (strcmp(s.constraint, "suspended") != 0 || !explain_print_of_suspension(last))
		explain_print_last(&sentence, last);
	put_relief(&sentence, s.until_ms, now_ms, relief, json);
	if (json) {
		buf_puts(to, "{");
		put_id(to, "id", row->envelope->id);
		json_put_text(to, "site", NULL);
		json_put_text(to, "transport", NULL);
		json_put_text(to, "waits_for", s.site);
		json_put_text(to, "constraint", s.constraint);
		json_put_text(to, "says", buf_cstr(&sentence));
		json_put_text(to, "relief", relief);
		json_put_time(to, "until", s.until_ms);
		json_put_number(to, "recipients", n);
		json_put_text(to, "last", last ? last->text : NULL);
		json_put_line(to);
	} else {
		buf_printf(to, "%s: ", ident_text(row->envelope->id, id));
		put_recipients(to, n);
		buf_printf(to, ": %s\n", buf_cstr(&sentence));
	}
	buf_fini(&sentence);
	free(relief);
}

void explain_print_spooled(struct buf *to, const struct spool_row *row,
			   const struct explain_question *answered, bool json, int64_t now_ms)
{
	const struct envelope *e = row->envelope;
	const struct explain_row *site = answered && answered->nrow > 0 ? &answered->row[0] : NULL;
	const struct verdict *last[REASONS_MAX];
	int64_t n[REASONS_MAX] = {0};
	int nreason = 0;
	for (uint32_t i = 0; i < e->nrcpt; i++) {
		int k = 0;
		if (e->rcpt[i].done)
			continue;
		while (k < nreason && !same_verdict(last[k], e->rcpt[i].last))
			k++;
		if (k == REASONS_MAX)
			k--; /* too many to tell apart: they count with the last */
		else if (k == nreason)
			last[nreason++] = e->rcpt[i].last;
		n[k]++;
	}
	for (int k = 0; k < nreason; k++) {
		bool mine = nreason == 1 || explain_print_of_suspension(last[k]);
		struct spooled s = spooled_of(row, last[k], answered, mine, now_ms);
		put_reason(to, row, last[k], &s, site, n[k], json, now_ms);
	}
}
