/* SPDX-License-Identifier: ISC */
/* The link, to a Redis of its own at a Unix socket. Run from the tree's root, after tests/peers. */
#include "tests/unit/base/unit.h"

#include "base/clock.h"
#include "base/condition.h"
#include "base/mem.h"
#include "cluster/link.h"
#include "cluster/wire.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/test_link.XXXXXX";
static char where[sizeof folder + 32];
static pid_t redis;
static struct loop *l;
static struct link *link_;
static struct conf *conf;
static bool clustered; /* the next Redis is of a Redis Cluster */

static struct {
	int answers, none, readies, aways;
	char text[200], heard[200];
	int64_t number;
} seen;

static void receive(void *owner, struct note *n)
{
	(void)owner;
	(void)n;
}

static void end_wait(void *owner)
{
	*(bool *)owner = true;
}

/* Run the loop until that is so, for half a minute at most. */
#define UNTIL(condition)                                                                           \
	do {                                                                                       \
		bool late = false;                                                                 \
		struct timer limit;                                                                \
		timer_init(&limit, end_wait, &late);                                               \
		timer_start(&l->timers, &limit, clock_steady_ms() + 30000);                        \
		while (!late && !(condition))                                                      \
			ev_run(l->ev, EVRUN_ONCE);                                                 \
		timer_stop(&l->timers, &limit);                                                    \
		assert_true(condition);                                                            \
	} while (0)

static void start_redis(void)
{
	char socket[sizeof where];
	snprintf(socket, sizeof socket, "%s/s", folder);
	redis = fork();
	if (redis == 0) {
		execl("build/peers/bin/redis-server", "redis-server", "--port", "0", "--unixsocket",
		      socket, "--save", "", "--dir", folder, "--logfile", "log",
		      "--cluster-enabled", clustered ? "yes" : "no", (char *)NULL);
		_exit(127);
	}
	assert_true(redis > 0);
}

static void stop_redis(void)
{
	if (redis <= 0)
		return;
	kill(redis, SIGKILL);
	waitpid(redis, NULL, 0);
	redis = 0;
}

static void on_answer(void *owner, const redisReply *reply)
{
	(void)owner;
	seen.answers++;
	seen.none += !reply;
	if (!reply)
		return;
	snprintf(seen.text, sizeof seen.text, "%s", resp_text(reply));
	seen.number = reply->type == REDIS_REPLY_INTEGER ? reply->integer : -1;
}

static void on_change(void *owner, bool ready)
{
	(void)owner;
	seen.readies += ready;
	seen.aways += !ready;
}

static void on_heard(void *owner, const char *payload, size_t len)
{
	(void)owner;
	snprintf(seen.heard, sizeof seen.heard, "%.*s", (int)len, payload);
}

static void make_link(int64_t timeout_ms)
{
	memset(&seen, 0, sizeof seen);
	l = loop_new("test", receive, NULL, NULL);
	conf = conf_defaults();
	free(conf->cluster.redis);
	conf->cluster.redis = mem_strdup(where);
	conf->cluster.redis_timeout = timeout_ms;
	link_ = link_new(l, NULL, conf);
	link_hear(link_, "news", on_heard, NULL);
	link_watch(link_, on_change, NULL);
}

static int start_with(int64_t timeout_ms)
{
	make_link(timeout_ms);
	start_redis();
	link_begin(link_);
	UNTIL(link_ready(link_));
	return 0;
}

static int start(void **state)
{
	(void)state;
	return start_with(300);
}

/* With a sanitizer it takes a while to ask for much. */
static int start_patiently(void **state)
{
	(void)state;
	return start_with(60000);
}

static int stop(void **state)
{
	(void)state;
	link_free(&link_);
	loop_free(&l);
	conf_unref(conf);
	stop_redis();
	return 0;
}

static bool ask(const char *verb, const char *key, const char *value)
{
	const char *arg[] = {verb, key, value};
	return link_send(link_, on_answer, NULL, value ? 3 : 2, arg, NULL);
}

static void commands_are_answered_in_order(void **state)
{
	(void)state;
	assert_true(ask("SET", "a", "one"));
	assert_true(ask("GET", "a", NULL));
	UNTIL(seen.answers == 2);
	assert_string_equal(seen.text, "one");
	assert_true(ask("INCR", "a", NULL));
	UNTIL(seen.answers == 3);
	assert_non_null(strstr(seen.text, "not an integer"));
	assert_int_equal(seen.none, 0);
}

