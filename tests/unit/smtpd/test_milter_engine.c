/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpd/unit.h"

#include "smtpd/milter/milter_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct milter_engine engine;
static struct buf in, out;
static struct milter_answer answer;

static int setup(void **state)
{
	(void)state;
	milter_engine_init(&engine);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	milter_engine_fini(&engine);
	buf_fini(&in);
	buf_fini(&out);
	return 0;
}

static void packet(char command, const void *data, size_t len)
{
	milter_put_number(&in, (uint32_t)len + 1, 4);
	buf_append(&in, &command, 1);
	buf_append(&in, data, len);
}

static enum milter_says take(void)
{
	return milter_engine_take(&engine, &in, &answer);
}

static void negotiate(uint32_t version, uint32_t actions, uint32_t steps)
{
	struct buf data = {0};
	milter_engine_hello(&engine, &out);
	milter_put_number(&data, version, 4);
	milter_put_number(&data, actions, 4);
	milter_put_number(&data, steps, 4);
	packet('O', buf_data(&data), buf_len(&data));
	buf_fini(&data);
}

static void ready(uint32_t actions, uint32_t steps)
{
	negotiate(MILTER_VERSION, actions, steps);
	assert_int_equal(take(), MILTER_SAYS_READY);
	buf_clear(&out);
}

static void ask(enum milter_event event)
{
	assert_true(milter_engine_ask(&engine, event, NULL, 0, &out));
}

static enum milter_says say(char command, const char *data, size_t len)
{
	packet(command, data, len);
	return take();
}

static void what_was_not_offered_does_not_hold(void **state)
{
	(void)state;
	ready(UINT32_MAX, UINT32_MAX & ~(uint32_t)MILTER_NO_BODY);
	assert_int_equal(engine.actions, MILTER_ACTIONS);
	assert_int_equal(engine.steps, MILTER_STEPS & ~MILTER_NO_BODY);
	assert_true(milter_engine_wants(&engine, MILTER_BODY));
	assert_false(milter_engine_wants(&engine, MILTER_HEADER));
	assert_true(milter_engine_wants(&engine, MILTER_END_OF_BODY));
}

static void versions_before_2_and_after_6_are_refused(void **state)
{
	static const uint32_t bad[] = {0, 1, 7, UINT32_MAX};
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		negotiate(bad[i], 0, 0);
		assert_int_equal(take(), MILTER_SAYS_FAULT);
		milter_engine_fini(&engine);
		milter_engine_init(&engine);
	}
	negotiate(2, 0, 0);
	assert_int_equal(take(), MILTER_SAYS_READY);
}

static void what_its_version_does_not_have_no_filter_is_told(void **state)
{
	(void)state;
	for (uint32_t version = MILTER_VERSION_LEAST; version <= MILTER_VERSION; version++) {
		negotiate(version, 0, 0);
		assert_int_equal(take(), MILTER_SAYS_READY);
		for (int event = 0; event < MILTER_EVENT_COUNT; event++) {
			uint32_t since = event == MILTER_DATA ? 4 : event == MILTER_UNKNOWN ? 3 : 2;
			assert_int_equal(milter_engine_wants(&engine, (enum milter_event)event),
					 version >= since);
		}
		milter_engine_fini(&engine);
		milter_engine_init(&engine);
	}
}

static void packets_may_come_byte_by_byte(void **state)
{
	(void)state;
	ready(MILTER_ADD_HEADER, 0);
	ask(MILTER_END_OF_BODY);
	struct buf all = in;
	in = (struct buf){0};
	packet('h', "X\0y", 4);
	packet('c', NULL, 0);
	struct buf bytes = in;
	in = all;
	enum milter_says says[2];
	int n = 0;
	while (buf_len(&bytes) > 0) {
		buf_append(&in, buf_data(&bytes), 1);
		buf_consume(&bytes, 1);
		enum milter_says s = take();
		if (s != MILTER_SAYS_NOTHING)
			says[n++] = s;
		if (s == MILTER_SAYS_CHANGE)
			assert_string_equal(answer.text[1], "y");
	}
	assert_int_equal(n, 2);
	assert_int_equal(says[0], MILTER_SAYS_CHANGE);
	assert_int_equal(says[1], MILTER_SAYS_ANSWER);
	buf_fini(&bytes);
}

