/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/world.h"

#include "base/fact.h"
#include "qmgr/dest/pooling.h"
#include "qmgr/dest/site_pace.h"

static struct box pooled; /* to the cluster */

static const char conf_text[] =
	"transport smtp { host_backoff_max = 5m host_connection_limit = 0 }\n"
	"cluster { name = us redis = \"127.0.0.1:1\" }\n"
	"queue { minimal_backoff_time = 1h maximal_backoff_time = 1h }";
static const char key[] = "192.0.2.1:25/opportunistic/";

static void to_cluster(void *context, struct note *note)
{
	(void)context;
	put(&pooled, note);
}

static int start(void **state)
{
	(void)state;
	begin(conf_text);
	q->db.edges.to_cluster = to_cluster;
	return 0;
}

static int stop(void **state)
{
	while (pooled.n > 0) {
		struct note *note = take(&pooled, 0);
		if (note->type == FACT_SEEN)
			fact_free(&(struct fact *){(struct fact *)note});
		else
			fact_probe_free(&(struct fact_probe *){(struct fact_probe *)note});
	}
	return finish(state);
}

static void mail_for_one_host(uint64_t id)
{
	send_mail(id, "x@d.test");
	if (questions.n > 0)
		answer("d.test", "10 mx.test 192.0.2.1");
}

static void expect_told(enum fact_which which, const char *words)
{
	struct fact *f = take(&pooled, 0);
	assert_int_equal(f->note.type, FACT_SEEN);
	assert_string_equal(f->key, key);
	assert_non_null(f->part[which].text);
	assert_string_equal(f->part[which].node, "us");
	if (!strstr(f->part[which].text, words)) {
		print_error("%s is not in %s\n", words, f->part[which].text);
		_fail(__FILE__, __LINE__);
	}
	fact_free(&f);
}

static void hear(enum fact_which which, int64_t ago_ms, const char *text)
{
	struct fact *f = fact_new(FACT_HEARD, key);
	fact_set(f, which, clock_wall_ms() - ago_ms, "them", text);
	post(&f->note);
	settle();
}

/* Out for so long, since so long ago. */
static void hear_out(int64_t ago_ms, int64_t for_ms)
{
	char text[200];
	snprintf(text, sizeof text,
		 "\taddress=192.0.2.1\tport=25\tfailures=4\tretry=%lld\tcode=0\tdsn=4.4.1\tby=mx"
		 "\tcalled=mx\twhen=1\twhy=gone",
		 (long long)(clock_wall_ms() + for_ms));
	hear(FACT_HEALTH, ago_ms, text);
}

static void hear_up(int64_t ago_ms)
{
	hear(FACT_HEALTH, ago_ms, "\taddress=192.0.2.1\tport=25\tproven=1");
}

static struct host *host(void)
{
	struct host *h = NULL;
	HASH_FIND_STR(q->db.hosts, key, h);
	assert_non_null(h);
	return h;
}

static void answer_probe(bool granted)
{
	struct fact_probe *p = take(&pooled, 0);
	assert_int_equal(p->note.type, FACT_PROBE);
	p->note.type = FACT_LEAVE;
	p->granted = granted;
	post(&p->note);
	settle();
}

static void what_a_connection_finds_is_told_once(void **state)
{
	(void)state;
	mail_for_one_host(1);
	lose(open_to("mx.test"), "no");
	expect_told(FACT_HEALTH, "\tfailures=1\tretry=");
	assert_int_equal(pooled.n, 0);
	pass_time(100);
	assert_int_equal(pooled.n, 0);
}

static void alone_nobody_is_told(void **state)
{
	(void)state;
	q->db.edges.to_cluster = NULL;
	mail_for_one_host(1);
	lose(open_to("mx.test"), "no");
	pass_time(1500);
	assert_int_equal(pooled.n, 0);
	assert_int_equal(opened_to("mx.test"), 1);
	assert_null(host()->pooling.fact);
}

/* The cluster ends later. */
static void who_ends_hears_it_and_says_nothing(void **state)
{
	struct note *tell = mem_zalloc(sizeof *tell);
	(void)state;
	tell->type = FACT_TELL;
	mail_for_one_host(1);
	q->db.edges.to_cluster = NULL;
	lose(open_to("mx.test"), "no");
	hear_out(0, 1000);
	post(tell);
	settle();
	assert_int_equal(pooled.n, 0);
	assert_non_null(host()->pooling.fact);
}

