/* SPDX-License-Identifier: ISC */
#include "tests/unit/sim/unit.h"

#include "sim/event.h"
#include "sim/learn.h"
#include "sim/arrivals.h"

#include <math.h>
#include <unistd.h>

static char text_log[4200], json_log[4200];

static void find_file(char path[4200], const char *name)
{
	char self[4000];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	assert_true(n > 0);
	self[n] = '\0';
	char *build = strstr(self, "/build/");
	assert_non_null(build);
	snprintf(path, 4200, "%.*s/tests/unit/sim/%s", (int)(build - self), self, name);
}

static int find_files(void **state)
{
	(void)state;
	find_file(text_log, "yesterday.log");
	find_file(json_log, "yesterday.json");
	return 0;
}

/* The scenario that is in a log, as text; the caller's to fini. */
static struct buf learn(const char *file)
{
	struct buf text = {0}, errors = {0};
	if (!learn_scenario(file, &text, &errors))
		print_error("%s", buf_cstr(&errors));
	assert_int_equal(buf_len(&errors), 0);
	buf_fini(&errors);
	return text;
}

static const struct scenario_host *host(const char *address)
{
	int i = scenario_find_host(ran_of, address);
	assert_true(i >= 0);
	return &ran_of->host[i];
}

static void learn_from(const char *file)
{
	struct buf text = learn(file);
	ran_of = scenario_of(buf_cstr(&text));
	buf_fini(&text);
}

static void times_are_those_of_the_log(void **state)
{
	(void)state;
	learn_from(text_log);
	const struct scenario_host *h = host("192.0.2.1");
	assert_int_equal(h->connect, 20); /* a third of 60 ms */
	assert_int_equal(h->greeting, 40);
	assert_int_equal(h->round_trip, 40); /* two of its three round trips */
	assert_int_equal(h->transaction, 120);
	assert_int_equal(host("192.0.2.2")->round_trip + host("192.0.2.2")->transaction, 90);
}

static void failures_are_those_of_the_log(void **state)
{
	(void)state;
	learn_from(text_log);
	const struct scenario_host *one = host("192.0.2.1"), *two = host("192.0.2.2");
	assert_int_equal(one->nspan, 1);
	assert_int_equal(one->span[0].from_ms, 290000);
	assert_int_equal(one->span[0].to_ms, 390000);
	assert_int_equal(one->outage, OUTAGE_SILENT);
	assert_true(one->deferred_part == 0.2 && one->failed_part == 0.2);
	assert_int_equal(two->nspan, 0); /* once is chance */
	assert_true(two->refused_part == 0.5);
	assert_true(two->broken_part > 0 && one->broken_part == 0);
}

static void limits_are_those_that_were_learnt(void **state)
{
	(void)state;
	learn_from(text_log);
	const struct scenario_host *h = host("192.0.2.2");
	assert_int_equal(h->nlimit, 2);
	assert_int_equal(h->limit[0].from_ms, 0);
	assert_int_equal(h->limit[0].n, 5);
	assert_int_equal(h->limit[1].from_ms, 110000);
	assert_int_equal(h->limit[1].n, 3);
	assert_int_equal(host("192.0.2.1")->nlimit, 0);
}

static void sites_are_called_as_in_the_log_and_share_their_hosts(void **state)
{
	(void)state;
	learn_from(text_log);
	assert_int_equal(ran_of->nhost, 2);
	const struct scenario_site *one = scenario_find_site(ran_of, "one.test");
	const struct scenario_site *two = scenario_find_site(ran_of, "two.test");
	assert_int_equal(one->nmx, 2);
	assert_int_equal(two->nmx, 1);
	assert_string_equal(two->to[0].name, "mx.two.test");
	assert_string_equal(ran_of->host[two->to[0].host].title, "192.0.2.1");
	assert_string_equal(scenario_find_site(ran_of, "nowhere.test")->failure, "4.4.3");
}

static void arrivals_are_those_of_the_log(void **state)
{
	(void)state;
	struct arrivals a;
	struct buf errors = {0};
	learn_from(text_log);
	assert_true(arrivals_make(&a, ran_of, 1, &errors));
	assert_int_equal(a.n, 4); /* a report is none, nor what came before */
	assert_int_equal(a.item[0].nrcpt, 2);
	assert_string_equal(a.item[0].domain[1], "one.test");
	assert_int_equal(a.item[1].at_us, 2000000);
	assert_string_equal(a.item[2].domain[0], "nowhere.test");
	assert_int_equal(a.item[2].size, 52000);
	assert_int_equal(a.item[3].at_us, 20000000);
	arrivals_fini(&a);
	buf_fini(&errors);
}

