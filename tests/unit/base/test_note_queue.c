/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/note_queue.h"

static struct note one, two, three;

static struct note_queue *filled(struct note_queue *q)
{
	note_queue_init(q);
	assert_null(note_queue_take(q));
	note_queue_put(q, &one);
	note_queue_put(q, &two);
	note_queue_put(q, &three);
	return q;
}

static void notes_are_taken_in_the_order_in_which_they_came(void **state)
{
	(void)state;
	struct note_queue q;
	filled(&q);
	assert_ptr_equal(note_queue_take(&q), &one);
	note_queue_put(&q, &one);
	assert_ptr_equal(note_queue_take(&q), &two);
	assert_ptr_equal(note_queue_take(&q), &three);
	assert_ptr_equal(note_queue_take(&q), &one);
	assert_null(note_queue_take(&q));
	note_queue_put(&q, &two);
	assert_ptr_equal(note_queue_take(&q), &two);
}

static void one_may_be_taken_out_wherever_it_stands(void **state)
{
	(void)state;
	struct note_queue q;
	filled(&q);
	assert_ptr_equal(note_queue_take_at(&q, &two.next), &three);
	assert_null(note_queue_take_at(&q, &two.next));
	note_queue_put(&q, &three);
	assert_ptr_equal(note_queue_take_at(&q, &one.next), &two);
	assert_ptr_equal(note_queue_take(&q), &one);
	assert_ptr_equal(note_queue_take(&q), &three);
	assert_null(q.first);
}

static void what_is_returned_is_the_next_again(void **state)
{
	(void)state;
	struct note_queue q;
	note_queue_init(&q);
	note_queue_return(&q, &one);
	note_queue_put(&q, &two);
	assert_ptr_equal(note_queue_take(&q), &one);
	note_queue_return(&q, &one);
	assert_ptr_equal(note_queue_take(&q), &one);
	assert_ptr_equal(note_queue_take(&q), &two);
	assert_null(q.first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(notes_are_taken_in_the_order_in_which_they_came),
		cmocka_unit_test(one_may_be_taken_out_wherever_it_stands),
		cmocka_unit_test(what_is_returned_is_the_next_again),
	};
	return RUN(tests);
}
