/* SPDX-License-Identifier: ISC */
#include "qmgr/report_rate.h"

#include "tests/unit/qmgr/unit.h"

#include <stdio.h>

static struct report_rate rate;

static const struct conf_queue limits = {.bounce_rate = {.events = 100, .per_ms = 1000},
					 .bounce_address_rate = {.events = 3, .per_ms = 60000}};

static int64_t take(const char *to, int64_t now_ms)
{
	return report_rate_take(&rate, &limits, to, now_ms);
}

static void one_address_gets_so_many_in_a_window(void **state)
{
	(void)state;
	rate = (struct report_rate){0};
	for (int i = 0; i < 3; i++)
		assert_int_equal(take(i == 1 ? "A@Sender.test" : "a@sender.test", 1000 + i), 0);
	assert_int_equal(take("a@sender.test", 11000), 50000);
	assert_int_equal(take("b@sender.test", 11000), 0);
	assert_int_equal(take("a@sender.test", 61000), 0);
}

static void an_address_is_one_in_every_spelling(void **state)
{
	static const char *const spellings[] = {"a@b\xc3\xbc"
						"cher.test",
						"A@B\xc3\x9c"
						"CHER.test",
						"a@xn--bcher-kva.test"};
	(void)state;
	rate = (struct report_rate){0};
	for (int i = 0; i < 3; i++)
		assert_int_equal(take(spellings[i], 1000), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(take(spellings[i], 1000), 60000);
}

static void all_together_get_so_many(void **state)
{
	(void)state;
	int n = 0;
	rate = (struct report_rate){0};
	for (int i = 0; i < 1000; i++) {
		char to[32];
		snprintf(to, sizeof to, "s%d@sender.test", i);
		n += take(to, 5000) == 0;
	}
	assert_int_equal(n, 100);
	assert_int_equal(take("more@sender.test", 5400), 600);
	assert_int_equal(take("more@sender.test", 6000), 0);
}

static void what_waits_is_not_counted(void **state)
{
	(void)state;
	rate = (struct report_rate){0};
	for (int i = 0; i < 50; i++)
		take("a@sender.test", 0);
	for (int i = 0; i < 97; i++) {
		char to[32];
		snprintf(to, sizeof to, "x%d@sender.test", i);
		assert_int_equal(take(to, 0), 0);
	}
	assert_true(take("y@sender.test", 0) > 0);
}

static void no_rate_is_no_limit(void **state)
{
	(void)state;
	const struct conf_queue none = {0};
	rate = (struct report_rate){0};
	for (int i = 0; i < 1000; i++)
		assert_int_equal(report_rate_take(&rate, &none, "a@sender.test", i), 0);
}

/* A reload may have made it another: what waits does not wait for the end of the former. */
static void a_window_is_as_long_as_the_rate_is_now(void **state)
{
	(void)state;
	const struct conf_queue hour = {.bounce_address_rate = {.events = 1, .per_ms = 3600000}},
				minute = {.bounce_address_rate = {.events = 1, .per_ms = 60000}};
	rate = (struct report_rate){0};
	assert_int_equal(report_rate_take(&rate, &hour, "a@sender.test", 1000), 0);
	assert_int_equal(report_rate_take(&rate, &minute, "a@sender.test", 11000), 50000);
	assert_int_equal(report_rate_take(&rate, &hour, "a@sender.test", 11000), 3590000);
	assert_int_equal(report_rate_take(&rate, &minute, "a@sender.test", 61000), 0);
}

static void it_is_told_once_a_minute(void **state)
{
	(void)state;
	rate = (struct report_rate){0};
	assert_true(report_rate_tell(&rate, 1));
	assert_false(report_rate_tell(&rate, 60000));
	assert_true(report_rate_tell(&rate, 60001));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_address_gets_so_many_in_a_window),
		cmocka_unit_test(an_address_is_one_in_every_spelling),
		cmocka_unit_test(all_together_get_so_many),
		cmocka_unit_test(what_waits_is_not_counted),
		cmocka_unit_test(no_rate_is_no_limit),
		cmocka_unit_test(a_window_is_as_long_as_the_rate_is_now),
		cmocka_unit_test(it_is_told_once_a_minute),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
