/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/world.h"

#include "qmgr/report_text.h"

/* To its sender, and gone. */
static void is_returned(uint64_t id)
{
	stored(next_told(SPOOL_STORE), true);
	is_delivered(id, 1, VERDICT_FAILED);
	is_released(id);
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
	is_returned(1);
}

static void when_the_report_of_what_was_sent_is_refused_it_is_owed_on(void **state)
{
	(void)state;
	begin("");
	struct envelope *e = mail(1, "sender@here.test", "x@a.test");
	e->rcpt[0].notify = NOTIFY_SUCCESS;
	envelope_add(e, "y@a.test");
	arrive(e);
	answer("a.test", one_host);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 2, VERDICT_SENT);
	stored(next_told(SPOOL_STORE), false);
	e = is_kept(1);
	assert_false(e->rcpt[0].done);
	assert_true(e->rcpt[1].done);
	arrive(e);
	assert_int_equal(given.n, 0);
	stored(next_told(SPOOL_STORE), true);
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

static void of_mail_without_a_sender_the_postmaster_hears_what_failed(void **state)
{
	(void)state;
	begin("postmaster = \"pm@a.test\"");
	struct envelope *e = mail(1, "", "x@a.test");
	envelope_add(e, "y@a.test");
	e->rcpt[0].notify = NOTIFY_SUCCESS;
	arrive(e);
	answer("a.test", one_host);
	ready(open_at(0), 1);
	set_verdict(given_at(0), 0, VERDICT_SENT);
	set_verdict(given_at(0), 1, VERDICT_FAILED);
	back(given_at(0));
	is_delivered(1, 1, VERDICT_SENT);
	struct spool_store *s = next_told(SPOOL_STORE);
	char *text = mem_strndup(s->content->memory, s->content->size);
	assert_null(strstr(text, "rfc822;x@a.test"));
	assert_non_null(strstr(text, "rfc822;y@a.test"));
	free(text);
	stored(s, true);
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
	is_returned(1);
}

/* As a machine that boots with a clock that is years ahead, or after as long without power, has all its mail. */
static void lapsed_before_the_start(uint64_t id)
{
	struct envelope *e = mail(id, "sender@here.test", "x@a.test");
	e->arrived_ms -= INT64_C(1000) * 86400000;
	arrive(e);
}

static void fails_to_resolve(const char *domain)
{
	struct resolve *r = take_question(domain);
	r->failure = verdict_new(VERDICT_DEFERRED, 451, "4.4.3", NULL, "no answer");
	r->note.type = RESOLVE_ANSWER;
	post(&r->note);
	settle();
}

static void what_lapsed_before_the_start_waits_for_name_servers_that_are_not_there_yet(void **state)
{
	(void)state;
	begin("");
	lapsed_before_the_start(1);
	fails_to_resolve("a.test");
	arrive(is_kept(1));
	answer("a.test", one_host);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_DEFERRED);
	is_returned(1);
}

static void and_for_hosts_that_cannot_be_reached(void **state)
{
	(void)state;
	begin("transport smtp { site_patience = 1s }");
	lapsed_before_the_start(1);
	answer("a.test", one_host);
	for (int i = 0; i < 100 && told.n == 0; i++) {
		while (opened.n > 0)
			lose(open_at(0), "no route to host");
		pass_time(100);
	}
	struct envelope *e = is_kept(1);
	envelope_free(&e);
}

static void though_not_for_longer_than_an_hour(void **state)
{
	(void)state;
	begin("");
	pass_time(3600000);
	lapsed_before_the_start(1);
	fails_to_resolve("a.test");
	is_returned(1);
}

static void nor_for_longer_than_its_time_was(void **state)
{
	(void)state;
	begin("queue { maximal_queue_lifetime = 5s }");
	pass_time(5000);
	lapsed_before_the_start(1);
	fails_to_resolve("a.test");
	is_returned(1);
}

static void what_ends_while_the_relay_runs_waits_for_no_name_server(void **state)
{
	(void)state;
	begin("queue { maximal_queue_lifetime = 1h }");
	pass_time(600000);
	struct envelope *e = mail(1, "sender@here.test", "x@a.test");
	e->arrived_ms -= 3600000;
	arrive(e);
	fails_to_resolve("a.test");
	is_returned(1);
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

static void a_delay_says_the_end_that_comes_first(void **state)
{
	(void)state;
	char last[REPORT_DATE];
	begin("queue { delay_warning_time = 1m } flow \"here.test\" { lifetime = 1h }");
	struct envelope *e = mail(1, "sender@here.test", "x@a.test");
	report_date(e->arrived_ms - 60000 + 3600000, last);
	e->arrived_ms -= 60000;
	arrive(e);
	answer("a.test", one_host);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_DEFERRED);
	struct spool_store *s = next_told(SPOOL_STORE);
	char *text = mem_strndup(s->content->memory, s->content->size);
	assert_non_null(strstr(strstr(text, "Will-Retry-Until: "), last));
	free(text);
	stored(s, true);
	e = is_kept(1);
	envelope_free(&e);
}

