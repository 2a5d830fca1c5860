/* SPDX-License-Identifier: ISC */
/* The scripts in a Redis of our own, beside the models that the simulation has of them. Run from the tree's root,
 * after tests/peers. */
#include "tests/unit/base/unit.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cluster/facts.h"
#include "cluster/lease.h"
#include "cluster/orders.h"
#include "cluster/reserve.h"
#include "cluster/resp.h"
#include "sim/model_redis.h"
#include "tests/unit/base/sanitized.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NODES = 9, MANY = 40, ROUNDS = SANITIZED ? 600 : 3000 };

static char folder[] = "/tmp/test_scripts.XXXXXX";
static pid_t redis;
static char socket_[sizeof folder + 8];
static redisContext *to;

static int start(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(socket_, sizeof socket_, "%s/s", folder);
	redis = fork();
	if (redis == 0) {
		execl("build/peers/bin/redis-server", "redis-server", "--port", "0", "--unixsocket",
		      socket_, "--save", "", "--dir", folder, "--logfile", "log", (char *)NULL);
		_exit(127);
	}
	for (int i = 0; i < 3000 && (!to || to->err); i++) {
		redisFree(to);
		usleep(10000);
		to = redisConnectUnix(socket_);
	}
	assert_int_equal(to->err, 0);
	freeReplyObject(redisCommand(to, "SET since 1"));
	return 0;
}

static int stop(void **state)
{
	(void)state;
	redisFree(to);
	kill(redis, SIGKILL);
	waitpid(redis, NULL, 0);
	char *remove = mem_printf("rm -r %s", folder);
	int rc = system(remove);
	free(remove);
	return rc;
}

static void numbers(redisReply *r, int n, int64_t out[])
{
	assert_non_null(r);
	if (r->type == REDIS_REPLY_ERROR)
		print_error("%s\n", r->str);
	assert_int_equal(r->type, REDIS_REPLY_ARRAY);
	assert_int_equal(r->elements, n);
	for (int i = 0; i < n; i++)
		out[i] = r->element[i]->integer;
	freeReplyObject(r);
}

static void lease_eval_by(const char *key, int node, const struct lease_ask *a, int64_t scan_ms,
			  struct lease_answer *out)
{
	int64_t n[4];
	numbers(redisCommand(to, "EVAL %s 2 %s since node%02d %lld %lld %lld %d %d %lld %d %d",
			     lease_script, key, node, (long long)a->limit, (long long)a->hold,
			     (long long)a->want, LEASE_TTL_MS, LEASE_TURN_MS, (long long)scan_ms,
			     LEASE_SCAN_ROWS, LEASE_SETTLE_MS),
		4, n);
	*out = (struct lease_answer){n[0], n[1], n[2], n[3]};
}

static void lease_eval(const char *key, int node, const struct lease_ask *a,
		       struct lease_answer *out)
{
	lease_eval_by(key, node, a, LEASE_SCAN_MS, out);
}

static unsigned chance = 5;

static int64_t any(int64_t below)
{
	chance = chance * 1103515245u + 12345u;
	return (int64_t)(chance / 65536u) % below;
}

/* Until one that begins and ends within a turn. */
static bool same_turn(int64_t before_ms)
{
	return before_ms / LEASE_TURN_MS == clock_wall_ms() / LEASE_TURN_MS;
}

static void compare_leases(const char *key, int nodes, int64_t limit, int64_t scan_ms)
{
	struct model_lease m;
	int64_t hold[MANY] = {0};
	bool sure = true; /* the last scan was in the same turn in both */
	model_lease_init(&m, nodes);
	for (int i = 0; i < ROUNDS; i++) {
		int node = (int)any(nodes);
		struct lease_ask ask = {limit + any(30), any(hold[node] + 1), any(20)};
		struct lease_answer real, model;
		int64_t now_ms = clock_wall_ms();
		lease_eval_by(key, node, &ask, scan_ms, &real);
		model_lease_eval(&m, node, &ask, now_ms, scan_ms, &model);
		sure = m.scanned == 0 ? sure : same_turn(now_ms);
		hold[node] = real.granted;
		assert_int_equal(real.others, model.others);
		assert_int_equal(real.wanting, model.wanting);
		if (!sure)
			break;
		assert_int_equal(real.fair, model.fair);
		assert_int_equal(real.granted, model.granted);
	}
	model_lease_fini(&m);
}

