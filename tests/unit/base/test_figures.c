/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/date.h"
#include "base/figures.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MESSAGES, REFUSED };

#define HOUR INT64_C(3600000)
#define NIGHT INT64_C(1795302000000) /* 2026-11-22 00:00 +0100 */

static struct figures f;

static int set_up(void **state)
{
	(void)state;
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	f = (struct figures){0};
	return 0;
}

static void are(uint32_t today, uint32_t yesterday, int64_t at_ms)
{
	figures_turn(&f, at_ms);
	assert_int_equal(f.today[MESSAGES], today);
	assert_int_equal(f.yesterday[MESSAGES], yesterday);
}

static void a_day_ends_at_local_midnight(void **state)
{
	(void)state;
	figures_count(&f, MESSAGES, 3, NIGHT - 1);
	figures_count(&f, MESSAGES, 2, NIGHT);
	figures_count(&f, REFUSED, 1, NIGHT);
	are(2, 3, NIGHT + 24 * HOUR - 1);
	assert_int_equal(f.yesterday[REFUSED], 0);
	are(0, 2, NIGHT + 24 * HOUR);
	assert_int_equal(f.yesterday[REFUSED], 1);
	are(0, 0, NIGHT + 48 * HOUR);
	assert_false(figures_any(&f));
}

static void a_day_ends_at_the_systems_midnight_whatever_the_queue_goes_by(void **state)
{
	(void)state;
	date_set(-5 * HOUR);
	figures_count(&f, MESSAGES, 3, NIGHT);
	are(3, 0, NIGHT + 5 * HOUR - 1);
	are(0, 3, NIGHT + 5 * HOUR);
	date_set(0);
}

static void a_day_without_any_is_yesterday_too(void **state)
{
	(void)state;
	figures_count(&f, MESSAGES, 3, NIGHT - 1);
	are(0, 0, NIGHT + 24 * HOUR);
}

static void a_day_may_have_23_hours_or_25(void **state)
{
	(void)state;
	const int64_t march = INT64_C(1774738800000), october = INT64_C(1792879200000); /* 00:00 */
	figures_count(&f, MESSAGES, 1, march);
	are(1, 0, march + 23 * HOUR - 1);
	are(0, 1, march + 23 * HOUR);
	figures_count(&f, MESSAGES, 1, october);
	are(1, 0, october + 25 * HOUR - 1);
	are(0, 1, october + 25 * HOUR);
}

static void a_clock_that_is_put_back_loses_nothing(void **state)
{
	(void)state;
	figures_count(&f, MESSAGES, 3, NIGHT - HOUR);
	figures_count(&f, MESSAGES, 2, NIGHT + HOUR);
	figures_count(&f, MESSAGES, 1, NIGHT - HOUR);
	are(3, 3, NIGHT - 1);
	are(0, 3, NIGHT);
}

static void read_again_they_are_the_same_also_over_midnight(void **state)
{
	(void)state;
	struct buf text = {0};
	figures_count(&f, MESSAGES, 3, NIGHT - 1);
	figures_count(&f, REFUSED, 7, NIGHT);
	figures_write(&f, &text);
	buf_puts(&text, " ann");
	f = (struct figures){0};
	const char *at = buf_cstr(&text);
	assert_true(figures_read(&f, &at));
	assert_string_equal(at, " ann");
	are(0, 3, NIGHT + 1);
	assert_int_equal(f.today[REFUSED], 7);
	are(0, 0, NIGHT + 24 * HOUR);
	assert_int_equal(f.yesterday[REFUSED], 7);
	buf_fini(&text);
}

static void what_makes_no_sense_is_not_read(void **state)
{
	(void)state;
	static const char *const lines[] = {"",
					    "x",
					    "-1 0 0 0 0 0 0 0 0",
					    "20779 1 2 3",
					    "20779 1 2 3 4 5 6 7 4294967296",
					    "20779 1 2 3 4 5 6 7x",
					    "99999999999 1 2 3 4 5 6 7 8"};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		const char *at = lines[i];
		assert_false(figures_read(&f, &at));
		assert_false(figures_any(&f));
	}
}

static void a_figure_stays_at_its_most(void **state)
{
	(void)state;
	figures_count(&f, MESSAGES, UINT32_MAX - 1, NIGHT);
	figures_count(&f, MESSAGES, 5, NIGHT);
	are(UINT32_MAX, 0, NIGHT);
}

#define TEST(function) cmocka_unit_test_setup(function, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_day_ends_at_local_midnight),
		TEST(a_day_ends_at_the_systems_midnight_whatever_the_queue_goes_by),
		TEST(a_day_without_any_is_yesterday_too),
		TEST(a_day_may_have_23_hours_or_25),
		TEST(a_clock_that_is_put_back_loses_nothing),
		TEST(read_again_they_are_the_same_also_over_midnight),
		TEST(what_makes_no_sense_is_not_read),
		TEST(a_figure_stays_at_its_most),
	};
	return RUN(tests);
}
