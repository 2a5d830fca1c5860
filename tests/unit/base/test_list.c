/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/list.h"

struct thing {
	int n;
	struct list link;
};

static void what_is_appended_comes_last_and_what_is_prepended_first(void **state)
{
	(void)state;
	struct list head;
	struct thing one = {.n = 1}, two = {.n = 2}, three = {.n = 3};
	list_init(&head);
	assert_true(list_empty(&head));
	assert_null(list_first(&head));
	list_append(&head, &two.link);
	list_append(&head, &three.link);
	list_prepend(&head, &one.link);
	int expected = 1;
	list_each (link, tmp, &head)
		assert_int_equal(list_entry(link, struct thing, link)->n, expected++);
	assert_int_equal(expected, 4);
	assert_ptr_equal(list_first(&head), &one.link);
}

static void a_link_may_be_removed_twice(void **state)
{
	(void)state;
	struct list head;
	struct thing one = {.n = 1}, two = {.n = 2};
	list_init(&head);
	list_append(&head, &one.link);
	list_append(&head, &two.link);
	list_remove(&one.link);
	list_remove(&one.link);
	assert_ptr_equal(list_first(&head), &two.link);
	list_remove(&two.link);
	assert_true(list_empty(&head));
}

static void lay_things(struct list *head, struct thing things[5])
{
	list_init(head);
	for (int i = 0; i < 5; i++) {
		things[i] = (struct thing){.n = i};
		list_init(&things[i].link);
		list_append(head, &things[i].link);
	}
}

static void a_walk_may_remove_what_it_stands_on(void **state)
{
	(void)state;
	struct list head;
	struct thing things[5];
	int walked = 0;
	lay_things(&head, things);
	list_each (link, tmp, &head) {
		list_remove(link);
		walked++;
	}
	assert_int_equal(walked, 5);
	assert_true(list_empty(&head));
}

static void objects_are_walked_in_order_and_may_be_removed_or_left(void **state)
{
	(void)state;
	struct list head;
	struct thing things[5];
	int walked = 0;
	lay_things(&head, things);
	list_each_entry (struct thing, t, link, &head) {
		assert_int_equal(t->n, walked++);
		if (t->n == 1)
			continue;
		list_remove(&t->link);
		if (t->n == 3)
			break;
	}
	assert_int_equal(walked, 4);
	assert_ptr_equal(list_first(&head), &things[1].link);
	assert_ptr_equal(head.prev, &things[4].link);
}

static void a_list_goes_over_to_another_in_its_order(void **state)
{
	(void)state;
	struct list to, from;
	struct thing one = {.n = 1}, two = {.n = 2}, three = {.n = 3};
	int expected = 1;
	list_init(&to);
	list_init(&from);
	list_move_all(&to, &from);
	assert_true(list_empty(&to));
	list_append(&to, &one.link);
	list_append(&from, &two.link);
	list_append(&from, &three.link);
	list_move_all(&to, &from);
	assert_true(list_empty(&from));
	list_each_entry (struct thing, t, link, &to)
		assert_int_equal(t->n, expected++);
	assert_int_equal(expected, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_appended_comes_last_and_what_is_prepended_first),
		cmocka_unit_test(a_link_may_be_removed_twice),
		cmocka_unit_test(a_walk_may_remove_what_it_stands_on),
		cmocka_unit_test(objects_are_walked_in_order_and_may_be_removed_or_left),
		cmocka_unit_test(a_list_goes_over_to_another_in_its_order),
	};
	return RUN(tests);
}
