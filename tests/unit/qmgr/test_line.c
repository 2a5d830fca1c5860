/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/unit.h"

#include "qmgr/sched/line.h"

#include <string.h>

enum { PEOPLE = 400, STEPS = 300000 };

static struct line_place place[PEOPLE];
static int order[PEOPLE], standing; /* what the line should be, from the front */
static int renumbered;

static void count_renumbered(struct line_place *p)
{
	(void)p;
	renumbered++;
}

static uint64_t chance = 88172645463325252;

static int any_of(int n)
{
	chance ^= chance << 13;
	chance ^= chance >> 7;
	chance ^= chance << 17;
	return (int)(chance % (uint64_t)n);
}

static void begin_line(void)
{
	line_init(&place[0], true);
	for (int i = 1; i < PEOPLE; i++)
		line_init(&place[i], false);
	order[0] = 0;
	standing = 1;
	renumbered = 0;
}

static void put_in(int newcomer, int where)
{
	line_enter(&place[order[where]], &place[newcomer], count_renumbered);
	memmove(&order[where + 1], &order[where], (size_t)(standing - where) * sizeof order[0]);
	order[where] = newcomer;
	standing++;
}

static void take_out(int where)
{
	line_leave(&place[order[where]]);
	memmove(&order[where], &order[where + 1], (size_t)(standing - where - 1) * sizeof order[0]);
	standing--;
}

static void line_is_as_it_should_be(void)
{
	for (int i = 1; i < standing; i++)
		assert_true(place[order[i - 1]].at < place[order[i]].at);
}

static int one_outside(void)
{
	for (int i = 1; i < PEOPLE; i++)
		if (list_empty(&place[i].ring))
			return i;
	return 0;
}

static void in_front_of_one_there_is_always_room(void **state)
{
	(void)state;
	begin_line();
	put_in(1, 0); /* stays in front of all */
	for (int i = 0; i < STEPS; i++) {
		put_in(2, 1);
		put_in(3, 2);
		line_is_as_it_should_be();
		take_out(1);
		take_out(1);
	}
	begin_line();
	for (int i = 1; i < PEOPLE; i++) /* each in front of the one before */
		put_in(i, 0);
	line_is_as_it_should_be();
	assert_true(renumbered > 0);
}

static void a_line_that_anybody_joins_and_leaves_keeps_its_order(void **state)
{
	(void)state;
	begin_line();
	for (int i = 0; i < STEPS; i++) {
		int newcomer = one_outside();
		if (newcomer && any_of(standing + 2) < 20)
			put_in(newcomer, any_of(standing));
		else if (standing > 1)
			take_out(any_of(standing - 1));
		if (i % 64 == 0)
			line_is_as_it_should_be();
	}
	assert_true(renumbered > 0);
}

static void who_was_at_home_may_go_first(void **state)
{
	(void)state;
	begin_line();
	put_in(1, 0);
	put_in(2, 1);
	take_out(2); /* home */
	for (int i = 3; i < PEOPLE; i++)
		put_in(i, standing - 1);
	line_is_as_it_should_be();
	assert_int_equal(place[0].at, LINE_HOME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_front_of_one_there_is_always_room),
		cmocka_unit_test(a_line_that_anybody_joins_and_leaves_keeps_its_order),
		cmocka_unit_test(who_was_at_home_may_go_first),
	};
	return RUN(tests);
}
