/* SPDX-License-Identifier: ISC */
#include "tlsrpt/tlsrpt_report.h"

#include "base/base64.h"
#include "base/internet_time.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "base/words.h"

#include <inttypes.h>
#include <isa-l.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOMENT_SIZE = 40, BASE64_LINE = 76 };

static void print_time(char text[MOMENT_SIZE], const char *format, int64_t s)
{
	struct tm tm;
	time_t at = (time_t)s;
	strftime(text, MOMENT_SIZE, format, gmtime_r(&at, &tm));
}

/* The same for every attempt to send it, so that whoever gets it twice can tell. */
static char *id_of(const struct tlsrpt_report *r, const struct tlsrpt_sender *by)
{
	char day[MOMENT_SIZE];
	print_time(day, "%Y%m%d", r->day * DAY_S);
	return mem_printf("%s.%s@%s", day, r->domain, by->hostname);
}

static json_t *number_json(int64_t n)
{
	return json_integer((json_int_t)n);
}

/* Text that is no UTF-8 would be no string of JSON, and an object with it none either. */
static json_t *text_json(const char *text, size_t len)
{
	struct buf clean = {0};
	utf8_put_most(&clean, text, len);
	json_t *j = json_string(buf_cstr(&clean));
	buf_fini(&clean);
	return j;
}

static json_t *string_json(const char *text)
{
	return text_json(text, strlen(text));
}

static void set_known(json_t *to, const char *name, const char *text)
{
	if (*text)
		json_object_set_new(to, name, string_json(text));
}

static json_t *detail_json(const struct tlsrpt_detail *d)
{
	json_t *j = json_pack("{s:s}", "result-type", tls_result_type_word(d->type));
	set_known(j, "sending-mta-ip", d->own);
	set_known(j, "receiving-mx-hostname", d->mx);
	set_known(j, "receiving-ip", d->address);
	json_object_set_new(j, "failed-session-count", number_json(d->count));
	set_known(j, "failure-reason-code", d->reason);
	return j;
}

/* The lines of the policy; of those the hosts once more. */
static void put_policy_text(json_t *policy, const char *text)
{
	static const char mx[] = "mx: ";
	json_t *lines = json_array(), *hosts = json_array();
	for (char *line; (line = words_line(&text)); free(line)) {
		size_t len = strlen(line), head = strlen(mx);
		json_array_append_new(lines, text_json(line, len));
		if (strncmp(line, mx, head) == 0)
			json_array_append_new(hosts, text_json(line + head, len - head));
	}
	if (json_array_size(lines) > 0)
		json_object_set(policy, "policy-string", lines);
	if (json_array_size(hosts) > 0)
		json_object_set(policy, "mx-host", hosts);
	json_decref(lines);
	json_decref(hosts);
}

static json_t *policy_json(const struct tlsrpt_report *r, const struct tlsrpt_policy *p)
{
	json_t *policy = json_pack("{s:s,s:s}", "policy-type", tls_result_policy_word(p->policy),
				   "policy-domain", r->domain);
	put_policy_text(policy, p->text);
	json_t *j = json_pack("{s:o,s:{s:o,s:o}}", "policy", policy, "summary",
			      "total-successful-session-count", number_json(p->successes),
			      "total-failure-session-count", number_json(p->failures));
	if (p->ndetail == 0)
		return j;
	json_t *details = json_array();
	for (int i = 0; i < p->ndetail; i++)
		json_array_append_new(details, detail_json(&p->detail[i]));
	json_object_set_new(j, "failure-details", details);
	return j;
}

static char *json_of(const struct tlsrpt_report *r, const struct tlsrpt_sender *by)
{
	char from[INTERNET_TIME_TEXT], until[INTERNET_TIME_TEXT];
	char *id = id_of(r, by);
	json_t *policies = json_array();
	internet_time_text(1000 * (r->day * DAY_S), from);
	internet_time_text(1000 * ((r->day + 1) * DAY_S - 1), until);
	for (int i = 0; i < r->npolicy; i++)
		json_array_append_new(policies, policy_json(r, &r->policy[i]));
	json_t *all = json_pack("{s:o,s:{s:s,s:s},s:o,s:s,s:o}", "organization-name",
				string_json(by->organization), "date-range", "start-datetime", from,
				"end-datetime", until, "contact-info", string_json(by->contact),
				"report-id", id, "policies", policies);
	char *text = json_dumps(all, JSON_INDENT(1));
	json_decref(all);
	free(id);
	return text;
}

