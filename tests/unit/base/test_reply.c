/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/mem.h"
#include "base/reply.h"

#include <stdlib.h>
#include <string.h>

static struct reply reply;

static int set_up(void **state)
{
	(void)state;
	reply_init(&reply);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	reply_fini(&reply);
	return 0;
}

static enum reply_result feed(const char *bytes, size_t len, size_t piece)
{
	enum reply_result r = REPLY_MORE;
	for (size_t at = 0; at < len && r == REPLY_MORE;) {
		size_t used, n = len - at < piece ? len - at : piece;
		char *exact = mem_alloc(n); /* a sanitizer sees a read beyond it */
		memcpy(exact, bytes + at, n);
		r = reply_feed(&reply, exact, n, &used);
		free(exact);
		at += used;
	}
	return r;
}

static enum reply_result parse(const char *text)
{
	reply_reset(&reply);
	return feed(text, strlen(text), 1000000);
}

static void assert_text(const char *expected)
{
	char text[REPLY_TEXT_MAX + 1];
	assert_string_equal(reply_text(&reply, text), expected);
}

static void a_line_has_a_code_and_a_text(void **state)
{
	(void)state;
	assert_int_equal(parse("250 2.1.5 ok\r\n"), REPLY_DONE);
	assert_int_equal(reply.code, 250);
	assert_string_equal(reply.dsn, "2.1.5");
	assert_text("2.1.5 ok");
}

static void an_enhanced_code_is_said_once_in_the_text(void **state)
{
	(void)state;
	parse("550-5.1.1 The account that you tried to reach does\r\n550-5.1.1 not "
	      "exist.\r\n550-5.1.1\r\n"
	      "550 5.1.1 5.1.12 is another\r\n");
	assert_text("5.1.1 The account that you tried to reach does not exist. 5.1.12 is another");
	parse("550-no\r\n550 5.1.1 such user\r\n");
	assert_string_equal(reply.dsn, "5.1.1");
	assert_text("no 5.1.1 such user");
	parse("550-5.1.1 no\r\n550 5.7.1 entry\r\n");
	assert_text("5.1.1 no 5.7.1 entry");
}

static void a_code_may_stand_alone(void **state)
{
	(void)state;
	assert_int_equal(parse("553\r\n"), REPLY_DONE);
	assert_int_equal(reply.code, 553);
	assert_text("");
	assert_int_equal(parse("553-\r\n553\r\n"), REPLY_DONE);
	assert_text("");
	assert_int_equal(parse("550 5.7.2\r\n"), REPLY_DONE);
	assert_string_equal(reply.dsn, "5.7.2");
	assert_int_equal(parse("220 \r\n"), REPLY_DONE);
}

static void lines_are_joined_by_blanks(void **state)
{
	(void)state;
	assert_int_equal(parse("550-first\r\n550-\r\n550 5.1.1 last\r\n"), REPLY_DONE);
	assert_int_equal(reply.nline, 3);
	assert_string_equal(reply.dsn, "5.1.1");
	assert_text("first 5.1.1 last");
	const char *line = reply_line(&reply, NULL);
	assert_string_equal(line, "first");
	line = reply_line(&reply, line);
	assert_string_equal(line, "");
	line = reply_line(&reply, line);
	assert_string_equal(line, "5.1.1 last");
	assert_null(reply_line(&reply, line));
}

static void lf_alone_ends_a_line(void **state)
{
	(void)state;
	assert_int_equal(parse("250-a\n250 b\n"), REPLY_DONE);
	assert_text("a b");
}

static void an_enhanced_code_of_another_class_is_none(void **state)
{
	(void)state;
	static const char *const none[] = {
		"550 2.0.0 x\r\n", "250 2.0\r\n",    "250 2.0.0x\r\n", "250 2.0000.1 x\r\n",
		"354 3.0.0 x\r\n", "250 2..0 x\r\n", "250 2.0.\r\n",   "250 2\r\n"};
	for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
		assert_int_equal(parse(none[i]), REPLY_DONE);
		assert_string_equal(reply.dsn, "");
	}
}

