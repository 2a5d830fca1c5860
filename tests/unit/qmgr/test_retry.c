/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/unit.h"

#include "qmgr/retry.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE };

static const int64_t arrived = INT64_C(1700000000000);

static struct conf_queue queue = {.minimal_backoff_time = 5 * MINUTE,
				  .maximal_backoff_time = 66 * MINUTE,
				  .maximal_queue_lifetime = 100 * HOUR,
				  .bounce_queue_lifetime = 50 * HOUR,
				  .jitter = 0.1};
static struct envelope mail = {.arrived_ms = arrived, .sender = (char *)"a@sender.test"};
static struct envelope bounce = {.arrived_ms = arrived, .sender = (char *)""};

#define TERMS(q) (&(struct retry_terms){.queue = &(q)})

/* Chance 0.5 is the middle: neither earlier nor later. */
static int64_t delay(const struct conf_queue *q, const struct envelope *e, int64_t age)
{
	return retry_due_ms(&(struct retry_terms){.queue = q}, e, arrived + age, 0.5) -
	       (arrived + age);
}

static void a_young_message_waits_for_the_minimal_backoff_time(void **state)
{
	(void)state;
	assert_int_equal(delay(&queue, &mail, 0), 5 * MINUTE);
	assert_int_equal(delay(&queue, &mail, 4 * MINUTE), 5 * MINUTE);
}

static void a_message_waits_for_as_long_as_it_is_old(void **state)
{
	(void)state;
	assert_int_equal(delay(&queue, &mail, 17 * MINUTE), 17 * MINUTE);
}

/* Three recipients: one that is done, and of two others the latest verdicts. */
static int64_t delay_by(const struct conf_queue *q, int64_t age, const char *dsn, const char *host)
{
	struct recipient to[] = {
		{.done = true, .last = verdict_new(VERDICT_SENT, 250, NULL, "mx.test", "ok")},
		{.last = verdict_new(VERDICT_DEFERRED, 451, "4.4.3", NULL, "no answer")},
		{.last = verdict_new(VERDICT_DEFERRED, 451, dsn, host, "no answer")}};
	struct envelope e = mail;
	e.rcpt = to;
	e.nrcpt = 3;
	int64_t is = delay(q, &e, age);
	for (int i = 0; i < 3; i++)
		verdict_unref(to[i].last);
	return is;
}

static void what_only_lacks_an_answer_of_the_dns_is_tried_soon(void **state)
{
	(void)state;
	assert_int_equal(delay_by(&queue, SECOND, "4.4.3", NULL), RETRY_NAMES_MS);
	assert_int_equal(delay_by(&queue, 40 * SECOND, "4.4.3", NULL), 40 * SECOND);
	assert_int_equal(delay_by(&queue, 20 * MINUTE, "4.4.3", NULL), 20 * MINUTE);
	assert_int_equal(delay_by(&queue, 20 * HOUR, "4.4.3", NULL), 66 * MINUTE);
}

static void what_a_host_has_put_off_is_not_tried_soon(void **state)
{
	(void)state;
	assert_int_equal(delay_by(&queue, SECOND, "4.4.3", "mx.test[192.0.2.1]:25"), 5 * MINUTE);
	assert_int_equal(delay_by(&queue, SECOND, "4.4.1", NULL), 5 * MINUTE);
}

static void a_shorter_backoff_time_holds_for_the_dns_too(void **state)
{
	struct conf_queue q = queue;
	(void)state;
	q.minimal_backoff_time = 200;
	assert_int_equal(delay_by(&q, 0, "4.4.3", NULL), 200);
}

static void an_old_message_waits_for_the_maximal_backoff_time(void **state)
{
	(void)state;
	assert_int_equal(delay(&queue, &mail, 67 * MINUTE), 66 * MINUTE);
	assert_int_equal(delay(&queue, &mail, 20 * HOUR), 66 * MINUTE);
}

static void a_message_from_the_future_is_young(void **state)
{
	(void)state;
	assert_int_equal(delay(&queue, &mail, -3 * HOUR), 5 * MINUTE);
}

