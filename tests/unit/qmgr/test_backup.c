/* SPDX-License-Identifier: ISC */
/* Hosts of lesser preference: when mail may go to them, and when it may not any more. */
#include "tests/unit/qmgr/world.h"

#include "qmgr/dest/conn.h"
#include "qmgr/dest/destdb.h"

static const char with_backup[] = "10 far.test 192.0.2.1, 20 backup.test 192.0.2.2";

static void send_some(uint64_t first, uint64_t last)
{
	for (uint64_t id = first; id <= last; id++)
		send_mail(id, "x@a.test");
	if (questions.n > 0)
		answer("a.test", with_backup);
}

/* One message that came by the backup, after the better host had been late. */
static void begin_with_a_late_host(const char *text)
{
	begin(text);
	send_some(1, 1);
	unanswered(open_to("far.test"), false);
	unanswered(open_to("far.test"), true);
	ready(open_to("backup.test"), 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
	is_released(1);
}

/* The better host is known to have failed, and its time to retry has come. */
static void begin_with_a_failed_host(const char *text)
{
	begin_with_a_late_host(text);
	lose(open_to("far.test"), "no answer in time");
	close_orderly(open_to("backup.test"));
	assert_int_equal(opened.n, 0);
	pass_time(301000);
}

static void a_lesser_host_is_tried_when_the_better_is_late_and_no_sooner(void **state)
{
	(void)state;
	begin("");
	send_some(1, 1);
	unanswered(open_at(0), false);
	assert_int_equal(opened.n, 1);
	unanswered(open_at(0), true);
	assert_int_equal(opened_to("backup.test"), 1);
	ready(open_to("backup.test"), 1);
	assert_int_equal(given_at(0)->id, 1);
	assert_int_equal(opened_to("far.test"), 1); /* still awaited, to find out */
}

static void all_that_waited_for_the_late_host_goes_to_the_backup(void **state)
{
	(void)state;
	begin("");
	send_some(1, 5);
	assert_int_equal(opened_to("far.test"), 5);
	unanswered(open_to("far.test"), true);
	assert_int_equal(opened_to("backup.test"), 1);
	ready(open_to("backup.test"), 1);
	for (int i = 0; i < 5; i++)
		done(given_at(0), VERDICT_SENT);
	assert_int_equal(told.n, 5); /* each released as delivered */
}

static void no_further_message_waits_for_a_late_host(void **state)
{
	(void)state;
	begin_with_a_late_host("");
	close_orderly(open_to("backup.test"));
	send_some(2, 4);
	assert_int_equal(opened_to("far.test"), 1);
	assert_int_equal(opened_to("backup.test"), 3);
}

static void a_late_host_is_passed_over_for_other_sites_too(void **state)
{
	(void)state;
	begin_with_a_late_host("");
	send_mail(2, "x@b.test");
	answer("b.test", "5 far.test 192.0.2.1, 10 other.test 192.0.2.7");
	assert_int_equal(opened_to("far.test"), 1);
	assert_int_equal(opened_to("other.test"), 1);
}

static void a_late_host_that_is_the_only_one_is_waited_for(void **state)
{
	(void)state;
	begin_with_a_late_host("");
	send_mail(2, "x@b.test");
	answer("b.test", "10 far.test 192.0.2.1");
	assert_int_equal(opened_to("far.test"), 2);
	unanswered(open_at(opened.n - 1), true);
	assert_int_equal(opened_to("far.test"), 2);
	ready(open_at(opened.n - 1), 1);
	assert_int_equal(given_at(0)->id, 2);
}

static void each_address_of_the_better_host_is_tried_before_the_backup(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	answer("a.test", "10 a.test 192.0.2.1, 10 b.test 192.0.2.2, 20 backup.test 192.0.2.3");
	unanswered(open_at(0), false);
	assert_int_equal(opened.n, 2);
	unanswered(open_at(1), false);
	unanswered(open_at(0), true);
	assert_int_equal(opened.n, 2);
	assert_int_equal(opened_to("backup.test"), 0);
	unanswered(open_at(1), true);
	assert_int_equal(opened.n, 3);
	assert_int_equal(opened_to("backup.test"), 1);
}

static void a_host_that_serves_is_not_left_for_one_late_connection(void **state)
{
	(void)state;
	begin("");
	send_some(1, 2);
	ready(open_at(0), 1);
	unanswered(open_at(1), true);
	assert_int_equal(opened_to("backup.test"), 0);
	assert_int_equal(opened_to("far.test"), 2); /* nor is a third opened */
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(given_at(0)->id, 2);
}

static void the_better_host_is_used_again_when_it_answers_after_all(void **state)
{
	(void)state;
	begin_with_a_late_host("");
	send_some(2, 2);
	assert_int_equal(given_at(0)->id, 2); /* on the connection that the backup has */
	ready(open_to("far.test"), 1);
	assert_true(was_told_to_end(open_to("backup.test")));
	done(given_at(0), VERDICT_SENT);
	send_some(3, 3);
	assert_int_equal(given_at(0)->connection, open_to("far.test")->connection);
}

static void a_failed_host_is_tried_again_and_no_message_waits_for_it(void **state)
{
	(void)state;
	begin_with_a_failed_host("");
	send_some(2, 2);
	assert_int_equal(opened_to("far.test"), 1);
	assert_int_equal(opened_to("backup.test"), 1); /* at the same time */
	ready(open_to("backup.test"), 1);
	assert_int_equal(given_at(0)->id, 2);
	done(given_at(0), VERDICT_SENT);
	int window = site_named("far.test;backup.test")->window.concurrency;
	lose(open_to("far.test"), "no answer in time");
	assert_int_equal(site_named("far.test;backup.test")->window.concurrency, window);
	close_orderly(open_to("backup.test"));
	send_some(3, 3);
	assert_int_equal(opened_to("far.test"), 0); /* out again */
	assert_int_equal(opened_to("backup.test"), 1);
}

static void a_failed_host_that_is_back_gets_the_mail(void **state)
{
	(void)state;
	begin_with_a_failed_host("");
	send_some(2, 2);
	ready(open_to("far.test"), 1);
	assert_int_equal(given_at(0)->connection, open_to("far.test")->connection);
	assert_true(was_told_to_end(open_to("backup.test")));
}

static void
with_a_backup_attempt_delay_of_0_a_better_host_is_left_only_when_it_has_failed(void **state)
{
	(void)state;
	begin("transport smtp { backup_attempt_delay = 0 }");
	send_some(1, 1);
	unanswered(open_at(0), true);
	assert_int_equal(opened.n, 1);
	lose(open_at(0), "no answer in time");
	ready(open_to("backup.test"), 1);
	done(given_at(0), VERDICT_SENT);
	close_orderly(open_to("backup.test"));
	pass_time(301000);
	send_some(2, 2);
	assert_int_equal(opened_to("far.test"), 1); /* to find out */
	assert_int_equal(opened_to("backup.test"), 1);
	ready(open_to("backup.test"), 1);
	assert_int_equal(given_at(0)->id, 2);
}

/* It may have arrived there, so it goes there, but nothing else does. */
static void mail_in_doubt_goes_to_the_backup_that_may_have_it(void **state)
{
	(void)state;
	begin_with_a_late_host("queue { minimal_backoff_time = 1s }");
	send_some(2, 2);
	struct delivery *d = delivery_of_mail(2);
	char peer[] = "backup.test[192.0.2.2]:25";
	d->rcpt[0].verdict = verdict_new(VERDICT_IN_DOUBT, 0, "4.4.2", peer, "lost");
	back(d);
	lose(open_to("backup.test"), "lost");
	ready(open_to("far.test"), 1);
	is_delivered(2, 1, VERDICT_IN_DOUBT);
	struct envelope *e = is_kept(2);
	pass_time(2000);
	arrive(e);
	assert_int_equal(opened_to("backup.test"), 1);
	ready(open_to("backup.test"), 1);
	assert_int_equal(delivery_of_mail(2)->connection, open_to("backup.test")->connection);
	done(delivery_of_mail(2), VERDICT_SENT);
	send_some(3, 3);
	assert_int_equal(delivery_of_mail(3)->connection, open_to("far.test")->connection);
}

static void mail_in_doubt_does_not_wait_for_a_host_that_does_not_answer(void **state)
{
	(void)state;
	begin_with_a_late_host("queue { minimal_backoff_time = 1s }");
	send_some(2, 2);
	struct delivery *d = delivery_of_mail(2);
	char peer[] = "far.test[192.0.2.1]:25";
	d->rcpt[0].verdict = verdict_new(VERDICT_IN_DOUBT, 0, "4.4.2", peer, "lost");
	back(d);
	is_delivered(2, 1, VERDICT_IN_DOUBT);
	struct envelope *e = is_kept(2);
	pass_time(2000);
	arrive(e);
	assert_int_equal(opened_to("far.test"), 1);
	assert_int_equal(delivery_of_mail(2)->connection, open_to("backup.test")->connection);
}

static void one_that_waits_for_a_full_backup_is_told_when_it_has_room(void **state)
{
	(void)state;
	begin_with_a_late_host("transport smtp { host_connection_limit = 1 }");
	close_orderly(open_to("backup.test"));
	send_mail(2, "x@b.test");
	answer("b.test", "10 backup.test 192.0.2.2");
	struct connection_open *other = open_to("backup.test");
	ready(other, 1);
	send_some(3, 3);
	assert_int_equal(opened_to("backup.test"), 1);
	done(delivery_of_mail(2), VERDICT_SENT);
	close_orderly(other);
	ready(open_to("backup.test"), 1);
	assert_int_equal(given_at(0)->id, 3);
}

/* A message took the only connection that its host may have so long; others wait. */
static void begin_with_a_full_host(const char *text, int64_t ms)
{
	begin(text);
	send_some(1, 1);
	ready(open_to("far.test"), 1);
	given_at(0)->began_us = clock_steady_us();
	pass_time(ms);
	given_at(0)->ended_us = clock_steady_us();
	done(given_at(0), VERDICT_SENT);
	send_some(2, 11);
	assert_int_equal(opened_to("far.test"), 1);
}

static void what_would_wait_too_long_for_a_full_host_overflows_to_the_backup(void **state)
{
	(void)state;
	begin_with_a_full_host(
		"transport smtp { host_connection_limit = 1 destination_concurrency_limit = 2 }",
		1000);
	assert_int_equal(opened_to("backup.test"), 1);
	ready(open_to("backup.test"), 1);
	for (int i = 0; i < 5; i++) /* then those that are left wait for less than 5 s */
		done(given_at(given.n - 1), VERDICT_SENT);
	assert_int_equal(given.n, 1);
	assert_int_equal(given_at(0)->connection, open_to("far.test")->connection);
	assert_false(was_told_to_end(open_to("backup.test")));
	send_some(12, 22);
	assert_int_equal(given.n, 2);
	assert_int_equal(given_at(1)->connection, open_to("backup.test")->connection);
}

/* One connection to each, and what is left of the mail is kept for the better one, which has some of it. */
static void begin_with_an_idle_reserve(void)
{
	begin_with_a_full_host(
		"transport smtp { host_connection_limit = 1 destination_concurrency_limit = 2 }",
		1000);
	ready(open_to("backup.test"), 1);
	for (int i = 0; i < 5; i++)
		done(given_at(given.n - 1), VERDICT_SENT);
	assert_int_equal(given.n, 1);
	assert_int_equal(given_at(0)->connection, open_to("far.test")->connection);
}

static void what_is_kept_for_what_overflows_is_for_all_when_the_better_host_is_out(void **state)
{
	(void)state;
	begin_with_an_idle_reserve();
	given_at(0)->returned = true;
	post_back(given_at(0));
	lose(open_to("far.test"), "cut off");
	lose(open_to("far.test"), "refused");
	assert_int_equal(given.n, 1);
	assert_int_equal(given_at(0)->connection, open_to("backup.test")->connection);
}

static void what_is_kept_ends_where_it_is_all_that_there_may_be(void **state)
{
	(void)state;
	begin_with_an_idle_reserve();
	reload("transport smtp { host_connection_limit = 1 destination_rate_delay = 10ms }");
	given_at(0)->returned = true;
	post_back(given_at(0));
	close_orderly(open_to("far.test"));
	pass_time(20);
	assert_int_equal(given.n, 0);
	assert_true(was_told_to_end(open_to("backup.test")));
	close_orderly(open_to("backup.test"));
	assert_int_equal(opened_to("far.test"), 1);
}

static void what_waits_for_a_full_host_but_not_long_goes_nowhere_else(void **state)
{
	(void)state;
	begin_with_a_full_host("transport smtp { host_connection_limit = 1 }", 400);
	assert_int_equal(opened_to("backup.test"), 0);
}

static void nothing_overflows_with_a_backup_attempt_delay_of_0(void **state)
{
	(void)state;
	begin_with_a_full_host(
		"transport smtp { host_connection_limit = 1 backup_attempt_delay = 0 }", 1000);
	assert_int_equal(opened_to("backup.test"), 0);
}

/* Its next hop serves, and only our own limit holds up what waits. */
static void what_waits_for_a_full_host_goes_to_no_fallback_relay(void **state)
{
	(void)state;
	begin("transport smtp { host_connection_limit = 1 destination_concurrency_limit = 2 "
	      "fallback_relay = { \"[192.0.2.9]\" } }");
	for (uint64_t id = 1; id <= 11; id++) {
		send_mail(id, "x@a.test");
		if (id > 1)
			continue;
		answer("a.test", "10 far.test 192.0.2.1");
		answer("192.0.2.9", "0 192.0.2.9 192.0.2.9");
		ready(open_to("far.test"), 1);
		given_at(0)->began_us = clock_steady_us();
		pass_time(1000);
		given_at(0)->ended_us = clock_steady_us();
		done(given_at(0), VERDICT_SENT);
	}
	assert_int_equal(opened_to("far.test"), 1);
	assert_int_equal(opened.n, 1);
}

static void what_waits_for_a_full_relay_goes_to_no_second_relay(void **state)
{
	(void)state;
	begin("transport smtp { host_connection_limit = 1 destination_concurrency_limit = 2 } "
	      "route \"*\" { relay = { \"[192.0.2.8]\", \"[192.0.2.9]\" } }");
	for (uint64_t id = 1; id <= 11; id++) {
		send_mail(id, "x@a.test");
		if (id > 1)
			continue;
		answer("192.0.2.8", "0 192.0.2.8 192.0.2.8");
		answer("192.0.2.9", "0 192.0.2.9 192.0.2.9");
		ready(open_at(0), 1);
		given_at(0)->began_us = clock_steady_us();
		pass_time(1000);
		given_at(0)->ended_us = clock_steady_us();
		done(given_at(0), VERDICT_SENT);
	}
	assert_int_equal(opened.n, 1);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_lesser_host_is_tried_when_the_better_is_late_and_no_sooner),
		TEST(all_that_waited_for_the_late_host_goes_to_the_backup),
		TEST(no_further_message_waits_for_a_late_host),
		TEST(a_late_host_is_passed_over_for_other_sites_too),
		TEST(a_late_host_that_is_the_only_one_is_waited_for),
		TEST(each_address_of_the_better_host_is_tried_before_the_backup),
		TEST(a_host_that_serves_is_not_left_for_one_late_connection),
		TEST(the_better_host_is_used_again_when_it_answers_after_all),
		TEST(a_failed_host_is_tried_again_and_no_message_waits_for_it),
		TEST(a_failed_host_that_is_back_gets_the_mail),
		TEST(with_a_backup_attempt_delay_of_0_a_better_host_is_left_only_when_it_has_failed),
		TEST(mail_in_doubt_goes_to_the_backup_that_may_have_it),
		TEST(mail_in_doubt_does_not_wait_for_a_host_that_does_not_answer),
		TEST(one_that_waits_for_a_full_backup_is_told_when_it_has_room),
		TEST(what_would_wait_too_long_for_a_full_host_overflows_to_the_backup),
		TEST(what_is_kept_for_what_overflows_is_for_all_when_the_better_host_is_out),
		TEST(what_is_kept_ends_where_it_is_all_that_there_may_be),
		TEST(what_waits_for_a_full_host_but_not_long_goes_nowhere_else),
		TEST(what_waits_for_a_full_host_goes_to_no_fallback_relay),
		TEST(what_waits_for_a_full_relay_goes_to_no_second_relay),
		TEST(nothing_overflows_with_a_backup_attempt_delay_of_0),
	};
	return RUN(tests);
}