static void what_was_learnt_runs(void **state)
{
	(void)state;
	learn_from(text_log);
	ran_of->conf->queue.maximal_queue_lifetime = 3600000;
	ran = run(ran_of);
	struct tally *t = ran->run[0].tally;
	assert_int_equal(t->messages, 4);
	assert_int_equal(t->sent + t->failed, 5);
	assert_non_null(tally_site_of(t, "two.test"));
	assert_string_equal(tally_site_of(t, "two.test")->key, "bulk mx.two.test");
}

/* But for its name, which is in the first line and the arrival. */
static void both_forms_of_a_log_say_the_same(void **state)
{
	(void)state;
	struct buf a = learn(text_log), b = learn(json_log);
	const char *x = strstr(buf_cstr(&a), "\tdomains"), *y = strstr(buf_cstr(&b), "\tdomains");
	assert_true(x && y);
	assert_string_equal(x, y);
	buf_fini(&a);
	buf_fini(&b);
}

/* A log of a site of two hosts: each line one recipient that went at so many seconds, after so long in the queue. */
struct went {
	double at, waited;
};

static void write_line(FILE *log, double at, const char *rest)
{
	int64_t ms = (int64_t)(at * 1000 + 0.5);
	fprintf(log, "2026-11-21T%02d:%02d:%02d.%03dZ info %s\n", (int)(ms / 3600000),
		(int)(ms / 60000 % 60), (int)(ms / 1000 % 60), (int)(ms % 1000), rest);
}

static void learn_from_site(const struct went went[], int n, double refused)
{
	char path[] = "/tmp/sluice-learn-XXXXXX", line[300];
	FILE *log = fdopen(mkstemp(path), "w");
	assert_non_null(log);
	write_line(log, 0, "queued id=1 from=a@here.test nrcpt=1 size=2100");
	for (int i = 0; i < n; i++) {
		snprintf(line, sizeof line,
			 "sent id=%d to=x@one.test site=mx1,mx2 relay=mx%d[192.0.2.%d]:25 "
			 "transport=smtp "
			 "delays=0/%.3f/0/0 reply=\"250 ok\"",
			 i, i % 2 + 1, i % 2 + 1, went[i].waited);
		if (refused >= 0 && (i == 0 || went[i - 1].at <= refused) && went[i].at > refused)
			write_line(log, refused,
				   "pace site=mx1,mx2 transport=smtp state=paced pace=20 "
				   "reason=refused reply=\"451 slow\"");
		write_line(log, went[i].at, line);
	}
	fclose(log);
	struct buf text = {0}, errors = {0};
	assert_true(learn_scenario(path, &text, &errors));
	ran_of = scenario_of(buf_cstr(&text));
	buf_fini(&text);
	buf_fini(&errors);
	unlink(path);
}

/* A log of a recipient each, who went where the rest of its line says. */
static void learn_from_recipients(const char *const went[], int n)
{
	char path[] = "/tmp/sluice-learn-XXXXXX", line[300];
	FILE *log = fdopen(mkstemp(path), "w");
	assert_non_null(log);
	for (int i = 0; i < n; i++) {
		snprintf(line, sizeof line, "queued id=%d from=a@here.test nrcpt=1 size=2100", i);
		write_line(log, i, line);
		snprintf(line, sizeof line, "%s delays=0/0/0.1/0.1 id=%d", went[i], i);
		write_line(log, i + 0.5, line);
	}
	fclose(log);
	struct buf text = {0}, errors = {0};
	assert_true(learn_scenario(path, &text, &errors));
	ran_of = scenario_of(buf_cstr(&text));
	ran = run(ran_of); /* which reads the log again */
	unlink(path);
	buf_fini(&text);
	buf_fini(&errors);
}

