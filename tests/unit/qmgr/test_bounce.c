/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/unit.h"

#include "base/mem.h"
#include "qmgr/bounce.h"

#include <fcntl.h>
#include <string.h>

/* The report is taken apart line by line, as a reader of it would: the header's boundary parts
 * it. */
enum { LINES_MAX = 4000 };

static struct envelope *envelope;
static struct report report;
static uint8_t owed[16];
static char *text;
static char *line[LINES_MAX]; /* without CRLF */
static int nline;

static int start(void **state)
{
	(void)state;
	memset(owed, 0, sizeof owed);
	envelope = envelope_new();
	envelope->sender = mem_strdup("sender@here.test");
	envelope->arrived_ms = INT64_C(1195776000000);
	report = (struct report){.original = envelope,
				 .owed = owed,
				 .to = envelope->sender,
				 .hostname = "relay.test",
				 .size_max = 50000,
				 .expires_ms = INT64_C(1196208000000),
				 .now_ms = INT64_C(1195779600000),
				 .id = 12345678901234567u};
	return 0;
}

static int end(void **state)
{
	(void)state;
	content_unref((struct content *)report.content);
	envelope_free(&envelope);
	free(text);
	text = NULL;
	return 0;
}

static void set_content(const char *bytes)
{
	content_unref((struct content *)report.content);
	report.content = content_in_memory(mem_strdup(bytes), strlen(bytes));
}

/* A recipient with this verdict, of whom the sender is told. */
static struct recipient *tell(const char *address, enum report_kind kind, int code, const char *dsn,
			      const char *host, const char *said)
{
	static const enum verdict_class class[] = {[REPORT_FAILED] = VERDICT_FAILED,
						   [REPORT_DELAYED] = VERDICT_DEFERRED,
						   [REPORT_RELAYED] = VERDICT_SENT};
	owed[envelope->nrcpt] = (uint8_t)(kind + 1);
	struct recipient *r = envelope_add(envelope, address);
	r->last = verdict_at(class[kind], code, dsn, host, said, INT64_C(1195779000000));
	return r;
}

static void write_report(void)
{
	struct buf b;
	buf_init(&b);
	if (!report.content)
		set_content("Subject: original\r\nX: y\r\n\r\nbody\r\n");
	bounce_write(&report, &b);
	free(text);
	text = buf_steal(&b, NULL);
	nline = 0;
	for (char *at = text; *at;) {
		char *crlf = strstr(at, "\r\n");
		assert_non_null(crlf); /* every line ends, and with CRLF */
		*crlf = '\0';
		assert_null(strchr(at, '\r'));
		assert_null(strchr(at, '\n'));
		assert_true(nline < LINES_MAX);
		line[nline++] = at;
		at = crlf + 2;
	}
}

