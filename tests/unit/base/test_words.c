/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/words.h"

#include <stdlib.h>

static void expect_line(const char **text, const char *expected)
{
	char *line = words_line(text);
	assert_non_null(line);
	assert_string_equal(line, expected);
	free(line);
}

static void a_text_is_taken_line_by_line(void **state)
{
	(void)state;
	const char *text = "one\n\ntwo words\r\nlast";
	expect_line(&text, "one");
	expect_line(&text, "");
	expect_line(&text, "two words\r");
	expect_line(&text, "last");
	assert_null(words_line(&text));
	assert_null(words_line(&text));
}

static void an_end_of_line_at_the_end_begins_no_other(void **state)
{
	(void)state;
	const char *text = "one\n", *nothing = "";
	expect_line(&text, "one");
	assert_null(words_line(&text));
	assert_null(words_line(&nothing));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_is_taken_line_by_line),
		cmocka_unit_test(an_end_of_line_at_the_end_begins_no_other),
	};
	return RUN(tests);
}
