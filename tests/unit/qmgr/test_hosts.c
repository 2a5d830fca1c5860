/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/world.h"

#include "base/address.h"
#include "qmgr/dest/suspend.h"

static const char two_hosts[] = "10 mx1.test 192.0.2.1, 10 mx2.test 192.0.2.2";

static void a_connection_that_never_is_ready_leaves_the_mail_where_it_was(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	answer("a.test", two_hosts);
	assert_int_equal(opened.n, 1);
	char first[100];
	snprintf(first, sizeof first, "%s", open_at(0)->host);
	lose(open_at(0), "refused");
	assert_int_equal(told.n, 0);
	assert_int_equal(opened.n, 1);
	assert_string_not_equal(open_at(0)->host, first);
	ready(open_at(0), 1);
	assert_int_equal(given_at(0)->id, 1);
	assert_int_equal(given_at(0)->rcpt[0].verdict == NULL, 1);
}

static void ready_for(struct connection_open *o, uint64_t size_max, bool smtputf8)
{
	struct connection_ready *r = mem_zalloc(sizeof *r);
	r->note.type = CONNECTION_READY;
	r->connection = o->connection;
	r->owner = o->owner;
	r->depth = 1;
	r->size_max = size_max;
	r->smtputf8 = smtputf8;
	post(&r->note);
	settle();
}

/* Two messages, and a connection to either host. */
static void begin_with_equals(void)
{
	begin("transport smtp { connection_max_messages = 1 }");
	send_mail(1, "x@a.test");
	send_mail(2, "x@a.test");
	answer("a.test", two_hosts);
	assert_int_equal(opened.n, 2);
	assert_string_not_equal(open_at(0)->host, open_at(1)->host);
}

static void what_one_of_two_equals_can_not_take_waits_for_the_other_that_can(void **state)
{
	(void)state;
	begin_with_equals();
	ready_for(open_at(0), 1, true);
	assert_true(given_at(0)->second); /* who knows? */
	ready_for(open_at(1), 0, false);
	assert_false(given_at(1)->second); /* what does not fit into the first */
	done(given_at(0), VERDICT_SENT);
	close_orderly(open_at(0));
	send_mail(3, "x@a.test");
	ready_for(open_at(1), 1, true);
	assert_true(given_at(1)->second);
}

static void what_neither_of_two_equals_can_take_waits_for_nobody(void **state)
{
	(void)state;
	begin_with_equals();
	ready_for(open_at(0), 1, true);
	ready_for(open_at(1), 1, true);
	assert_false(given_at(1)->second);
}

static void who_has_failed_before_it_said_so_is_not_waited_for(void **state)
{
	(void)state;
	begin_with_equals();
	lose(open_at(0), "refused");
	ready_for(open_at(0), 1, true);
	assert_false(given_at(0)->second);
}

static void
with_all_hosts_out_the_mail_waits_and_then_goes_back_untried_with_the_last_failure(void **state)
{
	(void)state;
	begin("transport smtp { site_patience = 500ms }");
	send_mail(1, "x@a.test");
	answer("a.test", two_hosts);
	lose(open_at(0), "first failure");
	pass_time(10);
	lose(open_at(0), "second failure");
	pass_time(499);
	assert_int_equal(told.n, 0);
	pass_time(1);
	struct envelope *e = is_parked(1);
	assert_string_equal(e->rcpt[0].last->text, "second failure");
	assert_int_equal(e->rcpt[0].last->class, VERDICT_DEFERRED);
	assert_int_equal(e->rcpt[0].tries, 0);
	envelope_free(&e);
	assert_int_equal(opened.n, 0);
}

static void a_host_that_is_out_is_probed_at_its_time_and_then_gets_its_mail(void **state)
{
	(void)state;
	begin("");
	send_many(1);
	lose(open_at(0), "refused");
	pass_time(999);
	assert_int_equal(opened.n, 0);
	pass_time(1);
	assert_int_equal(opened.n, 1);
	ready(open_at(0), 1);
	assert_int_equal(given_at(0)->id, 1);
	assert_int_equal(told.n, 0);
}

