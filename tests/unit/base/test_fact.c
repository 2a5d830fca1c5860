/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/fact.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fact *one_of(const char *node, int64_t health, int64_t speed)
{
	struct fact *f = fact_new(FACT_HEARD, "host");
	if (health)
		fact_set(f, FACT_HEALTH, health, node, node);
	if (speed)
		fact_set(f, FACT_SPEED, speed, node, node);
	return f;
}

static void of_two_the_newer_part_counts(void **state)
{
	struct fact *known = one_of("a", 10, 20), *heard = one_of("b", 11, 19);
	(void)state;
	assert_int_equal(fact_merge(known, heard), 1U << FACT_HEALTH);
	assert_string_equal(known->part[FACT_HEALTH].node, "b");
	assert_string_equal(known->part[FACT_SPEED].node, "a");
	assert_int_equal(fact_merge(known, heard), 0);
	fact_free(&known);
	fact_free(&heard);
}

static void what_was_not_known_is_taken_over(void **state)
{
	struct fact *known = one_of("a", 0, 0), *heard = one_of("b", 1, 0);
	(void)state;
	assert_int_equal(fact_merge(known, heard), 1U << FACT_HEALTH);
	assert_int_equal(fact_merge(heard, known), 0);
	fact_free(&known);
	fact_free(&heard);
}

static bool same(const struct fact *a, const struct fact *b)
{
	for (int i = 0; i < FACT_PART_COUNT; i++) {
		const struct fact_part *x = &a->part[i], *y = &b->part[i];
		if (!x->text != !y->text || x->stamp != y->stamp ||
		    (x->text && (strcmp(x->text, y->text) != 0 || strcmp(x->node, y->node) != 0)))
			return false;
	}
	return true;
}

/* In whatever order three nodes hear each other, they come to the same. */
static void the_order_does_not_matter(void **state)
{
	static const int order[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
					{1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	(void)state;
	srandom(1);
	for (int run = 0; run < 500; run++) {
		struct fact *from[3], *to[6];
		for (int i = 0; i < 3; i++)
			from[i] = one_of((const char *[]){"a", "b", "c"}[i], random() % 4,
					 random() % 4);
		for (int k = 0; k < 6; k++) {
			to[k] = fact_new(FACT_HEARD, "host");
			for (int i = 0; i < 3; i++)
				fact_merge(to[k], from[order[k][i]]);
			assert_true(same(to[0], to[k]));
		}
		for (int k = 0; k < 6; k++)
			fact_free(&to[k]);
		for (int i = 0; i < 3; i++)
			fact_free(&from[i]);
	}
}

static void what_is_seen_now_is_newer_than_all_that_is_known(void **state)
{
	(void)state;
	assert_int_equal(fact_stamp(0, 1000), 1000);
	assert_int_equal(fact_stamp(5000, 1000), 5001); /* of a clock that is ahead */
	assert_int_equal(fact_stamp(1001 + FACT_AHEAD_MS, 1000), 1000); /* too far to be heard */
}

static void a_part_comes_back_as_it_was_written(void **state)
{
	struct fact *f = one_of("a", 1234, 0), *back = fact_new(FACT_HEARD, "host");
	struct buf text = {0};
	(void)state;
	fact_set(f, FACT_HEALTH, 1234, "a", "\tfailures=3\twhy=one\r\ntwo");
	buf_printf(&text, "1234\ta\t%s", f->part[FACT_HEALTH].text);
	assert_true(fact_parse_part(back, "health", buf_cstr(&text), 2000));
	assert_true(same(f, back));
	assert_null(strpbrk(back->part[FACT_HEALTH].text, "\r\n"));
	buf_fini(&text);
	fact_free(&f);
	fact_free(&back);
}

static void what_makes_no_sense_is_no_part(void **state)
{
	static const char *const values[] = {
		"",
		"x",
		"5",
		"5\t",
		"5\ta",
		"-5\ta\t\tx=1",
		"0\ta\t",
		"5\t\ttext",
		"5 a b",
		"99999999999999999999\ta\t",
		"100000\ta\t", /* a minute and more ahead */
	};
	struct fact *f = fact_new(FACT_HEARD, "host");
	char *longest = mem_zalloc(FACT_TEXT_MAX + 100);
	(void)state;
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
		assert_false(fact_parse_part(f, "health", values[i], 1000));
	assert_false(fact_parse_part(f, "of a later version", "5\ta\t", 1000));
	snprintf(longest, 10, "5\ta\t");
	memset(longest + 4, 'x', FACT_TEXT_MAX + 1);
	assert_false(fact_parse_part(f, "health", longest, 1000));
	for (int i = 0; i < FACT_PART_COUNT; i++)
		assert_null(f->part[i].text);
	free(longest);
	fact_free(&f);
}

static void a_copy_has_the_parts_that_were_asked_for(void **state)
{
	struct fact *f = one_of("a", 1, 2);
	struct fact *copy = fact_copy(f, 1U << FACT_SPEED | 1U << FACT_PLAIN);
	(void)state;
	assert_int_equal(copy->note.type, FACT_SEEN);
	assert_null(copy->part[FACT_HEALTH].text);
	assert_int_equal(copy->part[FACT_SPEED].stamp, 2);
	assert_null(copy->part[FACT_PLAIN].text);
	fact_free(&f);
	fact_free(&copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_two_the_newer_part_counts),
		cmocka_unit_test(what_was_not_known_is_taken_over),
		cmocka_unit_test(the_order_does_not_matter),
		cmocka_unit_test(what_is_seen_now_is_newer_than_all_that_is_known),
		cmocka_unit_test(a_part_comes_back_as_it_was_written),
		cmocka_unit_test(what_makes_no_sense_is_no_part),
		cmocka_unit_test(a_copy_has_the_parts_that_were_asked_for),
	};
	return RUN(tests);
}
