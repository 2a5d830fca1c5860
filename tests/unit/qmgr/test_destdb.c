/* SPDX-License-Identifier: ISC */
/* Which host gets the next connection. What is known about one is tested in test_host.c. */
#include "tests/unit/qmgr/unit.h"

#include "base/log.h"
#include "base/verdict.h"
#include "qmgr/dest/destdb.h"
#include "qmgr/dest/destdb_choose.h"

#include <string.h>

enum { N = 4, NOW = 1000000 };

static struct host host[N];
static struct site_host hosts[N];
static struct host *chosen;
static int64_t wake;
static char one[] = "one.test", other[] = "other.test";

/* Four hosts that nobody has tried, in one group. */
static int start(void **state)
{
	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	memset(host, 0, sizeof host);
	for (int i = 0; i < N; i++)
		hosts[i] = (struct site_host){
			.host = &host[i], .name = one, .peer = one, .preference = 10};
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (int i = 0; i < N; i++)
		host_fini(&host[i]);
	return 0;
}

static enum destdb_choice choose_by(double chance, int64_t host_limit)
{
	struct site_host *it = NULL;
	wake = -1;
	enum destdb_choice choice =
		destdb_choose(hosts, N, host_limit, NOW, false, chance, &it, &wake);
	assert_true((it != NULL) == (choice == DESTDB_HOST));
	chosen = it ? it->host : NULL;
	return choice;
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

static void set_failed(int i)
{
	struct verdict *why = verdict_new(VERDICT_DEFERRED, 0, "4.4.1", "mx", "refused");
	host_failed(&host[i], why, "mx", host[i].era, NOW, 300000);
	verdict_unref(why);
}

/* It has as many connections as it was seen to take, until then. */
static void set_limited(int i, int n, int64_t again_ms)
{
	set_active(i, n);
	host[i].limit = (struct host_limit){.n = n, .again_ms = again_ms, .wait_ms = 60000};
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
	set_failed(0);
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

static void one_whose_time_to_retry_has_come_is_for_a_probe_and_not_for_mail(void **state)
{
	(void)state;
	set_failed(2);
	host[2].retry_ms = NOW - 1;
	assert_true(host_probe_due(&host[2], NOW));
	for (int i = 0; i < N; i++)
		if (i != 2)
			set_active(i, 9);
	for (double chance = 0; chance < 1; chance += 0.0625) {
		assert_int_equal(choose_by(chance, 0), DESTDB_HOST);
		assert_ptr_not_equal(chosen, &host[2]);
	}
	for (int i = 0; i < N; i++)
		if (i != 2)
			set_failed(i);
	assert_int_equal(choose_by(0, 0), DESTDB_NONE);
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

static void nor_is_one_that_is_being_probed(void **state)
{
	(void)state;
	set_failed(1);
	host_probe(&host[1]);
	for (int i = 0; i < N; i++)
		if (i != 1)
			set_active(i, 9);
	for (double chance = 0; chance < 1; chance += 0.0625) {
		assert_int_equal(choose_by(chance, 0), DESTDB_HOST);
		assert_ptr_not_equal(chosen, &host[1]);
	}
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

static void a_failed_host_is_not_chosen_until_a_connection_to_it_is_ready(void **state)
{
	(void)state;
	set_failed(0);
	for (int i = 1; i < N; i++)
		set_active(i, 5);
	choose_by(0, 0);
	assert_ptr_not_equal(chosen, &host[0]);
	host_worked(&host[0], NOW);
	always(0);
}

static void the_better_group_is_chosen_while_anything_in_it_is_in_service(void **state)
{
	(void)state;
	hosts[2].preference = hosts[3].preference = 20;
	set_active(0, 9);
	set_failed(1);
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
	set_failed(0);
	set_failed(1);
	set_closed(2, 5);
	always(3);
}

static void when_all_are_out_there_is_none(void **state)
{
	(void)state;
	hosts[2].preference = hosts[3].preference = 20;
	for (int i = 0; i < N; i++)
		set_failed(i);
	assert_int_equal(choose_by(0.5, 0), DESTDB_NONE);
}

static void
a_host_at_the_limit_that_it_was_seen_to_have_waits_until_that_may_be_tried_again(void **state)
{
	(void)state;
	for (int i = 0; i < N; i++)
		set_limited(i, 3 + i, NOW + 1000 - i);
	assert_int_equal(choose_by(0, 0), DESTDB_LATER);
	assert_int_equal(wake, NOW + 1000 - 3); /* the first of them */
	host[2].limit.again_ms = NOW;
	always(2);
	host[1].connections--; /* one has ended */
	host[2].limit.again_ms = NOW + 1;
	always(1);
}

static void one_that_is_out_or_full_by_configuration_too_is_not_waited_for(void **state)
{
	(void)state;
	for (int i = 0; i < N; i++)
		set_limited(i, 3, NOW + 1000 + i);
	set_failed(0);
	hosts[1].suspended = true;
	assert_int_equal(choose_by(0, 0), DESTDB_LATER);
	assert_int_equal(wake, NOW + 1002);
	assert_int_equal(choose_by(0, 3), DESTDB_LATER);
	assert_int_equal(wake, 0); /* until one closes */
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
	for (int i = 0; i < N; i++) {
		hosts[i].name = i < 2 ? one : other;
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
	hosts[2].preference = hosts[3].preference = 20;
	host[0].suspended = true;  /* for every site */
	hosts[1].suspended = true; /* by the name that this one has for it */
	assert_true(host_out(&host[0]));
	assert_false(host_out(&host[1]));
	assert_true(site_host_out(&hosts[0]) && site_host_out(&hosts[1]));
	host[2].opened_ms = 1;
	always(3);
}

static void a_group_that_does_not_answer_is_passed_over_as_long_as_another_does(void **state)
{
	(void)state;
	int end_at;
	hosts[2].preference = hosts[3].preference = 20;
	for (int i = 0; i < 2; i++)
		host[i].connections = host[i].unanswered = 1;
	assert_int_equal(destdb_group(hosts, N, &end_at), 2);
	assert_int_equal(end_at, 4);
	host[1].ready = 1; /* this connection is slow, but the host serves */
	assert_int_equal(destdb_group(hosts, N, &end_at), 0);
	assert_int_equal(end_at, 2);
	host[1].ready = 0;
	set_failed(2);
	set_failed(3);
	assert_int_equal(destdb_group(hosts, N, &end_at), 0); /* better than none */
	set_failed(0);
	set_failed(1);
	assert_int_equal(destdb_group(hosts, N, &end_at), -1);
}

static void the_state_of_a_host_is_one_word(void **state)
{
	(void)state;
	assert_string_equal(destdb_state(&host[0], NOW), "unused");
	set_closed(0, 5);
	assert_string_equal(destdb_state(&host[0], NOW), "closed");
	set_active(0, 2);
	assert_string_equal(destdb_state(&host[0], NOW), "active");
	host[0].nidle = 2;
	assert_string_equal(destdb_state(&host[0], NOW), "idle");
	set_limited(0, 2, NOW + 5);
	assert_string_equal(destdb_state(&host[0], NOW), "limited");
	host[0].limit.n = host[0].nidle = 0;
	host_slow(&host[0], NOW);
	assert_string_equal(destdb_state(&host[0], NOW), "slow");
	set_failed(0);
	assert_string_equal(destdb_state(&host[0], NOW), "out");
	assert_string_equal(destdb_state(&host[0], NOW + 1000), "retry");
	host_probe(&host[0]);
	assert_string_equal(destdb_state(&host[0], NOW), "retry");
	host[0].suspended = true;
	assert_string_equal(destdb_state(&host[0], NOW), "suspended");
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
		TEST(one_whose_time_to_retry_has_come_is_for_a_probe_and_not_for_mail),
		TEST(of_the_closed_the_oldest_is_chosen),
		TEST(nor_is_one_that_is_being_probed),
		TEST(of_the_active_the_one_with_the_fewest_connections_is_chosen),
		TEST(a_host_at_its_limit_is_not_chosen),
		TEST(a_failed_host_is_not_chosen_until_a_connection_to_it_is_ready),
		TEST(the_better_group_is_chosen_while_anything_in_it_is_in_service),
		TEST(a_full_group_is_not_left),
		TEST(a_group_whose_hosts_are_all_out_is_passed_over),
		TEST(when_all_are_out_there_is_none),
		TEST(a_host_at_the_limit_that_it_was_seen_to_have_waits_until_that_may_be_tried_again),
		TEST(one_that_is_out_or_full_by_configuration_too_is_not_waited_for),
		TEST(a_host_that_is_slow_to_connect_comes_last),
		TEST(ipv6_goes_first_among_the_addresses_of_one_name),
		TEST(a_suspended_host_is_out_and_its_group_is_passed_over),
		TEST(a_group_that_does_not_answer_is_passed_over_as_long_as_another_does),
		TEST(the_state_of_a_host_is_one_word),
	};
	return RUN(tests);
}
