/* SPDX-License-Identifier: ISC */
#include "qmgr/bounce.h"

#include "base/ident.h"
#include "base/internet_time.h"
#include "base/utf8.h"
#include "qmgr/report_text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { RETURN_PIECE = 32 << 10 };

static const char untried[] = "not tried yet: it waits for its turn";

bool bounce_wants(const struct recipient *r, enum report_kind kind)
{
	if (r->notify & NOTIFY_NEVER)
		return false;
	switch (kind) {
	case REPORT_FAILED:
		return r->notify == 0 || (r->notify & NOTIFY_FAILURE);
	case REPORT_DELAYED:
		return r->notify == 0 || (r->notify & NOTIFY_DELAY);
	default:
		return r->notify & NOTIFY_SUCCESS;
	}
}

static bool is_owed(const struct report *r, uint32_t recipient, enum report_kind kind)
{
	return r->owed[recipient] == kind + 1;
}

static bool owes_any(const struct report *r, enum report_kind kind)
{
	for (uint32_t i = 0; i < r->original->nrcpt; i++)
		if (is_owed(r, i, kind))
			return true;
	return false;
}

/* Addresses beyond ASCII need the international form of the part that names them (RFC 6533), whatever mail they come
 * from: an alias may lead to such a one, and SMTPUTF8 may have been said without need. */
static bool is_international(const struct report *r)
{
	const struct envelope *e = r->original;
	for (uint32_t i = 0; i < e->nrcpt; i++)
		if (r->owed[i] && !utf8_is_ascii(e->rcpt[i].address))
			return true;
	return false;
}

static const char *boundary_text(const struct report *r, char text[64])
{
	char id[IDENT_TEXT];
	snprintf(text, 64, "=_%s_report", ident_text(r->id, id));
	return text;
}

/* RFC 2045 6.4: of a whole as of its parts. */
static const char *encoding_of(const struct buf *body)
{
	return utf8_beyond_ascii(buf_data(body), buf_len(body)) ? "8bit" : "7bit";
}

static void write_header(const struct report *r, const struct buf *parts, struct buf *to)
{
	char id[IDENT_TEXT], date[REPORT_DATE], mark[64];
	const char *subject = owes_any(r, REPORT_FAILED)    ? "Undelivered mail returned to sender"
			      : owes_any(r, REPORT_DELAYED) ? "Delayed mail: still being retried"
			      : owes_any(r, REPORT_RELAYED) ? "Mail relayed"
							    : "Mail delivered";
	ident_text(r->id, id);
	report_date(r->now_ms, date);
	buf_printf(to, "Received: by %s id %s;\r\n\t%s\r\n", r->hostname, id, date);
	buf_printf(to, "From: Mail Delivery System <MAILER-DAEMON@%s>\r\n", r->hostname);
	buf_printf(to, "To: <%s>\r\nSubject: %s\r\nDate: %s\r\n", r->to, subject, date);
	buf_printf(to, "Message-ID: <%s@%s>\r\n", id, r->hostname);
	if (r->original->tls == ENVELOPE_TLS_WAIVED)
		buf_puts(to, "TLS-Required: No\r\n");
	buf_puts(to, "Auto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\n");
	buf_printf(to,
		   "Content-Type: multipart/report; report-type=delivery-status;\r\n"
		   "\tboundary=\"%s\"\r\nContent-Transfer-Encoding: %s\r\n\r\n"
		   "This is a MIME-encapsulated message.\r\n",
		   boundary_text(r, mark), encoding_of(parts));
}

/* Takes the body. */
static void put_part(const struct report *r, struct buf *to, const char *description,
		     const char *type, struct buf *body)
{
	char mark[64];
	buf_printf(to, "\r\n--%s\r\nContent-Description: %s\r\nContent-Type: %s\r\n",
		   boundary_text(r, mark), description, type);
	buf_printf(to, "Content-Transfer-Encoding: %s\r\n\r\n", encoding_of(body));
	buf_append(to, buf_data(body), buf_len(body));
	buf_fini(body);
}

