/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpd/unit.h"

#include "base/address.h"
#include "smtpd/clients.h"

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_client_has_its_connections),
		TEST(a_client_has_all_addresses_of_its_network),
		TEST(connections_come_as_often_as_the_rate_says),
	};
	return RUN(tests);
}