static void the_backup_host_is_used_only_when_the_best_are_out(void **state)
{
	(void)state;
	begin("");
	for (uint64_t id = 1; id <= 3; id++)
		send_mail(id, "x@a.test");
	answer("a.test", "10 mx1.test 192.0.2.1, 20 mx2.test 192.0.2.2");
	assert_int_equal(opened_to("mx1.test"), 3);
	while (opened_to("mx1.test") > 0)
		lose(open_to("mx1.test"), "refused");
	assert_int_equal(opened_to("mx2.test"), 3);
	assert_int_equal(told.n, 0);
}

static void a_dead_host_of_two_costs_nothing_after_its_first_failure(void **state)
{
	(void)state;
	begin("transport smtp { connection_limit = 0 initial_destination_concurrency = 10 }");
	for (uint64_t id = 1; id <= 100; id++)
		send_mail(id, "x@a.test");
	answer("a.test", two_hosts);
	assert_int_equal(opened_to("mx1.test"), 5);
	assert_int_equal(opened_to("mx2.test"), 5);
	lose(open_to("mx1.test"), "refused");
	assert_int_equal(opened_to("mx1.test"), 4);
	assert_int_equal(opened_to("mx2.test"), 6); /* goes to the other at once */
	while (opened_to("mx1.test") > 0)
		lose(open_to("mx1.test"), "refused");
	assert_int_equal(opened_to("mx2.test"), 10);
	assert_int_equal(site_named("mx1.test,mx2.test")->window.concurrency, 10);
	while (opened_to("mx2.test") > 0) {
		ready(open_to("mx2.test"), 1);
		while (given.n > 0)
			done(given_at(0), VERDICT_SENT);
		close_orderly(open_to("mx2.test"));
		assert_int_equal(opened_to("mx1.test"), 0);
	}
	assert_int_equal(told.n, 100); /* each released as delivered */
}

static void a_cohort_of_failures_makes_a_site_dead(void **state)
{
	(void)state;
	begin("transport smtp { destination_concurrency_negative_feedback = \"0\" "
	      "site_patience = 500ms }");
	send_many(20);
	struct site *s = site_named("mx.test");
	for (int i = 0; i < 4; i++) {
		lose(open_at(0), "refused");
		assert_false(window_dead(&s->window));
	}
	assert_int_equal(s->health, SITE_OUT); /* one is still connecting */
	lose(open_at(0), "refused");
	assert_true(window_dead(&s->window));
	assert_int_equal(s->health, SITE_DEAD);
	assert_int_equal(told.n, 0);
	pass_time(500);
	assert_int_equal(told.n, 20);
	for (uint64_t id = 1; id <= 20; id++) {
		struct envelope *e = is_parked(id);
		assert_string_equal(e->rcpt[0].last->text, "refused");
		assert_int_equal(e->rcpt[0].tries, 0);
		envelope_free(&e);
	}
	send_mail(21, "x@a.test"); /* shares their fate at once */
	struct envelope *e = is_parked(21);
	envelope_free(&e);
	assert_int_equal(opened.n, 0);
}

static void a_site_with_a_ready_connection_does_not_die_of_those_refused(void **state)
{
	(void)state;
	names_stay = true;
	begin("");
	send_many(30);
	ready(open_at(0), 1);
	for (int i = 0; i < 20; i++) {
		pass_time(60000);
		if (opened.n > 1)
			lose(open_at(1), "too many connections");
	}
	assert_int_equal(site_named("mx.test")->window.concurrency, 1);
	for (int i = 0; i < 30; i++)
		done(given_at(0), VERDICT_SENT);
	assert_int_equal(told.n, 30); /* all are sent and released, none was deferred */
	for (int i = 0; i < told.n; i++)
		assert_true(told.note[i]->type == SPOOL_RELEASE &&
			    ((struct spool_release *)told.note[i])->delivers);
}

