/* SPDX-License-Identifier: ISC */
/* FINCH 2007, sentence by sentence: which host gets a new connection, and what is known of hosts. What
 * test_destdb.c tests is not tested again. */
#include "tests/unit/qmgr/world.h"

#include "base/address.h"
#include "qmgr/destdb.h"
#include "qmgr/destdb_text.h"
#include "qmgr/suspend.h"

static const char three_hosts[] = "10 a.test 192.0.2.1, 10 b.test 192.0.2.2, 10 c.test 192.0.2.3";

/* Four hosts of one group that have all failed, and may all be tried again. */
static void set_up_to_be_retried(struct host *host, struct site_host *hosts)
{
	memset(host, 0, 4 * sizeof *host);
	for (int i = 0; i < 4; i++) {
		host[i].failures = 1;
		host[i].opened_ms = 1;
		hosts[i] = (struct site_host){&host[i], 10, 0};
	}
}

/* How often each is chosen as chance goes from 0 to 1. */
static void choose_1000(const struct site_host *hosts, const struct host *host, int times[4])
{
	struct host *chosen;
	int64_t wake_ms;
	memset(times, 0, 4 * sizeof *times);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(destdb_choose(hosts, 4, 0, 1000000, i / 1000.0, &chosen, &wake_ms),
				 DESTDB_HOST);
		times[chosen - host]++;
	}
}

/* "if there are destinations on the retry list, try one of them at random" */
static void of_those_to_be_retried_one_is_chosen_at_random(void **state)
{
	(void)state;
	struct host host[4];
	struct site_host hosts[4];
	int times[4];
	set_up_to_be_retried(host, hosts);
	choose_1000(hosts, host, times);
	for (int i = 0; i < 4; i++)
		assert_int_equal(times[i], 250);
}

/* "a destination picked at random from those with the fewest concurrent connections" */
static void of_those_with_the_fewest_connections_one_is_chosen_at_random(void **state)
{
	(void)state;
	struct host host[4];
	struct site_host hosts[4];
	int times[4];
	set_up_to_be_retried(host, hosts);
	for (int i = 0; i < 4; i++) {
		host[i].failures = 0;
		host[i].connections = host[i].ready = i == 2 ? 3 : 2;
	}
	choose_1000(hosts, host, times);
	assert_int_equal(times[2], 0);
	for (int i = 0; i < 4; i++)
		assert_in_range(times[i], i == 2 ? 0 : 250, i == 2 ? 0 : 500);
}

static void with_weights_one_that_does_not_answer_comes_last(void **state)
{
	(void)state;
	struct host host[4];
	struct site_host hosts[4];
	int times[4];
	set_up_to_be_retried(host, hosts);
	for (int i = 0; i < 4; i++)
		hosts[i].weight = i == 1 ? 100 : 1;
	host[1].connections = host[1].unanswered = 1;
	choose_1000(hosts, host, times);
	assert_int_equal(times[1], 0);
	for (int i = 0; i < 4; i++)
		host[i].connections = host[i].unanswered = 1;
	choose_1000(hosts, host, times);
	assert_in_range(times[1], 960, 980); /* better than none */
}

/* "we will spread our load around the destination cluster round-robin style, though in a random
 * order" */
static void closed_hosts_are_used_in_turn(void **state)
{
	(void)state;
	char order[9][32];
	begin("");
	for (int i = 0; i < 9; i++) {
		send_mail((uint64_t)(i + 1), "x@a.test");
		if (questions.n > 0)
			answer("a.test", three_hosts);
		assert_int_equal(opened.n, 1);
		snprintf(order[i], sizeof order[i], "%s", open_at(0)->host);
		ready(open_at(0), 1);
		done(given_at(0), VERDICT_SENT);
		close_orderly(open_at(0));
		pass_time(1000);
	}
	assert_string_not_equal(order[0], order[1]);
	assert_string_not_equal(order[0], order[2]);
	assert_string_not_equal(order[1], order[2]);
	for (int i = 3; i < 9; i++)
		assert_string_equal(order[i], order[i - 3]);
}

/* "repeat the whole process ... using the secondary destination list. If necessary we can fall back
 * to the tertiary": unused, then closed, then retry, then the fewest, in each of them. */
static void each_list_is_used_when_the_one_before_it_has_nothing_in_service(void **state)
{
	(void)state;
	begin("transport smtp { destination_concurrency_limit = 0 }");
	for (uint64_t id = 1; id <= 5; id++)
		send_mail(id, "x@a.test");
	answer("a.test", "10 a.test 192.0.2.1, 20 b.test 192.0.2.2, 20 c.test 192.0.2.3, "
			 "30 d.test 192.0.2.4");
	assert_int_equal(opened_to("a.test"), 5);
	while (opened_to("a.test") > 0)
		lose(open_to("a.test"), "refused");
	assert_in_range(opened_to("b.test"), 2, 3);
	assert_int_equal(opened_to("b.test") + opened_to("c.test"), 5);
	while (opened_to("b.test") > 0)
		lose(open_to("b.test"), "refused");
	assert_int_equal(opened_to("c.test"), 5);
	while (opened_to("c.test") > 0)
		lose(open_to("c.test"), "refused");
	assert_int_equal(opened_to("d.test"), 5);
	while (opened_to("d.test") > 1)
		lose(open_to("d.test"), "refused");
	assert_int_equal(told.n, 0);
	lose(open_to("d.test"), "refused"); /* "the message must be deferred" */
	assert_int_equal(told.n, 5);
}

