/* SPDX-License-Identifier: ISC */
/* The tables of the scheduler's document, by the scenarios in tests/sim: early bound as published,
 * late bound without a deferral and with all places of the server busy. */
#include "tests/unit/sim/unit.h"

#include <math.h>

/* How far from what was published each may be: a part of it, or where smaller, so much. */
struct tolerance {
	double deferred, window, deviation;
};

static void near(const char *what, const struct scenario_row *row, double ours, const char *text,
		 double part)
{
	double published = atof(text);
	if (fabs(ours - published) <= part * published)
		return;
	print_error("%s, %s: %.3f, published %s\n", row->title, what, ours, text);
	_fail(__FILE__, __LINE__);
}

static void check_early(const struct sim_run *run, const struct tolerance *t)
{
	const struct tally_site *site = tally_largest(run->tally);
	near("deferred", run->row, tally_deferred_percent(run->tally), run->row->published_deferred,
	     t->deferred);
	near("window", run->row, tally_window_mean(site), run->row->published_concurrency,
	     t->window);
	near("deviation", run->row, tally_window_deviation(site), run->row->published_deviation,
	     t->deviation);
}

static void check_late(const struct tally *t)
{
	assert_int_equal(t->deferred, 0);
	assert_int_equal(t->sent, t->recipients);
	assert_true(tally_busy_mean(tally_largest(t)) > 4.9);
}

static void check_table(const char *name, const struct tolerance *tolerance)
{
	struct scenario *s = scenario_named(name);
	struct sim *sim = run(s);
	assert_int_equal(sim->n, 12);
	for (int i = 0; i < sim->n; i++)
		if (sim->run[i].early)
			check_early(&sim->run[i], tolerance);
		else
			check_late(sim->run[i].tally);
	sim_free(&sim);
	scenario_free(&s);
}

static void connections_that_time_out(void **state)
{
	(void)state;
	check_table("connect-timeout", &(struct tolerance){0.08, 0.025, 0.5});
}

static void greetings_that_time_out(void **state)
{
	(void)state;
	check_table("greeting-timeout", &(struct tolerance){0.15, 0.01, 1.4});
}

static void connections_refused_above_a_limit(void **state)
{
	(void)state;
	check_table("too-many", &(struct tolerance){0.02, 0.02, 0.15});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_that_time_out),
		cmocka_unit_test(greetings_that_time_out),
		cmocka_unit_test(connections_refused_above_a_limit),
	};
	return RUN(tests);
}
