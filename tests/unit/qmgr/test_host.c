/* SPDX-License-Identifier: ISC */
/* What is known about one host: is it out, how many connections does it take, whose TLS is broken. */
#include "tests/unit/qmgr/unit.h"

#include "base/log.h"
#include "base/number.h"
#include "qmgr/dest/host.h"

#include <string.h>

enum { NOW = 10000000, MOST = 300000, MINUTE = 60000 };

static struct host h;
static char peer[] = "[192.0.2.1]:25";

static int start(void **state)
{
	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	h = (struct host){.peer = peer};
	return 0;
}

static int end(void **state)
{
	(void)state;
	host_fini(&h);
	return 0;
}

static struct verdict *refused(const char *text)
{
	return verdict_new(VERDICT_DEFERRED, 421, "4.7.0", "mx.test[192.0.2.1]:25", text);
}

/* A connection that was begun just before. */
static bool goes_out(int64_t now_ms)
{
	struct verdict *why = refused("not now");
	bool news = host_failed(&h, why, "mx.test", h.era, now_ms, MOST);
	verdict_unref(why);
	return news;
}

static bool turn_away(int ready, int64_t now_ms)
{
	struct verdict *why = refused("too many");
	h.ready = ready;
	h.connections = ready;
	bool news = host_turned_away(&h, why, "mx.test", now_ms);
	verdict_unref(why);
	return news;
}

static bool work(int ready, int64_t now_ms)
{
	h.ready = h.connections = ready;
	return host_worked(&h, now_ms);
}

static void a_host_is_up_until_it_fails(void **state)
{
	(void)state;
	assert_int_equal(h.state, HOST_UP);
	assert_false(host_out(&h));
	assert_false(host_probe_due(&h, NOW));
	assert_true(goes_out(NOW));
	assert_int_equal(h.state, HOST_OUT);
	assert_true(host_out(&h));
}

static void it_is_out_for_a_second_at_first(void **state)
{
	(void)state;
	goes_out(NOW);
	assert_int_equal(h.retry_ms, NOW + 1000);
	assert_false(host_probe_due(&h, NOW + 999));
	assert_true(host_probe_due(&h, NOW + 1000));
	assert_true(host_out(&h)); /* for mail, as before */
}

static void that_doubles_about_with_each_failure_up_to_its_bound(void **state)
{
	(void)state;
	int64_t now_ms = NOW, expected_ms = 1000;
	for (int i = 0; i < 200; i++) {
		goes_out(now_ms);
		int64_t about_ms = i < 2 ? 0 : expected_ms / 8;
		assert_in_range(h.retry_ms - now_ms, expected_ms - about_ms,
				number_min(expected_ms + about_ms, MOST));
		now_ms = h.retry_ms;
		assert_true(host_probe_due(&h, now_ms));
		host_probe(&h);
		assert_int_equal(h.state, HOST_PROBED);
		expected_ms = 2 * expected_ms < MOST ? 2 * expected_ms : MOST;
	}
}

/* 1, 3, 7, 15, ... s after it went out it would be out each time. */
static void one_that_is_out_at_even_intervals_is_met_between_them(void **state)
{
	(void)state;
	enum { EVERY_MS = 7000, OUT_MS = 4000 };
	int64_t now_ms = NOW;
	int tries = 0;
	for (; (now_ms - NOW) % EVERY_MS < OUT_MS && tries < 100; tries++) {
		goes_out(now_ms);
		now_ms = h.retry_ms;
		host_probe(&h);
	}
	assert_in_range(tries, 3, 8);
}

static void a_lower_bound_holds_at_once(void **state)
{
	(void)state;
	int64_t now_ms = NOW;
	for (int i = 0; i < 8; i++) {
		goes_out(now_ms);
		now_ms = h.retry_ms;
		host_probe(&h);
	}
	goes_out(now_ms);
	int64_t until_ms = h.retry_ms;
	assert_in_range(until_ms, now_ms + 224000, now_ms + 288000);
	host_cap_backoff(&h, MOST, now_ms + 1000);
	assert_int_equal(h.retry_ms, until_ms);
	host_cap_backoff(&h, 5000, now_ms + 1000);
	assert_int_equal(h.retry_ms, now_ms + 5000);
	assert_true(host_probe_due(&h, now_ms + 5000));
}

