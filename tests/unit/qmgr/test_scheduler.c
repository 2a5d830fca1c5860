/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/world.h"

#include "base/address.h"

#include "qmgr/nexthop.h"

static const char two_hosts[] = "10 mx1.test 192.0.2.1, 10 mx2.test 192.0.2.2";
static const char relay[] = "route \"*\" { relay = { \"[relay.test]:2525\" } }\n";

static void an_arrival_asks_dns_and_nobody_else(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	assert_int_equal(questions.n, 1);
	struct resolve *r = (struct resolve *)questions.note[0];
	assert_string_equal(r->name, "a.test");
	assert_int_equal(r->kind, RESOLVE_MX);
	assert_false(r->trusted);
	assert_int_equal(opened.n + given.n + told.n, 0);
}

static void messages_to_one_domain_ask_once(void **state)
{
	(void)state;
	begin("");
	for (uint64_t id = 1; id <= 10; id++)
		send_mail(id, "x@a.test");
	assert_int_equal(questions.n, 1);
	answer("a.test", one_host);
	send_mail(11, "x@a.test");
	assert_int_equal(questions.n, 0); /* still fresh */
	pass_time(3600000);
	send_mail(12, "x@a.test");
	assert_int_equal(questions.n, 1);
}

static void no_more_connections_are_opened_than_messages_wait(void **state)
{
	(void)state;
	begin("");
	send_many(3);
	assert_int_equal(opened.n, 3);
	assert_string_equal(open_at(0)->host, "mx.test");
	assert_int_equal(address_port(&open_at(0)->address), 25);
}

static void no_more_connections_are_opened_than_the_window_allows(void **state)
{
	(void)state;
	begin("");
	send_many(30);
	assert_int_equal(opened.n, 5);
}

static void nothing_is_given_before_a_connection_is_ready(void **state)
{
	(void)state;
	names_stay = true;
	begin("");
	send_many(3);
	pass_time(60000);
	assert_int_equal(given.n, 0);
	ready(open_at(1), 1);
	assert_int_equal(given.n, 1);
	assert_true(given_at(0)->connection == open_at(1)->connection);
	assert_true(given_at(0)->id == 1);
	assert_string_equal(given_at(0)->rcpt[0].address, "x@a.test");
	assert_string_equal(given_at(0)->sender, "sender@here.test");
}

static void a_connection_carries_no_more_at_once_than_it_said(void **state)
{
	(void)state;
	begin("");
	send_many(10);
	ready(open_at(0), 3);
	assert_int_equal(given.n, 3);
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(given.n, 3);
}

static void a_domain_that_does_not_exist_fails_its_recipients(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@nowhere.test");
	no_answer("nowhere.test", VERDICT_FAILED, "5.1.2");
	struct spool_store *s = next_told(SPOOL_STORE);
	stored(s, true);
	is_delivered(1, 1, VERDICT_FAILED);
	is_released(1);
	assert_int_equal(opened.n, 0);
}

static void a_relay_that_does_not_exist_defers_its_mail(void **state)
{
	(void)state;
	begin(relay);
	send_mail(1, "x@a.test");
	assert_true(((struct resolve *)questions.note[0])->trusted);
	no_answer("relay.test", VERDICT_FAILED, "5.1.2");
	struct envelope *e = is_kept(1);
	assert_string_equal(e->rcpt[0].last->dsn, "4.4.4");
	envelope_free(&e);
}

static void a_waiting_message_that_is_cancelled_goes_at_once(void **state)
{
	(void)state;
	begin("");
	send_many(2);
	cancel(1);
	is_released(1);
	ready(open_at(0), 5);
	assert_int_equal(given.n, 1);
	assert_int_equal(given_at(0)->id, 2);
}

