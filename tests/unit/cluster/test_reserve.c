/* SPDX-License-Identifier: ISC */
/* Nodes that share a rate: the state machine of each, over a model of the script. */
#include "cluster/reserve.h"
#include "qmgr/sched/pace.h"
#include "sim/model_redis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { NODES_MAX = 250, STEP_US = 1000, LATE_US = 2000 };

struct node {
	struct reserve r;
	struct reserve_ask ask;
	int64_t answer_us; /* when it comes; 0: none is under way */
	struct reserve_answer answer;
	struct pace pace;
	int64_t begun;
	int64_t next_us; /* what all have had, as far as it knows */
};

static struct model_rate redis;
static struct node node[NODES_MAX];
static struct conf_rate rate;
static int nodes;
static int64_t now_us, evals;

static void begin(int n, int64_t events, int64_t per_ms)
{
	nodes = n;
	rate = (struct conf_rate){events, per_ms};
	now_us = 1000000000;
	evals = 0;
	memset(node, 0, sizeof node);
	redis = (struct model_rate){0};
}

static void go_and_ask(struct node *n)
{
	if (n->answer_us || !reserve_ask(&n->r, nodes, now_us, &n->ask))
		return;
	evals++;
	model_rate_eval(&redis, &n->ask, now_us, &n->answer);
	n->answer_us = now_us + LATE_US;
}

static void take(struct node *n, const struct reserve_grant *g)
{
	if (n->pace.wanted)
		pace_granted(&n->pace, g->n, g->from_us, g->again_us);
}

static void arrive(struct node *n)
{
	struct reserve_grant g;
	if (!n->answer_us || now_us < n->answer_us)
		return;
	reserve_answered(&n->r, &n->answer, nodes, now_us, &g);
	n->next_us = reserve_next_us(&n->r, &n->answer, now_us);
	n->answer_us = 0;
	take(n, &g);
}

/* A node that always has mail. */
static void deliver(struct node *n, bool away)
{
	struct reserve_grant g;
	for (; pace_reserved_ms(&n->pace, &rate, now_us / 1000) <= now_us / 1000; n->begun++)
		pace_use(&n->pace, &rate);
	if (pace_wants(&n->pace, &rate, 100, now_us / 1000) > 0)
		reserve_want(&n->r, &rate, 100, now_us);
	if (away && reserve_alone(&n->r, nodes, now_us, &g))
		take(n, &g);
}

static int64_t begun_in(int64_t ms, bool away)
{
	int64_t sum = 0;
	for (int64_t end_us = now_us + ms * 1000; now_us < end_us; now_us += STEP_US)
		for (int i = 0; i < nodes; i++) {
			arrive(&node[i]);
			deliver(&node[i], away);
			if (!away)
				go_and_ask(&node[i]);
		}
	for (int i = 0; i < nodes; i++)
		sum += node[i].begun;
	return sum;
}

static void the_sum_is_the_rate(void **state)
{
	(void)state;
	static const struct {
		int nodes, events, per_ms;
	} of[] = {{1, 100, 1000},    {3, 200, 1000},   {3, 2000, 1000},	 {10, 50, 1000},
		  {100, 1000, 1000}, {250, 100, 1000}, {30, 6000, 60000}};
	for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
		begin(of[i].nodes, of[i].events, of[i].per_ms);
		int64_t before = begun_in(5000, false), n = begun_in(20000, false) - before;
		int64_t due = 20000LL * of[i].events / of[i].per_ms;
		assert_in_range(n, due * 95 / 100, due * 105 / 100);
		assert_in_range(evals, 1, 25 * 420);
	}
}

static void each_gets_some(void **state)
{
	(void)state;
	begin(3, 300, 1000);
	begun_in(20000, false);
	for (int i = 0; i < 3; i++)
		assert_in_range(node[i].begun, 1600, 2400);
}

static void without_redis_each_has_its_part_of_a_rate(void **state)
{
	(void)state;
	begin(4, 200, 1000);
	assert_in_range(begun_in(10000, true), 1950, 2100);
	for (int i = 0; i < 4; i++)
		assert_in_range(node[i].begun, 480, 530);
	begin(4, 1, 1000);
	assert_in_range(begun_in(12000, true), 8, 16);
}

