/* SPDX-License-Identifier: ISC */
#include "tests/unit/sim/unit.h"

#include "sim/arrivals.h"

static void says(const char *text, const char *fault)
{
	struct buf errors = {0};
	struct scenario *s = scenario_parse(text, "test.conf", &errors);
	assert_null(s);
	if (!strstr(buf_cstr(&errors), fault))
		print_error("%s", buf_cstr(&errors));
	assert_non_null(strstr(buf_cstr(&errors), fault));
	buf_fini(&errors);
}

static void what_is_wrong_is_said_with_its_line(void **state)
{
	(void)state;
	says("", "test.conf:1: there is no arrival");
	says("\n\nhost \"h\" { colour = 1 }", "test.conf:3: no such option 'colour'");
	says("hostname = \"x\"\n", "test.conf:1: no such option 'hostname'");
	says("\nhost \"h\" {\n connect = 5\n}", "test.conf:3: connect must be a duration");
	says("\nhost \"h\" {\n noise = \"2\"\n}", "test.conf:3: noise must be 0 to 1");
	says("host \"h\" { broken = \"1x\" }", "test.conf:1: broken must be 0 to 1");
	says("host \"h\" {\n\n outages = {\"2m..1m\"} }",
	     "test.conf:3: \"2m..1m\" is not of the form 10m..1h");
	says("host \"h\" {\n\n limits = {\"1m five\"} }",
	     "test.conf:3: \"1m five\" is not of the form \"20m 5\"");
	says("host \"h\" { limits = {\"1m 5\", \"1m 6\"} }", "limits are in the order of time");
	says("host \"h\" {\n blocked = {\"1m..2m\"} }",
	     "test.conf:2: \"1m..2m\" is not of the form");
	says("host \"h\" { blocked = {\"1m..2m nowhere\"} }", "names no address");
	says("simulation { binding = \"early\" } host \"h\" { blocked = {\"1m..2m 192.0.2.1\"} }",
	     "blocked is for late binding");
	says("simulation { suspend = {\"flow 1h\"} }", "\"flow 1h\" is not of the form 10m FLOW");
	says("simulation { periods = {\"1h..2h\"} }", "is not of the form NAME 10m..1h");
	says("simulation { columns = {\"2h..1h\"} }", "is not of the form 10m..1h");
	says("simulation {\n columns = {\"0s..1s\", \"1s..2s\", \"2s..3s\", \"3s..4s\", "
	     "\"4s..5s\"} }",
	     "test.conf:2: a picture has 4 columns at most");
	says("host \"h\" { outage_every = 1m }", "outage_every needs outages");
	says("host \"h\" { outage_every = 1m outages = {\"50s..70s\"} }",
	     "\"50s..70s\" does not end before it comes again");
	says("host \"h\" { backlog = 3 }", "test.conf:1: a backlog needs a connection_limit");
	says("host \"h\" { deferred = \"60%\" failed = \"60%\" }", "more than all");
	says("site \"s\" {\n domains = {\"a.test\"}\n mx = {\"10 nobody\"} }",
	     "test.conf:3: there is no host \"nobody\"");
	says("host \"h\" {} site \"s\" { domains = {\"a.test\"} mx = {\"first h\"} }",
	     "\"first h\" is not of the form");
	says("site \"s\" { domains = {\"a.test\"} }", "site \"s\" needs mx, or else failure");
	says("transport \"smtp\" {\n nonsense = 1 }", "test.conf:2: no such option 'nonsense'");
	says("route \"*\" { transport = \"none\" }", "there is no transport \"none\"");
	says("simulation { connection_cache = true }", "for early binding only");
	says("host \"h\" {\n", "test.conf:1: this section is never closed");
	says("host \"h\" {}\nhost \"h\" {}", "test.conf:2: host \"h\" is already there, in line 1");
}

