/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpd/unit.h"

#include "base/address.h"
#include "smtpd/clients.h"

#include <stdlib.h>

static struct clients *clients;

static int setup(void **state)
{
	(void)state;
	clients = clients_new();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	clients_free(&clients);
	return 0;
}

static enum clients_answer enter(const char *who, const struct conf_listener *limits,
				 int64_t now_us)
{
	union address a;
	assert_true(address_parse(who, 1234, &a));
	return clients_enter(clients, &a, 0, limits, now_us);
}

static void leave(const char *who)
{
	union address a;
	assert_true(address_parse(who, 4321, &a));
	clients_leave(clients, &a, 0);
}

static void each_client_has_its_connections(void **state)
{
	(void)state;
	struct conf_listener limits = {.client_connection_limit = 2};
	assert_int_equal(enter("192.0.2.1", &limits, 0), CLIENTS_WELCOME);
	assert_int_equal(enter("192.0.2.1", &limits, 0), CLIENTS_WELCOME);
	assert_int_equal(enter("192.0.2.1", &limits, 0), CLIENTS_TOO_MANY);
	assert_int_equal(enter("192.0.2.2", &limits, 0), CLIENTS_WELCOME);
	leave("192.0.2.1");
	assert_int_equal(enter("192.0.2.1", &limits, 0), CLIENTS_WELCOME);
	limits.client_connection_limit = 0;
	for (int i = 0; i < 100; i++)
		assert_int_equal(enter("192.0.2.1", &limits, 0), CLIENTS_WELCOME);
}

static void a_client_has_all_addresses_of_its_network(void **state)
{
	(void)state;
	struct conf_listener limits = {.client_connection_limit = 1};
	assert_int_equal(enter("2001:db8::1", &limits, 0), CLIENTS_WELCOME);
	assert_int_equal(enter("2001:db8::2", &limits, 0), CLIENTS_TOO_MANY);
	assert_int_equal(enter("2001:db8:0:1::1", &limits, 0), CLIENTS_WELCOME);
	assert_int_equal(enter("127.0.0.1", &limits, 0), CLIENTS_WELCOME);
	assert_int_equal(enter("127.9.8.7", &limits, 0), CLIENTS_TOO_MANY);
	assert_int_equal(enter("126.0.0.1", &limits, 0), CLIENTS_WELCOME);
	assert_int_equal(enter("126.0.0.2", &limits, 0), CLIENTS_WELCOME);
}

static void connections_come_as_often_as_the_rate_says(void **state)
{
	(void)state;
	struct conf_listener limits = {.client_rate_limit = {.events = 4, .per_ms = 1000}};
	for (int i = 0; i < 4; i++) {
		assert_int_equal(enter("192.0.2.1", &limits, 5000000), CLIENTS_WELCOME);
		leave("192.0.2.1");
	}
	assert_int_equal(enter("192.0.2.1", &limits, 5000000), CLIENTS_TOO_OFTEN);
	assert_int_equal(enter("192.0.2.1", &limits, 5249000), CLIENTS_TOO_OFTEN);
	assert_int_equal(enter("192.0.2.1", &limits, 5250000), CLIENTS_WELCOME);
	assert_int_equal(enter("192.0.2.1", &limits, 5251000), CLIENTS_TOO_OFTEN);
	assert_int_equal(enter("192.0.2.2", &limits, 5251000), CLIENTS_WELCOME);
}

static void what_came_under_a_narrower_rate_makes_nobody_wait(void **state)
{
	(void)state;
	struct conf_listener limits = {.client_rate_limit = {.events = 2, .per_ms = 3600000}};
	for (int i = 0; i < 3; i++)
		assert_int_equal(enter("192.0.2.1", &limits, 5000000),
				 i < 2 ? CLIENTS_WELCOME : CLIENTS_TOO_OFTEN);
	limits.client_rate_limit = (struct conf_rate){.events = 4, .per_ms = 1000};
	for (int i = 0; i < 5; i++)
		assert_int_equal(enter("192.0.2.1", &limits, 5000000),
				 i < 4 ? CLIENTS_WELCOME : CLIENTS_TOO_OFTEN);
}

static struct sharing_spent *said;

static void hear(void *context, struct note *note)
{
	(void)context;
	assert_null(said);
	assert_int_equal(note->type, SHARING_SPENT);
	said = (struct sharing_spent *)note;
}

