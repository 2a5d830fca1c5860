/* SPDX-License-Identifier: ISC */
/* When it is noted which orders for all nodes were carried out. */
#include "tests/unit/cmd/unit.h"

#include <stdlib.h>

#include "cmd/relay/order_progress.c"

static void assert_noted(struct order_progress *p, bool kept, const char *text)
{
	char *noted = order_progress_take(p, kept);
	assert_true(noted);
	assert_string_equal(noted, text);
	free(noted);
}

static void what_was_passed_on_is_noted_when_all_of_it_is_carried_out(void **state)
{
	struct order_progress p = {0};
	(void)state;
	order_progress_begun(&p);
	order_progress_said(&p, "one");
	assert_null(order_progress_take(&p, true));
	order_progress_begun(&p);
	order_progress_ended(&p);
	order_progress_said(&p, "two");
	assert_null(order_progress_take(&p, true));
	order_progress_ended(&p);
	assert_noted(&p, true, "two");
	assert_null(order_progress_take(&p, true));
}

static void what_is_not_in_its_files_is_not_noted(void **state)
{
	struct order_progress p = {0};
	(void)state;
	order_progress_begun(&p);
	order_progress_said(&p, "one");
	order_progress_ended(&p);
	assert_null(order_progress_take(&p, false));
	assert_noted(&p, true, "one");
	order_progress_said(&p, "two");
	order_progress_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_passed_on_is_noted_when_all_of_it_is_carried_out),
		cmocka_unit_test(what_is_not_in_its_files_is_not_noted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
