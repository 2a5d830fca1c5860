/* SPDX-License-Identifier: ISC */
/* How fast a host is, and what that makes of a connection to it. */
#include "tests/unit/qmgr/unit.h"

#include "qmgr/dest/speed.h"

enum { MS = 1000, SECOND = 1000000, WHOLE_PIPELINE = 16 };

static struct speed at(int64_t r_us, int64_t s_us)
{
	return (struct speed){.r_us = r_us, .s_us = s_us};
}

/* A message that took so long, alone on its connection. */
static void serve_alone(struct speed *sp, int64_t us, int trips)
{
	struct speed_sample x = {
		.began_us = 5 * SECOND, .ended_us = 5 * SECOND + us, .trips = trips};
	speed_served(sp, &x);
}

static void the_round_trip_is_the_least_that_was_seen(void **state)
{
	(void)state;
	struct speed sp = {0};
	static const int64_t seen[] = {30 * MS, 50 * MS, 20 * MS, 0, 25 * MS, -1};
	for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
		speed_round_trip(&sp, seen[i]);
	assert_int_equal(sp.r_us, 20 * MS);
}

static void the_service_of_a_lone_message_is_its_time_without_the_round_trips(void **state)
{
	(void)state;
	struct speed sp = at(100 * MS, 0);
	serve_alone(&sp, 230 * MS, 2);
	assert_int_equal(sp.s_us, 30 * MS);
}

static void the_service_of_one_behind_another_is_from_reply_to_reply(void **state)
{
	(void)state;
	struct speed sp = at(100 * MS, 0);
	struct speed_sample x = {.began_us = 1 * SECOND,
				 .ended_us = 2 * SECOND,
				 .before_us = 2 * SECOND - 40 * MS,
				 .trips = 2,
				 .behind = 0};
	speed_served(&sp, &x);
	assert_int_equal(sp.s_us, 40 * MS);
}

static void one_behind_another_that_waits_for_replies_has_a_round_trip_less(void **state)
{
	(void)state;
	struct speed sp = at(100 * MS, 0);
	struct speed_sample x = {.began_us = 1 * SECOND,
				 .ended_us = 2 * SECOND,
				 .before_us = 2 * SECOND - 140 * MS,
				 .trips = 2,
				 .behind = 1};
	speed_served(&sp, &x);
	assert_int_equal(sp.s_us, 40 * MS);
}

static void what_came_before_a_message_began_says_nothing_of_it(void **state)
{
	(void)state;
	struct speed sp = at(10 * MS, 0);
	struct speed_sample x = {.began_us = 9 * SECOND,
				 .ended_us = 9 * SECOND + 50 * MS,
				 .before_us = 1 * SECOND,
				 .trips = 2};
	speed_served(&sp, &x);
	assert_int_equal(sp.s_us, 30 * MS);
}

static void a_service_too_short_to_see_is_known_all_the_same(void **state)
{
	(void)state;
	struct speed sp = at(100 * MS, 0);
	serve_alone(&sp, 150 * MS, 2); /* less than the round trips */
	assert_int_equal(sp.s_us, 1);
}

static void the_service_is_smoothed(void **state)
{
	(void)state;
	struct speed sp = {0};
	serve_alone(&sp, 80 * MS, 1);
	assert_int_equal(sp.s_us, 80 * MS);
	serve_alone(&sp, 160 * MS, 1);
	assert_int_equal(sp.s_us, 90 * MS);
	for (int i = 0; i < 100; i++)
		serve_alone(&sp, 8 * MS, 1);
	assert_in_range(sp.s_us, 8 * MS, 9 * MS);
}

static void the_time_to_set_up_is_smoothed(void **state)
{
	(void)state;
	struct speed sp = {0};
	speed_set_up(&sp, 0);
	assert_int_equal(sp.setup_us, 0);
	speed_set_up(&sp, 80 * MS);
	speed_set_up(&sp, 160 * MS);
	assert_int_equal(sp.setup_us, 90 * MS);
}

static void a_connection_is_kept_busy_by_one_and_as_many_as_fit_a_round_trip(void **state)
{
	(void)state;
	static const struct {
		int64_t r_us, s_us;
		int depth;
	} of[] = {{100 * MS, 100 * MS, 2}, {100 * MS, 50 * MS, 3},  {100 * MS, 101 * MS, 1},
		  {100 * MS, 10 * MS, 11}, {1 * MS, 1 * SECOND, 1}, {0, 5 * MS, 1}};
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		struct speed sp = at(of[i].r_us, of[i].s_us);
		assert_int_equal(speed_free_depth(&sp, 0), of[i].depth);
	}
}

