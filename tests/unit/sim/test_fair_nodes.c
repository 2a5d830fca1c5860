/* SPDX-License-Identifier: ISC */
/* Fair between senders on several nodes behind a balancer: leases share what a host takes among the nodes, and each node serves its flows
 * by their weights. So where the flows have mail on all nodes the sums are fair, and where one has mail on some only, it has its part
 * of what those have. */
#include "tests/unit/base/sanitized.h"
#include "tests/unit/sim/unit.h"

enum { CONNECTIONS = 20, SECONDS = 60, SEEDS = SANITIZED ? 1 : 3 };

#define HOST                                                                                       \
	"transport \"smtp\" { destination_concurrency_limit = 1000 host_connection_limit = 20 }\n" \
	"site \"dest\" { domains = {\"dest.test\"} mx = {\"10 mx.test\"} }\n"                      \
	"host \"mx.test\" { transaction = 200ms }\n"

static int messages_of(int rate)
{
	return rate * (SECONDS - 25);
}

/* Its mail comes to all nodes, or to one, and no more of it near the end. */
static void put_flow(struct buf *to, const char *flow, int rate, int node)
{
	buf_printf(to,
		   "arrival \"%s\" { domains = {\"dest.test\"} flows = {\"%s\"} node = %d "
		   "distribution = \"poisson\" messages = %d rate = \"%d/s\" }\n",
		   flow, flow, node, messages_of(rate), rate);
}

static void put_nodes(struct buf *to, int nodes)
{
	buf_printf(to, "simulation { duration = %ds settle = 10s nodes = %d }\n" HOST, SECONDS,
		   nodes);
}

static struct tally *run_with_seed(struct buf *text, uint64_t seed)
{
	struct buf errors = {0};
	ran_of = scenario_of(buf_cstr(text));
	ran = sim_run(ran_of, seed, NULL, &errors);
	assert_non_null(ran);
	assert_int_equal(sim_faults(ran), 0);
	buf_fini(&errors);
	buf_fini(text);
	return ran->run[0].tally;
}

static int64_t served(struct tally *t, const char *flow)
{
	return tally_flow(t, flow)->waits.n;
}

static double longest_s(struct tally *t, const char *flow)
{
	return (double)numbers_quantile(&tally_flow(t, flow)->waits, 1) / 1000;
}

/* At each node the virtual times of flows that have mail lie within one transaction of each (backlog.h), so that over all nodes a flow has its
 * part but for one transaction a node, and as much of the sum of what all flows are off; and what is on connections still. */
static int64_t bound(int nodes, int flows)
{
	return nodes * (1 + flows) + CONNECTIONS;
}

static void weights_hold_over_all_nodes(void **state)
{
	static const struct {
		const char *name;
		int weight;
	} flows[] = {{"a", 1}, {"b", 2}, {"c", 5}};
	static const int nodes[] = {1, 3, 10, 20};
	for (size_t i = 0; i < (SANITIZED ? 2 : sizeof nodes / sizeof *nodes); i++)
		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			struct buf text = {0};
			put_nodes(&text, nodes[i]);
			for (int f = 0; f < 3; f++) {
				buf_printf(&text, "flow \"%s\" { weight = %d }\n", flows[f].name,
					   flows[f].weight);
				put_flow(&text, flows[f].name, 150, 0);
			}
			struct tally *t = run_with_seed(&text, seed);
			assert_true(t->sent > 5000);
			for (int f = 0; f < 3; f++) {
				int64_t off =
					served(t, flows[f].name) - t->sent * flows[f].weight / 8;
				assert_in_range(off + bound(nodes[i], 3), 0,
						2 * bound(nodes[i], 3));
			}
			forget_run(state);
		}
}

/* A place on its node comes free after one transaction at most, of 0.24 s, and then it has one of its own. Who floods waits for himself. */
static void nobody_waits_for_a_flood_on_all_nodes(void **state)
{
	for (int nodes = 3; nodes <= (SANITIZED ? 3 : 10); nodes += 7)
		for (int one = 0; one < 2; one++) {
			struct buf text = {0};
			put_nodes(&text, nodes);
			put_flow(&text, "flood", 300, 0);
			put_flow(&text, "quiet", 1, one);
			struct tally *t = run_with_seed(&text, (uint64_t)nodes);
			assert_int_equal(served(t, "quiet"), messages_of(1));
			assert_true(longest_s(t, "quiet") < 1);
			assert_true(numbers_mean(&tally_flow(t, "flood")->waits) > 10000);
			forget_run(state);
		}
}

/* Nor does he who sends little wait in the queue for who sends more than may be active, on one node as on several. */
static void nobody_waits_for_a_flood_beyond_the_active_queue(void **state)
{
	for (int nodes = 0; nodes <= 4; nodes += 4) {
		struct buf text = {0};
		put_nodes(&text, nodes);
		buf_puts(&text, "queue { message_active_limit = 200 }\n");
		put_flow(&text, "flood", 300, 0);
		put_flow(&text, "quiet", 1, 0);
		struct tally *t = run_with_seed(&text, 1);
		assert_int_equal(served(t, "quiet"), messages_of(1));
		assert_true(longest_s(t, "quiet") < 1);
		assert_true(t->sent > 5000);
		forget_run(state);
	}
}

