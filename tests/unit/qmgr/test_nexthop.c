/* SPDX-License-Identifier: ISC */
/* Who shares a next hop and a site, and who only seems to. */
#include "tests/unit/qmgr/world.h"

#include "qmgr/dest/suspend.h"

/* Mail for sub.test goes to a relay that is called like a domain, and like the mail host of another. */
static const char by_hub[] = "route sub.test { relay = { hub.test } }";

static int asked_for(const char *name, bool trusted)
{
	int n = 0;
	for (int i = 0; i < questions.n; i++) {
		const struct resolve *r = (struct resolve *)questions.note[i];
		n += strcmp(r->name, name) == 0 && r->trusted == trusted;
	}
	return n;
}

static int sites_named(const char *name)
{
	int n = 0;
	for (const struct site *s = q->db.sites; s; s = s->hh.next)
		n += strcmp(s->name, name) == 0;
	return n;
}

static void send_by_hub(uint64_t relayed, uint64_t other)
{
	send_mail(relayed, "x@sub.test");
	answer("hub.test", "10 mx.hub.test 192.0.2.3");
	send_mail(other, "y@other.test");
	answer("other.test", "10 hub.test 192.0.2.2");
}

static void a_relay_is_not_the_domain_of_the_same_name(void **state)
{
	(void)state;
	begin(by_hub);
	send_mail(1, "x@sub.test");
	send_mail(2, "y@hub.test");
	assert_int_equal(asked_for("hub.test", true), 1);
	assert_int_equal(asked_for("hub.test", false), 1);
	no_answer("hub.test", VERDICT_FAILED, "5.1.2"); /* the relay's was asked first */
	struct envelope *e = is_kept(1);
	assert_string_equal(e->rcpt[0].last->dsn, "4.4.4");
	envelope_free(&e);
	no_answer("hub.test", VERDICT_FAILED, "5.1.2");
	stored(next_told(SPOOL_STORE), true);
	is_delivered(2, 1, VERDICT_FAILED);
}

static void mail_goes_to_a_relay_or_to_mail_hosts_of_the_same_name(void **state)
{
	(void)state;
	begin(by_hub);
	send_by_hub(1, 2);
	assert_int_equal(sites_named("hub.test"), 2);
	ready(open_to("mx.hub.test"), 1);
	assert_int_equal(given_at(0)->id, 1);
	ready(open_to("hub.test"), 1);
	assert_int_equal(given_at(1)->id, 2);
	done(given_at(0), VERDICT_SENT);
	done(given_at(0), VERDICT_SENT);
	send_mail(3, "y@other.test");
	assert_int_equal(given_at(0)->id, 3);
}

static void several_relays_are_no_mail_hosts_of_the_same_names(void **state)
{
	(void)state;
	begin("route sub.test { relay = { a.test, b.test } }");
	send_mail(1, "x@sub.test");
	answer("a.test", "10 mx.a.test 192.0.2.3");
	answer("b.test", "10 mx.b.test 192.0.2.4");
	send_mail(2, "y@other.test");
	answer("other.test", "10 a.test 192.0.2.1,10 b.test 192.0.2.2");
	assert_int_equal(sites_named("a.test,b.test"), 2);
}

static void a_recipient_has_a_site_for_each_of_the_relays_that_senders_have(void **state)
{
	(void)state;
	begin("transport smtp { destination_by = recipient }\n"
	      "route x.test { from = { \"a@here.test\" } relay = { one.test } }\n"
	      "route .test { relay = { two.test } }");
	arrive(mail(1, "a@here.test", "to@x.test"));
	answer("one.test", "10 mx.one.test 192.0.2.1");
	arrive(mail(2, "b@here.test", "to@x.test"));
	answer("two.test", "10 mx.two.test 192.0.2.2");
	assert_int_equal(sites_named("to@x.test"), 2);
	ready(open_to("mx.one.test"), 1);
	assert_int_equal(given_at(0)->id, 1);
	ready(open_to("mx.two.test"), 1);
	assert_int_equal(given_at(1)->id, 2);
}

static int suspended_sites(void)
{
	int n = 0;
	for (const struct site *s = q->db.sites; s; s = s->hh.next)
		n += s->suspended;
	return n;
}

static void an_order_by_name_means_relay_and_mail_hosts(void **state)
{
	(void)state;
	static const char *const names[] = {"hub.test", "smtp hub.test", "SMTP Hub.test"};
	begin(by_hub);
	send_by_hub(1, 2);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		suspend_begin(&q->db, names[i], SUSPEND_SITE, 0);
		assert_int_equal(suspended_sites(), 2);
		assert_true(suspend_end(&q->db, names[i]));
		assert_int_equal(suspended_sites(), 0);
	}
	assert_false(suspend_site_is(site_named("hub.test"), "relay hub.test"));
	assert_false(suspend_site_is(site_named("hub.test"), "smtp sub.test"));
}

static void a_domain_that_is_suspended_while_it_is_looked_up_gets_no_mail(void **state)
{
	(void)state;
	for (int known = 0; known < 2; known++) {
		begin("");
		send_mail(1, "x@a.test");
		suspend_begin(&q->db, "a.test", SUSPEND_DOMAIN, 0);
		if (known)
			answer("a.test", one_host);
		else
			no_answer("a.test", VERDICT_FAILED, "5.1.2");
		assert_int_equal(opened.n, 0);
		struct envelope *e = is_kept(1);
		assert_string_equal(e->rcpt[0].last->dsn, "4.3.2");
		assert_int_equal(e->rcpt[0].tries, 0);
		envelope_free(&e);
		finish(NULL);
	}
	begin("");
}

