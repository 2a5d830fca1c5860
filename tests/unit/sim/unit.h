/* unit.h - what the unit tests of this folder share: cmocka, scenarios from a text, runs of them. */
#ifndef TESTS_UNIT_SIM_UNIT_H
#define TESTS_UNIT_SIM_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUN(tests) cmocka_run_group_tests(tests, NULL, NULL)

/* A site that all mail goes to, on one host with no noise and of these further settings. */
#define ONE_HOST(settings) ONE_HOST_OF("1s", settings)

#define ONE_HOST_OF(time, settings)                                                                \
	"site \"dest\" { domains = {\"dest.test\"} mx = {\"10 mx.test\"} }\n"                      \
	"host \"mx.test\" { noise = \"0\" connect = 10ms greeting = 10ms round_trip = 0s "         \
	"transaction = " time " " settings " }\n"

#define ARRIVE(settings) "arrival \"a\" { domains = {\"dest.test\"} " settings " }\n"

static inline struct scenario *scenario_of(const char *text)
{
	struct buf errors = {0};
	struct scenario *s = scenario_parse(text, "test.conf", &errors);
	if (!s)
		print_error("%s", buf_cstr(&errors));
	assert_non_null(s);
	buf_fini(&errors);
	return s;
}

/* tests/sim/NAME.conf, from where this program was built to. */
static inline struct scenario *scenario_named(const char *name)
{
	char self[4000], path[4200];
	struct buf errors = {0};
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	assert_true(n > 0);
	self[n] = '\0';
	char *build = strstr(self, "/build/");
	assert_non_null(build);
	snprintf(path, sizeof path, "%.*s/tests/sim/%s.conf", (int)(build - self), self, name);
	struct scenario *s = scenario_read(path, &errors);
	if (!s)
		print_error("%s", buf_cstr(&errors));
	assert_non_null(s);
	buf_fini(&errors);
	return s;
}

/* Run it with seed 1; no rule may be broken. */
static inline struct sim *run(struct scenario *s)
{
	struct buf errors = {0};
	struct sim *sim = sim_run(s, 1, NULL, &errors);
	if (!sim)
		print_error("%s", buf_cstr(&errors));
	assert_non_null(sim);
	for (int i = 0; i < sim->n; i++)
		if (sim->run[i].tally->nfault > 0)
			print_error("%s", buf_cstr(&sim->run[i].tally->faults));
	assert_int_equal(sim_faults(sim), 0);
	buf_fini(&errors);
	return sim;
}

/* One run of a text; its tally until forget_run(). */
static struct scenario *ran_of;
static struct sim *ran;

static inline struct tally *run_text(const char *text)
{
	ran_of = scenario_of(text);
	ran = run(ran_of);
	return ran->run[0].tally;
}

static inline int forget_run(void **state)
{
	(void)state;
	sim_free(&ran);
	scenario_free(&ran_of);
	return 0;
}

#endif
