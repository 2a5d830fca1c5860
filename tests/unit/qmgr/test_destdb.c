/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/unit.h"

#include "base/verdict.h"
#include "qmgr/destdb.h"

#include <string.h>

enum { N = 4, NOW = 1000000 };

static struct host host[N];
static struct site_host hosts[N];
static struct host *chosen;
static int64_t wake;

/* Four hosts that nobody has tried, in one group. */
static int start(void **state)
{
	(void)state;
	memset(host, 0, sizeof host);
	for (int i = 0; i < N; i++)
		hosts[i] = (struct site_host){&host[i], 10, 0};
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (int i = 0; i < N; i++)
		host_worked(&host[i]);
	return 0;
}

static enum destdb_choice choose_by(double chance, int64_t host_limit)
{
	chosen = NULL;
	wake = -1;
	return destdb_choose(hosts, N, host_limit, NOW, chance, &chosen, &wake);
}

/* Whatever chance says, it is this host. */
static void always(int which)
{
	for (double chance = 0; chance < 1; chance += 0.0625) {
		assert_int_equal(choose_by(chance, 0), DESTDB_HOST);
		assert_ptr_equal(chosen, &host[which]);
	}
}

static void set_closed(int i, int64_t opened_ms)
{
	host[i].opened_ms = opened_ms;
}

static void set_active(int i, int connections)
{
	host[i].opened_ms = NOW - 5;
	host[i].connections = host[i].ready = connections;
}

static void set_failed(int i, int64_t backoff_ms)
{
	struct verdict *why = verdict_new(VERDICT_DEFERRED, 0, "4.4.1", "mx", "refused");
	host_failed(&host[i], why, NOW, backoff_ms);
	verdict_unref(why);
}

static void an_unused_host_is_chosen_at_random(void **state)
{
	(void)state;
	int times[N] = {0};
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(choose_by(i / 1000.0, 0), DESTDB_HOST);
		times[chosen - host]++;
	}
	for (int i = 0; i < N; i++)
		assert_int_equal(times[i], 1000 / N);
}

static void weigh(double a, double b, double c, double d)
{
	double weight[N] = {a, b, c, d};
	for (int i = 0; i < N; i++)
		hosts[i].weight = weight[i];
}

static void with_weights_chance_is_by_weight(void **state)
{
	(void)state;
	int times[N] = {0};
	weigh(5, 3, 1, 1);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(choose_by(i / 1000.0, 0), DESTDB_HOST);
		times[chosen - host]++;
	}
	assert_int_equal(times[0], 500);
	assert_int_equal(times[1], 300);
	assert_int_equal(times[2], 100);
	assert_int_equal(times[3], 100);
}

static void with_weights_connections_are_shared_by_weight(void **state)
{
	(void)state;
	weigh(5, 3, 1, 1);
	for (int i = 0; i < 20; i++) {
		choose_by((i * 7 % 20) / 20.0, 0);
		chosen->connections++;
		chosen->opened_ms = NOW;
	}
	assert_int_equal(host[0].connections, 10);
	assert_int_equal(host[1].connections, 6);
	assert_int_equal(host[2].connections, 2);
	assert_int_equal(host[3].connections, 2);
}

static void what_is_out_or_full_has_no_weight(void **state)
{
	(void)state;
	weigh(100, 50, 1, 1);
	set_failed(0, 300);
	set_active(1, 5);
	for (double chance = 0; chance < 1; chance += 0.0625) {
		assert_int_equal(choose_by(chance, 5), DESTDB_HOST);
		assert_true(chosen == &host[2] || chosen == &host[3]);
	}
}

static void an_unused_host_goes_before_a_closed_one(void **state)
{
	(void)state;
	set_closed(0, 1);
	set_closed(1, 2);
	set_closed(3, 3);
	always(2);
}

static void a_closed_host_goes_before_one_to_be_retried(void **state)
{
	(void)state;
	for (int i = 0; i < N; i++) {
		set_failed(i, 10);
		host[i].retry_ms = NOW - 1;
	}
	host_worked(&host[1]);
	set_closed(1, 500);
	always(1);
}

static void of_the_closed_the_oldest_is_chosen(void **state)
{
	(void)state;
	set_closed(0, 400);
	set_closed(1, 300);
	set_closed(2, 200);
	set_closed(3, 900);
	always(2);
}

static void a_host_to_be_retried_goes_before_an_active_one(void **state)
{
	(void)state;
	for (int i = 0; i < N; i++)
		set_active(i, 1);
	host[3].connections = host[3].ready = 0;
	set_failed(3, 10);
	host[3].retry_ms = NOW;
	always(3);
}