static bool begins(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

/* The boundary that the header declares. */
static const char *boundary(void)
{
	static char mark[100];
	for (int i = 0; line[i][0]; i++)
		if (sscanf(line[i], "\tboundary=\"%98[^\"]\"", mark) == 1)
			return mark;
	_fail(__FILE__, __LINE__);
	return NULL;
}

/* The line number of the n-th boundary from 0, or -1. */
static int boundary_line(int n)
{
	char delimiter[110], last[120];
	snprintf(delimiter, sizeof delimiter, "--%s", boundary());
	snprintf(last, sizeof last, "%s--", delimiter);
	for (int i = 0; i < nline; i++)
		if ((strcmp(line[i], delimiter) == 0 || strcmp(line[i], last) == 0) && n-- == 0)
			return i;
	return -1;
}

static int first_empty_line(int from)
{
	while (line[from][0])
		from++;
	return from;
}

/* Field of a header or a group of fields, unfolded; NULL when it is not there. Groups end at an
 * empty line. */
static const char *field(int from, const char *name)
{
	static char value[4000];
	char with[100];
	snprintf(with, sizeof with, "%s: ", name);
	for (int i = from; i < nline && line[i][0]; i++) {
		if (!begins(line[i], with))
			continue;
		strcpy(value, line[i] + strlen(with));
		while (++i < nline && (line[i][0] == ' ' || line[i][0] == '\t'))
			strcat(value, line[i]);
		return value;
	}
	return NULL;
}

static void field_is(int from, const char *name, const char *expected)
{
	const char *value = field(from, name);
	if (!value)
		print_error("no field %s\n", name);
	assert_non_null(value);
	assert_string_equal(value, expected);
}

/* Where the content of part n begins. */
static int part(int n)
{
	int at = boundary_line(n);
	assert_true(at >= 0);
	return first_empty_line(at + 1) + 1;
}

/* The fields of the n-th reported recipient. */
static int group(int n)
{
	int at = part(1);
	for (int i = 0; i <= n; i++)
		at = first_empty_line(at) + 1;
	assert_true(at < boundary_line(2));
	return at;
}

static bool part_has(int n, const char *expected)
{
	for (int i = part(n); i < boundary_line(n + 1); i++)
		if (strcmp(line[i], expected) == 0)
			return true;
	return false;
}

static void the_header_says_that_it_is_a_report(void **state)
{
	(void)state;
	tell("x@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test[192.0.2.1]:25", "no such user");
	write_report();
	field_is(0, "From", "Mail Delivery System <MAILER-DAEMON@relay.test>");
	field_is(0, "To", "<sender@here.test>");
	field_is(0, "Date", "Fri, 23 Nov 2007 01:00:00 +0000");
	field_is(0, "Auto-Submitted", "auto-replied");
	field_is(0, "MIME-Version", "1.0");
	assert_true(
		begins(field(0, "Content-Type"), "multipart/report; report-type=delivery-status;"));
	assert_true(begins(line[0], "Received: by relay.test id "));
	assert_non_null(strstr(field(0, "Message-ID"), "@relay.test>"));
}

static void it_has_three_parts_and_an_end(void **state)
{
	(void)state;
	tell("x@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test", "no such user");
	write_report();
	field_is(boundary_line(0) + 1, "Content-Type", "text/plain; charset=utf-8");
	field_is(boundary_line(1) + 1, "Content-Type", "message/delivery-status");
	field_is(boundary_line(2) + 1, "Content-Type", "message/rfc822");
	assert_int_equal(boundary_line(3), nline - 1);
	assert_int_equal(boundary_line(4), -1);
	size_t len = strlen(line[nline - 1]);
	assert_string_equal(line[nline - 1] + len - 2, "--");
}

static void a_failed_recipient_has_all_its_fields(void **state)
{
	(void)state;
	struct recipient *r = tell("x@a.test", REPORT_FAILED, 550, "5.1.1",
				   "mx.a.test[192.0.2.1]:25", "no such user");
	r->orcpt = mem_strdup("rfc822;old+2Bx@a.test");
	envelope->envid = mem_strdup("QQ+3D314");
	write_report();
	field_is(part(1), "Original-Envelope-Id", "QQ=314");
	field_is(part(1), "Reporting-MTA", "dns; relay.test");
	field_is(part(1), "Arrival-Date", "Fri, 23 Nov 2007 00:00:00 +0000");
	int at = group(0);
	field_is(at, "Original-Recipient", "rfc822;old+x@a.test");
	field_is(at, "Final-Recipient", "rfc822;x@a.test");
	field_is(at, "Action", "failed");
	field_is(at, "Status", "5.1.1");
	field_is(at, "Remote-MTA", "dns; mx.a.test");
	field_is(at, "Diagnostic-Code", "smtp; 550 no such user");
	field_is(at, "Last-Attempt-Date", "Fri, 23 Nov 2007 00:50:00 +0000");
	assert_null(field(at, "Will-Retry-Until"));
}

static void our_own_verdict_is_no_reply_of_a_server(void **state)
{
	(void)state;
	tell("x@a.test", REPORT_FAILED, 0, "5.1.2", NULL, "no such domain");
	write_report();
	tell("y@a.test", REPORT_FAILED, 550, "5.1.2", NULL, "no such domain");
	write_report();
	field_is(group(0), "Diagnostic-Code", "x-sluice; no such domain");
	field_is(group(1), "Diagnostic-Code", "x-sluice; no such domain");
	assert_null(field(group(0), "Remote-MTA"));
	assert_null(field(group(0), "Original-Recipient"));
	assert_null(field(part(1), "Original-Envelope-Id"));
}

static void a_delay_says_until_when_it_is_tried(void **state)
{
	(void)state;
	tell("x@a.test", REPORT_DELAYED, 451, "4.3.0", "mx.a.test", "later");
	write_report();
	field_is(0, "Subject", "Delayed mail: still being retried");
	field_is(group(0), "Action", "delayed");
	field_is(group(0), "Status", "4.3.0");
	field_is(group(0), "Will-Retry-Until", "Wed, 28 Nov 2007 00:00:00 +0000");
}

static void a_delay_of_what_was_not_tried_yet_says_so(void **state)
{
	(void)state;
	owed[0] = REPORT_DELAYED + 1;
	envelope_add(envelope, "x@a.test");
	write_report();
	field_is(group(0), "Action", "delayed");
	field_is(group(0), "Status", "4.4.7");
	field_is(group(0), "Will-Retry-Until", "Wed, 28 Nov 2007 00:00:00 +0000");
	assert_null(field(group(0), "Last-Attempt-Date"));
	assert_true(part_has(0, "    not tried yet: it waits for its turn"));
}

static void a_host_without_a_name_is_called_by_its_address(void **state)
{
	(void)state;
	tell("x@a.test", REPORT_FAILED, 550, "5.1.1", "::1[::1]:25", "no");
	tell("y@a.test", REPORT_FAILED, 550, "5.1.1", "2001:db8::1[2001:db8::1]:25", "no");
	tell("z@a.test", REPORT_FAILED, 550, "5.1.1", "192.0.2.1[192.0.2.1]:25", "no");
	write_report();
	field_is(group(0), "Remote-MTA", "dns; [IPv6:::1]");
	field_is(group(1), "Remote-MTA", "dns; [IPv6:2001:db8::1]");
	field_is(group(2), "Remote-MTA", "dns; [192.0.2.1]");
}

/* As where an alias leads. */
static void an_international_recipient_of_other_mail_has_an_international_status(void **state)
{
	(void)state;
	tell("x@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test", "no");
	tell("\xc3\xa9@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test", "no");
	write_report();
	field_is(boundary_line(1) + 1, "Content-Type", "message/global-delivery-status");
	field_is(boundary_line(2) + 1, "Content-Type", "message/rfc822");
	field_is(group(1), "Final-Recipient", "utf-8;\xc3\xa9@a.test");
	owed[1] = 0; /* a report that does not name it */
	write_report();
	field_is(boundary_line(1) + 1, "Content-Type", "message/delivery-status");
	field_is(group(0), "Final-Recipient", "rfc822;x@a.test");
}

static void words_of_ours_are_not_told_as_those_of_the_host(void **state)
{
	(void)state;
	tell("x@a.test", REPORT_FAILED, 0, "4.4.7", "mx.a.test[192.0.2.1]:25",
	     "delivery time expired; last attempt: 451 4.2.1 later");
	write_report();
	assert_true(part_has(0, "    at host mx.a.test[192.0.2.1]:25:"));
	field_is(group(0), "Diagnostic-Code",
		 "x-sluice; delivery time expired; last attempt: 451 4.2.1 later");
	field_is(group(0), "Remote-MTA", "dns; mx.a.test");
	field_is(group(0), "Last-Attempt-Date", "Fri, 23 Nov 2007 00:50:00 +0000");
}

static void what_was_never_tried_has_no_date_of_an_attempt(void **state)
{
	(void)state;
	struct recipient *r = tell("x@a.test", REPORT_FAILED, 0, "5.0.0", NULL,
				   "returned by the postmaster; last attempt: none");
	write_report();
	assert_null(field(group(0), "Last-Attempt-Date"));
	r->tries = 1;
	write_report();
	assert_non_null(field(group(0), "Last-Attempt-Date"));
}

static void what_went_to_a_host_without_reports_is_relayed(void **state)
{
	(void)state;
	tell("x@a.test", REPORT_RELAYED, 250, "2.0.0", "mx.a.test", "ok");
	write_report();
	field_is(group(0), "Action", "relayed");
	field_is(group(0), "Status", "2.0.0");
}

static void it_names_when_the_message_was_to_be_sent_as_it_was_asked(void **state)
{
	(void)state;
	tell("a@there.test", REPORT_FAILED, 550, "5.1.1", "mx.there.test[192.0.2.1]:25", "no");
	envelope->not_before_ms = INT64_C(1195779000000);
	envelope->hold_asked = 3000;
	envelope->hold_for = true;
	write_report();
	field_is(part(1), "Future-Release-Request", "for;3000");
	envelope->hold_asked = INT64_C(1195779000999);
	envelope->hold_for = false;
	write_report();
	field_is(part(1), "Future-Release-Request", "until;2007-11-23T00:50:00Z");
}

static void only_those_are_reported_of_whom_it_is_owed(void **state)
{
	(void)state;
	tell("x@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test", "no");
	tell("unseen@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test", "no");
	owed[1] = 0;
	tell("y@a.test", REPORT_DELAYED, 451, "4.3.0", "mx.a.test", "later");
	write_report();
	field_is(group(0), "Final-Recipient", "rfc822;x@a.test");
	field_is(group(1), "Final-Recipient", "rfc822;y@a.test");
	field_is(group(1), "Action", "delayed");
	for (int i = 0; i < nline; i++)
		assert_null(strstr(line[i], "unseen"));
	assert_true(part_has(0, "<x@a.test>:"));
	assert_true(part_has(0, "    550 no"));
}

static void a_failure_returns_the_message(void **state)
{
	(void)state;
	tell("x@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test", "no");
	write_report();
	assert_true(part_has(2, "Subject: original"));
	assert_true(part_has(2, "body"));
}

static void who_asks_for_the_header_gets_the_header(void **state)
{
	(void)state;
	envelope->ret = RET_HDRS;
	tell("x@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test", "no");
	write_report();
	field_is(boundary_line(2) + 1, "Content-Type", "text/rfc822-headers");
	assert_true(part_has(2, "Subject: original"));
	assert_true(part_has(2, "X: y"));
	assert_false(part_has(2, "body"));
}

/* RFC 8689 5. */
static void who_wants_it_hidden_gets_the_header_whatever_he_asked_for(void **state)
{
	(void)state;
	envelope->ret = RET_FULL;
	envelope->tls = ENVELOPE_TLS_REQUIRED;
	tell("x@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test", "no");
	write_report();
	assert_true(part_has(2, "Subject: original"));
	assert_false(part_has(2, "body"));
}

static void a_delay_returns_the_header_whatever_was_asked(void **state)
{
	(void)state;
	envelope->ret = RET_FULL;
	tell("x@a.test", REPORT_DELAYED, 451, "4.3.0", "mx.a.test", "later");
	write_report();
	assert_true(part_has(2, "Subject: original"));
	assert_false(part_has(2, "body"));
}

static void a_message_over_the_limit_comes_back_as_its_header(void **state)
{
	(void)state;
	tell("x@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test", "no");
	static const char message[] = "Subject: original\r\n\r\nbody\r\n";
	set_content(message);
	report.size_max = sizeof message - 1;
	write_report();
	assert_true(part_has(2, "body"));
	report.size_max--;
	write_report();
	assert_true(part_has(2, "Subject: original"));
	assert_false(part_has(2, "body"));
	report.size_max = 0;
	write_report();
	assert_true(part_has(2, "Subject: original"));
	assert_false(part_has(2, "body"));
}

static void a_header_without_end_is_cut(void **state)
{
	(void)state;
	enum { LINE = 60, COUNT = 10000 };
	struct buf header;
	buf_init(&header);
	for (int i = 0; i < COUNT; i++)
		buf_printf(&header, "X-%05d: %049d\r\n", i, i);
	assert_int_equal(buf_len(&header), LINE * COUNT);
	set_content(buf_cstr(&header));
	buf_fini(&header);
	tell("x@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test", "no");
	write_report();
	assert_true(part_has(2, "X-00000: 0000000000000000000000000000000000000000000000000"));
	assert_in_range((LINE - 1) * (boundary_line(3) - part(2)), 30000, 60000);
}

static void a_message_without_a_header_returns_none(void **state)
{
	(void)state;
	envelope->ret = RET_HDRS;
	set_content("\r\nbody\r\n\r\nmore\r\n");
	tell("x@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test", "no");
	write_report();
	assert_false(part_has(2, "body"));
	assert_false(part_has(2, "more"));
}

static void a_message_that_can_not_be_read_is_reported_all_the_same(void **state)
{
	(void)state;
	int fd = open("/dev/null", O_RDONLY);
	struct content_file *f = content_file_new(fd);
	report.content = content_in_file(f, 0, 1000);
	content_file_unref(f);
	tell("x@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test", "no");
	write_report();
	field_is(group(0), "Action", "failed");
	assert_true(part_has(2, "X-Sluice: the message cannot be read from the queue"));
	assert_int_equal(boundary_line(3), nline - 1);
}

static void a_large_message_comes_back_whole(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b);
	buf_puts(&b, "Subject: large\r\n\r\n");
	for (int i = 0; i < 3000; i++)
		buf_printf(&b, "line %d of the body\r\n", i);
	size_t len;
	char *bytes = buf_steal(&b, &len);
	report.content = content_in_memory(bytes, len);
	report.size_max = 100000;
	tell("x@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test", "no");
	write_report();
	for (int i = 0; i < 3000; i++) {
		char expected[64];
		snprintf(expected, sizeof expected, "line %d of the body", i);
		assert_string_equal(line[part(2) + 2 + i], expected);
	}
}

