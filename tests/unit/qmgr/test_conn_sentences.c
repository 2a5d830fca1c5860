/* SPDX-License-Identifier: ISC */
/* FINCH 2007, sentence by sentence: which connection, and whether it may be another. What other files
 * here test is not tested again. */
#include "tests/unit/qmgr/world.h"

/* So many connections to one host, each ready and idle, in the order of the box. */
static void begin_idle(const char *text, int n, int depth)
{
	begin(text);
	for (int i = 0; i < n; i++)
		send_mail((uint64_t)(i + 1), "x@a.test");
	answer("a.test", "10 mx.test 192.0.2.1");
	assert_int_equal(opened.n, n);
	for (int i = 0; i < n; i++)
		ready(open_at(i), depth);
	while (given.n > 0)
		done(given_at(0), VERDICT_SENT);
	while (told.n > 0)
		forget(take(&told, 0));
}

static int carried_of(uint64_t id)
{
	int n = 0;
	for (int i = 0; i < given.n; i++)
		n += given_at(i)->id == id;
	return n;
}

static bool carries(const struct connection_open *o, uint64_t id)
{
	return delivery_of_mail(id)->connection == o->connection;
}

/* "traverse it from most recent to least recent": by the time at which they were begun, not by what
 * was done on them last. */
static void of_idle_connections_the_newest_is_used(void **state)
{
	(void)state;
	begin_idle("", 3, 1);
	for (uint64_t id = 11; id <= 13; id++)
		send_mail(id, "x@a.test");
	assert_true(carries(open_at(2), 11) && carries(open_at(1), 12) && carries(open_at(0), 13));
	done(delivery_of_mail(11), VERDICT_SENT); /* the oldest falls idle last */
	done(delivery_of_mail(12), VERDICT_SENT);
	done(delivery_of_mail(13), VERDICT_SENT);
	send_mail(14, "x@a.test");
	assert_true(carries(open_at(2), 14));
}

/* "when our load goes down older connections will become idle and eventually be closed" */
static void when_load_drops_the_older_connections_fall_idle(void **state)
{
	(void)state;
	begin_idle("", 4, 1);
	for (uint64_t id = 11; id < 60; id += 2) {
		send_mail(id, "x@a.test");
		send_mail(id + 1, "x@a.test");
		for (int i = 0; i < 2; i++) {
			assert_true(given_at(0)->connection == open_at(2)->connection ||
				    given_at(0)->connection == open_at(3)->connection);
			done(given_at(0), VERDICT_SENT);
		}
	}
}

/* "If we find one that has less than the backlog threshold then the first we find is the worker" */
static void of_busy_connections_the_newest_with_a_place_is_used(void **state)
{
	(void)state;
	begin_idle("transport smtp { destination_concurrency_limit = 2 "
		   "initial_destination_concurrency = 2 }",
		   2, 3);
	for (uint64_t id = 11; id <= 16; id++)
		send_mail(id, "x@a.test");
	assert_int_equal(given.n, 6); /* all places are taken */
	done(delivery_of_mail(13), VERDICT_SENT);
	done(delivery_of_mail(11), VERDICT_SENT);
	for (int i = 0; i < 3; i++) /* the older frees a place last */
		if (given_at(i)->connection == open_at(0)->connection) {
			done(given_at(i), VERDICT_SENT);
			break;
		}
	send_mail(17, "x@a.test");
	assert_true(carries(open_at(1), 17));
}

/* "If there are destinations on its idle list the job should use the most recent one" */
static void an_idle_connection_is_used_before_a_new_one_is_opened(void **state)
{
	(void)state;
	begin_idle("", 1, 1);
	send_mail(11, "x@a.test");
	assert_true(carries(open_at(0), 11));
	assert_int_equal(opened.n, 1);
	send_mail(12, "x@a.test");
	assert_int_equal(opened.n, 2);
}

/* "This will become a new connection which will attract new jobs" */
static void a_new_connection_attracts_new_jobs(void **state)
{
	(void)state;
	begin_idle("", 1, 4);
	for (uint64_t id = 11; id <= 15; id++)
		send_mail(id, "x@a.test");
	assert_int_equal(opened.n, 2); /* the first is full */
	ready(open_at(1), 4);
	done(delivery_of_mail(11), VERDICT_SENT);
	send_mail(16, "x@a.test");
	assert_true(carries(open_at(1), 15) && carries(open_at(1), 16));
}

/* "so that big envelopes can get a free ride off smaller ones", "their concurrency can be higher
 * than the configured maximum" */
