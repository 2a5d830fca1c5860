/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpd/unit.h"

#include "smtpd/header_in.h"

#include <stdio.h>
#include <string.h>

static struct buf kept;

static void keep(void *owner, const char *bytes, size_t len)
{
	(void)owner;
	buf_append(&kept, bytes, len);
}

static void add(void *owner, bool blank_line)
{
	(void)owner;
	buf_puts(&kept, blank_line ? "<blank>" : "<missing>");
}

/* Read a message in steps of so many bytes. */
static struct header_in read_message(const char *text, size_t len, size_t step, bool adding)
{
	struct header_in h = {.sink = keep, .missing = adding ? add : NULL};
	buf_clear(&kept);
	for (size_t at = 0; at < len; at += step)
		header_in_feed(&h, text + at, step < len - at ? step : len - at);
	header_in_finish(&h);
	header_in_fini(&h);
	return h;
}

static void assert_kept(const char *text)
{
	assert_string_equal(buf_cstr(&kept), text);
}

static const char message[] =
	"Received: a\r\nreceived : b\r\n\tReceived: c\r\nDATE:x\r\nFrom: y\r\n"
	"Message-Id:\r\n <one\r\n\t@two>\r\nSubject: z\r\n\r\nReceived: no\r\n";

static void a_header_is_read_at_every_split(void **state)
{
	(void)state;
	for (size_t step = 1; step <= sizeof message; step++) {
		struct header_in h = read_message(message, sizeof message - 1, step, true);
		assert_int_equal(h.received, 2);
		assert_true(h.date && h.from && h.message_id);
		assert_string_equal(h.id, "<one@two>");
		assert_kept(message);
	}
}

static void fields_that_are_to_go_leave_nothing(void **state)
{
	(void)state;
	static const char text[] =
		"A: 1\r\nBCC : x,\r\n\ty\r\nBccs: 2\r\nbcc:\r\nMessage-ID: <i>\r\nBcc: z\r\n";
	static const char stays[] = "A: 1\r\nBccs: 2\r\nMessage-ID: <i>\r\n";
	char *names[] = {"Bcc", "Return-Path"};
	struct conf_list drop = {.n = 2, .item = names};
	for (size_t step = 1; step < sizeof text; step++) {
		for (int ends = 0; ends < 2; ends++) {
			struct header_in h = {.sink = keep, .drop = &drop};
			const char *rest = ends ? "\r\nBcc: text\r\n" : "no field\r\n";
			buf_clear(&kept);
			for (size_t at = 0; at < sizeof text - 1; at += step)
				header_in_feed(&h, text + at,
					       step < sizeof text - 1 - at ? step
									   : sizeof text - 1 - at);
			header_in_feed(&h, rest, strlen(rest));
			header_in_finish(&h);
			header_in_fini(&h);
			assert_memory_equal(buf_cstr(&kept), stays, strlen(stays));
			assert_string_equal(buf_cstr(&kept) + strlen(stays), rest);
		}
	}
}

static void a_long_line_of_a_field_that_goes_goes_with_it(void **state)
{
	(void)state;
	char *names[] = {"Bcc"}, text[9000];
	struct conf_list drop = {.n = 1, .item = names};
	struct header_in h = {.sink = keep, .drop = &drop};
	snprintf(text, sizeof text, "Bcc: %08000d\r\n %0500d\r\nTo: a\r\n\r\n", 1, 2);
	buf_clear(&kept);
	for (size_t at = 0; at < strlen(text); at += 100)
		header_in_feed(&h, text + at, strlen(text) - at < 100 ? strlen(text) - at : 100);
	header_in_finish(&h);
	header_in_fini(&h);
	assert_kept("To: a\r\n\r\n");
}

