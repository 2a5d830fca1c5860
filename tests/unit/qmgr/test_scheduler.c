/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/world.h"

#include "base/stream.h"
#include "qmgr/nexthop.h"

static const char one_host[] = "10 mx.test 192.0.2.1";
static const char two_hosts[] = "10 mx1.test 192.0.2.1, 10 mx2.test 192.0.2.2";
static const char relay[] = "route \"*\" { relay = { \"[relay.test]:2525\" } }\n";

/* So many messages to a.test, from 1, with their next hop known. */
static void send_many(int n)
{
	for (int i = 1; i <= n; i++)
		send_mail((uint64_t)i, "x@a.test");
	answer("a.test", one_host);
}

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

static void what_is_sent_is_recorded_and_then_released(void **state)
{
	(void)state;
	begin("");
	send_many(1);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
	is_released(1);
	assert_int_equal(told.n, 0);
}

static void what_is_deferred_is_kept_until_its_time(void **state)
{
	(void)state;
	begin("queue { minimal_backoff_time = 10m backoff_jitter = \"0\" }");
	send_many(1);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_DEFERRED);
	struct envelope *e = is_kept(1);
	assert_true(e->due_ms == clock_wall_ms() + 600000);
	assert_int_equal(e->rounds, 1);
	assert_int_equal(e->rcpt[0].tries, 1);
	assert_int_equal(e->rcpt[0].last->code, 450);
	assert_false(e->rcpt[0].done);
	envelope_free(&e);
	assert_int_equal(told.n, 0);
}

static void what_fails_is_reported_before_it_is_recorded(void **state)
{
	(void)state;
	begin("");
	send_many(1);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_FAILED);
	struct spool_store *s = next_told(SPOOL_STORE);
	assert_int_equal(told.n, 0);
	assert_string_equal(s->envelope->sender, "");
	assert_string_equal(s->envelope->rcpt[0].address, "sender@here.test");
	assert_true(s->envelope->size == s->content->size);
	stored(s, true);
	is_delivered(1, 1, VERDICT_FAILED);
	is_released(1);
	assert_int_equal(told.n, 0);
}

static void when_the_report_is_refused_the_message_is_kept(void **state)
{
	(void)state;
	begin("");
	send_many(1);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_FAILED);
	stored(next_told(SPOOL_STORE), false);
	struct envelope *e = is_kept(1);
	assert_false(e->rcpt[0].done);
	assert_true(e->due_ms > clock_wall_ms());
	assert_int_equal(told.n, 0);
	arrive(e); /* the next round comes to the report again, and to nothing else */
	stored(next_told(SPOOL_STORE), true);
	is_delivered(1, 1, VERDICT_FAILED);
	is_released(1);
}

static void a_refused_report_does_not_warn_the_sender_again(void **state)
{
	(void)state;
	begin("queue { delay_warning_time = 1h }");
	struct envelope *e = mail(1, "sender@here.test", "x@a.test");
	e->warned = true;
	arrive(e);
	answer("a.test", one_host);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_FAILED);
	stored(next_told(SPOOL_STORE), false);
	e = is_kept(1);
	assert_true(e->warned);
	envelope_free(&e);
}

static void a_bounce_is_not_bounced(void **state)
{
	(void)state;
	begin("");
	arrive(mail(1, "", "x@a.test"));
	answer("a.test", one_host);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_FAILED);
	is_delivered(1, 1, VERDICT_FAILED);
	is_released(1);
	assert_int_equal(told.n, 0);
}