static void chance_brings_it_forward_or_back_by_the_jitter(void **state)
{
	(void)state;
	int64_t now = arrived + 20 * MINUTE;
	assert_int_equal(retry_due_ms(TERMS(queue), &mail, now, 0) - now, 18 * MINUTE);
	int64_t most = retry_due_ms(TERMS(queue), &mail, now, 0.9999999) - now;
	assert_in_range(most, 22 * MINUTE - 10, 22 * MINUTE);
}

static void the_next_attempt_is_always_later_than_now(void **state)
{
	(void)state;
	struct conf_queue q = queue;
	q.minimal_backoff_time = q.maximal_backoff_time = 1;
	q.jitter = 0.5;
	assert_true(retry_due_ms(TERMS(q), &mail, arrived, 0) > arrived);
}

static void it_is_not_later_than_the_end_of_the_lifetime(void **state)
{
	(void)state;
	int64_t age = 100 * HOUR - MINUTE;
	assert_int_equal(delay(&queue, &mail, age), MINUTE);
}

static void a_bounce_has_a_lifetime_of_its_own(void **state)
{
	(void)state;
	assert_int_equal(delay(&queue, &bounce, 50 * HOUR - MINUTE), MINUTE);
	assert_int_equal(delay(&queue, &mail, 50 * HOUR - MINUTE), 66 * MINUTE);
	assert_true(retry_expired(TERMS(queue), &bounce, arrived + 50 * HOUR));
	assert_false(retry_expired(TERMS(queue), &mail, arrived + 50 * HOUR));
}

static void a_message_expires_when_its_lifetime_is_over(void **state)
{
	(void)state;
	assert_false(retry_expired(TERMS(queue), &mail, arrived + 100 * HOUR - 1));
	assert_true(retry_expired(TERMS(queue), &mail, arrived + 100 * HOUR));
}

static void without_a_lifetime_it_expires_at_its_first_attempt(void **state)
{
	(void)state;
	struct conf_queue q = queue;
	q.maximal_queue_lifetime = 0;
	assert_true(retry_expired(TERMS(q), &mail, arrived));
}

static void a_warning_is_due_at_its_time(void **state)
{
	(void)state;
	struct conf_queue q = queue;
	q.delay_warning_time = 30 * MINUTE;
	assert_false(retry_warning_due(TERMS(q), &mail, arrived + 30 * MINUTE - 1));
	assert_true(retry_warning_due(TERMS(q), &mail, arrived + 30 * MINUTE));
	assert_int_equal(delay(&q, &mail, 29 * MINUTE), MINUTE);
	assert_int_equal(delay(&q, &mail, 31 * MINUTE), 31 * MINUTE);
}

static void nobody_is_warned_twice(void **state)
{
	(void)state;
	struct conf_queue q = queue;
	q.delay_warning_time = 30 * MINUTE;
	struct envelope warned = mail;
	warned.warned = true;
	assert_false(retry_warning_due(TERMS(q), &warned, arrived + HOUR));
	assert_int_equal(delay(&q, &warned, 29 * MINUTE), 29 * MINUTE);
}

static void the_null_sender_is_not_warned(void **state)
{
	(void)state;
	struct conf_queue q = queue;
	q.delay_warning_time = 30 * MINUTE;
	assert_false(retry_warning_due(TERMS(q), &bounce, arrived + HOUR));
	assert_int_equal(delay(&q, &mail, 29 * MINUTE), MINUTE);
	assert_int_equal(delay(&q, &bounce, 29 * MINUTE), 29 * MINUTE);
}

static void no_warning_time_means_no_warning(void **state)
{
	(void)state;
	assert_false(retry_warning_due(TERMS(queue), &mail, arrived + 99 * HOUR));
}

static void a_flow_s_lifetime_ends_mail_earlier_and_is_never_overshot(void **state)
{
	(void)state;
	const struct retry_terms short_lived = {.queue = &queue, .lifetime = 10 * MINUTE};
	assert_int_equal(retry_due_ms(&short_lived, &mail, arrived + 8 * MINUTE, 0.5),
			 arrived + 10 * MINUTE);
	assert_int_equal(retry_end_ms(&short_lived, &mail), arrived + 10 * MINUTE);
	assert_int_equal(retry_ended(&short_lived, &mail, arrived + 10 * MINUTE - 1),
			 RETRY_GOES_ON);
	assert_int_equal(retry_ended(&short_lived, &mail, arrived + 10 * MINUTE), RETRY_LIFETIME);
}