static void a_dead_site_lives_again_as_at_first_when_a_probe_is_ready(void **state)
{
	(void)state;
	begin("");
	send_many(20);
	while (opened.n > 0)
		lose(open_at(0), "refused");
	struct site *s = site_named("mx.test");
	assert_int_equal(s->health, SITE_DEAD);
	pass_time(1000);
	assert_int_equal(opened.n, 1); /* the probe, and nothing else */
	ready(open_at(0), 1);
	assert_int_equal(s->health, SITE_ALIVE);
	assert_int_equal(s->window.concurrency, 5);
	assert_int_equal(given.n, 1);
	assert_int_equal(opened.n, 5);
	assert_int_equal(told.n, 0); /* nothing was deferred */
}

static void a_host_that_refuses_a_sixth_connection_narrows_the_window_only(void **state)
{
	(void)state;
	begin("transport smtp { initial_destination_concurrency = 6 }");
	send_many(100);
	assert_int_equal(opened.n, 6);
	for (int i = 0; i < 5; i++)
		ready(open_at(i), 1);
	lose(open_at(5), "too many connections");
	assert_int_equal(site_named("mx.test")->window.concurrency, 5);
	assert_int_equal(told.n, 0);
	done(given_at(0), VERDICT_SENT);
	pass_time(999);
	assert_int_equal(opened.n, 5); /* that is what it takes */
	pass_time(1);
	assert_int_equal(opened.n, 6); /* or is it? */
}

static void a_restart_of_the_server_does_not_kill_its_site(void **state)
{
	(void)state;
	begin("transport smtp { destination_concurrency_limit = 5 }");
	send_many(100);
	for (int i = 0; i < 5; i++)
		ready(open_at(i), 1);
	for (int i = 0; i < 5; i++)
		done(given_at(0), VERDICT_SENT);
	struct site *s = site_named("mx.test");
	while (given.n > 0) {
		given_at(0)->returned = true;
		post_back(given_at(0));
	}
	for (int i = 0; i < 5; i++)
		post_closed(open_at(0), "shutting down");
	settle();
	assert_false(window_dead(&s->window));
	assert_true(opened.n > 0);
	ready(open_at(0), 1);
	assert_int_equal(given_at(0)->id, 6);
}

static void a_host_has_no_more_connections_than_its_limit(void **state)
{
	(void)state;
	begin("transport smtp { host_connection_limit = 2 }");
	send_many(20);
	assert_int_equal(opened.n, 2);
	ready(open_at(0), 1);
	assert_int_equal(opened.n, 2);
	put_back(given_at(0));
	given_at(0)->returned = true;
	post_back(given_at(0));
	post_closed(open_at(0), NULL);
	settle();
	assert_int_equal(opened.n, 2);
}

static void a_site_that_waits_for_a_full_host_is_told_when_it_has_room(void **state)
{
	(void)state;
	begin("transport smtp { host_connection_limit = 1 }");
	send_mail(1, "x@a.test");
	answer("a.test", one_host);
	send_mail(2, "x@b.test");
	answer("b.test", "10 mx.test 192.0.2.1, 20 backup.test 192.0.2.9");
	send_mail(3, "x@c.test");
	answer("c.test", "10 mx.test 192.0.2.1, 20 spare.test 192.0.2.8");
	for (uint64_t id = 1; id <= 3; id++) {
		assert_int_equal(opened.n, 1);
		ready(open_at(0), 1);
		assert_int_equal(given_at(0)->id, id);
		set_verdict(given_at(0), 0, VERDICT_SENT);
		post_back(given_at(0));
		post_closed(open_at(0), NULL); /* at once, so that it can't be lent */
		settle();
	}
	assert_int_equal(opened.n, 0);
}

static void a_transport_has_no_more_connections_than_its_limit(void **state)
{
	(void)state;
	begin("transport smtp { connection_limit = 3 }");
	send_many(20);
	assert_int_equal(opened.n, 3);
	send_mail(21, "x@b.test");
	answer("b.test", "10 other.test 192.0.2.2");
	assert_int_equal(opened.n, 3);
}