static void lengths_that_no_packet_has_are_found_at_once(void **state)
{
	static const uint32_t bad[] = {0, MILTER_PACKET_MAX + 1, UINT32_MAX};
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		ready(0, 0);
		ask(MILTER_HELO);
		milter_put_number(&in, bad[i], 4);
		buf_append(&in, "b", 1);
		assert_int_equal(take(), MILTER_SAYS_FAULT);
		assert_int_equal(take(), MILTER_SAYS_FAULT);
		teardown(NULL);
		setup(NULL);
	}
}

static void no_other_packet_than_a_new_body_may_be_longer(void **state)
{
	(void)state;
	ready(MILTER_ADD_HEADER | MILTER_CHANGE_BODY, 0);
	ask(MILTER_END_OF_BODY);
	milter_put_number(&in, MILTER_PACKET_MAX + 1, 4);
	buf_append(&in, "h", 1);
	assert_int_equal(take(), MILTER_SAYS_FAULT);
}

/* Of the body in one packet, as rspamd sends it: how much has been handed on. */
static size_t take_body(struct buf *said, size_t step, char letter)
{
	size_t had = 0;
	while (buf_len(said) > 0) {
		size_t len = step < buf_len(said) ? step : buf_len(said);
		buf_append(&in, buf_data(said), len);
		buf_consume(said, len);
		enum milter_says s;
		while ((s = take()) == MILTER_SAYS_CHANGE) {
			assert_int_equal(answer.change, MILTER_CHANGE_TO_BODY);
			assert_true(answer.body_len <= MILTER_BODY_CHUNK);
			for (size_t i = 0; i < answer.body_len; i++)
				assert_int_equal(answer.body[i], letter);
			had += answer.body_len;
		}
		assert_int_equal(s, buf_len(said) ? MILTER_SAYS_NOTHING : MILTER_SAYS_ANSWER);
	}
	return had;
}

static void a_new_body_may_be_one_packet_of_any_length(void **state)
{
	static const size_t lengths[] = {MILTER_BODY_CHUNK, MILTER_BODY_CHUNK + 1,
					 2 * MILTER_BODY_CHUNK, 3 * MILTER_BODY_CHUNK + 7};
	static const size_t steps[] = {1, 5, MILTER_BODY_CHUNK, 10 * MILTER_BODY_CHUNK};
	char *body = malloc(lengths[3]);
	(void)state;
	memset(body, 'x', lengths[3]);
	ready(MILTER_CHANGE_BODY, 0);
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
			ask(MILTER_END_OF_BODY);
			packet('b', body, lengths[i]);
			packet('c', NULL, 0);
			struct buf said = in;
			in = (struct buf){0};
			assert_int_equal(take_body(&said, steps[k], 'x'), lengths[i]);
			buf_fini(&said);
		}
	free(body);
}

static void an_answer_must_have_been_asked_for(void **state)
{
	(void)state;
	ready(0, 0);
	assert_int_equal(say('c', NULL, 0), MILTER_SAYS_FAULT);
	teardown(NULL);
	setup(NULL);
	ready(0, 0);
	ask(MILTER_MAIL);
	packet('c', NULL, 0);
	packet('c', NULL, 0);
	assert_int_equal(take(), MILTER_SAYS_FAULT);
}

static void silent_events_have_none(void **state)
{
	(void)state;
	ready(0, MILTER_SILENT_HEADER);
	assert_false(milter_engine_ask(&engine, MILTER_HEADER, "a\0b", 4, &out));
	assert_int_equal(engine.state, MILTER_IDLE);
	ask(MILTER_END_OF_HEADER);
}

static void each_change_needs_its_action(void **state)
{
	static const struct {
		char command;
		const char *data;
		size_t len;
		uint32_t action;
	} change[] = {
		{'h', "X\0y", 4, MILTER_ADD_HEADER},
		{'i', "\0\0\0\1X\0y", 8, MILTER_ADD_HEADER},
		{'m', "\0\0\0\1X\0", 7, MILTER_CHANGE_HEADER},
		{'b', "body", 4, MILTER_CHANGE_BODY},
		{'e', "<a@b>", 6, MILTER_CHANGE_SENDER},
		{'+', "<a@b>", 6, MILTER_ADD_RECIPIENT},
		{'2', "<a@b>\0NOTIFY=NEVER", 19, MILTER_ADD_RECIPIENT_ARGS},
		{'-', "<a@b>", 6, MILTER_DELETE_RECIPIENT},
		{'q', "odd", 4, MILTER_QUARANTINE},
	};
	(void)state;
	for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
		for (int allowed = 0; allowed < 2; allowed++) {
			ready(allowed ? change[i].action : MILTER_ACTIONS & ~change[i].action, 0);
			ask(MILTER_END_OF_BODY);
			assert_int_equal(say(change[i].command, change[i].data, change[i].len),
					 allowed ? MILTER_SAYS_CHANGE : MILTER_SAYS_FAULT);
			teardown(NULL);
			setup(NULL);
		}
	}
}

