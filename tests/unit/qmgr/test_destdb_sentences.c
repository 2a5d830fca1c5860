/* SPDX-License-Identifier: ISC */
/* FINCH 2007, sentence by sentence: which host gets a new connection, and what is known of hosts. What
 * test_destdb.c tests is not tested again. */
#include "tests/unit/qmgr/world.h"

#include "qmgr/dest/destdb.h"

static const char three_hosts[] = "10 a.test 192.0.2.1, 10 b.test 192.0.2.2, 10 c.test 192.0.2.3";

/* Four hosts of one group, of which nothing is open. */
static void set_up_four(struct host *host, struct site_host *hosts)
{
	memset(host, 0, 4 * sizeof *host);
	for (int i = 0; i < 4; i++) {
		host[i].opened_ms = 1;
		hosts[i] = (struct site_host){.host = &host[i], .preference = 10};
	}
}

/* How often each is chosen as chance goes from 0 to 1. */
static void choose_1000(struct site_host *hosts, const struct host *host, int times[4])
{
	struct site_host *chosen;
	int64_t wake_ms;
	memset(times, 0, 4 * sizeof *times);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(
			destdb_choose(hosts, 4, 0, 1000000, false, i / 1000.0, &chosen, &wake_ms),
			DESTDB_HOST);
		times[chosen->host - host]++;
	}
}

/* "if there are destinations on the retry list, try one of them at random". DIFFERS: each of them, and
 * with a connection that no mail waits for. */
static void those_to_be_retried_get_a_probe_each_beside_what_serves(void **state)
{
	(void)state;
	names_stay = true;
	begin("transport smtp { initial_destination_concurrency = 1 "
	      "destination_concurrency_limit = 1 }");
	for (uint64_t id = 1; id <= 3; id++)
		send_mail(id, "x@a.test");
	answer("a.test", three_hosts);
	for (int i = 0; i < 2; i++)
		lose(open_at(0), "refused");
	assert_int_equal(opened.n, 1);
	char serves[32];
	snprintf(serves, sizeof serves, "%s", open_at(0)->host);
	ready(open_at(0), 1);
	pass_time(999);
	assert_int_equal(opened.n, 1);
	pass_time(1);
	assert_int_equal(opened.n, 3);
	assert_int_equal(opened_to(serves), 1);
	pass_time(60000);
	assert_int_equal(opened.n, 3); /* one each */
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(given.n, 1);
	assert_int_equal(given_at(0)->connection, open_to(serves)->connection);
}

/* "a destination picked at random from those with the fewest concurrent connections" */
static void of_those_with_the_fewest_connections_one_is_chosen_at_random(void **state)
{
	(void)state;
	struct host host[4];
	struct site_host hosts[4];
	int times[4];
	set_up_four(host, hosts);
	for (int i = 0; i < 4; i++)
		host[i].connections = host[i].ready = i == 2 ? 3 : 2;
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
	set_up_four(host, hosts);
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
 * to the tertiary": unused, then closed, then the fewest, in each of them. */
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
	lose(open_to("d.test"), "refused");
	assert_int_equal(opened.n, 0);
	assert_int_equal(told.n, 0);
	for (int i = 0; i < 10; i++) {
		pass_time(1000);
		while (opened.n > 0)
			lose(open_at(0), "refused");
	}
	assert_int_equal(told.n, 5); /* "the message must be deferred" */
}

/* "The destdb has a garbage collector to remove stale retry and closed-connection records." */
static void a_record_is_collected_when_it_is_stale_and_no_sooner(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	answer("a.test", "10 dead.test 192.0.2.1, 20 good.test 192.0.2.2");
	lose(open_to("dead.test"), "refused");
	ready(open_to("good.test"), 1);
	host_set_plain(site_named("dead.test;good.test")->hosts[0].host, "dead.test",
		       clock_steady_ms() + 7200000);
	done(given_at(0), VERDICT_SENT);
	close_orderly(open_to("good.test"));
	for (int i = 0; i < 50; i++)
		pass_time(60000);
	assert_int_equal(HASH_COUNT(q->db.hosts), 2);
	for (int i = 0; i < 20; i++)
		pass_time(60000);
	assert_int_equal(HASH_COUNT(q->db.hosts), 1); /* an hour; with broken TLS: until then */
	assert_string_equal(q->db.hosts->peer, "[192.0.2.1]:25");
	for (int i = 0; i < 60; i++)
		pass_time(60000);
	assert_int_equal(HASH_COUNT(q->db.hosts), 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)
#define PURE(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PURE(of_those_with_the_fewest_connections_one_is_chosen_at_random),
		PURE(with_weights_one_that_does_not_answer_comes_last),
		TEST(those_to_be_retried_get_a_probe_each_beside_what_serves),
		TEST(closed_hosts_are_used_in_turn),
		TEST(each_list_is_used_when_the_one_before_it_has_nothing_in_service),
		TEST(a_record_is_collected_when_it_is_stale_and_no_sooner),
	};
	return RUN(tests);
}