static void a_hungry_site_comes_before_the_one_that_had_the_connection(void **state)
{
	(void)state;
	begin("transport smtp { connection_limit = 1 }");
	send_many(1);
	send_mail(2, "x@b.test");
	answer("b.test", "10 other.test 192.0.2.2");
	send_mail(3, "x@a.test");
	ready(open_at(0), 1);
	set_verdict(given_at(0), 0, VERDICT_SENT);
	post_back(given_at(0)); /* both in one batch, so that its own site is the first to look */
	post_closed(open_at(0), NULL);
	settle();
	assert_int_equal(given.n, 0);
	assert_int_equal(opened.n, 1);
	assert_string_equal(open_at(0)->host, "other.test");
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	close_orderly(open_at(0));
	assert_string_equal(open_at(0)->host, "mx.test");
}

static void a_hungry_site_that_needs_it_no_more_passes_it_on(void **state)
{
	(void)state;
	begin("transport smtp { connection_limit = 1 }");
	send_mail(1, "x@a.test");
	answer("a.test", one_host);
	send_mail(2, "x@b.test");
	answer("b.test", "10 b.test 192.0.2.2");
	send_mail(3, "x@c.test");
	answer("c.test", "10 c.test 192.0.2.3");
	cancel(2);
	is_released(2);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	close_orderly(open_at(0));
	assert_int_equal(opened.n, 1);
	assert_string_equal(open_at(0)->host, "c.test");
}

static void a_connection_to_spare_goes_to_the_oldest_message(void **state)
{
	(void)state;
	begin("transport smtp { connection_limit = 1 }");
	for (int round = 0; round < 5; round++) {
		for (int site = 0; site < 4; site++) {
			char to[40], domain[32], hosts[64];
			snprintf(domain, sizeof domain, "d%d.test", site);
			snprintf(to, sizeof to, "x@%s", domain);
			snprintf(hosts, sizeof hosts, "10 mx%d.test 192.0.2.%d", site, site + 1);
			send_mail((uint64_t)(4 * round + site + 1), to);
			if (round == 0)
				answer(domain, hosts);
		}
	}
	for (int i = 0; i < 20; i++) {
		char expected[32];
		snprintf(expected, sizeof expected, "mx%d.test", i % 4);
		assert_int_equal(opened.n, 1);
		assert_string_equal(open_at(0)->host, expected);
		ready(open_at(0), 1);
		assert_int_equal(given_at(0)->id, i + 1);
		set_verdict(given_at(0), 0, VERDICT_SENT);
		post_back(given_at(0));
		post_closed(open_at(0), NULL);
		settle();
	}
	assert_int_equal(opened.n, 0);
}

static void an_idle_connection_ends_when_another_site_wants_one(void **state)
{
	(void)state;
	begin("transport smtp { connection_limit = 1 }");
	send_many(1);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(ending.n, 0);
	send_mail(2, "x@b.test");
	answer("b.test", "10 b.test 192.0.2.2");
	assert_int_equal(ending.n, 1);
	assert_true(((struct connection_close *)ending.note[0])->connection ==
		    open_at(0)->connection);
	send_mail(3, "x@a.test");
	assert_int_equal(given.n, 0); /* it is given nothing more */
	close_orderly(open_at(0));
	assert_string_equal(open_at(0)->host, "b.test");
}

/* Connections are worth keeping, but not for ever while an older message waits for one. */
static void a_busy_connection_ends_after_its_turn_when_an_older_message_wants_one(void **state)
{
	(void)state;
	begin("transport smtp { connection_limit = 1 }");
	send_many(3);
	ready(open_at(0), 1);
	send_mail(4, "x@b.test");
	answer("b.test", "10 b.test 192.0.2.2");
	for (uint64_t id = 5; id < 30; id++)
		send_mail(id, "x@a.test");
	int carried = 0;
	while (ending.n == 0 && carried < 100) {
		done(given_at(0), VERDICT_SENT);
		carried++;
	}
	assert_int_equal(carried + given.n, 10);
	done(given_at(0), VERDICT_SENT);
	close_orderly(open_at(0));
	ready(open_at(0), 1);
	assert_int_equal(given_at(0)->id, 4);
}