/* Three parts of a day that have none, as many, and five times as many; and a Tuesday without. */
static void a_day_has_hours_and_a_week_has_days(void **state)
{
	struct scenario *s = scenario_of(ONE_HOST("") ARRIVE(
		"distribution = \"poisson\" rate = \"600/h\" messages = 1000000 until = 14d "
		"hours = {\"0\", \"1\", \"5\"} weekdays = {\"1\", \"0\", \"1\", \"1\", \"1\", "
		"\"1\", \"2\"}"));
	struct arrivals a;
	struct buf errors = {0};
	int part[3] = {0}, day[14] = {0};
	(void)state;
	assert_true(arrivals_make(&a, s, 1, &errors));
	for (int i = 0; i < a.n; i++) {
		int64_t ms = a.item[i].at_us / 1000;
		assert_true(ms <= 14 * INT64_C(86400000));
		part[ms % 86400000 / 28800000]++;
		day[ms / 86400000]++;
	}
	assert_in_range(a.n, 197000, 206000); /* 600 x 24 x 14 */
	assert_int_equal(part[0], 0);
	assert_in_range(part[2] * 100 / part[1], 480, 520);
	assert_int_equal(day[1] + day[8], 0);
	assert_in_range((day[6] + day[13]) * 100 / (day[0] + day[7]), 190, 210);
	arrivals_fini(&a);
	scenario_free(&s);
	buf_fini(&errors);
}

static void an_arrival_must_make_sense(void **state)
{
	(void)state;
	says("arrival \"a\" {}", "test.conf:1: arrival \"a\" has no domains");
	says(ARRIVE(""), "no site serves \"dest.test\"");
	says(ONE_HOST("") ARRIVE("messages = 2"), "test.conf:3: arrival \"a\" needs a rate");
	says(ONE_HOST("") ARRIVE("distribution = \"uniform\""), "needs within");
	says(ONE_HOST("") ARRIVE("within = 1m"), "within is for uniform");
	says(ONE_HOST("") ARRIVE("distribution = \"bursts\" rate = \"1/s\""), "have no rate");
	says(ONE_HOST("") ARRIVE("hours = {\"1\", \"x\"}"), "hours are numbers from 0, not \"x\"");
	says(ONE_HOST("") ARRIVE("weekdays = {\"1\", \"2\"}"), "a week has seven days");
	says(ONE_HOST("") ARRIVE("distribution = \"poisson\" rate = \"1/s\" hours = {\"0\"}"),
	     "not all hours can be 0");
	says(ONE_HOST("") ARRIVE("hours = {\"1\"}"), "for poisson arrivals only");
	says(ONE_HOST("") ARRIVE("trace = \"x\" burst = 3"), "burst is not for a trace");
	says(ONE_HOST("") ARRIVE("recipients = {\"0\"}"), "\"0\" is not of the form 3, 1..10");
	says(ONE_HOST("") ARRIVE("recipients = {\"5..2\"}"), "\"5..2\" is not of the form");
	says(ONE_HOST("") ARRIVE("recipients = {\"1\", \"4294967296\"}"),
	     "a message has at most 10000000 recipients");
	says(ONE_HOST("") ARRIVE("sizes = {\"1k:0\"}"), "\"1k:0\" is not of the form 2k");
}

static void the_most_specific_site_serves_a_domain(void **state)
{
	(void)state;
	struct scenario *s = scenario_of("host \"h\" {}\n"
					 "site \"1\" { domains = {\"*\"} mx = {\"1 h\"} }\n"
					 "site \"2\" { domains = {\".b.test\"} mx = {\"1 h\"} }\n"
					 "site \"3\" { domains = {\"x.b.test\"} mx = {\"1 h\"} }\n"
					 "arrival \"a\" { domains = {\"b.test\"} }\n");
	assert_string_equal(scenario_find_site(s, "x.b.test")->title, "3");
	assert_string_equal(scenario_find_site(s, "X.B.Test")->title, "3");
	assert_string_equal(scenario_find_site(s, "y.b.test")->title, "2");
	assert_string_equal(scenario_find_site(s, "b.test")->title, "1");
	scenario_free(&s);
}

static void settings_of_a_transport_are_those_of_the_relay(void **state)
{
	(void)state;
	struct scenario *s = scenario_of(
		"transport \"smtp\" { destination_concurrency_limit = 7 }\n"
		"transport \"slow\" { like = \"smtp\" connect_timeout = 3s }\n"
		"route \"dest.test\" { transport = \"slow\" }\n" ONE_HOST("") ARRIVE(""));
	assert_int_equal(s->conf->ntransport, 2);
	assert_int_equal(s->conf->transport[1].destination_concurrency_limit, 7);
	assert_int_equal(s->conf->transport[1].connect_timeout, 3000);
	assert_ptr_equal(s->conf->route[0].by, &s->conf->transport[1]);
	scenario_free(&s);
}

