/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/world.h"

#include "qmgr/nexthop.h"

static struct conf_rate rate_of(const char *text)
{
	char setting[100];
	snprintf(setting, sizeof setting, "transport smtp { destination_rate = \"%s\" }", text);
	struct conf *c = conf_of(setting);
	struct conf_rate r = c->transport[0].destination_rate;
	conf_unref(c);
	return r;
}

static void a_rate_may_be_a_fraction(void **state)
{
	(void)state;
	struct conf_rate r = rate_of("0.5/s");
	assert_int_equal(r.events, 1);
	assert_int_equal(r.per_ms, 2000);
	r = rate_of("2.5/m");
	assert_int_equal(r.events, 1);
	assert_int_equal(r.per_ms, 24000);
	r = rate_of("100/s");
	assert_int_equal(r.events, 100);
	assert_int_equal(r.per_ms, 1000);
	r = rate_of("");
	assert_int_equal(r.events, 0);
}

/* So many begin in a time when each begins as soon as it may. */
static int begun_in(const struct conf_rate *r, int64_t ms)
{
	struct pace p = {0};
	int n = 0;
	for (int64_t now_ms = 1000000; now_ms < 1000000 + ms; now_ms++)
		while (pace_due_ms(&p, r) <= now_ms && n < 1000000) {
			pace_count(&p, r, now_ms);
			n++;
		}
	return n;
}

static void deliveries_are_evenly_spaced(void **state)
{
	(void)state;
	struct conf_rate one = rate_of("1/s"), many = rate_of("3000/s"), few = rate_of("0.1/s");
	assert_int_equal(begun_in(&one, 10000), 10);
	assert_int_equal(begun_in(&few, 60000), 6);
	assert_in_range(begun_in(&many, 10000), 29990, 30200);
}

static void a_quiet_time_is_not_made_up_for(void **state)
{
	(void)state;
	struct conf_rate r = rate_of("1/s");
	struct pace p = {0};
	pace_count(&p, &r, 1000);
	pace_count(&p, &r, 100000);
	assert_int_equal(pace_due_ms(&p, &r), 101000);
}

/* Seconds that the deliveries of n messages take, each answered at once. */
static int64_t play(const char *settings, int n)
{
	char text[300];
	snprintf(text, sizeof text,
		 "transport smtp { %s }\nroute \"*\" { relay = { \"[relay.test]\" } }", settings);
	begin(text);
	int64_t began_ms = clock_ms, last_ms = 0;
	int done_n = 0, most = 0;
	for (int i = 1; i <= n; i++)
		send_mail((uint64_t)i, "x@a.test");
	answer("relay.test", "0 relay.test 192.0.2.1");
	while (done_n < n) {
		for (int i = 0; i < opened.n; i++)
			if (!open_at(i)->was_ready) {
				open_at(i)->was_ready = true;
				ready(open_at(i), 4);
			}
		most = given.n > most ? given.n : most;
		while (given.n > 0) {
			last_ms = clock_ms;
			done(given_at(0), VERDICT_SENT);
			done_n++;
		}
		pass_time(10);
		assert_true(clock_ms - began_ms < 10000000);
	}
	if (strstr(settings, "delay"))
		assert_int_equal(most, 1);
	finish(NULL);
	return last_ms - began_ms;
}

static void a_destination_gets_no_more_than_its_rate(void **state)
{
	(void)state;
	assert_int_equal(play("destination_rate = \"1/s\"", 20), 19000);
	assert_int_equal(play("destination_rate = \"0.5/s\"", 5), 8000);
	assert_in_range(play("destination_rate = \"20/s\"", 41), 1940, 2060);
	assert_in_range(play("", 20), 0, 100);
}

static void a_destination_with_a_delay_gets_one_at_a_time(void **state)
{
	(void)state;
	assert_int_equal(play("destination_rate_delay = 1s", 10), 9000);
}