static void of_the_active_the_one_with_the_fewest_connections_is_chosen(void **state)
{
	(void)state;
	set_active(0, 4);
	set_active(1, 2);
	set_active(2, 7);
	set_active(3, 3);
	always(1);
}

static void a_host_at_its_limit_is_not_chosen(void **state)
{
	(void)state;
	for (int i = 0; i < N; i++)
		set_active(i, 5);
	set_active(2, 4);
	assert_int_equal(choose_by(0, 5), DESTDB_HOST);
	assert_ptr_equal(chosen, &host[2]);
	set_active(2, 5);
	assert_int_equal(choose_by(0, 5), DESTDB_LATER);
	assert_int_equal(wake, 0);
	assert_int_equal(choose_by(0, 0), DESTDB_HOST); /* no limit */
}

static void a_failed_host_is_out_until_its_time(void **state)
{
	(void)state;
	set_failed(0, 300);
	assert_true(host_out(&host[0], NOW));
	assert_true(host_out(&host[0], NOW + 299));
	assert_false(host_out(&host[0], NOW + 300));
	for (double chance = 0; chance < 1; chance += 0.0625) {
		choose_by(chance, 0);
		assert_ptr_not_equal(chosen, &host[0]);
	}
}

static void the_better_group_is_chosen_while_anything_in_it_is_in_service(void **state)
{
	(void)state;
	hosts[2].preference = hosts[3].preference = 20;
	set_active(0, 9);
	set_failed(1, 300);
	always(0); /* although the others were never used */
}

static void a_full_group_is_not_left(void **state)
{
	(void)state;
	hosts[2].preference = hosts[3].preference = 20;
	set_active(0, 9);
	set_active(1, 9);
	assert_int_equal(choose_by(0, 9), DESTDB_LATER);
	assert_null(chosen);
}

static void a_group_whose_hosts_are_all_out_is_passed_over(void **state)
{
	(void)state;
	hosts[2].preference = hosts[3].preference = 20;
	set_failed(0, 300);
	set_failed(1, 300);
	set_closed(2, 5);
	always(3);
}

static void when_all_are_out_there_is_none(void **state)
{
	(void)state;
	hosts[2].preference = hosts[3].preference = 20;
	for (int i = 0; i < N; i++)
		set_failed(i, 300);
	assert_int_equal(choose_by(0.5, 0), DESTDB_NONE);
}

static void a_host_that_serves_and_refuses_more_is_left_alone_for_a_moment(void **state)
{
	(void)state;
	for (int i = 0; i < N; i++) {
		set_active(i, 3 + i);
		set_failed(i, 300000);
		assert_false(host_out(&host[i], NOW));
		assert_true(host[i].cool_ms > NOW && host[i].cool_ms < NOW + 1000);
	}
	host[2].cool_ms = NOW + 40;
	assert_int_equal(choose_by(0, 0), DESTDB_LATER);
	assert_int_equal(wake, NOW + 40);
	host[2].cool_ms = NOW;
	always(2);
}

static void that_moment_doubles_each_time_up_to_half_a_minute(void **state)
{
	(void)state;
	set_active(0, 1);
	int64_t before = 0;
	for (int i = 0; i < 40; i++) {
		set_failed(0, 300000);
		int64_t cool = host[0].cool_ms - NOW;
		assert_true(cool == 2 * before || before == 0 || cool == 30000);
		before = cool;
		host[0].cool_ms = NOW; /* that moment has passed */
	}
	assert_int_equal(before, 30000);
}

static void connections_that_fail_together_are_one_failure(void **state)
{
	(void)state;
	set_active(0, 5);
	set_failed(0, 300000);
	int64_t cool = host[0].cool_ms;
	for (int i = 0; i < 14; i++)
		set_failed(0, 300000);
	assert_int_equal(host[0].cool_ms, cool);
	assert_int_equal(host[0].failures, 1);
}

static void a_host_whose_connections_have_just_ended_well_is_not_out(void **state)
{
	(void)state;
	set_active(0, 1);
	set_failed(0, 300000);
	host[0].connections = host[0].ready = 0;
	host_ended_well(&host[0], NOW);
	assert_int_equal(host[0].cool_ms, 0); /* there is a place */
	set_failed(0, 300000);
	assert_false(host_out(&host[0], NOW));
	assert_true(host_serves(&host[0], NOW + 1000));
	assert_false(host_serves(&host[0], NOW + 60000));
}

static void connections_that_are_not_ready_do_not_show_that_a_host_serves(void **state)
{
	(void)state;
	set_active(0, 3);
	host[0].ready = 0;
	set_failed(0, 300);
	assert_true(host_out(&host[0], NOW));
}

