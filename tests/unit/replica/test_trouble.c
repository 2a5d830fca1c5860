/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "replica/trouble.h"

static struct trouble t;

static int end(void **state)
{
	(void)state;
	trouble_fini(&t);
	return 0;
}

static void a_failure_that_lasts_is_told_once(void **state)
{
	(void)state;
	assert_true(trouble_up(&t, 1));
	assert_true(trouble_failed(&t, "away"));
	for (int i = 0; i < 3; i++)
		assert_false(trouble_failed(&t, "away"));
	assert_true(trouble_failed(&t, "full"));
	assert_false(trouble_failed(&t, ""));
}

static void so_is_one_beside_which_all_else_works(void **state)
{
	(void)state;
	assert_true(trouble_up(&t, 1));
	assert_true(trouble_failed(&t, "a segment can't be read"));
	assert_false(trouble_over(&t, 1 + 2 * TROUBLE_STEADY_MS));
	assert_false(trouble_failed(&t, "a segment can't be read"));
}

static void one_that_comes_and_goes_is_told_twice_and_its_end_once(void **state)
{
	(void)state;
	assert_true(trouble_up(&t, 1));
	assert_true(trouble_failed(&t, "denied"));
	assert_true(trouble_up(&t, 100));
	assert_true(trouble_failed(&t, "denied"));
	for (int64_t now = 200; now < 100000; now += 100) {
		assert_false(trouble_up(&t, now));
		assert_false(trouble_over(&t, now + 50));
		assert_false(trouble_failed(&t, "denied"));
	}
	assert_false(trouble_up(&t, 100000));
	assert_false(trouble_over(&t, 100000 + TROUBLE_STEADY_MS - 1));
	assert_true(trouble_over(&t, 100000 + TROUBLE_STEADY_MS));
	assert_false(trouble_over(&t, 100000 + 2 * TROUBLE_STEADY_MS));
}

static void what_has_worked_for_a_while_is_told_again(void **state)
{
	(void)state;
	assert_true(trouble_failed(&t, "away"));
	assert_true(trouble_up(&t, 100));
	assert_false(trouble_over(&t, 100 + TROUBLE_STEADY_MS));
	assert_true(trouble_failed(&t, "away"));
	assert_true(trouble_up(&t, 200 + TROUBLE_STEADY_MS));
}

#define TEST(name) cmocka_unit_test_teardown(name, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_failure_that_lasts_is_told_once),
		TEST(so_is_one_beside_which_all_else_works),
		TEST(one_that_comes_and_goes_is_told_twice_and_its_end_once),
		TEST(what_has_worked_for_a_while_is_told_again),
	};
	return RUN(tests);
}