static enum milter_says add_header(const char *name, const char *value)
{
	struct buf data = {0};
	teardown(NULL);
	setup(NULL);
	ready(MILTER_ADD_HEADER, 0);
	ask(MILTER_END_OF_BODY);
	milter_put_text(&data, name);
	milter_put_text(&data, value);
	enum milter_says says = say('h', buf_data(&data), buf_len(&data));
	buf_fini(&data);
	return says;
}

static void a_field_ends_where_it_should(void **state)
{
	static const char *const good[] = {"",	  "x",	   "a\n b", "a\r\n\tb", "\xc3\xa9",
					   "a\n", "a\r\n", "a\n ",  "a\n \n b", "a\n\n b"};
	static const char *const bad[] = {"a\nb", "a\r\nb", "a\rb", "a\n\nb", "a\n \nb", "a\r"};
	static const char *const bad_names[] = {"", "a b", "a:", "a\nb", "\xc3\xa9"};
	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_int_equal(add_header("X", good[i]), MILTER_SAYS_CHANGE);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(add_header("X", bad[i]), MILTER_SAYS_FAULT);
	for (size_t i = 0; i < sizeof bad_names / sizeof *bad_names; i++)
		assert_int_equal(add_header(bad_names[i], "x"), MILTER_SAYS_FAULT);
}

static enum milter_says reply(const char *text)
{
	teardown(NULL);
	setup(NULL);
	ready(0, 0);
	ask(MILTER_RCPT);
	return say('y', text, strlen(text) + 1);
}

static void replies_are_whole_lines(void **state)
{
	static const char *const bad[] = {"",	    "250 ok",	      "350 go",
					  "55",	    "550 4.7.1 no",   "450 5.1.1 x",
					  "5x0 no", "550-a\r\n551 b", "550 a\r\n550 b",
					  "550-a",  "550_b no"};
	(void)state;
	assert_int_equal(reply("550 5.7.1 no"), MILTER_SAYS_ANSWER);
	assert_string_equal(answer.reply, "550 5.7.1 no\r\n");
	assert_int_equal(reply("450-4.7.1 a\r\n450 4.7.1 b%%\t\xff"), MILTER_SAYS_ANSWER);
	assert_string_equal(answer.reply, "450-4.7.1 a\r\n450 4.7.1 b%??\r\n");
	assert_int_equal(reply("554"), MILTER_SAYS_ANSWER);
	assert_string_equal(answer.reply, "554 5.0.0 \r\n");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(reply(bad[i]), MILTER_SAYS_FAULT);
}

static void each_line_of_a_reply_has_an_enhanced_code(void **state)
{
	(void)state;
	assert_int_equal(reply("550 looks like spam"), MILTER_SAYS_ANSWER);
	assert_string_equal(answer.reply, "550 5.0.0 looks like spam\r\n");
	assert_int_equal(reply("451-one\r\n451-\r\n451 two"), MILTER_SAYS_ANSWER);
	assert_string_equal(answer.reply, "451-4.0.0 one\r\n451-4.0.0 \r\n451 4.0.0 two\r\n");
	assert_int_equal(reply("554-5.7.123 one\r\n554 two"), MILTER_SAYS_ANSWER);
	assert_string_equal(answer.reply, "554-5.7.123 one\r\n554 5.7.123 two\r\n");
	assert_int_equal(reply("550-5.7.1\n550 5.7.1 two"), MILTER_SAYS_ANSWER);
	assert_string_equal(answer.reply, "550-5.7.1\r\n550 5.7.1 two\r\n");
}

/* Nothing is read of what lies behind the end of the packet, which for some length is that of the memory too: there a
 * sanitizer sees it. */
static void a_line_shorter_than_a_code_is_none(void **state)
{
	(void)state;
	char text[MILTER_REPLY_LINE_MAX] = "550-";
	for (size_t len = 5; len < sizeof text - 3; len++) {
		text[len - 1] = 'x';
		for (size_t digits = 1; digits <= 2; digits++) {
			snprintf(text + len, 4, "\n%.*s", (int)digits, "55");
			assert_int_equal(reply(text), MILTER_SAYS_FAULT);
			assert_int_equal(engine.state, MILTER_FAULTY);
			milter_engine_fini(&engine);
			milter_engine_init(&engine);
		}
	}
}

