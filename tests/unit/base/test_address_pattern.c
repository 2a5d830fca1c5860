/* SPDX-License-Identifier: ISC */
#include "base/address_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void an_address_fits_what_is_typed(void **state)
{
	(void)state;
	static const struct {
		const char *pattern, *address;
		bool fits;
	} row[] = {
		{"anna@shop.example", "Anna@SHOP.example", true},
		{"anna@shop.example", "anna@shop.example.org", false},
		{"*@shop.example", "a@shop.example", true},
		{"*@shop.example", "a@mx.shop.example", false},
		{"@shop.example", "a@shop.example", true},
		{"news@*", "news@x", true},
		{"news@*", "anews@x", false},
		{"n*s@*.example", "news@a.b.example", true},
		{"n*s@*.example", "news@a.b.examples", false},
		{".example.com", "a@example.com", true},
		{".example.com", "a@b.c.example.com", true},
		{".example.com", "a@notexample.com", false},
		{".example.com", "a@com", false},
		{"<>", "", true},
		{"", "", true},
		{"*", "", false},
		{"*@*", "", false},
		{"<>", "a@b", false},
		{"a@[192.0.2.1]", "a@[192.0.2.1]", true},
		{"a@[192.0.2.1]", "a@1", false},
		{"**a**@b", "xax@b", true},
		{"anna@shop.example.", "anna@shop.example", true},
		{"*@SHOP.example.", "a@shop.example", true},
		{".example.", "a@shop.example", true},
		{"a@*.example.", "a@shop.example", true},
		{"a@shop.example", "a@shop.example.", true},
		{"a@shop.example.", "a@shop.examples", false},
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		if (address_pattern_fits(row[i].pattern, row[i].address) != row[i].fits)
			fail_msg("%s and %s", row[i].pattern, row[i].address);
}

static void a_domain_fits_without_its_local_part(void **state)
{
	(void)state;
	assert_true(address_pattern_fits_domain("shop.*", "shop.example"));
	assert_true(address_pattern_fits_domain("@shop.example", "shop.example"));
	assert_true(address_pattern_fits_domain(".example", "shop.example"));
	assert_true(address_pattern_fits_domain(".example", "example"));
	assert_false(address_pattern_fits_domain("example", "shop.example"));
	assert_false(address_pattern_fits_domain(".shop.example", ""));
}

static void a_domain_is_one_however_it_is_written(void **state)
{
	(void)state;
	static const char *const spellings[] = {"b\u00fccher.test",   "B\u00dcCHER.TEST",
						"xn--bcher-kva.test", "\uff42\u00fccher.test",
						"b\u00fccher.test.",  "xn--bcher-kva.TEST."};
	for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
		for (size_t k = 0; k < sizeof spellings / sizeof *spellings; k++) {
			char pattern[100], address[100];
			snprintf(pattern, sizeof pattern, "*@%s", spellings[i]);
			snprintf(address, sizeof address, "\"a b\"@shop.%s", spellings[k]);
			assert_true(address_pattern_fits_domain(spellings[i], spellings[k]));
			assert_false(address_pattern_fits(pattern, address));
			snprintf(pattern, sizeof pattern, ".%s", spellings[i]);
			assert_true(address_pattern_fits(pattern, address));
			snprintf(pattern, sizeof pattern, "*@sh*.%s", spellings[i]);
			assert_true(address_pattern_fits(pattern, address));
		}
	}
	assert_false(address_pattern_fits_domain("b\u00fccher.test", "bucher.test"));
	assert_false(address_pattern_fits("\u00fc@b.test", "u@b.test"));
	assert_true(address_pattern_fits("\u00fc@B.test", "\u00fc@b.test"));
}

static void an_address_is_one_however_it_is_written(void **state)
{
	(void)state;
	static const struct {
		const char *pattern, *address;
		bool fits;
	} row[] = {
		{"\"a.b\"@shop.example", "a.b@shop.example", true},
		{"\"Anna\"@SHOP.example.", "anna@shop.example", true},
		{"\"a b\"@shop.example", "\"A b\"@shop.example", true},
		{"\"a b\"@shop.example", "ab@shop.example", false},
		{"\"a*\"@*", "\"a x\"@shop.example", true},
		{"\"a*\"@B\u00fccher.test.", "\"a x\"@xn--bcher-kva.test", true},
		{"a@[IPv6:2001:DB8:0::1]", "a@[ipv6:2001:db8::1]", true},
		{"a@[ipv6:2001:db8::1]", "a@[IPv6:2001:db8:0:0::1]", true},
		{"*@[IPv6:2001:db8:0::1]", "a@[ipv6:2001:db8::1]", true},
		{"@[IPv6:2001:db8:0::1]", "a@[ipv6:2001:db8::2]", false},
		{"*@[IPv6:2001:*]", "a@[ipv6:2001:db8::1]", true},
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		if (address_pattern_fits(row[i].pattern, row[i].address) != row[i].fits)
			fail_msg("%s and %s", row[i].pattern, row[i].address);
	assert_true(address_pattern_fits_domain("[IPv6:2001:DB8:0::1]", "[ipv6:2001:db8::1]"));
}

static void brackets_are_no_part_of_an_address(void **state)
{
	(void)state;
	static const char *const row[][2] = {
		{"<anna@shop.example>", "anna@shop.example"},
		{"<*@shop.*>", "*@shop.*"},
		{"anna@shop.example", "anna@shop.example"},
		{"<>", "<>"},
		{"", ""},
		{"<", "<"},
		{"<a@b", "<a@b"},
		{"a@b>", "a@b>"},
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		char *pattern = address_pattern_copy(row[i][0]);
		assert_string_equal(pattern, row[i][1]);
		free(pattern);
	}
}

static void some_patterns_need_the_domain_only(void **state)
{
	(void)state;
	assert_true(address_pattern_of_domain("*@shop.example"));
	assert_true(address_pattern_of_domain(".example"));
	assert_false(address_pattern_of_domain("news@*"));
	assert_string_equal(address_pattern_domain("news@*.example"), "*.example");
	assert_string_equal(address_pattern_domain(".example"), ".example");
	assert_null(address_pattern_domain("<>"));
	assert_null(address_pattern_domain("news*"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_fits_what_is_typed),
		cmocka_unit_test(a_domain_fits_without_its_local_part),
		cmocka_unit_test(a_domain_is_one_however_it_is_written),
		cmocka_unit_test(an_address_is_one_however_it_is_written),
		cmocka_unit_test(brackets_are_no_part_of_an_address),
		cmocka_unit_test(some_patterns_need_the_domain_only),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
