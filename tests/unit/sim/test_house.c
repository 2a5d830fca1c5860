/* SPDX-License-Identifier: ISC */
/* A mailing house with a stolen login, and a receiver that wants nothing from one of our addresses: tests/sim/house-day.conf, which is
 * tests/sim/house.conf in small. What its rows lack is what each claim is about. */
#include "tests/unit/sim/unit.h"

#include "sim/flow_groups.h"
#include "tests/unit/base/sanitized.h"

#define HOUR_MS INT64_C(3600000)

static const struct scenario_span flood = {9 * HOUR_MS, 10 * HOUR_MS},
				  block = {15 * HOUR_MS, 24 * HOUR_MS}, day = {0, 36 * HOUR_MS};

static void run_row(const char *title, int how_blocked)
{
	struct buf errors = {0};
	ran_of = scenario_named("house-day");
	for (int i = 0; i < ran_of->nhost; i++)
		ran_of->host[i].block = how_blocked;
	ran = sim_run(ran_of, 1, title, &errors);
	assert_non_null(ran);
	assert_int_equal(ran->n, 1);
	assert_int_equal(sim_faults(ran), 0);
	buf_fini(&errors);
}

static struct flow_period came_in(const char *flows, const struct scenario_span *span)
{
	struct flow_groups groups;
	struct flow_period p = {{0}, 0};
	flow_groups_find(&groups, ran->run[0].tally);
	for (int g = 0; g < groups.n; g++)
		if (strcmp(groups.name[g], flows) == 0)
			flow_groups_count(&groups, ran->run[0].tally, g, span, &p);
	assert_true(p.waits.n + p.queued > 50);
	return p;
}

static double quantile_s(const char *flows, const struct scenario_span *span, double part)
{
	struct flow_period p = came_in(flows, span);
	double s = (double)numbers_quantile(&p.waits, part) / 1000;
	free(p.waits.value);
	return s;
}

static int64_t in_queue(const char *flows, const struct scenario_span *span)
{
	struct flow_period p = came_in(flows, span);
	free(p.waits.value);
	return p.queued;
}

/* Recipients that were sent in that time, at the receiver that blocks, from this source. */
static int64_t sent_from(const char *source, const struct scenario_span *span)
{
	const struct tally *t = ran->run[0].tally;
	int64_t n = 0;
	for (int64_t i = 0; i < t->nfate; i++) {
		int64_t at_ms = t->fate[i].came_ms + t->fate[i].wait_ms;
		n += t->fate[i].wait_ms >= 0 && t->fate[i].site && at_ms >= span->from_ms &&
		     at_ms < span->to_ms && strstr(t->fate[i].site->key, "mx.block.test") &&
		     strstr(t->fate[i].site->key, source);
	}
	return n;
}

/* A transaction is 0.3 or 2 s. What waits longer is at the receiver that has a limit, where a place comes free every two seconds. */
static void nobody_waits_for_a_stolen_login(void **state)
{
	(void)state;
	run_row("as it is", BLOCK_554);
	assert_true(quantile_s("shop", &flood, 0.5) < 2.5);
	assert_true(quantile_s("shop", &flood, 0.95) < 6);
	assert_true(quantile_s("shop", &flood, 1) < 20);
	assert_true(quantile_s("stolen", &flood, 0.95) > 600);
	assert_true(in_queue("stolen", &flood) > 500); /* it was suspended */
	assert_int_equal(in_queue("shop", &day), 0);
}

static void as_one_flow_all_wait_for_it(void **state)
{
	(void)state;
	run_row("one flow", BLOCK_554);
	assert_true(quantile_s("shop", &flood, 0.95) > 600);
	assert_int_equal(in_queue("stolen", &flood), 0); /* and nothing can be suspended */
}

static void another_address_takes_over_while_one_is_blocked(void **state)
{
	static const int ways[] = {BLOCK_554, BLOCK_550, BLOCK_450};
	const struct scenario_span before = {11 * HOUR_MS, 15 * HOUR_MS},
				   within = {15 * HOUR_MS + HOUR_MS / 12, 24 * HOUR_MS},
				   after = {26 * HOUR_MS, 36 * HOUR_MS};
	(void)state;
	for (size_t i = 0; i < (SANITIZED ? 1 : sizeof ways / sizeof *ways); i++) {
		run_row("as it is", ways[i]);
		assert_true(sent_from("from=a", &before) > 20);
		assert_int_equal(sent_from("from=a", &within), 0);
		assert_true(sent_from("from=b", &within) > 200);
		assert_true(sent_from("from=a", &after) > 20);
		assert_true(quantile_s("shop", &block, 1) < 20);
		assert_int_equal(ran->run[0].tally->failed, 0);
		forget_run(NULL);
	}
}

static void one_address_alone_waits_or_loses(void **state)
{
	(void)state;
	if (SANITIZED)
		skip();
	run_row("one address", BLOCK_554);
	assert_true(quantile_s("shop", &block, 0.95) > 3600);
	assert_int_equal(ran->run[0].tally->failed, 0);
	forget_run(NULL);
	run_row("one address", BLOCK_550);
	assert_true(ran->run[0].tally->failed > 200);
}

#define TEST(name) cmocka_unit_test_teardown(name, forget_run)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nobody_waits_for_a_stolen_login),
		TEST(as_one_flow_all_wait_for_it),
		TEST(another_address_takes_over_while_one_is_blocked),
		TEST(one_address_alone_waits_or_loses),
	};
	return RUN(tests);
}