static void leases_are_as_in_the_model(void **state)
{
	(void)state;
	compare_leases("few", NODES, 2, LEASE_SCAN_MS);
}

static void and_those_of_many_looked_at_each_time(void **state)
{
	(void)state;
	compare_leases("each time", MANY, 2, 0);
	compare_leases("enough for each", MANY, MANY, 0);
}

static void and_those_of_many_as_they_were_summed_up(void **state)
{
	(void)state;
	compare_leases("summed", MANY, 2, 1000000000);
	compare_leases("summed, enough", MANY, MANY, 1000000000);
}

static void what_is_given_back_leaves_nothing_behind(void **state)
{
	(void)state;
	struct lease_answer a;
	for (int node = 0; node < NODES; node++)
		lease_eval("gone", node, &(struct lease_ask){20, 0, 2}, &a);
	for (int node = 0; node < NODES; node++)
		lease_eval("gone", node, &(struct lease_ask){20, 0, 0}, &a);
	redisReply *r = redisCommand(to, "EXISTS gone");
	assert_int_equal(r->integer, 0);
	freeReplyObject(r);
}

static void a_dead_nodes_leases_expire(void **state)
{
	(void)state;
	struct lease_answer a;
	int64_t n[4];
	numbers(redisCommand(to, "EVAL %s 2 dying since dead 10 0 10 3000 10000 200 16 2000",
			     lease_script),
		4, n);
	assert_int_equal(n[0], 10);
	lease_eval("dying", 1, &(struct lease_ask){10, 0, 6}, &a);
	assert_int_equal(a.granted, 0);
	usleep(3100000);
	lease_eval("dying", 1, &(struct lease_ask){10, 0, 6}, &a);
	assert_int_equal(a.granted, 6);
}

static void say(const char *command)
{
	redisReply *r = redisCommand(to, command);
	assert_non_null(r);
	assert_int_not_equal(r->type, REDIS_REPLY_ERROR);
	freeReplyObject(r);
}

static void when_all_is_lost_nobody_gets_more_before_all_had_their_say(void **state)
{
	(void)state;
	struct lease_answer a;
	for (int node = 0; node < 3; node++)
		lease_eval("lost", node, &(struct lease_ask){18, 0, 6}, &a);
	say("FLUSHALL");
	lease_eval("lost", 0, &(struct lease_ask){18, 6, 18}, &a);
	assert_int_equal(a.granted, 6);
	lease_eval("lost", 3, &(struct lease_ask){18, 0, 18}, &a);
	assert_int_equal(a.granted, 1);
	say("SET since 1");
	lease_eval("lost", 1, &(struct lease_ask){18, 6, 6}, &a);
	lease_eval("lost", 0, &(struct lease_ask){18, 6, 18}, &a);
	assert_in_range(a.granted, 6, 18 - 6 - 1);
}

/* Of one host alone: Redis was short of memory, or somebody has removed them. */
static void when_one_key_is_lost_nobody_gets_more_before_all_had_their_say(void **state)
{
	(void)state;
	const char *const losses[] = {"DEL one", "SET one nonsense"};
	struct lease_answer a;
	say("SET since 1");
	for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
		for (int node = 0; node < 3; node++)
			lease_eval("one", node, &(struct lease_ask){18, 0, 6}, &a);
		say(losses[i]);
		lease_eval("one", 0, &(struct lease_ask){18, 6, 18}, &a);
		assert_int_equal(a.granted, 6);
		lease_eval("one", 3, &(struct lease_ask){18, 0, 18}, &a);
		assert_int_equal(a.granted, 1);
		lease_eval("one", 1, &(struct lease_ask){18, 6, 6}, &a);
		lease_eval("one", 2, &(struct lease_ask){18, 5, 5}, &a);
		lease_eval("one", 0, &(struct lease_ask){18, 5, 6}, &a);
		assert_int_equal(a.granted, 5);
		say("HSET one \3 1"); /* a while ago */
		lease_eval("one", 0, &(struct lease_ask){18, 5, 6}, &a);
		assert_int_equal(a.granted, 6);
		say("DEL one");
	}
}

