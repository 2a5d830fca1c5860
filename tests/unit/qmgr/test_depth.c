/* SPDX-License-Identifier: ISC */
/* How many messages a host gets before it has answered, and in which mode. */
#include "tests/unit/qmgr/world.h"

static void ready_for(struct connection_open *o, int depth, int depth_most)
{
	struct connection_ready *r = mem_zalloc(sizeof *r);
	r->note.type = CONNECTION_READY;
	r->connection = o->connection;
	r->owner = o->owner;
	r->depth = depth;
	r->depth_most = depth_most;
	o->was_ready = true;
	post(&r->note);
	settle();
}

static void begin_one_host(int messages, const char *more)
{
	char text[400];
	snprintf(text, sizeof text, "transport \"smtp\" { host_connection_limit = 1 %s }", more);
	begin(text);
	for (int i = 1; i <= messages; i++)
		send_mail((uint64_t)i, "x@a.test");
	answer("a.test", "10 mx.test 192.0.2.1");
}

static void waste(struct delivery *d, enum verdict_class class)
{
	d->wasted = true;
	done(d, class);
}

static void depth_grows_by_one_with_each_message_that_arrives(void **state)
{
	(void)state;
	begin_one_host(100, "");
	ready_for(open_at(0), 1, 6);
	for (int depth = 1; depth <= 6; depth++) {
		assert_int_equal(given.n, depth);
		done(given_at(0), VERDICT_SENT);
	}
	assert_int_equal(given.n, 6);
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(given.n, 6);
}

static void nothing_goes_ahead_before_the_host_has_earned_it(void **state)
{
	(void)state;
	begin_one_host(100, "");
	ready_for(open_at(0), 2, 16);
	assert_int_equal(given.n, 2);
	assert_false(given_at(0)->ahead || given_at(1)->ahead);
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(given.n, 2);
	assert_true(given_at(1)->ahead);
}

static void what_is_larger_than_the_pipeline_does_not_go_ahead(void **state)
{
	(void)state;
	begin_one_host(100, "pipeline_bytes = 10");
	ready_for(open_at(0), 2, 16);
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(given.n, 1);
	assert_false(given_at(0)->ahead);
}

static void refusals_of_content_leave_the_depth_as_it_is(void **state)
{
	(void)state;
	begin_one_host(100, "");
	ready_for(open_at(0), 1, 6);
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(given.n, 2);
	done(given_at(0), VERDICT_DEFERRED);
	assert_int_equal(given.n, 2);
}

static void content_sent_for_nothing_brings_the_depth_down_to_one(void **state)
{
	(void)state;
	begin_one_host(100, "");
	ready_for(open_at(0), 1, 6);
	for (int i = 0; i < 5; i++)
		done(given_at(0), VERDICT_SENT);
	assert_int_equal(given.n, 6);
	for (int left = 5; left > 0; left--) {
		waste(given_at(0), VERDICT_FAILED);
		assert_int_equal(given.n, left);
	}
	waste(given_at(0), VERDICT_FAILED);
	assert_int_equal(given.n, 1);
	assert_false(given_at(0)->ahead);
}

static void a_connection_that_breaks_brings_the_depth_down_to_one(void **state)
{
	(void)state;
	begin_one_host(100, "");
	ready_for(open_at(0), 1, 6);
	for (int i = 0; i < 3; i++)
		done(given_at(0), VERDICT_SENT);
	while (given.n > 0) {
		given_at(0)->returned = true;
		post_back(given_at(0));
	}
	lose(open_at(0), "reset");
	ready_for(open_at(0), 1, 6);
	assert_int_equal(given.n, 1);
}

static void depth_is_kept_for_the_next_connection(void **state)
{
	(void)state;
	begin_one_host(100, "connection_max_messages = 3");
	ready_for(open_at(0), 1, 6);
	for (int i = 0; i < 3; i++)
		done(given_at(0), VERDICT_SENT);
	close_orderly(open_at(0));
	ready_for(open_at(0), 1, 6);
	assert_int_equal(given.n, 3);
}

