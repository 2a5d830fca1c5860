/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpc/script.h"

#define LMTP_PLAIN "250 mx.test\r\n"
#define PIPES "250-mx.test\r\n250-PIPELINING\r\n250 ENHANCEDSTATUSCODES\r\n"
#define CHUNKS "250-mx.test\r\n250-PIPELINING\r\n250-CHUNKING\r\n250 ENHANCEDSTATUSCODES\r\n"
#define AB TO("a@test", "b@test")
#define ENVELOPE "250 2.1.0 ok\r\n250 2.1.5 ok\r\n250 2.1.5 ok\r\n"
#define RSET_DONE "250 2.0.0 flushed\r\n"

static void greet_lmtp(const char *lhlo)
{
	transport.protocol = TRANSPORT_PROTOCOL_LMTP;
	says("220 mx.test LMTP\r\n");
	hears("LHLO me.test\r\n");
	says(lhlo);
	assert_int_equal(engine.state, ENGINE_READY);
	hears("");
}

/* One message by DATA, all sent. */
static void send_data(const char *const *to, const char *replies)
{
	give(mail("x\r\n", to));
	sent();
	says(replies);
	sent();
}

static void each_recipient_has_a_reply_of_its_own(void **state)
{
	(void)state;
	greet_lmtp(PIPES);
	give(mail("x\r\n", TO("a@test", "b@test", "c@test", "d@test")));
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nRCPT TO:<b@test>\r\nRCPT TO:<c@test>\r\n"
	      "RCPT TO:<d@test>\r\nDATA\r\n");
	says("250 2.1.0 ok\r\n250 2.1.5 ok\r\n550 5.1.1 no\r\n250 2.1.5 ok\r\n250 2.1.5 ok\r\n354 "
	     "go\r\n");
	hears("x\r\n.\r\n");
	says("250 2.0.0 kept\r\n450 4.2.0 busy\r\n");
	assert_nothing_back();
	says("550 5.2.2 full\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_verdict(taken, 1, VERDICT_FAILED, 550);
	assert_verdict(taken, 2, VERDICT_DEFERRED, 450);
	assert_verdict(taken, 3, VERDICT_FAILED, 550);
	assert_string_equal(taken->rcpt[3].verdict->text, "5.2.2 full");
	assert_int_equal(engine.state, ENGINE_READY);
}

static void a_host_without_pipelining_is_asked_one_by_one(void **state)
{
	(void)state;
	greet_lmtp(LMTP_PLAIN);
	give(mail("x\r\n", AB));
	hears("MAIL FROM:<s@test>\r\n");
	says("250 ok\r\n");
	hears("RCPT TO:<a@test>\r\n");
	says("250 ok\r\n");
	hears("RCPT TO:<b@test>\r\n");
	says("250 ok\r\n");
	hears("DATA\r\n");
	says("354 go\r\n");
	hears("x\r\n.\r\n");
	says("250 kept\r\n250 kept\r\n");
	assert_verdict(back(), 1, VERDICT_SENT, 250);
	assert_true(engine_idle(&engine));
}

/* RFC 2033 4.1: there is no HELO to fall back to. */
static void a_refused_lhlo_is_a_refusal_to_talk(void **state)
{
	(void)state;
	transport.protocol = TRANSPORT_PROTOCOL_LMTP;
	says("220 mx.test\r\n");
	sent();
	says("502 5.5.1 this is SMTP\r\n");
	hears("QUIT\r\n");
	assert_true(engine.refused);
	assert_closed(502, "4.5.1");
}

static void who_has_no_reply_when_it_ends_is_in_doubt(void **state)
{
	(void)state;
	greet_lmtp(PIPES);
	send_data(AB, ENVELOPE "354 go\r\n");
	says("250 2.0.0 kept\r\n");
	engine_lost(&engine, "connection closed");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_verdict(taken, 1, VERDICT_IN_DOUBT, 0);
}

static void a_reply_too_few_is_waited_for_and_then_in_doubt(void **state)
{
	(void)state;
	greet_lmtp(PIPES);
	send_data(AB, ENVELOPE "354 go\r\n");
	says("550 5.2.2 full\r\n");
	assert_int_equal(engine_timeout_ms(&engine), 9);
	engine_expired(&engine);
	assert_verdict(back(), 0, VERDICT_FAILED, 550);
	assert_verdict(taken, 1, VERDICT_IN_DOUBT, 0);
}

