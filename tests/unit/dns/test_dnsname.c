/* SPDX-License-Identifier: ISC */
#include "dns/dnsname.h"

#include "dns/query.h"
#include "tests/unit/dns/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void names_are_read_from_wire(void **state)
{
	(void)state;
	char name[DNSNAME_SIZE];
	uint8_t wire[300];
	char text[260] = "";
	assert_int_equal(dnsname_from_wire((const uint8_t *)"\1A\4Test", 8, name), DNSNAME_HOST);
	assert_string_equal(name, "a.test");
	assert_int_equal(dnsname_from_wire((const uint8_t *)"", 1, name), DNSNAME_ROOT);
	assert_int_equal(dnsname_from_wire((const uint8_t *)"\1a", 2, name), DNSNAME_BAD);
	assert_int_equal(dnsname_from_wire((const uint8_t *)"\5abc", 4, name), DNSNAME_BAD);
	for (int i = 0; i < 127; i++)
		strcat(text, i ? ".a" : "a");
	assert_int_equal(dnsname_from_wire(wire, wire_name_to(wire, text), name), DNSNAME_HOST);
	strcat(text, ".a");
	assert_int_equal(dnsname_from_wire(wire, wire_name_to(wire, text), name), DNSNAME_BAD);
}

static void names_are_read_from_text(void **state)
{
	(void)state;
	char name[DNSNAME_SIZE];
	assert_true(dnsname_from_text("Example.ORG.", name));
	assert_string_equal(name, "example.org");
	assert_true(dnsname_from_text("b\303\274cher.example", name));
	assert_string_equal(name, "xn--bcher-kva.example");
	static const char *const bad[] = {"",	  ".",	 "a..b", ".a",	 "a b", "a/b",
					  "a\nb", "a..", "*.a",	 "\377", "a@b"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(dnsname_from_text(bad[i], name));
}

static void literals_are_recognised(void **state)
{
	(void)state;
	union address a;
	assert_true(dnsname_literal("[192.0.2.1]", false, &a));
	assert_int_equal(a.sa.sa_family, AF_INET);
	assert_true(dnsname_literal("[IPv6:2001:db8::1]", false, &a));
	assert_int_equal(a.sa.sa_family, AF_INET6);
	assert_true(dnsname_literal("192.0.2.1", true, &a));
	assert_true(dnsname_literal("IPv6:2001:db8::1", true, &a));
	assert_false(dnsname_literal("192.0.2.1", false, &a));
	assert_false(dnsname_literal("[example.org]", true, &a));
	assert_false(dnsname_literal("[", true, &a));
}

static void a_question_has_its_edns_record_at_the_end(void **state)
{
	(void)state;
	size_t with, without;
	uint8_t *edns = query_build("a.test", ANSWER_MX, QUERY_EDNS, 0x1234, &with);
	uint8_t *plain = query_build("a.test", ANSWER_MX, QUERY_PLAIN, 0x1234, &without);
	assert_int_equal(without, 12 + 8 + 4);
	assert_int_equal(with, without + 11);
	assert_memory_equal(plain, "\x12\x34\1\0\0\1\0\0\0\0\0\0\1a\4test\0\0\17\0\1", without);
	assert_memory_equal(edns + without, "\0\0\51\4\320\0\0\0\0\0\0", 11);
	free(edns);
	free(plain);
	edns = query_build("a.test", ANSWER_MX, QUERY_EDNS_DO, 0x1234, &with);
	assert_int_equal(edns[without + 7], 0x80);
	free(edns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_read_from_wire),
		cmocka_unit_test(names_are_read_from_text),
		cmocka_unit_test(literals_are_recognised),
		cmocka_unit_test(a_question_has_its_edns_record_at_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
