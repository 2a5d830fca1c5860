/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/world.h"

#include "qmgr/dest/destdb.h"

static const char two_hosts[] = "10 mx.test 192.0.2.1, 10 other.test 192.0.2.2";

/* As it comes back from the queue: tried before, and in doubt so often at mx.test. */
static struct envelope *doubted(uint64_t id, const char *to, int times)
{
	struct envelope *e = mail(id, "sender@here.test", to);
	e->rounds = 1;
	e->rcpt[0].tries = (uint32_t)times;
	e->rcpt[0].doubts = (uint8_t)times;
	e->rcpt[0].last = verdict_new(VERDICT_IN_DOUBT, 0, "4.4.2", "mx.test[192.0.2.1]:25",
				      "connection lost");
	return e;
}

static struct envelope *kept_after_doubt(uint64_t id)
{
	is_delivered(id, 1, VERDICT_IN_DOUBT);
	return is_kept(id);
}

static void what_is_in_doubt_is_recorded_at_once_and_counted(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	answer("a.test", one_host);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_IN_DOUBT);
	struct envelope *e = kept_after_doubt(1);
	assert_int_equal(e->rcpt[0].doubts, 1);
	assert_false(e->rcpt[0].done);
	arrive(e);
	done(given_at(0), VERDICT_DEFERRED);
	e = is_kept(1);
	assert_int_equal(e->rcpt[0].doubts, 1); /* it stays in doubt what became of the first */
	envelope_free(&e);
}

static void it_is_tried_again_with_nothing_else_on_its_connection(void **state)
{
	(void)state;
	begin("transport smtp { destination_concurrency_limit = 1 "
	      "initial_destination_concurrency = 1 }");
	send_mail(1, "x@a.test");
	answer("a.test", one_host);
	ready(open_at(0), 4);
	arrive(doubted(2, "y@a.test", 1));
	send_mail(3, "z@a.test");
	assert_int_equal(given.n, 1); /* the first is under way */
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(given.n, 1);
	assert_true(given_at(0)->id == 2);
	send_mail(4, "z@a.test");
	assert_int_equal(given.n, 1); /* although there are three places more */
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(given.n, 2); /* as before */
}

static void its_other_recipients_go_without_it(void **state)
{
	(void)state;
	begin("");
	struct envelope *e = doubted(1, "x@a.test", 1);
	envelope_add(e, "y@a.test");
	arrive(e);
	answer("a.test", one_host);
	ready(open_at(0), 4);
	assert_int_equal(given_at(0)->nrcpt, 1);
	assert_string_equal(given_at(0)->rcpt[0].address, "x@a.test");
	assert_int_equal(given.n, 1);
	done(given_at(0), VERDICT_SENT);
	assert_string_equal(given_at(0)->rcpt[0].address, "y@a.test");
}

static void it_goes_to_the_same_host_first(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++) {
		begin("");
		arrive(doubted(1, "x@a.test", 1));
		answer("a.test", two_hosts);
		assert_int_equal(opened.n, 1);
		assert_string_equal(open_at(0)->host, "mx.test");
		finish(NULL);
	}
	begin("");
}

static void who_has_left_it_in_doubt_twice_leaves_it_to_another(void **state)
{
	static const char *const hosts[] = {
		"10 mx.test 192.0.2.1, 10 other.test 192.0.2.2, 20 last.test 192.0.2.3",
		"10 mx.test 192.0.2.1, 20 other.test 192.0.2.2"};
	(void)state;
	for (int times = 1; times <= 4; times++)
		for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
			bool another = times % 2 == 0;
			begin("queue { in_doubt_retries = 9 }");
			arrive(doubted(1, "x@a.test", times));
			answer("a.test", hosts[i]);
			assert_int_equal(opened.n, 1);
			assert_string_equal(open_at(0)->host, another ? "other.test" : "mx.test");
			ready(open_at(0), 1);
			assert_int_equal(given_at(0)->id, 1);
			finish(NULL);
		}
	begin("");
}

static void but_not_to_another_next_hop(void **state)
{
	(void)state;
	begin("transport smtp { fallback_relay = { \"[192.0.2.9]\" } }");
	arrive(doubted(1, "x@a.test", 2));
	answer("a.test", "10 mx.test 192.0.2.1");
	answer("192.0.2.9", "0 192.0.2.9 192.0.2.9");
	assert_int_equal(opened.n, 1);
	assert_string_equal(open_at(0)->host, "mx.test");
}

static void what_another_has_put_off_stays_there(void **state)
{
	(void)state;
	begin("");
	struct envelope *e = doubted(1, "x@a.test", 2);
	verdict_unref(e->rcpt[0].last);
	e->rcpt[0].last =
		verdict_new(VERDICT_DEFERRED, 451, "4.3.0", "other.test[192.0.2.2]:25", "later");
	arrive(e);
	answer("a.test", "10 mx.test 192.0.2.1, 20 other.test 192.0.2.2");
	assert_string_equal(open_at(0)->host, "other.test");
}