static void a_flow_s_lifetime_makes_no_message_live_longer(void **state)
{
	(void)state;
	const struct retry_terms long_lived = {.queue = &queue, .lifetime = 200 * HOUR};
	assert_int_equal(retry_due_ms(&long_lived, &mail, arrived + 100 * HOUR - MINUTE, 0.5),
			 arrived + 100 * HOUR);
	assert_true(retry_expired(&long_lived, &mail, arrived + 100 * HOUR));
}

static void mail_that_is_to_be_returned_by_a_time_ends_then(void **state)
{
	(void)state;
	struct envelope timed = mail;
	const struct retry_terms terms = {.queue = &queue, .lifetime = 10 * MINUTE};
	timed.by = ENVELOPE_BY_RETURN;
	timed.by_ms = arrived + 7 * MINUTE;
	assert_int_equal(retry_due_ms(&terms, &timed, arrived + 5 * MINUTE, 0.5), timed.by_ms);
	assert_int_equal(retry_ended(&terms, &timed, timed.by_ms - 1), RETRY_GOES_ON);
	assert_int_equal(retry_ended(&terms, &timed, timed.by_ms), RETRY_BY);
	timed.by_ms = arrived + 11 * MINUTE;
	assert_int_equal(retry_ended(&terms, &timed, arrived + 12 * MINUTE), RETRY_LIFETIME);
}

static void mail_whose_sender_is_to_be_told_by_a_time_goes_on(void **state)
{
	(void)state;
	struct envelope timed = mail;
	timed.by = ENVELOPE_BY_NOTIFY;
	timed.by_ms = arrived + 7 * MINUTE;
	assert_int_equal(delay(&queue, &timed, 5 * MINUTE), 2 * MINUTE);
	assert_int_equal(retry_ended(TERMS(queue), &timed, timed.by_ms + HOUR), RETRY_GOES_ON);
	assert_false(retry_warning_due(TERMS(queue), &timed, timed.by_ms - 1));
	assert_true(retry_warning_due(TERMS(queue), &timed, timed.by_ms));
	timed.by |= ENVELOPE_BY_TOLD;
	assert_false(retry_warning_due(TERMS(queue), &timed, timed.by_ms + HOUR));
}

static void mail_that_was_to_be_sent_later_is_young_then(void **state)
{
	(void)state;
	struct envelope later = mail;
	struct conf_queue warns = queue;
	const struct retry_terms terms = {.queue = &warns, .lifetime = 10 * MINUTE};
	later.not_before_ms = arrived + 400 * HOUR;
	warns.delay_warning_time = HOUR;
	assert_false(retry_expired(&terms, &later, later.not_before_ms));
	assert_int_equal(retry_end_ms(&terms, &later), later.not_before_ms + 10 * MINUTE);
	assert_false(retry_warning_due(&terms, &later, later.not_before_ms + HOUR - 1));
	assert_true(retry_warning_due(&terms, &later, later.not_before_ms + HOUR));
	assert_true(retry_expired(&terms, &later, later.not_before_ms + 100 * HOUR));
	assert_int_equal(retry_due_ms(TERMS(queue), &later, later.not_before_ms, 0.5),
			 later.not_before_ms + queue.minimal_backoff_time);
}

