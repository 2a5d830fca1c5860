/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/world.h"

#include "qmgr/dest/site_hour.h"

#include <stdio.h>

static struct site *site_of_mail(void)
{
	send_mail(1, "x@one.test");
	answer("one.test", "10 mx.one.test 192.0.2.1");
	assert_non_null(q->db.sites);
	return q->db.sites;
}

static struct site *site_like(const struct site *first, int number)
{
	char name[40];
	snprintf(name, sizeof name, "site%d.test", number);
	return site_get(&q->db, first->queue.transport, NULL, name);
}

static void what_is_counted_lies_in_the_step_in_which_it_came(void **state)
{
	(void)state;
	struct site_past past;
	begin("");
	struct site *s = site_of_mail();
	site_hour_copy(s, &past);
	assert_int_equal(past.n, 0);
	pass_time(SITE_HOUR_STEP_MS - clock_ms % SITE_HOUR_STEP_MS);
	site_hour_verdict(s, VERDICT_SENT);
	site_hour_verdict(s, VERDICT_IN_DOUBT);
	pass_time(SITE_HOUR_STEP_MS);
	site_hour_add(s, SITE_HOUR_UNREACHED);
	site_hour_verdict(s, VERDICT_DEFERRED);
	pass_time(3 * SITE_HOUR_STEP_MS + 7000);
	site_hour_verdict(s, VERDICT_FAILED);
	site_hour_copy(s, &past);
	assert_int_equal(past.n, 5);
	assert_int_equal(past.ago_ms, 7000);
	const uint32_t wanted[5][SITE_HOUR_COUNTS] = {
		{1, 1, 0, 0}, {0, 1, 0, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 1, 0}};
	assert_memory_equal(past.step, wanted, sizeof wanted);
}

static void after_an_hour_the_oldest_step_is_gone(void **state)
{
	(void)state;
	struct site_past past;
	begin("");
	struct site *s = site_of_mail();
	for (int i = 0; i < SITE_HOUR_STEPS + 5; i++) {
		site_hour_verdict(s, VERDICT_SENT);
		pass_time(SITE_HOUR_STEP_MS);
	}
	site_hour_copy(s, &past);
	assert_int_equal(past.n, SITE_HOUR_STEPS);
	assert_int_equal(past.step[0][SITE_HOUR_SENT], 1);
	assert_int_equal(past.step[SITE_HOUR_STEPS - 1][SITE_HOUR_SENT], 0);
	pass_time((int64_t)10 * SITE_HOUR_STEPS * SITE_HOUR_STEP_MS);
	site_hour_copy(s, &past);
	assert_int_equal(past.n, SITE_HOUR_STEPS);
	for (int i = 0; i < SITE_HOUR_STEPS; i++)
		assert_int_equal(past.step[i][SITE_HOUR_SENT], 0);
	site_hour_verdict(s, VERDICT_SENT);
	site_hour_copy(s, &past);
	assert_int_equal(past.step[SITE_HOUR_STEPS - 2][SITE_HOUR_SENT], 0);
	assert_int_equal(past.step[SITE_HOUR_STEPS - 1][SITE_HOUR_SENT], 1);
}

static void lately_is_this_step_and_the_one_before(void **state)
{
	(void)state;
	int64_t over_ms;
	begin("");
	struct site *s = site_of_mail();
	assert_int_equal(site_hour_lately(s, SITE_HOUR_SENT, &over_ms), 0);
	assert_int_equal(over_ms, 0);
	pass_time(SITE_HOUR_STEP_MS - clock_ms % SITE_HOUR_STEP_MS);
	site_hour_verdict(s, VERDICT_SENT);
	pass_time(4000);
	site_hour_verdict(s, VERDICT_SENT);
	assert_int_equal(site_hour_lately(s, SITE_HOUR_SENT, &over_ms), 2);
	assert_int_equal(over_ms, 4000);
	pass_time(SITE_HOUR_STEP_MS);
	assert_int_equal(site_hour_lately(s, SITE_HOUR_SENT, &over_ms), 2);
	assert_int_equal(over_ms, SITE_HOUR_STEP_MS + 4000);
	pass_time(SITE_HOUR_STEP_MS);
	assert_int_equal(site_hour_lately(s, SITE_HOUR_SENT, &over_ms), 0);
	assert_int_equal(over_ms, SITE_HOUR_STEP_MS + 4000);
}

static void no_more_than_so_many_sites_have_one_and_the_unused_goes(void **state)
{
	(void)state;
	begin("");
	struct site *first = site_of_mail();
	site_hour_verdict(first, VERDICT_SENT);
	for (int i = 1; i < SITE_HOURS; i++)
		site_hour_verdict(site_like(first, i), VERDICT_SENT);
	site_hour_verdict(first, VERDICT_SENT);
	assert_int_equal(q->db.hours.n, SITE_HOURS);
	site_hour_verdict(site_like(first, SITE_HOURS), VERDICT_SENT);
	assert_int_equal(q->db.hours.n, SITE_HOURS);
	assert_non_null(first->hour);
	assert_null(site_like(first, 1)->hour);
	assert_non_null(site_like(first, 2)->hour);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_is_counted_lies_in_the_step_in_which_it_came,
					  finish),
		cmocka_unit_test_teardown(after_an_hour_the_oldest_step_is_gone, finish),
		cmocka_unit_test_teardown(lately_is_this_step_and_the_one_before, finish),
		cmocka_unit_test_teardown(no_more_than_so_many_sites_have_one_and_the_unused_goes,
					  finish),
	};
	return RUN(tests);
}