static void write_words(const struct report *r, struct buf *to, enum report_kind kind,
			const char *words)
{
	const struct envelope *e = r->original;
	if (!owes_any(r, kind))
		return;
	buf_puts(to, words);
	for (uint32_t i = 0; i < e->nrcpt; i++) {
		const struct verdict *v = e->rcpt[i].last;
		if (!is_owed(r, i, kind))
			continue;
		buf_printf(to, "\r\n<%s>:\r\n", e->rcpt[i].address);
		if (v && v->host[0])
			report_folded(to, "    ",
				      v->code ? "host %s said:" : "at host %s:", v->host);
		if (v && v->code)
			report_folded(to, "    ", "%d %s", v->code, v->text);
		else
			report_folded(to, "    ", "%s", v ? v->text : untried);
	}
	buf_puts(to, "\r\n");
}

static void write_notice(const struct report *r, struct buf *to)
{
	char date[REPORT_DATE];
	struct buf body = {0};
	buf_printf(&body, "This is the mail system at host %s.\r\n\r\n", r->hostname);
	write_words(r, &body, REPORT_FAILED,
		    "Your message could not be delivered to the following recipients.\r\n"
		    "It will not be tried again.\r\n");
	write_words(r, &body, REPORT_DELAYED,
		    "Your message could not be delivered yet to the following recipients.\r\n"
		    "You need not send it again: it is kept and tried again.\r\n");
	if (owes_any(r, REPORT_DELAYED))
		buf_printf(&body, "The last attempt will be made on %s.\r\n\r\n",
			   report_date(r->expires_ms, date));
	write_words(
		r, &body, REPORT_RELAYED,
		"Your message has been passed on for the following recipients, to a host that\r\n"
		"may not confirm the delivery.\r\n");
	write_words(r, &body, REPORT_DELIVERED,
		    "Your message has been delivered to the following recipients.\r\n");
	put_part(r, to, "Notification", "text/plain; charset=utf-8", &body);
}

/* A code that no host has said is ours, as where there is no such domain, or the host does not offer what is needed:
 * RFC 3464 2.3.6 wants what was said. */
static void write_diagnostic(struct buf *to, const struct verdict *v)
{
	if (v->code && v->host[0])
		report_folded(to, "", "Diagnostic-Code: smtp; %d %s", v->code, v->text);
	else
		report_folded(to, "", "Diagnostic-Code: x-sluice; %s", v->text);
}

static bool was_tried(const struct recipient *r)
{
	return r->tries > 0 || r->last->host[0];
}

/* A recipient who was not tried yet is late for no other reason than the time. */
static void write_attempt(struct buf *to, const struct recipient *r)
{
	const struct verdict *v = r->last;
	char date[REPORT_DATE];
	buf_printf(to, "Status: %s\r\n", v ? v->dsn : "4.4.7");
	if (!v) {
		report_folded(to, "", "Diagnostic-Code: x-sluice; %s", untried);
		return;
	}
	if (v->host[0])
		report_mta(to, v->host);
	write_diagnostic(to, v);
	if (was_tried(r))
		buf_printf(to, "Last-Attempt-Date: %s\r\n", report_date(v->when_ms, date));
}

static void write_recipient(const struct report *r, struct buf *to, uint32_t i)
{
	static const char *const action[] = {[REPORT_FAILED] = "failed",
					     [REPORT_DELAYED] = "delayed",
					     [REPORT_RELAYED] = "relayed",
					     [REPORT_DELIVERED] = "delivered"};
	assert(r->owed[i] > 0 && r->owed[i] <= sizeof action / sizeof action[0]);
	const struct recipient *rcpt = &r->original->rcpt[i];
	char date[REPORT_DATE];
	buf_puts(to, "\r\n");
	report_orcpt(to, rcpt->orcpt);
	buf_printf(to, "Final-Recipient: %s;%s\r\n",
		   utf8_is_ascii(rcpt->address) ? "rfc822" : "utf-8", rcpt->address);
	buf_printf(to, "Action: %s\r\n", action[r->owed[i] - 1]);
	write_attempt(to, rcpt);
	if (is_owed(r, i, REPORT_DELAYED))
		buf_printf(to, "Will-Retry-Until: %s\r\n", report_date(r->expires_ms, date));
}

/* RFC 4865: as it was asked for, also where it was not kept to. */
static void write_hold(struct buf *to, const struct envelope *e)
{
	char time[INTERNET_TIME_TEXT];
	if (e->hold_for)
		buf_printf(to, "Future-Release-Request: for;%" PRId64 "\r\n", e->hold_asked);
	else
		buf_printf(to, "Future-Release-Request: until;%s\r\n",
			   internet_time_text(e->hold_asked, time));
}

