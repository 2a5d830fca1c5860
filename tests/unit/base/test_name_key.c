/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/name_key.h"

#include <stdlib.h>
#include <string.h>

static void is_domain(const char *text, const char *wanted)
{
	char name[NAME_KEY_DOMAIN];
	assert_true(name_key_domain(text, name));
	assert_string_equal(name, wanted);
}

static void is_key(const char *text, const char *wanted)
{
	char *key = name_key(text), room[64] = "untouched";
	assert_string_equal(key, wanted);
	assert_false(name_key_into(text, room, strlen(wanted)));
	assert_string_equal(room, "untouched");
	assert_true(name_key_into(text, room, strlen(wanted) + 1));
	assert_string_equal(room, wanted);
	free(key);
}

static void every_spelling_of_a_domain_is_one(void **state)
{
	static const char *const spellings[] = {
		"xn--bcher-kva.test",
		"XN--BCHER-KVA.TEST",
		"bücher.test",
		"BÜCHER.test",
		"bu\xcc\x88"
		"cher.test",
		"ｂücher.test",
		"bücher.ｔｅｓｔ",
		"bücher。test",
		"bücher．test",
		"bücher.test.",
		"bücher.test。",
		"xn--bcher-kva.test.",
	};
	(void)state;
	for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
		is_domain(spellings[i], "xn--bcher-kva.test");
	is_domain("ｄｅｓｔ.test", "dest.test");
	is_domain("stra\xc3\x9f"
		  "e.test",
		  "xn--strae-oqa.test");
}

static void every_spelling_of_an_ipv6_address_is_one(void **state)
{
	(void)state;
	is_key("anna@[IPv6:2001:DB8:0::1]", "anna@[ipv6:2001:db8::1]");
	is_key("[ipv6:2001:0db8:0:0:0:0:0:1]", "[ipv6:2001:db8::1]");
	is_key("[2001:DB8::0:1]:25", "[2001:db8::1]:25");
	is_key("2001:DB8:0::1 anna@[IPv6:0::1]", "2001:db8::1 anna@[ipv6:::1]");
	is_key("login:a::1", "login:a::1");
	is_key("login:ABBA:0:0::1", "login:abba:0:0::1");
	is_key("anna@[192.0.2.1]", "anna@[192.0.2.1]");
	is_key("[2001:db8::1", "[2001:db8::1");
	assert_true(name_key_same("[IPv6:2001:DB8::1]", "[ipv6:2001:db8:0::1]"));
	assert_false(name_key_same("[IPv6:2001:DB8::1]", "[ipv6:2001:db8::2]"));
}

/* IDNA2008 knows none of these, and the DNS has them. */
static void ascii_passes_as_it_is(void **state)
{
	(void)state;
	is_domain("r3---sn.test", "r3---sn.test");
	is_domain("xn--i-7iq.test", "xn--i-7iq.test");
	is_domain("_dmarc.Example.ORG", "_dmarc.example.org");
	is_domain("-.test", "-.test");
	is_domain("r3---sn.bücher.test", "r3---sn.xn--bcher-kva.test");
}

static void what_has_no_such_form_stays(void **state)
{
	char name[NAME_KEY_DOMAIN];
	(void)state;
	assert_false(name_key_domain("\xff.Test", name));
	assert_string_equal(name, "\xff.test");
	assert_false(name_key_domain("a＠b.test", name)); /* an @ comes of it */
	assert_false(name_key_domain("a／b.test", name));
	char lengthy[400];
	memset(lengthy, 'a', sizeof lengthy - 1);
	lengthy[sizeof lengthy - 1] = '\0';
	assert_false(name_key_domain(lengthy, name));
}

