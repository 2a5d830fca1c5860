/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpc/script.h"

static void a_host_that_offers_nothing_is_asked_step_by_step(void **state)
{
	(void)state;
	greet(PLAIN);
	assert_int_equal(engine_depth(&engine), 1);
	give(mail("x\r\n", TO("a@test", "b@test")));
	hears("MAIL FROM:<s@test>\r\n");
	says("250 ok\r\n");
	hears("RCPT TO:<a@test>\r\n");
	says("250 ok\r\n");
	hears("RCPT TO:<b@test>\r\n");
	says("251 ok\r\n");
	hears("DATA\r\n");
	says("354 go\r\n");
	hears("x\r\n.\r\n");
	assert_nothing_back();
	says("250 2.6.0 kept as 7\r\n");
	const struct delivery *d = back();
	assert_verdict(d, 0, VERDICT_SENT, 250);
	assert_verdict(d, 1, VERDICT_SENT, 250);
	assert_string_equal(d->rcpt[0].verdict->text, "2.6.0 kept as 7");
	assert_string_equal(d->rcpt[0].verdict->dsn, "2.6.0");
	assert_string_equal(d->rcpt[0].verdict->host, "mx.test[192.0.2.1]:25");
	assert_true(d->began_us > 0 && d->ended_us >= d->began_us);
}

static void step_by_step_the_next_message_waits(void **state)
{
	(void)state;
	greet(PLAIN);
	give(mail("x\r\n", TO("a@test")));
	give(mail("y\r\n", TO("b@test")));
	hears("MAIL FROM:<s@test>\r\n");
	says("250 ok\r\n");
	says("250 ok\r\n");
	says("354 go\r\n");
	hears("RCPT TO:<a@test>\r\nDATA\r\nx\r\n.\r\n");
	says("250 ok\r\n");
	hears("MAIL FROM:<s@test>\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
}

static void a_pipelining_host_gets_the_envelope_in_one_group(void **state)
{
	(void)state;
	greet(PIPELINED);
	assert_int_equal(engine_depth(&engine), 2);
	give(mail(".x\r\n", TO("a@test", "b@test")));
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nRCPT TO:<b@test>\r\nDATA\r\n");
	says("250 ok\r\n250 ok\r\n252 ok\r\n");
	hears("");
	says("354 go\r\n");
	hears("..x\r\n.\r\n");
	says("250 ok\r\n");
	assert_verdict(back(), 1, VERDICT_SENT, 250);
}

static void content_dot_and_the_next_envelope_are_one_group(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(mail("x\r\n", TO("a@test")));
	give(mail("y\r\n", TO("b@test")));
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nDATA\r\n");
	says("250 ok\r\n250 ok\r\n354 go\r\n");
	hears("x\r\n.\r\nMAIL FROM:<s@test>\r\nRCPT TO:<b@test>\r\nDATA\r\n");
	assert_nothing_back();
	says("250 first\r\n");
	assert_string_equal(back()->rcpt[0].verdict->text, "first");
	says("250 ok\r\n250 ok\r\n");
	hears("");
	says("354 go\r\n");
	hears("y\r\n.\r\n");
	says("450 second\r\n");
	assert_verdict(back(), 0, VERDICT_DEFERRED, 450);
}

static void an_envelope_may_follow_the_dot_at_once(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(mail("x\r\n", TO("a@test")));
	says("250 ok\r\n250 ok\r\n354 go\r\n");
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nDATA\r\nx\r\n.\r\n");
	give(mail("y\r\n", TO("b@test")));
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<b@test>\r\nDATA\r\n");
	says("250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n");
	hears("y\r\n.\r\n");
	says("250 ok\r\n");
	back();
	back();
}

static void one_at_a_time_is_a_depth_of_one(void **state)
{
	(void)state;
	greet(PIPELINED);
	transport.pipeline_depth = 1;
	assert_int_equal(engine_depth(&engine), 1);
}

static void each_recipient_has_its_own_verdict(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(mail("x\r\n", TO("a@test", "b@test", "c@test")));
	says("250 ok\r\n250 ok\r\n450 4.2.1 later\r\n550 5.1.1 nobody\r\n354 go\r\n");
	sent();
	says("250 kept\r\n");
	const struct delivery *d = back();
	assert_verdict(d, 0, VERDICT_SENT, 250);
	assert_verdict(d, 1, VERDICT_DEFERRED, 450);
	assert_verdict(d, 2, VERDICT_FAILED, 550);
}

static void assert_answers(const struct delivery *d, uint32_t i, enum verdict_stage stage)
{
	assert_int_equal(d->rcpt[i].verdict->stage, stage);
}

static void a_verdict_says_which_command_was_answered(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(mail("x\r\n", TO("a@test", "b@test")));
	says("250 ok\r\n250 ok\r\n550 no\r\n354 go\r\n");
	sent();
	says("554 no\r\n");
	const struct delivery *d = back();
	assert_answers(d, 0, VERDICT_AT_END);
	assert_answers(d, 1, VERDICT_AT_RCPT);
	give(mail("x\r\n", TO("a@test")));
	says("550 no\r\n503 what\r\n503 what\r\n");
	assert_answers(back(), 0, VERDICT_AT_MAIL);
}

static void a_greeting_that_refuses_is_one(void **state)
{
	(void)state;
	says("554 5.7.1 go away\r\n");
	struct verdict *why = engine_why(&engine);
	assert_int_equal(why->stage, VERDICT_AT_GREETING);
	verdict_unref(why);
}

static void a_refused_mail_counts_for_all_and_the_rest_is_consumed(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(mail("x\r\n", TO("a@test", "b@test")));
	give(mail("y\r\n", TO("c@test")));
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nRCPT TO:<b@test>\r\nDATA\r\n");
	says("550 5.7.1 no\r\n503 what\r\n250 odd\r\n503 what\r\n");
	const struct delivery *d = back();
	assert_verdict(d, 0, VERDICT_FAILED, 550);
	assert_verdict(d, 1, VERDICT_FAILED, 550);
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<c@test>\r\nDATA\r\n");
}

static void step_by_step_a_refused_mail_ends_it_at_once(void **state)
{
	(void)state;
	greet(PLAIN);
	give(mail("x\r\n", TO("a@test")));
	says("451 later\r\n");
	assert_verdict(back(), 0, VERDICT_DEFERRED, 451);
	hears("MAIL FROM:<s@test>\r\n");
}

static void all_refused_and_354_gets_a_lone_dot(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(mail("x\r\n", TO("a@test")));
	give(mail("y\r\n", TO("b@test")));
	says("250 ok\r\n550 no\r\n354 go\r\n");
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nDATA\r\n"
	      ".\r\nMAIL FROM:<s@test>\r\nRCPT TO:<b@test>\r\nDATA\r\n");
	assert_verdict(back(), 0, VERDICT_FAILED, 550);
	says("250 delivered to nobody\r\n250 ok\r\n250 ok\r\n354 go\r\n");
	hears("y\r\n.\r\n");
}

