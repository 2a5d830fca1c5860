/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpc/script.h"

#define ONE "MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\n"
#define NEXT "RSET\r\n" ONE
#define BDAT "BDAT 3 LAST\r\n"

static void a_host_that_takes_chunks_may_get_as_many_as_are_configured(void **state)
{
	(void)state;
	greet(CHUNKED);
	assert_int_equal(engine_depth(&engine), 2);
	assert_int_equal(engine_depth_most(&engine), 17);
	transport.pipeline_depth = 1;
	assert_int_equal(engine_depth(&engine), 1);
	assert_int_equal(engine_depth_most(&engine), 1);
}

static void chunks_are_not_for_a_host_that_lost_count(void **state)
{
	(void)state;
	tear_down(state);
	mode = CONNECTION_NO_CHUNKING;
	open_with(TRANSPORT_TLS_NONE);
	greet(CHUNKED);
	assert_int_equal(engine_depth_most(&engine), 2);
	give(ahead(mail("x\r\n", TO("a@test"))));
	hears(ONE "DATA\r\n");
}

static void many_messages_go_before_the_first_reply(void **state)
{
	(void)state;
	greet(CHUNKED);
	for (int i = 0; i < 4; i++)
		give(ahead(mail("x\r\n", TO("a@test"))));
	hears(ONE BDAT "x\r\n" NEXT BDAT "x\r\n" NEXT BDAT "x\r\n" NEXT BDAT "x\r\n");
	for (int i = 0; i < 4; i++) {
		if (i > 0)
			says("250 2.0.0 reset\r\n");
		says("250 2.1.0 ok\r\n250 2.1.5 ok\r\n");
		says("250 2.0.0 kept\r\n");
	}
	for (int i = 0; i < 4; i++)
		assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_false(taken->wasted);
	hears("");
}

/* The reply behind an answer, which shows that it was one, may come much later: it is that to what was
 * sent when the pipeline had room. */