static void a_host_that_nothing_is_known_of_is_no_reason_to_wait(void **state)
{
	(void)state;
	struct speed sp = {0};
	assert_true(speed_free_depth(&sp, 0) >= WHOLE_PIPELINE);
	assert_true(speed_deep_depth(&sp, 0) >= WHOLE_PIPELINE);
	assert_false(speed_worth_connecting(&sp, WHOLE_PIPELINE, 0));
}

static void one_far_away_that_serves_in_no_time_gets_the_whole_pipeline(void **state)
{
	(void)state;
	struct speed sp = at(100 * MS, 0);
	serve_alone(&sp, 200 * MS, 2);
	assert_true(speed_free_depth(&sp, 0) >= WHOLE_PIPELINE);
	assert_true(speed_deep_depth(&sp, 0) >= WHOLE_PIPELINE);
	assert_false(speed_worth_connecting(&sp, WHOLE_PIPELINE, 0));
}

static void one_next_door_that_works_for_a_second_gets_one_message(void **state)
{
	(void)state;
	struct speed sp = at(200, 0);
	serve_alone(&sp, SECOND, 2);
	assert_int_equal(speed_free_depth(&sp, 0), 1);
	assert_int_equal(speed_deep_depth(&sp, 0), 1); /* the way is too short to idle on */
	assert_true(speed_worth_connecting(&sp, 1, 0));
}

static void pipelines_are_filled_deeper_where_a_connection_would_idle_otherwise(void **state)
{
	(void)state;
	struct speed sp = at(50 * MS, 100 * MS);
	assert_int_equal(speed_free_depth(&sp, 0), 1);
	assert_int_equal(speed_deep_depth(&sp, 0), 3);
	sp = at(50 * MS, 10 * MS);
	assert_int_equal(speed_deep_depth(&sp, 0), 16);
	sp = at(1 * MS, 1 * MS);
	assert_true(speed_deep_depth(&sp, 0) >= WHOLE_PIPELINE);
}

static void who_comes_next_waits_for_no_deep_pipeline_of_a_slow_host(void **state)
{
	(void)state;
	for (int64_t s_us = 10 * MS; s_us < 100 * MS; s_us += MS) {
		struct speed sp = at(1 * MS, s_us);
		assert_true(speed_deep_depth(&sp, 0) * s_us <= 150 * MS + s_us);
	}
}

static void one_that_takes_longer_than_ever_counts_as_slow_before_it_has_answered(void **state)
{
	(void)state;
	struct speed known = at(1 * MS, 1 * MS), fresh = {0};
	assert_int_equal(speed_free_depth(&known, 0), 2);
	assert_int_equal(speed_free_depth(&known, 300 * MS), 1);
	assert_int_equal(speed_deep_depth(&known, 300 * MS), 1);
	assert_true(speed_worth_connecting(&known, 1, 300 * MS));
	assert_int_equal(speed_free_depth(&fresh, 300 * MS), 1);
}

static void
a_connection_is_worth_setting_up_if_it_is_ready_before_those_ahead_are_served(void **state)
{
	(void)state;
	struct speed sp = at(10 * MS, 50 * MS);
	sp.setup_us = 120 * MS;
	assert_false(speed_worth_connecting(&sp, 0, 0));
	assert_false(speed_worth_connecting(&sp, 2, 0));
	assert_true(speed_worth_connecting(&sp, 3, 0));
	sp.setup_us = 0; /* never measured: some round trips */
	assert_true(speed_worth_connecting(&sp, 1, 0));
	sp.r_us = 100 * MS;
	assert_false(speed_worth_connecting(&sp, 8, 0));
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_round_trip_is_the_least_that_was_seen),
		TEST(the_service_of_a_lone_message_is_its_time_without_the_round_trips),
		TEST(the_service_of_one_behind_another_is_from_reply_to_reply),
		TEST(one_behind_another_that_waits_for_replies_has_a_round_trip_less),
		TEST(what_came_before_a_message_began_says_nothing_of_it),
		TEST(a_service_too_short_to_see_is_known_all_the_same),
		TEST(the_service_is_smoothed),
		TEST(the_time_to_set_up_is_smoothed),
		TEST(a_connection_is_kept_busy_by_one_and_as_many_as_fit_a_round_trip),
		TEST(a_host_that_nothing_is_known_of_is_no_reason_to_wait),
		TEST(one_far_away_that_serves_in_no_time_gets_the_whole_pipeline),
		TEST(one_next_door_that_works_for_a_second_gets_one_message),
		TEST(pipelines_are_filled_deeper_where_a_connection_would_idle_otherwise),
		TEST(who_comes_next_waits_for_no_deep_pipeline_of_a_slow_host),
		TEST(one_that_takes_longer_than_ever_counts_as_slow_before_it_has_answered),
		TEST(a_connection_is_worth_setting_up_if_it_is_ready_before_those_ahead_are_served),
	};
	return RUN(tests);
}
