/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/hint.h"

#include <stdio.h>

enum { NAMES = 10000 };

static const char *name(int i)
{
	static char text[40];
	snprintf(text, sizeof text, "name%d.test", i);
	return text;
}

static int count(enum hint h, int from, int to)
{
	int n = 0;
	for (int i = from; i < to; i++)
		n += hint_maybe(h, name(i));
	return n;
}

static void a_name_is_hinted_at_as_long_as_it_is_known(void **state)
{
	(void)state;
	assert_false(hint_maybe(HINT_SUPPRESSED, "a@b.test"));
	hint_add(HINT_SUPPRESSED, "a@b.test");
	assert_true(hint_maybe(HINT_SUPPRESSED, "a@b.test"));
	assert_false(hint_maybe(HINT_DEAD_DOMAIN, "a@b.test"));
	hint_drop(HINT_SUPPRESSED, "a@b.test");
	assert_false(hint_maybe(HINT_SUPPRESSED, "a@b.test"));
}

static void of_many_none_is_missed_and_few_others_are_taken_for_them(void **state)
{
	(void)state;
	for (int i = 0; i < NAMES; i++)
		hint_add(HINT_DEAD_DOMAIN, name(i));
	assert_int_equal(count(HINT_DEAD_DOMAIN, 0, NAMES), NAMES);
	assert_in_range(count(HINT_DEAD_DOMAIN, NAMES, 2 * NAMES), 0, NAMES / 50);
	for (int i = 0; i < NAMES; i += 2)
		hint_drop(HINT_DEAD_DOMAIN, name(i));
	assert_in_range(count(HINT_DEAD_DOMAIN, 0, NAMES), NAMES / 2, NAMES / 2 + NAMES / 50);
	for (int i = 1; i < NAMES; i += 2)
		hint_drop(HINT_DEAD_DOMAIN, name(i));
	assert_int_equal(count(HINT_DEAD_DOMAIN, 0, 2 * NAMES), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_hinted_at_as_long_as_it_is_known),
		cmocka_unit_test(of_many_none_is_missed_and_few_others_are_taken_for_them),
	};
	return RUN(tests);
}
