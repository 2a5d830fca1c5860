/* SPDX-License-Identifier: ISC */
#include "tests/unit/sim/unit.h"

#include "sim/oracle.h"
#include "sim/sweep.h"

enum { CASES = 100 };

static double oracle_of(const char *text)
{
	struct arrivals a;
	struct buf errors = {0};
	ran_of = scenario_of(text);
	assert_true(arrivals_make(&a, ran_of, 1, &errors));
	double ms = oracle_mean_ms(ran_of, &a);
	arrivals_fini(&a);
	buf_fini(&errors);
	return ms;
}

static void is_about(double ms, double wanted)
{
	if (ms < wanted - 1 || ms > wanted + 1)
		print_error("%.3f ms, not %.3f\n", ms, wanted);
	assert_true(ms >= wanted - 1 && ms <= wanted + 1);
}

static void the_oracle_adds_up_what_a_message_takes(void **state)
{
	(void)state;
	/* connect 10, greeting 10, transaction 1000 */
	is_about(oracle_of(ONE_HOST("") ARRIVE("")), 1020);
}

static void the_oracle_opens_what_the_host_takes_and_no_more(void **state)
{
	(void)state;
	/* Two at once, twice. */
	is_about(oracle_of(ONE_HOST("connection_limit = 2")
				   ARRIVE("messages = 4 distribution = \"bursts\" burst = 4")),
		 1520);
}

static void the_oracle_waits_for_the_end_of_an_outage(void **state)
{
	(void)state;
	is_about(oracle_of(ONE_HOST("outages = {\"0s..5s\"}") ARRIVE("")), 6020);
	forget_run(NULL);
	/* The first would be cut off: it does not even begin. */
	is_about(oracle_of(ONE_HOST("outages = {\"500ms..5s\"}") ARRIVE("")), 6020);
}

static void the_oracle_prefers_and_leaves_a_host_that_is_out(void **state)
{
	(void)state;
	static const char text[] =
		"host \"a\" { noise = \"0\" transaction = 10ms round_trip = 0s %s }\n"
		"host \"b\" { noise = \"0\" transaction = 90ms round_trip = 0s }\n"
		"site \"s\" { domains = {\"dest.test\"} mx = {\"10 a\", \"20 b\"} }\n" ARRIVE("");
	char with[sizeof text + 100];
	snprintf(with, sizeof with, text, "");
	is_about(oracle_of(with), 50);
	forget_run(NULL);
	snprintf(with, sizeof with, text, "outages = {\"0s..1m\"}");
	is_about(oracle_of(with), 130);
}

static void a_destination_is_the_same_for_the_same_seed(void **state)
{
	(void)state;
	struct sweep a, b;
	sweep_run(&a, 3, 7);
	sweep_run(&b, 1, 8);
	assert_int_equal(a.of[1].seed, 8);
	assert_string_equal(a.of[1].what, b.of[0].what);
	assert_true(a.of[1].late_ms == b.of[0].late_ms && a.of[1].early_ms == b.of[0].early_ms &&
		    a.of[1].oracle_ms == b.of[0].oracle_ms);
	assert_string_not_equal(a.of[0].what, a.of[1].what);
	sweep_fini(&a);
	sweep_fini(&b);
}

/* A gate for what is reached, to be narrowed as the scheduler comes closer to what is wanted. */
static void few_destinations_are_worse_off_than_with_postfix(void **state)
{
	(void)state;
#ifdef __SANITIZE_THREAD__
	skip();
#endif
	struct sweep sweep;
	int worse = 0, far = 0;
	sweep_run(&sweep, CASES, 1);
	for (int i = 0; i < CASES; i++) {
		worse += sweep_worse(&sweep.of[i]);
		far += sweep_far(&sweep.of[i]);
	}
	if (worse > CASES / 10 || far > CASES / 4)
		print_error("%d worse, %d far\n", worse, far);
	assert_int_equal(sweep_faults(&sweep), 0);
	assert_true(worse <= CASES / 10 && far <= CASES / 4);
	sweep_fini(&sweep);
}

static void what_is_said_of_a_sweep_names_the_seeds(void **state)
{
	(void)state;
	struct sweep sweep;
	struct buf text = {0}, json = {0};
	sweep_run(&sweep, 2, 12345);
	sweep_report(&sweep, &text);
	sweep_json(&sweep, &json);
	assert_non_null(strstr(buf_cstr(&text), "2 destinations: worse than Postfix in "));
	assert_non_null(strstr(buf_cstr(&text), "12346"));
	assert_non_null(strstr(buf_cstr(&json), "{\"type\":\"sweep\",\"seed\":12345,"));
	buf_fini(&text);
	buf_fini(&json);
	sweep_fini(&sweep);
}

#define TEST(name) cmocka_unit_test_teardown(name, forget_run)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_oracle_adds_up_what_a_message_takes),
		TEST(the_oracle_opens_what_the_host_takes_and_no_more),
		TEST(the_oracle_waits_for_the_end_of_an_outage),
		TEST(the_oracle_prefers_and_leaves_a_host_that_is_out),
		TEST(a_destination_is_the_same_for_the_same_seed),
		TEST(few_destinations_are_worse_off_than_with_postfix),
		TEST(what_is_said_of_a_sweep_names_the_seeds),
	};
	return RUN(tests);
}
