/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/mailaddr.h"

#include <stdio.h>
#include <string.h>

static struct mailaddr a;

static enum mailaddr_result path(const char *text, bool utf8)
{
	const char *at = text;
	enum mailaddr_result result = mailaddr_path(&at, utf8, &a);
	if (result == MAILADDR_OK)
		assert_string_equal(at, "");
	else
		assert_ptr_equal(at, text);
	return result;
}

static void paths_are_kept_in_one_form(void **state)
{
	(void)state;
	static const struct {
		const char *path, *kept;
	} rows[] = {
		{"<>", ""},
		{"<a@b.test>", "a@b.test"},
		{"<A.b+c@B.Test>", "A.b+c@b.test"},
		{"<a@b.test.>", "a@b.test"},
		{"<a@localhost>", "a@localhost"},
		{"<a@x_y.test>", "a@x_y.test"},
		{"<\"abc\"@b.test>", "abc@b.test"},
		{"<\"a\\b\"@b.test>", "ab@b.test"},
		{"<\"a b\"@b.test>", "\"a b\"@b.test"},
		{"<\"u@x.test\"@b.test>", "\"u@x.test\"@b.test"},
		{"<\"a\\\"\\\\b\"@b.test>", "\"a\\\"\\\\b\"@b.test"},
		{"<\"\"@b.test>", "\"\"@b.test"},
		{"<\"a..b\"@b.test>", "\"a..b\"@b.test"},
		{"<a..b@b.test>", "\"a..b\"@b.test"},
		{"<a.@b.test>", "\"a.\"@b.test"},
		{"<..a@b.test>", "\"..a\"@b.test"},
		{"<u%x.test@b.test>", "u%x.test@b.test"},
		{"<x.test!u@b.test>", "x.test!u@b.test"},
		{"<=?utf-8?q?=41=42?=@b.test>", "=?utf-8?q?=41=42?=@b.test"},
		{"<${run{/bin/id}}@b.test>", "${run{/bin/id}}@b.test"},
		{"<@x.test,@y.test:u@b.test>", "u@b.test"},
		{"<a@[192.0.2.1]>", "a@[192.0.2.1]"},
		{"<a@[IPv6:2001:DB8::1]>", "a@[ipv6:2001:db8::1]"},
		{"<Postmaster>", "Postmaster"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(path(rows[i].path, false), MAILADDR_OK);
		assert_string_equal(a.text, rows[i].kept);
		assert_false(a.utf8);
	}
	assert_int_equal(a.at, 10);
}

static void what_is_no_path_is_refused(void **state)
{
	(void)state;
	static const char *const rows[] = {"",
					   "a@b.test",
					   "<a@b.test",
					   "<",
					   "<;x@>",
					   "<;sleep 66;>",
					   "<$(id)@x.test>",
					   "<@>",
					   "<a@>",
					   "<@a>",
					   "< @a>",
					   "<a@ >",
					   "<a @b.test>",
					   "<a@b.test >",
					   "<a>",
					   "<\"postmaster\">",
					   "<\"u@x.test\">",
					   "<a@b@c.test>",
					   "<a@b..test>",
					   "<a@.test>",
					   "<.@b.test>",
					   "<..@b.test>",
					   "<a. .@b.test>",
					   "<a@-b.test>",
					   "<a@b-.test>",
					   "<a@xn--->",
					   "<a@127.0.0.1>",
					   "<a@1>",
					   "<a@[127.1]>",
					   "<a@[0]>",
					   "<a@[2130706433]>",
					   "<a@[1.2.3.256]>",
					   "<a@[IPv6:::g]>",
					   "<a@[x:y]>",
					   "<a@[1.2.3.4>",
					   "<a@[1.2.3.4].test>",
					   "<a@b/c.test>",
					   "<a(x)@b.test>",
					   "<a\tb@b.test>",
					   "<a\rb@b.test>",
					   "<\"a\rb\"@b.test>",
					   "<\"a\\\n\"@b.test>",
					   "<\"ab@b.test>",
					   "<\"a\"b@b.test>",
					   "<whatever:a@a>",
					   "<@x.test:>",
					   "<@x.test,:a@b>",
					   "<@x.test a@b>",
					   "<a@b.test\x7f>",
					   "<a@b.test>>x"};
	for (size_t i = 0; i + 1 < sizeof rows / sizeof *rows; i++)
		assert_int_equal(path(rows[i], false), MAILADDR_SYNTAX);
}

static char *fill(char *to, char with, int n)
{
	memset(to, with, (size_t)n);
	to[n] = '\0';
	return to;
}

static void lengths_are_legal_up_to_their_limits(void **state)
{
	(void)state;
	char text[600], part[400];
	for (int n = MAILADDR_LOCAL_MAX; n <= MAILADDR_LOCAL_MAX + 1; n++) {
		bool fits = n == MAILADDR_LOCAL_MAX;
		sprintf(text, "<%s@b>", fill(part, 'l', n));
		assert_int_equal(path(text, false), fits ? MAILADDR_OK : MAILADDR_LOCAL_TOO_LONG);
		sprintf(text, "<\"%s\"@b>", fill(part, ' ', n - 2));
		assert_int_equal(path(text, false), fits ? MAILADDR_OK : MAILADDR_LOCAL_TOO_LONG);
		sprintf(text, "<%s@bb>", fill(part, 'l', MAILADDR_LOCAL_MAX));
		assert_int_equal(path(text, false), MAILADDR_DOMAIN_TOO_LONG); /* than a path */
	}
	for (int n = 63; n <= 64; n++) {
		sprintf(text, "<a@%s.test>", fill(part, 'd', n));
		assert_int_equal(path(text, false),
				 n == 63 ? MAILADDR_OK : MAILADDR_DOMAIN_TOO_LONG);
	}
	/* "<a@" and ">" are part of a path of 256. */
	for (int n = 252; n <= 253; n++) {
		fill(part, 'd', n);
		for (int i = 50; i < n; i += 50)
			part[i] = '.';
		sprintf(text, "<a@%s>", part);
		assert_int_equal(path(text, false),
				 n == 252 ? MAILADDR_OK : MAILADDR_DOMAIN_TOO_LONG);
	}
	for (int n = 255; n <= 256; n++) {
		fill(part, 'd', n);
		for (int i = 50; i < n; i += 50)
			part[i] = '.';
		assert_int_equal(mailaddr_domain_valid(part), n == 255);
	}
}

static void other_scripts_need_permission(void **state)
{
	(void)state;
	assert_int_equal(path("<\xc3\xa4@b.test>", false), MAILADDR_NOT_ASCII);
	assert_int_equal(path("<a@\xc3\xa4.test>", false), MAILADDR_NOT_ASCII);
	assert_int_equal(path("<\xc3\xa4@b.test>", true), MAILADDR_OK);
	assert_true(a.utf8);
	assert_int_equal(path("<\"\xc3\xa4 x\"@\xe2\x82\xac.test>", true), MAILADDR_OK);
	assert_string_equal(a.text, "\"\xc3\xa4 x\"@\xe2\x82\xac.test");
	assert_int_equal(path("<\xc3@b.test>", true), MAILADDR_NOT_ASCII);
	assert_int_equal(path("<\xed\xa0\x80@b.test>", true), MAILADDR_NOT_ASCII);
	assert_int_equal(path("<\"a\\\xc3\xa4\"@b.test>", true), MAILADDR_NOT_ASCII);
	assert_int_equal(path("<\xc2\x85@b.test>", true), MAILADDR_SYNTAX);
}

static void the_cursor_stops_behind_the_path(void **state)
{
	(void)state;
	const char *at = "<a@b.test> SIZE=1";
	assert_int_equal(mailaddr_path(&at, false, &a), MAILADDR_OK);
	assert_string_equal(at, " SIZE=1");
}

static void bare_mailboxes_have_no_brackets(void **state)
{
	(void)state;
	assert_int_equal(mailaddr_mailbox("a@B.test,c", 8, false, &a), MAILADDR_OK);
	assert_string_equal(a.text, "a@b.test");
	assert_int_equal(mailaddr_mailbox("a@b.test,c", 10, false, &a), MAILADDR_SYNTAX);
	assert_int_equal(mailaddr_mailbox("<a@b.test>", 10, false, &a), MAILADDR_SYNTAX);
	assert_int_equal(mailaddr_mailbox("postmaster", 10, false, &a), MAILADDR_SYNTAX);
	assert_int_equal(mailaddr_mailbox("", 0, false, &a), MAILADDR_SYNTAX);
}

static void the_domain_is_behind_the_last_at_outside_quotes(void **state)
{
	(void)state;
	assert_string_equal(mailaddr_domain("a@b.test"), "b.test");
	assert_string_equal(mailaddr_domain("\"x@y\"@b.test"), "b.test");
	assert_string_equal(mailaddr_domain("\"x@y\""), "");
	assert_string_equal(mailaddr_domain("postmaster"), "");
	assert_string_equal(mailaddr_domain(""), "");
}

static void names_of_hosts(void **state)
{
	(void)state;
	assert_true(mailaddr_domain_valid("client.test"));
	assert_true(mailaddr_domain_valid("[192.0.2.1]"));
	assert_true(mailaddr_domain_valid("[IPv6:::1]"));
	assert_true(mailaddr_domain_valid("192.0.2.1"));
	assert_true(mailaddr_domain_valid("WORK_STATION"));
	assert_false(mailaddr_domain_valid(""));
	assert_false(mailaddr_domain_valid("a b"));
	assert_false(mailaddr_domain_valid("a\r\nX-Evil: 1"));
	assert_false(mailaddr_domain_valid("[a]"));
	assert_false(mailaddr_domain_valid("\xc3\xa4.test"));
}

static void xtext_is_decoded_and_encoded(void **state)
{
	(void)state;
	char to[20];
	assert_true(xtext_decode("a+2Bb+3D+20", 11, to, sizeof to));
	assert_string_equal(to, "a+b= ");
	xtext_encode("a+b= \n", to, sizeof to);
	assert_string_equal(to, "a+2Bb+3D+20+0A");
	xtext_encode("abcdefgh++", to, 10);
	assert_string_equal(to, "abcdefgh");
	static const char *const bad[] = {"+0A", "+0D", "+00", "+7F", "+ff", "+FF",
					  "+2b", "+",	"+2",  "a=b", "a b", "a\x80"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(xtext_decode(bad[i], strlen(bad[i]), to, sizeof to));
	assert_false(xtext_decode("+C3+A9", 6, to, sizeof to));
	assert_true(xtext_decode_utf8("+C3+A9a", 7, to, sizeof to));
	assert_string_equal(to, "\xc3\xa9"
				"a");
	assert_false(xtext_decode_utf8("+C3a", 4, to, sizeof to));
	assert_false(xtext_decode_utf8("+C3+A9+0D", 9, to, sizeof to));
	assert_true(xtext_decode("1234", 4, to, 5));
	assert_false(xtext_decode("12345", 5, to, 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_kept_in_one_form),
		cmocka_unit_test(what_is_no_path_is_refused),
		cmocka_unit_test(lengths_are_legal_up_to_their_limits),
		cmocka_unit_test(other_scripts_need_permission),
		cmocka_unit_test(the_cursor_stops_behind_the_path),
		cmocka_unit_test(bare_mailboxes_have_no_brackets),
		cmocka_unit_test(the_domain_is_behind_the_last_at_outside_quotes),
		cmocka_unit_test(names_of_hosts),
		cmocka_unit_test(xtext_is_decoded_and_encoded),
	};
	return RUN(tests);
}