static void gzip_text(const char *text, size_t len, struct buf *to)
{
	struct isal_zstream z;
	size_t room = len + len / 8 + 1024; /* what does not shrink is stored */
	isal_deflate_stateless_init(&z);
	z.next_in = (uint8_t *)text;
	z.avail_in = (uint32_t)len;
	z.next_out = (uint8_t *)buf_reserve(to, room);
	z.avail_out = (uint32_t)room;
	z.end_of_stream = 1;
	z.gzip_flag = IGZIP_GZIP;
	if (isal_deflate_stateless(&z) == COMP_OK)
		buf_commit(to, z.total_out);
}

void tlsrpt_report_write(const struct tlsrpt_report *r, const struct tlsrpt_sender *by,
			 struct buf *to)
{
	char *text = json_of(r, by);
	if (text)
		gzip_text(text, strlen(text), to);
	free(text);
}

static void put_head(const struct tlsrpt_report *r, const struct tlsrpt_sender *by,
		     const char *rcpt, int64_t now_ms, struct buf *to)
{
	char date[MOMENT_SIZE];
	char *id = id_of(r, by);
	print_time(date, "%a, %d %b %Y %H:%M:%S +0000", now_ms / 1000);
	buf_printf(to, "From: <%s>\r\nTo: <%s>\r\nDate: %s\r\n", by->from, rcpt, date);
	buf_printf(to, "Message-ID: <tlsrpt.%" PRId64 ".%s>\r\n", now_ms, id);
	buf_printf(to, "Subject: Report Domain: %s\r\n Submitter: %s\r\n Report-ID: <%s>\r\n",
		   r->domain, by->hostname, id);
	buf_printf(to, "TLS-Report-Domain: %s\r\nTLS-Report-Submitter: %s\r\n", r->domain,
		   by->hostname);
	buf_puts(to, "TLS-Required: No\r\nAuto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n");
	free(id);
}

static void put_text(const struct tlsrpt_report *r, const struct tlsrpt_sender *by, struct buf *to)
{
	char day[MOMENT_SIZE];
	print_time(day, "%Y-%m-%d", r->day * DAY_S);
	buf_puts(to, "Content-Type: text/plain; charset=utf-8\r\n"
		     "Content-Transfer-Encoding: 8bit\r\n\r\n");
	buf_printf(to,
		   "How TLS to the mail hosts of %s did on %s (UTC), as\r\n%s has seen it.\r\n"
		   "Reported to those whom _smtp._tls.%s names.\r\n",
		   r->domain, day, by->hostname, r->domain);
}

static void put_lines(const struct buf *base64, struct buf *to)
{
	const char *text = buf_data(base64);
	for (size_t at = 0, len = buf_len(base64); at < len; at += BASE64_LINE) {
		size_t n = len - at < BASE64_LINE ? len - at : BASE64_LINE;
		buf_append(to, text + at, n);
		buf_puts(to, "\r\n");
	}
}

void tlsrpt_report_mail(const struct tlsrpt_report *r, const struct tlsrpt_sender *by,
			const char *rcpt, int64_t now_ms, struct buf *to)
{
	struct buf report = {0}, base64 = {0};
	char *boundary = mem_printf("tlsrpt-%" PRId64 "-%" PRId64, r->day, now_ms);
	tlsrpt_report_write(r, by, &report);
	base64_encode(&base64, buf_data(&report), buf_len(&report));
	put_head(r, by, rcpt, now_ms, to);
	buf_printf(to,
		   "Content-Type: multipart/report; report-type=\"tlsrpt\";\r\n"
		   " boundary=\"%s\"\r\n\r\n--%s\r\n",
		   boundary, boundary);
	put_text(r, by, to);
	buf_printf(to,
		   "\r\n--%s\r\nContent-Type: " TLSRPT_TYPE "\r\n"
		   "Content-Transfer-Encoding: base64\r\n"
		   "Content-Disposition: attachment;\r\n"
		   " filename=\"%s!%s!%" PRId64 "!%" PRId64 ".json.gz\"\r\n\r\n",
		   boundary, by->hostname, r->domain, r->day * DAY_S, (r->day + 1) * DAY_S - 1);
	put_lines(&base64, to);
	buf_printf(to, "--%s--\r\n", boundary);
	free(boundary);
	buf_fini(&base64);
	buf_fini(&report);
}
