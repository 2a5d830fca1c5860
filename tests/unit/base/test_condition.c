/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/condition.h"
#include "base/metrics.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct conditions now;

static const struct conditions *look(void)
{
	conditions_fini(&now);
	conditions_take(&now);
	return &now;
}

static int64_t counted(const char *name)
{
	return metric_cells_sum(FAMILY_conditions, name);
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < CONDITION_COUNT; i++)
		condition_clear_all((enum condition)i);
	conditions_fini(&now);
	return 0;
}

static void each_row_says_all_of_it(void **state)
{
	(void)state;
	for (int i = 0; i < CONDITION_COUNT; i++) {
		enum condition c = (enum condition)i;
		assert_true(strlen(condition_name(c)) > 0);
		assert_true(strlen(condition_effect(c)) > 0 && strlen(condition_remedy(c)) > 0);
		assert_int_not_equal(condition_effect(c)[strlen(condition_effect(c)) - 1], '.');
		assert_int_not_equal(condition_remedy(c)[strlen(condition_remedy(c)) - 1], '.');
	}
}

static void what_is_set_is_there_until_it_is_cleared(void **state)
{
	(void)state;
	assert_int_equal(look()->n, 0);
	assert_false(condition_stops_mail());
	condition_set(CONDITION_redis_away, "", "refused");
	assert_int_equal(look()->n, 1);
	assert_false(condition_stops_mail());
	condition_set(CONDITION_filter_defers, "one", NULL);
	condition_set(CONDITION_filter_defers, "two", NULL);
	assert_true(condition_stops_mail());
	assert_int_equal(counted("filter_away"), 2);
	condition_clear(CONDITION_filter_defers, "one");
	condition_clear(CONDITION_filter_defers, "one");
	assert_true(condition_stops_mail());
	condition_clear(CONDITION_filter_defers, "two");
	assert_false(condition_stops_mail());
	assert_int_equal(counted("filter_away"), 0);
	assert_int_equal(look()->n, 1);
	assert_string_equal(now.row[0].reason, "refused");
}

static void what_stops_mail_comes_first(void **state)
{
	(void)state;
	condition_set(CONDITION_redis_away, "", NULL);
	condition_set(CONDITION_filter_passes, "one", NULL);
	condition_set(CONDITION_disk_full, "", NULL);
	assert_int_equal(look()->n, 3);
	assert_int_equal(now.row[0].is, CONDITION_disk_full);
	assert_int_equal(now.row[1].is, CONDITION_redis_away);
	assert_int_equal(now.row[2].is, CONDITION_filter_passes);
}

static void another_row_of_the_name_takes_its_place_and_keeps_its_time(void **state)
{
	(void)state;
	condition_set(CONDITION_filter_passes, "one", "first");
	int64_t since_ms = look()->row[0].since_ms;
	condition_set(CONDITION_filter_defers, "one", "second");
	assert_int_equal(look()->n, 1);
	assert_int_equal(now.row[0].is, CONDITION_filter_defers);
	assert_int_equal(now.row[0].since_ms, since_ms);
	assert_string_equal(now.row[0].reason, "second");
	assert_true(condition_stops_mail());
	assert_int_equal(counted("filter_away"), 1);
	condition_clear(CONDITION_filter_holds, "one");
	assert_int_equal(look()->n, 0);
	assert_false(condition_stops_mail());
}

static void all_of_a_name_can_be_cleared(void **state)
{
	(void)state;
	condition_set(CONDITION_tables_stale, "a", NULL);
	condition_set(CONDITION_redis_away, "", NULL);
	condition_set(CONDITION_tables_stale, "b", NULL);
	condition_clear_all(CONDITION_tables_stale);
	assert_int_equal(look()->n, 1);
	assert_int_equal(now.row[0].is, CONDITION_redis_away);
}

static void more_than_there_is_room_for_are_not_taken_in(void **state)
{
	(void)state;
	char name[16];
	for (int i = 0; i < CONDITIONS_MAX + 5; i++) {
		snprintf(name, sizeof name, "%d", i);
		condition_set(CONDITION_secret_unreadable, name, NULL);
	}
	assert_int_equal(look()->n, CONDITIONS_MAX);
	for (int i = 0; i < CONDITIONS_MAX + 5; i++) {
		snprintf(name, sizeof name, "%d", i);
		condition_clear(CONDITION_secret_unreadable, name);
	}
	assert_int_equal(look()->n, 0);
	assert_int_equal(counted("secret_unreadable"), 0);
}

static void what_a_peer_said_has_no_controls(void **state)
{
	(void)state;
	condition_set(CONDITION_redis_full, "", "OOM\n\033[2J");
	assert_string_equal(look()->row[0].reason, "OOM??[2J");
}

static void *flicker(void *name)
{
	for (int i = 0; i < 2000; i++) {
		condition_set(i % 2 ? CONDITION_filter_defers : CONDITION_filter_passes, name, "x");
		condition_stops_mail();
		condition_clear(CONDITION_filter_defers, name);
	}
	return NULL;
}

static void threads_set_and_clear_while_others_look(void **state)
{
	(void)state;
	static char names[4][2] = {"a", "b", "a", "b"};
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, flicker, names[i]);
	for (int i = 0; i < 200; i++)
		assert_true(look()->n <= 2);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(look()->n, 0);
	assert_false(condition_stops_mail());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(each_row_says_all_of_it, teardown),
		cmocka_unit_test_teardown(what_is_set_is_there_until_it_is_cleared, teardown),
		cmocka_unit_test_teardown(what_stops_mail_comes_first, teardown),
		cmocka_unit_test_teardown(
			another_row_of_the_name_takes_its_place_and_keeps_its_time, teardown),
		cmocka_unit_test_teardown(all_of_a_name_can_be_cleared, teardown),
		cmocka_unit_test_teardown(more_than_there_is_room_for_are_not_taken_in, teardown),
		cmocka_unit_test_teardown(what_a_peer_said_has_no_controls, teardown),
		cmocka_unit_test_teardown(threads_set_and_clear_while_others_look, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
