/* SPDX-License-Identifier: ISC */
#include "replica/copy_orders.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct orders orders;

static int set_up(void **state)
{
	(void)state;
	orders_init(&orders);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	orders_fini(&orders);
	return 0;
}

static void add_checkpoint(const char *text)
{
	struct order *o = orders_add(&orders, ORDER_CHECKPOINT, (struct copy_key){.of = 0});
	assert_int_equal(buf_len(&o->bytes), 0);
	buf_puts(&o->bytes, text);
}

static void add_gone(uint64_t seq)
{
	orders_add(&orders, ORDER_GONE, (struct copy_key){.of = seq});
}

static void check_checkpoint(const char *text)
{
	struct order *o = orders_first(&orders);
	assert_int_equal(o->kind, ORDER_CHECKPOINT);
	assert_string_equal(buf_cstr(&o->bytes), text);
	orders_done(&orders);
}

static void check_gone(uint64_t seq)
{
	struct order *o = orders_first(&orders);
	assert_int_equal(o->kind, ORDER_GONE);
	assert_int_equal(o->key.of, seq);
	orders_done(&orders);
}

static void the_last_checkpoint_comes_before_what_goes(void **state)
{
	(void)state;
	add_gone(1);
	add_checkpoint("old");
	add_gone(2);
	add_checkpoint("new");
	check_checkpoint("new");
	check_gone(1);
	check_gone(2);
	assert_int_equal(orders.n, 0);
}

/* As while NATS does not answer for a while: its purge is first, and a checkpoint can't come before it then. */
static void none_is_sent_after_a_later_one_when_a_purge_has_failed(void **state)
{
	(void)state;
	add_gone(2);
	orders_first(&orders)->under_way = true;
	add_checkpoint("old");
	add_gone(3);
	orders_first(&orders)->under_way = false;
	add_checkpoint("new");
	add_gone(1);
	check_checkpoint("new");
	check_gone(2);
	check_gone(3);
	check_gone(1);
	assert_int_equal(orders.n, 0);
}

static void one_that_another_has_replaced_is_not_sent_again(void **state)
{
	(void)state;
	add_checkpoint("old");
	orders_first(&orders)->under_way = true;
	add_checkpoint("new");
	orders_again(&orders);
	check_checkpoint("new");
	assert_int_equal(orders.n, 0);
}

static void what_nobody_has_heard_of_is_sent_again_but_a_purge(void **state)
{
	(void)state;
	orders_again(&orders);
	add_checkpoint("only");
	orders_first(&orders)->under_way = true;
	orders_again(&orders);
	assert_false(orders_first(&orders)->under_way);
	check_checkpoint("only");
	add_gone(1);
	orders_first(&orders)->under_way = true;
	orders_again(&orders);
	assert_true(orders_first(&orders)->under_way);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_last_checkpoint_comes_before_what_goes),
		TEST(none_is_sent_after_a_later_one_when_a_purge_has_failed),
		TEST(one_that_another_has_replaced_is_not_sent_again),
		TEST(what_nobody_has_heard_of_is_sent_again_but_a_purge),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