static void what_makes_no_sense_under_a_hosts_key_is_removed(void **state)
{
	(void)state;
	struct lease_answer a;
	say("LPUSH odd what");
	lease_eval("odd", 0, &(struct lease_ask){20, 0, 4}, &a);
	assert_int_equal(a.granted, 1);
	say("HSET odd \3 nonsense");
	lease_eval("odd", 0, &(struct lease_ask){20, 1, 4}, &a);
	assert_int_equal(a.granted, 4);
	say("HSET odd a v2 b -1 c 99999999999999999999999999999");
	say("SET since nonsense");
	lease_eval("odd", 0, &(struct lease_ask){20, 4, 20}, &a);
	assert_int_equal(a.granted, 4);
	say("SET since 1");
	lease_eval("odd", 0, &(struct lease_ask){20, 4, 20}, &a);
	assert_int_equal(a.granted, 20);
	redisReply *r = redisCommand(to, "HLEN odd");
	assert_int_equal(r->integer, 1);
	freeReplyObject(r);
}

static void rate_eval(const struct reserve_ask *a, struct reserve_answer *out)
{
	int64_t n[4];
	numbers(redisCommand(to, "EVAL %s 2 rate since %lld %lld %lld %lld %lld %d %lld %lld",
			     reserve_script, (long long)a->interval_us, (long long)a->spent,
			     (long long)a->want, (long long)a->ahead_us, (long long)a->most_us,
			     a->forget, (long long)a->since, (long long)a->known_us),
		4, n);
	*out = (struct reserve_answer){n[0], n[1], n[2], n[3]};
}

/* All but what hangs on when exactly it was computed. */
static void rates_are_as_in_the_model(void **state)
{
	(void)state;
	struct model_rate m = {0};
	int compared = 0;
	int64_t last_us = 0; /* what the model keeps is as late as that */
	for (int i = 0; i < ROUNDS; i++) {
		struct reserve_ask ask = {.interval_us = any(500000),
					  .spent = any(4),
					  .want = any(2) ? any(20) : 0,
					  .ahead_us = 100000,
					  .most_us = 8000000,
					  .forget = any(5) == 0};
		struct reserve_answer real, model;
		int64_t before_us = clock_wall_us();
		rate_eval(&ask, &real);
		int64_t at_us = m.at_us, now_us = clock_wall_us();
		int64_t took_us = now_us - before_us, late_us = took_us + last_us + 1000;
		last_us = took_us;
		model_rate_eval(&m, &ask, now_us, &model);
		if (real.granted == model.granted) {
			assert_in_range(real.from_us - model.from_us + late_us, 0, 2 * late_us);
			assert_in_range(real.next_us - model.next_us + late_us, 0, 2 * late_us);
			compared++;
		} else {
			assert_in_range(at_us + ask.spent * ask.interval_us - now_us + late_us,
					100000, 100000 + 2 * late_us);
		}
		m.at_us = now_us + real.next_us;
	}
	assert_in_range(compared, ROUNDS * 9 / 10, ROUNDS);
}