static void expect_said(const char *key, int64_t n, uint64_t told)
{
	assert_non_null(said);
	assert_string_equal(said->key, key);
	assert_int_equal(said->n, n);
	assert_int_equal(said->told, told);
	assert_int_equal(said->rate.events, 4);
	free(said);
	said = NULL;
}

static bool total(const char *key, int64_t next_us, uint64_t through)
{
	struct sharing_total *t = sharing_total_new(key);
	t->next_us = next_us;
	t->through = through;
	bool ours = clients_total(clients, t);
	free(t);
	return ours;
}

static void a_rate_is_that_of_all_nodes(void **state)
{
	(void)state;
	struct conf_listener limits = {.title = (char[]){"a/b"},
				       .client_rate_limit = {.events = 4, .per_ms = 1000}};
	clients_share(clients, NULL, hear, NULL);
	assert_int_equal(enter("2001:db8:1:2:3::4", &limits, 5000000), CLIENTS_WELCOME);
	expect_said("connect/a/b/2001:db8:1:2::", 1, 1);
	assert_int_equal(enter("192.0.2.1", &limits, 5000000), CLIENTS_WELCOME);
	expect_said("connect/a/b/192.0.2.1", 1, 1);
	assert_int_equal(enter("192.0.2.1", &limits, 5000000), CLIENTS_WELCOME);
	expect_said("connect/a/b/192.0.2.1", 1, 2);
	/* Others had two, and our second was not counted yet. */
	assert_true(total("connect/a/b/192.0.2.1", 6750000, 1));
	assert_int_equal(enter("192.0.2.1", &limits, 5999000), CLIENTS_TOO_OFTEN);
	assert_null(said); /* it was told of the last one, and will answer */
	assert_int_equal(enter("192.0.2.1", &limits, 6000000), CLIENTS_TOO_OFTEN);
	expect_said("connect/a/b/192.0.2.1", 0, 2);
	assert_int_equal(enter("192.0.2.1", &limits, 6001000), CLIENTS_TOO_OFTEN);
	assert_null(said);
	assert_true(total("connect/a/b/192.0.2.1", 6000000, 2));
	assert_int_equal(enter("192.0.2.1", &limits, 6002000), CLIENTS_WELCOME);
	expect_said("connect/a/b/192.0.2.1", 1, 3);
	assert_int_equal(enter("2001:db8:1:2::5", &limits, 5000000), CLIENTS_WELCOME);
	expect_said("connect/a/b/2001:db8:1:2::", 1, 2);
}

static void totals_of_others_are_passed_over(void **state)
{
	(void)state;
	clients_share(clients, NULL, hear, NULL);
	static const char *const odd[] = {"login/messages/connect/a/192.0.2.1",
					  "connect/",
					  "connect/192.0.2.1",
					  "connect/x/192.0.2.1",
					  "connect/x/no",
					  "connect//"};
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
		assert_false(total(odd[i], 1, 1));
}

static void away_from_the_others_each_has_its_part(void **state)
{
	(void)state;
	struct conf_listener limits = {.title = (char[]){"in"},
				       .client_rate_limit = {.events = 4, .per_ms = 1000}};
	clients_parts(clients, 3);
	assert_int_equal(enter("192.0.2.1", &limits, 5000000), CLIENTS_WELCOME);
	assert_int_equal(enter("192.0.2.1", &limits, 5900000), CLIENTS_TOO_OFTEN);
	assert_int_equal(enter("192.0.2.1", &limits, 6000000), CLIENTS_WELCOME);
	clients_parts(clients, 2);
	assert_int_equal(enter("192.0.2.2", &limits, 5000000), CLIENTS_WELCOME);
	assert_int_equal(enter("192.0.2.2", &limits, 5000000), CLIENTS_WELCOME);
	assert_int_equal(enter("192.0.2.2", &limits, 5000000), CLIENTS_TOO_OFTEN);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_client_has_its_connections),
		TEST(a_client_has_all_addresses_of_its_network),
		TEST(connections_come_as_often_as_the_rate_says),
		TEST(what_came_under_a_narrower_rate_makes_nobody_wait),
		TEST(a_rate_is_that_of_all_nodes),
		TEST(totals_of_others_are_passed_over),
		TEST(away_from_the_others_each_has_its_part),
	};
	return RUN(tests);
}