/* Replies that try to be more than a reply. */
static void a_reply_can_not_add_a_field_or_end_a_part(void **state)
{
	(void)state;
	tell("x@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test", "no");
	write_report();
	char mark[110], said[600];
	snprintf(mark, sizeof mark, "--%s", boundary());
	snprintf(said, sizeof said,
		 "no\r\nAction: delivered\r\nStatus: 2.0.0\r\n\r\n%s\r\n%s--\r\n%s", mark, mark,
		 mark);
	tell("y@a.test", REPORT_FAILED, 550, "5.1.1", "mx\r\nX-Host: evil", said);
	tell("z@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test", mark);
	write_report();
	assert_int_equal(boundary_line(3), nline - 1);
	assert_int_equal(boundary_line(4), -1);
	field_is(group(1), "Action", "failed");
	field_is(group(1), "Status", "5.1.1");
	for (int i = 0; i < nline; i++) {
		assert_false(begins(line[i], "Action: delivered"));
		assert_false(begins(line[i], "Status: 2"));
		assert_false(begins(line[i], "X-Host"));
	}
}

static void no_line_is_longer_than_it_may_be(void **state)
{
	(void)state;
	char said[VERDICT_TEXT_MAX + 1], host[VERDICT_HOST_MAX + 1], address[330], orcpt[501];
	memset(said, 's', sizeof said - 1);
	said[sizeof said - 1] = '\0';
	memset(host, 'h', sizeof host - 1);
	host[sizeof host - 1] = '\0';
	memset(address, 'a', sizeof address - 1);
	address[sizeof address - 1] = '\0';
	memcpy(address + 64, "@", 1);
	memset(orcpt, 'o', sizeof orcpt - 1);
	orcpt[sizeof orcpt - 1] = '\0';
	memcpy(orcpt, "rfc822;", 7);
	tell(address, REPORT_FAILED, 550, "5.1.1", host, said)->orcpt = mem_strdup(orcpt);
	for (int i = 1; i < VERDICT_TEXT_MAX; i += 7)
		said[i] = ' ';
	tell("y@a.test", REPORT_FAILED, 550, "5.1.1", host, said);
	memset(said, ' ', sizeof said - 1);
	tell("z@a.test", REPORT_FAILED, 550, "5.1.1", host, said);
	write_report();
	for (int i = 0; i < nline; i++)
		assert_true(strlen(line[i]) <= 998);
	for (int i = group(0); i < boundary_line(2); i++)
		if (line[i][0] == ' ')
			assert_true(line[i][strspn(line[i], " ")]); /* a blank line would end it */
	assert_string_equal(field(group(2), "Final-Recipient"), "rfc822;z@a.test");
}