static void what_all_had_had_is_told_to_a_redis_that_has_lost_it(void **state)
{
	(void)state;
	struct reserve_ask ask = {
		.interval_us = 1000000, .spent = 5, .ahead_us = 100000, .most_us = 20000000};
	struct reserve_answer a;
	say("DEL rate");
	rate_eval(&ask, &a);
	assert_in_range(a.next_us, 4900000, 5000000);
	ask.since = a.since;
	ask.known_us = 3000000; /* of the same data: they know better */
	ask.spent = 1;
	rate_eval(&ask, &a);
	assert_in_range(a.next_us, 5900000, 6000000);
	say("FLUSHALL");
	ask.known_us = a.next_us;
	rate_eval(&ask, &a);
	assert_in_range(a.next_us, 6900000, 7000000);
	assert_int_not_equal(a.since, ask.since);
	say("SET since 1");
	for (int i = 0; i < 4; i++) {
		static const char *const odd[] = {"SET rate nan", "SET rate inf", "SET rate -1e300",
						  "SADD rate a"};
		say("DEL rate");
		say(odd[i]);
		ask.since = 1;
		rate_eval(&ask, &a);
		assert_in_range(a.next_us, 900000, 1000000);
	}
}

static int64_t fact_eval(const char *node, int64_t stamp)
{
	redisReply *r =
		redisCommand(to, "EVAL %s 2 host:h probe:h %s 60000 facts h 0 health %lld text",
			     facts_script, node, (long long)stamp);
	assert_non_null(r);
	assert_int_equal(r->type, REDIS_REPLY_INTEGER);
	int64_t n = r->integer;
	freeReplyObject(r);
	return n;
}

static bool is_told_by(const char *node)
{
	redisReply *r = redisCommand(to, "HGET host:h health");
	bool is = r->type == REDIS_REPLY_STRING && strstr(r->str, node);
	freeReplyObject(r);
	return is;
}

static void whose_clock_is_ahead_is_not_heard_and_keeps_nobody_from_being_heard(void **state)
{
	(void)state;
	const int64_t now_ms = clock_wall_ms(), hour_ms = 3600000;
	assert_int_equal(fact_eval("ahead", now_ms + hour_ms), -1);
	assert_false(is_told_by("ahead"));
	assert_int_equal(fact_eval("right", now_ms), 1);
	assert_true(is_told_by("right"));
	assert_int_equal(fact_eval("ahead", now_ms + hour_ms), -1);
	assert_true(is_told_by("right"));
	/* As it was there before it was dropped. */
	char *told = mem_printf("%lld\tahead\ttext", (long long)(now_ms + hour_ms));
	freeReplyObject(redisCommand(to, "HSET host:h health %s", told));
	free(told);
	assert_int_equal(fact_eval("right", now_ms + 1), 1);
	assert_true(is_told_by("right"));
	assert_int_equal(fact_eval("late", now_ms), 0);
}

static int64_t probe_eval(const char *node)
{
	redisReply *r = redisCommand(to, "EVAL %s 1 probe:h %s 30000", facts_probe_script, node);
	assert_non_null(r);
	assert_int_equal(r->type, REDIS_REPLY_INTEGER);
	int64_t n = r->integer;
	freeReplyObject(r);
	return n;
}

static void a_probe_that_nobody_ends_is_taken(void **state)
{
	static const char *const odd[] = {"LPUSH probe:h a", "SET probe:h a",
					  "SET probe:h a PX 3600000"};
	(void)state;
	say("DEL probe:h");
	assert_int_equal(probe_eval("one"), 1);
	assert_int_equal(probe_eval("two"), 0);
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		say("DEL probe:h host:h");
		say(odd[i]);
		assert_int_equal(fact_eval("right", clock_wall_ms()), 1);
		assert_true(is_told_by("right"));
		assert_int_equal(probe_eval("one"), 1);
		assert_int_equal(probe_eval("two"), 0);
	}
}

static redisReply *open_as(redisContext *user)
{
	redisReply *r = redisCommand(user, "EVAL %s 3 since passing nodes a 0", link_since_script);
	assert_non_null(r);
	return r;
}

