/* SPDX-License-Identifier: ISC */
/* Hosts that end the connection at a recipient too many: what is offered then, and what is learnt of it. */
#include "tests/unit/qmgr/world.h"

#include "qmgr/dest/conn.h"
#include "qmgr/dest/site.h"

enum { SECOND = 1000, DAY = 24 * 3600 * SECOND };

static struct verdict *said(void)
{
	return verdict_answering(VERDICT_AT_RCPT, VERDICT_DEFERRED, 421, "4.7.0",
				 "mx.test[192.0.2.1]:25", "not now");
}

/* A message to so many. */
static void send_to(uint64_t id, int n)
{
	struct envelope *e = mail(id, "sender@here.test", NULL);
	for (int i = 0; i < n; i++) {
		char to[32];
		snprintf(to, sizeof to, "r%d@a.test", i);
		envelope_add(e, to);
	}
	arrive(e);
	if (questions.n > 0)
		answer("a.test", one_host);
}

static struct connection_open *connect_to_host(void)
{
	while (opened.n == 0)
		pass_time(SECOND);
	struct connection_open *o = open_at(0);
	if (!o->was_ready)
		ready(o, 1);
	o->was_ready = true;
	while (given.n == 0)
		pass_time(SECOND);
	return o;
}

/* The host accepts so many recipients, and hangs up, with 421 or without. */
static void end_at(uint32_t taken, bool for_number, bool by_421)
{
	struct connection_open *o = connect_to_host();
	struct delivery *d = given_at(0);
	d->rcpt_taken = taken;
	d->rcpt_told = for_number;
	d->refusal = by_421 ? said() : NULL;
	d->returned = true;
	post_back(d);
	take(&opened, find(&opened, o));
	o->note.type = CONNECTION_CLOSED;
	o->why = by_421 ? said() : verdict_new(VERDICT_DEFERRED, 0, "4.4.2", "mx", "closed");
	post(&o->note);
	settle();
}

/* Those beyond what is to be offered are left, as by a worker. */
static void take_offer(uint32_t offered)
{
	connect_to_host();
	struct delivery *d = given_at(0);
	assert_int_equal(d->rcpt_most == 0 || d->rcpt_most > d->nrcpt ? d->nrcpt : d->rcpt_most,
			 offered);
	for (uint32_t i = 0; i < offered; i++)
		set_verdict(d, i, VERDICT_SENT);
	back(d);
}

static const struct host *the_host(void)
{
	return site_named("mx.test")->hosts[0].host;
}

static bool is_paced(void)
{
	return site_pace_rate(site_named("mx.test")) > 0;
}

static void who_ends_at_a_recipient_is_offered_as_many_as_it_took(void **state)
{
	(void)state;
	begin("");
	send_to(1, 50);
	end_at(20, false, true);
	assert_true(is_paced()); /* as far as anybody knows */
	take_offer(20);
	take_offer(20);
	take_offer(10);
	assert_int_equal(host_recipients_most(the_host(), clock_ms), 0);
	assert_int_equal(q->sched.waiting + q->sched.under_way, 0);
}

static void so_is_one_that_hangs_up_without_a_word(void **state)
{
	(void)state;
	begin("");
	send_to(1, 30);
	end_at(20, false, false);
	take_offer(20);
	take_offer(10);
	assert_int_equal(q->sched.waiting + q->sched.under_way, 0);
}

static void twice_alike_with_mail_taken_between_is_what_it_takes(void **state)
{
	(void)state;
	begin("");
	send_to(1, 30);
	end_at(20, false, true);
	take_offer(20);
	take_offer(10);
	send_to(2, 30);
	end_at(20, false, true);
	assert_int_equal(host_recipients_most(the_host(), clock_ms), 20);
	assert_false(is_paced());
	take_offer(20);
	take_offer(10);
	send_to(3, 30);
	take_offer(20);
	take_offer(10);
	assert_int_equal(host_recipients_most(the_host(), clock_ms + DAY), 0);
}

static void nothing_taken_between_is_one_refusal(void **state)
{
	(void)state;
	begin("");
	send_to(1, 30);
	end_at(20, false, true);
	send_to(2, 30);
	for (int i = 0; i < 2; i++)
		end_at(20, false, true);
	assert_int_equal(host_recipients_most(the_host(), clock_ms), 0);
	assert_true(is_paced());
}

static void who_says_that_there_are_too_many_is_believed_at_once(void **state)
{
	(void)state;
	begin("");
	send_to(1, 30);
	end_at(20, true, true);
	assert_int_equal(host_recipients_most(the_host(), clock_ms), 20);
	assert_false(is_paced());
	take_offer(20);
	end_at(5, true, true); /* it changes its mind */
	assert_int_equal(host_recipients_most(the_host(), clock_ms), 5);
	assert_false(is_paced());
	take_offer(5);
	take_offer(5);
	assert_int_equal(q->sched.waiting + q->sched.under_way, 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_teardown(test, finish)
	const struct CMUnitTest tests[] = {
		TEST(who_ends_at_a_recipient_is_offered_as_many_as_it_took),
		TEST(so_is_one_that_hangs_up_without_a_word),
		TEST(twice_alike_with_mail_taken_between_is_what_it_takes),
		TEST(nothing_taken_between_is_one_refusal),
		TEST(who_says_that_there_are_too_many_is_believed_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
