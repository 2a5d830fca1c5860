/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpc/script.h"

enum { MANY = 4 };

/* All that is given is sent at once, but for what a test keeps back. */
static void begin_many(void)
{
	greet(CHUNKED);
	for (int i = 0; i < MANY; i++)
		give(ahead(mail("x\r\n", TO("a@test", "b@test"))));
	sent();
}

static void assert_doubt(const struct delivery *d)
{
	assert_verdict(d, 0, VERDICT_IN_DOUBT, 0);
	assert_verdict(d, 1, VERDICT_IN_DOUBT, 0);
	assert_true(d->wasted);
}

static void assert_simpler(enum connection_mode next)
{
	assert_int_equal(engine.state, ENGINE_CLOSED);
	assert_true(engine.confused);
	assert_int_equal(engine.mode, next);
}

static void what_was_sent_and_not_answered_is_in_doubt(void **state)
{
	(void)state;
	begin_many();
	engine_lost(&engine, "connection reset");
	for (int i = 0; i < MANY; i++)
		assert_doubt(back());
	assert_closed(0, "4.4.2");
	assert_false(engine.confused);
}

static void what_a_reply_has_decided_is_never_in_doubt(void **state)
{
	(void)state;
	begin_many();
	says("250 ok\r\n550 5.1.1 no\r\n");
	engine_lost(&engine, "connection closed");
	assert_verdict(back(), 0, VERDICT_FAILED, 550);
	assert_verdict(taken, 1, VERDICT_IN_DOUBT, 0);
	for (int i = 1; i < MANY; i++)
		assert_doubt(back());
}

static void a_refused_sender_is_never_in_doubt(void **state)
{
	(void)state;
	begin_many();
	says("550 5.7.1 no\r\n");
	engine_lost(&engine, "connection closed");
	assert_verdict(back(), 0, VERDICT_FAILED, 550);
	assert_verdict(taken, 1, VERDICT_FAILED, 550);
	assert_doubt(back());
}

static void what_was_answered_is_sent_though_the_connection_breaks(void **state)
{
	(void)state;
	begin_many();
	says("250 ok\r\n250 ok\r\n250 ok\r\n250 kept\r\n");
	engine_lost(&engine, "connection closed");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_false(taken->wasted);
	assert_doubt(back());
}

static void what_did_not_leave_is_returned(void **state)
{
	(void)state;
	greet(CHUNKED);
	give(ahead(mail("x\r\n", TO("a@test"))));
	sent();
	give(ahead(mail("y\r\n", TO("a@test"))));
	buf_consume(&out, buf_len(&out) - 1);
	give(ahead(mail("z\r\n", TO("a@test"))));
	engine_lost(&engine, "connection reset");
	assert_verdict(back(), 0, VERDICT_IN_DOUBT, 0);
	assert_returned(back());
	assert_true(taken->wasted);
	assert_returned(back());
}

static void silence_is_as_a_break(void **state)
{
	(void)state;
	begin_many();
	says("250 ok\r\n250 ok\r\n250 ok\r\n");
	engine_expired(&engine);
	for (int i = 0; i < MANY; i++)
		assert_doubt(back());
}

/* RFC 5321 3.8: after a 421 nothing more is done. */
static void behind_a_421_nothing_was_done(void **state)
{
	static const char *const where[] = {"421 bye\r\n", "250 ok\r\n421 bye\r\n",
					    "250 ok\r\n250 ok\r\n421 bye\r\n"};
	for (size_t i = 0; i < sizeof where / sizeof where[0]; i++) {
		begin_many();
		says(where[i]);
		assert_null(engine_take(&engine));
		engine_lost(&engine, "connection closed");
		for (int n = 0; n < MANY; n++)
			assert_returned(back());
		assert_true(taken->wasted);
		assert_closed(421, "4.0.0");
		assert_false(engine.confused);
		tear_down(state);
		set_up(state);
	}
}

static void a_421_to_a_chunk_is_its_verdict(void **state)
{
	(void)state;
	begin_many();
	says("250 ok\r\n250 ok\r\n550 no\r\n421 4.3.2 bye\r\n");
	assert_verdict(back(), 0, VERDICT_DEFERRED, 421);
	assert_verdict(taken, 1, VERDICT_FAILED, 550);
	engine_lost(&engine, "connection closed");
	for (int n = 1; n < MANY; n++)
		assert_returned(back());
	assert_closed(421, "4.3.2");
}

static void a_421_to_a_chunk_for_nobody_ends_the_connection(void **state)
{
	(void)state;
	begin_many();
	says("250 ok\r\n550 no\r\n550 no\r\n421 4.3.2 bye\r\n");
	assert_verdict(back(), 0, VERDICT_FAILED, 550);
	engine_lost(&engine, "connection closed");
	assert_returned(back());
	assert_closed(421, "4.3.2");
}