static void whatever_mail_was_for_and_went_to_can_be_run(void **state)
{
	static const char relay[] =
		"site=mx.test relay=mx.test[192.0.2.1]:25 transport=smtp reply=\"250 ok\"";
	static const struct {
		const char *to, *rest;
	} one[] = {
		{"x@one.test", "site=2001:db8::1 relay=2001:db8::1[2001:db8::1]:25 transport=smtp "
			       "reply=\"250 ok\""},
		{"x@one.test",
		 "site=unix:/run/l relay=unix:/run/l transport=smtp reply=\"250 ok\""},
		{"x@one.test",
		 "site=\"unix:/a b\" relay=\"unix:/a b\" transport=smtp reply=\"250 ok\""},
		{"x@[192.0.2.1]", relay},
		{"x@b\xc3\xbc"
		 "cher.test",
		 relay},
		{"x@one,two.test", relay},
	};
	(void)state;
	for (size_t i = 0; i < sizeof one / sizeof *one; i++) {
		char line[300];
		const char *went = line;
		snprintf(line, sizeof line, "sent to=%s dsn=2.0.0 %s", one[i].to, one[i].rest);
		learn_from_recipients(&went, 1);
		assert_int_equal(ran->run[0].tally->sent, 1);
		sim_free(&ran);
		scenario_free(&ran_of);
	}
}

/* As of a machine that slept through it, or a line that somebody else wrote. */
static void delays_beyond_all_measure_can_be_run(void **state)
{
	static const char *const delays[] = {"0/0/90000/0.1",
					     "0/0/0.1/90000",
					     "0/0/1e300/1e300",
					     "0/1e300/1e300/0.1",
					     "inf/inf/inf/inf",
					     "nan/nan/nan/nan",
					     "-1e300/-1e300/-1e300/-1e300"};
	(void)state;
	for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
		char line[300];
		const char *went = line;
		snprintf(line, sizeof line,
			 "sent to=x@one.test site=mx.test relay=mx.test[192.0.2.1]:25 "
			 "transport=smtp reply=\"250 ok\" delays=%s",
			 delays[i]);
		learn_from_recipients(&went, 1);
		assert_non_null(ran);
		sim_free(&ran);
		scenario_free(&ran_of);
	}
}

static void a_domain_in_two_spellings_is_one(void **state)
{
	static const char *const went[] = {
		"sent to=x@one.test site=mx.test relay=mx.test[192.0.2.1]:25 transport=smtp "
		"reply=\"250 ok\"",
		"deferred to=x@ONE.test site=none relay=none transport=none dsn=4.4.3 reply=\"no "
		"answer\""};
	(void)state;
	learn_from_recipients(went, 2);
	assert_int_equal(ran_of->nsite, 1);
	assert_int_equal(ran->run[0].tally->sent, 2);
}

static void parts_are_no_more_than_all(void **state)
{
	enum { N = 800, DEFERRED = 13 };
	const char *went[N];
	(void)state;
	for (int i = 0; i < N; i++)
		went[i] = i < DEFERRED
				  ? "deferred to=x@one.test site=mx.test "
				    "relay=mx.test[192.0.2.1]:25 transport=smtp reply=\"450 no\""
				  : "bounced to=x@one.test site=mx.test "
				    "relay=mx.test[192.0.2.1]:25 transport=smtp reply=\"550 no\"";
	learn_from_recipients(went, N);
	assert_true(host("192.0.2.1")->deferred_part + host("192.0.2.1")->failed_part <= 1);
}

static double bucket_a_second(const struct scenario_host *h)
{
	return h->bucket.per_ms > 0 ? (double)h->bucket.events * 1000 / (double)h->bucket.per_ms
				    : 0;
}

static void a_bucket_is_what_went_while_mail_waited(void **state)
{
	(void)state;
	struct went went[230];
	for (int i = 0; i < 30; i++) /* what it had in store */
		went[i] = (struct went){0.001 * i, 0.001 * i};
	for (int i = 30; i < 130; i++) /* bit by bit, and mail waits */
		went[i] = (struct went){0.1 * (i - 29), 0.1 * (i - 29)};
	for (int i = 130; i < 230; i++) /* then hardly any comes, and none waits */
		went[i] = (struct went){60 + 10 * (i - 130), 0};
	learn_from_site(went, 230, 0.03);
	assert_true(fabs(bucket_a_second(host("192.0.2.1")) - 10) < 0.2);
	assert_in_range(host("192.0.2.1")->bucket_room, 29, 31);
	assert_string_equal(host("192.0.2.1")->bucket_of, host("192.0.2.2")->bucket_of);
}

