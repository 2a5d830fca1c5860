/* SPDX-License-Identifier: ISC */
/* Mail that waits in memory for its turn, behind a rate or a slow host, has its age all the same. */
#include "tests/unit/qmgr/world.h"

#include "qmgr/dest/destdb.h"
#include "qmgr/message.h"

enum { MINUTE = 60000, HOUR = 60 * MINUTE };

/* One delivery in twelve hours, and one connection. */
#define SLOW                                                                                       \
	"transport smtp { destination_concurrency_limit = 1 connection_max_age = 0 "               \
	"connection_idle_timeout = 1d } flow here.test { rate = 2/d }\n"

/* The first has the only turn that there is. */
static void send_first(const char *settings)
{
	char text[400];
	snprintf(text, sizeof text, SLOW "%s", settings);
	begin(text);
	send_mail(1, "x@a.test");
	answer("a.test", one_host);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
	is_released(1);
}

static struct envelope *aged(uint64_t id, int64_t ms)
{
	struct envelope *e = mail(id, "sender@here.test", "x@a.test");
	e->arrived_ms -= ms;
	e->rounds = 1;
	return e;
}

static void is_given_up(uint64_t id, const char *dsn)
{
	struct spool_store *s = next_told(SPOOL_STORE);
	const struct message *m = s->owner;
	assert_string_equal(m->work.envelope->rcpt[0].last->dsn, dsn);
	stored(s, true);
	is_delivered(id, 1, VERDICT_FAILED);
	is_released(id);
}

static void its_sender_is_told_once_and_it_waits_on(void **state)
{
	(void)state;
	send_first("queue { delay_warning_time = 2h }");
	send_mail(2, "x@a.test");
	pass_time(2 * HOUR - 1);
	assert_int_equal(told.n, 0);
	pass_time(1);
	stored(next_told(SPOOL_STORE), true);
	struct envelope *e = is_kept(2);
	assert_true(e->warned);
	assert_int_equal(e->rcpt[0].tries, 0);
	assert_true(e->due_ms == clock_wall_ms()); /* out of the order for its report only */
	arrive(e);
	answer("a.test", one_host);
	pass_time(9 * HOUR);
	assert_int_equal(told.n, 0);
	assert_int_equal(q->sched.nactive, 1);
}

/* So many may be owed at once that most go beyond the rate of reports: their turns must not wait for it. */
static void where_the_sender_cannot_be_told_it_waits_on_all_the_same(void **state)
{
	(void)state;
	send_first("queue { delay_warning_time = 2h maximal_backoff_time = 1h }");
	send_mail(2, "x@a.test");
	pass_time(2 * HOUR - 1);
	pass_time(1);
	stored(next_told(SPOOL_STORE), false);
	struct envelope *e = is_kept(2);
	assert_false(e->warned);
	assert_true(e->due_ms == clock_wall_ms());
	arrive(e);
	answer("a.test", one_host);
	pass_time(HOUR - 1);
	assert_int_equal(told.n, 0);
	pass_time(1);
	stored(next_told(SPOOL_STORE), true);
	e = is_kept(2);
	assert_true(e->warned);
	envelope_free(&e);
}

static void at_the_end_of_its_lifetime_it_is_returned(void **state)
{
	(void)state;
	send_first("queue { maximal_queue_lifetime = 3h }");
	send_mail(2, "x@a.test");
	pass_time(3 * HOUR - 1);
	assert_int_equal(told.n, 0);
	pass_time(1);
	is_given_up(2, "4.4.7");
}

static void what_is_taken_up_at_its_end_has_time_for_one_more_attempt(void **state)
{
	(void)state;
	send_first("queue { maximal_queue_lifetime = 3h maximal_backoff_time = 1h }");
	arrive(aged(2, 3 * HOUR));
	pass_time(HOUR - 1);
	assert_int_equal(told.n, 0);
	pass_time(1);
	is_given_up(2, "4.4.7");
}

/* On hold it would be kept, however old it is. */
static void what_the_operator_wants_back_is_not_returned_on_the_way(void **state)
{
	(void)state;
	send_first("queue { maximal_queue_lifetime = 3h maximal_backoff_time = 1h }");
	arrive(aged(2, 3 * HOUR));
	pass_time(HOUR / 2);
	want_back(2);
	struct envelope *e = is_kept(2);
	assert_null(e->rcpt[0].last);
	assert_int_equal(told.n, 0);
	envelope_free(&e);
}

