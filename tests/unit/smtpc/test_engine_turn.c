/* SPDX-License-Identifier: ISC */
/* Refusals that came ahead of their turn: asked again, alone; only that counts. */
#include "tests/unit/smtpc/script.h"

#define MAIL "MAIL FROM:<s@test>\r\n"
#define RCPT(to) "RCPT TO:<" to ">\r\n"
#define DATA "DATA\r\n"

/* What is said against the order of commands, and what may be meant so. */
static const char *const doubtful[] = {
	"450 4.3.2 later\r\n",
	"451 later\r\n",
	"452 4.5.0 no\r\n",
	"500 what\r\n",
	"501 5.5.4 what\r\n",
	"502 5.5.1 what\r\n",
	"503 5.5.1 bad sequence\r\n",
	"503 5.7.0 no\r\n",
	"504 what\r\n",
	"554 no\r\n",
	"554 5.5.0 no\r\n",
};
enum { DOUBTFUL = sizeof doubtful / sizeof doubtful[0] };

/* Two messages: content and dot of the first are sent, the envelope of the second with them. */
static void ride(void)
{
	greet(PIPELINED);
	give(mail("x\r\n", TO("a@test")));
	give(mail("y\r\n", TO("b@test", "c@test")));
	sent();
	says("250 ok\r\n250 ok\r\n354 go\r\n");
	hears("x\r\n.\r\n" MAIL RCPT("b@test") RCPT("c@test") DATA);
	says("250 kept\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
}

/* The second one, alone, up to its content. */
static void ask_again(void)
{
	hears("RSET\r\n");
	says("250 ok\r\n");
	hears(MAIL);
	says("250 ok\r\n");
	hears(RCPT("b@test"));
	says("250 ok\r\n");
	hears(RCPT("c@test"));
	says("250 ok\r\n");
	hears(DATA);
	says("354 go\r\n");
	hears("y\r\n.\r\n");
}

enum { LONG_MS = 300000 };

static void wait_long(void)
{
	transport.mail_timeout = transport.rset_timeout = LONG_MS;
}

/* What lay in the host's buffer when it answered the first is gone. */
static void an_envelope_that_was_thrown_away_is_tried_elsewhere(void **state)
{
	(void)state;
	wait_long();
	ride();
	assert_in_range(engine_timeout_ms(&engine), 2000, 2100);
	engine_expired(&engine);
	assert_returned(back());
	assert_int_equal(engine.state, ENGINE_CLOSED);
	assert_true(engine.confused);
	assert_int_equal(engine.mode, CONNECTION_APART);
	assert_nothing_back();
}

static void what_the_host_is_slow_with_is_waited_for_as_long_as_ever(void **state)
{
	(void)state;
	wait_long();
	greet(PIPELINED);
	give(mail("x\r\n", TO("a@test")));
	sent();
	assert_int_equal(engine_timeout_ms(&engine), LONG_MS); /* the first MAIL */
	give(mail("y\r\n", TO("b@test")));
	says("250 ok\r\n250 ok\r\n354 go\r\n");
	sent();
	assert_int_equal(engine_timeout_ms(&engine), transport.data_done_timeout);
	says("250 kept\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_true(engine_timeout_ms(&engine) < 3000);
	says("250 ok\r\n");
	assert_int_equal(engine_timeout_ms(&engine), transport.rcpt_timeout);
	says("250 ok\r\n354 go\r\n");
	sent();
	says("250 kept\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	give(mail("z\r\n", TO("c@test")));
	sent();
	assert_int_equal(engine_timeout_ms(&engine), LONG_MS); /* behind nothing */
	engine_drop(&engine);
	back();
}

static void assert_learnt(const struct delivery *d, enum connection_mode learnt)
{
	assert_int_equal(d->mode, learnt);
	assert_non_null(d->reason);
}

static void assert_not_learnt(const struct delivery *d)
{
	assert_int_equal(d->mode, CONNECTION_FULL);
	assert_null(d->reason);
}

static void mail_refused_behind_a_message_is_asked_again(void **state)
{
	for (int i = 0; i < DOUBTFUL; i++) {
		ride();
		says(doubtful[i]);
		says("503 what\r\n503 what\r\n503 what\r\n");
		assert_nothing_back();
		ask_again();
		give(mail("z\r\n", TO("d@test")));
		hears(""); /* nothing behind it */
		says("250 kept\r\n");
		assert_verdict(back(), 0, VERDICT_SENT, 250);
		assert_verdict(taken, 1, VERDICT_SENT, 250);
		assert_learnt(taken, CONNECTION_APART);
		hears(MAIL RCPT("d@test") DATA);
		assert_int_equal(engine_depth(&engine), 1);
		tear_down(state);
		set_up(state);
	}
}

static void a_sender_refused_in_its_turn_too_is_refused(void **state)
{
	(void)state;
	ride();
	says("550 5.7.1 no\r\n503 what\r\n503 what\r\n503 what\r\n");
	hears("RSET\r\n");
	says("250 ok\r\n");
	hears(MAIL);
	says("550 5.7.1 no\r\n");
	assert_verdict(back(), 0, VERDICT_FAILED, 550);
	assert_verdict(taken, 1, VERDICT_FAILED, 550);
	assert_not_learnt(taken);
	assert_int_equal(engine_depth(&engine), 2);
	give(mail("z\r\n", TO("d@test")));
	give(mail("z\r\n", TO("d@test")));
	says("250 ok\r\n250 ok\r\n354 go\r\n");
	hears(MAIL RCPT("d@test") DATA "z\r\n.\r\n" MAIL RCPT("d@test") DATA);
}

static void a_recipient_refused_in_a_group_is_asked_again(void **state)
{
	for (int i = 0; i < DOUBTFUL; i++) {
		greet(PIPELINED);
		give(mail("x\r\n", TO("a@test")));
		sent();
		says("250 ok\r\n");
		says(doubtful[i]);
		says("503 what\r\n");
		assert_nothing_back();
		hears("RSET\r\n");
		says("250 ok\r\n");
		hears(MAIL);
		says("250 ok\r\n");
		hears(RCPT("a@test"));
		says("250 ok\r\n");
		hears(DATA);
		says("354 go\r\n");
		sent();
		says("250 kept\r\n");
		assert_verdict(back(), 0, VERDICT_SENT, 250);
		assert_learnt(taken, CONNECTION_LOCKSTEP);
		give(mail("z\r\n", TO("d@test")));
		hears(MAIL);
		tear_down(state);
		set_up(state);
	}
}

static void a_recipient_that_is_spoken_of_is_believed(void **state)
{
	static const struct {
		const char *said;
		int code;
	} ways[] = {
		{"550 5.1.1 unknown\r\n", 550}, {"550 no\r\n", 550},	     {"553 no\r\n", 553},
		{"554 5.7.1 relay\r\n", 554},	{"450 4.2.0 grey\r\n", 450}, {"452 full\r\n", 452},
		{"552 5.2.2 full\r\n", 552},	{"451 4.7.1 grey\r\n", 451},
	};
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		ride();
		says("250 ok\r\n");
		says(ways[i].said);
		says("250 ok\r\n354 go\r\n");
		hears("y\r\n.\r\n");
		says("250 kept\r\n");
		assert_int_equal(back()->rcpt[0].verdict->code, ways[i].code);
		assert_verdict(taken, 1, VERDICT_SENT, 250);
		assert_not_learnt(taken);
		tear_down(state);
		set_up(state);
	}
}

/* The others have their content meanwhile; nobody gets it twice. */
static void one_recipient_of_two_is_asked_again(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(mail("y\r\n", TO("b@test", "c@test", "d@test")));
	sent();
	says("250 ok\r\n250 ok\r\n503 what\r\n550 5.1.1 no\r\n354 go\r\n");
	hears("y\r\n.\r\n");
	says("250 kept\r\n");
	assert_nothing_back();
	hears("RSET\r\n");
	says("250 ok\r\n");
	hears(MAIL);
	says("250 ok\r\n");
	hears(RCPT("c@test"));
	says("451 4.7.1 truly\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_verdict(taken, 1, VERDICT_DEFERRED, 451);
	assert_verdict(taken, 2, VERDICT_FAILED, 550);
	assert_not_learnt(taken);
}

static void what_was_sent_stays_so_when_the_second_try_breaks(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(mail("y\r\n", TO("b@test", "c@test")));
	sent();
	says("250 ok\r\n250 ok\r\n503 what\r\n354 go\r\n");
	sent();
	says("250 kept\r\n250 ok\r\n");
	engine_lost(&engine, "connection closed");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_null(taken->rcpt[1].verdict);
	assert_true(engine.confused);
	assert_int_equal(engine.mode, CONNECTION_LOCKSTEP);
}

static void data_refused_in_a_group_is_asked_again(void **state)
{
	static const char *const ways[] = {"451 4.7.1 later\r\n", "503 what\r\n",
					   "554 5.5.1 no\r\n"};
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		greet(PIPELINED);
		give(mail("y\r\n", TO("b@test", "c@test")));
		sent();
		says("250 ok\r\n250 ok\r\n250 ok\r\n");
		says(ways[i]);
		assert_nothing_back();
		ask_again();
		says("250 kept\r\n");
		assert_verdict(back(), 1, VERDICT_SENT, 250);
		assert_learnt(taken, CONNECTION_LOCKSTEP);
		tear_down(state);
		set_up(state);
	}
}

static void a_dot_refused_with_another_behind_it_is_asked_again(void **state)
{
	static const char *const ways[] = {"554 5.5.0 no\r\n", "451 later\r\n", "503 what\r\n"};
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		greet(PIPELINED);
		give(mail("y\r\n", TO("b@test", "c@test")));
		give(mail("x\r\n", TO("a@test")));
		says("250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n");
		sent();
		says(ways[i]);
		says("250 ok\r\n250 ok\r\n354 go\r\n");
		hears("x\r\n.\r\n");
		says("250 kept\r\n");
		assert_verdict(back(), 0, VERDICT_SENT, 250);
		ask_again();
		says("250 kept\r\n");
		assert_verdict(back(), 1, VERDICT_SENT, 250);
		assert_learnt(taken, CONNECTION_APART);
		tear_down(state);
		set_up(state);
	}
}

static void content_that_is_spoken_of_is_believed(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(mail("y\r\n", TO("b@test")));
	give(mail("x\r\n", TO("a@test")));
	says("250 ok\r\n250 ok\r\n354 go\r\n");
	sent();
	says("554 5.7.1 spam\r\n");
	assert_verdict(back(), 0, VERDICT_FAILED, 554);
}

/* Many chunks in flight, and a host that takes nothing behind one without an answer. */
static void give_chunks(void)
{
	greet(CHUNKED);
	for (int i = 0; i < 3; i++)
		give(ahead(mail("x\r\n", TO("a@test"))));
	sent();
	says("250 ok\r\n250 ok\r\n250 kept\r\n");
}

static void take_one(void)
{
	hears(MAIL);
	says("250 ok\r\n");
	hears(RCPT("a@test"));
	says("250 ok\r\n");
	hears("BDAT 3 LAST\r\nx\r\n");
	says("250 kept\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
}

static void take_alone(void)
{
	hears("RSET\r\n");
	says("250 ok\r\n");
	take_one();
}

static void chunks_refused_behind_a_chunk_are_sent_again_one_by_one(void **state)
{
	static const char *const resets[] = {"250 ok\r\n", "503 what\r\n"};
	for (size_t i = 0; i < sizeof resets / sizeof resets[0]; i++) {
		give_chunks();
		for (int n = 0; n < 2; n++) {
			says(resets[i]);
			says("503 what\r\n503 what\r\n503 what\r\n");
		}
		assert_verdict(back(), 0, VERDICT_SENT, 250);
		take_alone();
		assert_learnt(taken, CONNECTION_APART);
		take_one();
		assert_nothing_back();
		give(ahead(mail("x\r\n", TO("a@test"))));
		hears(MAIL RCPT("a@test")); /* its chunk waits */
		tear_down(state);
		set_up(state);
	}
}

/* Replies that come late are not taken for those to the second try. */
static void a_second_try_out_of_step_is_found_out(void **state)
{
	static const char *const late[] = {"250 2.1.0 ok\r\n", "250 ok\r\n250 2.1.5 ok\r\n",
					   "503 what\r\n"};
	for (size_t i = 0; i < sizeof late / sizeof late[0]; i++) {
		give_chunks();
		for (int n = 0; n < 2; n++)
			says("250 ok\r\n503 what\r\n503 what\r\n503 what\r\n");
		assert_verdict(back(), 0, VERDICT_SENT, 250);
		hears("RSET\r\n");
		for (const char *at = late[i]; *at; at = strchr(at, '\n') + 1) {
			char line[40] = {0};
			memcpy(line, at, (size_t)(strchr(at, '\n') + 1 - at));
			says(line);
		}
		assert_returned(back());
		assert_returned(back());
		assert_true(engine.confused);
		tear_down(state);
		set_up(state);
	}
}

/* The refusal may have been the chunk's, and be late by one. */
static void an_answer_is_not_believed_when_only_rset_is_refused(void **state)
{
	static const char *const ways[] = {
		"550 5.7.1 spam\r\n",
		"451 4.3.0 later\r\n",
		"554 no\r\n",
		"503 what\r\n250 2.0.0 reset\r\n",
		"503 what\r\n550 5.7.1 no sender of ours\r\n",
	};
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		give_chunks();
		says(ways[i]);
		assert_verdict(back(), 0, VERDICT_IN_DOUBT, 0);
		assert_true(engine.confused);
		tear_down(state);
		set_up(state);
	}
}

/* Nor need it have been. */
static void a_rset_that_alone_is_refused_changes_nothing(void **state)
{
	(void)state;
	give_chunks();
	says("503 what\r\n250 2.1.0 sender\r\n250 2.1.5 ok\r\n250 kept\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	says("250 ok\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_int_equal(engine.state, ENGINE_READY);
}

static void a_chunk_refused_ahead_of_its_turn_is_sent_again(void **state)
{
	for (int i = 0; i < DOUBTFUL; i++) {
		if (strncmp(doubtful[i], "500", 3) == 0 || strncmp(doubtful[i], "502", 3) == 0)
			continue; /* that is, BDAT is not known */
		greet(CHUNKED);
		give(ahead(mail("x\r\n", TO("a@test"))));
		sent();
		says("250 ok\r\n250 ok\r\n");
		says(doubtful[i]);
		assert_nothing_back();
		take_alone();
		assert_learnt(taken, CONNECTION_APART);
		tear_down(state);
		set_up(state);
	}
}

static void who_hangs_up_on_a_hurry_is_spared_it_next_time(void **state)
{
	(void)state;
	ride();
	says("503 what\r\n");
	engine_lost(&engine, "connection closed");
	assert_returned(back());
	assert_true(engine.confused);
	assert_int_equal(engine.mode, CONNECTION_APART);
}

static void in_a_mode_apart_nothing_rides(void **state)
{
	(void)state;
	tear_down(state);
	mode = CONNECTION_APART;
	open_with(TRANSPORT_TLS_NONE);
	greet(CHUNKED);
	assert_int_equal(engine_depth_most(&engine), 1);
	give(ahead(mail("x\r\n", TO("a@test"))));
	give(ahead(mail("x\r\n", TO("a@test"))));
	hears(MAIL RCPT("a@test"));
	says("250 ok\r\n250 ok\r\n");
	hears("BDAT 3 LAST\r\nx\r\n");
	says("250 ok\r\n");
	hears(MAIL RCPT("a@test"));
}

static void any_consent_to_data_is_one(void **state)
{
	static const char *const ways[] = {"300 go\r\n", "350 go\r\n", "355 go\r\n", "399 go\r\n"};
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		greet(PIPELINED);
		give(mail("x\r\n", TO("a@test", "b@test")));
		says("299 ok\r\n550 no\r\n256 ok\r\n");
		sent();
		says(ways[i]);
		hears("x\r\n.\r\n");
		says("200 kept\r\n");
		assert_verdict(back(), 0, VERDICT_FAILED, 550);
		assert_verdict(taken, 1, VERDICT_SENT, 200);
		tear_down(state);
		set_up(state);
	}
}

/* What was said in its turn is not undone by what comes later. */
static void a_refusal_in_its_turn_stands_when_the_step_is_lost(void **state)
{
	(void)state;
	greet(PLAIN);
	give(mail("x\r\n", TO("a@test", "b@test")));
	says("250 ok\r\n");
	says("550 5.1.1 no\r\n");
	says("250 ok\r\n");
	says("250 what\r\n");
	assert_verdict(back(), 0, VERDICT_FAILED, 550);
	assert_verdict(taken, 1, VERDICT_DEFERRED, 0);
	tear_down(state);
	set_up(state);
	greet("250-mx.test\r\n250 CHUNKING\r\n");
	give(mail("x\r\n", TO("a@test", "b@test")));
	says("250 ok\r\n");
	says("550 5.1.1 no\r\n");
	says("354 what\r\n");
	assert_false(back()->returned);
	assert_int_equal(taken->rcpt[0].verdict->code, 550);
	assert_null(taken->rcpt[1].verdict);
}

/* The host has had enough of the connection, perhaps. */
static void a_4xx_to_mail_on_a_used_connection_wants_a_fresh_one(void **state)
{
	static const char *const ways[] = {"452 4.5.3 enough\r\n", "421 4.7.0 enough\r\n",
					   "450 4.7.1 enough\r\n"};
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		greet(PIPELINED);
		carry_one();
		give(mail("y\r\n", TO("b@test")));
		give(mail("z\r\n", TO("b@test")));
		sent();
		says(ways[i]);
		assert_returned(back());
		assert_returned(back());
		assert_closed_orderly();
		assert_true(engine.renew);
		assert_int_equal(engine.enough, 1);
		assert_false(engine.confused);
		hears("QUIT\r\n");
		tear_down(state);
		set_up(state);
	}
}

