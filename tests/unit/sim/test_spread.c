/* SPDX-License-Identifier: ISC */
#include "tests/unit/sim/unit.h"

static void the_same_seed_gives_the_same_chance_and_another_does_not(void **state)
{
	(void)state;
	struct dice a, b, c, d;
	dice_init(&a, 7, "x");
	dice_init(&b, 7, "x");
	dice_init(&c, 8, "x");
	dice_init(&d, 7, "y");
	int same = 0;
	for (int i = 0; i < 1000; i++) {
		uint64_t next = dice_next(&a);
		assert_true(next == dice_next(&b));
		same += (next == dice_next(&c)) + (next == dice_next(&d));
	}
	assert_int_equal(same, 0);
}

static void chance_is_even(void **state)
{
	(void)state;
	struct dice d;
	int tenth[10] = {0};
	double gaps = 0;
	dice_init(&d, 1, "even");
	for (int i = 0; i < 100000; i++) {
		tenth[(int)(dice_part(&d) * 10)]++;
		gaps += dice_gap(&d, 5);
		int64_t noisy = dice_noisy(&d, 1000, 0.25);
		assert_in_range(noisy, 750, 1250);
	}
	for (int i = 0; i < 10; i++)
		assert_in_range(tenth[i], 9600, 10400);
	assert_in_range((int)gaps, 490000, 510000);
}

static void weights_are_kept(void **state)
{
	(void)state;
	struct spread s = {0};
	struct dice d;
	int64_t one = 0, large = 0;
	dice_init(&d, 1, "spread");
	assert_true(spread_add(&s, CONF_number, "1:9"));
	assert_true(spread_add(&s, CONF_number, "2..100"));
	for (int i = 0; i < 10000; i++) {
		int64_t n = spread_number(&s, &d);
		assert_in_range(n, 1, 100);
		one += n == 1;
		large += n > 50;
	}
	assert_in_range(one, 8800, 9200);
	assert_in_range(large, 420, 600);
	spread_fini(&s);
}

static void what_is_no_value_is_refused(void **state)
{
	(void)state;
	struct spread s = {0};
	assert_false(spread_add(&s, CONF_number, ""));
	assert_false(spread_add(&s, CONF_number, "1:"));
	assert_false(spread_add(&s, CONF_number, "1:-1"));
	assert_false(spread_add(&s, CONF_number, "1.."));
	assert_false(spread_add(&s, CONF_size, "1x"));
	assert_false(spread_add(&s, CONF_text, "no host"));
	assert_false(spread_add(&s, CONF_text, "d##.test"));
	assert_true(spread_add(&s, CONF_text, "d#.test"));
	assert_true(spread_add(&s, CONF_text, "host.test:0.5"));
	spread_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_seed_gives_the_same_chance_and_another_does_not),
		cmocka_unit_test(chance_is_even),
		cmocka_unit_test(weights_are_kept),
		cmocka_unit_test(what_is_no_value_is_refused),
	};
	return RUN(tests);
}