/* No host has said so, nor was that an attempt. */
static void what_is_given_up_cites_the_last_attempt_and_keeps_its_time(void **state)
{
	(void)state;
	send_first("queue { maximal_queue_lifetime = 3h maximal_backoff_time = 1h }");
	struct envelope *e = aged(2, 3 * HOUR);
	int64_t tried_ms = clock_wall_ms() - MINUTE;
	e->rcpt[0].last = verdict_at(VERDICT_DEFERRED, 451, "4.2.1", "mx.a.test[192.0.2.1]:25",
				     "4.2.1 later", tried_ms);
	arrive(e);
	pass_time(HOUR);
	struct spool_store *s = next_told(SPOOL_STORE);
	const struct message *m = s->owner;
	const struct verdict *v = m->work.envelope->rcpt[0].last;
	assert_string_equal(v->text, "delivery time expired; last attempt: 451 4.2.1 later");
	assert_string_equal(v->host, "mx.a.test[192.0.2.1]:25");
	assert_int_equal(v->code, 0);
	assert_true(v->when_ms == tried_ms);
	stored(s, true);
	is_delivered(2, 1, VERDICT_FAILED);
	is_released(2);
}

static void a_lifetime_of_none_is_over_after_the_first_attempt_whenever_that_is(void **state)
{
	(void)state;
	names_stay = true;
	send_first("queue { maximal_queue_lifetime = 0s }");
	send_mail(2, "x@a.test");
	pass_time(11 * HOUR);
	assert_int_equal(told.n, 0);
	pass_time(HOUR);
	done(given_at(0), VERDICT_DEFERRED);
	is_given_up(2, "4.4.7");
}

/* A delivery is not cut off, and what it has put off waits for its next attempt as ever. */
static void what_is_under_way_is_tried_again_at_its_own_time(void **state)
{
	(void)state;
	begin("queue { delay_warning_time = 2h minimal_backoff_time = 10m }");
	send_mail(2, "x@a.test");
	answer("a.test", one_host);
	ready(open_at(0), 1);
	pass_time(3 * HOUR);
	assert_int_equal(told.n, 0);
	done(given_at(0), VERDICT_DEFERRED);
	stored(next_told(SPOOL_STORE), true);
	struct envelope *e = is_kept(2);
	assert_true(e->warned && e->due_ms > clock_wall_ms() + 5 * MINUTE);
	envelope_free(&e);
}

/* One report a day to one address: the first message has it. */
static void begin_told(const char *to)
{
	begin("queue { delay_warning_time = 2h minimal_backoff_time = 10m maximal_backoff_time = "
	      "10m "
	      "bounce_address_rate = 1/d }");
	arrive(aged(1, 3 * HOUR));
	answer("a.test", one_host);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_DEFERRED);
	stored(next_told(SPOOL_STORE), true);
	struct envelope *e = is_kept(1);
	envelope_free(&e);
	e = aged(2, 3 * HOUR);
	if (to)
		envelope_add(e, to);
	arrive(e);
}

/* Mail that its host would take by now waited a day for word of its delay. */
static void the_next_attempt_waits_for_no_word_of_a_delay(void **state)
{
	(void)state;
	begin_told(NULL);
	done(given_at(0), VERDICT_DEFERRED);
	struct envelope *e = is_kept(2);
	assert_false(e->warned);
	assert_true(e->due_ms < clock_wall_ms() + 12 * MINUTE);
	envelope_free(&e);
}

static void the_next_attempt_waits_for_no_report_of_another_recipient(void **state)
{
	(void)state;
	begin_told("y@none.test");
	no_answer("none.test", VERDICT_FAILED, "5.1.2");
	done(given_at(0), VERDICT_DEFERRED);
	struct envelope *e = is_kept(2);
	assert_false(e->rcpt[1].done);
	assert_true(e->due_ms < clock_wall_ms() + 12 * MINUTE);
	e->rcpt[0].done = true; /* delivered since */
	arrive(e);
	e = is_kept(2);
	assert_true(e->due_ms > clock_wall_ms() + 12 * HOUR);
	envelope_free(&e);
}

static void nobody_is_told_where_there_is_no_sender(void **state)
{
	(void)state;
	begin("transport smtp { destination_concurrency_limit = 1 } flow \"<>\" { rate = 1/d }"
	      "queue { delay_warning_time = 2h }");
	arrive(mail(1, "", "x@a.test"));
	answer("a.test", one_host);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
	is_released(1);
	arrive(mail(2, "", "x@a.test"));
	pass_time(3 * HOUR);
	assert_int_equal(told.n, 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(its_sender_is_told_once_and_it_waits_on),
		TEST(where_the_sender_cannot_be_told_it_waits_on_all_the_same),
		TEST(at_the_end_of_its_lifetime_it_is_returned),
		TEST(what_is_taken_up_at_its_end_has_time_for_one_more_attempt),
		TEST(what_the_operator_wants_back_is_not_returned_on_the_way),
		TEST(what_is_given_up_cites_the_last_attempt_and_keeps_its_time),
		TEST(a_lifetime_of_none_is_over_after_the_first_attempt_whenever_that_is),
		TEST(what_is_under_way_is_tried_again_at_its_own_time),
		TEST(the_next_attempt_waits_for_no_word_of_a_delay),
		TEST(the_next_attempt_waits_for_no_report_of_another_recipient),
		TEST(nobody_is_told_where_there_is_no_sender),
	};
	return RUN(tests);
}
