/* SPDX-License-Identifier: ISC */
#include "dns/mx.h"

#include "base/mem.h"
#include "base/netlist.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static union address own[2];
static struct ourself self = {.name = (char *)"relay.test", .naddress = 2, .address = own};
static uint64_t chance;
static struct mx mx;
static struct resolve *r;

/* What stands for the addresses of the world here are those of books and tests. */
static char *books[] = {(char *)"192.0.2.0/24", (char *)"198.51.100.0/24", (char *)"203.0.113.0/24",
			(char *)"2001:db8::/32"};
static struct netlist near;

static void begin(void)
{
	mx_init(&mx, "example.test", &self, &chance);
	mx.near = &near;
}

static int set_up(void **state)
{
	(void)state;
	dnsname_literal("198.51.100.9", true, &own[0]);
	dnsname_literal("127.0.0.1", true, &own[1]);
	chance = 7;
	netlist_init(&near, &(struct conf_list){4, books}, NULL);
	begin();
	r = resolve_new(RESOLVE_MX, "example.test", NULL, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	mx_fini(&mx);
	netlist_fini(&near);
	resolve_free(&r);
	return 0;
}

static struct answer *answer(enum answer_status status)
{
	struct answer *a = answer_failed(status == ANSWER_FAILED ? "SERVFAIL" : NULL);
	a->status = status;
	a->record = calloc(600, sizeof *a->record);
	return a;
}

static void add_mx(struct answer *a, uint16_t preference, const char *target)
{
	struct answer_record *to = &a->record[a->nrecord++];
	to->preference = preference;
	to->target = target ? strdup(target) : NULL;
}

/* Answers for a target: addresses, or a status for both families. */
static void reach(const char *name, const char *in, const char *in6)
{
	for (int i = 0; i < mx.ntarget; i++) {
		struct mx_target *t = &mx.target[i];
		if (strcmp(t->name, name) != 0)
			continue;
		t->a = answer(in ? ANSWER_RECORDS : ANSWER_NODATA);
		t->aaaa = answer(in6 ? ANSWER_RECORDS : ANSWER_NODATA);
		if (in)
			dnsname_literal(in, true, &t->a->record[t->a->nrecord++].address);
		if (in6)
			dnsname_literal(in6, true, &t->aaaa->record[t->aaaa->nrecord++].address);
		return;
	}
	fail_msg("%s is no target", name);
}

static void lose(const char *name)
{
	reach(name, NULL, NULL);
	for (int i = 0; i < mx.ntarget; i++)
		if (strcmp(mx.target[i].name, name) == 0) {
			mx.target[i].aaaa->status = ANSWER_FAILED;
			mx.target[i].aaaa->why = mem_strdup("SERVFAIL");
		}
}

static struct verdict *targets(struct answer *a)
{
	struct verdict *v = mx_targets(&mx, a);
	answer_unref(a);
	return v;
}

static void expect(struct verdict *v, enum verdict_class class, int code, const char *dsn)
{
	assert_non_null(v);
	assert_int_equal(v->class, class);
	assert_int_equal(v->code, code);
	assert_string_equal(v->dsn, dsn);
	assert_non_null(strstr(v->text, "example.test"));
	verdict_unref(v);
}

static void hosts_come_out_by_preference(void **state)
{
	(void)state;
	struct answer *a = answer(ANSWER_RECORDS);
	add_mx(a, 10, "a.test");
	add_mx(a, 20, "b.test");
	assert_null(targets(a));
	reach("a.test", "192.0.2.1", "2001:db8::1");
	reach("b.test", "192.0.2.2", NULL);
	assert_null(mx_hosts(&mx, r));
	assert_int_equal(r->nhost, 2);
	assert_string_equal(r->host[0].name, "a.test");
	assert_int_equal(r->host[0].naddress, 2);
	assert_int_equal(r->host[0].address[0].sa.sa_family, AF_INET6);
	assert_int_equal(r->host[0].address[1].sa.sa_family, AF_INET);
	assert_int_equal(r->host[1].preference, 20);
}

static void equal_preferences_are_shuffled_and_others_are_not(void **state)
{
	(void)state;
	int first[3] = {0};
	for (int round = 0; round < 300; round++) {
		struct answer *a = answer(ANSWER_RECORDS);
		add_mx(a, 5, "best.test");
		add_mx(a, 10, "0.test");
		add_mx(a, 10, "1.test");
		add_mx(a, 10, "2.test");
		add_mx(a, 20, "last.test");
		assert_null(targets(a));
		assert_string_equal(mx.target[0].name, "best.test");
		assert_string_equal(mx.target[4].name, "last.test");
		first[mx.target[1].name[0] - '0']++;
		mx_fini(&mx);
		begin();
	}
	for (int i = 0; i < 3; i++)
		assert_in_range(first[i], 60, 140);
}

static void the_same_seed_gives_the_same_order(void **state)
{
	(void)state;
	uint64_t a = 42, b = 42;
	for (int i = 0; i < 10; i++)
		assert_true(mx_chance(&a) == mx_chance(&b));
}

static void a_domain_that_does_not_exist_is_5_1_2(void **state)
{
	(void)state;
	expect(targets(answer(ANSWER_NXDOMAIN)), VERDICT_FAILED, 550, "5.1.2");
}

static void a_null_mx_is_5_1_10(void **state)
{
	(void)state;
	struct answer *a = answer(ANSWER_RECORDS);
	add_mx(a, 0, "");
	expect(targets(a), VERDICT_FAILED, 556, "5.1.10");
}

static void the_root_among_other_hosts_is_ignored(void **state)
{
	(void)state;
	struct answer *a = answer(ANSWER_RECORDS);
	add_mx(a, 0, "");
	add_mx(a, 10, "a.test");
	assert_null(targets(a));
	assert_int_equal(mx.ntarget, 1);
}

static void a_failed_look_up_is_deferred(void **state)
{
	(void)state;
	expect(targets(answer(ANSWER_FAILED)), VERDICT_DEFERRED, 451, "4.4.3");
}

static void without_mx_the_domain_itself_is_the_host(void **state)
{
	(void)state;
	assert_null(targets(answer(ANSWER_NODATA)));
	reach("example.test", "192.0.2.1", NULL);
	assert_null(mx_hosts(&mx, r));
	assert_int_equal(r->nhost, 1);
	assert_string_equal(r->host[0].name, "example.test");
	assert_int_equal(r->host[0].preference, 0);
}

static void no_address_at_all_is_5_4_4(void **state)
{
	(void)state;
	struct answer *a = answer(ANSWER_RECORDS);
	add_mx(a, 10, "a.test");
	add_mx(a, 20, "b.test");
	assert_null(targets(a));
	reach("a.test", NULL, NULL);
	reach("b.test", NULL, NULL);
	expect(mx_hosts(&mx, r), VERDICT_FAILED, 550, "5.4.4");
}

static void targets_that_are_no_host_names_are_no_hosts(void **state)
{
	(void)state;
	struct answer *a = answer(ANSWER_RECORDS);
	add_mx(a, 10, NULL);
	expect(targets(a), VERDICT_FAILED, 550, "5.4.4");
}

static void one_look_up_that_failed_defers_when_no_host_is_usable(void **state)
{
	(void)state;
	struct answer *a = answer(ANSWER_RECORDS);
	add_mx(a, 10, "a.test");
	add_mx(a, 20, "b.test");
	assert_null(targets(a));
	reach("a.test", NULL, NULL);
	lose("b.test");
	expect(mx_hosts(&mx, r), VERDICT_DEFERRED, 451, "4.4.3");
}

static void a_usable_host_makes_up_for_one_that_failed(void **state)
{
	(void)state;
	struct answer *a = answer(ANSWER_RECORDS);
	add_mx(a, 10, "a.test");
	add_mx(a, 20, "b.test");
	assert_null(targets(a));
	lose("a.test");
	reach("b.test", "192.0.2.2", NULL);
	assert_null(mx_hosts(&mx, r));
	assert_int_equal(r->nhost, 1);
}

static void our_own_name_and_what_is_no_better_is_left_out(void **state)
{
	(void)state;
	struct answer *a = answer(ANSWER_RECORDS);
	add_mx(a, 10, "a.test");
	add_mx(a, 20, "relay.test");
	add_mx(a, 20, "equal.test");
	add_mx(a, 30, "worse.test");
	assert_null(targets(a));
	assert_int_equal(mx.ntarget, 1);
	assert_string_equal(mx.target[0].name, "a.test");
}

static void being_the_best_host_ourselves_is_a_loop(void **state)
{
	(void)state;
	struct answer *a = answer(ANSWER_RECORDS);
	add_mx(a, 10, "relay.test");
	add_mx(a, 30, "worse.test");
	expect(targets(a), VERDICT_FAILED, 550, "5.4.6");
}

static void our_own_address_under_another_name_is_left_out(void **state)
{
	(void)state;
	struct answer *a = answer(ANSWER_RECORDS);
	add_mx(a, 10, "a.test");
	add_mx(a, 20, "alias.test");
	add_mx(a, 30, "worse.test");
	assert_null(targets(a));
	reach("a.test", "192.0.2.1", NULL);
	reach("alias.test", NULL, "::ffff:198.51.100.9");
	reach("worse.test", "192.0.2.3", NULL);
	assert_null(mx_hosts(&mx, r));
	assert_int_equal(r->nhost, 1);
	assert_string_equal(r->host[0].name, "a.test");
}

static void our_own_address_as_the_best_host_is_a_loop(void **state)
{
	(void)state;
	assert_null(targets(answer(ANSWER_NODATA)));
	reach("example.test", "198.51.100.9", NULL);
	expect(mx_hosts(&mx, r), VERDICT_FAILED, 550, "5.4.6");
}

static const char *const local[] = {
	"127.0.0.1",	    "127.9.9.9",	  "169.254.1.1",    "::1",	  "fe80::1",
	"::ffff:127.0.0.2", "64:ff9b::127.0.0.1", "2002:7f00:1::1", "::127.0.0.1"};
static const char *const nowhere[] = {"0.0.0.0", "0.1.2.3", "224.0.0.1",      "255.255.255.255",
				      "::",	 "ff02::1", "::ffff:0.0.0.0", "64:ff9b::224.0.0.1",
				      "2002::1"};

static struct verdict *hosts_of(const char *address, bool trusted, bool lab)
{
	bool in6 = strchr(address, ':');
	tear_down(NULL);
	set_up(NULL);
	mx.trusted = trusted;
	mx.lab = lab;
	assert_null(targets(answer(ANSWER_NODATA)));
	reach("example.test", in6 ? NULL : address, in6 ? address : NULL);
	return mx_hosts(&mx, r);
}

static void local_addresses_are_used_only_when_allowed(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof local / sizeof *local; i++) {
		expect(hosts_of(local[i], false, false), VERDICT_FAILED, 550, "5.4.6");
		assert_null(hosts_of(local[i], true, false));
		assert_null(hosts_of(local[i], false, true));
	}
}

