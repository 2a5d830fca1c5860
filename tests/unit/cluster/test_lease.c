/* SPDX-License-Identifier: ISC */
/* Nodes that share the connections to a host: the state machine of each, over a model of the script. */
#include "cluster/lease.h"
#include "sim/model_redis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { NODES_MAX = 40, STEP_MS = 10 };

/* A node as qmgr is one: it opens what it may, and ends what it had better not have. */
struct node {
	struct lease lease;
	bool dead, cut, waiting;
	struct lease_ask ask;
	int64_t hold, open, demand;
	uint64_t heard;
	struct lease_view view;
};

static struct model_lease redis;
static struct node node[NODES_MAX];
static int nodes;
static int64_t limit, now_ms, highest;

static void begin(int n, int64_t of)
{
	nodes = n;
	limit = of;
	now_ms = 1000000;
	highest = 0;
	memset(node, 0, sizeof node);
	model_lease_init(&redis, n);
	for (int i = 0; i < n; i++)
		node[i].view = (struct lease_view){.nodes = n};
}

/* With what it has summed up. */
static void lose_all(void)
{
	model_lease_fini(&redis);
	model_lease_init(&redis, nodes);
}

static int64_t held_in_redis(void)
{
	int64_t sum = 0;
	for (int i = 0; i < redis.nodes; i++)
		sum += redis.row[i].until_ms > now_ms ? redis.row[i].hold : 0;
	return sum;
}

static void tell(struct node *n)
{
	int64_t want = n->demand > n->open ? n->demand : n->open;
	lease_tell(&n->lease, limit, n->hold, want < limit ? want : limit, n->heard, now_ms);
}

static void hear(struct node *n)
{
	struct lease_offer o;
	if (!lease_offer(&n->lease, &n->view, &o))
		return;
	n->heard = o.number;
	int64_t to = o.allowed < o.fair || n->demand > o.fair ? o.fair : n->demand;
	to = to < o.allowed ? to : o.allowed;
	n->hold = o.allowed;
	while (n->open > to && n->open > 0)
		n->open--;
	n->hold = n->open > to ? n->open : to;
	while (n->open < n->hold && n->open < n->demand)
		n->open++;
	tell(n);
}

static void run_node(struct node *n, int i)
{
	struct lease_answer a;
	n->view.now_ms = now_ms;
	if (n->waiting && !n->cut) {
		model_lease_eval(&redis, i, &n->ask, now_ms, LEASE_SCAN_MS, &a);
		lease_answered(&n->lease, &a, now_ms);
	} else if (n->waiting) {
		lease_missed(&n->lease, now_ms);
	}
	n->waiting = false;
	while (n->open > n->demand)
		n->open--;
	while (n->open < n->hold && n->open < n->demand)
		n->open++;
	if (n->demand < n->hold || n->demand > n->hold) {
		n->hold = n->demand < n->hold ? n->demand : n->hold;
		tell(n);
	}
	hear(n);
	n->waiting = lease_ask(&n->lease, &n->view, &n->ask);
}

static int64_t open_now(void)
{
	int64_t sum = 0;
	for (int i = 0; i < nodes; i++)
		sum += node[i].dead ? 0 : node[i].open;
	return sum;
}

static void pass(int64_t ms)
{
	for (int64_t end_ms = now_ms + ms; now_ms < end_ms; now_ms += STEP_MS) {
		for (int i = 0; i < nodes; i++)
			if (!node[i].dead)
				run_node(&node[i], i);
		highest = open_now() > highest ? open_now() : highest;
	}
}

static void want(int i, int64_t n)
{
	node[i].demand = n;
}

static void cut(bool away)
{
	for (int i = 0; i < nodes; i++) {
		node[i].cut = away;
		node[i].view.away = away;
		node[i].view.since_ms = now_ms;
	}
}

/* Beyond the limit there is one for each node at most, which had none when Redis left. */
static void end_beyond(int64_t most)
{
	assert_in_range(highest, 0, limit + most);
	model_lease_fini(&redis);
}

static void end(void)
{
	end_beyond(0);
}

static void one_node_may_have_all(void **state)
{
	(void)state;
	begin(3, 20);
	pass(LEASE_SETTLE_MS);
	want(0, 50);
	pass(100);
	assert_int_equal(node[0].open, 20);
	end();
}

static void all_that_want_some_get_their_part(void **state)
{
	(void)state;
	begin(3, 20);
	want(0, 50);
	pass(5000);
	assert_int_equal(node[0].open, 20);
	want(1, 50);
	want(2, 4);
	pass(3000);
	assert_int_equal(node[0].open, 8);
	assert_int_equal(node[1].open, 8);
	assert_int_equal(node[2].open, 4);
	assert_int_equal(open_now(), 20);
	end();
}

static void what_is_not_used_goes_back(void **state)
{
	(void)state;
	begin(2, 10);
	want(0, 10);
	pass(3000);
	want(0, 0);
	pass(100);
	want(0, 4);
	pass(20);
	assert_int_equal(node[0].open, 4); /* they were not given back yet */
	want(0, 0);
	want(1, 10);
	pass(LEASE_RENEW_MS + 300);
	assert_int_equal(node[1].open, 10);
	want(1, 0);
	pass(2000);
	assert_true(lease_over(&node[0].lease) && lease_over(&node[1].lease));
	assert_int_equal(held_in_redis(), 0);
	end();
}

