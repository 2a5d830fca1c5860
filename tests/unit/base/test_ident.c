/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/clock.h"
#include "base/ident.h"

#include <ctype.h>
#include <string.h>

static void ids_grow_whatever_the_clock_does(void **state)
{
	(void)state;
	uint64_t before = ident_new();
	for (int i = 0; i < 100000; i++) {
		uint64_t id = ident_new();
		assert_true(id > before);
		before = id;
	}
}

static void ids_of_two_nodes_are_never_the_same(void **state)
{
	(void)state;
	uint64_t floor = ident_new() + ((uint64_t)1 << 32);
	for (unsigned n = 0; n < IDENT_NODES; n += 341) {
		ident_set_node(n);
		ident_floor(floor += 7);
		for (int i = 0; i < 10000; i++) {
			uint64_t id = ident_new();
			assert_true(id > floor);
			assert_int_equal(id % IDENT_NODES, n);
			floor = id;
		}
	}
	ident_set_node(0);
}

static void the_text_says_the_same_and_sorts_the_same(void **state)
{
	(void)state;
	uint64_t id = ident_new(), back;
	char a[IDENT_TEXT], b[IDENT_TEXT];
	ident_text(id, a);
	ident_text(id + 1, b);
	assert_int_equal(strlen(a), 13);
	assert_true(strcmp(a, b) < 0);
	assert_true(ident_parse(a, &back));
	assert_true(back == id);
	for (char *c = a; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	assert_true(ident_parse(a, &back));
	assert_true(back == id);
	assert_true(ident_parse(ident_text(UINT64_MAX, a), &back));
	assert_true(back == UINT64_MAX);
}

static void what_is_no_id_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"",
					  "1",
					  "000000000000",
					  "00000000000000",
					  "000000000000U",
					  "G000000000000",
					  "00000 0000000",
					  "../../../../../"};
	uint64_t id;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_false(ident_parse(bad[i], &id));
}

static void an_id_tells_when_it_was_made(void **state)
{
	(void)state;
	int64_t ago = clock_wall_ms() - ident_time_ms(ident_new());
	assert_in_range(ago + 5000, 0, 65000);
}

static void new_ids_are_above_the_floor(void **state)
{
	(void)state;
	uint64_t floor = ident_new() + (UINT64_C(1) << 40);
	ident_floor(floor);
	assert_true(ident_new() > floor);
	ident_floor(1);
	assert_true(ident_new() > floor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_grow_whatever_the_clock_does),
		cmocka_unit_test(ids_of_two_nodes_are_never_the_same),
		cmocka_unit_test(the_text_says_the_same_and_sorts_the_same),
		cmocka_unit_test(what_is_no_id_is_refused),
		cmocka_unit_test(an_id_tells_when_it_was_made),
		cmocka_unit_test(new_ids_are_above_the_floor),
	};
	return RUN(tests);
}