static void a_host_that_others_found_out_gets_no_connection(void **state)
{
	(void)state;
	hear_out(0, 60000);
	mail_for_one_host(1);
	pass_time(30000);
	assert_int_equal(opened.n, 0);
	assert_int_equal(host()->failures, 4);
	assert_int_equal(pooled.n, 0);
}

static void what_is_heard_is_not_told_again(void **state)
{
	(void)state;
	mail_for_one_host(1);
	lose(open_to("mx.test"), "no");
	expect_told(FACT_HEALTH, "\tfailures=1");
	pass_time(10);
	hear_out(0, 60000);
	hear(FACT_SPEED, 0, "\tr=1000\ts=2000");
	hear(FACT_LIMIT, 0, "\tlimit=3");
	hear(FACT_PIPELINE, 0, "\tdepth=7");
	assert_int_equal(host()->failures, 4);
	assert_int_equal(host()->speed.s_us, 2000);
	assert_int_equal(host()->limit.n, 3);
	assert_int_equal(host()->depth, 7);
	assert_int_equal(pooled.n, 0);
}

static void what_is_older_changes_nothing(void **state)
{
	(void)state;
	mail_for_one_host(1);
	lose(open_to("mx.test"), "no");
	hear_up(5);
	assert_int_equal(host()->state, HOST_OUT);
	pass_time(10);
	hear_up(0);
	assert_int_equal(host()->state, HOST_UP);
}

static void mail_goes_at_once_when_another_has_found_it_up(void **state)
{
	(void)state;
	hear_out(0, 60000);
	mail_for_one_host(1);
	assert_int_equal(opened.n, 0);
	pass_time(10);
	hear_up(0);
	assert_int_equal(opened_to("mx.test"), 1);
	ready(open_to("mx.test"), 1);
	assert_int_equal(given.n, 1);
}

static void who_serves_it_does_not_believe_that_it_is_out(void **state)
{
	(void)state;
	mail_for_one_host(1);
	ready(open_to("mx.test"), 1);
	expect_told(FACT_HEALTH, "\tproven=1");
	pass_time(10);
	hear_out(0, 60000);
	assert_int_equal(host()->state, HOST_UP);
	assert_int_equal(host()->failures, 0);
}

static void a_probe_waits_for_leave(void **state)
{
	(void)state;
	mail_for_one_host(1);
	lose(open_to("mx.test"), "no");
	expect_told(FACT_HEALTH, "\tfailures=1");
	pass_time(1001);
	assert_int_equal(opened.n, 0);
	answer_probe(false);
	assert_int_equal(opened.n, 0);
	pass_time(999);
	assert_int_equal(pooled.n, 0);
	pass_time(2);
	answer_probe(true);
	assert_int_equal(opened_to("mx.test"), 1);
}

static void who_is_denied_a_probe_tells_nothing_of_it(void **state)
{
	(void)state;
	mail_for_one_host(1);
	lose(open_to("mx.test"), "no");
	expect_told(FACT_HEALTH, "\tfailures=1");
	pass_time(1001);
	answer_probe(false);
	assert_int_equal(pooled.n, 0);
	pass_time(10);
	hear_up(0);
	assert_int_equal(host()->state, HOST_UP);
	assert_int_equal(pooled.n, 0);
}

static void a_probe_does_not_wait_for_a_cluster_that_says_nothing(void **state)
{
	(void)state;
	mail_for_one_host(1);
	lose(open_to("mx.test"), "no");
	pass_time(1001);
	for (int i = 0; i < 5; i++)
		pass_time(500);
	assert_int_equal(opened_to("mx.test"), 1);
}

static void what_it_has_seen_itself_is_told_when_it_is_wanted(void **state)
{
	struct note *tell = mem_zalloc(sizeof *tell);
	(void)state;
	qmgr_recall(
		q, "host\tkey=192.0.2.9:25/none/\taddress=192.0.2.9\tport=25\tfailures=2\twhy=x\n");
	hear(FACT_HEALTH, 1000, "\taddress=192.0.2.1\tport=25\tproven=1");
	host()->speed.s_us = 10000;
	pooling_changed(&q->db, host());
	pooling_flush(&q->db);
	expect_told(FACT_SPEED, "\ts=10000");
	tell->type = FACT_TELL;
	post(tell);
	settle();
	assert_int_equal(pooled.n, 1);
	struct fact *f = take(&pooled, 0);
	assert_string_equal(f->key, key);
	assert_string_equal(f->part[FACT_SPEED].node, "us");
	assert_null(f->part[FACT_HEALTH].text); /* whoever has seen that tells it */
	fact_free(&f);
}

