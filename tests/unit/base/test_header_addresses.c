/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/header_addresses.h"

#include <string.h>

static void expect(const char *field, const char *joined)
{
	struct address_list list = {0};
	struct buf error, found;
	buf_init(&error);
	buf_init(&found);
	bool ok = header_addresses(field, strlen(field), &list, &error);
	if (!joined) {
		assert_false(ok);
		assert_true(buf_len(&error) > 0);
	} else {
		assert_true(ok);
		for (int i = 0; i < list.n; i++)
			buf_printf(&found, "%s%s", i ? "|" : "", list.item[i]);
		assert_string_equal(buf_cstr(&found), joined);
	}
	address_list_free(&list);
	buf_fini(&error);
	buf_fini(&found);
}

static void plain_addresses_are_found(void **state)
{
	(void)state;
	expect("a@example.org", "a@example.org");
	expect(" a@example.org, b@example.org\r\n", "a@example.org|b@example.org");
	expect("root", "root");
	expect("a . b @ example . org", "a.b@example.org");
	expect("a@[192.0.2.1]", "a@[192.0.2.1]");
}

static void display_names_are_left_out(void **state)
{
	(void)state;
	expect("Anna B. Bell <anna@example.org>", "anna@example.org");
	expect("\"Bell, Anna\" <anna@example.org>, b@example.org",
	       "anna@example.org|b@example.org");
	expect("\"a@b, c@d <e@f>\" <g@example.org>", "g@example.org");
	expect("\"say \\\"hello\\\"\" <h@example.org>", "h@example.org");
}

static void comments_are_left_out(void **state)
{
	(void)state;
	expect("a@example.org (Anna, at (her) home)", "a@example.org");
	expect("(\\) <x@example.org>,) a(1)@(2)example.org", "a@example.org");
}

static void folded_lines_are_one(void **state)
{
	(void)state;
	expect(" a@example.org,\r\n\tAnna\r\n <b@example.org>\r\n", "a@example.org|b@example.org");
}

static void quoted_local_parts_stay_quoted(void **state)
{
	(void)state;
	expect("\"a b\"@example.org", "\"a b\"@example.org");
	expect("<\"a\\\"b\"@example.org>", "\"a\\\"b\"@example.org");
}

static void groups_give_their_members(void **state)
{
	(void)state;
	expect("friends: a@example.org, B <b@example.org>; c@example.org",
	       "a@example.org|b@example.org|c@example.org");
	expect("undisclosed-recipients:;", "");
	expect("a@example.org, empty: ;, b@example.org", "a@example.org|b@example.org");
}

static void obsolete_forms_are_taken(void **state)
{
	(void)state;
	expect(", a@example.org,, b@example.org,", "a@example.org|b@example.org");
	expect("<@one.test,@two.test:a@example.org>", "a@example.org");
	expect("<>", "");
	expect("", "");
}

static void what_is_no_list_is_refused(void **state)
{
	(void)state;
	expect("Anna Bell", NULL);
	expect("a@example.org b@example.org", NULL);
	expect("<a@example.org", NULL);
	expect("<a@example.org> b", NULL);
	expect("\"a@example.org", NULL);
	expect("a@example.org (open", NULL);
	expect("a@example.org>", NULL);
	expect("<a@example.org, b@example.org>", NULL);
	expect("a; b@example.org", NULL);
	expect("one: two: a@example.org;", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_addresses_are_found),
		cmocka_unit_test(display_names_are_left_out),
		cmocka_unit_test(comments_are_left_out),
		cmocka_unit_test(folded_lines_are_one),
		cmocka_unit_test(quoted_local_parts_stay_quoted),
		cmocka_unit_test(groups_give_their_members),
		cmocka_unit_test(obsolete_forms_are_taken),
		cmocka_unit_test(what_is_no_list_is_refused),
	};
	return RUN(tests);
}