static void a_message_in_flight_that_is_cancelled_goes_when_it_is_back(void **state)
{
	(void)state;
	begin("");
	send_many(2);
	ready(open_at(0), 5);
	cancel(1);
	cancel(2);
	assert_int_equal(told.n, 0);
	done(delivery_of_mail(1), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
	is_released(1);
	put_back(delivery_of_mail(2));
	is_released(2);
	assert_int_equal(given.n + told.n, 0);
}

static void a_message_that_waits_for_dns_and_is_cancelled_goes_with_the_answer(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	cancel(1);
	answer("a.test", one_host);
	is_released(1);
	assert_int_equal(opened.n, 0);
	cancel(77); /* nobody knows it */
	assert_int_equal(told.n, 0);
}

static void recipients_of_a_domain_share_a_transaction_up_to_the_limit(void **state)
{
	(void)state;
	begin("transport smtp { destination_recipient_limit = 3 }");
	struct envelope *e = mail(1, "sender@here.test", NULL);
	for (int i = 0; i < 8; i++) {
		char to[32];
		snprintf(to, sizeof to, "x%d@a.test", i);
		envelope_add(e, to);
	}
	arrive(e);
	answer("a.test", one_host);
	assert_int_equal(opened.n, 3);
	ready(open_at(0), 10);
	assert_int_equal(given.n, 3);
	assert_int_equal(given_at(0)->nrcpt, 3);
	assert_int_equal(given_at(1)->nrcpt, 3);
	assert_int_equal(given_at(2)->nrcpt, 2);
	assert_string_equal(given_at(2)->rcpt[1].address, "x7@a.test");
}

static void two_domains_with_the_same_hosts_share_a_site_but_no_transaction(void **state)
{
	(void)state;
	begin("");
	struct envelope *e = mail(1, "sender@here.test", "x@a.test");
	envelope_add(e, "x@b.test");
	arrive(e);
	answer("a.test", two_hosts);
	answer("b.test", "10 mx2.test 192.0.2.2, 10 mx1.test 192.0.2.1");
	assert_int_equal(HASH_COUNT(q->db.sites), 1);
	ready(open_at(0), 10);
	assert_int_equal(given.n, 2);
	assert_int_equal(given_at(0)->nrcpt, 1);
	assert_int_equal(given_at(1)->nrcpt, 1);
}

static void mail_is_not_taken_to_the_backup_host_of_another_domain(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	answer("a.test", "10 mx.test 192.0.2.1, 20 backup-a.test 192.0.2.2");
	send_mail(2, "x@b.test");
	answer("b.test", "10 mx.test 192.0.2.1, 20 backup-b.test 192.0.2.3");
	while (opened_to("mx.test") > 0)
		lose(open_to("mx.test"), "refused");
	ready(open_to("backup-a.test"), 10);
	assert_int_equal(given.n, 1);
	assert_string_equal(given_at(0)->rcpt[0].address, "x@a.test");
}

static void users_of_one_domain_with_two_relays_are_two_sites(void **state)
{
	(void)state;
	begin("transport smtp { destination_by = domain }\n"
	      "route \"boss@a.test\" { relay = { \"[one.test]\" } }\n"
	      "route \"a.test\" { relay = { \"[two.test]\" } }\n");
	send_mail(1, "boss@a.test");
	answer("one.test", "0 one.test 192.0.2.1");
	send_mail(2, "x@a.test");
	answer("two.test", "0 two.test 192.0.2.2");
	assert_int_equal(opened_to("one.test"), 1);
	assert_int_equal(opened_to("two.test"), 1);
	ready(open_to("two.test"), 10);
	assert_int_equal(given.n, 1);
	assert_string_equal(given_at(0)->rcpt[0].address, "x@a.test");
}

static void two_domains_by_the_same_relay_share_a_transaction(void **state)
{
	(void)state;
	begin(relay);
	struct envelope *e = mail(1, "sender@here.test", "x@a.test");
	envelope_add(e, "x@b.test");
	arrive(e);
	assert_int_equal(questions.n, 1);
	assert_int_equal(((struct resolve *)questions.note[0])->kind, RESOLVE_HOST);
	answer("relay.test", "0 relay.test 192.0.2.1");
	assert_int_equal(address_port(&open_at(0)->address), 2525);
	ready(open_at(0), 10);
	assert_int_equal(given.n, 1);
	assert_int_equal(given_at(0)->nrcpt, 2);
}

static void relays_are_used_in_their_order(void **state)
{
	(void)state;
	begin("route \"*\" { relay = { \"[one.test]\", \"[two.test]\" } }");
	send_mail(1, "x@a.test");
	answer("two.test", "0 two.test 192.0.2.2");
	assert_int_equal(opened.n, 0); /* not before all have answered */
	answer("one.test", "0 one.test 192.0.2.1");
	assert_string_equal(open_at(0)->host, "one.test");
	lose(open_at(0), "refused");
	assert_string_equal(open_at(0)->host, "two.test");
}

/* Each message of world.h has 20 bytes. */
static void a_connection_carries_no_more_bytes_than_pipeline_bytes(void **state)
{
	(void)state;
	begin("transport \"smtp\" { pipeline_bytes = 40 destination_concurrency_limit = 1\n"
	      "initial_destination_concurrency = 1 }");
	send_mail(1, "x@a.test");
	answer("a.test", one_host);
	send_mail(2, "x@a.test");
	send_mail(3, "x@a.test");
	ready(open_at(0), 3);
	assert_int_equal(given.n, 2);
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(given.n, 2);
	assert_int_equal(given_at(1)->id, 3);
}

static void messages_are_taken_in_the_order_of_their_arrival(void **state)
{
	(void)state;
	begin("");
	enum { MANY = 1000 };
	send_many(MANY);
	ready(open_at(0), 1);
	for (uint64_t id = 1; id <= MANY; id++) {
		assert_int_equal(given.n, 1);
		assert_true(given_at(0)->id == id);
		done(given_at(0), VERDICT_SENT);
		is_delivered(id, 1, VERDICT_SENT);
		is_released(id);
	}
	assert_int_equal(given.n, 0);
	assert_int_equal(HASH_COUNT(q->messages), 0);
}

static void a_reload_changes_limits_at_once(void **state)
{
	(void)state;
	begin("transport smtp { connection_limit = 1 }");
	send_many(20);
	assert_int_equal(opened.n, 1);
	reload("transport smtp { connection_limit = 4 }");
	assert_int_equal(opened.n, 4);
}

static void a_reload_changes_routes_for_mail_that_waits_too(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	answer("a.test", one_host);
	reload(relay);
	answer("relay.test", "0 relay.test 192.0.2.7");
	send_mail(2, "x@a.test");
	assert_int_equal(opened_to("mx.test"), 1);
	ready(open_to("mx.test"), 9);
	assert_int_equal(given.n, 0);
	ready(open_to("relay.test"), 9);
	assert_int_equal(given.n, 2);
	assert_int_equal(given_at(0)->id, 1);
}

static void so_does_mail_whose_next_hop_was_being_looked_up(void **state)
{
	(void)state;
	static const char *const ways[] = {"route \"*\" { relay = { \"[r.test]:25\" } }",
					   "transport other { }  route \"*\" { transport = other "
					   "relay = { \"[r.test]:25\" } }",
					   "transport smtp { tls = required }"};
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		begin("");
		send_mail(1, "x@a.test");
		reload(ways[i]);
		if (i == 0)
			no_answer("a.test", VERDICT_DEFERRED, "4.4.3");
		else
			answer("a.test", one_host);
		assert_int_equal(opened.n, 0);
		answer(i < 2 ? "r.test" : "a.test", one_host);
		assert_int_equal(opened.n, 1);
		finish(state);
	}
}

