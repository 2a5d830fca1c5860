/* SPDX-License-Identifier: ISC */
/* Hosts that say nothing: what they may hold, and that nobody else waits for them. */
#include "tests/unit/qmgr/sites.h"

#include "qmgr/dest/conn.h"
#include "qmgr/dest/site_limits.h"

/* Half a second later, nothing was heard of any of them. */
static void all_are_silent(void)
{
	clock_ms += CONNECTION_SILENT_MS;
	for (int i = 0; i < opened.n; i++)
		silent(open_at(i));
}

/* Workers close at once what they are told to close, before it is ready. */
static int close_as_told(void)
{
	int n = 0;
	for (int i = 0; i < opened.n;)
		if (was_told_to_end(open_at(i))) {
			close_orderly(open_at(i));
			i = 0;
			n++;
		} else {
			i++;
		}
	return n;
}

static void thirteen_messages_to_silent_hosts_hold_up_nobody(void **state)
{
	(void)state;
	begin("");
	for (int i = 0; i < 13; i++)
		send_to_site(i);
	assert_int_equal(opened.n, 13);
	all_are_silent();
	send_to_healthy();
	assert_int_equal(opened_to("healthy.test"), 1);
	assert_int_equal(ending.n, 0);
	ready(open_to("healthy.test"), 1);
	assert_int_equal(given.n, 1);
}

static void thirteen_at_one_site_keep_two_connections(void **state)
{
	(void)state;
	begin("transport smtp { initial_destination_concurrency = 20 }");
	for (int i = 0; i < 13; i++)
		send_to_site(1);
	assert_int_equal(opened.n, 13); /* as far as anybody knows it is only far away */
	all_are_silent();
	assert_int_equal(ending.n, 11);
	assert_int_equal(close_as_told(), 11);
	assert_int_equal(connections_of(1), SITE_LIMITS_UNPROVEN);
	for (int i = 0; i < 13; i++)
		send_to_site(1);
	assert_int_equal(connections_of(1), SITE_LIMITS_UNPROVEN);
	struct site *s = site_named("mx1.test");
	assert_int_equal(s->hosts[0].host->failures, 0); /* it has not failed */
}

static void a_site_whose_host_has_answered_before_may_have_more(void **state)
{
	(void)state;
	begin("transport smtp { initial_destination_concurrency = 20 }");
	send_to_site(1);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	close_orderly(open_at(0));
	for (int i = 0; i < 13; i++)
		send_to_site(1);
	all_are_silent();
	assert_int_equal(ending.n, 0);
	assert_int_equal(connections_of(1), 13);
}

/* One of two hosts has gone silent with what is tried there, while the other was out; the operator has all of it forgotten. */
static void a_host_that_has_a_connection_has_answered_whatever_is_forgotten(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@two.test");
	answer("two.test", "10 one.test 10.1.0.1, 10 other.test 192.0.2.9");
	const char *frozen = open_at(0)->host;
	ready(open_at(0), 1);
	struct site *s = q->db.sites;
	struct host heard = {.failures = 1, .retry_ms = clock_ms + 60000};
	for (int i = 0; i < s->nhost; i++)
		if (strcmp(s->hosts[i].name, frozen) != 0)
			host_heard_out(s->hosts[i].host, &heard, "n2", clock_ms);
	send_mail(2, "x@two.test");
	send_mail(3, "x@two.test");
	assert_int_equal(opened_to(frozen), 3);
	all_are_silent();
	unanswered(open_at(1), false);
	unanswered(open_at(2), false);
	assert_int_equal(opened.n, 3);
	site_reset(s, false);
	send_mail(4, "x@two.test");
	assert_int_equal(opened_to(frozen), 3);
	assert_int_equal(opened.n, 4);
}

static void an_answer_ends_the_suspicion(void **state)
{
	(void)state;
	begin("transport smtp { initial_destination_concurrency = 20 }");
	for (int i = 0; i < 13; i++)
		send_to_site(1);
	all_are_silent();
	close_as_told();
	assert_int_equal(connections_of(1), 2);
	ready(open_at(0), 1);
	assert_int_equal(given.n, 1);
	assert_true(connections_of(1) > 2); /* the ready one among them */
}

static void all_are_late(void)
{
	int n = opened.n;
	for (int i = 0; i < n; i++)
		unanswered(open_at(i), true);
}

