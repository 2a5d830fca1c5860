/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/world.h"

#include "qmgr/dest/destdb.h"

static const char two_hosts[] = "10 black.test 192.0.2.1, 10 good.test 192.0.2.2";

static void is_slow(struct connection_open *o)
{
	unanswered(o, false);
}

static void beside_a_slow_connection_another_host_is_tried(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	answer("a.test", two_hosts);
	assert_int_equal(opened.n, 1);
	is_slow(open_at(0));
	assert_int_equal(opened.n, 2);
	assert_string_not_equal(open_at(0)->host, open_at(1)->host);
	ready(open_at(1), 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
	is_released(1);
}

static void there_is_at_most_one_extra_attempt(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	answer("a.test", "10 a.test 192.0.2.1, 10 b.test 192.0.2.2, 10 c.test 192.0.2.3");
	is_slow(open_at(0));
	is_slow(open_at(1));
	assert_int_equal(opened.n, 2);
	ready(open_at(0), 1); /* the first after all */
	assert_int_equal(given.n, 1);
}

static void the_only_host_is_not_tried_twice(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	answer("a.test", "10 far.test 192.0.2.1, 20 backup.test 192.0.2.2");
	is_slow(open_at(0));
	assert_int_equal(opened.n, 1);
	ready(open_at(0), 1);
	assert_int_equal(given.n, 1);
}

static void the_winner_is_remembered_for_all_sites(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	answer("a.test", two_hosts);
	char loser[32];
	snprintf(loser, sizeof loser, "%s", open_at(0)->host);
	is_slow(open_at(0));
	for (uint64_t id = 2; id < 12; id++) {
		char to[40], domain[32], hosts[120];
		snprintf(domain, sizeof domain, "d%d.test", (int)id);
		snprintf(to, sizeof to, "x@%s", domain);
		snprintf(hosts, sizeof hosts, "%s, 20 more%d.test 192.0.2.9", two_hosts, (int)id);
		send_mail(id, to);
		answer(domain, hosts);
	}
	assert_int_equal(opened.n, 12);
	assert_int_equal(opened_to(loser), 1);
}

static void a_slow_window_does_not_hold_up_the_hosts_that_answer(void **state)
{
	(void)state;
	begin("transport smtp { initial_destination_concurrency = 1 }");
	send_mail(1, "x@a.test");
	send_mail(2, "x@a.test");
	answer("a.test", two_hosts);
	assert_int_equal(opened.n, 1);
	is_slow(open_at(0));
	assert_int_equal(opened.n, 2); /* beyond the window of one */
	ready(open_at(1), 1);
	for (int i = 0; i < 2; i++)
		done(given_at(0), VERDICT_SENT);
	assert_int_equal(given.n, 0);
}

static void an_idle_connection_is_lent_to_another_site_when_its_host_is_full(void **state)
{
	(void)state;
	begin("transport smtp { host_connection_limit = 1 }");
	send_mail(1, "x@a.test");
	answer("a.test", "10 mx.test 192.0.2.1");
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	send_mail(2, "x@b.test");
	answer("b.test", "10 mx.test 192.0.2.1, 20 backup.test 192.0.2.2");
	assert_int_equal(ending.n, 0);
	assert_int_equal(opened.n, 1);
	assert_int_equal(given_at(0)->id, 2);
	assert_int_equal(given_at(0)->connection, open_at(0)->connection);
}

static void what_is_queued_on_a_connection_that_closes_is_given_to_another(void **state)
{
	(void)state;
	begin("transport smtp { initial_destination_concurrency = 1 }");
	for (uint64_t id = 1; id <= 3; id++)
		send_mail(id, "x@a.test");
	answer("a.test", two_hosts);
	ready(open_at(0), 3);
	assert_int_equal(given.n, 3);
	while (given.n > 0) {
		given_at(0)->returned = true;
		post_back(given_at(0));
	}
	close_orderly(open_at(0));
	ready(open_at(0), 3);
	assert_int_equal(given.n, 3);
	assert_int_equal(told.n, 0);
}

/* They were all idle for as long, so one after the other is gone when mail comes. */
static void a_message_that_comes_to_connections_as_they_end_idly_waits_for_another(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	answer("a.test", "10 mx.test 192.0.2.1");
	for (int i = 0; i < 30; i++) {
		ready(open_at(0), 1);
		post_closed(open_at(0), NULL);
		put_back(given_at(0));
		assert_int_equal(told.n, 0); /* not put off */
	}
}

/* It is being closed, and that is not known here until the host has answered QUIT. */
static void what_comes_back_from_a_connection_that_is_closing_goes_over_another(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	answer("a.test", "10 mx.test 192.0.2.1");
	ready(open_at(0), 1);
	given_at(0)->closing = true;
	put_back(given_at(0));
	assert_int_equal(given.n, 0);
	assert_int_equal(opened.n, 2);
	ready(open_at(1), 1);
	assert_int_equal(given_at(0)->connection, open_at(1)->connection);
	close_orderly(open_at(0));
	assert_int_equal(told.n, 0);
}

static void refusals_beside_connections_that_serve_do_not_kill_a_site(void **state)
{
	(void)state;
	begin("transport smtp { initial_destination_concurrency = 20 }");
	for (uint64_t id = 1; id <= 40; id++)
		send_mail(id, "x@a.test");
	answer("a.test", "10 mx.test 192.0.2.1");
	struct site *s = site_named("mx.test");
	for (int i = 0; i < 5; i++)
		ready(open_at(i), 1);
	while (opened.n > 5)
		lose(open_at(opened.n - 1), "too many");
	assert_in_range(s->window.concurrency, 1, 19);
	assert_int_equal(given.n, 5);
	assert_int_equal(told.n, 0); /* nothing deferred */
}

static void a_failed_host_is_tried_beside_its_equals_too(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	answer("a.test", "10 a.test 192.0.2.1, 10 b.test 192.0.2.2");
	char failed[32];
	snprintf(failed, sizeof failed, "%s", open_at(0)->host);
	lose(open_at(0), "refused");
	assert_string_not_equal(open_at(0)->host, failed);
	ready(open_at(0), 1);
	pass_time(301000);
	send_mail(2, "x@a.test"); /* while the first keeps the connection busy */
	answer("a.test", "10 a.test 192.0.2.1, 10 b.test 192.0.2.2");
	assert_int_equal(opened_to(failed), 1);
	assert_int_equal(opened.n, 3);
	ready(open_at(2), 1);
	assert_int_equal(delivery_of_mail(2)->connection, open_at(2)->connection);
}

static void an_attempt_beside_a_full_window_ends_when_it_succeeds(void **state)
{
	(void)state;
	begin("transport smtp { destination_concurrency_limit = 1 "
	      "initial_destination_concurrency = 1 }");
	send_mail(1, "x@a.test");
	answer("a.test", "10 a.test 192.0.2.1, 10 b.test 192.0.2.2");
	struct connection_open *slow = open_at(0);
	unanswered(slow, false);
	struct connection_open *quick = open_at(1);
	ready(quick, 1);
	ready(slow, 1);
	assert_true(was_told_to_end(slow));
	assert_false(was_told_to_end(quick));
	send_mail(2, "x@a.test");
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(given_at(0)->id, 2);
	assert_int_equal(given_at(0)->connection, quick->connection);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(beside_a_slow_connection_another_host_is_tried),
		TEST(there_is_at_most_one_extra_attempt),
		TEST(the_only_host_is_not_tried_twice),
		TEST(the_winner_is_remembered_for_all_sites),
		TEST(a_slow_window_does_not_hold_up_the_hosts_that_answer),
		TEST(an_idle_connection_is_lent_to_another_site_when_its_host_is_full),
		TEST(what_is_queued_on_a_connection_that_closes_is_given_to_another),
		TEST(a_message_that_comes_to_connections_as_they_end_idly_waits_for_another),
		TEST(what_comes_back_from_a_connection_that_is_closing_goes_over_another),
		TEST(refusals_beside_connections_that_serve_do_not_kill_a_site),
		TEST(a_failed_host_is_tried_beside_its_equals_too),
		TEST(an_attempt_beside_a_full_window_ends_when_it_succeeds),
	};
	return RUN(tests);
}