static void mail_waits_for_its_turn_until_it_is_told_of_or_ends(void **state)
{
	(void)state;
	struct conf_queue warns = queue;
	struct envelope warned = mail, timed = mail;
	const int64_t late = arrived + 200 * HOUR;
	warned.warned = true;
	assert_int_equal(retry_wait_ms(TERMS(queue), &mail, arrived, false), arrived + 100 * HOUR);
	assert_int_equal(retry_wait_ms(TERMS(queue), &mail, late, false), late + 66 * MINUTE);
	assert_int_equal(retry_wait_ms(TERMS(queue), &bounce, arrived, false), arrived + 50 * HOUR);
	warns.delay_warning_time = 4 * HOUR;
	assert_int_equal(retry_wait_ms(TERMS(warns), &mail, arrived, false), arrived + 4 * HOUR);
	assert_int_equal(retry_wait_ms(TERMS(warns), &warned, arrived, false),
			 arrived + 100 * HOUR);
	assert_int_equal(retry_wait_ms(TERMS(warns), &bounce, arrived, false), arrived + 50 * HOUR);
	timed.by = ENVELOPE_BY_NOTIFY;
	timed.by_ms = arrived + MINUTE;
	assert_int_equal(retry_wait_ms(TERMS(warns), &timed, arrived, false), arrived + MINUTE);
	timed.by_ms = arrived - MINUTE; /* with the first attempt that fails */
	assert_int_equal(retry_wait_ms(TERMS(warns), &timed, arrived, false), arrived + 4 * HOUR);
	warned.by = ENVELOPE_BY_RETURN;
	warned.by_ms = arrived - MINUTE;
	assert_int_equal(retry_wait_ms(TERMS(warns), &warned, late, false), warned.by_ms);
	warns.delay_warning_time = warns.maximal_queue_lifetime = 0;
	assert_int_equal(retry_wait_ms(TERMS(warns), &mail, arrived, false), INT64_MAX);
}

static void where_places_are_scarce_what_is_late_makes_room_for_others(void **state)
{
	(void)state;
	struct conf_queue warns = queue;
	struct envelope warned = mail, timed = mail;
	const int64_t end = arrived + 100 * HOUR, word = arrived + 4 * HOUR;
	warned.warned = true;
	warns.delay_warning_time = 4 * HOUR;
	assert_int_equal(retry_wait_ms(TERMS(queue), &mail, end, true), end + 10 * SECOND);
	assert_int_equal(retry_wait_ms(TERMS(warns), &mail, word + HOUR, true),
			 word + HOUR + SECOND);
	assert_int_equal(retry_wait_ms(TERMS(warns), &warned, word + HOUR, true), end);
	assert_int_equal(retry_wait_ms(TERMS(warns), &mail, word - 1, true), word - 1 + SECOND);
	timed.by = ENVELOPE_BY_NOTIFY;
	timed.by_ms = arrived + MINUTE;
	assert_int_equal(retry_wait_ms(TERMS(queue), &timed, arrived + HOUR, true),
			 arrived + HOUR + SECOND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_young_message_waits_for_the_minimal_backoff_time),
		cmocka_unit_test(mail_that_was_to_be_sent_later_is_young_then),
		cmocka_unit_test(a_message_waits_for_as_long_as_it_is_old),
		cmocka_unit_test(what_only_lacks_an_answer_of_the_dns_is_tried_soon),
		cmocka_unit_test(what_a_host_has_put_off_is_not_tried_soon),
		cmocka_unit_test(a_shorter_backoff_time_holds_for_the_dns_too),
		cmocka_unit_test(an_old_message_waits_for_the_maximal_backoff_time),
		cmocka_unit_test(a_message_from_the_future_is_young),
		cmocka_unit_test(chance_brings_it_forward_or_back_by_the_jitter),
		cmocka_unit_test(the_next_attempt_is_always_later_than_now),
		cmocka_unit_test(it_is_not_later_than_the_end_of_the_lifetime),
		cmocka_unit_test(a_bounce_has_a_lifetime_of_its_own),
		cmocka_unit_test(a_message_expires_when_its_lifetime_is_over),
		cmocka_unit_test(without_a_lifetime_it_expires_at_its_first_attempt),
		cmocka_unit_test(a_warning_is_due_at_its_time),
		cmocka_unit_test(nobody_is_warned_twice),
		cmocka_unit_test(the_null_sender_is_not_warned),
		cmocka_unit_test(no_warning_time_means_no_warning),
		cmocka_unit_test(a_flow_s_lifetime_ends_mail_earlier_and_is_never_overshot),
		cmocka_unit_test(mail_that_is_to_be_returned_by_a_time_ends_then),
		cmocka_unit_test(mail_whose_sender_is_to_be_told_by_a_time_goes_on),
		cmocka_unit_test(a_flow_s_lifetime_makes_no_message_live_longer),
		cmocka_unit_test(mail_waits_for_its_turn_until_it_is_told_of_or_ends),
		cmocka_unit_test(where_places_are_scarce_what_is_late_makes_room_for_others),
	};
	return RUN(tests);
}