static void the_next_begins_with_an_answer_not_when_that_is_believed(void **state)
{
	(void)state;
	transport.pipeline_depth = 2;
	greet(CHUNKED);
	for (int i = 0; i < 3; i++)
		give(ahead(mail("x\r\n", TO("a@test"))));
	hears(ONE BDAT "x\r\n" NEXT BDAT "x\r\n");
	says("250 2.1.0 ok\r\n250 2.1.5 ok\r\n");
	hears("");
	says("250 2.0.0 kept\r\n");
	assert_nothing_back();
	hears(NEXT BDAT "x\r\n");
	give(ahead(mail("x\r\n", TO("a@test"))));
	says("250 2.0.0 reset\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	hears("");
	says("250 2.1.0 ok\r\n250 2.1.5 ok\r\n250 2.0.0 kept\r\n");
	hears(NEXT BDAT "x\r\n");
}

static void a_chunk_is_neither_stuffed_nor_ended_by_a_dot(void **state)
{
	(void)state;
	greet(CHUNKED);
	give(ahead(mail(".\r\n..x\r\n", TO("a@test"))));
	hears(ONE "BDAT 8 LAST\r\n.\r\n..x\r\n");
	says("250 ok\r\n250 ok\r\n");
	give(ahead(mail("", TO("a@test"))));
	hears("RSET\r\n" ONE "BDAT 0 LAST\r\n");
}

static void one_that_may_not_go_ahead_waits_for_its_envelope(void **state)
{
	(void)state;
	greet(CHUNKED);
	give(mail("x\r\n", TO("a@test", "b@test")));
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nRCPT TO:<b@test>\r\n");
	give(mail("y\r\n", TO("a@test")));
	says("250 ok\r\n250 ok\r\n");
	hears("");
	says("550 5.1.1 no\r\n");
	hears(BDAT "x\r\n" NEXT);
	says("250 kept\r\n250 reset\r\n250 ok\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_verdict(taken, 1, VERDICT_FAILED, 550);
	hears("");
	says("250 ok\r\n");
	hears(BDAT "y\r\n");
}

static void nothing_is_uploaded_for_nobody_that_need_not_be(void **state)
{
	(void)state;
	greet(CHUNKED);
	give(mail("x\r\n", TO("a@test")));
	sent();
	says("250 ok\r\n550 5.1.1 no\r\n");
	assert_verdict(back(), 0, VERDICT_FAILED, 550);
	assert_false(taken->wasted);
	give(mail("x\r\n", TO("a@test")));
	hears(NEXT);
	says("250 ok\r\n550 5.7.1 no\r\n503 what\r\n");
	assert_verdict(back(), 0, VERDICT_FAILED, 550);
	give(mail("x\r\n", TO("a@test")));
	hears(ONE); /* there is no transaction to reset */
}

static void without_pipelining_a_chunk_saves_the_wait_for_354(void **state)
{
	(void)state;
	greet("250-mx.test\r\n250 CHUNKING\r\n");
	assert_int_equal(engine_depth_most(&engine), 1);
	give(ahead(mail("x\r\n", TO("a@test"))));
	give(ahead(mail("y\r\n", TO("a@test"))));
	hears("MAIL FROM:<s@test>\r\n");
	says("250 ok\r\n");
	hears("RCPT TO:<a@test>\r\n");
	says("250 ok\r\n");
	hears(BDAT "x\r\n");
	says("250 kept\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	hears("MAIL FROM:<s@test>\r\n");
}

/* What hosts say to a chunk for nobody: a refusal, or that they took it. */
static void a_chunk_for_nobody_is_nobodys_whatever_the_host_says(void **state)
{
	static const char *const ways[] = {"503 5.5.1 no recipients\r\n", "554 5.5.1 none\r\n",
					   "451 later\r\n", "250 2.0.0 kept\r\n"};
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		greet(CHUNKED);
		give(ahead(mail("x\r\n", TO("a@test", "b@test"))));
		give(ahead(mail("y\r\n", TO("a@test"))));
		sent();
		says("250 2.1.0 ok\r\n550 5.1.1 no\r\n450 4.2.1 later\r\n");
		assert_nothing_back();
		says(ways[i]);
		const struct delivery *d = back();
		assert_verdict(d, 0, VERDICT_FAILED, 550);
		assert_verdict(d, 1, VERDICT_DEFERRED, 450);
		assert_true(d->wasted);
		says("250 2.0.0 reset\r\n250 2.1.0 ok\r\n250 2.1.5 ok\r\n250 2.0.0 kept\r\n");
		assert_verdict(back(), 0, VERDICT_SENT, 250);
		give(mail("z\r\n", TO("a@test")));
		hears(ONE);
		tear_down(state);
		set_up(state);
	}
}

static void after_a_chunk_for_nobody_the_next_begins_with_reset(void **state)
{
	static const char *const ways[] = {"503 none\r\n", "250 kept\r\n"};
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		greet(CHUNKED);
		give(ahead(mail("x\r\n", TO("a@test"))));
		sent();
		says("250 ok\r\n550 no\r\n");
		says(ways[i]);
		assert_verdict(back(), 0, VERDICT_FAILED, 550);
		give(ahead(mail("y\r\n", TO("a@test"))));
		hears(NEXT BDAT "y\r\n");
		tear_down(state);
		set_up(state);
	}
}

static void a_refused_sender_counts_for_all(void **state)
{
	(void)state;
	greet(CHUNKED);
	give(ahead(mail("x\r\n", TO("a@test", "b@test"))));
	sent();
	says("450 4.7.1 later\r\n503 what\r\n250 odd\r\n503 what\r\n");
	assert_verdict(back(), 0, VERDICT_DEFERRED, 450);
	assert_verdict(taken, 1, VERDICT_DEFERRED, 450);
	assert_true(taken->wasted);
}

static void a_refused_chunk_counts_for_those_accepted(void **state)
{
	static const struct {
		const char *said;
		int code;
		enum verdict_class class;
	} ways[] = {{"552 5.3.4 big\r\n", 552, VERDICT_FAILED},
		    {"452 4.3.1 full\r\n", 452, VERDICT_DEFERRED}};
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		greet(CHUNKED);
		give(ahead(mail("x\r\n", TO("a@test", "b@test"))));
		sent();
		says("250 ok\r\n550 5.1.1 no\r\n250 ok\r\n");
		says(ways[i].said);
		assert_verdict(back(), 0, VERDICT_FAILED, 550);
		assert_verdict(taken, 1, ways[i].class, ways[i].code);
		assert_false(taken->wasted);
		give(ahead(mail("y\r\n", TO("a@test"))));
		hears(NEXT BDAT "y\r\n");
		tear_down(state);
		set_up(state);
	}
}

