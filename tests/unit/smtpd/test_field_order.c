/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpd/unit.h"

#include "base/header_field.h"
#include "base/mem.h"
#include "smtpd/field_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FEW = 40, STEPS = 3000, MANY = 20000, PARTS = 20 };

static const char *const texts[] = {"A: 1\r\n", "a: 2\r\n", "B: 3\r\n", "Long-Name: 4\r\n",
				    "C : 5\r\n"};

static struct draft_field field(unsigned i)
{
	const char *text = texts[i % (sizeof texts / sizeof *texts)];
	return (struct draft_field){text, strlen(text), NULL};
}

/* The same by looking at all of them. */
static int find(const struct draft_field *f, int n, int unnamed, const char *name, int index)
{
	for (int i = 0; i < n; i++) {
		size_t len = header_field_name(f[i].text, f[i].len);
		if (i != unnamed && header_field_is(f[i].text, len, name) && --index <= 0)
			return i;
	}
	return -1;
}

static void is_same(const struct field_order *o, const struct draft_field *f, int n, int unnamed)
{
	struct draft_field got[FEW + STEPS];
	assert_int_equal(field_order_len(o), n);
	assert_int_equal(field_order_unnamed(o), unnamed);
	field_order_put(o, got);
	for (int i = 0; i < n; i++)
		assert_ptr_equal(got[i].text, f[i].text);
	static const char *const names[] = {"a", "B", "long-name", "C", "none"};
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		for (int index = 0; index < 5; index++)
			assert_int_equal(field_order_find(o, names[k], (uint32_t)index),
					 find(f, n, unnamed, names[k], index));
}

static void any_changes_come_to_what_a_list_comes_to(void **state)
{
	struct draft_field f[FEW + STEPS];
	int n = FEW, unnamed = 3;
	(void)state;
	srandom(159);
	for (int i = 0; i < n; i++)
		f[i] = field((unsigned)random());
	struct field_order *o = field_order_new(f, n, unnamed, STEPS);
	for (int step = 0; step < STEPS; step++) {
		bool more = n < 2 || random() % 2;
		int at = (int)(random() % (n + more));
		if (more) {
			struct draft_field new = field((unsigned)random());
			memmove(&f[at + 1], &f[at], (size_t)(n++ - at) * sizeof *f);
			f[at] = new;
			unnamed += at <= unnamed;
			field_order_insert(o, at, &new);
		} else if (at != unnamed) {
			assert_ptr_equal(field_order_remove(o, at).text, f[at].text);
			memmove(&f[at], &f[at + 1], (size_t)(--n - at) * sizeof *f);
			unnamed -= at < unnamed;
		}
		if (step % 10 == 0)
			is_same(o, f, n, unnamed);
	}
	is_same(o, f, n, unnamed);
	field_order_free(&o);
}

static double processor_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Half of the fields are taken away one by one, from the end of their name, and others put in their places. */
static double change(int n, int times)
{
	struct draft_field *f = mem_alloc((size_t)n * sizeof *f);
	for (int i = 0; i < n; i++)
		f[i] = field((unsigned)i % 5 ? 2 : 0);
	double before = processor_seconds();
	for (int i = 0; i < times; i++) {
		struct field_order *o = field_order_new(f, n, -1, n);
		for (int k = n / 2; k > 0; k--) {
			int at = field_order_find(o, "B", (uint32_t)k);
			assert_int_not_equal(at, -1);
			struct draft_field was = field_order_remove(o, at);
			field_order_insert(o, at / 2, &was);
		}
		field_order_free(&o);
	}
	free(f);
	return processor_seconds() - before;
}

/* In a list, or a tree that has lost its balance, a long header would cost twenty times as much. */
static void a_long_header_costs_each_change_what_a_short_one_does(void **state)
{
	double many = 1e9, parts = 1e9;
	(void)state;
	for (int i = 0; i < 3; i++) {
		double a = change(MANY, 1), b = change(MANY / PARTS, PARTS);
		many = a < many ? a : many;
		parts = b < parts ? b : parts;
	}
	if (many > 6 * parts)
		fail_msg("%g s for one, %g s for twenty of a twentieth", many, parts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_changes_come_to_what_a_list_comes_to),
		cmocka_unit_test(a_long_header_costs_each_change_what_a_short_one_does),
	};
	return RUN(tests);
}