static void a_reply_too_many_ends_the_connection_and_nothing_else(void **state)
{
	(void)state;
	greet_lmtp(PIPES);
	send_data(AB, ENVELOPE "354 go\r\n");
	says("250 2.0.0 kept\r\n250 2.0.0 kept\r\n250 2.0.0 kept\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_verdict(taken, 1, VERDICT_SENT, 250);
	assert_int_equal(engine.state, ENGINE_CLOSED);
}

static void a_421_is_of_its_recipient_and_the_last_word(void **state)
{
	(void)state;
	greet_lmtp(PIPES);
	send_data(AB, ENVELOPE "354 go\r\n");
	says("421 4.3.2 bye\r\n");
	give(mail("y\r\n", AB));
	assert_returned(back());
	engine_lost(&engine, "connection closed");
	assert_verdict(back(), 0, VERDICT_DEFERRED, 421);
	assert_verdict(taken, 1, VERDICT_IN_DOUBT, 0);
}

static void a_421_behind_the_others_is_told(void **state)
{
	(void)state;
	greet_lmtp(PIPES);
	send_data(AB, ENVELOPE "354 go\r\n");
	says("250 2.0.0 kept\r\n421 4.3.2 bye\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_verdict(taken, 1, VERDICT_DEFERRED, 421);
	assert_closed(421, "4.3.2");
}

/* RFC 2033 4.2: the server must not say 354. */
static void content_for_nobody_is_out_of_step(void **state)
{
	(void)state;
	greet_lmtp(LMTP_PLAIN);
	give(mail("x\r\n", AB));
	says("250 ok\r\n");
	says("550 no\r\n");
	says("550 no\r\n");
	assert_verdict(back(), 1, VERDICT_FAILED, 550);
	assert_true(engine.owes_rset);
	tear_down(state);
	set_up(state);
	greet_lmtp(PIPES);
	send_data(AB, "250 2.1.0 ok\r\n550 5.1.1 no\r\n550 5.1.1 no\r\n354 go\r\n");
	assert_int_equal(engine.state, ENGINE_CLOSED);
	assert_true(engine.confused);
}

static void data_is_refused_for_all(void **state)
{
	(void)state;
	greet_lmtp(LMTP_PLAIN);
	give(mail("x\r\n", AB));
	for (int i = 0; i < 3; i++)
		says("250 ok\r\n");
	says("452 4.3.1 no room\r\n");
	assert_verdict(back(), 0, VERDICT_DEFERRED, 452);
	assert_verdict(taken, 1, VERDICT_DEFERRED, 452);
	assert_int_equal(engine.state, ENGINE_READY);
}

static void rset_goes_between_messages_in_flight(void **state)
{
	(void)state;
	greet_lmtp(PIPES);
	give(mail("x\r\n", AB));
	sent();
	give(mail("y\r\n", TO("c@test")));
	says(ENVELOPE "354 go\r\n");
	hears("x\r\n.\r\nRSET\r\nMAIL FROM:<s@test>\r\nRCPT TO:<c@test>\r\nDATA\r\n");
	says("250 2.0.0 kept\r\n450 4.2.0 busy\r\n");
	assert_nothing_back(); /* it may yet turn out that one was not ours */
	says(RSET_DONE);
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_verdict(taken, 1, VERDICT_DEFERRED, 450);
	says("250 2.1.0 ok\r\n250 2.1.5 ok\r\n354 go\r\n");
	hears("y\r\n.\r\n");
	says("250 2.0.0 kept\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
}

static void begin_three(void)
{
	greet_lmtp(CHUNKS);
	for (int i = 0; i < 3; i++)
		give(ahead(mail("x\r\n", AB)));
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nRCPT TO:<b@test>\r\nBDAT 3 LAST\r\nx\r\n"
	      "RSET\r\nMAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nRCPT TO:<b@test>\r\nBDAT 3 "
	      "LAST\r\nx\r\n"
	      "RSET\r\nMAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nRCPT TO:<b@test>\r\nBDAT 3 "
	      "LAST\r\nx\r\n");
}

static void chunks_of_several_messages_have_replies_for_each(void **state)
{
	(void)state;
	begin_three();
	says(ENVELOPE "250 2.1.5 kept\r\n550 5.2.2 full\r\n" RSET_DONE);
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_verdict(taken, 1, VERDICT_FAILED, 550);
	says("250 2.1.0 ok\r\n250 2.1.5 ok\r\n550 5.1.1 no\r\n450 4.2.0 busy\r\n" RSET_DONE);
	assert_verdict(back(), 0, VERDICT_DEFERRED, 450);
	assert_verdict(taken, 1, VERDICT_FAILED, 550);
	says("250 2.1.0 ok\r\n550 5.1.1 no\r\n550 5.1.1 no\r\n503 5.5.1 nobody\r\n");
	assert_verdict(back(), 0, VERDICT_FAILED, 550);
	assert_verdict(taken, 1, VERDICT_FAILED, 550);
	assert_true(taken->wasted);
	assert_int_equal(engine.state, ENGINE_READY);
}

/* One reply to a chunk for two: that to RSET is taken for the other's, and MAIL's shows it. */
static void a_reply_too_few_in_flight_calls_nobody_sent(void **state)
{
	(void)state;
	begin_three();
	says(ENVELOPE "250 2.0.0 kept\r\n" RSET_DONE "250 2.1.0 ok\r\n");
	assert_int_equal(engine.state, ENGINE_CLOSED);
	assert_true(engine.confused);
	for (int i = 0; i < 3; i++) {
		assert_verdict(back(), 0, VERDICT_IN_DOUBT, 0);
		assert_verdict(taken, 1, VERDICT_IN_DOUBT, 0);
	}
}

static void a_reply_too_many_in_flight_is_found_at_the_next_recipient(void **state)
{
	(void)state;
	begin_three();
	says(ENVELOPE "250 2.0.0 kept\r\n250 2.0.0 kept\r\n250 2.0.0 kept\r\n" RSET_DONE
		      "250 2.1.0 ok\r\n");
	assert_int_equal(engine.state, ENGINE_CLOSED);
	assert_true(engine.confused);
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_verdict(taken, 1, VERDICT_SENT, 250);
	assert_verdict(back(), 0, VERDICT_IN_DOUBT, 0);
}

static void a_refusal_ahead_of_its_turn_is_asked_again_for_that_one(void **state)
{
	(void)state;
	begin_three();
	says(ENVELOPE "250 2.0.0 kept\r\n451 4.5.0 not so fast\r\n" RSET_DONE);
	assert_nothing_back();
	says(ENVELOPE "250 2.0.0 kept\r\n250 2.0.0 kept\r\n" RSET_DONE);
	says(ENVELOPE "250 2.0.0 kept\r\n250 2.0.0 kept\r\n");
	back();
	back();
	hears("RSET\r\n");
	says("250 2.0.0 ok\r\n");
	hears("MAIL FROM:<s@test>\r\n");
	says("250 2.1.0 ok\r\n");
	hears("RCPT TO:<b@test>\r\n");
	says("250 2.1.5 ok\r\n");
	hears("BDAT 3 LAST\r\nx\r\n");
	says("250 2.0.0 kept\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_verdict(taken, 1, VERDICT_SENT, 250);
}

static void begin_chunk(void)
{
	greet_lmtp(CHUNKS);
	give(mail("x\r\n", AB));
	says(ENVELOPE);
	sent();
}

/* Given back, all would be sent once more to those who follow, and have taken it. */
static void a_chunk_may_be_refused_for_the_first_by_a_code_that_commands_have(void **state)
{
	(void)state;
	begin_chunk();
	says("500 5.2.1 disabled\r\n250 2.1.5 kept\r\n");
	assert_verdict(back(), 0, VERDICT_FAILED, 500);
	assert_verdict(taken, 1, VERDICT_SENT, 250);
}

static void who_does_not_know_bdat_says_so_by_the_enhanced_code(void **state)
{
	(void)state;
	begin_chunk();
	says("500 5.5.1 what\r\n");
	assert_true(back()->returned);
	assert_int_equal(engine.state, ENGINE_CLOSED);
}

static void or_by_none(void **state)
{
	(void)state;
	begin_chunk();
	says("500 what\r\n");
	assert_true(back()->returned);
	assert_int_equal(engine.state, ENGINE_CLOSED);
}

static void a_reply_before_the_end_of_the_content_is_of_the_first(void **state)
{
	(void)state;
	greet_lmtp(PIPES);
	give(mail("x\r\n", AB));
	sent();
	says(ENVELOPE "354 go\r\n");
	says("552 5.3.4 too big\r\n");
	assert_verdict(back(), 0, VERDICT_FAILED, 552);
	assert_verdict(taken, 1, VERDICT_DEFERRED, 552);
	assert_int_equal(engine.state, ENGINE_CLOSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_recipient_has_a_reply_of_its_own),
		T(a_host_without_pipelining_is_asked_one_by_one),
		T(a_refused_lhlo_is_a_refusal_to_talk),
		T(who_has_no_reply_when_it_ends_is_in_doubt),
		T(a_reply_too_few_is_waited_for_and_then_in_doubt),
		T(a_reply_too_many_ends_the_connection_and_nothing_else),
		T(a_421_is_of_its_recipient_and_the_last_word),
		T(a_421_behind_the_others_is_told),
		T(content_for_nobody_is_out_of_step),
		T(data_is_refused_for_all),
		T(rset_goes_between_messages_in_flight),
		T(chunks_of_several_messages_have_replies_for_each),
		T(a_reply_too_few_in_flight_calls_nobody_sent),
		T(a_reply_too_many_in_flight_is_found_at_the_next_recipient),
		T(a_refusal_ahead_of_its_turn_is_asked_again_for_that_one),
		T(a_chunk_may_be_refused_for_the_first_by_a_code_that_commands_have),
		T(who_does_not_know_bdat_says_so_by_the_enhanced_code),
		T(or_by_none),
		T(a_reply_before_the_end_of_the_content_is_of_the_first),
	};
	return RUN_TWICE(tests);
}