static void a_message_that_may_not_have_another_worker_rides_on_others(void **state)
{
	(void)state;
	begin("transport smtp { destination_recipient_limit = 1 }\n"
	      "queue { max_message_concurrency = 1 scale_max_concurrency = 0 }");
	struct envelope *big = mail(1, "", NULL);
	for (int i = 0; i < 9; i++) {
		char to[32];
		snprintf(to, sizeof to, "x%d@a.test", i);
		envelope_add(big, to);
	}
	arrive(big);
	answer("a.test", "10 mx.test 192.0.2.1");
	assert_int_equal(opened.n, 1); /* its own */
	send_mail(2, "x@a.test");
	assert_int_equal(opened.n, 2); /* the other's */
	ready(open_at(0), 1);
	ready(open_at(1), 1);
	done(delivery_of_mail(2), VERDICT_SENT);
	assert_int_equal(carried_of(1), 2);
	assert_int_equal(opened.n, 2);
}

/* "If there are no active connections then this job must wait to be rescheduled when a worker
 * becomes free" */
static void without_an_active_connection_it_waits_for_a_worker(void **state)
{
	(void)state;
	begin("queue { max_message_concurrency = 1 scale_max_concurrency = 0 }");
	struct envelope *e = mail(1, "", "x@a.test");
	envelope_add(e, "x@b.test");
	arrive(e);
	answer("a.test", "10 a.test 192.0.2.1");
	answer("b.test", "10 b.test 192.0.2.2");
	assert_int_equal(opened.n, 1);
	ready(open_to("a.test"), 1);
	assert_int_equal(opened_to("b.test"), 0);
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(opened_to("b.test"), 1);
}

/* Mail to sixty domains, each with a host of its own. */
static void send_to_sixty(uint64_t id)
{
	struct envelope *e = mail(id, "", NULL);
	for (int i = 0; i < 60; i++) {
		char to[32];
		snprintf(to, sizeof to, "x@d%d.test", i);
		envelope_add(e, to);
	}
	arrive(e);
	for (int i = 0; questions.n > 0 && i < 60; i++) {
		char name[32], hosts[64];
		snprintf(name, sizeof name, "d%d.test", i);
		snprintf(hosts, sizeof hosts, "10 mx%d.test 192.0.2.%d", i, i + 1);
		answer(name, hosts);
	}
}

/* "a message can use about 91% of an otherwise-idle system", "message 2 will slurp up the remaining
 * 9%", "as jobs in message 1 complete message 2 will take over": of 44 connections 40 and 4, then
 * more and more. */
static void a_second_message_takes_over_connections_of_the_first(void **state)
{
	(void)state;
	begin("transport smtp { connection_limit = 44 }\nqueue { max_message_concurrency = 4 }");
	send_to_sixty(1);
	ready_all();
	assert_int_equal(carried_of(1), 40);
	send_to_sixty(2);
	ready_all();
	assert_int_equal(carried_of(2), 4);
	int before = carried_of(2);
	for (int i = 0; i < 15; i++) {
		struct delivery *d = delivery_of_mail(1);
		d->returned = false;
		done(d, VERDICT_SENT);
		ready_all();
		assert_true(carried_of(2) >= before);
		before = carried_of(2);
	}
	assert_in_range(carried_of(2), 8, 22);
}

/* "an ageing mechanism": by number of messages here; by time and by idleness it is the worker's,
 * tests/unit/smtpc/test_worker.c. */
static void a_connection_is_given_no_more_than_it_may_carry(void **state)
{
	(void)state;
	begin("transport smtp { connection_max_messages = 2 destination_concurrency_limit = 1 "
	      "initial_destination_concurrency = 1 }");
	for (uint64_t id = 1; id <= 3; id++)
		send_mail(id, "x@a.test");
	answer("a.test", "10 mx.test 192.0.2.1");
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(given.n, 0);
	close_orderly(open_at(0));
	ready(open_at(0), 1);
	assert_int_equal(given_at(0)->id, 3);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(of_idle_connections_the_newest_is_used),
		TEST(when_load_drops_the_older_connections_fall_idle),
		TEST(of_busy_connections_the_newest_with_a_place_is_used),
		TEST(an_idle_connection_is_used_before_a_new_one_is_opened),
		TEST(a_new_connection_attracts_new_jobs),
		TEST(a_message_that_may_not_have_another_worker_rides_on_others),
		TEST(without_an_active_connection_it_waits_for_a_worker),
		TEST(a_second_message_takes_over_connections_of_the_first),
		TEST(a_connection_is_given_no_more_than_it_may_carry),
	};
	return RUN(tests);
}