/* They were never heard of either, and each message has a connection that is tried in vain. */
static void what_is_tried_in_vain_keeps_nobody_from_trying_the_backup(void **state)
{
	(void)state;
	begin("");
	for (int i = 0; i < 5; i++)
		send_mail(++last_id, "x@two.test");
	answer("two.test", "10 best.test 10.1.0.1, 20 backup.test 192.0.2.9");
	all_are_silent();
	close_as_told();
	assert_int_equal(opened.n, SITE_LIMITS_UNPROVEN);
	all_are_late();
	assert_int_equal(opened_to("backup.test"), 5); /* it may only be far away */
	all_are_silent();
	close_as_told();
	assert_int_equal(opened_to("backup.test"), SITE_LIMITS_UNPROVEN);
	assert_int_equal(opened_to("best.test"), SITE_LIMITS_UNPROVEN);
	ready(open_to("backup.test"), 1);
	assert_int_equal(given.n, 1);
}

/* A hundred sites, each with a silent host, hold all connections of the transport. */
static void begin_with_a_hundred_silent(void)
{
	last_id = 0;
	begin("transport smtp { connection_limit = 100 }");
	for (int i = 0; i < 100; i++)
		send_to_site(i);
	assert_int_equal(opened.n, 100);
	all_are_silent();
}

static void a_hundred_silent_sites_delay_a_healthy_one_by_no_more_than_a_second(void **state)
{
	(void)state;
	begin_with_a_hundred_silent();
	int64_t began_ms = clock_ms;
	send_to_healthy();
	for (int i = 0; i < 10 && opened_to("healthy.test") == 0; i++) {
		close_as_told();
		pass_time(50);
	}
	assert_int_equal(opened_to("healthy.test"), 1);
	ready(open_to("healthy.test"), 1);
	assert_int_equal(given_at(0)->id, last_id);
	assert_in_range(clock_ms - began_ms, 0, 1000);
}

static void the_one_that_was_silent_longest_ends_and_its_host_has_failed(void **state)
{
	(void)state;
	begin_with_a_hundred_silent();
	send_to_healthy();
	assert_true(was_told_to_end(open_to("mx0.test")));
	struct site *s = site_named("mx0.test");
	assert_int_equal(s->hosts[0].host->state, HOST_OUT);
	assert_int_equal(s->hosts[0].host->failures, 1);
	assert_non_null(s->last_failure);
	assert_false(was_told_to_end(open_to("mx99.test")));
}

/* As many as are wanted, and as make half of them free; not all. */
static void for_one_message_no_more_end_than_make_room(void **state)
{
	(void)state;
	begin_with_a_hundred_silent();
	send_to_healthy();
	assert_in_range(ending.n, 1, 51);
	for (int i = 0; i < 5; i++) {
		close_as_told();
		pass_time(50);
	}
	assert_int_equal(opened_to("healthy.test"), 1);
	assert_in_range(opened.n, 50, 100);
}

static void healthy_mail_goes_on_while_silent_hosts_get_ever_more(void **state)
{
	(void)state;
	int delivered = 0;
	begin_with_a_hundred_silent();
	for (int i = 0; i < 200; i++) {
		send_to_site(100 + i);
		for (int k = 0; k < opened.n; k++)
			if (strcmp(open_at(k)->host, "healthy.test") != 0 && i % 5 == 0)
				silent(open_at(k));
		if (i % 10 == 0)
			send_mail(++last_id, "x@healthy.test");
		if (questions.n > 0)
			answer("healthy.test", "10 healthy.test 192.0.2.1");
		for (int k = 0; k < opened.n; k++)
			if (strcmp(open_at(k)->host, "healthy.test") == 0 &&
			    !open_at(k)->was_ready) {
				open_at(k)->was_ready = true;
				ready(open_at(k), 1);
			}
		while (given.n > 0) {
			done(given_at(0), VERDICT_SENT);
			delivered++;
		}
		close_as_told();
		pass_time(100);
		if (i % 10 == 9)
			assert_in_range(delivered, i / 10 + 1, i / 10 + 1);
		while (told.n > 0)
			forget(take(&told, 0));
	}
}