static void what_can_be_read_in_two_ways_is_bad(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"\r\n",
		" 250 x\r\n",
		"25\r\n",
		"2\n",
		"abc\r\n",
		"199 x\r\n",
		"600 x\r\n",
		"2500 x\r\n",
		"250_x\r\n",
		"250 a\rb\r\n",
		"250 a\r\r\n",
		"250-a\r\n251 b\r\n",
		"250-a\r\n 250 b\r\n",
		"HTTP/1.1",
		"\x16\x03\x01",
		"25 0 x\r\n",
		"250\tx\r\n",
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_int_equal(parse(bad[i]), REPLY_BAD);
		assert_non_null(reply.error);
	}
	reply_reset(&reply);
	assert_int_equal(feed("250 a\0b\r\n", 9, 100), REPLY_BAD);
}

static void eight_bits_are_let_through(void **state)
{
	(void)state;
	assert_int_equal(parse("250 gr\xc3\xbc\xdf\x01\r\n"), REPLY_DONE);
	assert_text("gr\xc3\xbc\xdf\x01");
}

static void bytes_behind_a_reply_are_left(void **state)
{
	(void)state;
	const char *two = "250 a\r\n354 b\r\n";
	size_t used;
	assert_int_equal(reply_feed(&reply, two, strlen(two), &used), REPLY_DONE);
	assert_int_equal(used, 7);
	reply_reset(&reply);
	assert_int_equal(reply_feed(&reply, two + used, strlen(two) - used, &used), REPLY_DONE);
	assert_int_equal(reply.code, 354);
}

static void pieces_of_any_size_give_the_same(void **state)
{
	(void)state;
	const char *text = "250-mx.test\r\n250-SIZE 1000\n250-PIPELINING\r\n250 2.0.0 DSN\r\n";
	for (size_t piece = 1; piece <= strlen(text); piece++) {
		reply_reset(&reply);
		assert_int_equal(feed(text, strlen(text), piece), REPLY_DONE);
		assert_int_equal(reply.nline, 4);
		assert_text("mx.test SIZE 1000 PIPELINING 2.0.0 DSN");
	}
}

static void a_long_line_is_cut(void **state)
{
	(void)state;
	char *line = mem_alloc(10001);
	memset(line, 'x', 10000);
	memcpy(line, "250 ", 4);
	line[9999] = '\n';
	line[10000] = '\0';
	assert_int_equal(parse(line), REPLY_DONE);
	assert_int_equal(strlen(reply_line(&reply, NULL)), REPLY_LINE_MAX);
	char text[REPLY_TEXT_MAX + 1];
	assert_int_equal(strlen(reply_text(&reply, text)), REPLY_TEXT_MAX);
	free(line);
}

static void a_line_without_end_is_bad(void **state)
{
	(void)state;
	size_t used, total = 0;
	reply_feed(&reply, "250 ", 4, &used);
	char block[1000];
	memset(block, 'x', sizeof block);
	while (reply_feed(&reply, block, sizeof block, &used) == REPLY_MORE)
		total += used;
	assert_true(total < REPLY_BYTES_MAX);
	assert_int_equal(reply.result, REPLY_BAD);
}

static void lines_without_end_are_bad(void **state)
{
	(void)state;
	int lines = 0;
	size_t used;
	while (reply_feed(&reply, "250-x\r\n", 7, &used) == REPLY_MORE)
		lines++;
	assert_int_equal(lines, REPLY_LINES_MAX);
	assert_int_equal(reply.result, REPLY_BAD);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(a_line_has_a_code_and_a_text),
		T(an_enhanced_code_is_said_once_in_the_text),
		T(a_code_may_stand_alone),
		T(lines_are_joined_by_blanks),
		T(lf_alone_ends_a_line),
		T(an_enhanced_code_of_another_class_is_none),
		T(what_can_be_read_in_two_ways_is_bad),
		T(eight_bits_are_let_through),
		T(bytes_behind_a_reply_are_left),
		T(pieces_of_any_size_give_the_same),
		T(a_long_line_is_cut),
		T(a_line_without_end_is_bad),
		T(lines_without_end_are_bad),
	};
	return RUN(tests);
}
