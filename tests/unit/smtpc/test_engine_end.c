/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpc/script.h"

/* One message with two recipients, as far as its group of commands. */
static void begin_two(void)
{
	greet(PIPELINED);
	give(mail("x\r\n", TO("a@test", "b@test")));
	sent();
}

static void a_421_returns_what_was_not_decided(void **state)
{
	(void)state;
	begin_two();
	give(mail("y\r\n", TO("c@test")));
	says("250 ok\r\n250 ok\r\n421 4.3.2 going down\r\n");
	assert_returned(back());
	assert_returned(back());
	assert_closed(421, "4.3.2");
}

static void a_421_leaves_refusals_as_they_are(void **state)
{
	(void)state;
	begin_two();
	says("250 ok\r\n550 no\r\n421 bye\r\n");
	const struct delivery *d = back();
	assert_verdict(d, 0, VERDICT_FAILED, 550);
	assert_verdict(d, 1, VERDICT_DEFERRED, 421);
}

static void ended_by(const char *reply, uint32_t behind, bool told)
{
	begin_two();
	says("250 ok\r\n250 ok\r\n");
	if (reply)
		says(reply);
	else
		engine_lost(&engine, "connection closed");
	assert_returned(back());
	assert_int_equal(taken->rcpt_taken, behind);
	assert_int_equal(taken->rcpt_told, told);
}

static void an_end_at_a_recipient_says_behind_how_many(void **state)
{
	static const struct {
		const char *reply;
		bool told;
	} ends[] = {{"421 4.7.0 not now\r\n", false},
		    {"421 4.5.3 not so many\r\n", true},
		    {"421 Too many recipients\r\n", true},
		    {"421 4.7.0 too many recipients today\r\n", false},
		    {NULL, false}};
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		ended_by(ends[i].reply, 1, ends[i].told);
		tear_down(state);
		set_up(state);
	}
}

static void an_end_anywhere_else_says_nothing_of_recipients(void **state)
{
	begin_two();
	says("250 ok\r\n421 4.5.3 too many\r\n");
	assert_returned(back());
	assert_int_equal(taken->rcpt_taken, 0);
	assert_false(taken->rcpt_told);
	tear_down(state);
	set_up(state);
	begin_two();
	says("250 ok\r\n250 ok\r\n250 ok\r\n");
	engine_lost(&engine, "connection closed");
	assert_returned(back());
	assert_int_equal(taken->rcpt_taken, 0);
	tear_down(state);
	set_up(state);
	begin_two();
	says("250 ok\r\n250 ok\r\n");
	engine_left(&engine, "another wants it");
	assert_returned(back());
	assert_int_equal(taken->rcpt_taken, 0);
}

static void a_connection_lost_at_a_recipient_leaves_those_that_may_go_without_it(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(mail("x\r\n", TO("a@test", "b@test", "c@test")));
	says("250 ok\r\n550 no\r\n250 ok\r\n");
	engine_lost(&engine, "connection closed");
	const struct delivery *d = back();
	assert_verdict(d, 0, VERDICT_FAILED, 550);
	assert_null(d->rcpt[1].verdict);
	assert_null(d->rcpt[2].verdict);
	assert_int_equal(d->rcpt_taken, 1);
}

static void a_421_after_the_dot_is_its_verdict(void **state)
{
	(void)state;
	begin_two();
	give(mail("y\r\n", TO("c@test")));
	says("250 ok\r\n250 ok\r\n550 no\r\n354 go\r\n");
	sent();
	says("421 4.3.2 bye\r\n");
	const struct delivery *d = back();
	assert_verdict(d, 0, VERDICT_DEFERRED, 421);
	assert_verdict(d, 1, VERDICT_FAILED, 550);
	assert_returned(back());
	assert_closed(421, "4.3.2");
}

static void a_connection_lost_before_the_dot_returns_the_message(void **state)
{
	(void)state;
	begin_two();
	says("250 ok\r\n250 ok\r\n");
	engine_lost(&engine, "connection closed");
	assert_returned(back());
	assert_closed(0, "4.4.2");
}

static void a_connection_lost_before_the_dot_left_returns_the_message(void **state)
{
	(void)state;
	begin_two();
	says("250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n");
	engine_lost(&engine, "connection reset");
	assert_returned(back());
}

static void a_connection_lost_after_the_dot_leaves_doubt(void **state)
{
	(void)state;
	begin_two();
	give(mail("y\r\n", TO("c@test")));
	says("250 ok\r\n250 ok\r\n550 no\r\n354 go\r\n");
	sent();
	engine_lost(&engine, "connection closed");
	const struct delivery *d = back();
	assert_verdict(d, 0, VERDICT_IN_DOUBT, 0);
	assert_verdict(d, 1, VERDICT_FAILED, 550);
	assert_returned(back());
	assert_closed(0, "4.4.2");
}

static void half_an_answer_after_the_dot_leaves_doubt(void **state)
{
	(void)state;
	begin_two();
	says("250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n");
	sent();
	says("250 o");
	engine_expired(&engine);
	assert_verdict(back(), 0, VERDICT_IN_DOUBT, 0);
}

static void garbage_after_the_dot_is_a_deferral(void **state)
{
	(void)state;
	begin_two();
	says("250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n");
	sent();
	says("what\r\n");
	assert_verdict(back(), 0, VERDICT_DEFERRED, 0);
	assert_string_equal(taken->rcpt[0].verdict->dsn, "4.5.0");
}