static void write_fields(const struct report *r, struct buf *to)
{
	const struct envelope *e = r->original;
	char date[REPORT_DATE];
	report_envid(to, e->envid);
	buf_printf(to, "Reporting-MTA: dns; %s\r\n", r->hostname);
	buf_printf(to, "Arrival-Date: %s\r\n", report_date(e->arrived_ms, date));
	if (e->by)
		buf_printf(to, "Deliver-By-Date: %s\r\n", report_date(e->by_ms, date));
	if (e->not_before_ms > 0)
		write_hold(to, e);
	for (uint32_t i = 0; i < e->nrcpt; i++)
		if (r->owed[i])
			write_recipient(r, to, i);
}

/* RFC 3464 2.1: whoever reads the usual form finds ASCII, also where a host has said more. The notice has its words. */
static void write_status(const struct report *r, struct buf *to)
{
	struct buf body = {0}, usual = {0};
	write_fields(r, &body);
	if (is_international(r)) {
		put_part(r, to, "Delivery report", "message/global-delivery-status", &body);
		return;
	}
	utf8_put_ascii(&usual, buf_data(&body), buf_len(&body));
	buf_fini(&body);
	put_part(r, to, "Delivery report", "message/delivery-status", &usual);
}

/* Where the header ends: behind the empty line, or at the end of what was read. */
static size_t header_length(const char *text, size_t len)
{
	if (len >= 2 && memcmp(text, "\r\n", 2) == 0)
		return 0;
	const char *end = memmem(text, len, "\r\n\r\n", 4);
	return end ? (size_t)(end - text) + 2 : len;
}

/* Content that is read to its end must be that which was written. */
static bool append_content(const struct report *r, struct buf *to, int64_t most)
{
	uint32_t sum = 0;
	for (uint64_t at = 0; (int64_t)at < most;) {
		size_t want = most - (int64_t)at < RETURN_PIECE ? (size_t)(most - (int64_t)at)
								: RETURN_PIECE;
		char *piece = buf_reserve(to, want);
		ssize_t n = content_read(r->content, at, piece, want);
		if (n <= 0)
			return n == 0;
		if (!content_intact(r->content, &sum, at, piece, (size_t)n))
			return false;
		buf_commit(to, (size_t)n);
		at += (uint64_t)n;
	}
	return true;
}

/* RFC 8689 5: with REQUIRETLS as with RET=HDRS. */
static bool may_return_all(const struct envelope *e)
{
	return e->ret != RET_HDRS && e->tls != ENVELOPE_TLS_REQUIRED;
}

/* All of it, or its header; or a line instead of that. */
static void read_original(const struct report *r, bool whole, struct buf *to)
{
	int64_t most = r->size_max > RETURN_PIECE ? r->size_max : RETURN_PIECE;
	if (!append_content(r, to, whole ? (int64_t)r->content->size : most)) {
		buf_clear(to);
		buf_puts(to, "X-Sluice: the message cannot be read from the queue\r\n");
	} else if (!whole) {
		size_t all = buf_len(to);
		buf_shorten(to, all - header_length(buf_data(to), all));
	}
}

static void write_original(const struct report *r, struct buf *to)
{
	struct buf body = {0};
	bool whole = owes_any(r, REPORT_FAILED) && may_return_all(r->original) &&
		     (int64_t)r->content->size <= r->size_max;
	read_original(r, whole, &body);
	bool global =
		r->original->smtputf8 && buf_len(&body) > 0 &&
		utf8_beyond_ascii(buf_data(&body), header_length(buf_data(&body), buf_len(&body)));
	if (whole)
		put_part(r, to, "Undelivered message", global ? "message/global" : "message/rfc822",
			 &body);
	else
		put_part(r, to, "Header of the message",
			 global ? "message/global-headers" : "text/rfc822-headers", &body);
}

void bounce_write(const struct report *r, struct buf *to)
{
	char mark[64];
	struct buf parts = {0};
	write_notice(r, &parts);
	write_status(r, &parts);
	write_original(r, &parts);
	write_header(r, &parts, to);
	buf_append(to, buf_data(&parts), buf_len(&parts));
	buf_fini(&parts);
	buf_printf(to, "\r\n--%s--\r\n", boundary_text(r, mark));
}
