/* SPDX-License-Identifier: ISC */
#include "tests/unit/cmd/unit.h"

#include "cmd/http/http_host.c"

static void names_that_nobody_else_can_give_are_ours(void **state)
{
	(void)state;
	static const char *const ours[] = {
		"127.0.0.1",   "127.0.0.1:8025",	"10.1.2.3",
		"[::1]",       "[2001:db8::1]:80",	"localhost",
		"LOCALHOST:1", "relay.example.org",	"Relay.Example.ORG:8025",
		"localhost.",  "relay.example.org.:80",
	};
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		assert_true(http_host_is_ours(ours[i], "relay.example.org"));
}

static void all_others_are_not(void **state)
{
	(void)state;
	char long_name[400];
	static const char *const others[] = {
		"",
		"evil.test",
		"evil.test:8025",
		"127.0.0.1.evil.test",
		"127.0.0",
		"127.0.0.1:80:80",
		"127.0.0.1@evil.test",
		"localhost.evil.test",
		"[::1",
		"[::1]evil.test",
		"[evil.test]",
		"[::1]:x",
		"::1",
		"localhost:80/evil",
		"relay.example.org.evil.test",
		"localhost ",
		"..",
		".",
		":80",
	};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		if (http_host_is_ours(others[i], "relay.example.org"))
			print_error("%s is ours\n", others[i]);
		assert_false(http_host_is_ours(others[i], "relay.example.org"));
	}
	memset(long_name, 'a', sizeof long_name - 1);
	long_name[sizeof long_name - 1] = '\0';
	assert_false(http_host_is_ours(long_name, "relay.example.org"));
	long_name[0] = '[';
	assert_false(http_host_is_ours(long_name, "relay.example.org"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_nobody_else_can_give_are_ours),
		cmocka_unit_test(all_others_are_not),
	};
	return RUN(tests);
}
