/* SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "spool/inflow.h"

#include <stdlib.h>

enum { STUBS = 400 };

static struct inflow *in;
static struct stub stub[STUBS];
static int nstub;

static int setup(void **state)
{
	(void)state;
	in = mem_zalloc(sizeof *in);
	inflow_init(in);
	nstub = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	inflow_fini(in);
	free(in);
	return 0;
}

static void wait_in(uint16_t row, int n)
{
	for (; n > 0; n--) {
		struct stub *s = &stub[nstub++];
		*s = (struct stub){.id = (uint64_t)nstub, .site = (uint32_t)row & SPOOL_SITE_MAX};
		inflow_add(in, s);
	}
}

/* The row of the message that is taken up; 0: none may be. */
static uint16_t take(int64_t nfree)
{
	struct stub *s = inflow_first(in, nfree);
	uint16_t row = s ? s->site : 0;
	if (!s)
		return 0;
	inflow_served(in, row);
	inflow_remove(in, s);
	inflow_hold(in, row);
	return row;
}

static int take_all(int64_t places)
{
	int n = 0;
	while (take(places - in->held))
		n++;
	return n;
}

static void one_flow_leaves_a_tenth_and_the_next_finds_room(void **state)
{
	(void)state;
	wait_in(1, 300);
	assert_int_equal(take_all(100), 90);
	assert_false(inflow_may(in, 1, 10));
	assert_false(inflow_spare(in, 10));
	wait_in(2, 1);
	assert_int_equal(take(100 - in->held), 2);
	assert_int_equal(take(100 - in->held), 0);
	inflow_let_go(in, 1);
	assert_int_equal(take(100 - in->held), 1);
}

static void without_a_share_it_gets_all(void **state)
{
	(void)state;
	const struct conf_flow all = {.weight = 1, .share = 100};
	inflow_know(in, 1, &all);
	wait_in(1, 300);
	assert_int_equal(take_all(100), 100);
}

/* All held nothing before: places are many. */
static void flows_have_turns_by_weight(void **state)
{
	(void)state;
	const struct conf_flow heavy = {.weight = 3, .share = 100};
	int taken[4] = {0};
	wait_in(1, 100);
	wait_in(2, 100);
	wait_in(3, 100);
	inflow_know(in, 3, &heavy);
	for (int i = 0; i < 100; i++)
		taken[take(1000)]++;
	assert_in_range(taken[1], 19, 21);
	assert_in_range(taken[2], 19, 21);
	assert_in_range(taken[3], 58, 62);
}

static void who_was_blocked_is_owed_nothing(void **state)
{
	(void)state;
	wait_in(1, 50);
	for (int i = 0; i < 9; i++)
		assert_int_equal(take(10 - in->held), 1);
	assert_int_equal(take(1), 0);
	for (int i = 0; i < 100; i++) {
		wait_in(2, 1);
		assert_int_equal(take(1), 2);
		inflow_let_go(in, 2);
	}
	wait_in(2, 10);
	int before = 0;
	for (int i = 0; i < 10; i++)
		before += take(1000) == 2;
	assert_in_range(before, 4, 6);
}

static void who_has_its_share_is_behind_until_nothing_waits(void **state)
{
	(void)state;
	const char *flood = "flood.test", *quiet = "quiet.test";
	uint16_t row = inflow_row_of(flood);
	assert_int_not_equal(row, inflow_row_of(quiet));
	wait_in(row, 10);
	assert_int_equal(take_all(10), 9);
	wait_in(inflow_row_of(quiet), 1);
	inflow_tell(in, 0);
	assert_true(inflow_behind(in, flood));
	assert_false(inflow_behind(in, quiet));
	assert_int_equal(take(100), inflow_row_of(quiet));
	assert_int_equal(take(100), row);
	assert_false(inflow_behind(in, flood));
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		ROW(one_flow_leaves_a_tenth_and_the_next_finds_room),
		ROW(without_a_share_it_gets_all),
		ROW(flows_have_turns_by_weight),
		ROW(who_was_blocked_is_owed_nothing),
		ROW(who_has_its_share_is_behind_until_nothing_waits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