/* The log has its Message-ID all the same. */
static void a_field_that_goes_is_missing(void **state)
{
	(void)state;
	static const char text[] = "Date: x\r\nMessage-ID:\r\n <one@two>\r\nFROM: y\r\nA: 1\r\n"
				   "Message-ID: <other>\r\nReceived: a\r\n\r\n";
	char *names[] = {"date", "message-id", "From", "Received"};
	struct conf_list drop = {.n = 4, .item = names};
	struct header_in h = {.sink = keep, .missing = add, .drop = &drop};
	buf_clear(&kept);
	header_in_feed(&h, text, strlen(text));
	header_in_finish(&h);
	header_in_fini(&h);
	assert_kept("A: 1\r\n<missing>\r\n");
	assert_false(h.date || h.message_id || h.from);
	assert_string_equal(h.id, "<one@two>");
	assert_int_equal(h.received, 1);
}

static void read_flow(struct header_in *h, const char *text)
{
	*h = (struct header_in){.sink = keep, .flow_field = "X-Tenant"};
	buf_clear(&kept);
	for (size_t i = 0; i < strlen(text); i++)
		header_in_feed(h, text + i, 1);
	header_in_finish(h);
	header_in_fini(h);
}

static void the_field_of_the_flow_is_kept_and_goes(void **state)
{
	(void)state;
	char text[400], long_name[100];
	struct header_in h;
	read_flow(&h, "A: 1\r\nx-tenant:  red-1 \r\nX-Tenants: 2\r\nX-Tenant: "
		      "blue\r\n\r\nX-Tenant: b\r\n");
	assert_kept("A: 1\r\nX-Tenants: 2\r\n\r\nX-Tenant: b\r\n");
	assert_true(h.flow_named);
	assert_string_equal(h.flow, "red-1");
	read_flow(&h, "A: 1\r\n\r\n");
	assert_false(h.flow_named);
	/* Of one that is too long so much is kept that this can be seen. */
	memset(long_name, 'x', sizeof long_name);
	snprintf(text, sizeof text, "X-Tenant: %.90s\r\n folded\r\nB: 1\r\n\r\n", long_name);
	read_flow(&h, text);
	assert_kept("B: 1\r\n\r\n");
	assert_int_equal(strlen(h.flow), HEADER_FLOW_MAX + 1);
	read_flow(&h, "X-Tenant:\r\n\r\n");
	assert_kept("\r\n");
	assert_true(h.flow_named);
	assert_string_equal(h.flow, "");
}

/* Programs begin a new line where the value would make the first too long. */
static void a_value_may_begin_in_a_later_line(void **state)
{
	(void)state;
	struct header_in h;
	read_flow(&h, "X-Tenant:\r\n red \r\nA: 1\r\n\r\n");
	assert_kept("A: 1\r\n\r\n");
	assert_string_equal(h.flow, "red");
	read_flow(&h, "X-Tenant: \t\r\n \r\n\tred");
	assert_string_equal(h.flow, "red");
	read_flow(&h, "TLS-Required:\r\n No\r\nPriority:\r\n\tnon-urgent\r\nPrecedence: \r\n "
		      "bulk\r\n\r\n");
	assert_true(h.tls_waived && h.bulk && h.prioritised);
	assert_int_equal(h.priority, -4);
	assert_kept("TLS-Required:\r\n No\r\nPriority:\r\n\tnon-urgent\r\nPrecedence: \r\n "
		    "bulk\r\n\r\n");
	read_flow(&h, "TLS-Required:\r\nX: No\r\n No\r\n\r\n No\r\n");
	assert_false(h.tls_waived);
	read_flow(&h, "TLS-Required: Yes\r\n No\r\n\r\n");
	assert_false(h.tls_waived);
	read_flow(&h, "Received:\r\n a\r\nReceived:\r\nReceived:");
	assert_int_equal(h.received, 3);
}

static void fields_that_are_missing_are_added_where_the_header_ends(void **state)
{
	(void)state;
	read_message("A: b\r\n\r\ntext\r\n", 14, 3, true);
	assert_kept("A: b\r\n<missing>\r\ntext\r\n");
	read_message("A: b\r\ntext\r\n", 12, 5, true);
	assert_kept("A: b\r\n<blank>text\r\n");
	read_message("A: b\r\n", 6, 6, true);
	assert_kept("A: b\r\n<missing>");
	read_message("", 0, 1, true);
	assert_kept("<missing>");
	read_message("A: b\r\n\r\ntext\r\n", 14, 3, false);
	assert_kept("A: b\r\n\r\ntext\r\n");
}

