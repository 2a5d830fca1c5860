/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/unit.h"

#include "base/date.h"
#include "base/utf8.h"
#include "qmgr/report_text.h"

#include <string.h>

static struct buf out;

static int start(void **state)
{
	(void)state;
	buf_init(&out);
	return 0;
}

static int end(void **state)
{
	(void)state;
	buf_fini(&out);
	return 0;
}

static void a_date_is_in_universal_time(void **state)
{
	(void)state;
	char text[REPORT_DATE];
	assert_string_equal(report_date(INT64_C(1195776000123), text),
			    "Fri, 23 Nov 2007 00:00:00 +0000");
	assert_string_equal(report_date(0, text), "Thu, 01 Jan 1970 00:00:00 +0000");
}

static void a_date_is_the_systems_whose_clock_was_set(void **state)
{
	(void)state;
	char text[REPORT_DATE];
	date_set(24 * 3600 * 1000);
	report_date(INT64_C(1195776000123), text);
	date_set(0);
	assert_string_equal(text, "Sat, 24 Nov 2007 00:00:00 +0000");
}

static void a_short_line_stays_one(void **state)
{
	(void)state;
	report_folded(&out, "  ", "%d %s", 550, "no such user");
	assert_string_equal(buf_cstr(&out), "  550 no such user\r\n");
}

static void a_long_line_is_folded_at_blanks(void **state)
{
	(void)state;
	char text[300] = "";
	for (int i = 0; i < 28; i++)
		strcat(text, i ? " ninechars" : "ninechars");
	report_folded(&out, "", "Field: %s", text);
	char joined[400] = "";
	int lines = 0;
	for (char *line = strtok(buf_cstr(&out), "\n"); line; line = strtok(NULL, "\n")) {
		size_t len = strlen(line);
		assert_int_equal(line[len - 1], '\r');
		line[len - 1] = '\0';
		assert_true(len - 1 <= REPORT_LINE_MAX);
		assert_int_equal(line[0] == ' ', lines > 0);
		strcat(joined, line);
		lines++;
	}
	assert_true(lines >= 4);
	assert_string_equal(joined + strlen("Field: "), text);
}

static void a_word_without_end_is_cut_before_the_limit_of_a_line(void **state)
{
	(void)state;
	char text[1900];
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	report_folded(&out, "", "%s", text);
	size_t found = 0;
	for (char *line = strtok(buf_cstr(&out), "\r\n"); line; line = strtok(NULL, "\r\n")) {
		assert_true(strlen(line) <= 998);
		found += strlen(line) - (line[0] == ' ');
	}
	assert_int_equal(found, sizeof text - 1);
}

static void a_cut_does_not_go_through_a_character(void **state)
{
	(void)state;
	for (int before = 0; before < 3; before++) {
		char text[1600];
		memset(text, 'x', (size_t)before);
		for (int i = 0; i < 500; i++)
			memcpy(text + before + 3 * i, "\xe2\x82\xac", 4);
		buf_clear(&out);
		report_folded(&out, "", "%s", text);
		for (char *at = buf_cstr(&out); *at; at += utf8_length(at))
			assert_true(utf8_length(at) > 0);
	}
}

static void an_original_recipient_is_decoded(void **state)
{
	(void)state;
	report_orcpt(&out, "rfc822;a+2Bb@example.test");
	assert_string_equal(buf_cstr(&out), "Original-Recipient: rfc822;a+b@example.test\r\n");
}

static void an_original_recipient_that_is_none_is_left_out(void **state)
{
	(void)state;
	report_orcpt(&out, NULL);
	report_orcpt(&out, "no-semicolon");
	report_orcpt(&out, "rfc822;a+0D+0AAction:+20delivered");
	assert_int_equal(buf_len(&out), 0);
}

static void an_envelope_id_is_decoded(void **state)
{
	(void)state;
	report_envid(&out, "QQ+3D314");
	assert_string_equal(buf_cstr(&out), "Original-Envelope-Id: QQ=314\r\n");
	buf_clear(&out);
	report_envid(&out, NULL);
	report_envid(&out, "x+0Ay");
	assert_int_equal(buf_len(&out), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_date_is_in_universal_time),
		TEST(a_date_is_the_systems_whose_clock_was_set),
		TEST(a_short_line_stays_one),
		TEST(a_long_line_is_folded_at_blanks),
		TEST(a_word_without_end_is_cut_before_the_limit_of_a_line),
		TEST(a_cut_does_not_go_through_a_character),
		TEST(an_original_recipient_is_decoded),
		TEST(an_original_recipient_that_is_none_is_left_out),
		TEST(an_envelope_id_is_decoded),
	};
	return RUN(tests);
}