static void hosts_come_in_the_order_of_their_preference(void **state)
{
	(void)state;
	struct scenario *s =
		scenario_of("host \"a\" {} host \"b\" {} host \"192.0.2.7\" {}\n"
			    "site \"s\" { domains = {\"dest.test\"} "
			    "mx = {\"20 a\", \"5 192.0.2.7\", \"10 b\"} }\n" ARRIVE(""));
	assert_int_equal(s->site[0].to[0].host, 2);
	assert_int_equal(s->site[0].to[1].host, 1);
	assert_int_equal(s->site[0].to[2].preference, 20);
	assert_int_equal(ntohl(s->host[2].address.in.sin_addr.s_addr), 0xc0000207);
	scenario_free(&s);
}

static int64_t in_all(const struct arrivals *a)
{
	int64_t n = 0;
	for (int i = 0; i < a->n; i++)
		n += a->item[i].nrcpt;
	return n;
}

static void arrivals_keep_to_their_distribution(void **state)
{
	(void)state;
	struct scenario *s = scenario_of(ONE_HOST(
		"") "arrival \"c\" { start = 10s messages = 100 rate = \"2/s\" domains = "
		    "{\"dest.test\"} }\n"
		    "arrival \"p\" { messages = 2000 distribution = \"poisson\" rate = \"100/s\" "
		    "domains = {\"dest.test\"} recipients = {\"3\"} }\n"
		    "arrival \"u\" { messages = 500 distribution = \"uniform\" within = 1m "
		    "domains = {\"dest.test\"} sizes = {\"1k..2k\"} }\n"
		    "arrival \"b\" { messages = 30 distribution = \"bursts\" burst = 10 interval = "
		    "1h "
		    "domains = {\"dest.test\"} }\n");
	struct arrivals a;
	struct buf errors = {0};
	assert_true(arrivals_make(&a, s, 1, &errors));
	assert_int_equal(a.n, 2630);
	assert_int_equal(in_all(&a), 630 + 3 * 2000);
	for (int i = 1; i < a.n; i++)
		assert_true(a.item[i - 1].at_us <= a.item[i].at_us);
	assert_true(a.item[a.n - 1].at_us == INT64_C(7200000000)); /* the third burst */
	int64_t constant = 0, last_poisson = 0;
	for (int i = 0; i < a.n; i++) {
		constant += a.item[i].number < 100 &&
			    a.item[i].at_us == 10000000 + a.item[i].number * 500000;
		if (a.item[i].nrcpt == 3)
			last_poisson = a.item[i].at_us;
	}
	assert_int_equal(constant, 100);
	assert_in_range(last_poisson, 18000000, 22000000);
	arrivals_fini(&a);
	buf_fini(&errors);
	scenario_free(&s);
}

static void a_domain_may_have_the_number_of_its_recipient(void **state)
{
	(void)state;
	struct scenario *s = scenario_of(
		"host \"h\" {}\nsite \"s\" { domains = {\".dest.test\"} mx = {\"1 h\"} }\n"
		"arrival \"a\" { recipients = {\"12\"} domains = {\"d#.dest.test\"} }\n");
	struct arrivals a;
	struct buf errors = {0};
	assert_true(arrivals_make(&a, s, 1, &errors));
	assert_string_equal(a.item[0].domain[0], "d1.dest.test");
	assert_string_equal(a.item[0].domain[11], "d12.dest.test");
	arrivals_fini(&a);
	buf_fini(&errors);
	scenario_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_is_said_with_its_line),
		cmocka_unit_test(an_arrival_must_make_sense),
		cmocka_unit_test(a_day_has_hours_and_a_week_has_days),
		cmocka_unit_test(the_most_specific_site_serves_a_domain),
		cmocka_unit_test(settings_of_a_transport_are_those_of_the_relay),
		cmocka_unit_test(hosts_come_in_the_order_of_their_preference),
		cmocka_unit_test(arrivals_keep_to_their_distribution),
		cmocka_unit_test(a_domain_may_have_the_number_of_its_recipient),
	};
	return RUN(tests);
}
