/* SPDX-License-Identifier: ISC */
/* A cluster in the simulation: limits hold over all nodes together, are made use of, and Redis is not asked more
 * than that takes. */
#include "tests/unit/sim/unit.h"

#define CLUSTER(nodes, redis, transport, host, mail)                                               \
	"simulation { duration = 40s settle = 10s nodes = " nodes " }\n"                           \
	"redis { " redis " }\n"                                                                    \
	"transport \"smtp\" { destination_concurrency_limit = 1000 " transport " }\n"              \
	"site \"dest\" { domains = {\"dest.test\"} mx = {\"10 mx.test\"} }\n"                      \
	"host \"mx.test\" { transaction = 200ms " host " }\n"                                      \
	"arrival \"a\" { domains = {\"dest.test\"} distribution = \"poisson\" " mail " }\n"

static const struct tally_host *dest(const struct tally *t)
{
	assert_int_equal(t->nodes.nhost, 1);
	return &t->nodes.host[0];
}

static void all_at_work(const struct tally *t, int limit)
{
	assert_int_equal(dest(t)->limit, limit);
	assert_int_equal(dest(t)->most, limit);
	assert_true(dest(t)->open / (double)dest(t)->samples > 0.9 * limit);
}

static void ten_nodes_share_what_a_host_takes(void **state)
{
	(void)state;
	all_at_work(run_text(CLUSTER("10", "", "host_connection_limit = 25", "",
				     "messages = 4800 rate = \"120/s\"")),
		    25);
}

/* Not one for each: as much goes through all the same, and nobody is left out. */
static void forty_nodes_share_what_is_not_one_for_each(void **state)
{
	(void)state;
	const struct tally *t = run_text(CLUSTER("40", "", "host_connection_limit = 10", "",
						 "messages = 1600 rate = \"40/s\""));
	all_at_work(t, 10);
	assert_true(tally_messages(t) / tally_seconds(t) > 22);
}

/* Each node has at least one, so that mail goes on: this is what the others are to be told from. */
static void without_redis_the_limit_is_what_each_may_have_at_least(void **state)
{
	(void)state;
	const struct tally *t =
		run_text(CLUSTER("10", "outages = {\"0s..1h\"}", "host_connection_limit = 5", "",
				 "messages = 4000 rate = \"100/s\""));
	assert_in_range(dest(t)->most, 6, 50);
	assert_true(t->sent > 500);
}

static void a_rate_is_that_of_all_together(void **state)
{
	(void)state;
	double mean, worst;
	const struct tally *t = run_text(CLUSTER("10", "", "destination_rate = \"10/s\"", "",
						 "messages = 600 rate = \"15/s\""));
	tally_rates(t, &mean, &worst);
	assert_true(t->sites->windows.n >= 2);
	assert_true(mean > -0.05 && mean < 0.05);
	assert_true(worst > -0.1 && worst < 0.1);
}

/* Each has a message now and then: what it reserves, it uses. */
static void nothing_of_a_rate_is_lost_to_nodes_with_little_mail(void **state)
{
	(void)state;
	double mean, worst;
	const struct tally *t =
		run_text(CLUSTER("60", "", "destination_rate = \"50/s\" host_connection_limit = 0",
				 "", "messages = 2480 rate = \"62/s\""));
	tally_rates(t, &mean, &worst);
	assert_true(t->sites->windows.n >= 2);
	assert_true(mean > -0.03 && mean < 0.03);
	assert_true(worst > -0.05 && worst < 0.05);
}

static void all_know_that_a_host_is_back_when_one_does(void **state)
{
	(void)state;
	const struct tally *t = run_text(CLUSTER("20", "", "", "outages = {\"15s..25s\"}",
						 "messages = 2000 rate = \"50/s\""));
	assert_int_equal(dest(t)->knew, 20);
	assert_true(dest(t)->first_back_ms >= 25000);
	assert_in_range(dest(t)->all_back_ms, dest(t)->first_back_ms, dest(t)->first_back_ms + 100);
	/* Each finds out by itself that what served it serves no more; then one probes for all. */
	assert_in_range(dest(t)->tried_out, 1, 20 * 2 + 10);
}

