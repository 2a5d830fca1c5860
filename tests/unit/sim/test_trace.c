/* SPDX-License-Identifier: ISC */
#include "tests/unit/sim/unit.h"

#include "sim/arrivals.h"
#include "sim/event.h"
#include "sim/trace.h"

#include <unistd.h>

static char path[] = "/tmp/test_trace.XXXXXX";

/* The arrivals of this log; false, and what is wrong. */
static bool read_log(struct arrivals *a, const char *log, const char *settings, struct buf *errors)
{
	char text[1000];
	FILE *f = fopen(path, "w");
	fputs(log, f);
	fclose(f);
	snprintf(text, sizeof text, ONE_HOST("") "arrival \"a\" { start = 5s trace = \"%s\" %s }\n",
		 path, settings);
	scenario_free(&ran_of); /* domains of the arrivals may lie in it */
	ran_of = scenario_of(text);
	return arrivals_make(a, ran_of, 1, errors);
}

#define AT(time) "{\"time\":\"2026-01-02T03:04:" time "Z\",\"level\":\"info\",\"event\":"

static const char log_of_two[] = AT("05.500") "\"ready\",\"version\":\"0.1\"}\n" AT(
	"06.000") "\"queued\",\"id\":\"A\",\"from\":\"x@y\",\"nrcpt\":2,\"size\":"
		  "1000}\n" AT(
			  "06.250") "\"queued\",\"id\":\"B\",\"from\":"
				    "\"a\\\"b@y\",\"nrcpt\":1,\"size\":70000}"
				    "\n" AT("06.300") "\"deferred\",\"id\":"
						      "\"A\",\"to\":\"one@"
						      "dest.test\",\"tries\":"
						      "1}\n" AT(
							      "06.400") "\"q"
									"ueu"
									"ed"
									"\","
									"\"i"
									"d\""
									":\""
									"R\""
									",\""
									"fro"
									"m\""
									":\""
									"\","
									"\"n"
									"rcp"
									"t\""
									":1,"
									"\"s"
									"ize"
									"\":"
									"5,"
									"\"r"
									"epo"
									"rt_"
									"of"
									"\":"
									"\"A"
									"\"}"
									"\n" AT("06.500") "\"sent\""
											  ",\"id\":"
											  "\"A\","
											  "\"to\":"
											  "\"one@"
											  "dest."
											  "test\","
											  "\"tries"
											  "\":2}"
											  "\n" AT("06.600") "\"sent\",\"id\":\"A\",\"to\":\"two@dest.test\",\"tries\":1}\n" AT(
												  "06.700") "\"sent\",\"id\":\"B\",\"to\":\"three@dest.test\",\"tries\":1}\n\n";

static void a_log_becomes_its_messages(void **state)
{
	(void)state;
	struct arrivals a;
	struct buf errors = {0};
	assert_true(read_log(&a, log_of_two, "", &errors));
	assert_int_equal(a.n, 2);
	assert_true(a.item[0].at_us == 5000000 && a.item[1].at_us == 5250000);
	assert_int_equal(a.item[0].nrcpt, 2);
	assert_true(a.item[1].size == 70000);
	assert_string_equal(a.item[0].domain[0], "dest.test");
	assert_string_equal(a.item[0].domain[1], "dest.test");
	arrivals_fini(&a);
	buf_fini(&errors);
}

static void refuse(const char *log, const char *settings, const char *why)
{
	struct arrivals a;
	struct buf errors = {0};
	assert_false(read_log(&a, log, settings, &errors));
	if (!strstr(buf_cstr(&errors), why))
		print_error("%s", buf_cstr(&errors));
	assert_non_null(strstr(buf_cstr(&errors), why));
	assert_int_equal(strncmp(buf_cstr(&errors), path, strlen(path)), 0);
	arrivals_fini(&a);
	buf_fini(&errors);
}

static void a_log_that_is_none_is_refused_with_its_line(void **state)
{
	(void)state;
	refuse("2026-01-02 info queued id=A\n", "", ":1: this is no event of a log");
	refuse("\n{\"event\":\"queued\",\"id\":\"A\"}\n", "", ":2: a queued event has time");
	refuse(AT("06.000") "\"queued\",\"id\":\"A\",\"nrcpt\":1,\"size\":1}\n" AT(
		       "06.000") "\"sent\",\"id\":\"A\",\"to\":\"x@elsewhere.test\"}\n",
	       "", ":2: no site serves \"elsewhere.test\"");
}

static void recipients_that_the_log_does_not_know_need_domains(void **state)
{
	(void)state;
	static const char log[] = AT("06.000") "\"queued\",\"id\":\"A\",\"nrcpt\":3,\"size\":1}\n";
	struct arrivals a;
	struct buf errors = {0};
	refuse(log, "", "the recipients of A are not in the log");
	assert_true(read_log(&a, log, "domains = {\"dest.test\"}", &errors));
	assert_string_equal(a.item[0].domain[2], "dest.test");
	arrivals_fini(&a);
	buf_fini(&errors);
}

static void a_field_is_found_whatever_stands_before_it(void **state)
{
	(void)state;
	struct buf b = {0};
#define HEAD "\"time\":\"2026-11-21T00:00:10.000Z\",\"event\":\"sent\","
	assert_true(event_field("{ " HEAD "\"a\" : \"x,\\\"}\" , \"b\":12,\"c\":true}", "b", &b));
	assert_string_equal(buf_cstr(&b), "12");
	assert_true(event_field("{" HEAD "\"a\":\"x,\\\"}\"}", "a", &b));
	assert_string_equal(buf_cstr(&b), "x,\"}");
	assert_false(event_field("{" HEAD "\"a\":\"b\"}", "b", &b));
	assert_false(event_field("{\"a\":\"b", "b", &b));
	assert_false(event_field("{" HEAD "\"a\"", "a", &b));
	assert_false(event_field("", "a", &b));
#undef HEAD
	buf_fini(&b);
}

static int make_path(void **state)
{
	(void)state;
	int fd = mkstemp(path);
	close(fd);
	return fd < 0;
}

static int remove_path(void **state)
{
	forget_run(state);
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_log_becomes_its_messages),
		cmocka_unit_test(a_log_that_is_none_is_refused_with_its_line),
		cmocka_unit_test(recipients_that_the_log_does_not_know_need_domains),
		cmocka_unit_test(a_field_is_found_whatever_stands_before_it),
	};
	return cmocka_run_group_tests(tests, make_path, remove_path);
}