/* Else it would be sent again for as long as it may wait, and taken each time. */
static void consent_after_the_dot_that_ends_in_garbage_leaves_doubt(void **state)
{
	static const char *const odd[] = {"250 taken\rquite\r\n", "250-taken\r\n550 or not\r\n",
					  "250-taken\r\nand so on\r\n"};
	(void)state;
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		begin_two();
		says("250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n");
		sent();
		says(odd[i]);
		assert_verdict(back(), 0, VERDICT_IN_DOUBT, 0);
		tear_down(NULL);
		set_up(NULL);
	}
}

static void refusal_after_the_dot_that_ends_in_garbage_is_a_deferral(void **state)
{
	(void)state;
	begin_two();
	says("250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n");
	sent();
	says("550 no\rnever\r\n");
	assert_verdict(back(), 0, VERDICT_DEFERRED, 0);
}

static void a_refused_mail_counts_though_the_host_hangs_up(void **state)
{
	(void)state;
	begin_two();
	says("550 5.7.1 go away\r\n");
	engine_lost(&engine, "connection closed");
	const struct delivery *d = back();
	assert_verdict(d, 0, VERDICT_FAILED, 550);
	assert_verdict(d, 1, VERDICT_FAILED, 550);
}

static void a_refused_recipient_counts_though_the_host_hangs_up(void **state)
{
	(void)state;
	begin_two();
	says("250 ok\r\n554 5.7.1 no\r\n");
	engine_lost(&engine, "connection closed");
	const struct delivery *d = back();
	assert_verdict(d, 0, VERDICT_FAILED, 554);
	assert_verdict(d, 1, VERDICT_DEFERRED, 0);
}

static void a_host_out_of_step_is_closed_and_asked_again_step_by_step(void **state)
{
	static const char *const odd[] = {
		"354 go\r\n",
		"220 mx\r\n",
		"250 ok\r\n354 go\r\n",
		"250 ok\r\n221 bye\r\n",
		"250 ok\r\n250 ok\r\n250 ok\r\n250 ok\r\n",
		"250 ok\r\n250 ok\r\n250 ok\r\n220 ok\r\n",
		"250 ok\r\n250-a\r\n251 b\r\n",
	};
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		begin_two();
		says(odd[i]);
		assert_returned(back());
		assert_closed(0, "4.5.0");
		assert_true(engine.confused);
		assert_int_equal(engine.mode, CONNECTION_LOCKSTEP);
		tear_down(state);
		set_up(state);
	}
}

static void what_was_said_before_a_host_is_out_of_step_does_not_count(void **state)
{
	(void)state;
	begin_two();
	says("250 ok\r\n550 no\r\n250 ok\r\n250 ok\r\n");
	assert_returned(back());
}

static void step_by_step_a_host_out_of_step_is_a_deferral(void **state)
{
	(void)state;
	tear_down(state);
	mode = CONNECTION_NO_CHUNKING | CONNECTION_LOCKSTEP;
	open_with(TRANSPORT_TLS_NONE);
	greet(CHUNKED);
	give(mail("x\r\n", TO("a@test")));
	hears("MAIL FROM:<s@test>\r\n");
	says("354 go\r\n");
	assert_verdict(back(), 0, VERDICT_DEFERRED, 0);
	assert_closed(0, "4.5.0");
	assert_false(engine.confused);
}

static void an_answer_before_the_content_is_a_lie(void **state)
{
	(void)state;
	begin_two();
	says("250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n250 kept\r\n");
	assert_returned(back());
	assert_closed(0, "4.5.0");
}

static void an_answer_too_many_does_not_undo_a_delivery(void **state)
{
	(void)state;
	begin_two();
	says("250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n");
	sent();
	says("250 kept\r\n250 and again\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_closed_orderly();
}

static void stopping_brings_everything_back_as_it_stands(void **state)
{
	(void)state;
	begin_two();
	give(mail("y\r\n", TO("c@test")));
	says("250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n");
	sent();
	engine_drop(&engine);
	assert_verdict(back(), 0, VERDICT_IN_DOUBT, 0);
	assert_returned(back());
	assert_closed_orderly();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_421_returns_what_was_not_decided),
		T(a_421_leaves_refusals_as_they_are),
		T(an_end_at_a_recipient_says_behind_how_many),
		T(an_end_anywhere_else_says_nothing_of_recipients),
		T(a_connection_lost_at_a_recipient_leaves_those_that_may_go_without_it),
		T(a_421_after_the_dot_is_its_verdict),
		T(a_connection_lost_before_the_dot_returns_the_message),
		T(a_connection_lost_before_the_dot_left_returns_the_message),
		T(a_connection_lost_after_the_dot_leaves_doubt),
		T(half_an_answer_after_the_dot_leaves_doubt),
		T(garbage_after_the_dot_is_a_deferral),
		T(consent_after_the_dot_that_ends_in_garbage_leaves_doubt),
		T(refusal_after_the_dot_that_ends_in_garbage_is_a_deferral),
		T(a_refused_mail_counts_though_the_host_hangs_up),
		T(a_refused_recipient_counts_though_the_host_hangs_up),
		T(a_host_out_of_step_is_closed_and_asked_again_step_by_step),
		T(what_was_said_before_a_host_is_out_of_step_does_not_count),
		T(step_by_step_a_host_out_of_step_is_a_deferral),
		T(an_answer_before_the_content_is_a_lie),
		T(an_answer_too_many_does_not_undo_a_delivery),
		T(stopping_brings_everything_back_as_it_stands),
	};
	return RUN_TWICE(tests);
}
