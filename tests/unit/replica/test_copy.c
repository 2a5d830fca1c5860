/* SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replica/copy.h"
#include "replica/flight.h"
#include "replica/copy_orders.h"

static struct copies all;

static struct copy *file(uint64_t of, enum copy_class class, uint64_t end)
{
	struct copy_key key = {.of = of, .large = class == COPY_LARGE};
	struct copy *f = copies_add(&all, key, class);
	copy_is(&all, f, end, 0, 0);
	return f;
}

static void clear_all(void)
{
	while (copies_clear(&all))
		;
}

static int setup(void **state)
{
	(void)state;
	copies_init(&all);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	copies_fini(&all);
	assert_int_equal(copies_lag(&all), 0);
	return 0;
}

static void large_files_come_before_segments_and_what_is_new_before_what_was_there(void **state)
{
	(void)state;
	struct copy *older = file(1, COPY_OLDER, 50), *log = file(2, COPY_LOG, 50);
	struct copy *large = file(3, COPY_LARGE, 50);
	assert_ptr_equal(copies_missing(&all, true), large);
	copy_is(&all, large, 50, 50, 0);
	clear_all();
	assert_ptr_equal(copies_missing(&all, true), log);
	copy_is(&all, log, 50, 50, 0);
	assert_ptr_equal(copies_missing(&all, true), older);
	assert_null(copies_missing(&all, false));
	assert_int_equal(copies_lag(&all), 150);
}

static void a_log_goes_on_as_far_as_it_was_when_large_content_was_looked_at(void **state)
{
	(void)state;
	struct copy *log = file(1, COPY_LOG, 50);
	assert_true(copies_clear(&all));
	assert_null(copies_missing(&all, false));
	copy_is(&all, log, 70, 0, 0);
	assert_true(copies_clear(&all)); /* what it waited for is there */
	assert_int_equal(log->cleared, 50);
	assert_ptr_equal(copies_missing(&all, false), log);
	copy_is(&all, log, 70, 50, 0);
	assert_null(copies_missing(&all, false));
	assert_false(copies_clear(&all));
	assert_ptr_equal(copies_missing(&all, false), log);
	copy_is(&all, log, 60, 50, 0); /* it was cut */
	assert_int_equal(log->cleared, 60);
}

/* Each waits for the newer one to be there. */
static void in_a_rush_the_newest_of_the_log_comes_first(void **state)
{
	(void)state;
	struct copy *newer = file(8, COPY_LOG, 50), *log = file(7, COPY_LOG, 50);
	clear_all();
	copies_rush(&all);
	assert_ptr_equal(copies_missing(&all, true), newer);
	copy_is(&all, newer, 70, 50, 0);
	struct copy *large = file(9, COPY_LARGE, 10);
	assert_ptr_equal(copies_missing(&all, true), large); /* that may be named in it */
	copy_is(&all, large, 10, 10, 10);
	assert_null(copies_missing(&all, true));
	copies_again(&all, false);
	assert_ptr_equal(copies_missing(&all, true), newer);
	copy_is(&all, newer, 70, 50, 50); /* as far as it was */
	assert_ptr_equal(copies_missing(&all, true), log);
	copy_is(&all, log, 50, 50, 50);
	clear_all();
	assert_ptr_equal(copies_missing(&all, true), newer);
}

static void what_was_under_way_is_missing_again(void **state)
{
	(void)state;
	struct copy *f = file(2, COPY_LOG, 100);
	copy_is(&all, f, 100, 100, 30);
	assert_null(copies_missing(&all, false));
	copies_again(&all, false);
	assert_int_equal(f->sent, 30);
	copies_again(&all, true);
	assert_int_equal(f->acked, 0);
	assert_null(copies_missing(&all, false)); /* what it names is missing too, perhaps */
	clear_all();
	assert_ptr_equal(copies_missing(&all, false), f);
}

static void goals_are_how_far_all_had_got(void **state)
{
	(void)state;
	struct copy *a = file(1, COPY_LOG, 10), *b = file(2, COPY_LOG, 20);
	struct goals g;
	goals_set(&g, &all, COPY_OLDER);
	copy_is(&all, a, 500, 10, 10);
	assert_false(goals_reached(&g, &all));
	copy_is(&all, b, 20, 20, 19);
	assert_false(goals_reached(&g, &all));
	copy_is(&all, b, 20, 20, 20);
	assert_true(goals_reached(&g, &all)); /* what came later is not asked for */
	goals_fini(&g);
}

static void a_goal_is_reached_by_what_is_gone_or_cut(void **state)
{
	(void)state;
	struct copy *a = file(1, COPY_LOG, 10), *b = file(2, COPY_LOG, 20);
	struct goals g;
	goals_set(&g, &all, COPY_OLDER);
	copy_gone(&all, a);
	assert_false(goals_reached(&g, &all));
	copy_is(&all, b, 5, 5, 5);
	assert_true(goals_reached(&g, &all));
	goals_fini(&g);
}

static void an_acknowledgement_counts_when_all_before_it_have_come(void **state)
{
	struct flight f;
	struct flown m = {.type = REPLICA_LOG, .bytes = 10};
	(void)state;
	flight_init(&f);
	for (m.number = 1; m.number <= 3; m.number++)
		flight_add(&f, &m);
	flight_acknowledged(&f, 2, 102);
	assert_false(flight_take(&f, &m));
	flight_acknowledged(&f, 1, 101);
	assert_true(flight_take(&f, &m));
	assert_int_equal(m.sequence, 101);
	assert_true(flight_take(&f, &m));
	assert_int_equal(m.sequence, 102);
	assert_false(flight_take(&f, &m));
	assert_int_equal(f.bytes, 10);
	flight_drop(&f);
	flight_acknowledged(&f, 3, 103); /* too late: it was sent again */
	assert_false(flight_take(&f, &m));
	assert_int_equal(f.bytes, 0);
}

