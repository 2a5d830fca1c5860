/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/sanitized.h"
#include "tests/unit/sim/unit.h"

#include "sim/sweep_buckets.h"

enum { HOSTS = 100 };

static void a_host_is_the_same_for_the_same_seed(void **state)
{
	(void)state;
	struct sweep_buckets a, b;
	sweep_buckets_run(&a, 3, 7, true);
	sweep_buckets_run(&b, 1, 8, true);
	assert_int_equal(a.of[1].seed, 8);
	assert_string_equal(a.of[1].what, b.of[0].what);
	assert_int_equal(a.of[1].refused, b.of[0].refused);
	assert_true(a.of[1].last_s == b.of[0].last_s && a.of[1].oracle_s == b.of[0].oracle_s);
	assert_string_not_equal(a.of[0].what, a.of[1].what);
	sweep_buckets_fini(&a);
	sweep_buckets_fini(&b);
}

static void nobody_is_done_before_the_oracle(void **state)
{
	(void)state;
	struct sweep_buckets b;
	sweep_buckets_run(&b, HOSTS / 4, 1000, true);
	for (int i = 0; i < b.n; i++)
		assert_true(b.of[i].last_s >=
			    b.of[i].oracle_s - 1); /* it opens a connection for the last */
	sweep_buckets_fini(&b);
}

struct found {
	int in_time, seldom_refused;
};

static struct found count_hosts(bool pace)
{
	struct found n = {0};
	struct sweep_buckets b;
	sweep_buckets_run(&b, HOSTS, 1, pace);
	assert_int_equal(sweep_buckets_faults(&b), 0);
	for (int i = 0; i < b.n; i++) {
		n.in_time += !sweep_bucket_slow(&b.of[i]);
		n.seldom_refused += !sweep_bucket_refused(&b.of[i]);
	}
	print_message("%d in time, %d seldom refused\n", n.in_time, n.seldom_refused);
	sweep_buckets_fini(&b);
	return n;
}

/* A quarter of them is filled at once, which is when the oracle is done. Without a pace those serve that have little to do. */
static void most_is_sent_in_time_and_little_refused(void **state)
{
	(void)state;
	if (SANITIZED)
		skip();
	struct found with = count_hosts(true), without = count_hosts(false);
	assert_true(with.in_time >= 80 && with.seldom_refused >= 80);
	assert_true(without.in_time <= 35 && without.seldom_refused <= 35);
}

static void what_is_said_names_the_seeds(void **state)
{
	(void)state;
	struct sweep_buckets b;
	struct buf text = {0}, json = {0};
	sweep_buckets_run(&b, 2, 12345, true);
	sweep_buckets_json(&b, &json);
	sweep_buckets_report(&b, &text);
	assert_non_null(strstr(buf_cstr(&text), "2 hosts: nine tenths"));
	assert_non_null(strstr(buf_cstr(&text), "12346"));
	assert_non_null(strstr(buf_cstr(&json), "{\"type\":\"bucket\",\"seed\":12345,"));
	buf_fini(&text);
	buf_fini(&json);
	sweep_buckets_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_is_the_same_for_the_same_seed),
		cmocka_unit_test(nobody_is_done_before_the_oracle),
		cmocka_unit_test(most_is_sent_in_time_and_little_refused),
		cmocka_unit_test(what_is_said_names_the_seeds),
	};
	return RUN(tests);
}
