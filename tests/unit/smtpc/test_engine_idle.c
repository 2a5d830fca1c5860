/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpc/script.h"

static void an_idle_connection_may_be_closed_by_the_host(void **state)
{
	static const char *const ways[] = {"421 timeout\r\n", "250 ok\r\n", "x", NULL};
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		greet(PIPELINED);
		carry_one();
		if (ways[i])
			says(ways[i]);
		else
			engine_lost(&engine, "connection closed");
		assert_closed_orderly();
		give(mail("y\r\n", TO("b@test")));
		assert_returned(back());
		tear_down(state);
		set_up(state);
	}
}

static void a_host_that_closes_after_n_messages_has_not_failed(void **state)
{
	(void)state;
	greet(PIPELINED);
	carry_one();
	give(mail("y\r\n", TO("b@test")));
	engine_lost(&engine, "connection closed");
	assert_returned(back());
	assert_closed_orderly();
}

static void a_host_that_never_carries_anything_has_failed(void **state)
{
	(void)state;
	greet(PIPELINED);
	engine_lost(&engine, "connection closed");
	assert_closed(0, "4.4.2");
}

static void a_host_that_falls_silent_has_failed(void **state)
{
	(void)state;
	greet(PIPELINED);
	carry_one();
	give(mail("y\r\n", TO("b@test")));
	engine_expired(&engine);
	assert_returned(back());
	assert_closed(0, "4.4.2");
}

static void a_refused_rset_closes(void **state)
{
	(void)state;
	greet(PLAIN);
	give(mail("x\r\n", TO("a@test")));
	says("250 ok\r\n");
	says("550 no\r\n");
	give(mail("y\r\n", TO("b@test")));
	says("500 what\r\n");
	assert_verdict(back(), 0, VERDICT_FAILED, 550);
	assert_returned(back());
	assert_closed(0, "4.5.0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_idle_connection_may_be_closed_by_the_host),
		T(a_host_that_closes_after_n_messages_has_not_failed),
		T(a_host_that_never_carries_anything_has_failed),
		T(a_host_that_falls_silent_has_failed),
		T(a_refused_rset_closes),
	};
	return RUN_TWICE(tests);
}