/* One in whose pipeline there is always something is never idle. */
static void a_connection_with_a_pipeline_ends_after_its_turn_too(void **state)
{
	(void)state;
	begin("transport smtp { connection_limit = 1 }");
	send_many(4);
	ready(open_at(0), 16);
	send_mail(5, "x@b.test");
	answer("b.test", "10 b.test 192.0.2.2");
	uint64_t id = 5;
	int carried = 0;
	while (ending.n == 0 && carried < 100) {
		send_mail(++id, "x@a.test");
		send_mail(++id, "x@a.test");
		assert_true(given.n > 1);
		done(given_at(0), VERDICT_SENT);
		carried++;
	}
	assert_in_range(carried, 1, 10);
	while (given.n > 0)
		done(given_at(0), VERDICT_SENT); /* what it has already */
	close_orderly(open_at(0));
	ready(open_at(0), 16);
	assert_int_equal(given_at(0)->id, 5);
}

/* Who has one has its turn there. */
static void a_connection_with_a_pipeline_is_kept_where_the_other_has_one(void **state)
{
	(void)state;
	begin("transport smtp { connection_limit = 2 }");
	send_mail(1, "x@a.test");
	answer("a.test", one_host);
	send_mail(2, "x@b.test");
	answer("b.test", "10 b.test 192.0.2.2");
	ready(open_at(0), 16);
	ready(open_at(1), 1);
	for (uint64_t id = 3; id < 60; id++)
		send_mail(id, id % 2 ? "x@a.test" : "x@b.test");
	for (int i = 0; i < 20; i++)
		done(delivery_of_mail((uint64_t)(1 + 2 * i)), VERDICT_SENT);
	assert_int_equal(ending.n, 0);
}

/* The host of the first message is out, and the second takes all that the transport may have. */
static void begin_with_one_out_and_one_busy(int depth)
{
	begin("transport smtp { connection_limit = 1 site_patience = 0s }");
	send_mail(1, "x@b.test");
	answer("b.test", "10 b.test 192.0.2.2");
	lose(open_at(0), "refused");
	struct envelope *e = is_parked(1);
	envelope_free(&e);
	send_mail(2, "x@a.test");
	answer("a.test", one_host);
	for (uint64_t id = 3; id < 60; id++)
		send_mail(id, "x@a.test");
	ready(open_at(0), depth);
	pass_time(1000);
}

static void a_probe_is_given_a_connection_though_all_are_in_use(void **state)
{
	(void)state;
	static const int depths[] = {1, 4};
	for (int i = 0; i < 2; i++) {
		begin_with_one_out_and_one_busy(depths[i]);
		int carried = 0;
		while (ending.n == 0 && carried < 50) {
			done(given_at(0), VERDICT_SENT);
			carried++;
		}
		assert_in_range(carried, 1, 10);
		while (given.n > 0)
			done(given_at(0), VERDICT_SENT);
		close_orderly(open_at(0));
		assert_int_equal(opened.n, 1);
		assert_string_equal(open_at(0)->host, "b.test"); /* and not another to a.test */
		lose(open_at(0), "refused");
		assert_string_equal(open_at(0)->host, "mx.test");
		if (i == 0)
			finish(state);
	}
}

static void a_probe_is_given_the_connection_that_idles(void **state)
{
	(void)state;
	begin_with_one_out_and_one_busy(16);
	while (given.n > 0)
		done(given_at(0), VERDICT_SENT);
	assert_int_equal(ending.n, 1);
	close_orderly(open_at(0));
	assert_string_equal(open_at(0)->host, "b.test");
}

