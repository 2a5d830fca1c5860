/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpd/unit.h"

#include "base/clock.h"
#include "base/condition.h"
#include "base/metrics.h"
#include "smtpd/milter/milter_health.h"

#include <string.h>

static char name[] = "one", address[] = "inet:127.0.0.1:1";
static struct conf_milter filter;

static int setup(void **state)
{
	(void)state;
	filter = (struct conf_milter){.title = name, .address = address};
	milter_health_begin(&filter);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	milter_health_forget(name);
	return 0;
}

static bool is_away(void)
{
	struct milter_health h;
	struct conditions c;
	milter_health_take(name, &h);
	conditions_take(&c);
	bool away = h.away;
	assert_int_equal(c.n, away);
	assert_int_equal(metric_cell_value(metric_cell(FAMILY_milter_up, name, NULL)), !away);
	milter_health_fini(&h);
	conditions_fini(&c);
	return away;
}

static void one_that_was_not_reached_is_back_when_it_negotiates(void **state)
{
	(void)state;
	assert_false(is_away());
	milter_health_broke(&filter, MILTER_UNREACHED, "refused");
	assert_true(is_away());
	milter_health_negotiated(&filter, clock_steady_ms() + 1);
	assert_false(is_away());
}

/* By a thread that had failed to reach it, and leaves it alone for some time. */
static void a_sign_of_life_to_one_thread_is_seen_by_the_others(void **state)
{
	(void)state;
	int64_t failed_ms = clock_steady_ms();
	milter_health_broke(&filter, MILTER_UNREACHED, "refused");
	assert_false(milter_health_seen_since(name, failed_ms));
	assert_false(milter_health_seen_since("another", failed_ms));
	while (clock_steady_ms() == failed_ms)
		;
	milter_health_negotiated(&filter, clock_steady_ms());
	assert_true(milter_health_seen_since(name, failed_ms));
	assert_false(milter_health_seen_since(name, clock_steady_ms()));
}

static void a_failure_since_it_was_asked_is_newer_than_its_answer(void **state)
{
	(void)state;
	int64_t asked_ms = clock_steady_ms();
	milter_health_broke(&filter, MILTER_UNREACHED, "refused");
	milter_health_negotiated(&filter, asked_ms);
	assert_true(is_away());
	milter_health_negotiated(&filter, clock_steady_ms() + 1);
	assert_false(is_away());
}

static void one_that_failed_a_message_is_back_when_one_has_passed(void **state)
{
	(void)state;
	milter_health_broke(&filter, MILTER_MESSAGE_FAULT, "it does not answer");
	milter_health_negotiated(&filter, clock_steady_ms() + 1);
	assert_true(is_away());
	milter_health_passed(&filter);
	assert_false(is_away());
}

static void one_that_died_and_was_started_again_is_back(void **state)
{
	(void)state;
	milter_health_broke(&filter, MILTER_MESSAGE_FAULT, "it has closed the connection");
	milter_health_broke(&filter, MILTER_UNREACHED, "refused");
	milter_health_negotiated(&filter, clock_steady_ms() + 1);
	assert_false(is_away());
}

static void what_becomes_of_mail_is_what_the_settings_say(void **state)
{
	(void)state;
	static const enum condition of[] = {[MILTER_DEFAULT_TEMPFAIL] = CONDITION_filter_defers,
					    [MILTER_DEFAULT_ACCEPT] = CONDITION_filter_passes,
					    [MILTER_DEFAULT_REJECT] = CONDITION_filter_rejects,
					    [MILTER_DEFAULT_QUARANTINE] = CONDITION_filter_holds};
	for (int i = 0; i < 4; i++) {
		struct conditions c;
		filter.default_action = i;
		milter_health_broke(&filter, MILTER_UNREACHED, "refused");
		conditions_take(&c);
		assert_int_equal(c.n, 1);
		assert_int_equal(c.row[0].is, of[i]);
		conditions_fini(&c);
	}
}

static void a_session_that_knows_it_still_tells_nothing_of_one_that_is_gone(void **state)
{
	(void)state;
	struct conditions c;
	milter_health_forget(name);
	milter_health_broke(&filter, MILTER_MESSAGE_FAULT, "late");
	milter_health_passed(&filter);
	conditions_take(&c);
	assert_int_equal(c.n, 0);
	assert_true(metric_cell_value(metric_cell(FAMILY_milter_up, name, NULL)) == METRIC_GONE);
	conditions_fini(&c);
}

static void answers_are_counted_by_kind_with_their_times(void **state)
{
	(void)state;
	struct milter_health h;
	milter_health_answered(name, MILTER_ANSWER_CONTINUE, NULL, 1000);
	milter_health_answered(name, MILTER_ANSWER_REPLY, "451 4.7.1 later\r\n", 3000);
	milter_health_answered(name, MILTER_ANSWER_REPLY, "550 5.7.1 no\r\n", 2000);
	milter_health_take(name, &h);
	assert_int_equal(h.answers, 3);
	assert_int_equal(h.answer_us, 6000);
	assert_int_equal(h.longest_us, 3000);
	const char *const kinds[] = {"continue", "tempfail", "reject"};
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			metric_cell_value(metric_cell(FAMILY_milter_answers, name, kinds[i])), 1);
	milter_health_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
		T(a_sign_of_life_to_one_thread_is_seen_by_the_others),
		T(one_that_was_not_reached_is_back_when_it_negotiates),
		T(a_failure_since_it_was_asked_is_newer_than_its_answer),
		T(one_that_failed_a_message_is_back_when_one_has_passed),
		T(one_that_died_and_was_started_again_is_back),
		T(what_becomes_of_mail_is_what_the_settings_say),
		T(a_session_that_knows_it_still_tells_nothing_of_one_that_is_gone),
		T(answers_are_counted_by_kind_with_their_times),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
