/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpd/unit.h"

#include "smtpd/dovecot_line.h"

#include <stdio.h>

static char room[200];

static struct dovecot_line line(const char *text)
{
	struct dovecot_line l;
	snprintf(room, sizeof room, "%s", text);
	dovecot_line_init(&l, room);
	return l;
}

static void words_stand_between_tabs(void **state)
{
	struct dovecot_line l = line("OK\t7\tuser=anna b\t\tnologin");
	uint32_t id;
	bool more;
	(void)state;
	assert_string_equal(dovecot_line_next(&l, NULL), "OK");
	assert_true(dovecot_line_number(&l, &id));
	assert_int_equal(id, 7);
	assert_string_equal(dovecot_line_value(dovecot_line_next(&l, &more), "user"), "anna b");
	assert_true(more);
	assert_string_equal(dovecot_line_next(&l, &more), "");
	assert_true(more);
	const char *word = dovecot_line_next(&l, &more);
	assert_true(more);
	assert_string_equal(dovecot_line_value(word, "nologin"), "");
	assert_null(dovecot_line_value(word, "nolog"));
	assert_string_equal(dovecot_line_next(&l, &more), "");
	assert_false(more);
	assert_string_equal(dovecot_line_next(&l, &more), "");
	assert_false(more);
}

static void escapes_are_undone_after_the_words_are_parted(void **state)
{
	struct dovecot_line l = line("a\001tb\001n\tc\0011\0010\001");
	(void)state;
	assert_string_equal(dovecot_line_next(&l, NULL), "a\tb\n");
	assert_string_equal(dovecot_line_next(&l, NULL), "c\001?\001");
}

static void what_is_no_number_is_refused(void **state)
{
	static const char *const bad[] = {"",	"x",  "1x",	    "-1",
					  "+1", " 1", "4294967296", "99999999999999999999999"};
	uint32_t id;
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct dovecot_line l = line(bad[i]);
		assert_false(dovecot_line_number(&l, &id));
	}
	struct dovecot_line l = line("4294967295");
	assert_true(dovecot_line_number(&l, &id));
	assert_int_equal(id, UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_stand_between_tabs),
		cmocka_unit_test(escapes_are_undone_after_the_words_are_parted),
		cmocka_unit_test(what_is_no_number_is_refused),
	};
	return RUN(tests);
}
