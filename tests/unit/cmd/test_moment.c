/* SPDX-License-Identifier: ISC */
#include "tests/unit/cmd/unit.h"

#include "base/date.h"
#include "cmd/text/json_put.c"
#include "cmd/text/moment.c"
#include "cmd/text/reply_words.c"

#include <stdlib.h>

static void spans_are_short(void **state)
{
	(void)state;
	static const struct {
		int64_t ms;
		const char *text;
	} row[] = {
		{0, "0 s"},	 {-5, "0 s"},	    {350, "0.35 s"},  {9900, "9.9 s"},
		{90000, "90 s"}, {180000, "3 min"}, {7200000, "2 h"}, {259200000, "3 days"},
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct buf b;
		buf_init(&b);
		moment_put_span(&b, row[i].ms);
		assert_string_equal(buf_cstr(&b), row[i].text);
		buf_fini(&b);
	}
}

static void a_moment_is_the_systems_whose_clock_was_set(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b);
	date_set(60000);
	moment_put_due(&b, 1795345530000, 1795345530000 - 180000, true);
	json_put_time(&b, "at", 1795345530000);
	json_put_time(&b, "never", 0);
	date_set(0);
	assert_string_equal(buf_cstr(&b), "2026-11-22T11:06:30Z, in 3 min\"at\":1795345590.000,"
					  "\"never\":null,");
	buf_fini(&b);
}

static void a_moment_has_one_zone(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b);
	setenv("TZ", "CET-1", 1);
	tzset();
	moment_put_due(&b, 1795345530000, 1795345530000 - 180000, false);
	buf_puts(&b, "|");
	moment_put_due(&b, 1795345530000, 1795345530000 - 180000, true);
	buf_puts(&b, "|");
	moment_put_due(&b, 1795345530000, 1795345530001, true);
	assert_string_equal(buf_cstr(&b),
			    "2026-11-22 12:05:30 +0100, in 3 min|"
			    "2026-11-22T11:05:30Z, in 3 min|2026-11-22T11:05:30Z, now");
	buf_fini(&b);
}

static void only_what_was_said_is_said(void **state)
{
	(void)state;
	static const struct {
		int code;
		const char *dsn, *host, *text, *words;
	} row[] = {
		{451, "4.2.1", "mx", "4.2.1 later", "mx said \"451 4.2.1 later\""},
		{451, "4.2.1", "mx", "later", "mx said \"451 4.2.1 later\""},
		{535, "4.7.8", "mx", "5.7.8 who?", "mx said \"535 5.7.8 who?\""},
		{535, "4.7.8", "mx", "5.7 years", "mx said \"535 4.7.8 5.7 years\""},
		{0, "4.4.1", NULL, "connect to mx[192.0.2.7]:25: Connection refused",
		 "mx[192.0.2.7]:25 refused the connection"},
		{0, "4.4.1", NULL, "connect to mx[192.0.2.7]:25: Connection timed out",
		 "4.4.1 connect to mx[192.0.2.7]:25: Connection timed out"},
		{0, "4.4.2", "mx", "lost", "mx: 4.4.2 lost"},
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct verdict *v = verdict_new(VERDICT_DEFERRED, row[i].code, row[i].dsn,
						row[i].host, row[i].text);
		struct buf b;
		buf_init(&b);
		reply_words_put(&b, v, true);
		assert_string_equal(buf_cstr(&b), row[i].words);
		buf_fini(&b);
		verdict_unref(v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spans_are_short),
		cmocka_unit_test(a_moment_has_one_zone),
		cmocka_unit_test(a_moment_is_the_systems_whose_clock_was_set),
		cmocka_unit_test(only_what_was_said_is_said),
	};
	return RUN(tests);
}