static void a_4xx_behind_a_message_is_asked_again_before_that(void **state)
{
	(void)state;
	ride();
	says("452 4.5.3 enough\r\n503 what\r\n503 what\r\n503 what\r\n");
	hears("RSET\r\n");
	says("250 ok\r\n");
	hears(MAIL);
	says("452 4.5.3 enough\r\n");
	assert_returned(back());
	assert_true(engine.renew);
	assert_int_equal(engine.enough, 1);
	assert_false(engine.confused);
}

/* The host may well take what was sent behind it. */
static void a_4xx_with_others_in_flight_waits_for_those(void **state)
{
	(void)state;
	greet(CHUNKED);
	give(ahead(mail("x\r\n", TO("a@test"))));
	sent();
	says("250 ok\r\n250 ok\r\n250 kept\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	give(ahead(mail("y\r\n", TO("b@test"))));
	give(ahead(mail("x\r\n", TO("a@test"))));
	sent();
	says("451 4.3.0 not now\r\n503 what\r\n503 what\r\n");
	says("250 ok\r\n250 ok\r\n250 ok\r\n250 kept\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_string_equal(taken->rcpt[0].address, "a@test");
	assert_nothing_back();
	hears("RSET\r\n");
	says("250 ok\r\n");
	says("451 4.3.0 not now\r\n");
	assert_returned(back());
	assert_true(engine.renew);
	assert_int_equal(engine.enough, 2);
	assert_false(engine.confused);
}

static void a_4xx_to_the_first_mail_is_a_deferral(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(mail("y\r\n", TO("b@test")));
	says("452 4.5.3 enough\r\n503 what\r\n503 what\r\n");
	assert_verdict(back(), 0, VERDICT_DEFERRED, 452);
	assert_int_equal(engine.state, ENGINE_READY);
}

/* The answer of the first stands, though the reply that would have shown it to be one is gone. */
static void the_answer_of_a_chunk_stands_where_what_is_behind_it_was_thrown_away(void **state)
{
	(void)state;
	wait_long();
	greet(CHUNKED);
	give(mail("x\r\n", TO("a@test")));
	says("250 2.1.0 ok\r\n250 2.1.5 ok\r\n");
	give(mail("y\r\n",
		  TO("b@test"))); /* not ahead: its chunk waits for the answers to its envelope */
	sent();
	says("250 2.0.0 kept\r\n");
	assert_nothing_back();
	assert_in_range(engine_timeout_ms(&engine), 2000, 2100);
	engine_expired(&engine);
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_returned(back());
	assert_true(engine.confused);
	assert_int_equal(engine.mode, CONNECTION_APART);
}

static void a_chunk_that_is_under_way_is_waited_for_as_long_as_ever(void **state)
{
	(void)state;
	wait_long();
	greet(CHUNKED);
	give(ahead(mail("x\r\n", TO("a@test"))));
	give(ahead(mail("y\r\n", TO("b@test"))));
	sent();
	says("250 2.1.0 ok\r\n250 2.1.5 ok\r\n250 2.0.0 kept\r\n");
	assert_int_equal(engine_timeout_ms(&engine), LONG_MS);
	engine_drop(&engine);
	back();
	back();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(mail_refused_behind_a_message_is_asked_again),
		T(an_envelope_that_was_thrown_away_is_tried_elsewhere),
		T(what_the_host_is_slow_with_is_waited_for_as_long_as_ever),
		T(the_answer_of_a_chunk_stands_where_what_is_behind_it_was_thrown_away),
		T(a_chunk_that_is_under_way_is_waited_for_as_long_as_ever),
		T(a_sender_refused_in_its_turn_too_is_refused),
		T(a_recipient_refused_in_a_group_is_asked_again),
		T(a_recipient_that_is_spoken_of_is_believed),
		T(one_recipient_of_two_is_asked_again),
		T(what_was_sent_stays_so_when_the_second_try_breaks),
		T(data_refused_in_a_group_is_asked_again),
		T(a_dot_refused_with_another_behind_it_is_asked_again),
		T(content_that_is_spoken_of_is_believed),
		T(chunks_refused_behind_a_chunk_are_sent_again_one_by_one),
		T(an_answer_is_not_believed_when_only_rset_is_refused),
		T(a_second_try_out_of_step_is_found_out),
		T(a_rset_that_alone_is_refused_changes_nothing),
		T(a_chunk_refused_ahead_of_its_turn_is_sent_again),
		T(who_hangs_up_on_a_hurry_is_spared_it_next_time),
		T(in_a_mode_apart_nothing_rides),
		T(any_consent_to_data_is_one),
		T(a_refusal_in_its_turn_stands_when_the_step_is_lost),
		T(a_4xx_to_mail_on_a_used_connection_wants_a_fresh_one),
		T(a_4xx_behind_a_message_is_asked_again_before_that),
		T(a_4xx_with_others_in_flight_waits_for_those),
		T(a_4xx_to_the_first_mail_is_a_deferral),
	};
	return RUN_TWICE(tests);
}
