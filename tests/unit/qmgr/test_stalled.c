/* SPDX-License-Identifier: ISC */
/* Hosts that take connections and then do not answer: what they hold is not kept from who has none. */
#include "tests/unit/qmgr/sites.h"

#include "qmgr/dest/conn.h"

/* So many sites, each with so many connections that carry a message each. */
static void begin_with_carrying(const char *text, int sites, int each)
{
	last_id = 0;
	begin(text);
	for (int i = 0; i < sites; i++)
		for (int k = 0; k < each; k++)
			send_to_site(i);
	assert_int_equal(opened.n, sites * each);
	for (int i = 0; i < opened.n; i++)
		ready(open_at(i), 1);
	assert_int_equal(given.n, sites * each);
}

static void all_are(enum connection_slowness how)
{
	for (int i = 0; i < opened.n; i++)
		heard_of(open_at(i), how);
}

static int told_to_leave(void)
{
	int n = 0;
	for (int i = 0; i < ending.n; i++)
		n += ((struct connection_close *)ending.note[i])->leave;
	return n;
}

/* As a worker does: what it carries comes back first. */
static void leave(struct connection_open *o)
{
	for (int i = given.n - 1; i >= 0; i--)
		if (given_at(i)->connection == o->connection)
			put_back(given_at(i));
	for (int i = ending.n - 1; i >= 0; i--)
		if (((struct connection_close *)ending.note[i])->connection == o->connection)
			free(take(&ending, i));
	o->was_ready = true;
	o->why = verdict_new(VERDICT_DEFERRED, 0, "4.4.2", o->host, "no answer yet");
	post_closed(o, NULL);
	settle();
}

static struct connection_open *next_to_leave(void)
{
	for (int i = 0; i < opened.n; i++)
		if (was_told_to_leave(open_at(i)))
			return open_at(i);
	return NULL;
}

static void twenty_tarpits_with_five_each_make_room_for_who_has_none(void **state)
{
	(void)state;
	begin_with_carrying("", 20, 5);
	send_to_healthy();
	assert_int_equal(ending.n, 0);
	all_are(CONNECTION_STALLED);
	assert_int_equal(told_to_leave(), 1); /* for one message, one */
	assert_string_equal(next_to_leave()->host, "mx0.test");
	leave(next_to_leave());
	assert_int_equal(opened_to("healthy.test"), 1);
	assert_int_equal(connections_of(0), 4);
	ready(open_to("healthy.test"), 1);
	assert_int_equal(delivery_of_mail(last_id)->id, last_id);
	assert_int_equal(told_to_leave(), 0);
	assert_int_equal(site_named("mx0.test")->hosts[0].host->failures, 0);
}

/* Each site keeps one, and none gets back what it has lost. */
static void a_site_keeps_its_only_one(void **state)
{
	(void)state;
	begin_with_carrying("transport smtp { connection_limit = 10 }", 2, 5);
	all_are(CONNECTION_STALLED);
	for (int i = 10; i < 20; i++)
		send_to_site(i);
	for (struct connection_open *o; (o = next_to_leave());)
		leave(o);
	assert_int_equal(connections_of(0), 1);
	assert_int_equal(connections_of(1), 1);
	assert_int_equal(opened.n, 10);
	for (int i = 10; i < 18; i++)
		assert_int_equal(connections_of(i), 1);
}

static void until_it_is_stuck_and_most_are(void **state)
{
	(void)state;
	begin_with_carrying("transport smtp { connection_limit = 4 }", 4, 1);
	send_to_healthy();
	all_are(CONNECTION_STALLED);
	assert_int_equal(told_to_leave(), 0);
	heard_of(open_at(0), CONNECTION_STUCK);
	assert_int_equal(told_to_leave(), 1);
	leave(next_to_leave());
	assert_int_equal(site_named("mx0.test")->hosts[0].host->state, HOST_OUT);
	assert_int_equal(opened_to("healthy.test"), 1);
}