static void addresses_of_nobody_are_never_used_for_an_mx(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
		expect(hosts_of(nowhere[i], false, false), VERDICT_FAILED, 550, "5.4.6");
		expect(hosts_of(nowhere[i], false, true), VERDICT_FAILED, 550, "5.4.6");
	}
}

static void private_addresses_are_used_only_where_they_are_named(void **state)
{
	static const char *const private[] = {
		"10.0.0.1",	     "10.255.255.255", "100.64.0.1",	    "172.16.0.1",
		"172.31.255.255",    "192.168.1.25",   "192.0.0.8",	    "198.18.0.1",
		"fc00::1",	     "fd12:3456::1",   "fec0::1",	    "100::1",
		"64:ff9b:1::1",	     "3fff::25",       "::ffff:10.0.0.1",   "5f00::1",
		"2001:10::1",	     "2001::1",	       "64:ff9b::10.0.0.1", "2002:c0a8:101::1",
		"::ffff:0:10.0.0.1", "::10.0.0.1",
	};
	static const char *const global[] = {
		"9.9.9.9",    "11.0.0.1",   "100.128.0.1", "172.32.0.1",       "192.0.1.1",
		"198.20.0.1", "2620:fe::9", "2001:db9::1", "64:ff9b::9.9.9.9", "2002:909:909::1"};
	char *all[] = {(char *)"0.0.0.0/0", (char *)"::/0"};
	(void)state;
	for (size_t i = 0; i < sizeof private / sizeof *private; i++) {
		expect(hosts_of(private[i], false, false), VERDICT_FAILED, 550, "5.4.4");
		expect(hosts_of(private[i], false, true), VERDICT_FAILED, 550, "5.4.4");
		assert_null(hosts_of(private[i], true, false));
		tear_down(NULL);
		set_up(NULL);
		netlist_fini(&near);
		netlist_init(&near, &(struct conf_list){2, all}, NULL);
		assert_null(targets(answer(ANSWER_NODATA)));
		bool in6 = strchr(private[i], ':');
		reach("example.test", in6 ? NULL : private[i], in6 ? private[i] : NULL);
		assert_null(mx_hosts(&mx, r));
	}
	for (size_t i = 0; i < sizeof global / sizeof *global; i++)
		assert_null(hosts_of(global[i], false, false));
}