static void speed_is_told_when_it_has_changed_by_half_but_not_at_once(void **state)
{
	struct host *h;
	(void)state;
	hear_up(0);
	h = host();
	h->speed.s_us = 10000;
	pooling_changed(&q->db, h);
	pooling_flush(&q->db);
	expect_told(FACT_SPEED, "\ts=10000");
	h->speed.s_us = 10500;
	pooling_changed(&q->db, h);
	pooling_flush(&q->db);
	assert_int_equal(pooled.n, 0);
	h->speed.s_us = 40000;
	pooling_changed(&q->db, h);
	pooling_flush(&q->db);
	assert_int_equal(pooled.n, 0);
	pass_time(MEASURES_MS);
	pooling_changed(&q->db, h);
	pooling_flush(&q->db);
	expect_told(FACT_SPEED, "\ts=40000");
}

static void nonsense_changes_nothing(void **state)
{
	static const char *const texts[] = {
		"",
		"\tfailures=-3",
		"\tfailures=99999999999",
		"\tretry=x",
		"\tfailures=2",
		"\t\t=\t",
		"\taddress=nowhere\tport=25\tfailures=2\twhy=x",
	};
	struct fact *f = fact_new(FACT_HEARD, "another key");
	(void)state;
	fact_set(f, FACT_HEALTH, clock_wall_ms(), "them", "\taddress=nowhere\tport=25");
	post(&f->note);
	f = fact_new(FACT_HEARD, "another key");
	fact_set(f, FACT_SPEED, clock_wall_ms(), "them", "\ts=5");
	post(&f->note);
	settle();
	assert_int_equal(HASH_COUNT(q->db.hosts), 0);
	hear_up(0);
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		pass_time(1);
		hear(FACT_HEALTH, 0, texts[i]);
		hear(FACT_LIMIT, 0, texts[i]);
	}
	mail_for_one_host(1);
	answer_probe(true); /* out, as the last one says */
	assert_int_equal(opened_to("mx.test"), 1);
}

static double pace(void)
{
	return site_pace_rate(site_named("mx.test"));
}

static void hear_pace(int64_t ago_ms)
{
	hear(FACT_PACE, ago_ms, "\tpace=4500\tsince=1\tcode=421\tdsn=4.7.28\twhy=slow down");
}

static void a_pace_of_another_node_is_kept_from_the_first_message_on(void **state)
{
	(void)state;
	hear_up(2);
	hear_pace(1);
	mail_for_one_host(1);
	assert_true(pace() > 4.4 && pace() < 4.6);
	hear(FACT_PACE, 0, "\tpace=0");
	assert_true(pace() <= 0);
}

static void what_another_node_was_told_a_day_ago_is_over(void **state)
{
	(void)state;
	hear_up(2);
	hear_pace(25 * (int64_t)3600000);
	mail_for_one_host(1);
	assert_true(pace() <= 0);
	hear_pace(1);
	assert_true(pace() > 4.4);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(what_a_connection_finds_is_told_once),
		TEST(alone_nobody_is_told),
		TEST(who_ends_hears_it_and_says_nothing),
		TEST(a_host_that_others_found_out_gets_no_connection),
		TEST(what_is_heard_is_not_told_again),
		TEST(what_is_older_changes_nothing),
		TEST(mail_goes_at_once_when_another_has_found_it_up),
		TEST(who_serves_it_does_not_believe_that_it_is_out),
		TEST(a_probe_waits_for_leave),
		TEST(who_is_denied_a_probe_tells_nothing_of_it),
		TEST(a_probe_does_not_wait_for_a_cluster_that_says_nothing),
		TEST(what_it_has_seen_itself_is_told_when_it_is_wanted),
		TEST(speed_is_told_when_it_has_changed_by_half_but_not_at_once),
		TEST(nonsense_changes_nothing),
		TEST(a_pace_of_another_node_is_kept_from_the_first_message_on),
		TEST(what_another_node_was_told_a_day_ago_is_over),
	};
	return RUN(tests);
}
