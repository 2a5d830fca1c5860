/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/internet_time.h"

static void assert_is(const char *text, int64_t expected_ms)
{
	int64_t ms = 0;
	assert_true(internet_time_parse(text, &ms));
	assert_int_equal(ms, expected_ms);
}

static void a_time_is_read_with_its_offset_and_its_fraction(void **state)
{
	(void)state;
	assert_is("1970-01-01T00:00:00Z", 0);
	assert_is("2026-11-24T15:00:00Z", INT64_C(1795532400000));
	assert_is("2026-11-24t16:30:00.25+01:30", INT64_C(1795532400250));
	assert_is("2026-11-24T10:00:00.1239999-05:00", INT64_C(1795532400123));
	assert_is("2026-11-24T15:00:00-00:00", INT64_C(1795532400000));
	assert_is("2016-12-31T23:59:60z", INT64_C(1483228800000));
	assert_is("2024-02-29T00:00:00Z", INT64_C(1709164800000));
	assert_is("9999-12-31T23:59:59Z", INT64_C(253402300799000));
}

static void what_is_no_time_or_no_day_is_none(void **state)
{
	(void)state;
	static const char *const bad[] = {"",
					  "now",
					  "2026-11-24",
					  "2026-11-24T15:00:00",
					  "2026-11-24 15:00:00Z",
					  "2026-11-24T15:00Z",
					  "2026-11-24T15:00:00.Z",
					  "2026-11-24T15:00:00Z ",
					  "2026-11-24T15:00:00+0100",
					  "2026-11-24T15:00:00+24:00",
					  "2026-11-24T15:00:00+",
					  "2026-11-24T24:00:00Z",
					  "2026-11-24T15:60:00Z",
					  "2026-11-24T15:00:61Z",
					  "2026-00-24T15:00:00Z",
					  "2026-13-24T15:00:00Z",
					  "2026-11-00T15:00:00Z",
					  "2026-11-31T15:00:00Z",
					  "2026-02-29T15:00:00Z",
					  "2100-02-29T15:00:00Z",
					  "26-11-24T15:00:00Z",
					  "+026-11-24T15:00:00Z"};
	int64_t ms;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(internet_time_parse(bad[i], &ms));
}

static void what_is_written_is_read_again(void **state)
{
	(void)state;
	char text[INTERNET_TIME_TEXT];
	assert_string_equal(internet_time_text(INT64_C(1795532400999), text),
			    "2026-11-24T15:00:00Z");
	for (int64_t ms = 0; ms < INT64_C(253402300799000); ms += INT64_C(86399999000) * 37)
		assert_is(internet_time_text(ms, text), ms / 1000 * 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_time_is_read_with_its_offset_and_its_fraction),
		cmocka_unit_test(what_is_no_time_or_no_day_is_none),
		cmocka_unit_test(what_is_written_is_read_again),
	};
	return RUN(tests);
}
