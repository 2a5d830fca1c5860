/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/unit.h"

#include "qmgr/flow_tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MINUTE INT64_C(60000)
#define NOON INT64_C(1795348800000) /* 2026-11-22 12:00 UTC */

static struct flow_tallies all;

static int set_up(void **state)
{
	(void)state;
	setenv("TZ", "UTC0", 1);
	tzset();
	flow_tallies_init(&all);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	flow_tallies_fini(&all);
	return 0;
}

static int64_t in_hour(const char *flow, enum flow_figure which, int64_t now_ms)
{
	const struct flow_tally *t = flow_tallies_find(&all, flow, now_ms);
	assert_non_null(t);
	return flow_hour_sum(&t->hour, which);
}

static void an_hour_later_it_is_of_the_last_hour_no_more(void **state)
{
	(void)state;
	flow_tallies_count(&all, "a", VERDICT_SENT, NOON);
	flow_tallies_count(&all, "a", VERDICT_SENT, NOON + 30 * MINUTE);
	flow_tallies_count(&all, "a", VERDICT_IN_DOUBT, NOON + 30 * MINUTE);
	flow_tallies_count(&all, "a", VERDICT_FAILED, NOON + 31 * MINUTE);
	assert_int_equal(in_hour("a", FLOW_SENT, NOON + 59 * MINUTE), 2);
	assert_int_equal(in_hour("a", FLOW_SENT, NOON + 60 * MINUTE), 1);
	assert_int_equal(in_hour("a", FLOW_DEFERRED, NOON + 60 * MINUTE), 1);
	assert_int_equal(in_hour("a", FLOW_REFUSED, NOON + 60 * MINUTE), 1);
	assert_int_equal(in_hour("a", FLOW_SENT, NOON + 90 * MINUTE), 0);
	assert_int_equal(flow_tallies_find(&all, "a", NOON + 90 * MINUTE)->days.today[FLOW_SENT],
			 2);
	assert_null(flow_tallies_find(&all, "b", NOON));
}

static void a_clock_that_is_put_back_loses_nothing(void **state)
{
	(void)state;
	flow_tallies_count(&all, "a", VERDICT_SENT, NOON);
	flow_tallies_count(&all, "a", VERDICT_SENT, NOON - 600 * MINUTE);
	assert_int_equal(in_hour("a", FLOW_SENT, NOON - 600 * MINUTE), 2);
	assert_int_equal(in_hour("a", FLOW_SENT, NOON - 540 * MINUTE), 0);
}

static void read_again_they_are_the_same(void **state)
{
	(void)state;
	struct buf text = {0}, again = {0};
	flow_tallies_count(&all, "with a blank", VERDICT_SENT, NOON);
	flow_tallies_count(&all, "b", VERDICT_FAILED, NOON + 10 * MINUTE);
	flow_tallies_count(&all, "with a blank", VERDICT_SENT, NOON + 20 * MINUTE);
	flow_tallies_write(&all, &text);
	flow_tallies_fini(&all);
	flow_tallies_init(&all);
	flow_tallies_read(&all, buf_cstr(&text));
	flow_tallies_write(&all, &again);
	assert_string_equal(buf_cstr(&text), buf_cstr(&again));
	assert_int_equal(in_hour("with a blank", FLOW_SENT, NOON + 65 * MINUTE), 1);
	const struct flow_tally *b = flow_tallies_find(&all, "b", NOON + 24 * 60 * MINUTE);
	assert_int_equal(b->days.yesterday[FLOW_REFUSED], 1);
	assert_int_equal(b->last_ms, NOON + 10 * MINUTE);
	buf_fini(&text);
	buf_fini(&again);
}

static void lines_that_make_no_sense_are_left_out(void **state)
{
	(void)state;
	flow_tallies_read(&all, "\nx\n1 2 3 a\n1 20779 0 0 0 0 0 0 0 0 1 a\n");
	assert_int_equal(all.n, 0);
}

static void so_many_are_kept_and_the_latest(void **state)
{
	(void)state;
	char name[20];
	for (int i = 0; i < FLOW_TALLIES + 5; i++) {
		snprintf(name, sizeof name, "f%d", i);
		flow_tallies_count(&all, name, VERDICT_SENT, NOON + i);
	}
	assert_int_equal(all.n, FLOW_TALLIES);
	assert_null(flow_tallies_find(&all, "f4", NOON));
	const struct flow_tally *t = flow_tallies_find(&all, "f5", NOON);
	assert_non_null(t);
	all.changed = false;
	flow_tallies_forget(&all, t);
	assert_true(all.changed && all.n == FLOW_TALLIES - 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_hour_later_it_is_of_the_last_hour_no_more),
		TEST(a_clock_that_is_put_back_loses_nothing),
		TEST(read_again_they_are_the_same),
		TEST(lines_that_make_no_sense_are_left_out),
		TEST(so_many_are_kept_and_the_latest),
	};
	return RUN(tests);
}