static void a_script_that_redis_does_not_know_is_sent_whole(void **state)
{
	struct link_script s;
	const char *arg[] = {"n", "5"};
	(void)state;
	link_script_init(&s, "return redis.call('INCRBY', KEYS[1], ARGV[1])");
	for (int i = 0; i < 2; i++)
		assert_true(link_eval(link_, &s, on_answer, NULL, 1, 2, arg));
	UNTIL(seen.answers == 2);
	assert_int_equal(seen.number, 10);
	assert_true(ask("SCRIPT", "FLUSH", NULL));
	assert_true(link_eval(link_, &s, on_answer, NULL, 1, 2, arg));
	UNTIL(seen.answers == 4);
	assert_int_equal(seen.number, 15);
}

static void what_is_published_is_heard(void **state)
{
	(void)state;
	link_publish(link_, "news", "out", 3);
	UNTIL(strcmp(seen.heard, "out") == 0);
}

static void a_redis_that_dies_is_away_until_it_is_back(void **state)
{
	(void)state;
	assert_int_equal(seen.readies, 1);
	stop_redis();
	UNTIL(seen.aways == 1);
	assert_false(ask("GET", "a", NULL));
	start_redis();
	UNTIL(seen.readies == 2);
	assert_true(ask("GET", "a", NULL));
	UNTIL(seen.answers == 1);
}

static void a_redis_that_stands_still_is_away_after_the_timeout(void **state)
{
	int64_t began_ms = clock_steady_ms();
	(void)state;
	kill(redis, SIGSTOP);
	assert_true(ask("GET", "a", NULL));
	UNTIL(seen.aways == 1);
	assert_true(clock_steady_ms() - began_ms >= 250);
	assert_int_equal(seen.none, 1);
	kill(redis, SIGCONT);
	UNTIL(seen.readies == 2);
}

static void one_of_which_nothing_is_asked_is_missed_too(void **state)
{
	(void)state;
	kill(redis, SIGSTOP);
	UNTIL(seen.aways == 1);
	assert_int_equal(seen.answers, 0);
}

static void count_answer(void *owner, const redisReply *reply)
{
	(void)owner;
	(void)reply;
}

static void one_that_takes_no_writes_is_away_until_it_does(void **state)
{
	static const char *const make[] = {"REPLICAOF", "127.0.0.1", "1"};
	char *command = mem_printf("build/peers/bin/redis-cli -s %s/s REPLICAOF NO ONE", folder);
	(void)state;
	assert_true(link_send(link_, count_answer, NULL, 3, make, NULL));
	assert_true(ask("SET", "a", "one"));
	UNTIL(seen.aways == 1);
	int64_t began_ms = clock_steady_ms();
	UNTIL(clock_steady_ms() > began_ms + 600);
	assert_int_equal(seen.readies, 1);
	assert_int_equal(system(command), 0);
	free(command);
	UNTIL(seen.readies == 2);
}

static bool is_away_for(const char *why)
{
	struct conditions now;
	bool is = false;
	conditions_take(&now);
	for (int i = 0; i < now.n; i++)
		is |= now.row[i].is == CONDITION_redis_away && strstr(now.row[i].reason, why);
	conditions_fini(&now);
	return is;
}

/* "OK", from a client of its own. */
static void configure(const char *what)
{
	char *command =
		mem_printf("build/peers/bin/redis-cli -e -s %s/s CONFIG SET %s", folder, what);
	assert_int_equal(system(command), 0);
	free(command);
}

static void one_that_lacks_replicas_to_write_to_is_away_until_it_has_enough(void **state)
{
	(void)state;
	configure("min-replicas-to-write 1");
	assert_true(ask("SET", "a", "one"));
	UNTIL(seen.aways == 1);
	assert_non_null(strstr(seen.text, "NOREPLICAS"));
	int64_t began_ms = clock_steady_ms();
	UNTIL(clock_steady_ms() > began_ms + 600);
	assert_int_equal(seen.readies, 1);
	configure("min-replicas-to-write 0");
	UNTIL(seen.readies == 2);
}

static void one_without_room_is_there(void **state)
{
	(void)state;
	configure("maxmemory 1");
	kill(redis, SIGSTOP);
	UNTIL(seen.aways == 1);
	kill(redis, SIGCONT);
	UNTIL(seen.readies == 2);
	assert_true(ask("SET", "a", "one"));
	UNTIL(seen.answers == 1);
	assert_non_null(strstr(seen.text, "OOM"));
}