static void a_421_behind_an_answer_leaves_the_answer(void **state)
{
	(void)state;
	begin_many();
	says("250 ok\r\n250 ok\r\n250 ok\r\n250 kept\r\n421 enough\r\n");
	engine_lost(&engine, "connection closed");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_returned(back());
}

/* The second of them is taken, by a host that does not go. */
static void what_is_taken_behind_a_421_is_sent(void **state)
{
	static const char *const first[] = {"421 bye\r\n503 no\r\n503 no\r\n503 no\r\n",
					    "250 ok\r\n421 bye\r\n421 bye\r\n421 bye\r\n",
					    "250 ok\r\n250 ok\r\n250 ok\r\n421 bye\r\n"};
	for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
		bool answered = i == 2;
		begin_many();
		says(first[i]);
		says("250 reset\r\n250 ok\r\n250 ok\r\n450 no\r\n250 kept\r\n");
		if (answered)
			assert_verdict(back(), 0, VERDICT_DEFERRED, 421);
		assert_verdict(back(), 0, VERDICT_SENT, 250);
		assert_null(taken->rcpt[1].verdict);
		for (int n = 2; n < MANY; n++)
			says("250 reset\r\n550 no\r\n503 no\r\n503 no\r\n503 no\r\n");
		for (int n = answered ? 2 : 1; n < MANY; n++)
			assert_returned(back());
		assert_simpler(CONNECTION_APART);
		assert_false(engine.renew);
		assert_closed(421, "4.0.0");
		tear_down(state);
		set_up(state);
	}
}

static void what_a_421_to_rset_stands_before_may_be_taken(void **state)
{
	(void)state;
	begin_many();
	says("250 ok\r\n250 ok\r\n250 ok\r\n250 kept\r\n421 4.3.2 not now\r\n");
	says("250 ok\r\n250 ok\r\n250 ok\r\n250 kept\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	engine_lost(&engine, "connection closed");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_returned(back());
}

static void a_host_that_says_421_and_stays_silent_leaves_doubts_once(void **state)
{
	(void)state;
	begin_many();
	says("250 ok\r\n421 bye\r\n");
	give(ahead(mail("later\r\n", TO("c@test"))));
	hears("");
	assert_int_equal(engine_timeout_ms(&engine), 5000);
	engine_expired(&engine);
	for (int n = 0; n < MANY; n++)
		assert_doubt(back());
	assert_returned(back());
	assert_simpler(CONNECTION_APART);
}

static void whatever_else_comes_behind_a_421_ends_it(void **state)
{
	static const char *const rest[] = {
		"421 a\r\n421 a\r\n421 a\r\n", /* to all of the first */
		"hello\r\n",
	};
	for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) {
		greet(CHUNKED);
		give(ahead(mail("x\r\n", TO("a@test", "b@test"))));
		sent();
		says("421 bye\r\n");
		assert_null(engine_take(&engine));
		says(rest[i]);
		assert_returned(back());
		assert_closed(421, "4.0.0");
		assert_false(engine.confused);
		tear_down(state);
		set_up(state);
	}
}

static void a_host_that_does_not_understand_bdat_gets_data_next_time(void **state)
{
	static const char *const codes[] = {"500", "501", "502", "503", "504"};
	for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
		greet(CHUNKED);
		give(mail("x\r\n", TO("a@test")));
		give(mail("y\r\n", TO("a@test")));
		says("250 ok\r\n250 ok\r\n");
		sent();
		says(codes[i]);
		says(" what\r\n");
		assert_returned(back());
		assert_returned(back());
		assert_simpler(CONNECTION_NO_CHUNKING);
		tear_down(state);
		set_up(state);
	}
}

static void bdat_not_understood_leaves_refusals_and_gives_back_the_rest(void **state)
{
	(void)state;
	greet(CHUNKED);
	give(mail("x\r\n", TO("a@test", "b@test")));
	says("250 ok\r\n550 5.1.1 no\r\n250 ok\r\n");
	sent();
	says("502 what\r\n");
	assert_false(back()->returned);
	assert_int_equal(taken->rcpt[0].verdict->code, 550);
	assert_null(taken->rcpt[1].verdict);
	assert_simpler(CONNECTION_NO_CHUNKING);
}

static void bdat_refused_before_the_chunk_has_left(void **state)
{
	(void)state;
	greet(CHUNKED);
	give(ahead(mail("x\r\n", TO("a@test"))));
	buf_consume(&out, buf_len(&out) - 1);
	says("250 ok\r\n250 ok\r\n500 what\r\n");
	assert_returned(back());
	assert_simpler(CONNECTION_NO_CHUNKING);
}