static void each_recipient_of_a_message_that_waits_goes_where_its_own_route_leads_now(void **state)
{
	(void)state;
	begin("route \"*\" { relay = { \"[r.test]:25\" } }");
	struct envelope *e = mail(1, "sender@here.test", "x@a.test");
	envelope_add(e, "y@b.test");
	arrive(e);
	answer("r.test", one_host);
	reload("route \"*\" { relay = { \"[r.test]:25\" } }"
	       "route \"b.test\" { relay = { \"[s.test]:25\" } }");
	assert_int_equal(questions.n, 1);
	answer("s.test", "0 s.test 192.0.2.8");
	assert_int_equal(opened_to("s.test"), 1);
}

static void mail_whose_next_hop_was_being_looked_up_leaves_the_transport_of_before(void **state)
{
	(void)state;
	begin("transport other { port = 2525 } route \"*\" { transport = other }");
	send_mail(1, "x@a.test");
	reload("transport other { port = 2525 }");
	answer("a.test", one_host);
	if (questions.n)
		answer("a.test", one_host);
	assert_int_equal(opened.n, 1);
	assert_int_equal(address_port(&open_at(0)->address), 25);
}

static void mail_that_comes_back_from_its_connection_goes_where_its_route_leads_now(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	answer("a.test", one_host);
	ready(open_at(0), 1);
	reload("route \"*\" { relay = { \"[r.test]:25\" } }");
	assert_int_equal(questions.n, 0);
	put_back(given_at(0));
	assert_int_equal(given.n, 0);
	answer("r.test", "0 r.test 192.0.2.8");
	ready(open_to("r.test"), 1);
	assert_int_equal(given.n, 1);
}