static void one_that_refuses_what_opens_the_link_is_away(void **state)
{
	(void)state;
	make_link(300);
	link_begin(link_);
	UNTIL(is_away_for("connect: "));
	clustered = true;
	start_redis();
	clustered = false;
	UNTIL(link_ready(link_) || is_away_for("CLUSTERDOWN"));
	assert_false(link_ready(link_));
	stop(NULL);
}

static void no_more_is_awaited_than_is_allowed(void **state)
{
	int n = 0;
	(void)state;
	while (ask("GET", "a", NULL))
		n++;
	assert_int_equal(n, LINK_AWAITED_MAX);
	UNTIL(seen.answers == n);
	assert_true(ask("GET", "a", NULL));
}

static struct {
	int attempts;
	int64_t last_ms, longest_ms; /* steady clock; between the beginnings of two attempts */
} hole;

static void *fall_into_hole(void *owner, struct wire *w)
{
	int64_t now_ms = clock_steady_ms();
	(void)owner;
	(void)w;
	if (hole.attempts > 0 && now_ms - hole.last_ms > hole.longest_ms)
		hole.longest_ms = now_ms - hole.last_ms;
	hole.attempts += hole.last_ms != now_ms; /* two wires each */
	hole.last_ms = now_ms;
	return &hole;
}

static void say_into_hole(void *end, struct buf *out)
{
	(void)end;
	(void)out;
}

static void leave_hole(void *end)
{
	(void)end;
}

static int64_t longest_between_attempts(int64_t timeout_ms)
{
	static const struct wire_far black_hole = {fall_into_hole, say_into_hole, leave_hole, NULL};
	enum { STEP_MS = 10, LASTS_MS = 600000 };
	memset(&hole, 0, sizeof hole);
	l = loop_new("test", receive, NULL, NULL);
	conf = conf_defaults();
	free(conf->cluster.redis);
	conf->cluster.redis = mem_strdup("192.0.2.1:6379");
	conf->cluster.redis_timeout = timeout_ms;
	link_ = link_new(l, NULL, conf);
	link_reach(link_, &black_hole);
	for (int64_t at_ms = STEP_MS; at_ms <= LASTS_MS; at_ms += STEP_MS) {
		clock_stand(at_ms * 1000);
		l->now_ms = at_ms;
		if (at_ms == STEP_MS)
			link_begin(link_);
		timers_run(&l->timers, at_ms);
	}
	stop(NULL);
	clock_stand(0);
	return hole.longest_ms;
}

static void a_redis_that_takes_no_packet_is_tried_as_often(void **state)
{
	enum { A_MOMENT_MS = 100 };
	(void)state;
	assert_in_range(longest_between_attempts(1000), 1000, LINK_REST_MOST_MS);
	assert_true(hole.attempts >= 400);
	assert_in_range(longest_between_attempts(1500), 1500, 1500 + A_MOMENT_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(commands_are_answered_in_order, start, stop),
		cmocka_unit_test_setup_teardown(a_script_that_redis_does_not_know_is_sent_whole,
						start, stop),
		cmocka_unit_test_setup_teardown(what_is_published_is_heard, start, stop),
		cmocka_unit_test_setup_teardown(a_redis_that_dies_is_away_until_it_is_back, start,
						stop),
		cmocka_unit_test_setup_teardown(a_redis_that_stands_still_is_away_after_the_timeout,
						start, stop),
		cmocka_unit_test_setup_teardown(one_of_which_nothing_is_asked_is_missed_too, start,
						stop),
		cmocka_unit_test_setup_teardown(one_that_takes_no_writes_is_away_until_it_does,
						start, stop),
		cmocka_unit_test_setup_teardown(
			one_that_lacks_replicas_to_write_to_is_away_until_it_has_enough, start,
			stop),
		cmocka_unit_test_setup_teardown(one_without_room_is_there, start, stop),
		cmocka_unit_test(one_that_refuses_what_opens_the_link_is_away),
		cmocka_unit_test(a_redis_that_takes_no_packet_is_tried_as_often),
		cmocka_unit_test_setup_teardown(no_more_is_awaited_than_is_allowed, start_patiently,
						stop),
	};
	signal(SIGPIPE, SIG_IGN);
	if (!mkdtemp(folder))
		return 1;
	snprintf(where, sizeof where, "unix:%s/s", folder);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	char *clean = mem_printf("rm -rf %s", folder);
	failed |= system(clean);
	free(clean);
	return failed;
}
