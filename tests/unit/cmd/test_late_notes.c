/* SPDX-License-Identifier: ISC */
/* What comes from other nodes when the relay has ended. */
#include "tests/unit/cmd/unit.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/relay/late_notes.c"

static struct cluster_order *order_of_type(int type)
{
	struct cluster_order *o =
		cluster_order_new(CLUSTER_DEST, ORDER_SUSPEND, "a.test", NULL, NULL);
	o->note.type = type;
	return o;
}

static struct note *progress(void)
{
	struct buf text = {0};
	buf_puts(&text, "id 7 mark\n");
	return text_note_new(CLUSTER_SAVE, &text);
}

static void an_order_is_dropped_and_so_is_what_was_carried_out(void **state)
{
	(void)state;
	assert_true(late_notes_take(&order_of_type(CLUSTER_APPLY)->note));
	assert_true(late_notes_take(progress()));
}

static void a_question_is_answered_by_nobody(void **state)
{
	struct cluster_asked *a = mem_zalloc(sizeof *a);
	(void)state;
	a->note.type = CLUSTER_ASKED;
	a->question = mem_strdup("flow list");
	assert_true(late_notes_take(&a->note));
}

static void an_order_that_all_have_says_that_it_is_carried_out_later(void **state)
{
	struct cluster_order *taken = order_of_type(CLUSTER_ORDER),
			     *refused = order_of_type(CLUSTER_ORDER);
	(void)state;
	refused->why = mem_strdup("Redis is away");
	assert_false(late_notes_take(&taken->note));
	assert_non_null(strstr(taken->why, "when it starts"));
	assert_false(late_notes_take(&refused->note));
	assert_string_equal(refused->why, "Redis is away");
	cluster_order_free(&taken);
	cluster_order_free(&refused);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_order_is_dropped_and_so_is_what_was_carried_out),
		cmocka_unit_test(a_question_is_answered_by_nobody),
		cmocka_unit_test(an_order_that_all_have_says_that_it_is_carried_out_later),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