static void a_host_with_a_local_address_does_not_hide_a_good_one(void **state)
{
	(void)state;
	struct answer *a = answer(ANSWER_RECORDS);
	add_mx(a, 10, "trap.test");
	add_mx(a, 20, "b.test");
	assert_null(targets(a));
	reach("trap.test", "127.0.0.1", NULL);
	reach("b.test", "192.0.2.2", NULL);
	assert_null(mx_hosts(&mx, r));
	assert_int_equal(r->nhost, 1);
	assert_string_equal(r->host[0].name, "b.test");
}

static void what_the_configuration_names_may_be_ourselves(void **state)
{
	(void)state;
	mx.trusted = true;
	assert_null(mx_only(&mx, "relay.test"));
	reach("relay.test", "198.51.100.9", NULL);
	assert_null(mx_hosts(&mx, r));
	assert_int_equal(r->nhost, 1);
}

static void hosts_and_addresses_are_bounded(void **state)
{
	(void)state;
	char name[30];
	struct answer *a = answer(ANSWER_RECORDS);
	for (int i = 0; i < ANSWER_MX_MAX; i++) {
		snprintf(name, sizeof name, "m%d.test", i);
		add_mx(a, (uint16_t)i, name);
	}
	assert_null(targets(a));
	assert_int_equal(mx.ntarget, MX_TARGETS_MAX);
	for (int i = 0; i < mx.ntarget; i++) {
		struct mx_target *t = &mx.target[i];
		reach(t->name, "192.0.2.1", "2001:db8::1");
		for (t->a->nrecord = 0; t->a->nrecord < ANSWER_ADDRESS_MAX; t->a->nrecord++)
			dnsname_literal("192.0.2.1", true, &t->a->record[t->a->nrecord].address);
	}
	assert_null(mx_hosts(&mx, r));
	assert_int_equal(r->nhost, RESOLVE_HOSTS_MAX);
	assert_int_equal(r->host[0].naddress, RESOLVE_ADDRESSES_MAX);
	assert_int_equal(r->host[0].address[0].sa.sa_family, AF_INET6);
}