static void an_answer_is_believed_when_the_next_one_fits(void **state)
{
	(void)state;
	greet(CHUNKED);
	give(ahead(mail("x\r\n", TO("a@test"))));
	give(ahead(mail("y\r\n", TO("a@test"))));
	sent();
	says("250 2.1.0 ok\r\n250 2.1.5 ok\r\n250 2.0.0 kept\r\n");
	assert_nothing_back();
	says("250 2.0.0 reset\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	says("250 2.1.0 ok\r\n250 2.1.5 ok\r\n250 2.0.0 kept\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
}

static void binary_content_needs_both_keywords(void **state)
{
	(void)state;
	greet("250-mx\r\n250-PIPELINING\r\n250-CHUNKING\r\n250-8BITMIME\r\n250 BINARYMIME\r\n");
	struct delivery *d = ahead(mail("\r.\n", TO("a@test")));
	d->body = BODY_BINARYMIME;
	give(d);
	hears("MAIL FROM:<s@test> BODY=BINARYMIME\r\nRCPT TO:<a@test>\r\n" BDAT "\r.\n");
	tear_down(state);
	set_up(state);
	greet(CHUNKED);
	d = mail("\r.\n", TO("a@test"));
	d->body = BODY_BINARYMIME;
	give(d);
	hears("");
	assert_verdict(back(), 0, VERDICT_FAILED, 554);
	assert_string_equal(taken->rcpt[0].verdict->dsn, "5.6.3");
}

static void binary_content_waits_while_a_host_is_spared_chunks(void **state)
{
	(void)state;
	tear_down(state);
	mode = CONNECTION_NO_CHUNKING;
	open_with(TRANSPORT_TLS_NONE);
	greet("250-mx\r\n250-CHUNKING\r\n250 BINARYMIME\r\n");
	struct delivery *d = mail("\r.\n", TO("a@test"));
	d->body = BODY_BINARYMIME;
	give(d);
	assert_verdict(back(), 0, VERDICT_DEFERRED, 0);
}

static void large_chunks_are_written_as_there_is_room(void **state)
{
	(void)state;
	enum { SIZE = 1 << 20 };
	char *text = mem_alloc(SIZE + 1);
	memset(text, 'x', SIZE);
	text[SIZE] = '\0';
	greet(CHUNKED);
	give(ahead(mail(text, TO("a@test"))));
	give(ahead(mail(text, TO("a@test"))));
	free(text);
	size_t total = 0;
	while (engine_sending(&engine)) {
		assert_true(buf_len(&out) < 200 << 10);
		total += buf_len(&out);
		sent();
		engine_resume(&engine);
	}
	total += buf_len(&out);
	assert_int_equal(total, 2 * SIZE + strlen(ONE NEXT) + 2 * strlen("BDAT 1048576 LAST\r\n"));
	assert_int_equal(engine_timeout_ms(&engine), 5);
	says("250 ok\r\n250 ok\r\n");
	assert_int_equal(engine_timeout_ms(&engine), 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_host_that_takes_chunks_may_get_as_many_as_are_configured),
		T(chunks_are_not_for_a_host_that_lost_count),
		T(many_messages_go_before_the_first_reply),
		T(the_next_begins_with_an_answer_not_when_that_is_believed),
		T(a_chunk_is_neither_stuffed_nor_ended_by_a_dot),
		T(one_that_may_not_go_ahead_waits_for_its_envelope),
		T(nothing_is_uploaded_for_nobody_that_need_not_be),
		T(without_pipelining_a_chunk_saves_the_wait_for_354),
		T(a_chunk_for_nobody_is_nobodys_whatever_the_host_says),
		T(after_a_chunk_for_nobody_the_next_begins_with_reset),
		T(a_refused_sender_counts_for_all),
		T(a_refused_chunk_counts_for_those_accepted),
		T(an_answer_is_believed_when_the_next_one_fits),
		T(binary_content_needs_both_keywords),
		T(binary_content_waits_while_a_host_is_spared_chunks),
		T(large_chunks_are_written_as_there_is_room),
	};
	return RUN_TWICE(tests);
}
