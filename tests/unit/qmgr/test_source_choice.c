/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/unit.h"

#include "qmgr/route/source_choice.h"

#include <math.h>
#include <stdio.h>

enum { SOURCES = 4, FLOWS = 10000 };

static struct conf_source a = {.title = "a"}, b = {.title = "b"}, c = {.title = "c"},
			  d = {.title = "d"};

#define DAY INT64_C(86400000)

static const struct conf_source *choice(const struct conf_uses *u, int flow, int64_t at_ms)
{
	char name[40];
	snprintf(name, sizeof name, "tenant-%d.example.org", flow);
	return source_choose(u, name, at_ms, NULL, NULL);
}

static double part(const struct conf_uses *u, const struct conf_source *s, int64_t at_ms)
{
	int n = 0;
	for (int flow = 0; flow < FLOWS; flow++)
		n += choice(u, flow, at_ms) == s;
	return (double)n / FLOWS;
}

static void shares_are_as_the_weights(void **state)
{
	(void)state;
	static const int64_t weights[][SOURCES] = {
		{1, 1, 1, 1}, {1, 3, 1, 1}, {10, 20, 30, 40}, {1, 9999, 1, 1}, {97, 1, 1, 1}};
	struct conf_source *all[SOURCES] = {&a, &b, &c, &d};
	for (size_t w = 0; w < sizeof weights / sizeof weights[0]; w++) {
		struct conf_use of[SOURCES];
		struct conf_uses u = {SOURCES, of};
		double sum = 0;
		for (int i = 0; i < SOURCES; i++) {
			of[i] = (struct conf_use){all[i], weights[w][i]};
			sum += (double)weights[w][i];
		}
		for (int day = 0; day < 5; day++)
			for (int i = 0; i < SOURCES; i++) {
				double is = part(&u, all[i], day * DAY);
				assert_true(fabs(is - (double)weights[w][i] / sum) < 0.02);
			}
	}
}

static void a_flow_keeps_its_source_for_a_day(void **state)
{
	(void)state;
	struct conf_use of[] = {{&a, 1}, {&b, 1}};
	struct conf_uses u = {2, of};
	int moved = 0;
	for (int flow = 0; flow < FLOWS; flow++) {
		const struct conf_source *is = choice(&u, flow, 20000 * DAY);
		assert_ptr_equal(choice(&u, flow, 20000 * DAY + DAY / 2), is);
		assert_ptr_equal(choice(&u, flow, 20001 * DAY - 1), is);
		moved += choice(&u, flow, 20001 * DAY) != is;
	}
	/* The next day is drawn anew: half of them move. */
	assert_in_range(moved, FLOWS * 48 / 100, FLOWS * 52 / 100);
}

static bool fits_but_a(void *context, const struct conf_source *s)
{
	(void)context;
	return s != &a;
}

static bool fits_none(void *context, const struct conf_source *s)
{
	(void)context;
	(void)s;
	return false;
}

static void one_that_does_not_fit_leaves_the_others_where_they_are(void **state)
{
	(void)state;
	struct conf_use of[] = {{&a, 2}, {&b, 1}, {&c, 1}};
	struct conf_uses u = {3, of};
	int to_b = 0, to_c = 0;
	for (int flow = 0; flow < FLOWS; flow++) {
		char name[40];
		snprintf(name, sizeof name, "tenant-%d.example.org", flow);
		const struct conf_source *is = source_choose(&u, name, 0, NULL, NULL);
		const struct conf_source *then = source_choose(&u, name, 0, fits_but_a, NULL);
		assert_ptr_not_equal(then, &a);
		if (is != &a)
			assert_ptr_equal(then, is);
		else if (then == &b)
			to_b++;
		else
			to_c++;
		assert_null(source_choose(&u, name, 0, fits_none, NULL));
	}
	/* What it had falls to the others by their weights. */
	assert_in_range(to_b, FLOWS / 4 - 200, FLOWS / 4 + 200);
	assert_in_range(to_c, FLOWS / 4 - 200, FLOWS / 4 + 200);
}

static void a_change_of_weight_moves_only_what_must(void **state)
{
	(void)state;
	struct conf_use before[] = {{&a, 1}, {&b, 1}, {&c, 1}};
	struct conf_use after[] = {{&a, 1}, {&b, 3}, {&c, 1}};
	struct conf_uses u = {3, before}, v = {3, after};
	int moved = 0;
	for (int flow = 0; flow < FLOWS; flow++) {
		const struct conf_source *is = choice(&u, flow, 0), *then = choice(&v, flow, 0);
		if (is == then)
			continue;
		assert_ptr_equal(then, &b); /* only towards what has become heavier */
		moved++;
	}
	/* From a third to three fifths. */
	assert_in_range(moved, FLOWS * 2467 / 10000, FLOWS * 2867 / 10000);
}

static void a_source_more_takes_from_each_its_part(void **state)
{
	(void)state;
	struct conf_use of[] = {{&a, 1}, {&b, 1}, {&c, 1}, {&d, 1}};
	struct conf_uses u = {3, of}, v = {4, of};
	int moved = 0;
	for (int flow = 0; flow < FLOWS; flow++) {
		const struct conf_source *is = choice(&u, flow, 0), *then = choice(&v, flow, 0);
		assert_true(then == is || then == &d);
		moved += then != is;
	}
	assert_in_range(moved, FLOWS * 23 / 100, FLOWS * 27 / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_are_as_the_weights),
		cmocka_unit_test(a_flow_keeps_its_source_for_a_day),
		cmocka_unit_test(one_that_does_not_fit_leaves_the_others_where_they_are),
		cmocka_unit_test(a_change_of_weight_moves_only_what_must),
		cmocka_unit_test(a_source_more_takes_from_each_its_part),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