static void while_it_is_probed_no_other_probe_is_due(void **state)
{
	(void)state;
	goes_out(NOW);
	host_probe(&h);
	assert_true(host_out(&h));
	assert_false(host_probe_due(&h, NOW + MOST));
	host_probe_now(&h, NOW);
	assert_false(host_probe_due(&h, NOW + MOST));
}

static void only_the_failure_that_puts_it_out_is_news(void **state)
{
	(void)state;
	assert_true(goes_out(NOW));
	host_probe(&h);
	assert_false(goes_out(NOW + 1000));
	host_probe(&h);
	assert_true(work(1, NOW + 3000));
	assert_true(goes_out(NOW + 4000));
}

static void connections_that_fail_together_are_one_failure(void **state)
{
	(void)state;
	unsigned era = h.era;
	for (int i = 0; i < 20; i++) {
		struct verdict *why = refused(i == 19 ? "the last" : "one of them");
		assert_int_equal(host_failed(&h, why, "mx.test", era, NOW + i, MOST), i == 0);
		verdict_unref(why);
	}
	assert_int_equal(h.failures, 1);
	assert_int_equal(h.retry_ms, NOW + 1000);
	assert_string_equal(h.why->text, "the last"); /* but it is the latest that is told */
}

static void a_latecomer_of_those_says_nothing_about_the_probe(void **state)
{
	(void)state;
	unsigned era = h.era;
	goes_out(NOW);
	host_probe(&h);
	struct verdict *why = refused("late");
	assert_false(host_failed(&h, why, "mx.test", era, NOW + 1500, MOST));
	verdict_unref(why);
	assert_int_equal(h.state, HOST_PROBED);
	assert_int_equal(h.failures, 1);
}

static void the_first_connection_that_is_ready_ends_it(void **state)
{
	(void)state;
	for (int i = 0; i < 7; i++)
		goes_out(NOW);
	assert_true(work(1, NOW)); /* news */
	assert_int_equal(h.state, HOST_UP);
	assert_int_equal(h.failures, 0);
	assert_null(h.why);
	assert_true(h.proven);
	assert_false(work(2, NOW)); /* none */
	goes_out(NOW);
	assert_int_equal(h.retry_ms, NOW + 1000); /* from the beginning */
}

static void after_a_probe_without_an_answer_another_is_due_in_a_second(void **state)
{
	(void)state;
	for (int i = 0; i < 7; i++)
		goes_out(NOW);
	host_probe(&h);
	h.connections = 1;
	host_probe_missed(&h, NOW + 5);
	assert_int_equal(h.state, HOST_PROBED); /* something is under way yet */
	h.connections = 0;
	host_probe_missed(&h, NOW + 5);
	assert_int_equal(h.state, HOST_OUT);
	assert_int_equal(h.retry_ms, NOW + 1005);
	assert_int_equal(h.failures, 7);
}

static void the_operator_may_have_it_probed_at_once(void **state)
{
	(void)state;
	for (int i = 0; i < 7; i++)
		goes_out(NOW);
	host_probe_now(&h, NOW + 10);
	assert_true(host_probe_due(&h, NOW + 10));
}

static void a_suspended_host_is_out_and_is_not_probed(void **state)
{
	(void)state;
	h.suspended = true;
	assert_true(host_out(&h));
	goes_out(NOW);
	assert_false(host_probe_due(&h, NOW + MOST));
}

static void what_turns_connections_away_while_it_serves_some_is_not_out(void **state)
{
	(void)state;
	assert_true(turn_away(5, NOW));
	assert_false(host_out(&h));
	assert_int_equal(h.failures, 0);
	assert_int_equal(h.limit.n, 5);
	assert_string_equal(h.why->text, "too many");
}

