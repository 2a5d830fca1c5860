/* SPDX-License-Identifier: ISC */
/* A server that takes so many connections and turns the others away, over an hour. */
#include "tests/unit/qmgr/world.h"

#include "qmgr/message.h"

enum { STEP_MS = 50, SECOND = 1000 / STEP_MS, HOUR = 3600 * SECOND };

static int takes, refused, arrived, deferred;
static uint64_t last_id;

static int ready_now(void)
{
	int n = 0;
	for (int i = 0; i < opened.n; i++)
		n += open_at(i)->was_ready;
	return n;
}

/* Each connection is answered at once: with a greeting, or with 421. */
static void answer_connections(void)
{
	for (int i = 0; i < opened.n;) {
		struct connection_open *o = open_at(i);
		if (o->was_ready) {
			i++;
		} else if (ready_now() < takes) {
			o->was_ready = true;
			ready(o, 1);
			i = 0;
		} else {
			refused++;
			lose(o, "too many connections");
			i = 0;
		}
	}
}

static void hear(void)
{
	while (told.n > 0) {
		struct note *note = take(&told, 0);
		if (note->type == SPOOL_RELEASE) {
			arrived += !((struct spool_release *)note)->envelope;
			deferred += !!((struct spool_release *)note)->envelope;
		}
		forget(note);
	}
}

/* Each message is worked on for a second; there are always more that wait. */
static void pass_steps(int steps)
{
	for (int i = 0; i < steps; i++) {
		while (HASH_COUNT(q->messages) < 30) {
			send_mail(++last_id, "x@a.test");
			if (questions.n > 0)
				answer("a.test", one_host);
		}
		answer_connections();
		for (int k = 0; k < given.n;) {
			struct delivery *d = given_at(k);
			if (!d->began_us)
				d->began_us = clock_steady_us();
			if (clock_steady_us() - d->began_us < 1000000) {
				k++;
				continue;
			}
			d->ended_us = clock_steady_us();
			done(d, VERDICT_SENT);
			k = 0;
		}
		pass_time(STEP_MS);
		hear();
	}
}

static void begin_with(int limit)
{
	takes = limit;
	refused = arrived = deferred = 0;
	last_id = 0;
	begin("transport smtp { connection_max_messages = 0 }");
}

static void it_gets_as_many_as_it_takes_and_few_more_over_an_hour(void **state)
{
	(void)state;
	begin_with(5);
	pass_steps(5 * SECOND);
	int before = refused, most = 0;
	for (int minute = 0; minute < 60; minute++) {
		int at_first = refused;
		pass_steps(HOUR / 60);
		assert_int_equal(ready_now(), 5);
		most = refused - at_first > most ? refused - at_first : most;
	}
	assert_in_range(most, 0, 1); /* in any minute */
	assert_in_range(refused - before, 1, 10);
	assert_in_range(arrived, 5 * 3300, 5 * 3605); /* all five are busy */
	assert_int_equal(deferred, 0);
}

static void one_that_takes_more_later_gets_more(void **state)
{
	(void)state;
	begin_with(3);
	pass_steps(300 * SECOND);
	assert_int_equal(ready_now(), 3);
	takes = 12;
	pass_steps(3600 * SECOND);
	assert_int_equal(ready_now(), 12);
	assert_int_equal(deferred, 0);
}

static void one_that_takes_one_only_is_not_dead(void **state)
{
	(void)state;
	begin_with(1);
	pass_steps(600 * SECOND);
	assert_int_equal(ready_now(), 1);
	assert_int_equal(deferred, 0);
	assert_int_equal(site_named("mx.test")->health, SITE_ALIVE);
	assert_in_range(arrived, 540, 610);
}

static void all_hosts_at_their_limits_mail_waits_for_whichever_is_free_first(void **state)
{
	(void)state;
	begin("transport smtp { host_connection_limit = 1 }");
	for (uint64_t id = 1; id <= 4; id++)
		send_mail(id, "x@a.test");
	answer("a.test", "10 a.test 192.0.2.1, 10 b.test 192.0.2.2");
	ready(open_at(0), 1);
	ready(open_at(1), 1);
	struct connection_open *second = open_at(1);
	for (int i = 0; i < given.n; i++)
		if (given_at(i)->connection == second->connection) {
			done(given_at(i), VERDICT_SENT);
			break;
		}
	assert_int_equal(delivery_of_mail(3)->connection, second->connection);
	given_at(given.n - 1)->returned = true;
	post_back(given_at(given.n - 1));
	char host[32];
	snprintf(host, sizeof host, "%s", second->host);
	close_orderly(second);
	assert_int_equal(opened_to(host), 1);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_gets_as_many_as_it_takes_and_few_more_over_an_hour),
		TEST(one_that_takes_more_later_gets_more),
		TEST(one_that_takes_one_only_is_not_dead),
		TEST(all_hosts_at_their_limits_mail_waits_for_whichever_is_free_first),
	};
	return RUN(tests);
}
