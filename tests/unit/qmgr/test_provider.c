/* SPDX-License-Identifier: ISC */
/* What holds for all destinations of a provider together. */
#include "tests/unit/qmgr/world.h"

#include "base/address.h"
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

static const char carried[] =
	"transport slow { port = 2525 }  transport other { }"
	"provider big { mx = { .big.test } transport = slow }"
	"route named.test { transport = other }  route smtp.test { transport = smtp }"
	"route relayed.test { relay = { mx9.big.test } }";

static const char *carrier_of(const char *site)
{
	return site_named(site)->queue.transport->title;
}

static void it_chooses_the_transport_of_its_mail(void **state)
{
	(void)state;
	begin(carried);
	send_mail(1, "x@a.test");
	answer("a.test", "10 mx1.big.test 192.0.2.1");
	assert_int_equal(questions.n, 1); /* once more, with the port of that */
	answer("a.test", "10 mx1.big.test 192.0.2.1");
	assert_int_equal(questions.n, 0);
	assert_int_equal(HASH_COUNT(q->db.sites), 1);
	assert_string_equal(carrier_of("mx1.big.test"), "slow");
	assert_int_equal(address_port(&open_at(0)->address), 2525);
	send_mail(2, "y@a.test");
	assert_int_equal(questions.n, 0);
	ready(open_at(0), 2);
	done(delivery_of_mail(1), VERDICT_SENT);
	done(delivery_of_mail(2), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
	is_released(1);
	is_delivered(2, 1, VERDICT_SENT);
	is_released(2);
	destdb_check(&q->db);
}

static void what_a_route_names_goes_before_it(void **state)
{
	(void)state;
	begin(carried);
	send_mail(1, "x@named.test");
	answer("named.test", "10 mx1.big.test 192.0.2.1");
	assert_string_equal(carrier_of("mx1.big.test"), "other");
	send_mail(2, "x@smtp.test");
	answer("smtp.test", "10 mx2.big.test 192.0.2.2");
	assert_string_equal(carrier_of("mx2.big.test"), "smtp");
	send_mail(3, "x@relayed.test");
	answer("mx9.big.test", "0 mx9.big.test 192.0.2.3");
	assert_string_equal(carrier_of("mx9.big.test"), "smtp");
	assert_int_equal(questions.n, 0);
}

static void mail_of_nobodys_hosts_stays_where_it_is(void **state)
{
	(void)state;
	begin(carried);
	send_mail(1, "x@b.test");
	answer("b.test", "10 mx1.else.test 192.0.2.1");
	assert_string_equal(carrier_of("mx1.else.test"), "smtp");
	send_mail(2, "x@c.test");
	answer("c.test", "10 mx2.big.test 192.0.2.2, 10 mx2.else.test 192.0.2.3");
	assert_string_equal(carrier_of("mx2.big.test,mx2.else.test"), "smtp");
	assert_int_equal(questions.n, 0);
}

/* The second answer would send it back: it was asked for on behalf of the transport that was chosen. */
static void providers_do_not_pass_it_to_and_fro(void **state)
{
	(void)state;
	begin("transport slow { }  provider big { mx = { .big.test } transport = slow }"
	      "provider small { mx = { .small.test } transport = smtp }");
	send_mail(1, "x@a.test");
	answer("a.test", "10 mx1.big.test 192.0.2.1");
	answer("a.test", "10 mx1.small.test 192.0.2.2");
	assert_int_equal(questions.n, 0);
	assert_string_equal(carrier_of("mx1.small.test"), "slow");
}

static void each_recipient_goes_its_own_way(void **state)
{
	(void)state;
	begin(carried);
	struct envelope *e = mail(1, "", "x@a.test");
	envelope_add(e, "x@b.test");
	envelope_add(e, "y@a.test");
	arrive(e);
	answer("a.test", "10 mx1.big.test 192.0.2.1");
	answer("b.test", "10 mx1.else.test 192.0.2.2");
	answer("a.test", "10 mx1.big.test 192.0.2.1");
	ready(open_to("mx1.big.test"), 1);
	ready(open_to("mx1.else.test"), 1);
	assert_int_equal(given.n, 2);
	assert_int_equal(given_at(0)->nrcpt + given_at(1)->nrcpt, 3);
	cancel(1);
}

static void no_answer_for_the_transport_of_it_is_told(void **state)
{
	(void)state;
	begin(carried);
	send_mail(1, "x@a.test");
	answer("a.test", "10 mx1.big.test 192.0.2.1");
	no_answer("a.test", VERDICT_DEFERRED, "4.4.3");
	struct envelope *e = is_kept(1);
	assert_string_equal(e->rcpt[0].last->dsn, "4.4.3");
	envelope_free(&e);
	assert_int_equal(HASH_COUNT(q->db.sites), 0);
}

static void its_transport_may_go_with_a_reload(void **state)
{
	(void)state;
	begin(carried);
	send_mail(1, "x@a.test");
	answer("a.test", "10 mx1.big.test 192.0.2.1");
	reload(""); /* while the second answer is to come */
	answer("a.test", "10 mx1.big.test 192.0.2.1");
	assert_string_equal(carrier_of("mx1.big.test"), "slow");
	send_mail(2, "x@b.test");
	answer("b.test", "10 mx2.big.test 192.0.2.2");
	assert_string_equal(carrier_of("mx2.big.test"), "smtp");
	destdb_check(&q->db);
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
		TEST(it_chooses_the_transport_of_its_mail),
		TEST(what_a_route_names_goes_before_it),
		TEST(mail_of_nobodys_hosts_stays_where_it_is),
		TEST(providers_do_not_pass_it_to_and_fro),
		TEST(each_recipient_goes_its_own_way),
		TEST(no_answer_for_the_transport_of_it_is_told),
		TEST(its_transport_may_go_with_a_reload),
		TEST(it_is_forgotten_with_its_last_destination),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