static void silent_connections_hold_half_of_a_transports_at_most(void **state)
{
	(void)state;
	last_id = 0;
	begin("transport smtp { connection_limit = 100 }");
	for (int i = 0; i < 50; i++)
		send_to_site(i);
	all_are_silent();
	assert_int_equal(ending.n, 0);
	for (int i = 50; i < 70; i++) {
		send_to_site(i);
		pass_time(1);
	}
	assert_int_equal(ending.n, 1); /* one for the first; those after it are not yet silent */
	for (int i = 0; i < opened.n; i++)
		if (!was_told_to_end(open_at(i)))
			silent(open_at(i));
	send_to_site(70);
	assert_int_equal(opened_to("mx70.test"), 1);
	close_as_told();
	int still = 0;
	for (int i = 0; i < 70; i++)
		still += connections_of(i);
	assert_in_range(still, 1, 50);
}

/* A host that had the hiccups is back within a second or two, however many say nothing. */
static void a_probe_does_not_wait_for_who_is_silent(void **state)
{
	(void)state;
	last_id = 0;
	begin("transport smtp { connection_limit = 100 }");
	for (int i = 0; i < 50; i++)
		send_to_site(i);
	send_to_healthy();
	lose(open_to("healthy.test"), "421 not now");
	all_are_silent();
	assert_int_equal(opened.n, 50);
	pass_time(1000);
	assert_int_equal(opened_to("healthy.test"), 1);
	assert_int_equal(ending.n, 0);
	ready(open_to("healthy.test"), 1);
	assert_int_equal(given_at(0)->id, last_id);
}

/* Of the part that is for probes. */
static void a_probe_takes_the_place_of_the_one_that_was_silent_longest(void **state)
{
	(void)state;
	last_id = 0;
	begin("transport smtp { connection_limit = 100 }");
	for (int i = 0; i < 25; i++) {
		send_to_site(i);
		lose(open_at(0), "421 not now");
	}
	pass_time(1000);
	assert_int_equal(opened.n, 25);
	all_are_silent();
	send_to_healthy();
	lose(open_to("healthy.test"), "421 not now");
	pass_time(1000);
	assert_int_equal(opened_to("healthy.test"), 1);
	assert_int_equal(ending.n, 1);
	assert_true(was_told_to_end(open_at(0)));
	ready(open_to("healthy.test"), 1);
	assert_int_equal(given_at(0)->id, last_id);
}

/* Who was told to close counts until it has. */
static void a_probe_does_so_where_the_transport_has_no_more(void **state)
{
	(void)state;
	last_id = 0;
	begin("transport smtp { connection_limit = 4 }");
	send_to_healthy();
	lose(open_to("healthy.test"), "421 not now");
	for (int i = 0; i < 4; i++)
		send_to_site(i);
	assert_int_equal(opened.n, 4);
	all_are_silent();
	pass_time(1000);
	assert_int_equal(opened_to("healthy.test"), 0);
	for (int i = 0; i < 5 && opened_to("healthy.test") == 0; i++) {
		close_as_told();
		pass_time(50);
	}
	assert_int_equal(opened_to("healthy.test"), 1);
}

static void what_was_heard_of_is_not_silent(void **state)
{
	(void)state;
	begin("transport smtp { connection_limit = 4 }");
	for (int i = 0; i < 4; i++)
		send_to_site(i);
	for (int i = 0; i < 4; i++)
		ready(open_at(i), 1);
	send_to_healthy();
	assert_int_equal(ending.n, 0); /* all carry something */
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(ending.n, 1);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(thirteen_messages_to_silent_hosts_hold_up_nobody),
		TEST(thirteen_at_one_site_keep_two_connections),
		TEST(a_site_whose_host_has_answered_before_may_have_more),
		TEST(a_host_that_has_a_connection_has_answered_whatever_is_forgotten),
		TEST(an_answer_ends_the_suspicion),
		TEST(what_is_tried_in_vain_keeps_nobody_from_trying_the_backup),
		TEST(a_hundred_silent_sites_delay_a_healthy_one_by_no_more_than_a_second),
		TEST(the_one_that_was_silent_longest_ends_and_its_host_has_failed),
		TEST(for_one_message_no_more_end_than_make_room),
		TEST(healthy_mail_goes_on_while_silent_hosts_get_ever_more),
		TEST(silent_connections_hold_half_of_a_transports_at_most),
		TEST(a_probe_does_not_wait_for_who_is_silent),
		TEST(a_probe_takes_the_place_of_the_one_that_was_silent_longest),
		TEST(a_probe_does_so_where_the_transport_has_no_more),
		TEST(what_was_heard_of_is_not_silent),
	};
	return RUN(tests);
}