/* On its node it shares with the others what that node has: of n nodes an nth. */
static void a_flow_whose_mail_is_on_one_node_has_its_part_of_that(void **state)
{
	for (int nodes = 2; nodes <= 10; nodes += nodes < 4 ? 2 : 6) {
		struct buf text = {0};
		put_nodes(&text, nodes);
		put_flow(&text, "all", 300, 0);
		put_flow(&text, "one", 100, 1);
		struct tally *t = run_with_seed(&text, 1);
		int64_t part = t->sent / nodes / 2;
		assert_in_range(served(t, "one"), part - part / 10, part + part / 10);
		forget_run(state);
	}
}

/* What a host takes is shared by nodes: they do not know of each other's flows. */
static void between_nodes_weights_do_not_count(void **state)
{
	(void)state;
	struct buf text = {0};
	put_nodes(&text, 2);
	buf_puts(&text, "flow \"heavy\" { weight = 5 }\n");
	put_flow(&text, "light", 300, 1);
	put_flow(&text, "heavy", 300, 2);
	struct tally *t = run_with_seed(&text, 1);
	int64_t half = t->sent / 2;
	assert_in_range(served(t, "heavy"), half - half / 20, half + half / 20);
}

/* A connection goes from node to node there, and a flow's mail waits until its node has one: ten seconds, but no longer. */
static void with_fewer_connections_than_nodes_a_flow_waits_for_its_node(void **state)
{
	(void)state;
	struct buf text = {0};
	put_nodes(&text, 40);
	put_flow(&text, "flood", 300, 0);
	put_flow(&text, "quiet", 1, 0);
	struct tally *t = run_with_seed(&text, 1);
	assert_int_equal(served(t, "quiet"), messages_of(1));
	assert_true(longest_s(t, "quiet") > 3 && longest_s(t, "quiet") < 15);
}

static void the_rate_of_a_flow_is_that_of_all_nodes_together(void **state)
{
	static const int nodes[] = {1, 3, 10, 40};
	for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
		struct buf text = {0};
		put_nodes(&text, nodes[i]);
		buf_puts(&text, "flow \"slow\" { rate = 10/s }\n");
		put_flow(&text, "slow", 20, 0);
		put_flow(&text, "other", 20, 0);
		struct tally *t = run_with_seed(&text, 1);
		/* At first a node asks nobody yet, for two seconds at most, or has what it takes to be its part. */
		assert_in_range(served(t, "slow"), 10 * (SECONDS - 2) - 5, 10 * SECONDS + 10);
		assert_int_equal(served(t, "other"), messages_of(20));
		assert_true(longest_s(t, "other") < 3);
		forget_run(state);
	}
}

/* Mail on one node alone has all of it. */
static void a_rate_is_where_the_mail_is(void **state)
{
	(void)state;
	struct buf text = {0};
	put_nodes(&text, 5);
	buf_puts(&text, "flow \"slow\" { rate = 10/s }\n");
	put_flow(&text, "slow", 20, 2);
	struct tally *t = run_with_seed(&text, 1);
	assert_in_range(served(t, "slow"), 10 * SECONDS - 20, 10 * SECONDS + 10);
}

static void without_redis_each_node_has_its_part_of_a_rate(void **state)
{
	(void)state;
	struct buf text = {0};
	put_nodes(&text, 5);
	buf_puts(&text, "redis { outages = {\"10s..1h\"} }\nflow \"slow\" { rate = 10/s }\n");
	put_flow(&text, "slow", 20, 2);
	struct tally *t = run_with_seed(&text, 1);
	assert_in_range(served(t, "slow"), 10 * 10 + 2 * (SECONDS - 10) - 20,
			10 * 10 + 2 * (SECONDS - 10) + 20);
}

static void a_node_that_is_none_is_a_fault(void **state)
{
	(void)state;
	struct buf text = {0}, errors = {0};
	put_nodes(&text, 2);
	put_flow(&text, "a", 1, 3);
	assert_null(scenario_parse(buf_cstr(&text), "x.conf", &errors));
	assert_non_null(strstr(buf_cstr(&errors), "there is no node 3"));
	buf_clear(&text);
	put_flow(&text, "a#", 1, 0);
	assert_null(scenario_parse(buf_cstr(&text), "x.conf", &errors));
	assert_non_null(strstr(buf_cstr(&errors), "\"a#\" is not the name of a flow"));
	buf_fini(&text);
	buf_fini(&errors);
}

#define TEST(name) cmocka_unit_test_teardown(name, forget_run)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(weights_hold_over_all_nodes),
		TEST(nobody_waits_for_a_flood_on_all_nodes),
		TEST(nobody_waits_for_a_flood_beyond_the_active_queue),
		TEST(a_flow_whose_mail_is_on_one_node_has_its_part_of_that),
		TEST(between_nodes_weights_do_not_count),
		TEST(with_fewer_connections_than_nodes_a_flow_waits_for_its_node),
		TEST(the_rate_of_a_flow_is_that_of_all_nodes_together),
		TEST(a_rate_is_where_the_mail_is),
		TEST(without_redis_each_node_has_its_part_of_a_rate),
		TEST(a_node_that_is_none_is_a_fault),
	};
	return RUN(tests);
}