static void the_window_grows_with_good_deliveries_up_to_its_limit(void **state)
{
	(void)state;
	begin("transport smtp { destination_concurrency_limit = 8 }");
	send_many(100);
	for (int i = 0; i < 5; i++)
		ready(open_at(i), 1);
	for (int i = 0; i < 20; i++)
		done(given_at(0), VERDICT_SENT);
	assert_int_equal(opened.n, 8);
}

/* Its window is wider than what it may have for another reason. */
static void a_limit_that_a_reload_lowers_holds_at_once(void **state)
{
	(void)state;
	begin("transport smtp { initial_destination_concurrency = 20 host_connection_limit = 8 }");
	send_many(100);
	for (int i = 0; i < 8; i++)
		ready(open_at(i), 1);
	assert_int_equal(given.n, 8);
	reload("transport smtp { destination_concurrency_limit = 3 host_connection_limit = 8 }");
	for (int i = 0; i < 10; i++) {
		done(given_at(0), VERDICT_SENT);
		assert_int_equal(given.n, i < 5 ? 7 - i : 3);
	}
}

/* Its window is closed, and its one host is out. */
static struct site *begin_dead(void)
{
	begin("");
	send_many(20);
	while (opened.n > 0)
		lose(open_at(0), "refused");
	struct site *s = site_named("mx.test");
	assert_int_equal(s->health, SITE_DEAD);
	return s;
}

static void answer_with_two_addresses(void)
{
	struct resolve *r = take_question("a.test");
	r->host = mem_zalloc(sizeof *r->host);
	r->nhost = 1;
	*r->host = (struct resolve_host){.name = mem_strdup("mx.test"), .preference = 10};
	for (const char *const *at = (const char *const[]){"192.0.2.1", "192.0.2.2", NULL}; *at;
	     at++)
		address_parse(*at, 0, &r->host->address[r->host->naddress++]);
	r->note.type = RESOLVE_ANSWER;
	post(&r->note);
	settle();
}

static void a_dead_site_lives_again_with_an_address_that_the_dns_adds(void **state)
{
	(void)state;
	struct site *s = begin_dead();
	reload("");
	send_mail(21, "x@a.test");
	answer_with_two_addresses();
	assert_int_equal(s->health, SITE_ALIVE);
	assert_true(opened.n > 0);
	for (int i = 0; i < opened.n; i++)
		assert_string_equal(inet_ntoa(open_at(i)->address.in.sin_addr), "192.0.2.2");
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
}

static void a_dead_site_lives_again_with_a_host_that_is_resumed(void **state)
{
	(void)state;
	begin("");
	suspend_begin(&q->db, "192.0.2.2", SUSPEND_HOST, 0);
	for (uint64_t id = 1; id <= 20; id++)
		send_mail(id, "x@a.test");
	answer("a.test", two_hosts);
	struct site *s = site_named("mx1.test,mx2.test");
	while (opened.n > 0)
		lose(open_to("mx1.test"), "refused");
	assert_int_equal(s->health, SITE_DEAD);
	suspend_end(&q->db, "192.0.2.2");
	qmgr_thread_settle(q);
	assert_int_equal(s->health, SITE_ALIVE);
	assert_true(opened_to("mx2.test") > 0);
	assert_int_equal(opened_to("mx1.test"), 0);
}

static void a_host_is_meant_by_each_of_its_names(void **state)
{
	static const char *const first[] = {"mx1.test",	     "MX1.test.",   "mx1.test:25",
					    "192.0.2.1",     "[192.0.2.1]", "192.0.2.1:25",
					    "[192.0.2.1]:25"};
	static const char *const second[] = {"mx2.test:25", "2001:db8::2", "[2001:db8::2]",
					     "[2001:db8::2]:25"};
	static const char *const none[] = {
		"mx1.test:26",	  "mx1.test:25x",   "192.0.2.1:26", "192.0.2.1:",
		"[192.0.2.1]:26", "[192.0.2.1",	    "[]",	    "",
		"mx3.test",	  "2001:db8::2:25", ":25"};
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	answer("a.test", "10 mx1.test 192.0.2.1, 10 mx2.test 2001:db8::2");
	const struct site *s = site_named("mx1.test,mx2.test");
	for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
		assert_true(suspend_site_host_is(&s->hosts[0], first[i]));
		assert_false(suspend_site_host_is(&s->hosts[1], first[i]));
	}
	for (size_t i = 0; i < sizeof second / sizeof second[0]; i++) {
		assert_true(suspend_site_host_is(&s->hosts[1], second[i]));
		assert_false(suspend_site_host_is(&s->hosts[0], second[i]));
	}
	for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
		for (int k = 0; k < 2; k++)
			assert_false(suspend_site_host_is(&s->hosts[k], none[i]));
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