/* All connections that were opened since. */
static void ready_from(int before)
{
	assert_true(opened.n > before);
	for (int i = before; i < opened.n; i++)
		ready(open_at(i), 1);
}

/* The first is sent, and the second waits for the hour to pass. */
static void begin_behind_a_rate(const char *settings)
{
	begin(settings);
	send_mail(1, "x@a.test");
	send_mail(2, "x@a.test");
	while (questions.n > 0)
		answer(((struct resolve *)questions.note[0])->name, one_host);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(given.n, 0);
}

static void mail_that_waits_goes_by_the_transport_that_its_route_names_now(void **state)
{
	(void)state;
	static const char settings[] =
		"transport slow { destination_rate = \"1/h\" }"
		"route \"*\" { transport = slow relay = { \"[r.test]:25\" } }";
	begin_behind_a_rate(settings);
	reload(settings);
	assert_int_equal(questions.n, 0); /* where nothing has changed nothing moves */
	int before = opened.n;
	reload("route \"*\" { relay = { \"[r.test]:25\" } }"); /* its own is there no more */
	answer("r.test", one_host);
	ready_from(before);
	assert_int_equal(given_at(0)->id, 2);
}

/* The way to the same hosts by the same transport. */
static void mail_that_waits_goes_on_the_terms_of_now(void **state)
{
	(void)state;
	static const char *const terms[] = {"port = 2525", "tls = required",
					    "source_address = 192.0.2.99",
					    "fallback_relay = { \"[b.test]\" }"};
	static const char slow[] = "transport smtp { destination_rate = \"1/h\" %s }";
	char settings[200];
	for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
		snprintf(settings, sizeof settings, slow, "");
		begin_behind_a_rate(settings);
		snprintf(settings, sizeof settings, slow, terms[i]);
		reload(settings);
		answer("a.test", one_host);
		assert_true(was_told_to_end(open_at(0)) || i == 3);
		finish(state);
	}
}

static void mail_that_waits_goes_by_the_transport_that_its_provider_wants_now(void **state)
{
	(void)state;
	static const char settings[] = "transport slow { destination_rate = \"1/h\" }"
				       "provider p { mx = { \"mx.test\" } transport = slow }";
	begin_behind_a_rate(settings);
	reload(settings);
	assert_int_equal(questions.n, 0);
	int before = opened.n;
	reload("transport slow { destination_rate = \"1/h\" }");
	answer("a.test", one_host);
	ready_from(before);
	assert_int_equal(given_at(0)->id, 2);
}

static void a_reload_with_more_room_gives_the_spool_more_credit(void **state)
{
	(void)state;
	begin("queue { message_active_limit = 100 }");
	reload("queue { message_active_limit = 150 }");
	struct spool_credit *c = next_told(SPOOL_CREDIT);
	assert_int_equal(c->n, 50);
	forget(c);
}