/* Messages come as fast as can be, each passes where the node knows of room. */
static void what_has_passed_is_known_to_all(void **state)
{
	(void)state;
	begin(3, 1000, 3600000);
	int64_t passed = 0;
	for (int64_t end_us = now_us + 3000000; now_us < end_us; now_us += STEP_US)
		for (int i = 0; i < nodes; i++) {
			struct node *n = &node[i];
			arrive(n);
			struct gcra g = {n->next_us};
			if (gcra_due_us(&g, &rate, gcra_burst_us(&rate)) <= now_us) {
				gcra_count(&g, &rate, now_us);
				n->next_us = g.next_us;
				reserve_spend(&n->r, &rate, 1, now_us);
				passed++;
			}
			go_and_ask(n);
		}
	assert_in_range(passed, 1000, 1020);
	assert_in_range(evals, 1, passed / 2);
}

static void what_was_not_answered_is_told_again(void **state)
{
	(void)state;
	begin(1, 10, 60000);
	struct reserve *r = &node[0].r;
	struct reserve_ask ask;
	reserve_spend(r, &rate, 3, now_us);
	assert_true(reserve_ask(r, 1, now_us, &ask));
	assert_int_equal(ask.spent, 3);
	reserve_spend(r, &rate, 1, now_us);
	assert_false(reserve_ask(r, 1, now_us, &ask));
	reserve_missed(r);
	assert_true(reserve_ask(r, 1, now_us, &ask));
	assert_int_equal(ask.spent, 4);
	reserve_missed(r);
	reserve_spend(r, &rate, 1000, now_us);
	assert_true(reserve_ask(r, 1, now_us, &ask));
	assert_int_equal(ask.spent, 10);
}

static void what_is_to_begin_anew_or_to_be_known_is_asked_again_where_nobody_answers(void **state)
{
	(void)state;
	begin(1, 10, 60000);
	struct reserve *r = &node[0].r;
	struct reserve_ask ask;
	struct reserve_grant g;
	reserve_forget(r, now_us);
	for (int i = 0; i < 2; i++) {
		assert_true(reserve_ask(r, 1, now_us, &ask));
		assert_true(ask.forget);
		reserve_missed(r);
		assert_false(reserve_over(r, now_us + INT64_C(100000000)));
	}
	reserve_spend(r, &rate, 0, now_us);
	assert_true(reserve_ask(r, 1, now_us, &ask));
	assert_true(ask.forget);
	reserve_answered(r, &(struct reserve_answer){.since = 1}, 1, now_us, &g);
	assert_false(reserve_ask(r, 1, now_us, &ask));
	reserve_spend(r, &rate, 0, now_us);
	assert_true(reserve_ask(r, 1, now_us, &ask));
	assert_false(ask.forget);
	reserve_missed(r);
	assert_true(reserve_ask(r, 1, now_us, &ask));
}

static void nobody_gets_more_than_was_wanted(void **state)
{
	struct reserve r = {0};
	struct reserve_ask ask;
	struct reserve_grant g;
	(void)state;
	begin(1, 100, 1000);
	reserve_want(&r, &rate, 5, now_us);
	assert_true(reserve_ask(&r, 1, now_us, &ask));
	reserve_answered(&r, &(struct reserve_answer){.granted = INT64_C(1) << 53}, 1, now_us, &g);
	assert_int_equal(g.n, 5);
	reserve_spend(&r, &rate, 100, now_us);
	now_us += 10000000;
	assert_true(reserve_ask(&r, 1, now_us, &ask));
	reserve_answered(&r, &(struct reserve_answer){.granted = 7}, 1, now_us, &g);
	assert_int_equal(g.n, 0);
}

static void a_name_that_nobody_uses_is_forgotten(void **state)
{
	(void)state;
	begin(1, 10, 1000);
	struct reserve *r = &node[0].r;
	reserve_spend(r, &rate, 1, now_us);
	go_and_ask(&node[0]);
	assert_false(reserve_over(r, now_us + 100000000));
	now_us += LATE_US;
	arrive(&node[0]);
	assert_false(reserve_over(r, now_us));
	assert_true(reserve_over(r, now_us + 1000 * RESERVE_FORGET_MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sum_is_the_rate),
		cmocka_unit_test(each_gets_some),
		cmocka_unit_test(without_redis_each_has_its_part_of_a_rate),
		cmocka_unit_test(what_has_passed_is_known_to_all),
		cmocka_unit_test(what_was_not_answered_is_told_again),
		cmocka_unit_test(
			what_is_to_begin_anew_or_to_be_known_is_asked_again_where_nobody_answers),
		cmocka_unit_test(nobody_gets_more_than_was_wanted),
		cmocka_unit_test(a_name_that_nobody_uses_is_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