static void who_was_away_comes_back_without_a_storm(void **state)
{
	(void)state;
	const struct tally *t = run_text(
		CLUSTER("30", "scripts = 20000 commands = 20000 outages = {\"15s..20s\"}",
			"host_connection_limit = 60", "", "messages = 4000 rate = \"100/s\""));
	assert_int_equal(t->nodes.given_up, 0);
	assert_true(t->nodes.wait_most_us < 500000);
	assert_true(tally_busy(t) < 0.3);
	assert_true(t->sent > 3900);
}

static void a_redis_that_is_far_too_slow_keeps_no_mail(void **state)
{
	(void)state;
	const struct tally *t =
		run_text(CLUSTER("10", "scripts = 20 commands = 20", "host_connection_limit = 60",
				 "", "messages = 2000 rate = \"50/s\""));
	assert_true(t->sent > 1900);
	assert_true(t->nodes.given_up > 10);
}

/* Where looking at all takes longest. */
static void a_lease_costs_the_same_with_many_nodes(void **state)
{
	(void)state;
	double us[2];
	for (int many = 0; many < 2; many++) {
		const struct tally_nodes *n =
			&run_text(many ? CLUSTER("60", "", "host_connection_limit = 60", "",
						 "messages = 8000 rate = \"200/s\"")
				       : CLUSTER("10", "", "host_connection_limit = 60", "",
						 "messages = 8000 rate = \"200/s\""))
				 ->nodes;
		us[many] = n->busy_us[REDIS_LEASE] / (double)n->ops[REDIS_LEASE];
		forget_run(state);
	}
	assert_true(us[1] < 1.5 * us[0]);
}

static void what_is_told_reaches_each_node(void **state)
{
	(void)state;
	const struct tally_nodes *n =
		&run_text(CLUSTER("10", "", "", "", "messages = 400 rate = \"10/s\""))->nodes;
	assert_int_equal(n->ops[REDIS_DELIVERY] % 10, 0);
	assert_true(n->ops[REDIS_DELIVERY] <= 10 * n->ops[REDIS_FACT]);
	assert_in_range(n->ops[REDIS_BEAT], 10 * 29, 10 * 31);
	assert_in_range(n->ops[REDIS_LOOK], 10 * 14, 10 * 16);
}

static void the_same_seed_gives_the_same_run(void **state)
{
	(void)state;
	struct buf first = {0}, second = {0};
	run_text(CLUSTER("5", "", "host_connection_limit = 7", "outages = {\"15s..20s\"}",
			 "messages = 1000 rate = \"30/s\""));
	sim_json(ran, &first);
	sim_free(&ran);
	ran = run(ran_of);
	sim_json(ran, &second);
	assert_string_equal(buf_cstr(&first), buf_cstr(&second));
	buf_fini(&first);
	buf_fini(&second);
}

static void is_wrong(const char *text, const char *why)
{
	struct buf errors = {0};
	assert_null(scenario_parse(text, "test.conf", &errors));
	assert_non_null(strstr(buf_cstr(&errors), why));
	buf_fini(&errors);
}

static void nodes_need_an_end_and_late_binding(void **state)
{
	(void)state;
	is_wrong("simulation { nodes = 2 }\n" ONE_HOST("") ARRIVE(""), "nodes need a duration");
	is_wrong("row \"2\" { nodes = 2 }\n" ONE_HOST("") ARRIVE(""), "nodes need a duration");
	is_wrong("simulation { nodes = 2 duration = 1m binding = \"both\" }\n" ONE_HOST("")
			 ARRIVE(""),
		 "nodes bind late");
	is_wrong("redis { outages = {\"5s\"} }\n" ONE_HOST("") ARRIVE(""), "10m..1h");
}

#define TEST(name) cmocka_unit_test_teardown(name, forget_run)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ten_nodes_share_what_a_host_takes),
		TEST(forty_nodes_share_what_is_not_one_for_each),
		TEST(without_redis_the_limit_is_what_each_may_have_at_least),
		TEST(a_rate_is_that_of_all_together),
		TEST(nothing_of_a_rate_is_lost_to_nodes_with_little_mail),
		TEST(all_know_that_a_host_is_back_when_one_does),
		TEST(who_was_away_comes_back_without_a_storm),
		TEST(a_redis_that_is_far_too_slow_keeps_no_mail),
		TEST(a_lease_costs_the_same_with_many_nodes),
		TEST(what_is_told_reaches_each_node),
		TEST(the_same_seed_gives_the_same_run),
		TEST(nodes_need_an_end_and_late_binding),
	};
	return RUN(tests);
}
