/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpd/unit.h"

#include "base/envelope.h"
#include "smtpd/param.h"

#include <stdio.h>

#include <string.h>

static struct param p;
static char line[200];

static void begin(const char *text)
{
	strcpy(line, text);
	param_init(&p, line);
}

static void parameters_come_one_by_one(void **state)
{
	(void)state;
	begin(" SIZE=100  smtputf8 X-a=b,c;d");
	assert_int_equal(param_next(&p), PARAM_NEXT);
	assert_true(param_is(&p, "size"));
	assert_string_equal(p.value, "100");
	assert_int_equal(param_next(&p), PARAM_NEXT);
	assert_true(param_is(&p, "SMTPUTF8"));
	assert_null(p.value);
	assert_int_equal(param_next(&p), PARAM_NEXT);
	assert_string_equal(p.key, "X-a");
	assert_string_equal(p.value, "b,c;d");
	assert_int_equal(param_next(&p), PARAM_END);
	begin("");
	assert_int_equal(param_next(&p), PARAM_END);
}

static void what_is_no_parameter_ends_the_line(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"SIZE=1", " =1",     " \"= \"=", " SIZE=",   " SIZE==",	 " A=b=c",
		" -A=b",  " A\tB=c", " A:b",	 " A=b\x7f", " A=b\x01", " A=b\tc"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		begin(bad[i]);
		assert_int_equal(param_next(&p), PARAM_SYNTAX);
		assert_int_equal(param_next(&p), PARAM_SYNTAX);
	}
}

static void a_parameter_may_come_once(void **state)
{
	(void)state;
	unsigned seen = 0;
	assert_true(param_once(&seen, 1));
	assert_true(param_once(&seen, 4));
	assert_false(param_once(&seen, 1));
}

static void numbers_are_digits_that_fit(void **state)
{
	(void)state;
	static const char *const bad[] = {"",
					  "-1",
					  "+1",
					  "0x10",
					  "ten",
					  "1 ",
					  "1.0",
					  "9223372036854775808",
					  "18446744073709551616",
					  "000000000000000000001"};
	uint64_t n;
	assert_true(param_number("0", &n) && n == 0);
	assert_true(param_number("00000000000000000012", &n) && n == 12);
	assert_true(param_number("9000000000000000000", &n) && n == UINT64_C(9000000000000000000));
	assert_false(param_number(NULL, &n));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(param_number(bad[i], &n));
}

static void a_size_of_20_digits_is_too_large_and_no_fault(void **state)
{
	(void)state;
	uint64_t n;
	assert_true(param_size("1000", &n) && n == 1000);
	assert_true(param_size("18446744073709551616", &n) && n == INT64_MAX);
	assert_true(param_size("99999999999999999999", &n) && n == INT64_MAX);
	assert_false(param_size("000000000000000000001", &n));
	assert_false(param_size("-1", &n));
	assert_false(param_size("1x", &n));
	assert_false(param_size(NULL, &n));
}

static void a_time_to_deliver_by_is_written_one_way(void **state)
{
	(void)state;
	static const char *const bad[] = {"",	  "5",	   "5;",   ";R",    "5;X",	   "5;RN",
					  "5;TR", "5;RTT", "5 ;R", "--5;N", "+-5;N",	   "0;R",
					  "-1;R", "+0;RT", "5;R;", "0x5;R", "1000000000;N"};
	int64_t seconds;
	uint8_t by;
	assert_true(param_by("600;R", &seconds, &by) && seconds == 600);
	assert_int_equal(by, ENVELOPE_BY_RETURN);
	assert_true(param_by("+1;rt", &seconds, &by) && seconds == 1);
	assert_int_equal(by, ENVELOPE_BY_RETURN | ENVELOPE_BY_TRACE);
	assert_true(param_by("-999999999;NT", &seconds, &by) && seconds == -999999999);
	assert_int_equal(by, ENVELOPE_BY_NOTIFY | ENVELOPE_BY_TRACE);
	assert_true(param_by("0;N", &seconds, &by) && seconds == 0);
	assert_false(param_by(NULL, &seconds, &by));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(param_by(bad[i], &seconds, &by));
}