static bool waives(const char *header)
{
	size_t len = strlen(header);
	bool first = read_message(header, len, len, false).tls_waived;
	assert_int_equal(read_message(header, len, 1, false).tls_waived, first);
	return first;
}

static void tls_required_says_no_or_nothing(void **state)
{
	(void)state;
	assert_true(waives("TLS-Required: No\r\n\r\n"));
	assert_true(waives("A: b\r\ntls-required :no \t\r\nC: d\r\n\r\n"));
	assert_false(waives("TLS-Required: Yes\r\n\r\n"));
	assert_false(waives("TLS-Required: No way\r\n\r\n"));
	assert_false(waives("TLS-Required:\r\n\r\n"));
	assert_false(waives("X-TLS-Required: No\r\n\r\n"));
	assert_false(waives("A: b\r\n\r\nTLS-Required: No\r\n"));
}

static void long_lines_pass_and_are_not_held(void **state)
{
	(void)state;
	static char text[100000];
	memset(text, 'x', sizeof text);
	memcpy(text, "Message-ID: ", 12);
	memcpy(text + sizeof text - 20, "\r\nReceived: a\r\n\r\nab\r\n", 20);
	for (size_t step = 700; step < sizeof text; step *= 7) {
		struct header_in h = read_message(text, sizeof text, step, false);
		assert_int_equal(h.received, 1);
		assert_int_equal(strlen(h.id), HEADER_MESSAGE_ID_MAX);
		assert_int_equal(buf_len(&kept), sizeof text);
		assert_memory_equal(buf_data(&kept), text, sizeof text);
	}
}

static void a_priority_is_read_from_the_fields_that_have_one(void **state)
{
	(void)state;
	static const struct {
		const char *header;
		int8_t priority;
	} cases[] = {
		{"Subject: urgent\r\n", 0},
		{"Priority: urgent\r\n", 4},
		{"PRIORITY:non-Urgent \r\n", -4},
		{"Priority: normal\r\nPrecedence: bulk\r\n", 0},
		{"Precedence: bulk\r\nPriority: urgent\r\n", 4},
		{"Precedence: first-class\r\n", 0},
		{"Precedence: list\r\n", -4},
		{"precedence : JUNK\r\nPrecedence: none\r\n", -4},
		{"Priority: urgent\r\nPriority: non-urgent\r\n", 4},
		{"Priority: high\r\nPriority: non-urgent\r\n", -4},
		{"Priority: urgently\r\n", 0},
		{"Priority:\r\n", 0},
		{"X-Priority: urgent\r\n\r\nPriority: urgent\r\n", 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t len = strlen(cases[i].header);
		for (size_t step = 1; step <= len; step++) {
			struct header_in h = read_message(cases[i].header, len, step, false);
			assert_int_equal(header_in_priority(&h), cases[i].priority);
			assert_kept(cases[i].header);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_is_read_at_every_split),
		cmocka_unit_test(fields_that_are_to_go_leave_nothing),
		cmocka_unit_test(a_long_line_of_a_field_that_goes_goes_with_it),
		cmocka_unit_test(the_field_of_the_flow_is_kept_and_goes),
		cmocka_unit_test(a_value_may_begin_in_a_later_line),
		cmocka_unit_test(a_field_that_goes_is_missing),
		cmocka_unit_test(fields_that_are_missing_are_added_where_the_header_ends),
		cmocka_unit_test(tls_required_says_no_or_nothing),
		cmocka_unit_test(a_priority_is_read_from_the_fields_that_have_one),
		cmocka_unit_test(long_lines_pass_and_are_not_held),
	};
	int failed = RUN(tests);
	buf_fini(&kept);
	return failed;
}