static void keys_have_their_domains_in_that_form(void **state)
{
	(void)state;
	is_key("User@Bücher.Test", "user@xn--bcher-kva.test");
	is_key("bö@bücher.test", "bö@xn--bcher-kva.test");
	is_key("\"a@b\"@bücher.test", "\"a@b\"@xn--bcher-kva.test");
	is_key(".bücher.test", ".xn--bcher-kva.test");
	is_key("@bücher.test", "@xn--bcher-kva.test");
	is_key("[bücher.test]:25", "[xn--bcher-kva.test]:25");
	is_key("bücher.test:25 a@bücher.test", "xn--bcher-kva.test:25 a@xn--bcher-kva.test");
	is_key("<>", "<>");
	is_key("*", "*");
	is_key("Login:Anna", "login:anna");
	is_key("Login:Anna.", "login:anna.");
}

static void a_final_dot_is_no_part_of_a_domain(void **state)
{
	(void)state;
	is_key("A.test.", "a.test");
	is_key("anna@a.test.", "anna@a.test");
	is_key("anna@bücher.test.", "anna@xn--bcher-kva.test");
	is_key(".a.test.", ".a.test");
	is_key("@a.test.", "@a.test");
	is_key("[a.test.]:25", "[a.test]:25");
	is_key("a.test.:25 anna@a.test.", "a.test:25 anna@a.test");
	is_key(".", ".");
	is_key("\".\"@a.test", "\".\"@a.test");
	is_key("\"a. b\"@a.test", "\"a. b\"@a.test");
	is_key("\"a b. c\"@a.test.", "\"a b. c\"@a.test");
	is_key("\"a b\xc3\xbc c\"@a.test", "\"a b\xc3\xbc c\"@a.test");
	is_key("\"a.", "\"a.");
}

static void a_local_part_has_quotes_where_it_needs_them(void **state)
{
	(void)state;
	is_key("\"Anna\"@a.test", "anna@a.test");
	is_key("\"an\\na\"@a.test.", "anna@a.test");
	is_key("\"a\\ b\"@a.test", "\"a b\"@a.test");
	is_key("\"anna@a.test", "\"anna@a.test");
	is_key("anna.@A.test", "\"anna.\"@a.test");
	is_key("a..b@a.test.", "\"a..b\"@a.test");
	is_key(".a@a.test", "\".a\"@a.test");
	is_key("..@a.test", "..@a.test");
	is_key(".a.test", ".a.test");
}

static void a_key_fits_each_spelling_of_its_name(void **state)
{
	(void)state;
	assert_true(name_key_fits("xn--bcher-kva.test", "bücher.test"));
	assert_true(name_key_fits("xn--bcher-kva.test", "BÜCHER.Test"));
	assert_true(name_key_fits("xn--bcher-kva.test", "XN--Bcher-KVA.test"));
	assert_true(name_key_fits("anna@xn--bcher-kva.test", "Anna@bücher.test"));
	assert_true(name_key_fits("a.test", "A.test"));
	assert_false(name_key_fits("xn--bcher-kva.test", "bucher.test"));
	assert_false(name_key_fits("xn--bcher-kva.test", "a.bücher.test"));
	assert_false(name_key_fits("bö@a.test", "bo@a.test"));
	assert_true(name_key_fits("a.test", "A.test."));
}

static void two_spellings_are_the_same_name(void **state)
{
	(void)state;
	assert_true(name_key_same("bücher.test", "XN--Bcher-KVA.test"));
	assert_true(name_key_same("XN--bcher-kva.test", "BÜCHER.Test"));
	assert_true(name_key_same("BÜCHER.test", "bücher.test"));
	assert_true(name_key_same("a.test", "A.test"));
	assert_false(name_key_same("bücher.test", "bucher.test"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_spelling_of_a_domain_is_one),
		cmocka_unit_test(every_spelling_of_an_ipv6_address_is_one),
		cmocka_unit_test(ascii_passes_as_it_is),
		cmocka_unit_test(what_has_no_such_form_stays),
		cmocka_unit_test(keys_have_their_domains_in_that_form),
		cmocka_unit_test(a_final_dot_is_no_part_of_a_domain),
		cmocka_unit_test(a_local_part_has_quotes_where_it_needs_them),
		cmocka_unit_test(a_key_fits_each_spelling_of_its_name),
		cmocka_unit_test(two_spellings_are_the_same_name),
	};
	return RUN(tests);
}