static void what_a_destination_is_holds_from_the_reload_on(void **state)
{
	(void)state;
	static const char *const ways[] = {"domain", "recipient", "site"};
	static const char *const names[] = {"one.test", "b@one.test", "mx.test"};
	static const int lookups[] = {1, 2, 1}, waiting[] = {2, 2, 4};
	begin("");
	send_mail(1, "a@one.test");
	answer("one.test", one_host);
	assert_int_equal(sites_named("mx.test"), 1);
	for (uint64_t i = 0; i < 3; i++) {
		char text[100];
		snprintf(text, sizeof text, "transport smtp { destination_by = %s }", ways[i]);
		reload(text);
		pass_time(6000);
		send_mail(2 + i, "b@one.test");
		for (int n = 0; n < lookups[i]; n++)
			answer("one.test", one_host);
		assert_int_equal(site_named(names[i])->queue.waiting, waiting[i]);
	}
}

/* Two messages wait, and a third one later; until then the domain has moved. */
static void two_wait_and_it_moves(void)
{
	begin("");
	send_many(2);
	pass_time(6000);
	send_mail(3, "x@a.test");
	answer("a.test", "10 new.test 192.0.2.2");
}

static void what_waits_goes_where_its_next_hop_leads_now(void **state)
{
	(void)state;
	two_wait_and_it_moves();
	assert_int_equal(site_named("mx.test")->queue.waiting, 0);
	assert_int_equal(site_named("new.test")->queue.waiting, 3);
	ready(open_to("mx.test"), 1);
	assert_int_equal(given.n, 0);
	ready(open_to("new.test"), 1);
	assert_int_equal(given_at(0)->id, 1);
}

static void what_comes_back_from_where_it_led_before_goes_there_too(void **state)
{
	(void)state;
	begin("");
	send_many(1);
	ready(open_to("mx.test"), 1);
	pass_time(6000);
	send_mail(2, "x@a.test");
	answer("a.test", "10 new.test 192.0.2.2");
	put_back(delivery_of_mail(1));
	assert_int_equal(given.n, 0);
	assert_int_equal(site_named("new.test")->queue.waiting, 2);
}

static void mail_is_returned_where_its_domain_takes_none_any_more(void **state)
{
	(void)state;
	begin("");
	send_many(1);
	pass_time(6000);
	send_mail(2, "y@a.test");
	no_answer("a.test", VERDICT_FAILED, "5.1.10");
	no_answer("a.test", VERDICT_FAILED, "5.1.10");
	ready(open_to("mx.test"), 1);
	assert_int_equal(given.n, 0);
	assert_int_equal(told.n, 2);
	stored(next_told(SPOOL_STORE), true);
	stored(next_told(SPOOL_STORE), true);
}

static void what_could_not_be_looked_up_for_now_waits_where_it_was(void **state)
{
	(void)state;
	begin("");
	send_many(1);
	pass_time(6000);
	send_mail(2, "y@a.test");
	no_answer("a.test", VERDICT_DEFERRED, "4.4.3");
	struct envelope *e = is_kept(2);
	envelope_free(&e);
	ready(open_to("mx.test"), 1);
	assert_int_equal(given_at(0)->id, 1);
}

static void nothing_goes_by_an_answer_that_is_too_old(void **state)
{
	(void)state;
	begin("transport smtp { destination_rate_delay = 1h }");
	send_many(2);
	ready(open_to("mx.test"), 1);
	done(given_at(0), VERDICT_SENT);
	pass_time(3600000);
	assert_int_equal(given.n, 0);
	answer("a.test", "10 new.test 192.0.2.2");
	ready(open_to("new.test"), 1);
	assert_int_equal(given_at(0)->id, 2);
}

static void an_answer_is_renewed_while_mail_goes_by_it(void **state)
{
	(void)state;
	begin("");
	send_many(40);
	int renewed = 0;
	ready(open_to("mx.test"), 1);
	for (int second = 1; second < 36; second++) {
		pass_time(1000);
		done(given_at(0), VERDICT_SENT);
		assert_int_equal(given.n, 1); /* it waits for no answer */
		renewed += questions.n;
		if (questions.n > 0)
			answer("a.test", one_host);
	}
	assert_int_equal(renewed, 3);
}

static void what_a_reload_has_asked_otherwise_is_asked_before_mail_goes(void **state)
{
	(void)state;
	begin("");
	send_many(2);
	reload("tls { mta_sts = false }");
	ready(open_to("mx.test"), 1);
	assert_int_equal(given.n, 0);
	answer("a.test", "10 new.test 192.0.2.2");
	assert_int_equal(site_named("new.test")->queue.waiting, 2);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_relay_is_not_the_domain_of_the_same_name),
		TEST(mail_goes_to_a_relay_or_to_mail_hosts_of_the_same_name),
		TEST(several_relays_are_no_mail_hosts_of_the_same_names),
		TEST(a_recipient_has_a_site_for_each_of_the_relays_that_senders_have),
		TEST(an_order_by_name_means_relay_and_mail_hosts),
		TEST(a_domain_that_is_suspended_while_it_is_looked_up_gets_no_mail),
		TEST(what_a_destination_is_holds_from_the_reload_on),
		TEST(what_waits_goes_where_its_next_hop_leads_now),
		TEST(what_comes_back_from_where_it_led_before_goes_there_too),
		TEST(mail_is_returned_where_its_domain_takes_none_any_more),
		TEST(what_could_not_be_looked_up_for_now_waits_where_it_was),
		TEST(nothing_goes_by_an_answer_that_is_too_old),
		TEST(an_answer_is_renewed_while_mail_goes_by_it),
		TEST(what_a_reload_has_asked_otherwise_is_asked_before_mail_goes),
	};
	return RUN(tests);
}