/* The user must not have this: the opening says so. */
static void assert_missed(redisContext *user, const char *command)
{
	char *lacks = mem_printf("ACL SETUSER user -%s", command);
	char *says = mem_printf("NOPERM %s: ", command);
	say(lacks);
	redisReply *r = open_as(user);
	assert_int_equal(r->type, REDIS_REPLY_ERROR);
	if (strncmp(r->str, says, strlen(says)) != 0)
		fail_msg("without %s: %s", command, r->str);
	freeReplyObject(r);
	say("ACL SETUSER user +@all");
	free(lacks);
	free(says);
}

static int miss_each_of(redisContext *user, const char *script)
{
	char command[16];
	int n = 0;
	for (const char *at = script; (at = strstr(at, "call('")) != NULL; n++) {
		at += strlen("call('");
		snprintf(command, sizeof command, "%.*s", (int)strcspn(at, "'"), at);
		assert_missed(user, command);
	}
	return n;
}

static void a_right_that_anything_of_ours_needs_is_missed_when_the_link_opens(void **state)
{
	static const char *const scripts[] = {
		facts_script,	   lease_script,       reserve_script,	  nodes_beat_script,
		nodes_look_script, orders_give_script, link_since_script, facts_probe_script,
	};
	static const char *const commands[] = {"SCAN", "HGETALL", "PUBLISH"};
	redisContext *user = redisConnectUnix(socket_);
	(void)state;
	say("ACL SETUSER user on nopass ~* &* +@all");
	freeReplyObject(redisCommand(user, "AUTH user any"));
	redisReply *r = open_as(user);
	assert_int_equal(r->type, REDIS_REPLY_INTEGER);
	freeReplyObject(r);
	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
		assert_true(miss_each_of(user, scripts[i]) > 0);
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		assert_missed(user, commands[i]);
	r = redisCommand(to, "EXISTS passing");
	assert_int_equal(r->integer, 0);
	freeReplyObject(r);
	redisFree(user);
}

static int64_t since_after(const char *mark)
{
	freeReplyObject(
		redisCommand(to, "EVAL %s 3 since passing rows a %s", link_since_script, mark));
	redisReply *r = redisCommand(to, "GET since");
	int64_t since = strtoll(r->str, NULL, 10);
	freeReplyObject(r);
	return since;
}

static void older_data_are_young_data(void **state)
{
	(void)state;
	say("SET since 1");
	assert_int_equal(since_after("0"), 1);
	say("HSET rows a 200\ttext");
	assert_int_equal(since_after("200"), 1);
	assert_int_equal(since_after("100"), 1);
	assert_true(since_after("201") > 1);
	say("SET since 1");
	say("DEL rows");
	assert_true(since_after("200") > 1);
	say("SET since 1");
	say("SET rows nonsense");
	assert_true(since_after("200") > 1);
	say("SET since 1");
	assert_int_equal(since_after("0"), 1);
	say("DEL rows");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leases_are_as_in_the_model),
		cmocka_unit_test(and_those_of_many_looked_at_each_time),
		cmocka_unit_test(and_those_of_many_as_they_were_summed_up),
		cmocka_unit_test(what_is_given_back_leaves_nothing_behind),
		cmocka_unit_test(a_dead_nodes_leases_expire),
		cmocka_unit_test(when_all_is_lost_nobody_gets_more_before_all_had_their_say),
		cmocka_unit_test(when_one_key_is_lost_nobody_gets_more_before_all_had_their_say),
		cmocka_unit_test(what_makes_no_sense_under_a_hosts_key_is_removed),
		cmocka_unit_test(rates_are_as_in_the_model),
		cmocka_unit_test(what_all_had_had_is_told_to_a_redis_that_has_lost_it),
		cmocka_unit_test(
			whose_clock_is_ahead_is_not_heard_and_keeps_nobody_from_being_heard),
		cmocka_unit_test(a_probe_that_nobody_ends_is_taken),
		cmocka_unit_test(a_right_that_anything_of_ours_needs_is_missed_when_the_link_opens),
		cmocka_unit_test(older_data_are_young_data),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
