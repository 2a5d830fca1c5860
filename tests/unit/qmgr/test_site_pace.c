/* SPDX-License-Identifier: ISC */
/* What becomes of mail that its host refuses: for reasons of the host, or of the message. */
#include "tests/unit/qmgr/world.h"

#include "qmgr/dest/conn.h"
#include "qmgr/dest/destdb_text.h"
#include "qmgr/dest/site.h"
#include "qmgr/dest/suspend.h"
#include "qmgr/message.h"

enum { SECOND = 1000, HOUR = 3600 * SECOND };

static struct verdict *said(enum verdict_stage stage, int code, const char *dsn, const char *text)
{
	return verdict_answering(stage, VERDICT_DEFERRED, code, dsn, "mx.test[192.0.2.1]:25", text);
}

static void refuse(struct delivery *d, enum verdict_stage stage, int code, const char *dsn,
		   const char *text)
{
	for (uint32_t i = 0; i < d->nrcpt; i++)
		d->rcpt[i].verdict = said(stage, code, dsn, text);
	back(d);
}

static void slow_down(struct delivery *d)
{
	refuse(d, VERDICT_AT_RCPT, 452, "4.7.28", "too much mail from your address, rate limited");
}

/* The host says 421 to MAIL, and hangs up. */
static void tell_off(struct connection_open *o)
{
	for (int i = given.n - 1; i >= 0; i--) {
		struct delivery *d = given_at(i);
		if (d->connection != o->connection)
			continue;
		d->refusal = said(VERDICT_AT_MAIL, 421, "4.7.0", "not now");
		d->returned = true;
		post_back(d);
	}
	take(&opened, find(&opened, o));
	o->note.type = CONNECTION_CLOSED;
	o->was_ready = true;
	o->why = said(VERDICT_AT_MAIL, 421, "4.7.0", "not now");
	post(&o->note);
	settle();
}

static struct connection_open *its_connection(const struct delivery *d)
{
	for (int i = 0; i < opened.n; i++)
		if (open_at(i)->connection == d->connection)
			return open_at(i);
	fail();
	return NULL;
}

static struct site *the_site(void)
{
	return site_named("mx.test");
}