static void at_its_limit_it_has_no_room_for_a_while(void **state)
{
	(void)state;
	turn_away(5, NOW);
	assert_false(host_has_room(&h, 0, NOW + 999));
	assert_int_equal(host_room_ms(&h), NOW + 1000);
	assert_true(host_has_room(&h, 0, NOW + 1000));
	h.connections = 6; /* the one that tries it */
	assert_false(host_has_room(&h, 0, NOW + 100 * MINUTE));
	h.connections = 4;
	assert_true(host_has_room(&h, 0, NOW));
}

static void who_did_not_answer_in_time_has_turned_away_only_when_it_happens_again(void **state)
{
	(void)state;
	assert_false(host_hung(&h, NOW - 1000, NOW));
	assert_false(host_hung(&h, NOW - 900, NOW + 10)); /* they were silent together */
	assert_true(host_hung(&h, NOW + 20, NOW + 5000));
}

static void those_that_hang_one_after_the_other_are_not_each_the_first(void **state)
{
	(void)state;
	int64_t hang_ms = 30000, apart_ms = 10000;
	assert_false(host_hung(&h, NOW, NOW + hang_ms));
	assert_false(host_hung(&h, NOW + apart_ms, NOW + apart_ms + hang_ms));
	assert_false(host_hung(&h, NOW + 2 * apart_ms, NOW + 2 * apart_ms + hang_ms));
	assert_true(host_hung(&h, NOW + 3 * apart_ms, NOW + 3 * apart_ms + hang_ms));
	host_worked(&h, NOW + 100000); /* one became ready: it was no limit */
	assert_false(host_hung(&h, NOW + 99000, NOW + 129000));
}

static void the_configured_limit_holds_beside_its_own(void **state)
{
	(void)state;
	assert_int_equal(host_room_ms(&h), 0);
	h.connections = 3;
	assert_true(host_has_room(&h, 4, NOW));
	assert_false(host_has_room(&h, 3, NOW));
	assert_true(host_has_room(&h, 0, NOW));
	turn_away(5, NOW);
	assert_false(host_has_room(&h, 5, NOW + MINUTE));
}

static void as_long_as_the_answer_is_the_same_it_is_tried_less_often(void **state)
{
	(void)state;
	int64_t now_ms = NOW, expected_ms = MINUTE;
	turn_away(5, now_ms);
	for (int64_t soon_ms = 1000; soon_ms <= 2000; soon_ms += 1000) { /* it may be chance */
		assert_int_equal(h.limit.again_ms - now_ms, soon_ms);
		now_ms = h.limit.again_ms;
		turn_away(5, now_ms);
	}
	for (int i = 0; i < 20; i++) {
		assert_int_equal(h.limit.again_ms - now_ms, expected_ms);
		now_ms = h.limit.again_ms;
		assert_false(turn_away(5, now_ms)); /* no news */
		expected_ms = 2 * expected_ms < 60 * MINUTE ? 2 * expected_ms : 60 * MINUTE;
	}
	assert_int_equal(h.limit.wait_ms, 60 * MINUTE);
}

static void those_begun_before_the_limit_was_known_do_not_count(void **state)
{
	(void)state;
	turn_away(5, NOW);
	for (int i = 1; i < 10; i++) {
		assert_false(turn_away(5, NOW + i));
		assert_int_equal(h.limit.again_ms, NOW + 1000);
	}
}

static void a_host_that_takes_fewer_than_before_has_a_lower_limit(void **state)
{
	(void)state;
	turn_away(5, NOW);
	assert_true(turn_away(3, NOW + 1000));
	assert_int_equal(h.limit.n, 3);
	assert_int_equal(h.limit.again_ms, NOW + 2000);
}

