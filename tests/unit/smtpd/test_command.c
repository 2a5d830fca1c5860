/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpd/unit.h"

#include "smtpd/command.h"

#include <string.h>

static char line[COMMAND_MAX + 10];
static struct command c;

static enum response split(const char *bytes, size_t len)
{
	memcpy(line, bytes, len);
	line[len] = '\0';
	return command_split(line, len, &c);
}

#define SPLIT(text) split(text, sizeof text - 1)

static void a_line_is_a_verb_and_its_argument(void **state)
{
	(void)state;
	assert_int_equal(SPLIT("mail FROM:<a@b.test> SIZE=1  "), RESPONSE_OK);
	assert_string_equal(c.name, "MAIL");
	assert_string_equal(c.argument, "FROM:<a@b.test> SIZE=1");
	assert_int_equal(SPLIT("Quit"), RESPONSE_OK);
	assert_string_equal(c.argument, "");
	assert_int_equal(SPLIT("NOOP \t x"), RESPONSE_OK);
	assert_string_equal(c.argument, "x");
}

static void what_is_no_command_is_refused(void **state)
{
	(void)state;
	assert_int_equal(SPLIT(""), RESPONSE_UNKNOWN);
	assert_int_equal(SPLIT(" HELO x"), RESPONSE_UNKNOWN);
	assert_int_equal(SPLIT("MAILFROM:<>"), RESPONSE_UNKNOWN);
	assert_int_equal(SPLIT("NOOP\nNOOP"), RESPONSE_BAD_BYTES);
	assert_int_equal(SPLIT("NOOP\rNOOP"), RESPONSE_BAD_BYTES);
	assert_int_equal(SPLIT("NO\0OP"), RESPONSE_BAD_BYTES);
	assert_string_equal(c.name, "");
}

static void lines_are_long_at_the_limit_and_too_long_beyond(void **state)
{
	(void)state;
	char text[COMMAND_MAX];
	memset(text, 'x', sizeof text);
	memcpy(text, "NOOP ", 5);
	assert_int_equal(split(text, COMMAND_MAX - 2), RESPONSE_OK);
	assert_int_equal(split(text, COMMAND_MAX - 1), RESPONSE_LINE_TOO_LONG);
}

static enum response check(const char *text, enum session_state state, bool tls_missing)
{
	assert_int_equal(split(text, strlen(text)), RESPONSE_OK);
	return command_check(&c, state, tls_missing);
}

static void commands_have_their_order(void **state)
{
	(void)state;
	assert_int_equal(check("MAIL x", SESSION_GREETED, false), RESPONSE_HELLO_FIRST);
	assert_int_equal(check("MAIL x", SESSION_READY, false), RESPONSE_OK);
	assert_int_equal(check("MAIL x", SESSION_MAIL, false), RESPONSE_NESTED_MAIL);
	assert_int_equal(check("RCPT x", SESSION_READY, false), RESPONSE_NEED_MAIL);
	assert_int_equal(check("RCPT x", SESSION_BDAT, false), RESPONSE_ORDER);
	assert_int_equal(check("DATA", SESSION_READY, false), RESPONSE_NEED_RCPT);
	assert_int_equal(check("DATA", SESSION_BDAT, false), RESPONSE_ORDER);
	assert_int_equal(check("EHLO x", SESSION_BDAT, false), RESPONSE_OK);
}

static void arguments_are_where_they_belong(void **state)
{
	(void)state;
	assert_int_equal(check("DATA now", SESSION_RCPT, false), RESPONSE_NO_ARGUMENT);
	assert_int_equal(check("STARTTLS now", SESSION_READY, false), RESPONSE_NO_ARGUMENT);
	assert_int_equal(check("EHLO", SESSION_GREETED, false), RESPONSE_NEEDS_ARGUMENT);
	assert_int_equal(check("VRFY", SESSION_READY, false), RESPONSE_NEEDS_ARGUMENT);
	assert_int_equal(check("NOOP anything", SESSION_READY, false), RESPONSE_OK);
}

static void before_tls_only_few_verbs_are_heard(void **state)
{
	(void)state;
	assert_int_equal(check("MAIL x", SESSION_READY, true), RESPONSE_NEEDS_TLS);
	assert_int_equal(check("VRFY x", SESSION_READY, true), RESPONSE_NEEDS_TLS);
	assert_int_equal(check("EHLO x", SESSION_GREETED, true), RESPONSE_OK);
	assert_int_equal(check("STARTTLS", SESSION_READY, true), RESPONSE_OK);
	assert_int_equal(check("QUIT", SESSION_GREETED, true), RESPONSE_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_a_verb_and_its_argument),
		cmocka_unit_test(what_is_no_command_is_refused),
		cmocka_unit_test(lines_are_long_at_the_limit_and_too_long_beyond),
		cmocka_unit_test(commands_have_their_order),
		cmocka_unit_test(arguments_are_where_they_belong),
		cmocka_unit_test(before_tls_only_few_verbs_are_heard),
	};
	return RUN(tests);
}
