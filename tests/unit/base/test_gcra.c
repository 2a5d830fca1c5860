/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/gcra.h"

static const struct conf_rate five_a_minute = {5, 60000};

enum { SECOND_US = 1000000 };

static int taken(struct gcra *g, const struct conf_rate *r, int64_t now_us, int asked)
{
	int n = 0;
	for (int i = 0; i < asked; i++) {
		if (gcra_due_us(g, r, gcra_burst_us(r)) > now_us)
			continue;
		gcra_count(g, r, now_us);
		n++;
	}
	return n;
}

static void as_many_at_once_as_the_rate_says_then_evenly(void **state)
{
	(void)state;
	struct gcra g = {0};
	int64_t now_us = INT64_C(1000) * SECOND_US;
	assert_int_equal(gcra_room(&g, &five_a_minute, now_us), 5);
	assert_int_equal(taken(&g, &five_a_minute, now_us, 9), 5);
	assert_int_equal(gcra_room(&g, &five_a_minute, now_us), 0);
	assert_int_equal(taken(&g, &five_a_minute, now_us + 12 * SECOND_US - 1, 9), 0);
	assert_int_equal(taken(&g, &five_a_minute, now_us + 12 * SECOND_US, 9), 1);
	assert_int_equal(gcra_room(&g, &five_a_minute, now_us + 36 * SECOND_US), 2);
	assert_int_equal(taken(&g, &five_a_minute, now_us + 600 * SECOND_US, 9), 5);
}

static void without_a_tolerance_a_quiet_time_is_not_made_up_for(void **state)
{
	(void)state;
	struct gcra g = {0};
	gcra_count(&g, &five_a_minute, 0);
	assert_int_equal(gcra_due_us(&g, &five_a_minute, 0), 12 * SECOND_US);
	gcra_count(&g, &five_a_minute, 600 * SECOND_US);
	assert_int_equal(gcra_due_us(&g, &five_a_minute, 0), 612 * SECOND_US);
}

static void no_rate_is_no_limit(void **state)
{
	(void)state;
	struct gcra g = {0};
	struct conf_rate none = {0, 1000};
	gcra_count(&g, &none, 5);
	assert_int_equal(gcra_due_us(&g, &none, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_at_once_as_the_rate_says_then_evenly),
		cmocka_unit_test(without_a_tolerance_a_quiet_time_is_not_made_up_for),
		cmocka_unit_test(no_rate_is_no_limit),
	};
	return RUN(tests);
}
