/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/address.h"
#include "base/netlist.h"

#include <string.h>

static bool matches(const char *net, const char *host)
{
	struct net n;
	union address a;
	assert_true(net_parse(net, &n));
	assert_true(address_parse(host, 25, &a));
	return net_match(&n, &a);
}

static void a_network_has_its_addresses_and_no_others(void **state)
{
	(void)state;
	assert_true(matches("10.0.0.0/8", "10.255.0.1"));
	assert_false(matches("10.0.0.0/8", "11.0.0.1"));
	assert_true(matches("192.0.2.128/25", "192.0.2.200"));
	assert_false(matches("192.0.2.128/25", "192.0.2.127"));
	assert_true(matches("192.0.2.1", "192.0.2.1"));
	assert_false(matches("192.0.2.1", "192.0.2.2"));
	assert_true(matches("0.0.0.0/0", "203.0.113.9"));
	assert_true(matches("2001:db8::/33", "2001:db8:7fff::1"));
	assert_false(matches("2001:db8::/33", "2001:db8:8000::1"));
	assert_true(matches("[::1]/128", "::1"));
}

static void a_mapped_address_is_the_ipv4_address(void **state)
{
	(void)state;
	assert_true(matches("127.0.0.0/8", "::ffff:127.0.0.1"));
	assert_false(matches("127.0.0.0/8", "::ffff:128.0.0.1"));
	assert_true(matches("::ffff:127.0.0.0/104", "127.1.1.1"));
}

static void all_of_ipv6_does_not_mean_ipv4(void **state)
{
	(void)state;
	assert_true(matches("::/0", "2001:db8::1"));
	assert_false(matches("::/0", "192.0.2.1"));
	assert_false(matches("::/0", "::ffff:192.0.2.1"));
	assert_false(matches("0.0.0.0/0", "2001:db8::1"));
}

/* Each network around an address, the smallest first, has it, and one text. */
static void around_an_address_lie_networks(void **state)
{
	(void)state;
	static const struct {
		const char *host, *first, *ninth, *last;
		int n;
	} c[] = {{"192.0.2.77", "192.0.2.77", "192.0.2.0/24", "0.0.0.0/0", 33},
		 {"::ffff:192.0.2.77", "192.0.2.77", "192.0.2.0/24", "0.0.0.0/0", 33},
		 {"2001:db8::fedc", "2001:db8::fedc", "2001:db8::fe00/120", "::/0", 129}};
	for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
		union address a;
		struct net n, read;
		char text[NET_TEXT];
		int count = 0;
		assert_true(address_parse(c[i].host, 25, &a));
		net_of(&a, &n);
		do {
			net_text(&n, text);
			assert_true(net_parse(text, &read));
			assert_memory_equal(&read, &n, sizeof n);
			assert_true(net_match(&n, &a));
			if (count == 0)
				assert_string_equal(text, c[i].first);
			if (count == 8)
				assert_string_equal(text, c[i].ninth);
			count++;
		} while (net_up(&n));
		assert_int_equal(count, c[i].n);
		assert_string_equal(text, c[i].last);
	}
}

static void what_is_no_network_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",	      "10.0.0.0/33",	"10.0.0/8",   "10.0.0.0/", "10.0.0.0/-1",
		"10.0.0.0/a", "2001:db8::/129", "10.0.0.1/8", "localhost", "10.0.0.0/8/8",
		" 10.0.0.0/8"};
	struct net n;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_false(net_parse(bad[i], &n));
}

static void a_list_matches_with_any_of_its_networks_and_an_empty_one_never(void **state)
{
	(void)state;
	char *items[] = {"127.0.0.0/8", "::1"};
	char *wrong[] = {"127.0.0.0/8", "nonsense"};
	struct conf_list texts = {2, items}, bad = {2, wrong}, none = {0, NULL};
	struct netlist l;
	union address a;
	const char *fault = NULL;
	assert_true(address_parse("::1", 0, &a));
	assert_true(netlist_init(&l, &texts, NULL));
	assert_true(netlist_match(&l, &a));
	netlist_fini(&l);
	assert_true(netlist_init(&l, &none, NULL));
	assert_false(netlist_match(&l, &a));
	netlist_fini(&l);
	assert_false(netlist_init(&l, &bad, &fault));
	assert_string_equal(fault, "nonsense");
}

static void an_address_is_read_with_its_port(void **state)
{
	(void)state;
	union address a;
	char text[64];
	assert_true(address_parse_with_port("127.0.0.1:2525", &a));
	assert_string_equal(address_text(&a, text), "127.0.0.1");
	assert_int_equal(address_port(&a), 2525);
	assert_true(address_parse_with_port("[2001:db8::1]:25", &a));
	assert_string_equal(address_text(&a, text), "2001:db8::1");
	assert_int_equal(address_port(&a), 25);
	/* An IPv6 socket that takes no IPv4 can't be bound to what stands for one. */
	assert_true(address_parse_with_port("[::ffff:192.0.2.1]:25", &a));
	assert_string_equal(address_text(&a, text), "192.0.2.1");
	assert_int_equal(address_port(&a), 25);
	union address source[2];
	assert_int_equal(address_parse_sources("::ffff:192.0.2.1, 2001:db8::1", source), 2);
	assert_string_equal(address_text(&source[0], text), "192.0.2.1");
	assert_int_equal(address_parse_sources("::ffff:192.0.2.1, 192.0.2.2", source), -1);
	static const char *const bad[] = {
		"127.0.0.1", "127.0.0.1:",     "127.0.0.1:99999", "::1:25", "[::1]", ":25",
		"a:25",	     "[127.0.0.1]:25", "127.0.0.1:-1",	  "",	    "[]:25"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_false(address_parse_with_port(bad[i], &a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_network_has_its_addresses_and_no_others),
		cmocka_unit_test(a_mapped_address_is_the_ipv4_address),
		cmocka_unit_test(all_of_ipv6_does_not_mean_ipv4),
		cmocka_unit_test(around_an_address_lie_networks),
		cmocka_unit_test(what_is_no_network_is_refused),
		cmocka_unit_test(a_list_matches_with_any_of_its_networks_and_an_empty_one_never),
		cmocka_unit_test(an_address_is_read_with_its_port),
	};
	return RUN(tests);
}