static void a_bounce_that_fails_is_reported_to_the_postmaster_and_no_further(void **state)
{
	(void)state;
	begin("postmaster = \"pm@a.test\"");
	struct envelope *e = mail(1, "", "x@a.test");
	e->rcpt[0].notify = NOTIFY_NEVER; /* as in every report of ours */
	arrive(e);
	answer("a.test", one_host);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_FAILED);
	struct spool_store *s = next_told(SPOOL_STORE);
	assert_string_equal(s->envelope->rcpt[0].address, "pm@a.test");
	assert_string_equal(s->envelope->sender, "");
	struct envelope *double_bounce = s->envelope;
	s->envelope = NULL;
	stored(s, true);
	is_delivered(1, 1, VERDICT_FAILED);
	is_released(1);

	uint64_t id = double_bounce->id;
	arrive(double_bounce);
	done(delivery_of_mail(id), VERDICT_FAILED);
	is_delivered(id, 1, VERDICT_FAILED);
	is_released(id);
}

static void who_wants_no_report_gets_none(void **state)
{
	(void)state;
	begin("");
	struct envelope *e = mail(1, "sender@here.test", "x@a.test");
	e->rcpt[0].notify = NOTIFY_NEVER;
	arrive(e);
	answer("a.test", one_host);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_FAILED);
	is_delivered(1, 1, VERDICT_FAILED);
	is_released(1);
}

static void a_message_too_old_is_returned(void **state)
{
	(void)state;
	begin("queue { maximal_queue_lifetime = 1h }");
	struct envelope *e = mail(1, "sender@here.test", "x@a.test");
	e->arrived_ms -= 3600000;
	arrive(e);
	answer("a.test", one_host);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_DEFERRED);
	stored(next_told(SPOOL_STORE), true);
	is_delivered(1, 1, VERDICT_FAILED);
	is_released(1);
}

static void a_delay_is_told_once(void **state)
{
	(void)state;
	begin("queue { delay_warning_time = 1h }");
	struct envelope *e = mail(1, "sender@here.test", "x@a.test");
	e->arrived_ms -= 3600000;
	arrive(e);
	answer("a.test", one_host);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_DEFERRED);
	stored(next_told(SPOOL_STORE), true);
	e = is_kept(1);
	assert_true(e->warned);
	arrive(e);
	done(delivery_of_mail(1), VERDICT_DEFERRED);
	e = is_kept(1);
	envelope_free(&e);
	assert_int_equal(told.n, 0);
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

static void with_all_hosts_out_the_mail_is_deferred_with_the_last_failure(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	answer("a.test", two_hosts);
	lose(open_at(0), "first failure");
	pass_time(10);
	lose(open_at(0), "second failure");
	struct envelope *e = is_kept(1);
	assert_string_equal(e->rcpt[0].last->text, "second failure");
	assert_int_equal(e->rcpt[0].last->class, VERDICT_DEFERRED);
	assert_int_equal(e->rcpt[0].tries, 1);
	envelope_free(&e);
	assert_int_equal(opened.n, 0);
}

static void a_host_that_is_out_is_tried_again_at_its_time(void **state)
{
	(void)state;
	begin("queue { minimal_backoff_time = 5m }");
	send_many(1);
	lose(open_at(0), "refused");
	struct envelope *e = is_kept(1);
	pass_time(299000);
	arrive(e);
	answer("a.test", one_host);
	assert_int_equal(opened.n, 0); /* deferred at once */
	e = is_kept(1);
	pass_time(1000);
	arrive(e);
	assert_int_equal(opened.n, 1);
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
	assert_int_equal(told.n, 200); /* each recorded and released */
}

static void what_comes_back_untouched_is_next(void **state)
{
	(void)state;
	begin("transport smtp { destination_concurrency_limit = 1 "
	      "initial_destination_concurrency = 1 }");
	send_many(3);
	ready(open_at(0), 1);
	put_back(delivery_of_mail(1));
	assert_int_equal(given_at(0)->id, 1);
	assert_int_equal(told.n, 0);
}

static void what_comes_back_untouched_again_and_again_is_deferred(void **state)
{
	(void)state;
	begin("");
	send_many(1);
	ready(open_at(0), 1);
	int times = 0;
	while (given.n > 0 && times < 100) {
		put_back(given_at(0));
		times++;
	}
	assert_in_range(times, 5, 20);
	struct envelope *e = is_kept(1);
	assert_non_null(e->rcpt[0].last);
	envelope_free(&e);
}