static void all_refused_and_data_refused_is_reset(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(mail("x\r\n", TO("a@test", "b@test")));
	give(mail("y\r\n", TO("c@test")));
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nRCPT TO:<b@test>\r\nDATA\r\n");
	says("250 ok\r\n550 no\r\n450 no\r\n554 no valid recipients\r\n");
	const struct delivery *d = back();
	assert_verdict(d, 0, VERDICT_FAILED, 550);
	assert_verdict(d, 1, VERDICT_DEFERRED, 450);
	hears("RSET\r\nMAIL FROM:<s@test>\r\nRCPT TO:<c@test>\r\nDATA\r\n");
	says("250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n");
	hears("y\r\n.\r\n");
}

static void step_by_step_no_data_is_said_to_nobody(void **state)
{
	(void)state;
	greet(PLAIN);
	give(mail("x\r\n", TO("a@test")));
	says("250 ok\r\n");
	says("550 no\r\n");
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\n");
	assert_verdict(back(), 0, VERDICT_FAILED, 550);
	give(mail("y\r\n", TO("b@test")));
	hears("RSET\r\n");
	says("250 ok\r\n");
	hears("MAIL FROM:<s@test>\r\n");
}

static void a_refused_data_counts_for_those_accepted(void **state)
{
	(void)state;
	greet(PLAIN);
	give(mail("x\r\n", TO("a@test", "b@test")));
	says("250 ok\r\n");
	says("250 ok\r\n");
	says("550 no\r\n");
	says("451 later\r\n");
	const struct delivery *d = back();
	assert_verdict(d, 0, VERDICT_DEFERRED, 451);
	assert_verdict(d, 1, VERDICT_FAILED, 550);
	buf_clear(&out);
	give(mail("y\r\n", TO("c@test")));
	hears("RSET\r\n");
	says("250 ok\r\n");
	hears("MAIL FROM:<s@test>\r\n");
}