static void a_refusal_of_the_host_puts_the_message_back_at_the_head(void **state)
{
	(void)state;
	begin("transport smtp { initial_destination_concurrency = 1 }");
	send_many(3);
	ready(open_at(0), 1);
	assert_int_equal(given_at(0)->id, 1);
	slow_down(given_at(0));
	assert_int_equal(told.n, 0); /* nothing is recorded, and no round has ended */
	assert_int_equal(given.n, 0);
	pass_about(SECOND);
	assert_int_equal(given.n, 1);
	assert_int_equal(given_at(0)->id, 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
}

static void after_pace_retries_it_is_deferred_for_its_own_sake(void **state)
{
	(void)state;
	begin("queue { maximal_backoff_time = 8s minimal_backoff_time = 8s }\n"
	      "transport smtp { pace_retries = 2 }");
	send_many(1);
	ready(open_at(0), 1);
	for (int i = 0; i < 2; i++) {
		slow_down(given_at(0));
		assert_int_equal(told.n, 0);
		pass_time(4 * SECOND);
	}
	slow_down(given_at(0));
	struct envelope *e = is_kept(1);
	assert_int_equal(e->rcpt[0].tries, 1);
	envelope_free(&e);
}

/* The first, by a lifetime of ten seconds. */
static void is_returned_with_what_was_said(uint32_t tries)
{
	struct spool_store *report = next_told(SPOOL_STORE);
	const struct message *m = report->owner;
	assert_string_equal(m->work.envelope->rcpt[0].last->text,
			    "delivery time expired; last attempt: 452 too much mail from your "
			    "address, rate limited");
	assert_int_equal(m->work.envelope->rcpt[0].tries, tries);
	stored(report, true);
	is_delivered(1, 1, VERDICT_FAILED);
	is_released(1);
}

static void at_its_end_its_sender_is_told_what_the_host_has_said(void **state)
{
	(void)state;
	begin("queue { maximal_queue_lifetime = 10s }\n"
	      "transport smtp { pace_retries = 100  site_patience = 1h }");
	send_many(1);
	ready(open_at(0), 1);
	slow_down(given_at(0));
	assert_int_equal(told.n, 0);
	for (int i = 0; i < 10 && told.n == 0; i++) {
		if (given.n > 0)
			slow_down(given_at(0));
		pass_time(SECOND);
	}
	is_returned_with_what_was_said(0);
}

static void what_ends_on_its_way_does_not_go_back(void **state)
{
	(void)state;
	begin("queue { maximal_queue_lifetime = 10s }");
	send_many(1);
	ready(open_at(0), 1);
	pass_time(10 * SECOND);
	assert_int_equal(told.n, 0);
	slow_down(given_at(0));
	is_returned_with_what_was_said(1);
}

static void below_one_in_ten_seconds_it_is_deferred_at_once(void **state)
{
	(void)state;
	begin("transport smtp { pace_retries = 100 site_patience = 1h "
	      "initial_destination_concurrency = 1 }");
	send_many(40);
	ready(open_at(0), 1);
	int64_t wait_ms = SECOND;
	for (int i = 0; i < 4; i++, wait_ms *= 2) {
		slow_down(given_at(0));
		assert_int_equal(told.n, 0);
		pass_about(wait_ms);
	}
	slow_down(given_at(0)); /* asked again after 16 s */
	struct envelope *e = is_kept(1);
	assert_int_equal(e->rcpt[0].tries, 1);
	envelope_free(&e);
}

/* The first of twenty messages was told to slow down, and no other goes. */
static void begin_paced(void)
{
	begin("");
	send_many(20);
	ready(open_at(0), 1);
	slow_down(given_at(0));
	for (int i = opened.n - 1; i >= 0; i--)
		ready(open_at(i), 1);
	assert_int_equal(given.n, 0);
}

static void one_message_asks_and_the_others_wait_without_an_attempt(void **state)
{
	(void)state;
	begin_paced();
	pass_about(SECOND);
	assert_int_equal(given.n, 1);
	pass_time(10 * SECOND);
	assert_int_equal(given.n, 1);
}

/* Hosts that greet, say EHLO, and refuse MAIL. */
static int connections_of_an_hour(void)
{
	int n = 0;
	for (int s = 0; s < 3600; s++) {
		while (opened.n > 0) {
			struct connection_open *o = open_at(0);
			n++;
			ready(o, 1);
			tell_off(o);
		}
		while (told.n > 0) {
			struct note *note = take(&told, 0);
			if (note->type == SPOOL_UNPARK)
				asked_back((struct spool_unpark *)note, 100, 100);
			else
				forget(note);
		}
		pass_time(SECOND);
	}
	return n;
}

static void one_that_says_421_to_mail_is_asked_like_one_that_says_it_at_the_greeting(void **state)
{
	(void)state;
	begin("");
	send_many(300);
	assert_in_range(connections_of_an_hour(), 5, 29);
}

static void without_a_pace_it_backs_off_all_the_same(void **state)
{
	(void)state;
	begin("transport smtp { pace = false }");
	send_many(300);
	assert_in_range(connections_of_an_hour(), 5, 40);
}

static void where_all_is_refused_for_long_the_others_wait_in_the_queue(void **state)
{
	(void)state;
	begin("transport smtp { site_patience = 2s }");
	send_many(10);
	while (opened.n > 0) {
		ready(open_at(0), 1);
		tell_off(open_at(0));
	}
	for (int64_t wait_ms = SECOND; wait_ms < 4 * SECOND; wait_ms *= 2) {
		pass_about(wait_ms);
		ready(open_at(0), 1);
		tell_off(open_at(0));
	}
	assert_int_equal(the_site()->health, SITE_REFUSED);
	assert_string_equal(site_state_name(the_site()), "refused");
	pass_time(2 * SECOND);
	for (uint64_t id = 2; id <= 10; id++) {
		struct envelope *e = is_parked(id);
		assert_int_equal(e->rcpt[0].tries, 0);
		assert_string_equal(e->rcpt[0].last->text, "not now");
		envelope_free(&e);
	}
	pass_time(5 * SECOND / 2); /* about 4 s in all */
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
	assert_int_equal(the_site()->health, SITE_ALIVE);
	is_released(1);
	struct spool_unpark *note = is_asked_back();
	assert_true(note->most >= 20);
	asked_back(note, 0, 0);
}

static void a_reload_that_wants_no_pace_ends_it(void **state)
{
	(void)state;
	begin_paced();
	reload("transport smtp { pace = false }");
	assert_true(site_pace_rate(the_site()) <= 0);
	assert_true(given.n > 1);
}

static void greylisting_and_full_mailboxes_are_their_messages(void **state)
{
	(void)state;
	begin("");
	send_many(12);
	ready(open_at(0), 1);
	for (int i = 0; i < 12; i++) {
		if (i % 2)
			refuse(given_at(0), VERDICT_AT_RCPT, 450, "4.2.0",
			       "Greylisted, see http://postgrey.example");
		else
			refuse(given_at(0), VERDICT_AT_RCPT, 452, "4.2.2", "mailbox full");
		struct envelope *e = is_kept((uint64_t)i + 1);
		assert_int_equal(e->rcpt[0].tries, 1);
		envelope_free(&e);
	}
	assert_true(site_pace_rate(the_site()) <= 0);
}

static void mail_from(uint64_t id, const char *sender, const char *to)
{
	arrive(mail(id, sender, to));
}

static void what_is_said_to_eight_of_different_senders_is_the_hosts(void **state)
{
	(void)state;
	begin("");
	for (uint64_t id = 1; id <= 12; id++) {
		char from[32], to[32];
		snprintf(from, sizeof from, "f%d@own.test", (int)id);
		snprintf(to, sizeof to, "t%d@a.test", (int)id);
		mail_from(id, from, to);
	}
	answer("a.test", one_host);
	ready(open_at(0), 1);
	for (int i = 0; i < 7; i++) {
		refuse(given_at(0), VERDICT_AT_END, 451, "4.3.0", "try again");
		struct envelope *e = is_kept((uint64_t)i + 1);
		envelope_free(&e);
	}
	refuse(given_at(0), VERDICT_AT_END, 451, "4.3.0", "try again");
	assert_int_equal(told.n, 0);
	assert_true(site_pace_asks(the_site()));
}

static void of_one_sender_it_may_be_the_sender(void **state)
{
	(void)state;
	begin("");
	send_many(12);
	ready(open_at(0), 1);
	for (int i = 0; i < 12; i++) {
		refuse(given_at(0), VERDICT_AT_END, 451, "4.3.0", "try again");
		struct envelope *e = is_kept((uint64_t)i + 1);
		envelope_free(&e);
	}
	assert_true(site_pace_rate(the_site()) <= 0);
}

static void where_another_host_serves_it_is_that_hosts_failure(void **state)
{
	(void)state;
	begin("transport smtp { initial_destination_concurrency = 1 }");
	send_mail(1, "x@a.test");
	answer("a.test", "10 a.test 192.0.2.1, 10 b.test 192.0.2.2");
	struct connection_open *first = open_at(0);
	const char *other = strcmp(first->host, "a.test") == 0 ? "b.test" : "a.test";
	struct host *h = ((struct conn *)first->owner)->host;
	ready(first, 1);
	tell_off(first);
	assert_int_equal(h->state, HOST_OUT);
	struct connection_open *second = open_to(other);
	ready(second, 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
	assert_int_equal(h->failures, 1);
}

/* Three messages. */
static void send_to_best_of_two(void)
{
	begin("transport smtp { initial_destination_concurrency = 1 }");
	for (uint64_t id = 1; id <= 3; id++)
		send_mail(id, "x@a.test");
	answer("a.test", "10 a.test 192.0.2.1, 20 b.test 192.0.2.2");
}

/* The best of two by preference says "try later" to all: the other has the mail, and goes on having it when the best is looked at. */
static void where_one_takes_nothing_the_others_are_asked(void **state)
{
	(void)state;
	send_to_best_of_two();
	struct connection_open *o = open_to("a.test");
	struct host *best = ((struct conn *)o->owner)->host;
	const struct site *s = ((struct conn *)o->owner)->site;
	ready(o, 1);
	refuse(given_at(0), VERDICT_AT_MAIL, 451, "4.7.1", "try later");
	assert_int_equal(best->state, HOST_UP);
	pass_about(SECOND);
	refuse(given_at(0), VERDICT_AT_MAIL, 451, "4.7.1", "try later");
	assert_int_equal(best->state, HOST_OUT);
	close_orderly(o);
	o = open_to("b.test");
	ready(o, 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
	is_released(1);
	double rate = site_pace_rate(s);
	assert_true(rate >= 1);
	pass_time(SECOND);
	done(given_at(0), VERDICT_SENT);
	is_delivered(2, 1, VERDICT_SENT);
	close_orderly(o);
	ready(open_to("a.test"), 1); /* the probe, which has the next */
	pass_time(SECOND);
	refuse(given_at(0), VERDICT_AT_MAIL, 451, "4.7.1", "try later");
	assert_int_equal(best->state, HOST_OUT);
	assert_int_equal(best->failures, 2);
	assert_true(site_pace_rate(s) >= rate); /* that was no matter of the pace */
}

static void where_the_one_that_is_asked_hangs_another_is_asked(void **state)
{
	(void)state;
	send_to_best_of_two();
	struct connection_open *o = open_to("a.test");
	ready(o, 1);
	refuse(given_at(0), VERDICT_AT_MAIL, 451, "4.7.1", "try later");
	pass_about(SECOND);
	assert_int_equal(given.n, 1);
	heard_of(o, CONNECTION_AWAITED); /* it may have arrived */
	assert_false(was_told_to_leave(o));
	heard_of(o, CONNECTION_STALLED);
	assert_true(was_told_to_leave(o));
	put_back(given_at(0));
	o->was_ready = true;
	o->why = verdict_new(VERDICT_DEFERRED, 0, "4.4.2", o->host, "no answer yet");
	close_orderly(o);
	ready(open_to("b.test"), 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
}

static void the_only_one_that_hangs_is_waited_for(void **state)
{
	(void)state;
	begin_paced();
	pass_about(SECOND);
	struct connection_open *o = its_connection(given_at(0));
	heard_of(o, CONNECTION_STALLED);
	assert_false(was_told_to_leave(o));
	assert_int_equal(given.n, 1);
}

static void pipelines_are_one_deep_after_a_refusal(void **state)
{
	(void)state;
	begin("transport smtp { destination_concurrency_limit = 1 initial_destination_concurrency "
	      "= 1 }");
	send_many(40);
	ready(open_at(0), 4);
	assert_int_equal(given.n, 4);
	for (int i = 0; i < 20; i++)
		done(given_at(0), VERDICT_SENT);
	assert_true(given.n >= 4);
	while (given.n > 1)
		slow_down(given_at(0));
	slow_down(given_at(0));
	pass_time(SECOND);
	assert_int_equal(given.n, 1);
}

/* Of two connections one hangs, and on the other it is refused after some were taken. */
static struct connection_open *begin_with_one_that_hangs(bool known)
{
	begin("transport smtp { initial_destination_concurrency = 2 }");
	send_many(60);
	struct connection_open *hangs = open_at(0);
	ready(hangs, 1);
	ready(open_at(1), 1);
	for (int k = 0; k < 20; k++)
		done(given_at(1), VERDICT_SENT);
	if (known)
		heard_of(hangs, CONNECTION_AWAITED);
	for (int k = given.n - 1; k > 0; k--)
		slow_down(given_at(k));
	return hangs;
}

static void what_is_owed_an_answer_for_long_keeps_no_other_from_the_pace(void **state)
{
	(void)state;
	begin_with_one_that_hangs(true);
	pass_time(4 * SECOND);
	assert_int_equal(given.n, 2); /* the first of a pace goes alone, */
	done(given_at(1), VERDICT_SENT);
	pass_time(2 * SECOND);
	assert_true(given.n >= 2);
}

static void also_where_that_is_found_later(void **state)
{
	(void)state;
	struct connection_open *hangs = begin_with_one_that_hangs(false);
	pass_time(4 * SECOND);
	assert_int_equal(given.n, 1);
	heard_of(hangs, CONNECTION_STALLED);
	assert_int_equal(given.n, 2);
}

/* --- so many messages a connection */

static int taken[100]; /* by the number of the connection */

/* True: it was told off. */
static bool answer_up_to(struct delivery *d, int most)
{
	bool enough = taken[d->connection]++ == most;
	if (enough)
		tell_off(its_connection(d));
	else
		done(d, VERDICT_SENT);
	ready_all();
	return enough;
}

/* Until the host has said it so often; in turn. */
static void answer_until_told(int most, int times)
{
	for (int i = 0; times > 0; i++) {
		if (given.n == 0)
			pass_time(SECOND);
		else
			times -= answer_up_to(given_at(i % given.n), most);
	}
}

static void begin_connections(int messages)
{
	memset(taken, 0, sizeof taken);
	begin("transport smtp { pace_retries = 100 site_patience = 1h }");
	send_many(messages);
	ready_all();
}

static const struct host *the_host(void)
{
	return the_site()->hosts[0].host;
}

static void who_takes_so_many_a_connection_is_not_paced_for_that(void **state)
{
	(void)state;
	begin_connections(60);
	answer_until_told(3, 1);
	assert_true(site_pace_rate(the_site()) > 0);
	for (int n = 0; n < 20 && host_messages_most(the_host(), clock_ms) == 0; n++)
		answer_until_told(3, 1);
	assert_int_equal(host_messages_most(the_host(), clock_ms), 3);
	/* What stood before goes on until it is told the same. */
	for (int n = 0; n < 5; n++) {
		assert_true(site_pace_rate(the_site()) <= 0);
		answer_until_told(3, 1);
	}
	while (given.n > 0)
		answer_up_to(given_at(0), 3);
	assert_true(site_pace_rate(the_site()) <= 0);
	assert_int_equal(q->sched.waiting + q->sched.under_way, 0);
}

static void one_message_a_connection_may_be_all_that_is_let_through(void **state)
{
	(void)state;
	begin_connections(60);
	answer_until_told(1, 20);
	assert_int_equal(host_messages_most(the_host(), clock_ms), 0);
	assert_true(site_pace_rate(the_site()) > 0);
}

static void who_refuses_all_at_once_takes_no_more_for_now(void **state)
{
	(void)state;
	begin_connections(60);
	for (int i = 0; i < given.n; i++)
		if (taken[given_at(i)->connection] < 2) {
			taken[given_at(i)->connection]++;
			done(given_at(i), VERDICT_SENT);
			i = -1;
		}
	int told_off = 0;
	for (; given.n > 0; told_off++)
		tell_off(its_connection(given_at(0)));
	assert_true(told_off >= HOST_TOLD_ALIKE);
	assert_int_equal(host_messages_most(the_host(), clock_ms), 0);
	assert_true(site_pace_rate(the_site()) > 0);
}

static void a_pace_outlives_its_site_and_the_process(void **state)
{
	(void)state;
	struct buf text;
	begin("");
	send_many(1);
	ready(open_at(0), 1);
	slow_down(given_at(0));
	double rate = site_pace_rate(the_site());
	assert_true(rate > 0);
	buf_init(&text);
	destdb_write(&q->db, &text);
	site_reset(the_site(), false);
	assert_true(site_pace_rate(the_site()) <= 0);
	destdb_read(&q->db, buf_cstr(&text));
	send_mail(2, "x@b.test");
	answer("b.test", "10 other.test 192.0.2.9");
	struct site *again = site_get(&q->db, the_site()->queue.transport, NULL, "mx.test 2");
	assert_true(site_pace_rate(again) <= 0); /* of another name nothing is known */
	assert_non_null(strstr(buf_cstr(&text), "\tpace=1000\t"));
	assert_non_null(strstr(buf_cstr(&text), "why=too much mail from your address"));
	buf_fini(&text);
}

/* Of a message that was told to slow down, and is taken when it asks again. */
static void learn_a_pace(void)
{
	begin_paced();
	pass_about(SECOND);
	done(given_at(0), VERDICT_SENT);
	assert_true(site_pace_rate(the_site()) > 0);
	assert_true(the_host()->pace.rate > 0);
}

static void a_day_without_a_refusal_ends_a_pace(void **state)
{
	(void)state;
	learn_a_pace();
	suspend_begin(&q->db, "mx.test", SUSPEND_SITE, 0);
	while (given.n > 0)
		done(given_at(0), VERDICT_SENT);
	pass_time(23 * HOUR);
	assert_true(site_pace_rate(the_site()) > 0);
	pass_time(HOUR);
	assert_true(site_pace_rate(the_site()) <= 0);
	assert_true(the_host()->pace.rate <= 0); /* nor is it told to another site or node */
	assert_true(suspend_end(&q->db, "mx.test"));
}

static void also_of_a_site_that_no_mail_is_for(void **state)
{
	(void)state;
	struct buf text;
	learn_a_pace();
	for (int i = 0; i < 100 && told.n < 20; i++) {
		while (given.n > 0)
			done(given_at(0), VERDICT_SENT);
		pass_time(SECOND);
	}
	assert_int_equal(told.n, 20);
	pass_time(25 * HOUR);
	buf_init(&text);
	destdb_write(&q->db, &text);
	assert_null(strstr(buf_cstr(&text), "pace="));
	buf_fini(&text);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_refusal_of_the_host_puts_the_message_back_at_the_head),
		TEST(after_pace_retries_it_is_deferred_for_its_own_sake),
		TEST(at_its_end_its_sender_is_told_what_the_host_has_said),
		TEST(what_ends_on_its_way_does_not_go_back),
		TEST(below_one_in_ten_seconds_it_is_deferred_at_once),
		TEST(one_message_asks_and_the_others_wait_without_an_attempt),
		TEST(one_that_says_421_to_mail_is_asked_like_one_that_says_it_at_the_greeting),
		TEST(without_a_pace_it_backs_off_all_the_same),
		TEST(where_all_is_refused_for_long_the_others_wait_in_the_queue),
		TEST(a_reload_that_wants_no_pace_ends_it),
		TEST(greylisting_and_full_mailboxes_are_their_messages),
		TEST(what_is_said_to_eight_of_different_senders_is_the_hosts),
		TEST(of_one_sender_it_may_be_the_sender),
		TEST(where_another_host_serves_it_is_that_hosts_failure),
		TEST(where_one_takes_nothing_the_others_are_asked),
		TEST(where_the_one_that_is_asked_hangs_another_is_asked),
		TEST(the_only_one_that_hangs_is_waited_for),
		TEST(pipelines_are_one_deep_after_a_refusal),
		TEST(what_is_owed_an_answer_for_long_keeps_no_other_from_the_pace),
		TEST(also_where_that_is_found_later),
		TEST(who_takes_so_many_a_connection_is_not_paced_for_that),
		TEST(one_message_a_connection_may_be_all_that_is_let_through),
		TEST(who_refuses_all_at_once_takes_no_more_for_now),
		TEST(a_pace_outlives_its_site_and_the_process),
		TEST(a_day_without_a_refusal_ends_a_pace),
		TEST(also_of_a_site_that_no_mail_is_for),
	};
	return RUN(tests);
}
