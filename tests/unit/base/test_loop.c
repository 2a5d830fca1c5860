/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/clock.h"
#include "base/loop.h"

#include <sched.h>
#include <stdlib.h>

static struct loop *l;
static int runs;

static void receive(void *owner, struct note *n)
{
	(void)owner;
	(void)n;
}

static void end_loop(void *owner)
{
	(void)owner;
	runs++;
	ev_break(l->ev, EVBREAK_ALL);
}

static void count(void *owner)
{
	struct timer *t = owner;
	if (++runs < 5)
		loop_timer_in(l, t, 10);
	else
		ev_break(l->ev, EVBREAK_ALL);
}

static int start(void **state)
{
	(void)state;
	runs = 0;
	l = loop_new("test", receive, NULL, NULL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	loop_free(&l);
	return 0;
}

static void a_timer_expires_after_its_time_and_not_before(void **state)
{
	(void)state;
	struct timer t;
	timer_init(&t, end_loop, NULL);
	int64_t before = clock_steady_ms();
	timer_start(&l->timers, &t, before + 50);
	ev_run(l->ev, 0);
	int64_t took = clock_steady_ms() - before;
	assert_true(took >= 50);
	assert_int_equal(runs, 1);
}

static void a_timer_may_start_itself_again(void **state)
{
	(void)state;
	struct timer t;
	timer_init(&t, count, &t);
	loop_timer_in(l, &t, 10);
	ev_run(l->ev, 0);
	assert_int_equal(runs, 5);
}

static void a_loop_s_thread_ends_when_it_is_told_to(void **state)
{
	(void)state;
	loop_start(l);
	loop_stop(l);
	loop_stop(l);
	assert_false(l->running);
}

static struct loop *other;
static bool own_is_ours, others_is_ours;
static atomic_bool looked;

static void look_around(void *owner)
{
	(void)owner;
	others_is_ours = loop_is_ours(other);
	own_is_ours = loop_is_ours(l);
	looked = true;
}

static void a_loop_is_not_touched_in_another_s_thread(void **state)
{
	(void)state;
	struct timer t;
	other = loop_new("other", receive, NULL, NULL);
	timer_init(&t, look_around, NULL);
	assert_true(loop_is_ours(l) && loop_is_ours(other));
	loop_timer_in(l, &t, 0);
	looked = false;
	loop_start(l);
	while (!looked)
		sched_yield();
	loop_stop(l);
	assert_true(own_is_ours);
	assert_false(others_is_ours);
	loop_free(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_timer_expires_after_its_time_and_not_before,
						start, end),
		cmocka_unit_test_setup_teardown(a_timer_may_start_itself_again, start, end),
		cmocka_unit_test_setup_teardown(a_loop_s_thread_ends_when_it_is_told_to, start,
						end),
		cmocka_unit_test_setup_teardown(a_loop_is_not_touched_in_another_s_thread, start,
						end),
	};
	return RUN(tests);
}