/* "The destdb has a garbage collector to remove stale retry and closed-connection records." */
static void a_record_is_collected_when_it_is_stale_and_no_sooner(void **state)
{
	(void)state;
	begin("queue { minimal_backoff_time = 3h maximal_backoff_time = 3h }");
	send_mail(1, "x@a.test");
	answer("a.test", "10 dead.test 192.0.2.1, 20 good.test 192.0.2.2");
	lose(open_to("dead.test"), "refused");
	ready(open_to("good.test"), 1);
	done(given_at(0), VERDICT_SENT);
	close_orderly(open_to("good.test"));
	for (int i = 0; i < 50; i++)
		pass_time(60000);
	assert_int_equal(HASH_COUNT(q->hosts), 2);
	for (int i = 0; i < 50; i++)
		pass_time(60000);
	assert_int_equal(HASH_COUNT(q->hosts), 1); /* closed: an hour; to be retried: until then */
	assert_string_equal(q->hosts->name, "dead.test");
	for (int i = 0; i < 100; i++)
		pass_time(60000);
	assert_int_equal(HASH_COUNT(q->hosts), 0);
}

/* What outlives the process: failures with their reason and time to retry, broken TLS, the mode and
 * the depth, what the operator suspended. When a host was last used does not. */
static void what_is_learnt_about_a_host_outlives_a_restart(void **state)
{
	(void)state;
	struct buf text;
	union address address;
	begin("");
	assert_true(address_parse("192.0.2.1", 25, &address));
	struct host *h = destdb_host(q, "key", "mx.test", &address);
	struct verdict *why = verdict_new(VERDICT_DEFERRED, 421, "4.7.0", "mx.test", "not now");
	host_failed(h, why, clock_steady_ms(), 300000);
	verdict_unref(why);
	h->depth = 7;
	h->plain_until_ms = clock_steady_ms() + 50000;
	host_confused(h, CONNECTION_LOCKSTEP, NULL, clock_steady_ms());
	host_confused(h, CONNECTION_APART, NULL, clock_steady_ms());
	host_limited(h, 100, clock_steady_ms());
	suspend_begin(q, "other.test", true);
	buf_init(&text);
	destdb_write(q, &text);
	finish(NULL);

	begin("");
	clock_ms += 10000;
	destdb_read(q, buf_cstr(&text));
	buf_fini(&text);
	h = q->hosts;
	assert_non_null(h);
	assert_string_equal(h->peer, "mx.test[192.0.2.1]:25");
	assert_int_equal(h->failures, 1);
	assert_int_equal(h->retry_ms, clock_steady_ms() + 290000);
	assert_int_equal(h->plain_until_ms, clock_steady_ms() + 40000);
	assert_int_equal(h->depth, 7);
	assert_int_equal(host_mode(h, clock_steady_ms()), CONNECTION_LOCKSTEP | CONNECTION_APART);
	assert_int_equal(host_messages_most(h, clock_steady_ms()), 100);
	assert_int_equal(h->why->code, 421);
	assert_string_equal(h->why->dsn, "4.7.0");
	assert_string_equal(h->why->text, "not now");
	assert_string_equal(host_state(h, clock_steady_ms()), "out");
	assert_non_null(q->suspended);
	assert_string_equal(q->suspended->name, "other.test");
	pass_time(300000);
	assert_string_equal(host_state(h, clock_steady_ms()), "retry");
}

/* A wall clock that was put back must not keep a host out for years. */
static void after_a_step_of_the_clock_no_host_is_out_longer_than_a_failure_makes_it(void **state)
{
	(void)state;
	char text[300];
	begin("queue { minimal_backoff_time = 5m }");
	snprintf(text, sizeof text,
		 "host\tkey=k\tname=mx.test\taddress=192.0.2.1\tport=25\tfailures=3\tretry=%lld\t"
		 "code=0\tdsn=4.4.1\tby=mx.test\twhen=1\twhy=refused\n",
		 (long long)clock_wall_ms() + 86400000);
	destdb_read(q, text);
	assert_int_equal(q->hosts->retry_ms, clock_steady_ms() + 300000);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)
#define PURE(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PURE(of_those_to_be_retried_one_is_chosen_at_random),
		PURE(of_those_with_the_fewest_connections_one_is_chosen_at_random),
		PURE(with_weights_one_that_does_not_answer_comes_last),
		TEST(closed_hosts_are_used_in_turn),
		TEST(each_list_is_used_when_the_one_before_it_has_nothing_in_service),
		TEST(a_record_is_collected_when_it_is_stale_and_no_sooner),
		TEST(what_is_learnt_about_a_host_outlives_a_restart),
		TEST(after_a_step_of_the_clock_no_host_is_out_longer_than_a_failure_makes_it),
	};
	return RUN(tests);
}
