/* SPDX-License-Identifier: ISC */
/* What holds for all destinations of a provider together. */
#include "tests/unit/qmgr/world.h"

#include "qmgr/dest/ladder.h"
#include "qmgr/dest/provider.h"

enum { DOMAINS = 6 };

static const char limited[] = "provider big { mx = { .big.test } connection_limit = 3 }";

/* Domain i has a host of its own, which is the provider's. */
static void send_to(int i, uint64_t id)
{
	char to[64], domain[32], host[64];
	snprintf(domain, sizeof domain, "d%d.test", i);
	snprintf(to, sizeof to, "x@%s", domain);
	snprintf(host, sizeof host, "10 mx%d.big.test 192.0.2.%d", i, i + 1);
	int asked = questions.n;
	send_mail(id, to);
	if (questions.n > asked)
		answer(domain, host);
}

static void send_to_all(void)
{
	for (int i = 0; i < DOMAINS; i++)
		send_to(i, (uint64_t)i + 1);
}

static const struct site *site_of(int i)
{
	char name[32];
	snprintf(name, sizeof name, "mx%d.big.test", i);
	return site_named(name);
}

static int count_held(enum constraint c)
{
	int n = 0;
	for (int i = 0; i < DOMAINS; i++)
		n += ladder_of_first(site_of(i)).constraint == c;
	return n;
}

static void its_destinations_share_so_many_connections(void **state)
{
	(void)state;
	begin(limited);
	send_to_all();
	assert_int_equal(opened.n, 3);
	assert_int_equal(count_held(CONSTRAINT_PROVIDER_CONNECTION_LIMIT), DOMAINS - 3);
	assert_int_equal(ladder_of_first(site_of(DOMAINS - 1)).limit, 3);
	destdb_check(&q->db);
}

static void who_is_of_no_provider_is_not_held(void **state)
{
	(void)state;
	begin(limited);
	send_to_all();
	send_mail(100, "x@else.test");
	answer("else.test", "10 mx.else.test 192.0.2.99");
	assert_int_equal(opened.n, 4);
	assert_int_equal(opened_to("mx.else.test"), 1);
}

static void a_connection_that_ends_makes_room_for_the_first_in_line(void **state)
{
	(void)state;
	begin(limited);
	send_to_all();
	for (int i = 3; i < DOMAINS; i++) {
		lose(open_at(0), "cut off"); /* of one that is to be tried again later */
		assert_int_equal(opened.n, 3);
		char host[32];
		snprintf(host, sizeof host, "mx%d.big.test", i);
		assert_int_equal(opened_to(host), 1);
	}
	destdb_check(&q->db);
}

static void an_idle_connection_makes_room(void **state)
{
	(void)state;
	begin(limited);
	send_to_all();
	struct connection_open *o = open_at(0);
	ready(o, 1);
	done(given_at(0), VERDICT_SENT);
	assert_true(was_told_to_end(o));
	assert_int_equal(opened.n, 3);
	close_orderly(o);
	assert_int_equal(opened.n, 3);
	assert_int_equal(opened_to("mx3.big.test"), 1);
	destdb_check(&q->db);
}

static void a_limit_that_is_lifted_lets_all_go_on(void **state)
{
	(void)state;
	begin(limited);
	send_to_all();
	reload("provider big { mx = { .big.test } connection_limit = 5 }");
	settle();
	assert_int_equal(opened.n, 5);
	reload("");
	settle();
	assert_int_equal(opened.n, DOMAINS);
	assert_null(site_of(0)->provider);
	destdb_check(&q->db);
}

static void hosts_of_several_are_nobodys(void **state)
{
	(void)state;
	begin(limited);
	send_mail(1, "x@a.test");
	answer("a.test", "10 mx1.big.test 192.0.2.1, 10 mx1.else.test 192.0.2.2");
	send_mail(2, "x@b.test");
	answer("b.test", "10 mx2.big.test 192.0.2.3, 20 backup.else.test 192.0.2.4");
	assert_null(site_named("mx1.big.test,mx1.else.test")->provider);
	assert_string_equal(site_named("mx2.big.test;backup.else.test")->provider->name, "big");
}

/* All have a connection that is ready, and one delivery each that waits. */
static void make_all_ready(void)
{
	for (int i = 0; i < opened.n; i++)
		ready(open_at(i), 1);
}

static void its_destinations_share_a_rate(void **state)
{
	(void)state;
	begin("provider big { mx = { .big.test } rate = \"2/s\" }");
	send_to_all();
	make_all_ready();
	assert_int_equal(given.n, 1);
	assert_int_equal(count_held(CONSTRAINT_PROVIDER_RATE), DOMAINS - 1);
	for (int n = 2; n <= DOMAINS; n++) {
		pass_time(499);
		assert_int_equal(given.n, n - 1);
		pass_time(1);
		assert_int_equal(given.n, n);
	}
	destdb_check(&q->db);
}

static void it_is_forgotten_with_its_last_destination(void **state)
{
	(void)state;
	begin(limited);
	send_to(0, 1);
	assert_int_equal(HASH_COUNT(q->db.providers), 1);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
	is_released(1);
	close_orderly(open_at(0));
	pass_time(3600 * 1000);
	settle();
	assert_int_equal(HASH_COUNT(q->db.providers), 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(its_destinations_share_so_many_connections),
		TEST(who_is_of_no_provider_is_not_held),
		TEST(a_connection_that_ends_makes_room_for_the_first_in_line),
		TEST(an_idle_connection_makes_room),
		TEST(a_limit_that_is_lifted_lets_all_go_on),
		TEST(hosts_of_several_are_nobodys),
		TEST(its_destinations_share_a_rate),
		TEST(it_is_forgotten_with_its_last_destination),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
