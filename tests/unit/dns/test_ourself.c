/* SPDX-License-Identifier: ISC */
#include "dns/ourself.h"

#include "dns/dnsname.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct ourself *listening_on(const char *text)
{
	char *item[] = {(char *)text};
	struct conf_listener listener = {.address = {1, item}};
	struct conf conf = {
		.hostname = (char *)"Relay.Test.", .nlistener = 1, .listener = &listener};
	return ourself_new(&conf);
}

static void expect(const char *listener, const char *address, bool ours)
{
	union address a;
	struct ourself *me = listening_on(listener);
	assert_true(dnsname_literal(address, true, &a));
	assert_int_equal(ourself_at(me, &a), ours);
	ourself_free(&me);
}

static void a_listener_makes_its_address_ours(void **state)
{
	(void)state;
	expect("192.0.2.1:25", "192.0.2.1", true);
	expect("192.0.2.1:25", "192.0.2.2", false);
	expect("192.0.2.1:25", "::ffff:192.0.2.1", true);
	expect("192.0.2.1:25", "64:ff9b::192.0.2.1", true);
	expect("[2002:c000:201::1]:25", "2002:c000:201::2", false);
	expect("[2001:db8::1]:25", "2001:db8::1", true);
	expect("127.0.0.1:2525", "127.0.0.2", false);
	expect("nonsense", "192.0.2.1", false);
}

static void a_wildcard_makes_all_addresses_of_the_machine_ours(void **state)
{
	(void)state;
	static const char *const wildcards[] = {"0.0.0.0:25", "[::]:25", "*:25", ":25"};
	for (size_t i = 0; i < sizeof wildcards / sizeof *wildcards; i++) {
		expect(wildcards[i], "127.0.0.1", true);
		expect(wildcards[i], "192.0.2.1", false);
	}
}

static void our_name_is_compared_in_its_plain_form(void **state)
{
	(void)state;
	struct ourself *me = listening_on("127.0.0.1:25");
	assert_true(ourself_named(me, "relay.test"));
	assert_false(ourself_named(me, "relay.test.example"));
	ourself_free(&me);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_listener_makes_its_address_ours),
		cmocka_unit_test(a_wildcard_makes_all_addresses_of_the_machine_ours),
		cmocka_unit_test(our_name_is_compared_in_its_plain_form),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