static void a_rate_outlasts_the_mail_that_it_was_kept_for(void **state)
{
	(void)state;
	begin("transport smtp { destination_rate = \"1/m\" }");
	send_mail(1, "x@dest.test");
	answer("dest.test", "10 mx.test 192.0.2.1");
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	close_orderly(open_at(0));
	for (int i = 0; i < 4; i++)
		pass_time(10000);
	assert_int_equal(HASH_COUNT(q->nexthops), 0);
	send_mail(2, "x@dest.test");
	answer("dest.test", "10 mx.test 192.0.2.1");
	assert_int_equal(opened.n, 0);
	pass_time(20000);
	assert_int_equal(opened.n, 1);
	ready(open_at(0), 1);
	assert_int_equal(given_at(0)->id, 2);
	finish(NULL);
}

static void a_clone_has_a_rate_of_its_own(void **state)
{
	(void)state;
	begin("transport slow { like = smtp destination_rate_delay = 1s }\n"
	      "route \"slow.test\" { transport = slow }");
	for (uint64_t id = 1; id <= 4; id++)
		send_mail(id, id <= 2 ? "x@slow.test" : "x@fast.test");
	answer("slow.test", "10 mx.test 192.0.2.1");
	answer("fast.test", "10 mx.test 192.0.2.1");
	assert_int_equal(HASH_COUNT(q->sched.transports), 2);
	assert_int_equal(opened.n, 3); /* one, and as many as wait */
	while (given.n < 3 && opened.n > 0) {
		for (int i = 0; i < opened.n; i++)
			if (!open_at(i)->was_ready) {
				open_at(i)->was_ready = true;
				ready(open_at(i), 1);
			}
	}
	assert_int_equal(given.n, 3);
	while (given.n > 0)
		done(given_at(0), VERDICT_SENT);
	pass_time(990);
	assert_int_equal(given.n, 0);
	pass_time(10);
	assert_int_equal(given.n, 1);
	finish(NULL);
}

/* One is sent, and the next would wait for an hour. How long it does after the reload. */
static int64_t wait_after(const char *before, const char *after)
{
	names_stay = true;
	begin(before);
	for (uint64_t id = 1; id <= 2; id++)
		send_mail(id, "x@dest.test");
	answer("dest.test", "10 mx.test 192.0.2.1");
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	pass_time(2000);
	assert_int_equal(given.n, 0);
	int64_t began_ms = clock_ms;
	reload(after);
	while (given.n == 0 && clock_ms < began_ms + 7200000)
		pass_time(100);
	int64_t waited_ms = clock_ms - began_ms;
	finish(NULL);
	return waited_ms;
}

static void a_rate_that_a_reload_widens_holds_at_once(void **state)
{
	static const char *const hour[] = {
		"transport smtp { destination_rate = \"1/h\" }",
		"transport smtp { destination_rate_delay = 1h }",
		"provider big { mx = { mx.test } rate = \"1/h\" }",
		"source a { address = { \"192.0.2.10\" } rate = \"1/h\" } "
		"transport smtp { sources = { a } }",
	};
	static const char *const second[] = {
		"transport smtp { destination_rate = \"1/s\" }",
		"transport smtp { destination_rate_delay = 1s }",
		"provider big { mx = { mx.test } rate = \"1/s\" }",
		"source a { address = { \"192.0.2.10\" } rate = \"1/s\" } "
		"transport smtp { sources = { a } }",
	};
	(void)state;
	for (size_t i = 0; i < sizeof hour / sizeof *hour; i++) {
		assert_in_range(wait_after(hour[i], second[i]), 0, 1000);
		assert_in_range(wait_after(hour[i], hour[i]), 3597000, 3600000);
	}
	assert_in_range(wait_after(hour[0], ""), 0, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rate_may_be_a_fraction),
		cmocka_unit_test(deliveries_are_evenly_spaced),
		cmocka_unit_test(a_quiet_time_is_not_made_up_for),
		cmocka_unit_test(a_destination_gets_no_more_than_its_rate),
		cmocka_unit_test(a_destination_with_a_delay_gets_one_at_a_time),
		cmocka_unit_test(a_rate_outlasts_the_mail_that_it_was_kept_for),
		cmocka_unit_test(a_clone_has_a_rate_of_its_own),
		cmocka_unit_test(a_rate_that_a_reload_widens_holds_at_once),
	};
	return RUN(tests);
}