static void a_connection_to_another_host_is_not_taken_for_it(void **state)
{
	(void)state;
	begin("");
	struct envelope *e = doubted(1, "x@a.test", 1);
	verdict_unref(e->rcpt[0].last);
	e->rcpt[0].last = verdict_new(VERDICT_IN_DOUBT, 0, NULL, "other.test[192.0.2.2]:25", "x");
	send_mail(2, "x@a.test");
	answer("a.test", "10 mx.test 192.0.2.1");
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	pass_time(6000); /* the next hop is asked for anew */
	arrive(e);
	answer("a.test", two_hosts);
	assert_int_equal(given.n, 0);
	ready(open_to("other.test"), 1);
	assert_true(given_at(0)->id == 1);
	assert_true(given_at(0)->connection == open_to("other.test")->connection);
}

static void while_that_host_is_out_it_goes_to_another(void **state)
{
	(void)state;
	begin("");
	arrive(doubted(1, "x@a.test", 1));
	answer("a.test", two_hosts);
	lose(open_to("mx.test"), "refused");
	ready(open_to("other.test"), 1);
	assert_true(given_at(0)->id == 1);
}

/* What a host answers before it hangs up is known with the first that is in doubt by that, before its connection is closed. */
static void where_a_host_hangs_up_it_goes_to_no_connection_that_may_be_next(void **state)
{
	(void)state;
	begin("transport smtp { destination_concurrency_limit = 3 initial_destination_concurrency "
	      "= 2 }");
	for (uint64_t i = 1; i <= 3; i++)
		send_mail(i, "x@a.test");
	answer("a.test", one_host);
	ready(open_at(0), 1);
	ready(open_at(1), 1);
	assert_int_equal(given.n, 2);
	uint64_t first = given_at(0)->connection;
	done(given_at(0), VERDICT_SENT);
	assert_true(given_at(1)->connection == first); /* the third message */
	done(given_at(0), VERDICT_SENT);	       /* the other is idle, and has had one */
	assert_int_equal(given.n, 1);
	given_at(0)->hung_up = true;
	done(given_at(0), VERDICT_IN_DOUBT);
	assert_int_equal(given.n, 0);
	ready(open_at(opened.n - 1), 1);
	assert_int_equal(given.n, 1);
}

static void after_the_last_retry_it_is_returned_with_word_that_it_may_have_arrived(void **state)
{
	(void)state;
	begin("queue { in_doubt_retries = 2 }");
	arrive(doubted(1, "x@a.test", 1));
	answer("a.test", one_host);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_IN_DOUBT);
	arrive(kept_after_doubt(1)); /* the second retry */
	done(given_at(0), VERDICT_IN_DOUBT);
	is_delivered(1, 1, VERDICT_IN_DOUBT);
	struct spool_store *report = next_told(SPOOL_STORE);
	char text[8192] = "";
	assert_true(content_read(report->content, 0, text, sizeof text - 1) > 0);
	assert_non_null(strstr(text, "may have arrived"));
	assert_non_null(strstr(text, "Status: 5.4.2"));
	stored(report, true);
	is_delivered(1, 1, VERDICT_FAILED);
	is_released(1);
}

static void it_may_count_as_delivered_instead(void **state)
{
	(void)state;
	begin("queue { in_doubt_retries = 0 in_doubt_action = delivered }");
	send_mail(1, "x@a.test");
	answer("a.test", one_host);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_IN_DOUBT);
	struct spool_delivered *d = next_told(SPOOL_DELIVERED);
	assert_int_equal(d->n, 2); /* both, in this order */
	assert_int_equal(d->of[0].verdict->class, VERDICT_IN_DOUBT);
	assert_int_equal(d->of[1].verdict->class, VERDICT_SENT);
	forget(d);
	is_released(1);
}

static void a_bounce_for_its_age_says_that_it_may_have_arrived(void **state)
{
	(void)state;
	begin("queue { maximal_queue_lifetime = 1s }");
	arrive(doubted(1, "x@a.test", 1));
	answer("a.test", one_host);
	ready(open_at(0), 1);
	pass_time(2000);
	done(given_at(0), VERDICT_DEFERRED);
	struct spool_store *report = next_told(SPOOL_STORE);
	char text[8192] = "";
	assert_true(content_read(report->content, 0, text, sizeof text - 1) > 0);
	assert_non_null(strstr(text, "may have arrived"));
	put(&told, &report->note);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_in_doubt_is_recorded_at_once_and_counted),
		TEST(it_is_tried_again_with_nothing_else_on_its_connection),
		TEST(its_other_recipients_go_without_it),
		TEST(it_goes_to_the_same_host_first),
		TEST(who_has_left_it_in_doubt_twice_leaves_it_to_another),
		TEST(but_not_to_another_next_hop),
		TEST(what_another_has_put_off_stays_there),
		TEST(a_connection_to_another_host_is_not_taken_for_it),
		TEST(while_that_host_is_out_it_goes_to_another),
		TEST(where_a_host_hangs_up_it_goes_to_no_connection_that_may_be_next),
		TEST(after_the_last_retry_it_is_returned_with_word_that_it_may_have_arrived),
		TEST(it_may_count_as_delivered_instead),
		TEST(a_bounce_for_its_age_says_that_it_may_have_arrived),
	};
	return RUN(tests);
}
