/* SPDX-License-Identifier: ISC */
#include "tests/unit/cmd/unit.h"

#include "cmd/sink/sink_mood.c"

static void a_pair_passes_when_it_has_been_known_for_long_enough(void **state)
{
	struct sink_mood m = {0};
	(void)state;
	assert_int_equal(sink_mood_grey_ms(&m, 5000, "a@b.test", "c@d.test", 1000), 5000);
	assert_int_equal(sink_mood_grey_ms(&m, 5000, "a@b.test", "c@d.test", 4000), 2000);
	assert_int_equal(sink_mood_grey_ms(&m, 5000, "a@b.test", "other@d.test", 4000), 5000);
	assert_int_equal(sink_mood_grey_ms(&m, 5000, "other@b.test", "c@d.test", 4000), 5000);
	assert_int_equal(sink_mood_grey_ms(&m, 5000, "a@b.test", "c@d.test", 6000), 0);
	/* In whatever case, and with whatever parameters. */
	assert_int_equal(
		sink_mood_grey_ms(&m, 5000, "A@b.test\tSIZE=1", "C@D.test\tNOTIFY=NEVER", 6000), 0);
	assert_int_equal(m.npairs, 3);
	sink_mood_fini(&m);
}

static void so_many_pass_at_once_and_then_evenly(void **state)
{
	struct sink_mood m = {0};
	const struct conf_rate three_a_second = {.events = 3, .per_ms = 1000}, none = {0};
	int passed = 0;
	(void)state;
	for (int64_t us = 1000000; us < 1010000; us += 1000)
		passed += !sink_mood_beyond(&m, &three_a_second, us);
	assert_int_equal(passed, 3);
	assert_false(sink_mood_beyond(&m, &three_a_second, 1350000));
	assert_true(sink_mood_beyond(&m, &three_a_second, 1360000));
	assert_false(sink_mood_beyond(&m, &none, 1360000));
	/* What was refused is not counted. */
	passed = 0;
	for (int64_t us = 5000000; us < 5010000; us += 1000)
		passed += !sink_mood_beyond(&m, &three_a_second, us);
	assert_int_equal(passed, 3);
	sink_mood_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pair_passes_when_it_has_been_known_for_long_enough),
		cmocka_unit_test(so_many_pass_at_once_and_then_evenly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