static void one_that_takes_more_is_asked_for_yet_another_at_once(void **state)
{
	(void)state;
	turn_away(5, NOW);
	work(5, NOW + 1000);
	assert_int_equal(h.limit.n, 5);
	work(6, NOW + MINUTE);
	assert_int_equal(h.limit.n, 6);
	assert_true(host_has_room(&h, 0, NOW + MINUTE));
	assert_true(turn_away(7, NOW + MINUTE + 1));
	assert_int_equal(h.limit.n, 7);
	assert_int_equal(h.limit.again_ms, NOW + MINUTE + 1 + 1000);
}

static void a_host_serves_that_has_connections_or_ended_one_well_just_now(void **state)
{
	(void)state;
	assert_false(host_serves(&h, NOW));
	h.ready = 1;
	assert_true(host_serves(&h, NOW));
	h.ready = 0;
	host_ended_well(&h, NOW);
	assert_true(host_serves(&h, NOW + 1000));
	assert_false(host_serves(&h, NOW + MINUTE));
}

static void broken_tls_under_one_name_says_nothing_about_another(void **state)
{
	(void)state;
	host_set_plain(&h, "a.test", NOW + 10);
	assert_true(host_plain(&h, "a.test", NOW));
	assert_false(host_plain(&h, "a.test", NOW + 10));
	assert_false(host_plain(&h, "b.test", NOW));
	assert_false(host_plain(&h, "a.test.", NOW));
	host_set_plain(&h, "b.test", NOW + 30);
	host_set_plain(&h, "a.test", NOW + 20);
	assert_int_equal(host_plain_until_ms(&h, "a.test"), NOW + 20);
	assert_int_equal(host_plain_until_ms(&h, "b.test"), NOW + 30);
	assert_int_equal(host_plain_until_ms(&h, "c.test"), 0);
}

static int count_plain(void)
{
	int n = 0;
	for (const struct host_plain *p = h.plain; p; p = p->next)
		n++;
	return n;
}

static void of_the_names_with_broken_tls_that_which_ends_first_makes_room(void **state)
{
	(void)state;
	char name[32];
	host_set_plain(&h, "last.test", NOW + 2 * HOST_PLAIN_NAMES);
	for (int i = 0; i < 2 * HOST_PLAIN_NAMES - 1; i++) {
		snprintf(name, sizeof name, "mx%d.test", i);
		host_set_plain(&h, name, NOW + i + 1);
	}
	assert_int_equal(count_plain(), HOST_PLAIN_NAMES);
	assert_true(host_plain(&h, "last.test", NOW));
	assert_true(host_plain(&h, name, NOW));
	assert_false(host_plain(&h, "mx0.test", NOW));
	host_set_plain(&h, name, NOW + 5); /* it is there */
	assert_int_equal(count_plain(), HOST_PLAIN_NAMES);
}

static void what_is_forgotten_was_never_tried(void **state)
{
	(void)state;
	turn_away(5, NOW);
	h.ready = h.connections = 0;
	goes_out(NOW);
	host_slow(&h, NOW);
	host_set_plain(&h, "a.test", NOW + 10);
	speed_round_trip(&h.speed, 1000);
	host_confused(&h, CONNECTION_LOCKSTEP, NULL, "a.test", NOW);
	host_forget(&h);
	assert_false(host_out(&h));
	assert_int_equal(h.failures, 0);
	assert_null(h.why);
	assert_null(h.plain);
	assert_int_equal(h.slow_until_ms, 0);
	assert_int_equal(h.opened_ms, 0);
	assert_int_equal(h.limit.n, 0);
	assert_int_equal(h.speed.r_us, 0);
	assert_int_equal(host_mode(&h, NOW), CONNECTION_FULL);
}