static void a_slow_host_among_quick_ones_keeps_its_own(void **state)
{
	(void)state;
	begin_with_carrying("transport smtp { connection_limit = 4 }", 4, 1);
	send_to_healthy();
	heard_of(open_at(0), CONNECTION_STALLED);
	heard_of(open_at(0), CONNECTION_STUCK);
	assert_int_equal(told_to_leave(), 0);
	done(given_at(3), VERDICT_SENT);
	assert_int_equal(ending.n, 1); /* idle now, and of no use */
	assert_false(was_told_to_end(open_at(0)));
}

/* Who has all of a message may have taken it. */
static void what_may_have_arrived_is_waited_for(void **state)
{
	(void)state;
	begin_with_carrying("", 20, 5);
	send_to_healthy();
	all_are(CONNECTION_AWAITED);
	assert_int_equal(ending.n, 0);
	heard_of(open_at(7), CONNECTION_STALLED);
	assert_int_equal(told_to_leave(), 1);
	assert_true(was_told_to_leave(open_at(7)));
}

static void who_has_answered_meanwhile_stays(void **state)
{
	(void)state;
	begin_with_carrying("", 20, 5);
	all_are(CONNECTION_STALLED);
	all_are(CONNECTION_MOVES);
	send_to_healthy();
	assert_int_equal(ending.n, 0);
}

/* It was told to close when what it carries is done, and that may take an hour. */
static void one_that_lingers_leaves(void **state)
{
	(void)state;
	begin_with_carrying("transport smtp { connection_limit = 2 }", 1, 2);
	reload("transport smtp { connection_limit = 2  mail_timeout = 9m }");
	assert_int_equal(ending.n, 2);
	send_to_healthy();
	assert_int_equal(told_to_leave(), 0);
	all_are(CONNECTION_STALLED);
	assert_int_equal(told_to_leave(), 1);
	leave(next_to_leave());
	assert_int_equal(opened_to("healthy.test"), 1);
}

static void a_probe_has_the_place_of_one_that_is_stalled(void **state)
{
	(void)state;
	last_id = 0;
	begin("transport smtp { connection_limit = 4 }");
	send_to_healthy();
	lose(open_to("healthy.test"), "421 not now");
	for (int i = 0; i < 4; i++)
		send_to_site(1);
	for (int i = 0; i < opened.n; i++)
		ready(open_at(i), 1);
	assert_int_equal(given.n, 4);
	all_are(CONNECTION_STALLED);
	pass_time(1000);
	assert_int_equal(told_to_leave(), 1);
	leave(next_to_leave());
	assert_int_equal(opened_to("healthy.test"), 1);
}

static void so_it_is_among_the_domains_of_a_provider(void **state)
{
	(void)state;
	last_id = 0;
	begin("provider p { mx = { .p.test } connection_limit = 4 }");
	for (int i = 0; i < 4; i++)
		send_mail(++last_id, "x@one.test");
	answer("one.test", "10 a.p.test 10.1.0.1");
	for (int i = 0; i < opened.n; i++)
		ready(open_at(i), 1);
	assert_int_equal(given.n, 4);
	send_mail(++last_id, "x@two.test");
	answer("two.test", "10 b.p.test 10.1.0.2");
	assert_int_equal(opened.n, 4);
	all_are(CONNECTION_STALLED);
	assert_int_equal(told_to_leave(), 1);
	leave(next_to_leave());
	assert_int_equal(opened_to("b.p.test"), 1);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(twenty_tarpits_with_five_each_make_room_for_who_has_none),
		TEST(a_site_keeps_its_only_one),
		TEST(until_it_is_stuck_and_most_are),
		TEST(a_slow_host_among_quick_ones_keeps_its_own),
		TEST(what_may_have_arrived_is_waited_for),
		TEST(who_has_answered_meanwhile_stays),
		TEST(one_that_lingers_leaves),
		TEST(a_probe_has_the_place_of_one_that_is_stalled),
		TEST(so_it_is_among_the_domains_of_a_provider),
	};
	return RUN(tests);
}
