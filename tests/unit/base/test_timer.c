/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/timer.h"

#include <stdlib.h>

static struct timers heap;
static int64_t last_due;
static int expired;

struct waiter {
	struct timer timer;
	struct timer *stops; /* another, when this one expires */
	bool again;
};

static void on_expired(void *owner)
{
	struct waiter *w = owner;
	assert_true(w->timer.due_ms >= last_due);
	assert_false(timer_active(&w->timer));
	last_due = w->timer.due_ms;
	expired++;
	if (w->stops)
		timer_stop(&heap, w->stops);
	if (w->again)
		timer_start(&heap, &w->timer, w->timer.due_ms);
}

static int start(void **state)
{
	(void)state;
	timers_init(&heap);
	last_due = 0;
	expired = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	timers_fini(&heap);
	return 0;
}

static void a_thousand_timers_expire_in_order(void **state)
{
	(void)state;
	enum { N = 1000 };
	static struct waiter w[N];
	srand(1);
	for (int i = 0; i < N; i++) {
		timer_init(&w[i].timer, on_expired, &w[i]);
		timer_start(&heap, &w[i].timer, rand() % 500);
	}
	for (int i = 0; i < N; i += 3)
		timer_start(&heap, &w[i].timer, rand() % 500);
	for (int i = 0; i < N; i += 7)
		timer_stop(&heap, &w[i].timer);
	for (int64_t now = 0; now <= 500; now += 10) {
		timers_run(&heap, now);
		assert_true(timers_next(&heap) > now);
	}
	assert_int_equal(expired, N - (N + 6) / 7);
	assert_true(timers_next(&heap) == INT64_MAX);
}

static void an_expired_timer_may_stop_one_that_is_due_as_well(void **state)
{
	(void)state;
	struct waiter a = {0}, b = {0};
	timer_init(&a.timer, on_expired, &a);
	timer_init(&b.timer, on_expired, &b);
	a.stops = &b.timer;
	timer_start(&heap, &a.timer, 1);
	timer_start(&heap, &b.timer, 2);
	timers_run(&heap, 5);
	assert_int_equal(expired, 1);
}

static void a_timer_that_starts_itself_at_once_does_not_hold_the_thread(void **state)
{
	(void)state;
	struct waiter a = {.again = true};
	timer_init(&a.timer, on_expired, &a);
	timer_start(&heap, &a.timer, 1);
	timers_run(&heap, 5);
	assert_int_equal(expired, 1);
	assert_int_equal(timers_next(&heap), 1);
	timer_stop(&heap, &a.timer);
}

static void stopping_what_never_started_is_harmless(void **state)
{
	(void)state;
	struct waiter a = {0};
	timer_init(&a.timer, on_expired, &a);
	timer_stop(&heap, &a.timer);
	assert_false(timer_active(&a.timer));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_thousand_timers_expire_in_order, start, end),
		cmocka_unit_test_setup_teardown(an_expired_timer_may_stop_one_that_is_due_as_well,
						start, end),
		cmocka_unit_test_setup_teardown(
			a_timer_that_starts_itself_at_once_does_not_hold_the_thread, start, end),
		cmocka_unit_test_setup_teardown(stopping_what_never_started_is_harmless, start,
						end),
	};
	return RUN(tests);
}