static void a_recipient_without_a_verdict_is_given_again(void **state)
{
	(void)state;
	begin("");
	struct envelope *e = mail(1, "sender@here.test", "x@a.test");
	envelope_add(e, "y@a.test");
	envelope_add(e, "z@a.test");
	arrive(e);
	answer("a.test", one_host);
	ready(open_at(0), 1);
	struct delivery *d = given_at(0);
	assert_int_equal(d->nrcpt, 3);
	set_verdict(d, 0, VERDICT_SENT);
	set_verdict(d, 2, VERDICT_SENT);
	back(d);
	struct spool_delivered *record = next_told(SPOOL_DELIVERED);
	assert_int_equal(record->n, 2);
	assert_int_equal(record->of[0].recipient, 0);
	assert_int_equal(record->of[1].recipient, 2);
	forget(record);
	assert_int_equal(told.n, 0);
	assert_int_equal(given_at(0)->nrcpt, 1);
	assert_string_equal(given_at(0)->rcpt[0].address, "y@a.test");
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
	is_released(1);
}

static void each_recipient_has_its_own_verdict(void **state)
{
	(void)state;
	begin("");
	struct envelope *e = mail(1, "sender@here.test", "x@a.test");
	envelope_add(e, "y@a.test");
	envelope_add(e, "z@a.test");
	arrive(e);
	answer("a.test", one_host);
	ready(open_at(0), 1);
	set_verdict(given_at(0), 0, VERDICT_FAILED);
	set_verdict(given_at(0), 1, VERDICT_SENT);
	set_verdict(given_at(0), 2, VERDICT_DEFERRED);
	back(given_at(0));
	is_delivered(1, 1, VERDICT_SENT);
	stored(next_told(SPOOL_STORE), true);
	is_delivered(1, 1, VERDICT_FAILED);
	e = is_kept(1);
	assert_true(e->rcpt[0].done && e->rcpt[1].done && !e->rcpt[2].done);
	arrive(e);
	assert_int_equal(given_at(0)->nrcpt, 1);
	assert_string_equal(given_at(0)->rcpt[0].address, "z@a.test");
}

static void a_cohort_of_failures_makes_a_site_dead(void **state)
{
	(void)state;
	begin("transport smtp { destination_concurrency_negative_feedback = \"0\" }\n"
	      "queue { minimal_backoff_time = 5m }");
	send_many(20);
	struct site *s = site_named("mx.test");
	for (int i = 0; i < 4; i++) {
		lose(open_at(0), "refused");
		assert_false(window_dead(&s->window));
	}
	assert_int_equal(told.n, 0); /* one is still connecting */
	lose(open_at(0), "refused");
	assert_true(window_dead(&s->window));
	assert_int_equal(told.n, 20);
	for (uint64_t id = 1; id <= 20; id++) {
		struct envelope *e = is_kept(id);
		assert_string_equal(e->rcpt[0].last->text, "refused");
		envelope_free(&e);
	}
	send_mail(21, "x@a.test"); /* shares their fate at once */
	struct envelope *e = is_kept(21);
	envelope_free(&e);
	assert_int_equal(opened.n, 0);
}

static void a_site_with_a_ready_connection_does_not_die_of_those_refused(void **state)
{
	(void)state;
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
	assert_int_equal(told.n, 60); /* all are sent and released, none was deferred */
	for (int i = 0; i < told.n; i++)
		assert_true(told.note[i]->type == SPOOL_DELIVERED ||
			    !((struct spool_release *)told.note[i])->envelope);
}

