/* SPDX-License-Identifier: ISC */
/* Deliveries that only ask: MAIL, RCPT, RSET. */
#include "tests/unit/smtpc/script.h"

static struct delivery *question(struct delivery *d)
{
	d->verification = true;
	return d;
}

static void each_recipient_has_what_was_said_to_it_and_nothing_is_sent(void **state)
{
	(void)state;
	greet("250-mx\r\n250-PIPELINING\r\n250-SIZE\r\n250 CHUNKING\r\n");
	give(question(mail("", TO("a@test", "no@test", "later@test"))));
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nRCPT TO:<no@test>\r\n"
	      "RCPT TO:<later@test>\r\n");
	says("250 ok\r\n250 2.1.5 fine\r\n550 5.1.1 who\r\n");
	hears("");
	says("450 4.2.1 locked\r\n");
	hears("RSET\r\n");
	const struct delivery *d = back();
	assert_verdict(d, 0, VERDICT_SENT, 250);
	assert_verdict(d, 1, VERDICT_FAILED, 550);
	assert_verdict(d, 2, VERDICT_DEFERRED, 450);
	assert_false(engine_idle(&engine));
	says("250 ok\r\n");
	assert_true(engine_idle(&engine));
	give(mail("x\r\n", TO("a@test")));
	hears("MAIL FROM:<s@test> SIZE=3\r\nRCPT TO:<a@test>\r\n");
}

static void it_waits_for_what_is_in_flight_and_what_is_behind_waits_for_it(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(mail("x\r\n", TO("a@test")));
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nDATA\r\n");
	give(question(mail("", TO("b@test"))));
	says("250 ok\r\n250 ok\r\n354 go\r\n");
	hears("x\r\n.\r\n");
	says("250 kept\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<b@test>\r\n");
	give(mail("y\r\n", TO("c@test")));
	hears("");
	says("250 ok\r\n");
	hears("");
	says("550 5.1.1 no\r\n");
	assert_verdict(back(), 0, VERDICT_FAILED, 550);
	hears("RSET\r\nMAIL FROM:<s@test>\r\nRCPT TO:<c@test>\r\nDATA\r\n");
}

static void a_sender_that_is_refused_needs_no_rset(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(question(mail("", TO("a@test"))));
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\n");
	says("550 5.7.1 not you\r\n503 5.5.1 not now\r\n");
	assert_verdict(back(), 0, VERDICT_FAILED, 550);
	hears("");
	assert_true(engine_idle(&engine));
}

static void a_connection_that_breaks_gives_back_what_has_no_answer(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(question(mail("", TO("a@test", "b@test"))));
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nRCPT TO:<b@test>\r\n");
	says("250 ok\r\n250 ok\r\n");
	engine_lost(&engine, "connection lost");
	const struct delivery *d = back();
	assert_verdict(d, 0, VERDICT_SENT, 250);
	assert_null(d->rcpt[1].verdict);
}

/* As anywhere: a refusal for the hurry is no answer about the recipient. */
static void what_was_refused_ahead_of_its_turn_is_asked_again(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(question(mail("", TO("a@test", "b@test"))));
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nRCPT TO:<b@test>\r\n");
	says("250 ok\r\n503 5.5.1 not so fast\r\n503 5.5.1 not so fast\r\n");
	hears("RSET\r\n");
	says("250 ok\r\n");
	hears("MAIL FROM:<s@test>\r\n");
	says("250 ok\r\n");
	hears("RCPT TO:<a@test>\r\n");
	says("250 ok\r\n");
	hears("RCPT TO:<b@test>\r\n");
	says("550 5.1.1 no\r\n");
	const struct delivery *d = back();
	assert_verdict(d, 0, VERDICT_SENT, 250);
	assert_verdict(d, 1, VERDICT_FAILED, 550);
	hears("RSET\r\n");
}

static void where_nothing_may_go_ahead_each_command_waits(void **state)
{
	(void)state;
	greet("250 mx\r\n");
	give(question(mail("", TO("a@test"))));
	hears("MAIL FROM:<s@test>\r\n");
	says("250 ok\r\n");
	hears("RCPT TO:<a@test>\r\n");
	says("250 ok\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	hears("RSET\r\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_recipient_has_what_was_said_to_it_and_nothing_is_sent),
		T(it_waits_for_what_is_in_flight_and_what_is_behind_waits_for_it),
		T(a_sender_that_is_refused_needs_no_rset),
		T(a_connection_that_breaks_gives_back_what_has_no_answer),
		T(what_was_refused_ahead_of_its_turn_is_asked_again),
		T(where_nothing_may_go_ahead_each_command_waits),
	};
	return RUN_TWICE(tests);
}
