/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/few.h"

#include <string.h>

enum { SIZE = 40, MANY = 1000 };

static void what_is_taken_is_zero_whatever_was_there(void **state)
{
	(void)state;
	static const char zero[SIZE];
	void *taken[MANY];
	struct few few;
	few_init(&few, SIZE);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < MANY; i++) {
			taken[i] = few_take(&few);
			assert_memory_equal(taken[i], zero, SIZE);
			memset(taken[i], 0xa5, SIZE);
		}
		for (int i = 0; i < MANY; i++)
			few_give(&few, taken[i]);
	}
	few_fini(&few);
}

static void few_are_kept(void **state)
{
	(void)state;
	void *taken[MANY];
	struct few few;
	few_init(&few, SIZE);
	for (int i = 0; i < MANY; i++)
		taken[i] = few_take(&few);
	for (int i = 0; i < MANY; i++)
		few_give(&few, taken[i]);
	assert_true(few.n < MANY / 2);
	few_fini(&few);
	assert_int_equal(few.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_taken_is_zero_whatever_was_there),
		cmocka_unit_test(few_are_kept),
	};
	return RUN(tests);
}