static void a_priority_is_one_digit(void **state)
{
	(void)state;
	static const char *const bad[] = {"", "-", "+1", "-0", "01", "10", "-10", "a", "1.", " 1"};
	int8_t priority;
	for (int i = -9; i <= 9; i++) {
		char text[12];
		snprintf(text, sizeof text, "%d", i);
		assert_true(param_priority(text, &priority) && priority == i);
	}
	assert_false(param_priority(NULL, &priority));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(param_priority(bad[i], &priority));
}

static void how_long_to_hold_is_one_number_without_leading_zeros(void **state)
{
	(void)state;
	static const char *const bad[] = {"",	"0",  "01", "-1",	  "+1",
					  "1s", " 1", "1.", "1000000000", "0x1"};
	int64_t seconds;
	assert_true(param_hold_for("1", &seconds) && seconds == 1);
	assert_true(param_hold_for("999999999", &seconds) && seconds == 999999999);
	assert_false(param_hold_for(NULL, &seconds));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(param_hold_for(bad[i], &seconds));
}

static void until_when_to_hold_is_a_time_with_its_zone(void **state)
{
	(void)state;
	int64_t ms;
	assert_true(param_hold_until("1970-01-01T01:00:01+01:00", &ms) && ms == 1000);
	assert_false(param_hold_until("1970-01-01T01:00:01", &ms));
	assert_false(param_hold_until(NULL, &ms));
}

static void an_original_recipient_beyond_ascii_is_written_in_ascii(void **state)
{
	(void)state;
	char to[PARAM_ORCPT_MAX + 1], value[2 * PARAM_ORCPT_MAX];
	assert_true(param_orcpt_utf8("UTF-8;\xc3\xa9\xe7\x94\xa8\xf0\x9f\x90\x8c+2B@x.test", to));
	assert_string_equal(to, "UTF-8;\\x{E9}\\x{7528}\\x{1F40C}+2B@x.test");
	assert_true(param_orcpt(to));
	assert_false(param_orcpt_utf8("utf-8;a@x.test", to)); /* as it is */
	assert_false(param_orcpt_utf8("rfc822;\xc3\xa9@x.test", to));
	assert_true(param_orcpt_octets("RFC822;+C3+A9+2Ba@x.test", to));
	assert_string_equal(to, "utf-8;\\x{E9}\\x{2B}a@x.test");
	assert_true(param_orcpt(to));
	assert_false(param_orcpt_octets("rfc822;a+2Bb@x.test", to)); /* as it is */
	assert_false(param_orcpt_octets("rfc822;+C3@x.test", to));
	assert_false(param_orcpt_octets("rfc822;+C3+A9+00@x.test", to));
	assert_false(param_orcpt_octets("rfc822;+C3+A9+7F@x.test", to));
	assert_false(param_orcpt_octets("utf-8;+C3+A9@x.test", to));
	assert_false(param_orcpt_octets(NULL, to));
	assert_false(param_orcpt_utf8("utf-8;\xc3@x.test", to));
	assert_false(param_orcpt_utf8(NULL, to));
	strcpy(value, "utf-8;");
	while (strlen(value) < 494)
		strcat(value, "\xc3\xa9");
	assert_false(param_orcpt_utf8(value, to));
	value[6 + 2 * 80] = '\0';
	assert_true(param_orcpt_utf8(value, to));
	assert_int_equal(strlen(to), 6 + 6 * 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters_come_one_by_one),
		cmocka_unit_test(what_is_no_parameter_ends_the_line),
		cmocka_unit_test(a_parameter_may_come_once),
		cmocka_unit_test(numbers_are_digits_that_fit),
		cmocka_unit_test(a_size_of_20_digits_is_too_large_and_no_fault),
		cmocka_unit_test(an_original_recipient_beyond_ascii_is_written_in_ascii),
		cmocka_unit_test(a_priority_is_one_digit),
		cmocka_unit_test(how_long_to_hold_is_one_number_without_leading_zeros),
		cmocka_unit_test(until_when_to_hold_is_a_time_with_its_zone),
		cmocka_unit_test(a_time_to_deliver_by_is_written_one_way),
	};
	return RUN(tests);
}