static void a_long_reply_is_none(void **state)
{
	char text[MILTER_REPLY_LINE_MAX + 2];
	(void)state;
	memset(text, 'x', sizeof text);
	memcpy(text, "550 ", 4);
	text[MILTER_REPLY_LINE_MAX] = '\0';
	assert_int_equal(reply(text), MILTER_SAYS_ANSWER);
	text[MILTER_REPLY_LINE_MAX] = 'x';
	text[MILTER_REPLY_LINE_MAX + 1] = '\0';
	assert_int_equal(reply(text), MILTER_SAYS_FAULT);
}

static const char *value(void *owner, const char *name)
{
	(void)owner;
	return strcmp(name, "j") == 0 ? "relay.test" : strcmp(name, "i") == 0 ? "1" : NULL;
}

static void a_list_of_macros_that_is_none_is_a_fault(void **state)
{
	static const char numbers[] = "\0\0\0\6\0\0\0\0\0\0\0\0";
	static const struct {
		const char *text;
		size_t len;
	} bad[] = {{"\0\0\0\7i\0", 6}, {"\0\0\0\1ij", 6}, {"\0\0\0\1", 4}, {"\0\0", 2}};
	(void)state;
	for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
		struct buf data = {0};
		bool cut = i == sizeof bad / sizeof *bad;
		milter_engine_hello(&engine, &out);
		buf_append(&data, numbers, cut ? 11 : 12);
		if (!cut)
			buf_append(&data, bad[i].text, bad[i].len);
		packet('O', buf_data(&data), buf_len(&data));
		assert_int_equal(take(), MILTER_SAYS_FAULT);
		buf_fini(&data);
		milter_engine_fini(&engine);
		milter_engine_init(&engine);
	}
}

static void macros_are_of_its_choice(void **state)
{
	static const char list[] = "\0\0\0\2{x}, i,j";
	struct buf data = {0};
	(void)state;
	milter_put_number(&data, 6, 4);
	milter_put_number(&data, 0, 4);
	milter_put_number(&data, 0, 4);
	buf_append(&data, list, sizeof list);
	packet('O', buf_data(&data), buf_len(&data));
	buf_fini(&data);
	assert_int_equal(take(), MILTER_SAYS_READY);
	milter_engine_macros(&engine, MILTER_MAIL, value, NULL, &out);
	static const char wanted[] = "\0\0\0\x13"
				     "DMi\0"
				     "1\0j\0relay.test";
	assert_int_equal(buf_len(&out), sizeof wanted);
	assert_memory_equal(buf_data(&out), wanted, sizeof wanted);
	buf_clear(&out);
	milter_engine_macros(&engine, MILTER_HEADER, value, NULL, &out);
	assert_int_equal(buf_len(&out), 0);
}

static void what_is_discarded_or_skipped_is_there(void **state)
{
	(void)state;
	ready(0, MILTER_SKIP);
	ask(MILTER_HELO);
	assert_int_equal(say('d', NULL, 0), MILTER_SAYS_FAULT);
	teardown(NULL);
	setup(NULL);
	ready(0, MILTER_SKIP);
	ask(MILTER_END_OF_BODY);
	assert_int_equal(say('s', NULL, 0), MILTER_SAYS_FAULT);
	teardown(NULL);
	setup(NULL);
	ready(0, MILTER_SKIP);
	ask(MILTER_BODY);
	assert_int_equal(say('s', NULL, 0), MILTER_SAYS_ANSWER);
	assert_int_equal(answer.kind, MILTER_ANSWER_SKIP);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(what_was_not_offered_does_not_hold),
		T(versions_before_2_and_after_6_are_refused),
		T(what_its_version_does_not_have_no_filter_is_told),
		T(packets_may_come_byte_by_byte),
		T(lengths_that_no_packet_has_are_found_at_once),
		T(no_other_packet_than_a_new_body_may_be_longer),
		T(a_new_body_may_be_one_packet_of_any_length),
		T(an_answer_must_have_been_asked_for),
		T(silent_events_have_none),
		T(each_change_needs_its_action),
		T(a_field_ends_where_it_should),
		T(replies_are_whole_lines),
		T(each_line_of_a_reply_has_an_enhanced_code),
		T(a_line_shorter_than_a_code_is_none),
		T(a_long_reply_is_none),
		T(a_list_of_macros_that_is_none_is_a_fault),
		T(macros_are_of_its_choice),
		T(what_is_discarded_or_skipped_is_there),
	};
	return RUN(tests);
}