static void what_is_forgotten_is_half_of_no_new_lesson(void **state)
{
	(void)state;
	struct verdict *why = refused("no such login");
	host_login_refused(&h, true, why);
	host_hung_up(&h, 3);
	host_ended_after(&h, 3, NOW);
	for (int i = 1; i < HOST_TOLD_ALIKE; i++) {
		assert_false(host_told_after(&h, 3, NOW));
		host_took_message(&h);
	}
	assert_false(host_ended_at(&h, 3, false, NOW));
	host_took_message(&h);
	host_forget(&h);
	assert_int_equal(h.hangs_up_after, 0);
	host_ended_after(&h, 3, NOW);
	assert_false(host_told_after(&h, 3, NOW));
	assert_false(host_ended_at(&h, 3, false, NOW));
	assert_int_equal(host_messages_most(&h, NOW), 0);
	goes_out(NOW);
	assert_int_equal(h.retry_ms, NOW + HOST_BACKOFF_FIRST_MS);
	verdict_unref(why);
}

static void only_a_refused_password_waits_for_as_long_as_a_host_may(void **state)
{
	(void)state;
	struct verdict *why = refused("no such login");
	for (int kind = CREDENTIAL_PASSWORD; kind <= CREDENTIAL_REFRESH; kind++) {
		struct credential credential = {.kind = (enum credential_kind)kind,
						.login = (char *)"us"};
		h.credential = &credential;
		host_login_refused(&h, true, why);
		goes_out(NOW);
		assert_int_equal(h.retry_ms, NOW + (kind ? HOST_BACKOFF_FIRST_MS : MOST));
		h.credential = NULL;
		host_forget(&h);
	}
	verdict_unref(why);
}

static void simpler_modes_add_up_and_hold_for_a_day_since_the_last(void **state)
{
	(void)state;
	const int64_t day = 24 * 60 * (int64_t)MINUTE;
	host_confused(&h, CONNECTION_LOCKSTEP, NULL, "mx.test", NOW);
	host_confused(&h, CONNECTION_NO_CHUNKING, NULL, "mx.test", NOW + 1000);
	assert_int_equal(host_mode(&h, NOW + day), CONNECTION_LOCKSTEP | CONNECTION_NO_CHUNKING);
	assert_int_equal(host_mode(&h, NOW + day + 1000), CONNECTION_FULL);
	host_confused(&h, CONNECTION_NO_CHUNKING, NULL, "mx.test", NOW + 2 * day);
	assert_int_equal(host_mode(&h, NOW + 2 * day), CONNECTION_NO_CHUNKING);
}

static void the_fewest_messages_that_a_connection_took_are_believed_for_a_day(void **state)
{
	(void)state;
	const int64_t day = 24 * 60 * (int64_t)MINUTE;
	assert_int_equal(host_messages_most(&h, NOW), 0);
	host_takes_messages(&h, 20, NOW);
	host_takes_messages(&h, 30, NOW);
	assert_int_equal(host_messages_most(&h, NOW), 20);
	host_takes_messages(&h, 10, NOW);
	assert_int_equal(host_messages_most(&h, NOW + day - 1), 10);
	assert_int_equal(host_messages_most(&h, NOW + day), 0);
	host_takes_messages(&h, 50, NOW + day);
	assert_int_equal(host_messages_most(&h, NOW + day), 50);
}

static void its_failure_is_told_by_the_name_that_who_asks_has_for_it(void **state)
{
	(void)state;
	struct verdict *why = verdict_new(VERDICT_DEFERRED, 0, "4.4.1", "mx.a.test[192.0.2.1]:25",
					  "mx.a.test[192.0.2.1]:25 refused, mx.a.test too");
	host_failed(&h, why, "mx.a.test", h.era, NOW, MOST);
	struct verdict *same = host_why(&h, "mx.a.test"), *other = host_why(&h, "mail.b.test");
	assert_ptr_equal(same, why);
	assert_string_equal(other->host, "mail.b.test[192.0.2.1]:25");
	assert_string_equal(other->text, "mail.b.test[192.0.2.1]:25 refused, mx.a.test too");
	assert_int_equal(other->class, VERDICT_DEFERRED);
	assert_string_equal(other->dsn, "4.4.1");
	assert_true(other->when_ms == why->when_ms);
	verdict_unref(same);
	verdict_unref(other);
	verdict_unref(why);
}