static void a_host_that_lost_count_gets_a_simpler_mode_and_no_blame(void **state)
{
	static const enum connection_mode modes[] = {CONNECTION_FULL, CONNECTION_NO_CHUNKING,
						     CONNECTION_NO_CHUNKING | CONNECTION_LOCKSTEP};
	(void)state;
	begin_one_host(2, "");
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(opened.n, 1);
		assert_int_equal(open_at(0)->mode, modes[i]);
		ready_for(open_at(0), 1, 1);
		if (i == 2)
			break;
		given_at(0)->returned = true;
		post_back(given_at(0));
		open_at(0)->confused = true;
		open_at(0)->mode = modes[i + 1];
		lose(open_at(0), "out of step");
	}
	done(given_at(0), VERDICT_SENT);
	done(given_at(0), VERDICT_SENT);
	close_orderly(open_at(0));
	pass_time(25 * 3600 * 1000);
	send_mail(9, "x@a.test");
	answer("a.test", "10 mx.test 192.0.2.1");
	assert_int_equal(open_at(0)->mode, CONNECTION_FULL);
}

static void what_a_delivery_has_shown_holds_from_the_next_connection_on(void **state)
{
	(void)state;
	begin_one_host(4, "connection_max_messages = 3");
	ready_for(open_at(0), 1, 1);
	given_at(0)->mode = CONNECTION_APART;
	given_at(0)->messages_most = 2;
	for (int i = 0; i < 3; i++)
		done(given_at(0), VERDICT_SENT);
	close_orderly(open_at(0));
	assert_int_equal(open_at(0)->mode, CONNECTION_APART);
	assert_int_equal(open_at(0)->messages_most, 2);
}

static void a_small_hello_is_for_the_next_connections_of_a_day(void **state)
{
	(void)state;
	begin_one_host(2, "connection_max_messages = 1");
	struct connection_ready *r = mem_zalloc(sizeof *r);
	r->note.type = CONNECTION_READY;
	r->connection = open_at(0)->connection;
	r->owner = open_at(0)->owner;
	r->depth = r->depth_most = 1;
	r->choked = verdict_new(VERDICT_DEFERRED, 0, "4.7.5", "mx", "no answer");
	open_at(0)->was_ready = true;
	post(&r->note);
	settle();
	done(given_at(0), VERDICT_SENT);
	close_orderly(open_at(0));
	assert_int_equal(open_at(0)->mode, CONNECTION_SMALL_HELLO);
	ready_for(open_at(0), 1, 1);
	done(given_at(0), VERDICT_SENT);
	close_orderly(open_at(0));
	pass_time(25 * 3600 * 1000);
	send_mail(9, "x@a.test");
	answer("a.test", "10 mx.test 192.0.2.1");
	assert_int_equal(open_at(0)->mode, CONNECTION_FULL);
}

static void a_small_hello_is_remembered_of_one_that_was_never_ready(void **state)
{
	(void)state;
	begin_one_host(1, "");
	open_at(0)->choked = verdict_new(VERDICT_DEFERRED, 0, "4.7.5", "mx", "no answer");
	lose(open_at(0), "its certificate is no good");
	pass_time(2000);
	assert_int_equal(open_at(0)->mode, CONNECTION_SMALL_HELLO);
}

static void a_connection_is_given_no_more_than_it_says(void **state)
{
	(void)state;
	begin_one_host(5, "connection_max_messages = 4");
	struct connection_ready *r = mem_zalloc(sizeof *r);
	r->note.type = CONNECTION_READY;
	r->connection = open_at(0)->connection;
	r->owner = open_at(0)->owner;
	r->depth = r->depth_most = 1;
	r->messages_most = 2;
	open_at(0)->was_ready = true;
	post(&r->note);
	settle();
	done(given_at(0), VERDICT_SENT);
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(given.n, 0);
	close_orderly(open_at(0));
	assert_int_equal(opened.n, 1);
}

int main(void)
{
#define T(test) cmocka_unit_test_teardown(test, finish)
	const struct CMUnitTest tests[] = {
		T(depth_grows_by_one_with_each_message_that_arrives),
		T(what_a_delivery_has_shown_holds_from_the_next_connection_on),
		T(a_small_hello_is_for_the_next_connections_of_a_day),
		T(a_small_hello_is_remembered_of_one_that_was_never_ready),
		T(a_connection_is_given_no_more_than_it_says),
		T(nothing_goes_ahead_before_the_host_has_earned_it),
		T(what_is_larger_than_the_pipeline_does_not_go_ahead),
		T(refusals_of_content_leave_the_depth_as_it_is),
		T(content_sent_for_nothing_brings_the_depth_down_to_one),
		T(a_connection_that_breaks_brings_the_depth_down_to_one),
		T(depth_is_kept_for_the_next_connection),
		T(a_host_that_lost_count_gets_a_simpler_mode_and_no_blame),
	};
	return RUN(tests);
}