/* It has read the chunk as commands: what comes next is no answer to what was sent next. */
static void who_does_not_know_bdat_is_believed_in_nothing_behind_it(void **state)
{
	static const char *const envelopes[] = {"250 ok\r\n250 ok\r\n250 ok\r\n",
						"250 ok\r\n550 no\r\n550 no\r\n"};
	for (size_t i = 0; i < sizeof envelopes / sizeof envelopes[0]; i++) {
		begin_many();
		says(envelopes[i]);
		says("500 what\r\n500 what\r\n500 what\r\n");
		back();
		assert_doubt(back());
		assert_simpler(CONNECTION_NO_CHUNKING);
		tear_down(state);
		set_up(state);
	}
}

static void a_refusal_in_the_midst_of_a_chunk_counts(void **state)
{
	(void)state;
	greet(CHUNKED);
	give(ahead(mail("x\r\n", TO("a@test"))));
	buf_consume(&out, buf_len(&out) - 1);
	says("250 ok\r\n250 ok\r\n552 5.3.4 big\r\n");
	assert_verdict(back(), 0, VERDICT_FAILED, 552);
	assert_closed_orderly();
}

static void praise_in_the_midst_of_a_chunk_is_a_lie(void **state)
{
	(void)state;
	greet(CHUNKED);
	give(ahead(mail("x\r\n", TO("a@test"))));
	buf_consume(&out, buf_len(&out) - 1);
	says("250 ok\r\n250 ok\r\n250 kept\r\n");
	assert_returned(back());
	assert_simpler(CONNECTION_NO_CHUNKING);
}

/* No matter where the count is lost, nothing is called sent that was not. */
static void a_host_that_loses_count_leaves_doubt(void **state)
{
	static const char *const odd[] = {
		/* a reply too many */
		"250 2.1.0 ok\r\n250 2.1.5 ok\r\n250 2.1.5 ok\r\n250 2.1.5 ok\r\n",
		"250 2.1.0 ok\r\n250 2.1.0 ok\r\n550 5.1.1 no\r\n250 2.1.5 ok\r\n",
		/* one too few */
		"250 2.1.5 ok\r\n250 2.1.5 ok\r\n250 2.0.0 kept\r\n250 2.0.0 reset\r\n250 2.1.0 "
		"ok\r\n",
		"250 2.1.0 ok\r\n250 2.1.5 ok\r\n250 2.1.5 ok\r\n250 2.0.0 reset\r\n250 2.1.0 "
		"ok\r\n",
		/* in another order, or no reply to it at all */
		"250 2.1.0 ok\r\n250 2.1.5 ok\r\n250 2.0.0 kept\r\n250 2.1.5 ok\r\n",
		"250 2.1.0 ok\r\n250 2.1.5 ok\r\n250 2.1.5 ok\r\n250 2.0.0 ok\r\n550 5.7.1 no\r\n"
		"250 2.0.0 reset\r\n",
		"250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n",
		"250 ok\r\n354 go\r\n",
		"220 ok\r\n",
		"250 ok\r\n250 ok\r\n250 ok\r\nwhat\r\n",
	};
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		begin_many();
		says(odd[i]);
		for (int n = 0; n < MANY; n++)
			assert_doubt(back());
		assert_simpler(CONNECTION_NO_CHUNKING);
		tear_down(state);
		set_up(state);
	}
}

static void mail_out_of_order_is_no_word_on_the_sender(void **state)
{
	(void)state;
	begin_many();
	says("250 ok\r\n250 ok\r\n250 ok\r\n250 kept\r\n250 reset\r\n503 what\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_nothing_back();
	assert_int_equal(engine.state, ENGINE_READY);
}

/* It was taken, in all likelihood: sent again, and again, on a fresh connection it would come each time. */
static void consent_behind_which_rset_is_refused_is_not_forgotten_over_a_421(void **state)
{
	(void)state;
	begin_many();
	says("250 ok\r\n250 ok\r\n250 ok\r\n250 kept\r\n503 what\r\n421 bye\r\n");
	engine_lost(&engine, "connection closed");
	assert_doubt(back());
	for (int i = 1; i < MANY; i++)
		assert_returned(back());
	assert_false(engine.renew);
	assert_simpler(CONNECTION_APART);
}

/* Nobody may be taken whose sender was not: the reply was another command's. */
static void a_chunk_taken_without_its_envelope_is_out_of_step(void **state)
{
	static const char *const ways[] = {"503 no\r\n250 ok\r\n",
					   "503 no\r\n503 no\r\n503 no\r\n250 kept\r\n"};
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		begin_many();
		says("250 ok\r\n250 ok\r\n250 ok\r\n250 kept\r\n250 reset\r\n");
		says(ways[i]);
		assert_verdict(back(), 0, VERDICT_SENT, 250);
		assert_doubt(back());
		assert_true(engine.confused);
		tear_down(state);
		set_up(state);
	}
}