static void an_international_message_has_an_international_report(void **state)
{
	(void)state;
	envelope->smtputf8 = true;
	set_content("Subject: Gr\xc3\xbc\xc3\x9f"
		    "e\r\n\r\nbody\r\n");
	tell("j\xc3\xbcrgen@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test", "unbekannt");
	tell("x@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test", "unbekannt");
	write_report();
	field_is(boundary_line(1) + 1, "Content-Type", "message/global-delivery-status");
	field_is(boundary_line(1) + 1, "Content-Transfer-Encoding", "8bit");
	field_is(boundary_line(2) + 1, "Content-Type", "message/global");
	field_is(group(0), "Final-Recipient", "utf-8;j\xc3\xbcrgen@a.test");
	field_is(group(1), "Final-Recipient", "rfc822;x@a.test");
	envelope->ret = RET_HDRS;
	write_report();
	field_is(boundary_line(2) + 1, "Content-Type", "message/global-headers");
}

static void smtputf8_without_need_has_the_report_that_all_can_read(void **state)
{
	(void)state;
	envelope->smtputf8 = true;
	set_content("Subject: hello\r\n\r\nGr\xc3\xbc\xc3\x9f"
		    "e\r\n");
	tell("x@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test", "no");
	write_report();
	field_is(boundary_line(1) + 1, "Content-Type", "message/delivery-status");
	field_is(boundary_line(2) + 1, "Content-Type", "message/rfc822");
	field_is(group(0), "Final-Recipient", "rfc822;x@a.test");
	envelope->ret = RET_HDRS;
	write_report();
	field_is(boundary_line(2) + 1, "Content-Type", "text/rfc822-headers");
}