static void a_host_named_twice_is_one_host(void **state)
{
	(void)state;
	struct answer *a = answer(ANSWER_RECORDS);
	add_mx(a, 10, "a.test");
	add_mx(a, 20, "a.test");
	assert_null(targets(a));
	assert_int_equal(mx.ntarget, 1);
	assert_int_equal(mx.target[0].preference, 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(hosts_come_out_by_preference),
		TEST(equal_preferences_are_shuffled_and_others_are_not),
		TEST(the_same_seed_gives_the_same_order),
		TEST(a_domain_that_does_not_exist_is_5_1_2),
		TEST(a_null_mx_is_5_1_10),
		TEST(the_root_among_other_hosts_is_ignored),
		TEST(a_failed_look_up_is_deferred),
		TEST(without_mx_the_domain_itself_is_the_host),
		TEST(no_address_at_all_is_5_4_4),
		TEST(targets_that_are_no_host_names_are_no_hosts),
		TEST(one_look_up_that_failed_defers_when_no_host_is_usable),
		TEST(a_usable_host_makes_up_for_one_that_failed),
		TEST(our_own_name_and_what_is_no_better_is_left_out),
		TEST(being_the_best_host_ourselves_is_a_loop),
		TEST(our_own_address_under_another_name_is_left_out),
		TEST(our_own_address_as_the_best_host_is_a_loop),
		TEST(local_addresses_are_used_only_when_allowed),
		TEST(private_addresses_are_used_only_where_they_are_named),
		TEST(addresses_of_nobody_are_never_used_for_an_mx),
		TEST(a_host_with_a_local_address_does_not_hide_a_good_one),
		TEST(what_the_configuration_names_may_be_ourselves),
		TEST(hosts_and_addresses_are_bounded),
		TEST(a_host_named_twice_is_one_host),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