static void a_503_to_the_first_mail_is_a_word_on_the_sender(void **state)
{
	(void)state;
	begin_many();
	says("503 5.7.0 log in first\r\n503 what\r\n503 what\r\n503 what\r\n");
	assert_verdict(back(), 0, VERDICT_FAILED, 503);
	assert_int_equal(engine.state, ENGINE_READY);
}

static void a_reply_too_many_in_the_end_is_remembered(void **state)
{
	(void)state;
	greet(CHUNKED);
	give(ahead(mail("x\r\n", TO("a@test"))));
	sent();
	says("250 2.1.0 ok\r\n250 2.1.5 ok\r\n250 2.0.0 kept\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	says("25");
	assert_closed_orderly();
	tear_down(state);
	set_up(state);
	greet(CHUNKED);
	give(mail("x\r\n", TO("a@test")));
	sent();
	struct buf in;
	buf_init(&in);
	buf_puts(&in, "250 2.1.0 ok\r\n250 2.1.5 ok\r\n250 2.1.5 ok\r\n");
	engine_input(&engine, &in);
	buf_fini(&in);
	assert_returned(back());
	assert_simpler(CONNECTION_NO_CHUNKING);
}

static void a_421_that_comes_with_the_last_answer_is_no_miscount(void **state)
{
	(void)state;
	greet(CHUNKED);
	give(ahead(mail("x\r\n", TO("a@test"))));
	sent();
	says("250 2.1.0 ok\r\n250 2.1.5 ok\r\n250 2.0.0 kept\r\n421 enough\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_closed_orderly();
	assert_false(engine.confused);
}

static void content_that_can_not_be_read_leaves_those_before_it_in_doubt(void **state)
{
	(void)state;
	greet(CHUNKED);
	give(ahead(mail("x\r\n", TO("a@test"))));
	sent();
	struct delivery *d = ahead(mail("", TO("a@test")));
	content_unref(d->content);
	struct content_file *none = content_file_new(-1);
	d->content = content_in_file(none, 0, 10);
	content_file_unref(none);
	give(d);
	assert_verdict(back(), 0, VERDICT_IN_DOUBT, 0);
	assert_verdict(back(), 0, VERDICT_DEFERRED, 0);
	assert_string_equal(taken->rcpt[0].verdict->dsn, "4.3.0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_was_sent_and_not_answered_is_in_doubt),
		T(what_a_reply_has_decided_is_never_in_doubt),
		T(a_refused_sender_is_never_in_doubt),
		T(what_was_answered_is_sent_though_the_connection_breaks),
		T(what_did_not_leave_is_returned),
		T(silence_is_as_a_break),
		T(behind_a_421_nothing_was_done),
		T(a_421_to_a_chunk_is_its_verdict),
		T(a_421_to_a_chunk_for_nobody_ends_the_connection),
		T(a_421_behind_an_answer_leaves_the_answer),
		T(what_is_taken_behind_a_421_is_sent),
		T(what_a_421_to_rset_stands_before_may_be_taken),
		T(a_host_that_says_421_and_stays_silent_leaves_doubts_once),
		T(whatever_else_comes_behind_a_421_ends_it),
		T(a_host_that_does_not_understand_bdat_gets_data_next_time),
		T(bdat_not_understood_leaves_refusals_and_gives_back_the_rest),
		T(bdat_refused_before_the_chunk_has_left),
		T(who_does_not_know_bdat_is_believed_in_nothing_behind_it),
		T(a_refusal_in_the_midst_of_a_chunk_counts),
		T(praise_in_the_midst_of_a_chunk_is_a_lie),
		T(a_host_that_loses_count_leaves_doubt),
		T(mail_out_of_order_is_no_word_on_the_sender),
		T(a_chunk_taken_without_its_envelope_is_out_of_step),
		T(consent_behind_which_rset_is_refused_is_not_forgotten_over_a_421),
		T(a_503_to_the_first_mail_is_a_word_on_the_sender),
		T(a_reply_too_many_in_the_end_is_remembered),
		T(a_421_that_comes_with_the_last_answer_is_no_miscount),
		T(content_that_can_not_be_read_leaves_those_before_it_in_doubt),
	};
	return RUN_TWICE(tests);
}
