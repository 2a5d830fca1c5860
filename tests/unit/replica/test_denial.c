/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "replica/nats_setup.h"

#include <string.h>

static void what_is_not_permitted_is_named_and_of_an_inbox_not_which(void **state)
{
	static const struct {
		const char *said, *text;
	} cases[] = {
		{"Permissions Violation for Subscription to \"_INBOX.Xq1.*\"",
		 "NATS does not permit to subscribe to _INBOX.>"},
		{"'Permissions Violation for Subscription to \"_INBOX.7.*\" using queue \"q\"'",
		 "NATS does not permit to subscribe to _INBOX.>"},
		{"Permissions Violation for Publish to \"$JS.API.STREAM.INFO.sluice-n1\"",
		 "NATS does not permit to publish to $JS.API.STREAM.INFO.sluice-n1"},
		{"Permissions Violation for Publish to \"sluice.n1.1.log",
		 "NATS does not permit to publish to sluice.n1.1.log"},
		{"permissions violation", "NATS does not permit it: permissions violation"},
		{"", "NATS does not permit it: "},
	};
	char text[NATS_SETUP_DENIAL];
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		nats_setup_denial(text, cases[i].said);
		assert_string_equal(text, cases[i].text);
	}
}

static void a_long_one_is_cut(void **state)
{
	char said[1000], text[NATS_SETUP_DENIAL];
	(void)state;
	memset(said, 'x', sizeof said - 1);
	said[sizeof said - 1] = '\0';
	nats_setup_denial(text, said);
	assert_int_equal(strlen(text), NATS_SETUP_DENIAL - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_permitted_is_named_and_of_an_inbox_not_which),
		cmocka_unit_test(a_long_one_is_cut),
	};
	return RUN(tests);
}