static void one_good_connection_brings_a_host_back(void **state)
{
	(void)state;
	set_failed(0, 300);
	set_active(1, 1);
	set_failed(1, 300);
	for (int i = 0; i < 2; i++) {
		host_worked(&host[i]);
		assert_int_equal(host[i].failures, 0);
		assert_false(host_out(&host[i], NOW));
		assert_int_equal(host[i].cool_ms, 0);
		assert_null(host[i].why);
	}
}

static void a_host_remembers_why_it_failed_last(void **state)
{
	(void)state;
	set_failed(0, 300);
	struct verdict *why = verdict_new(VERDICT_DEFERRED, 421, "4.7.0", "mx", "later");
	host_failed(&host[0], why, NOW, 300);
	assert_ptr_equal(host[0].why, why);
	verdict_unref(why);
	assert_int_equal(host[0].failures, 2);
}

static void a_host_that_is_slow_to_connect_comes_last(void **state)
{
	(void)state;
	for (int i = 0; i < N; i++)
		set_active(i, 5 + i);
	host[2].connections = host[2].ready = 0; /* unused, it would be first */
	host[2].opened_ms = 0;
	host_slow(&host[2], NOW);
	always(0);
	for (int i = 0; i < N; i++)
		if (i != 2)
			host[i].connections = 20;
	assert_int_equal(choose_by(0, 20), DESTDB_HOST);
	assert_ptr_equal(chosen, &host[2]); /* but before none */
	host[2].slow_until_ms = NOW;
	always(2);
}

static void ipv6_goes_first_among_the_addresses_of_one_name(void **state)
{
	(void)state;
	char one[] = "one.test", other[] = "other.test";
	for (int i = 0; i < N; i++) {
		host[i].name = i < 2 ? one : other;
		host[i].address.sa.sa_family = AF_INET;
	}
	host[1].address.sa.sa_family = AF_INET6;
	int times[N] = {0};
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(choose_by(i / 1000.0, 0), DESTDB_HOST);
		times[chosen - host]++;
	}
	assert_int_equal(times[0], 0);
	assert_int_equal(times[1], 500); /* the names share as before */
	host_slow(&host[1], NOW);
	host[2].suspended = host[3].suspended = true;
	always(0);
}

static void a_suspended_host_is_out_and_its_group_is_passed_over(void **state)
{
	(void)state;
	host[0].suspended = true;
	assert_true(host_out(&host[0], NOW));
	hosts[2].preference = hosts[3].preference = 20;
	host[1].suspended = true;
	host[2].opened_ms = 1;
	always(3);
}

static void what_is_forgotten_was_never_tried(void **state)
{
	(void)state;
	set_closed(1, 5);
	set_failed(1, 300);
	host_slow(&host[1], NOW);
	host[1].plain_until_ms = NOW + 5;
	host_forget(&host[1]);
	assert_string_equal(host_state(&host[1], NOW), "unused");
	assert_int_equal(host[1].plain_until_ms, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_unused_host_is_chosen_at_random),
		TEST(with_weights_chance_is_by_weight),
		TEST(with_weights_connections_are_shared_by_weight),
		TEST(what_is_out_or_full_has_no_weight),
		TEST(an_unused_host_goes_before_a_closed_one),
		TEST(a_closed_host_goes_before_one_to_be_retried),
		TEST(of_the_closed_the_oldest_is_chosen),
		TEST(a_host_to_be_retried_goes_before_an_active_one),
		TEST(of_the_active_the_one_with_the_fewest_connections_is_chosen),
		TEST(a_host_at_its_limit_is_not_chosen),
		TEST(a_failed_host_is_out_until_its_time),
		TEST(the_better_group_is_chosen_while_anything_in_it_is_in_service),
		TEST(a_full_group_is_not_left),
		TEST(a_group_whose_hosts_are_all_out_is_passed_over),
		TEST(when_all_are_out_there_is_none),
		TEST(a_host_that_serves_and_refuses_more_is_left_alone_for_a_moment),
		TEST(that_moment_doubles_each_time_up_to_half_a_minute),
		TEST(connections_that_fail_together_are_one_failure),
		TEST(a_host_whose_connections_have_just_ended_well_is_not_out),
		TEST(connections_that_are_not_ready_do_not_show_that_a_host_serves),
		TEST(one_good_connection_brings_a_host_back),
		TEST(a_host_remembers_why_it_failed_last),
		TEST(a_host_that_is_slow_to_connect_comes_last),
		TEST(ipv6_goes_first_among_the_addresses_of_one_name),
		TEST(a_suspended_host_is_out_and_its_group_is_passed_over),
		TEST(what_is_forgotten_was_never_tried),
	};
	return RUN(tests);
}