static void what_can_not_be_read_lets_others_pass(void **state)
{
	(void)state;
	struct copy *bad = file(1, COPY_LOG, 10), *good = file(2, COPY_LOG, 20);
	clear_all();
	assert_ptr_equal(copies_missing(&all, false), bad);
	copies_last(&all, bad);
	assert_ptr_equal(copies_missing(&all, false), good);
	assert_int_equal(bad->end, 10); /* it is missing all the same */
	assert_int_equal(copies_lag(&all), 30);
}

static void room_that_is_refused_keeps_nothing_else_waiting(void **state)
{
	struct flight f;
	struct flown m = {.type = REPLICA_SPARE, .bytes = 10, .number = 1};
	(void)state;
	flight_init(&f);
	flight_add(&f, &m);
	m = (struct flown){.type = REPLICA_LOG, .bytes = 10, .number = 2};
	flight_add(&f, &m);
	flight_acknowledged(&f, 2, 102);
	assert_false(flight_take(&f, &m));
	assert_true(flight_is_spare(&f, 1));
	assert_false(flight_is_spare(&f, 2) || flight_is_spare(&f, 3));
	flight_forget(&f, 1);
	assert_true(flight_take(&f, &m));
	assert_int_equal(m.number, 2);
	assert_int_equal(f.bytes, 0);
}

static void room_is_given_up_before_all_is_there(void **state)
{
	(void)state;
	struct orders o;
	orders_init(&o);
	file(1, COPY_LOG, 10);
	orders_add(&o, ORDER_GONE, (struct copy_key){.of = 7});
	assert_false(orders_may(&o, &all));
	orders_add(&o, ORDER_ROOM, (struct copy_key){.of = 0});
	assert_int_equal(orders_first(&o)->kind, ORDER_ROOM);
	assert_true(order_is_purge(ORDER_ROOM));
	assert_true(orders_may(&o, &all));
	orders_done(&o);
	assert_int_equal(orders_first(&o)->kind, ORDER_GONE);
	assert_false(orders_may(&o, &all));
	orders_fini(&o);
}

static void orders_wait_in_the_order_in_which_one_needs_the_other(void **state)
{
	static const enum order_kind expected[] = {ORDER_MARKS,	     ORDER_MARKS, ORDER_COMPLETE,
						   ORDER_CHECKPOINT, ORDER_GONE,  ORDER_GONE};
	struct copy_key key = {.of = 7}, other = {.of = 8};
	struct orders o;
	(void)state;
	orders_init(&o);
	orders_add(&o, ORDER_CHECKPOINT, key);
	orders_add(&o, ORDER_GONE, key);
	orders_add(&o, ORDER_MARKS, other);
	orders_add(&o, ORDER_CHECKPOINT, key); /* takes the place of the one that waits */
	orders_add(&o, ORDER_GONE, other);
	orders_add(&o, ORDER_MARKS, key);
	orders_add(&o, ORDER_COMPLETE, key);
	assert_int_equal(o.n, 6);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(orders_first(&o)->kind, expected[i]);
		orders_done(&o);
	}
	assert_null(orders_first(&o));
	orders_fini(&o);
}

static void an_order_that_is_under_way_stays_the_first(void **state)
{
	struct copy_key key = {.of = 7}, other = {.of = 8};
	struct orders o;
	(void)state;
	orders_init(&o);
	orders_add(&o, ORDER_CHECKPOINT, key)->under_way = true;
	assert_ptr_not_equal(orders_add(&o, ORDER_CHECKPOINT, key), orders_first(&o));
	orders_add(&o, ORDER_MARKS, key);
	orders_add(&o, ORDER_MARKS, other);
	orders_add(&o, ORDER_SINCE, key);
	assert_true(orders_first(&o)->under_way);
	orders_done(&o);
	orders_forget_marks(&o, key);
	assert_int_equal(orders_first(&o)->key.of, 8);
	assert_int_equal(o.n, 3);
	orders_forget_numbers(&o);
	assert_int_equal(o.n, 2);
	orders_fini(&o);
}

static void an_order_waits_for_all_that_was_there_before_it(void **state)
{
	struct copy *f = file(1, COPY_LOG, 10);
	struct copy_key key = {.of = 7};
	struct orders o;
	(void)state;
	orders_init(&o);
	orders_add(&o, ORDER_GONE, key);
	assert_false(orders_may(&o, &all));
	copy_is(&all, f, 30, 30, 10);
	orders_add(&o, ORDER_GONE, key);
	assert_true(orders_may(&o, &all));
	orders_done(&o);
	assert_false(orders_may(&o, &all)); /* the second was told later */
	copy_is(&all, f, 30, 30, 30);
	assert_true(orders_may(&o, &all));
	orders_fini(&o);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(large_files_come_before_segments_and_what_is_new_before_what_was_there),
		T(a_log_goes_on_as_far_as_it_was_when_large_content_was_looked_at),
		T(in_a_rush_the_newest_of_the_log_comes_first),
		T(what_was_under_way_is_missing_again),
		T(goals_are_how_far_all_had_got),
		T(a_goal_is_reached_by_what_is_gone_or_cut),
		T(an_acknowledgement_counts_when_all_before_it_have_come),
		T(what_can_not_be_read_lets_others_pass),
		T(room_that_is_refused_keeps_nothing_else_waiting),
		T(room_is_given_up_before_all_is_there),
		T(orders_wait_in_the_order_in_which_one_needs_the_other),
		T(an_order_that_is_under_way_stays_the_first),
		T(an_order_waits_for_all_that_was_there_before_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