static void large_content_is_written_as_there_is_room(void **state)
{
	(void)state;
	enum { SIZE = 1 << 20 };
	char *text = mem_alloc(SIZE + 1);
	memset(text, 'x', SIZE);
	text[SIZE] = '\0';
	greet(PIPELINED);
	give(mail(text, TO("a@test")));
	free(text);
	buf_clear(&out);
	says("250 ok\r\n250 ok\r\n354 go\r\n");
	size_t total = 0;
	while (engine_sending(&engine)) {
		assert_true(buf_len(&out) < 200 << 10);
		assert_int_equal(engine_timeout_ms(&engine), 8);
		total += buf_len(&out);
		buf_clear(&out);
		engine_resume(&engine);
	}
	assert_int_equal(total + buf_len(&out), SIZE + 5);
	assert_int_equal(engine_timeout_ms(&engine), 9);
}

static void each_wait_has_its_own_time(void **state)
{
	(void)state;
	assert_int_equal(engine_timeout_ms(&engine), 2);
	says("220 mx\r\n");
	assert_int_equal(engine_timeout_ms(&engine), 3);
	says(PIPELINED);
	assert_int_equal(engine_timeout_ms(&engine), 1);
	uint64_t turn = engine.turn;
	give(mail("x\r\n", TO("a@test")));
	assert_true(engine.turn > turn);
	assert_int_equal(engine_timeout_ms(&engine), 5);
	turn = engine.turn;
	says("250-more");
	assert_true(engine.turn == turn); /* the whole reply has one deadline */
	says("\r\n250 ok\r\n");
	assert_true(engine.turn > turn);
	assert_int_equal(engine_timeout_ms(&engine), 6);
	says("250 ok\r\n");
	assert_int_equal(engine_timeout_ms(&engine), 7);
	says("354 go\r\n");
	assert_int_equal(engine_timeout_ms(&engine), 9);
}

static void quit_comes_when_all_is_done(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(mail("x\r\n", TO("a@test")));
	engine_quit(&engine);
	says("250 ok\r\n250 ok\r\n354 go\r\n");
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nDATA\r\nx\r\n.\r\n");
	give(mail("y\r\n", TO("b@test")));
	assert_returned(back());
	says("250 ok\r\n");
	hears("QUIT\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_int_equal(engine_timeout_ms(&engine), 11);
	says("500 what\r\n");
	assert_closed_orderly();
}

static void an_idle_connection_quits_after_its_time(void **state)
{
	(void)state;
	greet(PIPELINED);
	engine_expired(&engine);
	hears("QUIT\r\n");
	engine_expired(&engine);
	assert_closed_orderly();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_host_that_offers_nothing_is_asked_step_by_step),
		T(step_by_step_the_next_message_waits),
		T(a_pipelining_host_gets_the_envelope_in_one_group),
		T(content_dot_and_the_next_envelope_are_one_group),
		T(an_envelope_may_follow_the_dot_at_once),
		T(one_at_a_time_is_a_depth_of_one),
		T(each_recipient_has_its_own_verdict),
		T(a_verdict_says_which_command_was_answered),
		T(a_greeting_that_refuses_is_one),
		T(a_refused_mail_counts_for_all_and_the_rest_is_consumed),
		T(step_by_step_a_refused_mail_ends_it_at_once),
		T(all_refused_and_354_gets_a_lone_dot),
		T(all_refused_and_data_refused_is_reset),
		T(step_by_step_no_data_is_said_to_nobody),
		T(a_refused_data_counts_for_those_accepted),
		T(large_content_is_written_as_there_is_room),
		T(each_wait_has_its_own_time),
		T(quit_comes_when_all_is_done),
		T(an_idle_connection_quits_after_its_time),
	};
	return RUN_TWICE(tests);
}