static void encodings_are(const char *whole, const char *notice, const char *status,
			  const char *original)
{
	field_is(0, "Content-Transfer-Encoding", whole);
	field_is(boundary_line(0) + 1, "Content-Transfer-Encoding", notice);
	field_is(boundary_line(1) + 1, "Content-Transfer-Encoding", status);
	field_is(boundary_line(2) + 1, "Content-Transfer-Encoding", original);
}

/* RFC 2045 6.4. */
static void each_part_and_the_whole_say_what_bytes_they_have(void **state)
{
	(void)state;
	tell("x@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test", "no");
	write_report();
	encodings_are("7bit", "7bit", "7bit", "7bit");
	set_content("Subject: hello\r\n\r\nGr\xc3\xbc\xc3\x9f"
		    "e\r\n");
	write_report();
	encodings_are("8bit", "7bit", "7bit", "8bit");
}

/* RFC 3464 2.1: the fields are for programs, and in 7bit. */
static void what_a_host_says_beyond_ascii_stands_in_the_notice_only(void **state)
{
	(void)state;
	tell("x@a.test", REPORT_FAILED, 550, "5.1.1", "mx.a.test",
	     "Empf\xc3\xa4nger \xe7\x94\xa8 ung\xc3\xbcltig");
	write_report();
	encodings_are("8bit", "8bit", "7bit", "7bit");
	field_is(boundary_line(1) + 1, "Content-Type", "message/delivery-status");
	field_is(group(0), "Diagnostic-Code", "smtp; 550 Empf?nger ? ung?ltig");
	assert_true(part_has(0, "    550 Empf\xc3\xa4nger \xe7\x94\xa8 ung\xc3\xbcltig"));
}

