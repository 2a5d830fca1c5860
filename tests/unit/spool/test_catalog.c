/* SPDX-License-Identifier: ISC */
/* The catalog beside a plain table of which ids are there. */
#include "tests/unit/base/unit.h"

#include "base/mem.h"
#include "spool/catalog.h"
#include "tests/unit/spool/chance.h"

#include <stdlib.h>
#include <string.h>

enum { IDS = 6000, STEPS = 200000, QUEUE = 200000 };

static struct stub stubs[IDS];
static bool there[IDS];

static struct stub *stub_at(size_t i)
{
	stubs[i].id = 3 * i + 1; /* so that there are ids in between */
	return &stubs[i];
}

static const struct stub *first_from(size_t i)
{
	while (i < IDS && !there[i])
		i++;
	return i < IDS ? &stubs[i] : NULL;
}

static void assert_same(const struct catalog *c)
{
	struct catalog_at at = catalog_from(c, 0);
	size_t live = 0;
	uint64_t last = 0;
	for (size_t i = 0; i < IDS; i++) {
		if (!there[i])
			continue;
		assert_ptr_equal(catalog_step(c, &at), &stubs[i]);
		last = stubs[i].id;
		live++;
	}
	assert_null(catalog_step(c, &at));
	assert_int_equal(c->live, live);
	assert_int_equal(catalog_last(c), last);
}

static void assert_finds(const struct catalog *c, size_t i)
{
	uint64_t id = 3 * i + 1;
	assert_ptr_equal(catalog_find(c, id), there[i] ? &stubs[i] : NULL);
	assert_null(catalog_find(c, id + 1));
	assert_ptr_equal(catalog_next(c, id - 1), first_from(i));
	assert_ptr_equal(catalog_next(c, id), first_from(i + 1));
}

static void change(struct catalog *c, size_t i)
{
	if (there[i])
		catalog_remove(c, &stubs[i]);
	else
		catalog_add(c, stub_at(i));
	there[i] = !there[i];
}

/* Now more come, now more go, here and there in turns. */
static void messages_come_and_go_in_any_order(void **state)
{
	struct chance chance = {.state = 1};
	struct catalog c = {.n = 0};
	(void)state;
	memset(there, 0, sizeof there);
	for (int step = 0; step < STEPS; step++) {
		size_t i = (size_t)chance_below(&chance, IDS);
		bool grows = step / (STEPS / 8) % 2 == 0;
		if (there[i] != grows || chance_below(&chance, 8) == 0)
			change(&c, i);
		assert_finds(&c, i);
		if (step % 5000 == 0)
			assert_same(&c);
	}
	assert_same(&c);
	for (size_t i = 0; i < IDS; i++)
		if (there[i])
			change(&c, i);
	assert_same(&c);
	assert_int_equal(c.n, 0);
	assert_null(catalog_next(&c, 0));
	assert_null(catalog_next(&c, UINT64_MAX));
	catalog_shrink(&c);
	catalog_fini(&c);
}

static void many_are_merged_with_those_that_are_there(void **state)
{
	struct catalog c = {.n = 0};
	struct stub *some[IDS];
	size_t n = 0;
	(void)state;
	memset(there, 0, sizeof there);
	for (size_t i = 0; i < IDS; i++) {
		if (i % 7 == 3 || i > IDS - 100)
			change(&c, i);
		else if (i % 3 == 0)
			some[n++] = stub_at(i);
	}
	catalog_merge(&c, some, n);
	for (size_t i = 0; i < n; i++)
		there[(some[i]->id - 1) / 3] = true;
	assert_same(&c);
	for (size_t i = 0; i < IDS; i++)
		assert_finds(&c, i);
	catalog_fini(&c);
}

static size_t fill(struct catalog *c, struct stub *queue, size_t n, uint64_t first, uint64_t each)
{
	for (size_t i = 0; i < n; i++) {
		queue[i].id = first + i * each;
		catalog_add(c, &queue[i]);
	}
	return c->n;
}

/* What is adopted is older than what is there, or from the same time. It moves no more than a page for each, and pages
 * of what comes in order are full. */
static void another_queue_comes_in_between(void **state)
{
	(void)state;
	for (int together = 0; together < 2; together++) {
		struct catalog c = {.n = 0};
		struct stub *own = mem_zalloc(QUEUE * sizeof *own);
		struct stub *other = mem_zalloc(QUEUE * sizeof *other);
		size_t pages = fill(&c, own, QUEUE, together ? 2 : 10 * QUEUE, 2);
		size_t both = fill(&c, other, QUEUE, 1, 2);
		assert_int_equal(c.live, 2 * QUEUE);
		assert_true(both <= (together ? 4 : 2) * pages + 2);
		assert_ptr_equal(catalog_next(&c, 0), &other[0]);
		assert_ptr_equal(catalog_find(&c, own[QUEUE / 2].id), &own[QUEUE / 2]);
		for (size_t i = 0; i < QUEUE; i++)
			catalog_remove(&c, &other[i]);
		assert_ptr_equal(catalog_next(&c, 0), &own[0]);
		assert_true(c.n <= 2 * pages + 2);
		catalog_fini(&c);
		free(other);
		free(own);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_come_and_go_in_any_order),
		cmocka_unit_test(many_are_merged_with_those_that_are_there),
		cmocka_unit_test(another_queue_comes_in_between),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