static void relays_with_weights_that_are_domains_share_the_connections(void **state)
{
	(void)state;
	begin("transport smtp { connection_max_messages = 1 }\n"
	      "route \"*\" { relay = { \"a.test=1\", \"b.test=1\" } }");
	for (uint64_t id = 1; id <= 4; id++)
		send_mail(id, "x@example.test");
	post_answer("a.test", "10 mx1.a.test 192.0.2.1, 20 mx2.a.test 192.0.2.2");
	answer("b.test", "30 mx1.b.test 192.0.2.3, 40 mx2.b.test 192.0.2.4");
	assert_int_equal(opened_to("mx1.a.test"), 2);
	assert_int_equal(opened_to("mx1.b.test"), 2);
	assert_int_equal(opened_to("mx2.a.test") + opened_to("mx2.b.test"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_host_is_meant_by_each_of_its_names),
		TEST(a_connection_that_never_is_ready_leaves_the_mail_where_it_was),
		TEST(with_all_hosts_out_the_mail_waits_and_then_goes_back_untried_with_the_last_failure),
		TEST(a_host_that_is_out_is_probed_at_its_time_and_then_gets_its_mail),
		TEST(the_backup_host_is_used_only_when_the_best_are_out),
		TEST(a_dead_host_of_two_costs_nothing_after_its_first_failure),
		TEST(a_cohort_of_failures_makes_a_site_dead),
		TEST(a_site_with_a_ready_connection_does_not_die_of_those_refused),
		TEST(a_dead_site_lives_again_as_at_first_when_a_probe_is_ready),
		TEST(a_dead_site_lives_again_with_an_address_that_the_dns_adds),
		TEST(a_dead_site_lives_again_with_a_host_that_is_resumed),
		TEST(a_host_that_refuses_a_sixth_connection_narrows_the_window_only),
		TEST(a_restart_of_the_server_does_not_kill_its_site),
		TEST(a_host_has_no_more_connections_than_its_limit),
		TEST(a_site_that_waits_for_a_full_host_is_told_when_it_has_room),
		TEST(a_transport_has_no_more_connections_than_its_limit),
		TEST(a_hungry_site_comes_before_the_one_that_had_the_connection),
		TEST(a_hungry_site_that_needs_it_no_more_passes_it_on),
		TEST(a_connection_to_spare_goes_to_the_oldest_message),
		TEST(an_idle_connection_ends_when_another_site_wants_one),
		TEST(a_busy_connection_ends_after_its_turn_when_an_older_message_wants_one),
		TEST(a_connection_with_a_pipeline_ends_after_its_turn_too),
		TEST(a_connection_with_a_pipeline_is_kept_where_the_other_has_one),
		TEST(a_probe_is_given_a_connection_though_all_are_in_use),
		TEST(a_probe_is_given_the_connection_that_idles),
		TEST(the_window_grows_with_good_deliveries_up_to_its_limit),
		TEST(a_limit_that_a_reload_lowers_holds_at_once),
		TEST(what_one_of_two_equals_can_not_take_waits_for_the_other_that_can),
		TEST(what_neither_of_two_equals_can_take_waits_for_nobody),
		TEST(who_has_failed_before_it_said_so_is_not_waited_for),
		cmocka_unit_test_teardown(
			relays_with_weights_that_are_domains_share_the_connections, finish),
	};
	return RUN(tests);
}
