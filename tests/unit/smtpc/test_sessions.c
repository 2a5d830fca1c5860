/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "smtpc/sessions.h"

#include <stdio.h>

static struct sessions sessions;

static int set_up(void **state)
{
	(void)state;
	sessions_init(&sessions);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	sessions_fini(&sessions);
	return 0;
}

/* One that can be resumed has an id. */
static SSL_SESSION *made(int version, unsigned char id)
{
	SSL_SESSION *session = SSL_SESSION_new();
	assert_int_equal(SSL_SESSION_set_protocol_version(session, version), 1);
	assert_int_equal(SSL_SESSION_set1_id(session, &id, 1), 1);
	return session;
}

/* The id, or -1 where there is none. */
static int taken(const char *key)
{
	unsigned int len = 0;
	SSL_SESSION *session = sessions_take(&sessions, key);
	int id = session ? SSL_SESSION_get_id(session, &len)[0] : -1;
	SSL_SESSION_free(session);
	return id;
}

static void one_of_tls_1_3_is_for_one_connection(void **state)
{
	(void)state;
	sessions_put(&sessions, "a", made(TLS1_3_VERSION, 1));
	sessions_put(&sessions, "a", made(TLS1_3_VERSION, 2));
	sessions_put(&sessions, "b", made(TLS1_3_VERSION, 3));
	assert_int_equal(taken("a"), 2);
	assert_int_equal(taken("a"), 1);
	assert_int_equal(taken("a"), -1);
	assert_int_equal(taken("b"), 3);
	assert_int_equal(taken("c"), -1);
}

static void one_of_tls_1_2_serves_until_there_is_a_newer(void **state)
{
	(void)state;
	sessions_put(&sessions, "a", made(TLS1_2_VERSION, 1));
	assert_int_equal(taken("a"), 1);
	assert_int_equal(taken("a"), 1);
	sessions_put(&sessions, "a", made(TLS1_2_VERSION, 2));
	assert_int_equal(taken("a"), 2);
	sessions_drop(&sessions, "a");
	assert_int_equal(taken("a"), -1);
}

static void so_many_are_kept_of_a_key_and_so_many_keys(void **state)
{
	char key[16];
	(void)state;
	for (unsigned char i = 0; i <= SESSIONS_OF_KEY_MAX; i++)
		sessions_put(&sessions, "a", made(TLS1_3_VERSION, i));
	for (int i = SESSIONS_OF_KEY_MAX; i > 0; i--)
		assert_int_equal(taken("a"), i);
	assert_int_equal(taken("a"), -1);
	sessions_put(&sessions, "a", made(TLS1_3_VERSION, 1));
	for (int i = 0; i < SESSIONS_KEYS_MAX; i++) {
		snprintf(key, sizeof key, "k%d", i);
		sessions_put(&sessions, key, made(TLS1_3_VERSION, 2));
	}
	assert_int_equal(taken("a"), -1);
	assert_int_equal(taken("k0"), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_of_tls_1_3_is_for_one_connection, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(one_of_tls_1_2_serves_until_there_is_a_newer,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(so_many_are_kept_of_a_key_and_so_many_keys, set_up,
						tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