static void records_that_nobody_needs_are_collected(void **state)
{
	(void)state;
	begin("");
	send_many(1);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	close_orderly(open_at(0));
	for (int i = 0; i < 400; i++)
		pass_time(10000);
	for (int i = 0; i < 3; i++)
		pass_time(10000);
	assert_int_equal(HASH_COUNT(q->nexthops), 0);
	assert_int_equal(HASH_COUNT(q->db.sites), 0);
	assert_int_equal(HASH_COUNT(q->db.hosts), 0);
}

static void nothing_that_is_under_way_is_collected(void **state)
{
	(void)state;
	names_stay = true;
	begin("");
	send_many(7);
	ready(open_at(0), 1);
	for (int i = 0; i < 400; i++)
		pass_time(10000);
	assert_int_equal(given.n, 1);
	done(given_at(0), VERDICT_DEFERRED);
	assert_int_equal(given_at(0)->id, 2);
}

static void the_end_may_come_with_everything_under_way(void **state)
{
	(void)state;
	begin("transport smtp { connection_limit = 6 }");
	send_many(20);
	ready(open_at(0), 4); /* in flight */
	send_mail(30, "x@waits-for-dns.test");
	send_mail(31, "x@b.test");
	answer("b.test", "10 b.test 192.0.2.2");
	send_mail(32, "x@c.test"); /* hungry */
	answer("c.test", "10 c.test 192.0.2.3");
	done(given_at(0), VERDICT_FAILED); /* a report is being stored */
	assert_int_equal(told.n, 1);
	assert_true(given.n >= 3);
	/* The test's end frees it all. */
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_arrival_asks_dns_and_nobody_else),
		TEST(messages_to_one_domain_ask_once),
		TEST(no_more_connections_are_opened_than_messages_wait),
		TEST(no_more_connections_are_opened_than_the_window_allows),
		TEST(nothing_is_given_before_a_connection_is_ready),
		TEST(a_connection_carries_no_more_at_once_than_it_said),
		TEST(a_domain_that_does_not_exist_fails_its_recipients),
		TEST(a_relay_that_does_not_exist_defers_its_mail),
		TEST(a_waiting_message_that_is_cancelled_goes_at_once),
		TEST(a_message_in_flight_that_is_cancelled_goes_when_it_is_back),
		TEST(a_message_that_waits_for_dns_and_is_cancelled_goes_with_the_answer),
		TEST(recipients_of_a_domain_share_a_transaction_up_to_the_limit),
		TEST(two_domains_with_the_same_hosts_share_a_site_but_no_transaction),
		TEST(mail_is_not_taken_to_the_backup_host_of_another_domain),
		TEST(users_of_one_domain_with_two_relays_are_two_sites),
		TEST(two_domains_by_the_same_relay_share_a_transaction),
		TEST(relays_are_used_in_their_order),
		TEST(a_connection_carries_no_more_bytes_than_pipeline_bytes),
		TEST(messages_are_taken_in_the_order_of_their_arrival),
		TEST(a_reload_changes_limits_at_once),
		TEST(a_reload_changes_routes_for_mail_that_waits_too),
		cmocka_unit_test(so_does_mail_whose_next_hop_was_being_looked_up),
		TEST(each_recipient_of_a_message_that_waits_goes_where_its_own_route_leads_now),
		TEST(mail_whose_next_hop_was_being_looked_up_leaves_the_transport_of_before),
		TEST(mail_that_comes_back_from_its_connection_goes_where_its_route_leads_now),
		TEST(mail_that_waits_goes_by_the_transport_that_its_route_names_now),
		cmocka_unit_test(mail_that_waits_goes_on_the_terms_of_now),
		TEST(mail_that_waits_goes_by_the_transport_that_its_provider_wants_now),
		TEST(a_reload_with_more_room_gives_the_spool_more_credit),
		TEST(records_that_nobody_needs_are_collected),
		TEST(nothing_that_is_under_way_is_collected),
		TEST(the_end_may_come_with_everything_under_way),
	};
	return RUN(tests);
}