static void a_dead_site_is_tried_again_after_the_minimal_backoff_time(void **state)
{
	(void)state;
	begin("queue { minimal_backoff_time = 5m }");
	send_many(20);
	while (opened.n > 0)
		lose(open_at(0), "refused");
	struct envelope *e = is_kept(1);
	pass_time(300000);
	arrive(e);
	answer("a.test", one_host);
	assert_int_equal(site_named("mx.test")->window.concurrency, 5);
	assert_int_equal(opened.n, 1);
	ready(open_at(0), 1);
	assert_int_equal(given.n, 1);
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
	pass_time(20);
	assert_int_equal(opened.n, 5); /* left alone for a moment */
	pass_time(200);
	assert_int_equal(opened.n, 6);
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
	assert_int_equal(opened.n, 1);
	for (uint64_t id = 1; id <= 3; id++) {
		ready(open_at(0), 1);
		assert_int_equal(given_at(0)->id, id);
		done(given_at(0), VERDICT_SENT);
		close_orderly(open_at(0));
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
	assert_int_equal(carried, 10);
	close_orderly(open_at(0));
	ready(open_at(0), 1);
	assert_int_equal(given_at(0)->id, 4);
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
	assert_int_equal(HASH_COUNT(q->sites), 1);
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

static void a_reload_changes_limits_at_once(void **state)
{
	(void)state;
	begin("transport smtp { connection_limit = 1 }");
	send_many(20);
	assert_int_equal(opened.n, 1);
	reload("transport smtp { connection_limit = 4 }");
	assert_int_equal(opened.n, 4);
}

static void a_reload_changes_routes_for_mail_that_comes_after_it(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	answer("a.test", one_host);
	reload(relay);
	send_mail(2, "x@a.test");
	answer("relay.test", "0 relay.test 192.0.2.7");
	assert_int_equal(opened_to("mx.test"), 1);
	assert_int_equal(opened_to("relay.test"), 1);
	ready(open_to("relay.test"), 9);
	assert_int_equal(given.n, 1);
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
	assert_int_equal(HASH_COUNT(q->sites), 0);
	assert_int_equal(HASH_COUNT(q->hosts), 0);
}

static void nothing_that_is_under_way_is_collected(void **state)
{
	(void)state;
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
		TEST(what_is_sent_is_recorded_and_then_released),
		TEST(what_is_deferred_is_kept_until_its_time),
		TEST(what_fails_is_reported_before_it_is_recorded),
		TEST(when_the_report_is_refused_the_message_is_kept),
		TEST(a_refused_report_does_not_warn_the_sender_again),
		TEST(a_bounce_is_not_bounced),
		TEST(a_bounce_that_fails_is_reported_to_the_postmaster_and_no_further),
		TEST(who_wants_no_report_gets_none),
		TEST(a_message_too_old_is_returned),
		TEST(a_delay_is_told_once),
		TEST(a_domain_that_does_not_exist_fails_its_recipients),
		TEST(a_relay_that_does_not_exist_defers_its_mail),
		TEST(a_connection_that_never_is_ready_leaves_the_mail_where_it_was),
		TEST(with_all_hosts_out_the_mail_is_deferred_with_the_last_failure),
		TEST(a_host_that_is_out_is_tried_again_at_its_time),
		TEST(the_backup_host_is_used_only_when_the_best_are_out),
		TEST(a_dead_host_of_two_costs_nothing_after_its_first_failure),
		TEST(what_comes_back_untouched_is_next),
		TEST(what_comes_back_untouched_again_and_again_is_deferred),
		TEST(a_recipient_without_a_verdict_is_given_again),
		TEST(each_recipient_has_its_own_verdict),
		TEST(a_cohort_of_failures_makes_a_site_dead),
		TEST(a_site_with_a_ready_connection_does_not_die_of_those_refused),
		TEST(a_dead_site_is_tried_again_after_the_minimal_backoff_time),
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
		TEST(the_window_grows_with_good_deliveries_up_to_its_limit),
		TEST(a_reload_changes_limits_at_once),
		TEST(a_reload_changes_routes_for_mail_that_comes_after_it),
		TEST(a_reload_with_more_room_gives_the_spool_more_credit),
		TEST(records_that_nobody_needs_are_collected),
		TEST(nothing_that_is_under_way_is_collected),
		TEST(the_end_may_come_with_everything_under_way),
	};
	return RUN(tests);
}