static void a_verdict_without_a_name_is_left_as_it_is(void **state)
{
	(void)state;
	struct verdict *v = verdict_new(VERDICT_FAILED, 550, "5.1.1", "[192.0.2.1]:25", "no [x]");
	struct verdict *other = host_called(v, "", "mx.test"), *none = host_called(v, NULL, "x");
	assert_ptr_equal(other, v);
	assert_ptr_equal(none, v);
	verdict_unref(none);
	verdict_unref(other);
	verdict_unref(v);
}

static void it_is_stale_when_nobody_uses_it_and_all_that_is_known_is_old(void **state)
{
	(void)state;
	const int64_t hour = 60 * MINUTE;
	h.opened_ms = NOW;
	assert_false(host_stale(&h, NOW + hour));
	assert_true(host_stale(&h, NOW + hour + 1));
	h.refs = 1;
	assert_false(host_stale(&h, NOW + hour + 1));
	h.refs = 0;
	host_set_plain(&h, "a.test", NOW + 2 * hour);
	assert_false(host_stale(&h, NOW + 2 * hour));
	assert_true(host_stale(&h, NOW + 2 * hour + 1));
	turn_away(2, NOW + 3 * hour);
	assert_false(host_stale(&h, NOW + 3 * hour + 1000));
	assert_true(host_stale(&h, NOW + 3 * hour + 1001));
	h.ready = h.connections = 0;
	goes_out(NOW + 4 * hour);
	assert_false(host_stale(&h, NOW + 5 * hour));
	assert_true(host_stale(&h, NOW + 5 * hour + 1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_host_is_up_until_it_fails),
		TEST(it_is_out_for_a_second_at_first),
		TEST(that_doubles_about_with_each_failure_up_to_its_bound),
		TEST(one_that_is_out_at_even_intervals_is_met_between_them),
		TEST(a_lower_bound_holds_at_once),
		TEST(while_it_is_probed_no_other_probe_is_due),
		TEST(only_the_failure_that_puts_it_out_is_news),
		TEST(connections_that_fail_together_are_one_failure),
		TEST(a_latecomer_of_those_says_nothing_about_the_probe),
		TEST(the_first_connection_that_is_ready_ends_it),
		TEST(after_a_probe_without_an_answer_another_is_due_in_a_second),
		TEST(the_operator_may_have_it_probed_at_once),
		TEST(a_suspended_host_is_out_and_is_not_probed),
		TEST(what_turns_connections_away_while_it_serves_some_is_not_out),
		TEST(at_its_limit_it_has_no_room_for_a_while),
		TEST(who_did_not_answer_in_time_has_turned_away_only_when_it_happens_again),
		TEST(those_that_hang_one_after_the_other_are_not_each_the_first),
		TEST(the_configured_limit_holds_beside_its_own),
		TEST(as_long_as_the_answer_is_the_same_it_is_tried_less_often),
		TEST(those_begun_before_the_limit_was_known_do_not_count),
		TEST(a_host_that_takes_fewer_than_before_has_a_lower_limit),
		TEST(one_that_takes_more_is_asked_for_yet_another_at_once),
		TEST(a_host_serves_that_has_connections_or_ended_one_well_just_now),
		TEST(broken_tls_under_one_name_says_nothing_about_another),
		TEST(of_the_names_with_broken_tls_that_which_ends_first_makes_room),
		TEST(what_is_forgotten_was_never_tried),
		TEST(what_is_forgotten_is_half_of_no_new_lesson),
		TEST(only_a_refused_password_waits_for_as_long_as_a_host_may),
		TEST(simpler_modes_add_up_and_hold_for_a_day_since_the_last),
		TEST(the_fewest_messages_that_a_connection_took_are_believed_for_a_day),
		TEST(its_failure_is_told_by_the_name_that_who_asks_has_for_it),
		TEST(a_verdict_without_a_name_is_left_as_it_is),
		TEST(it_is_stale_when_nobody_uses_it_and_all_that_is_known_is_old),
	};
	return RUN(tests);
}