/* RFC 2852, and NOTIFY=NEVER alone keeps it back. */
static void who_asked_to_be_told_by_a_time_is_whatever_else_is_wanted(void **state)
{
	(void)state;
	begin("");
	struct envelope *e = mail(1, "sender@here.test", "x@a.test");
	envelope_add(e, "y@a.test")->notify = NOTIFY_NEVER;
	e->rcpt[0].notify = NOTIFY_FAILURE;
	e->by = ENVELOPE_BY_NOTIFY;
	e->by_ms = e->arrived_ms - 1000;
	arrive(e);
	answer("a.test", one_host);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_DEFERRED);
	struct spool_store *s = next_told(SPOOL_STORE);
	char *text = mem_strndup(s->content->memory, s->content->size);
	assert_non_null(strstr(text, "rfc822;x@a.test"));
	assert_null(strstr(text, "rfc822;y@a.test"));
	free(text);
	stored(s, true);
	e = is_kept(1);
	assert_true(e->by & ENVELOPE_BY_TOLD);
	envelope_free(&e);
}

/* There are two words of a delay: one that is not safe takes back no other. */
static void a_delay_that_cannot_be_told_now_is_told_later_and_nothing_twice(void **state)
{
	(void)state;
	begin("queue { delay_warning_time = 1s }");
	struct envelope *e = mail(1, "sender@here.test", "x@a.test");
	e->by = ENVELOPE_BY_NOTIFY | ENVELOPE_BY_TOLD;
	e->arrived_ms -= 5000;
	e->by_ms = e->arrived_ms + 1000;
	arrive(e);
	answer("a.test", one_host);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_DEFERRED);
	stored(next_told(SPOOL_STORE), false);
	e = is_kept(1);
	assert_false(e->warned);
	assert_true(e->by & ENVELOPE_BY_TOLD);
	envelope_free(&e);
}

/* By LMTP, whose hosts know of no times: there was none for it to be late to. */
static void who_asked_to_be_told_of_a_delay_is_not_told_of_a_delivery_in_time(void **state)
{
	(void)state;
	begin("transport smtp { protocol = lmtp port = 25 }");
	struct envelope *e = mail(1, "sender@here.test", "x@a.test");
	e->by = ENVELOPE_BY_NOTIFY;
	e->by_ms = e->arrived_ms + 3600000;
	arrive(e);
	answer("a.test", one_host);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
	is_released(1);
}

static void nobody_is_told_that_what_was_discarded_has_gone_to_a_host(void **state)
{
	(void)state;
	begin("route \"a.test\" { discard = true }");
	struct envelope *e = mail(1, "sender@here.test", "x@a.test");
	e->rcpt[0].notify = NOTIFY_SUCCESS;
	e->by = ENVELOPE_BY_NOTIFY | ENVELOPE_BY_TRACE;
	e->by_ms = e->arrived_ms + 3600000;
	arrive(e);
	is_released(1);
	assert_int_equal(told.n, 0);
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

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_sent_is_recorded_and_then_released),
		TEST(what_is_deferred_is_kept_until_its_time),
		TEST(what_fails_is_reported_before_it_is_recorded),
		TEST(when_the_report_is_refused_the_message_is_kept),
		TEST(when_the_report_of_what_was_sent_is_refused_it_is_owed_on),
		TEST(a_refused_report_does_not_warn_the_sender_again),
		TEST(a_bounce_is_not_bounced),
		TEST(a_bounce_that_fails_is_reported_to_the_postmaster_and_no_further),
		TEST(of_mail_without_a_sender_the_postmaster_hears_what_failed),
		TEST(who_wants_no_report_gets_none),
		TEST(a_message_too_old_is_returned),
		TEST(what_lapsed_before_the_start_waits_for_name_servers_that_are_not_there_yet),
		TEST(and_for_hosts_that_cannot_be_reached),
		TEST(though_not_for_longer_than_an_hour),
		TEST(nor_for_longer_than_its_time_was),
		TEST(what_ends_while_the_relay_runs_waits_for_no_name_server),
		TEST(a_delay_is_told_once),
		TEST(a_delay_says_the_end_that_comes_first),
		TEST(who_asked_to_be_told_by_a_time_is_whatever_else_is_wanted),
		TEST(a_delay_that_cannot_be_told_now_is_told_later_and_nothing_twice),
		TEST(who_asked_to_be_told_of_a_delay_is_not_told_of_a_delivery_in_time),
		TEST(nobody_is_told_that_what_was_discarded_has_gone_to_a_host),
		TEST(what_comes_back_untouched_is_next),
		TEST(what_comes_back_untouched_again_and_again_is_deferred),
		TEST(a_recipient_without_a_verdict_is_given_again),
		TEST(each_recipient_has_its_own_verdict),
	};
	return RUN(tests);
}
