/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/utf8.h"

#include <string.h>

static void a_character_has_one_to_four_bytes(void **state)
{
	(void)state;
	assert_int_equal(utf8_length("a"), 1);
	assert_int_equal(utf8_length("\xc3\xa4"), 2);
	assert_int_equal(utf8_length("\xe2\x82\xac"), 3);
	assert_int_equal(utf8_length("\xf0\x9f\x93\xa7"), 4);
	assert_int_equal(utf8_length(""), 0);
}

static void what_rfc_3629_forbids_is_no_character(void **state)
{
	(void)state;
	static const char *const bad[] = {"\x80",
					  "\xff",
					  "\xc0\xaf",
					  "\xc3",
					  "\xe0\x80\xaf",
					  "\xe2\x82",
					  "\xed\xa0\x80",
					  "\xf0\x80\x80\xaf",
					  "\xf4\x90\x80\x80",
					  "\xf5\x80\x80\x80"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(utf8_length(bad[i]), 0);
}

static void a_cleaned_text_never_ends_within_a_character(void **state)
{
	(void)state;
	char to[8];
	assert_int_equal(utf8_clean(to, "ab\xe2\x82\xac", 4), 2);
	assert_string_equal(to, "ab");
	assert_int_equal(utf8_clean(to, "ab\xe2\x82\xac", 5), 5);
	assert_int_equal(utf8_clean(to, "a\tb\xc2\x9f", 7), 4);
	assert_string_equal(to, "a?b?");
}

static void what_a_terminal_obeys_is_not_shown(void **state)
{
	(void)state;
	static const char *const bad[] = {"",	  "\t",	      "\n",	  "\x1b[2J", "\x7f",
					  "\x9b", "\xc2\x80", "\xc2\x9b", "\xc2",    "\xe4 "};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(utf8_shown(bad[i]), 0);
	assert_int_equal(utf8_shown(" "), 1);
	assert_int_equal(utf8_shown("\xc2\xa0"), 2);
	assert_int_equal(utf8_shown("\xe2\x82\xac"), 3);
	assert_int_equal(utf8_shown("\xf0\x9f\x93\xa7"), 4);
}

static void a_byte_beyond_ascii_is_found_wherever_it_is(void **state)
{
	(void)state;
	char bytes[40];
	memset(bytes, 'x', sizeof bytes);
	bytes[3] = '\0';
	assert_false(utf8_beyond_ascii(bytes, sizeof bytes));
	assert_false(utf8_beyond_ascii(NULL, 0));
	for (size_t i = 0; i < sizeof bytes; i++) {
		bytes[i] = '\x80';
		assert_true(utf8_beyond_ascii(bytes, i + 1));
		assert_false(utf8_beyond_ascii(bytes, i));
		bytes[i] = 'x';
	}
}

static void each_character_beyond_ascii_is_one_question_mark(void **state)
{
	(void)state;
	const char text[] = "a\xc3\xa4 \xe2\x82\xac\xf0\x9f\x93\xa7\r\n";
	struct buf to = {0};
	utf8_put_ascii(&to, text, strlen(text));
	assert_string_equal(buf_cstr(&to), "a? ??\r\n");
	buf_fini(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_character_has_one_to_four_bytes),
		cmocka_unit_test(what_rfc_3629_forbids_is_no_character),
		cmocka_unit_test(a_cleaned_text_never_ends_within_a_character),
		cmocka_unit_test(what_a_terminal_obeys_is_not_shown),
		cmocka_unit_test(a_byte_beyond_ascii_is_found_wherever_it_is),
		cmocka_unit_test(each_character_beyond_ascii_is_one_question_mark),
	};
	return RUN(tests);
}