static void a_bucket_that_is_filled_at_once_has_its_mean(void **state)
{
	(void)state;
	struct went went[200];
	for (int i = 0; i < 200; i++)
		went[i] = (struct went){60 * (i / 40) + 0.01 * (i % 40),
					60 * (i / 40) + 0.01 * (i % 40)};
	learn_from_site(went, 200, 0.5);
	assert_true(fabs(bucket_a_second(host("192.0.2.1")) * 60 - 40) < 1);
	assert_in_range(host("192.0.2.1")->bucket_room, 38, 42);
}

static void who_refused_nothing_has_no_bucket(void **state)
{
	(void)state;
	struct went went[100];
	for (int i = 0; i < 100; i++)
		went[i] = (struct went){0.1 * i, 0.1 * i};
	learn_from_site(went, 100, -1);
	assert_true(bucket_a_second(host("192.0.2.1")) == 0);
}

static void a_log_without_messages_is_told(void **state)
{
	(void)state;
	struct buf text = {0}, errors = {0};
	assert_false(learn_scenario("/dev/null", &text, &errors));
	assert_non_null(strstr(buf_cstr(&errors), "/dev/null:1: no message"));
	assert_false(learn_scenario("/nowhere/at/all", &text, &errors));
	assert_non_null(strstr(buf_cstr(&errors), "can't be read"));
	buf_fini(&text);
	buf_fini(&errors);
}

static void a_log_that_is_a_pipe_is_told(void **state)
{
	struct buf text = {0}, errors = {0};
	char path[40];
	int way[2];
	(void)state;
	assert_int_equal(pipe(way), 0);
	assert_int_equal(write(way[1], "\n", 1), 1);
	close(way[1]);
	snprintf(path, sizeof path, "/dev/fd/%d", way[0]);
	assert_false(learn_scenario(path, &text, &errors));
	assert_non_null(strstr(buf_cstr(&errors), "it is a pipe"));
	close(way[0]);
	buf_fini(&text);
	buf_fini(&errors);
}

static void lines_in_the_form_text_have_fields(void **state)
{
	(void)state;
	struct buf b = {0};
	static const char line[] =
		"2026-11-21T00:00:10.000Z info sent id=1 reply=\"250 \\\"a b\\\"\" "
		"empty= last=x=y";
	assert_true(event_field(line, "event", &b));
	assert_string_equal(buf_cstr(&b), "sent");
	assert_true(event_field(line, "reply", &b));
	assert_string_equal(buf_cstr(&b), "250 \"a b\"");
	assert_true(event_field(line, "last", &b));
	assert_string_equal(buf_cstr(&b), "x=y");
	assert_true(event_field(line, "empty", &b));
	assert_string_equal(buf_cstr(&b), "");
	assert_false(event_field(line, "none", &b));
	assert_false(event_field("this is no event", "event", &b));
	assert_false(event_field("2026-11-21T00:00:10.000Z info sent a=\"b", "a", &b));
	assert_false(event_field("2026-11-21T00:00:10.000Z info", "event", &b));
	buf_fini(&b);
}

#define TEST(name) cmocka_unit_test_teardown(name, forget_run)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(times_are_those_of_the_log),
		TEST(failures_are_those_of_the_log),
		TEST(limits_are_those_that_were_learnt),
		TEST(sites_are_called_as_in_the_log_and_share_their_hosts),
		TEST(arrivals_are_those_of_the_log),
		TEST(what_was_learnt_runs),
		TEST(both_forms_of_a_log_say_the_same),
		TEST(whatever_mail_was_for_and_went_to_can_be_run),
		TEST(delays_beyond_all_measure_can_be_run),
		TEST(a_domain_in_two_spellings_is_one),
		TEST(parts_are_no_more_than_all),
		TEST(a_bucket_is_what_went_while_mail_waited),
		TEST(a_bucket_that_is_filled_at_once_has_its_mean),
		TEST(who_refused_nothing_has_no_bucket),
		TEST(a_log_without_messages_is_told),
		TEST(a_log_that_is_a_pipe_is_told),
		TEST(lines_in_the_form_text_have_fields),
	};
	return cmocka_run_group_tests(tests, find_files, NULL);
}