static void wants(uint8_t notify, bool failed, bool delayed, bool relayed)
{
	struct recipient r = {.notify = notify};
	assert_int_equal(bounce_wants(&r, REPORT_FAILED), failed);
	assert_int_equal(bounce_wants(&r, REPORT_DELAYED), delayed);
	assert_int_equal(bounce_wants(&r, REPORT_RELAYED), relayed);
}

static void notify_is_obeyed(void **state)
{
	(void)state;
	wants(0, true, true, false);
	wants(NOTIFY_NEVER, false, false, false);
	wants(NOTIFY_SUCCESS, false, false, true);
	wants(NOTIFY_FAILURE, true, false, false);
	wants(NOTIFY_DELAY, false, true, false);
	wants(NOTIFY_SUCCESS | NOTIFY_FAILURE | NOTIFY_DELAY, true, true, true);
	wants(NOTIFY_NEVER | NOTIFY_FAILURE, false, false, false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_header_says_that_it_is_a_report),
		TEST(it_has_three_parts_and_an_end),
		TEST(a_failed_recipient_has_all_its_fields),
		TEST(our_own_verdict_is_no_reply_of_a_server),
		TEST(a_delay_says_until_when_it_is_tried),
		TEST(a_delay_of_what_was_not_tried_yet_says_so),
		TEST(a_host_without_a_name_is_called_by_its_address),
		TEST(an_international_recipient_of_other_mail_has_an_international_status),
		TEST(words_of_ours_are_not_told_as_those_of_the_host),
		TEST(what_was_never_tried_has_no_date_of_an_attempt),
		TEST(what_went_to_a_host_without_reports_is_relayed),
		TEST(it_names_when_the_message_was_to_be_sent_as_it_was_asked),
		TEST(only_those_are_reported_of_whom_it_is_owed),
		TEST(a_failure_returns_the_message),
		TEST(who_asks_for_the_header_gets_the_header),
		TEST(who_wants_it_hidden_gets_the_header_whatever_he_asked_for),
		TEST(a_delay_returns_the_header_whatever_was_asked),
		TEST(a_message_over_the_limit_comes_back_as_its_header),
		TEST(a_header_without_end_is_cut),
		TEST(a_message_without_a_header_returns_none),
		TEST(a_message_that_can_not_be_read_is_reported_all_the_same),
		TEST(a_large_message_comes_back_whole),
		TEST(a_reply_can_not_add_a_field_or_end_a_part),
		TEST(no_line_is_longer_than_it_may_be),
		TEST(an_international_message_has_an_international_report),
		TEST(smtputf8_without_need_has_the_report_that_all_can_read),
		TEST(each_part_and_the_whole_say_what_bytes_they_have),
		TEST(what_a_host_says_beyond_ascii_stands_in_the_notice_only),
		TEST(notify_is_obeyed),
	};
	return RUN(tests);
}
