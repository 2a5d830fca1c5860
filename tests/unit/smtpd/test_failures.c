/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpd/unit.h"

#include "smtpd/failures.h"

#include <arpa/inet.h>

static union address v4(const char *text)
{
	union address a = {.in = {.sin_family = AF_INET}};
	assert_int_equal(inet_pton(AF_INET, text, &a.in.sin_addr), 1);
	return a;
}

static union address v6(const char *text)
{
	union address a = {.in6 = {.sin6_family = AF_INET6}};
	assert_int_equal(inet_pton(AF_INET6, text, &a.in6.sin6_addr), 1);
	return a;
}

static void each_client_and_each_login_is_counted(void **state)
{
	struct failures *f = failures_new();
	union address one = v4("192.0.2.1"), two = v4("192.0.2.2"), three = v4("192.0.2.3");
	(void)state;
	assert_int_equal(failures_note(f, &one, "anna", 1000), 1);
	assert_int_equal(failures_note(f, &one, "berta", 2000), 2); /* the client's second */
	assert_int_equal(failures_note(f, &two, "anna", 3000), 2);  /* the login's second */
	assert_int_equal(failures_note(f, &three, NULL, 4000), 1);
	failures_free(&f);
}

static void neighbours_within_a_64_are_one_client(void **state)
{
	struct failures *f = failures_new();
	union address one = v6("2001:db8:1:2::1"), same = v6("2001:db8:1:2:ffff::"),
		      other = v6("2001:db8:1:3::1");
	(void)state;
	assert_int_equal(failures_note(f, &one, NULL, 0), 1);
	assert_int_equal(failures_note(f, &same, NULL, 0), 2);
	assert_int_equal(failures_note(f, &other, NULL, 0), 1);
	failures_free(&f);
}

static void ten_quiet_minutes_forget(void **state)
{
	struct failures *f = failures_new();
	union address one = v4("192.0.2.1");
	(void)state;
	assert_int_equal(failures_note(f, &one, NULL, 0), 1);
	assert_int_equal(failures_note(f, &one, NULL, 600000), 2);
	assert_int_equal(failures_note(f, &one, NULL, 1201000), 1);
	for (int i = 0; i < 1000; i++)
		assert_in_range(failures_note(f, &one, NULL, 1202000), 1, 255);
	failures_free(&f);
}

static void each_costs_twice_as_long_up_to_a_limit(void **state)
{
	static const int64_t costs[] = {1000, 2000, 4000, 8000, 16000, 16000, 16000};
	(void)state;
	for (int i = 0; i < 7; i++)
		assert_int_equal(failures_delay(1000, i + 1), costs[i]);
	assert_int_equal(failures_delay(1000, 255), 16000);
	assert_int_equal(failures_delay(0, 3), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_client_and_each_login_is_counted),
		cmocka_unit_test(neighbours_within_a_64_are_one_client),
		cmocka_unit_test(ten_quiet_minutes_forget),
		cmocka_unit_test(each_costs_twice_as_long_up_to_a_limit),
	};
	return RUN(tests);
}