static void leases_of_a_dead_node_expire(void **state)
{
	(void)state;
	begin(2, 10);
	want(0, 10);
	want(1, 10);
	pass(5000);
	assert_int_equal(node[1].open, 5);
	node[0].dead = true;
	pass(LEASE_TTL_MS - 1500);
	assert_int_equal(node[1].open, 5);
	pass(1500 + LEASE_RENEW_MS);
	assert_int_equal(node[1].open, 10);
	end();
}

static void fewer_than_nodes_go_round(void **state)
{
	(void)state;
	int64_t had[5] = {0};
	begin(5, 2);
	for (int i = 0; i < 5; i++)
		want(i, 3);
	for (int i = 0; i < 1200; i++) {
		pass(100);
		for (int k = 0; k < 5; k++)
			had[k] += node[k].open;
	}
	for (int k = 0; k < 5; k++)
		assert_in_range(had[k], 340, 540);
	end();
}

static void without_redis_each_has_its_part(void **state)
{
	(void)state;
	begin(4, 10);
	want(0, 10);
	pass(3000);
	assert_int_equal(node[0].open, 10);
	cut(true);
	for (int i = 1; i < 4; i++)
		want(i, 10);
	pass(10000);
	for (int i = 0; i < 4; i++)
		assert_int_equal(node[i].open, 2);
	end_beyond(3);
}

static void at_least_one_each_without_redis(void **state)
{
	(void)state;
	begin(4, 2);
	cut(true);
	for (int i = 0; i < 4; i++)
		want(i, 10);
	pass(10000);
	assert_int_equal(open_now(), 4);
	model_lease_fini(&redis);
}

static void redis_that_has_forgotten_all_is_told_again(void **state)
{
	(void)state;
	begin(3, 20);
	want(0, 12);
	want(1, 50);
	pass(5000);
	assert_int_equal(open_now(), 20);
	lose_all();
	cut(true);
	pass(500);
	cut(false);
	want(2, 50);
	pass(10000);
	assert_int_equal(open_now(), 20);
	end();
}

/* Of ten it wants eight. */
static struct lease asking(const struct lease_view *v)
{
	struct lease l = {0};
	struct lease_ask ask;
	lease_tell(&l, 10, 0, 8, 0, v->now_ms);
	assert_true(lease_ask(&l, v, &ask));
	return l;
}

static void a_crossing_word_takes_nothing_back(void **state)
{
	(void)state;
	struct lease_view v = {.nodes = 1, .now_ms = 10000};
	struct lease l = asking(&v);
	struct lease_ask ask;
	struct lease_offer o;
	lease_answered(&l, &(struct lease_answer){8, 8, 0, 1}, v.now_ms);
	assert_true(lease_offer(&l, &v, &o));
	assert_int_equal(o.allowed, 8);
	lease_tell(&l, 10, 0, 3, 0, v.now_ms); /* said before it had heard of the offer */
	v.now_ms += LEASE_RENEW_MS;
	assert_true(lease_ask(&l, &v, &ask));
	assert_int_equal(ask.hold, 8);
	lease_tell(&l, 10, 3, 3, 1, v.now_ms);
	assert_int_equal(l.hold, 3);
}

static void an_answer_allows_no_more_than_the_limit(void **state)
{
	(void)state;
	struct lease_view v = {.nodes = 1, .now_ms = 10000};
	struct lease l = asking(&v);
	struct lease_offer o;
	lease_answered(&l, &(struct lease_answer){INT64_C(1) << 53, 8, 0, 1}, v.now_ms);
	assert_true(lease_offer(&l, &v, &o));
	assert_int_equal(o.allowed, 10);
}

/* Whatever comes and goes, there are never more than the limit. */
static void never_more_than_the_limit(void **state)
{
	(void)state;
	unsigned chance = 7;
	for (int round = 0; round < 60; round++) {
		begin(1 + round % 12, 1 + round * 7 % 50);
		if (limit < nodes)
			limit = nodes;
		for (int i = 0; i < 100; i++) {
			chance = chance * 1103515245u + 12345u;
			struct node *n = &node[chance / 65536u % (unsigned)nodes];
			int what = (int)(chance / 1024u % 20);
			if (what == 0)
				cut(!node[0].cut);
			else if (what < 18)
				n->demand = (int64_t)(chance / 4096u % 60);
			else if (what == 19 && node[0].cut)
				lose_all();
			pass(10 + chance / 8192u % 1500);
		}
		end_beyond(nodes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_node_may_have_all),
		cmocka_unit_test(all_that_want_some_get_their_part),
		cmocka_unit_test(what_is_not_used_goes_back),
		cmocka_unit_test(leases_of_a_dead_node_expire),
		cmocka_unit_test(fewer_than_nodes_go_round),
		cmocka_unit_test(without_redis_each_has_its_part),
		cmocka_unit_test(at_least_one_each_without_redis),
		cmocka_unit_test(redis_that_has_forgotten_all_is_told_again),
		cmocka_unit_test(a_crossing_word_takes_nothing_back),
		cmocka_unit_test(an_answer_allows_no_more_than_the_limit),
		cmocka_unit_test(never_more_than_the_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
