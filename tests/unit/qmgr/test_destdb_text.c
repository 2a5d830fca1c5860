/* SPDX-License-Identifier: ISC */
/* What is learnt about hosts and sites outlives the process. */
#include "tests/unit/qmgr/world.h"

#include "base/address.h"
#include "qmgr/dest/destdb.h"
#include "qmgr/dest/destdb_text.h"
#include "qmgr/dest/host_text.h"
#include "qmgr/dest/remembered.h"
#include "qmgr/dest/suspend.h"

#include <inttypes.h>

static struct buf text;

static struct host *host_of(const char *ip)
{
	union address address;
	assert_true(address_parse(ip, 25, &address));
	return destdb_host(&q->db, ip, &address);
}

/* It was written down, and comes up again so much later. */
static void restart(int64_t after_ms)
{
	buf_init(&text);
	destdb_write(&q->db, &text);
	int64_t now_ms = clock_ms;
	finish(NULL);
	begin("");
	clock_ms = now_ms + after_ms;
	destdb_read(&q->db, buf_cstr(&text));
	buf_fini(&text);
}

static void goes_out(struct host *h, int failures)
{
	struct verdict *why =
		verdict_new(VERDICT_DEFERRED, 421, "4.7.0", "mx.test[192.0.2.1]:25", "not now");
	for (int i = 0; i < failures; i++)
		host_failed(h, why, "mx.test", h->era, clock_steady_ms(), 300000);
	verdict_unref(why);
}

static void a_host_that_is_out_is_out_until_the_same_time_for_the_same_reason(void **state)
{
	(void)state;
	begin("");
	goes_out(host_of("192.0.2.1"), 8); /* for about 128 s */
	int64_t left_ms = host_of("192.0.2.1")->retry_ms - clock_steady_ms() - 100000;
	assert_in_range(left_ms, 12000, 44000);
	restart(100000);
	struct host *h = host_of("192.0.2.1");
	assert_string_equal(h->peer, "[192.0.2.1]:25");
	assert_int_equal(h->failures, 8);
	assert_string_equal(destdb_state(h, clock_steady_ms()), "out");
	assert_int_equal(h->retry_ms, clock_steady_ms() + left_ms);
	assert_int_equal(h->why->code, 421);
	assert_string_equal(h->why->dsn, "4.7.0");
	assert_string_equal(h->why->text, "not now");
	struct verdict *other = host_why(h, "other.test");
	assert_string_equal(other->host, "other.test[192.0.2.1]:25");
	verdict_unref(other);
	pass_time(left_ms);
	assert_true(host_probe_due(h, clock_steady_ms()));
}

static void one_whose_time_has_passed_meanwhile_is_probed_at_once(void **state)
{
	(void)state;
	begin("");
	goes_out(host_of("192.0.2.1"), 3);
	restart(100000);
	assert_true(host_out(host_of("192.0.2.1")));
	assert_true(host_probe_due(host_of("192.0.2.1"), clock_steady_ms()));
	goes_out(host_of("192.0.2.1"), 1);
	assert_in_range(host_of("192.0.2.1")->retry_ms, clock_steady_ms() + 7000,
			clock_steady_ms() + 9000);
}

static void how_fast_it_is_is_kept(void **state)
{
	(void)state;
	begin("");
	struct host *h = host_of("192.0.2.1");
	host_worked(h, clock_steady_ms());
	h->speed = (struct speed){.r_us = 12345, .s_us = 678, .setup_us = 90123};
	restart(5000);
	h = host_of("192.0.2.1");
	assert_true(h->proven);
	assert_int_equal(h->speed.r_us, 12345);
	assert_int_equal(h->speed.s_us, 678);
	assert_int_equal(h->speed.setup_us, 90123);
}

static void the_limit_that_it_was_seen_to_have_is_kept_with_its_times(void **state)
{
	(void)state;
	begin("");
	struct host *h = host_of("192.0.2.1");
	struct verdict *why = verdict_new(VERDICT_DEFERRED, 421, "4.7.0", "mx", "too many");
	h->ready = 5;
	host_turned_away(h, why, "mx", clock_steady_ms());
	for (int i = 0; i < 3; i++) { /* after 1 s, 2 s, a minute */
		clock_ms = h->limit.again_ms;
		host_turned_away(h, why, "mx", clock_steady_ms());
	}
	verdict_unref(why);
	h->ready = 0;
	restart(50000);
	h = host_of("192.0.2.1");
	assert_int_equal(h->limit.n, 5);
	assert_int_equal(h->limit.wait_ms, 120000);
	assert_int_equal(h->limit.again_ms, clock_steady_ms() + 70000);
	assert_false(host_out(h));
}

static void depth_and_mode_are_kept(void **state)
{
	(void)state;
	begin("");
	struct host *h = host_of("192.0.2.1");
	h->depth = 7;
	host_confused(h, CONNECTION_LOCKSTEP, NULL, "mx", clock_steady_ms());
	host_confused(h, CONNECTION_SMALL_HELLO, NULL, "mx", clock_steady_ms());
	restart(HOST_MODE_MS - 5);
	h = host_of("192.0.2.1");
	assert_int_equal(h->depth, 7);
	assert_int_equal(host_mode(h, clock_steady_ms()),
			 CONNECTION_LOCKSTEP | CONNECTION_SMALL_HELLO);
	assert_string_equal(host_mode_name(host_mode(h, clock_steady_ms())),
			    "lockstep, small hello");
	assert_int_equal(host_mode(h, clock_steady_ms() + 5), CONNECTION_FULL);
}

static void how_many_recipients_it_takes_is_kept_for_a_day(void **state)
{
	(void)state;
	begin("");
	host_ended_at(host_of("192.0.2.1"), 20, true, clock_steady_ms());
	restart(HOST_MODE_MS - 5);
	struct host *h = host_of("192.0.2.1");
	assert_int_equal(host_recipients_most(h, clock_steady_ms()), 20);
	assert_int_equal(host_recipients_most(h, clock_steady_ms() + 5), 0);
}

static void broken_tls_is_kept_by_name(void **state)
{
	(void)state;
	begin("");
	struct host *h = host_of("192.0.2.1");
	host_set_plain(h, "a.test", clock_steady_ms() + 50000);
	host_set_plain(h, "b.test", clock_steady_ms() + 5000);
	restart(10000);
	h = host_of("192.0.2.1");
	assert_int_equal(host_plain_until_ms(h, "a.test"), clock_steady_ms() + 40000);
	assert_false(host_plain(h, "b.test", clock_steady_ms()));
	assert_false(host_plain(h, "c.test", clock_steady_ms()));
}

static void a_window_is_kept_for_a_day(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		begin("");
		send_many(1);
		site_named("mx.test")->window.concurrency = 13;
		restart(late ? REMEMBERED_MS : REMEMBERED_MS - 1);
		send_many(1);
		assert_int_equal(site_named("mx.test")->window.concurrency, late ? 5 : 13);
		assert_null(q->db.remembered); /* the site has it now */
		finish(NULL);
	}
	begin("");
}

/* Of a relay, and of mail hosts of the same name. */
static void send_by_hub(bool relayed)
{
	send_mail(1, relayed ? "x@sub.test" : "x@other.test");
	answer(relayed ? "hub.test" : "other.test", "10 hub.test 192.0.2.1");
}

static void window_is(int concurrency)
{
	assert_int_equal(site_named("hub.test")->window.concurrency, concurrency);
	finish(NULL);
}

static void begin_with(const char *line)
{
	begin("route sub.test { relay = { hub.test } }");
	buf_init(&text);
	buf_printf(&text, "site\t%s\twindow=13\tat=%" PRId64 "\n", line, clock_wall_ms());
	destdb_read(&q->db, buf_cstr(&text));
	buf_fini(&text);
}

static void a_window_is_the_relays_or_that_of_hosts_of_its_name(void **state)
{
	(void)state;
	for (int relayed = 0; relayed < 2; relayed++) {
		begin_with("apart=1\tkey=smtp hub.test");
		send_by_hub(relayed);
		window_is(relayed ? 5 : 13);
		begin_with("apart=1\tkey=smtp relay:>hub.test");
		send_by_hub(relayed);
		window_is(relayed ? 13 : 5);
		begin_with("key=smtp hub.test"); /* it was not told before which */
		send_by_hub(relayed);
		assert_null(q->db.remembered);
		window_is(13);
	}
	begin("");
}

static void a_relays_window_outlives_a_restart_and_is_forgotten_by_its_name(void **state)
{
	(void)state;
	static const char *const names[] = {"hub.test", "smtp hub.test"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		begin("route sub.test { relay = { hub.test } }");
		send_by_hub(true);
		site_named("hub.test")->window.concurrency = 13;
		restart(1000);
		assert_string_equal(q->db.remembered->key, "smtp relay:>hub.test");
		assert_false(q->db.remembered->mixed);
		assert_int_equal(remembered_forget_site(&q->db, "relay:>hub.test"), 0);
		assert_false(q->db.learnt);
		assert_int_equal(remembered_forget_site(&q->db, names[i]), 1);
		assert_true(q->db.learnt); /* or the next start would know it again */
		finish(NULL);
	}
	begin_with("key=smtp relay:torn");
	assert_int_equal(remembered_forget_site(&q->db, "hub.test"), 0);
	assert_int_equal(remembered_forget_site(&q->db, "relay:torn"), 1);
}

static void a_window_wider_than_it_may_be_now_is_forgotten(void **state)
{
	(void)state;
	begin("");
	remembered_add(&q->db, "smtp mx.test", 21, clock_wall_ms());
	send_many(1);
	assert_int_equal(site_named("mx.test")->window.concurrency, 5);
}

static void a_dead_window_and_one_as_at_first_are_not_kept(void **state)
{
	(void)state;
	begin("");
	send_many(1);
	restart(1000);
	assert_null(q->db.remembered);
	send_many(1);
	site_named("mx.test")->window.concurrency = 0;
	restart(1000);
	assert_null(q->db.remembered);
}

static void the_window_of_a_site_that_was_collected_is_known_to_its_successor(void **state)
{
	(void)state;
	begin("");
	send_many(1);
	site_named("mx.test")->window.concurrency = 9;
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	close_orderly(open_at(0));
	for (int i = 0; i < 10; i++)
		pass_time(10000);
	assert_null(q->db.sites);
	send_many(1);
	assert_int_equal(site_named("mx.test")->window.concurrency, 9);
}

static void a_pace_however_slow_is_one(void **state)
{
	(void)state;
	begin("");
	struct remembered *r = remembered_add(&q->db, "smtp mx.test", 0, clock_wall_ms());
	r->pace = 1.0 / 4096;
	r->since_ms = r->refused_ms = clock_wall_ms();
	restart(1000);
	send_many(3);
	assert_true(site_pace_asks(site_named("mx.test")));
}

static void to_other_nodes_likewise(void **state)
{
	(void)state;
	struct buf told_of_it;
	begin("");
	buf_init(&told_of_it);
	struct host *h = host_of("192.0.2.1");
	host_paced(h, 1.0 / 4096, clock_wall_ms(), NULL);
	host_text_put(&told_of_it, h, FACT_PACE);
	host_paced(h, 0, 0, NULL);
	host_text_read(h, FACT_PACE, buf_cstr(&told_of_it));
	assert_true(h->pace.rate > 0);
	buf_fini(&told_of_it);
}

static void what_the_operator_has_suspended_stays_so(void **state)
{
	(void)state;
	begin("");
	suspend_begin(&q->db, "a.test", SUSPEND_SITE, 0);
	suspend_begin(&q->db, "192.0.2.1", SUSPEND_HOST, 0);
	restart(1000);
	assert_int_equal(HASH_COUNT(q->db.suspended), 2);
	assert_true(host_of("192.0.2.1")->suspended);
	assert_false(host_of("192.0.2.2")->suspended);
}

static void a_suspension_ends_when_it_was_to_whatever_is_restarted(void **state)
{
	(void)state;
	begin("");
	suspend_begin(&q->db, "a.test", SUSPEND_SITE, clock_wall_ms() + 50000);
	suspend_begin(&q->db, "b.test", SUSPEND_SITE, clock_wall_ms() + 500);
	suspend_begin(&q->db, "big", SUSPEND_PROVIDER, clock_wall_ms() + 90000);
	restart(1000);
	assert_int_equal(HASH_COUNT(q->db.suspended), 2);
	pass_time(49000);
	assert_int_equal(HASH_COUNT(q->db.suspended), 1);
	assert_int_equal(q->db.suspended->kind, SUSPEND_PROVIDER);
	pass_time(40000);
	assert_null(q->db.suspended);
}

static void a_host_that_nothing_is_known_of_is_not_written(void **state)
{
	(void)state;
	begin("");
	host_of("192.0.2.1");
	restart(1000);
	assert_null(q->db.hosts);
}

static void what_is_read_is_written_again_as_it_was(void **state)
{
	(void)state;
	struct buf first, second;
	begin("");
	goes_out(host_of("192.0.2.1"), 8);
	host_set_plain(host_of("192.0.2.1"), "a.test", clock_steady_ms() + 50000);
	host_of("192.0.2.2")->depth = 4;
	remembered_add(&q->db, "smtp a", 9, clock_wall_ms());
	suspend_begin(&q->db, "b.test", SUSPEND_DOMAIN, 0);
	host_of("192.0.2.2")->opened_ms = host_of("192.0.2.1")->opened_ms = clock_steady_ms();
	buf_init(&first);
	buf_init(&second);
	destdb_write(&q->db, &first);
	finish(NULL);
	begin("");
	destdb_read(&q->db, buf_cstr(&first));
	assert_false(q->db.learnt); /* all of it is on disk */
	destdb_write(&q->db, &second);
	assert_string_equal(buf_cstr(&first), buf_cstr(&second));
	buf_fini(&first);
	buf_fini(&second);
}

/* A wall clock that was put back must not keep a host out for years. */
static void after_a_step_of_the_clock_nothing_lasts_longer_than_it_may(void **state)
{
	(void)state;
	char line[500];
	int64_t later_ms = clock_wall_ms() + INT64_C(86400000) * 1000;
	begin("");
	snprintf(line, sizeof line,
		 "host\tkey=k\taddress=192.0.2.1\tport=25\tfailures=3\tretry=%" PRId64
		 "\tcode=0\tdsn=4.4.1\tby=mx\tcalled=mx\twhen=1\twhy=refused\tlimit=3"
		 "\tlimit_wait=60000\tlimit_again=%" PRId64 "\tmode=2\tsimple=%" PRId64 "\n"
		 "plain\tkey=k\tname=a\tuntil=%" PRId64 "\n",
		 later_ms, later_ms, later_ms, later_ms);
	destdb_read(&q->db, line);
	int64_t now_ms = clock_steady_ms();
	assert_int_equal(q->db.hosts->retry_ms, now_ms + HOST_BACKOFF_KEPT_MS);
	assert_int_equal(q->db.hosts->limit.again_ms, now_ms + HOST_LIMIT_MOST_MS);
	assert_int_equal(q->db.hosts->mode_until_ms, now_ms + HOST_MODE_MS);
	assert_int_equal(host_plain_until_ms(q->db.hosts, "a"), now_ms + HOST_PLAIN_MS);
}

static void a_line_that_makes_no_sense_is_passed_over(void **state)
{
	static const char *const lines[] = {
		"",
		"\t",
		"host",
		"host\t",
		"host\tkey=k",
		"host\tkey=k\taddress=192.0.2.1",
		"host\tkey=k\taddress=nonsense\tport=25",
		"host\tkey=k\taddress=192.0.2.1\tport=0",
		"host\tkey=k\taddress=192.0.2.1\tport=65536",
		"host\taddress=192.0.2.1\tport=25",
		"hostess\tkey=k\taddress=192.0.2.1\tport=25",
		"HOST\tkey=k\taddress=192.0.2.1\tport=25",
		"site",
		"site\tkey=smtp x",
		"site\twindow=5",
		"site\tkey=smtp x\twindow=0",
		"site\tkey=smtp x\twindow=-4\tat=1",
		"site\tkey=smtp x\twindow=99999999999\tat=1",
		"plain",
		"plain\tkey=k",
		"plain\tkey=unknown\tname=a\tuntil=99999999999999",
		"suspended",
		"suspended\t",
		"suspended\tsite",
		"\xff\xfe\x01 = \t=\t==\t",
		"what\tis=this",
	};
	(void)state;
	begin("");
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		destdb_read(&q->db, lines[i]);
		assert_null(q->db.hosts);
		assert_null(q->db.remembered);
		assert_null(q->db.suspended);
	}
}

static void a_value_that_makes_no_sense_is_as_good_as_none(void **state)
{
	static const char line[] =
		"host\tkey=k\taddress=192.0.2.1\tport=25\tfailures=-1\tdepth=100000\tmode=16"
		"\tsimple=9223372036854775807\tr=-5\ts=99999999999999999\tsetup=x\tlimit=-2"
		"\tlimit_wait=-7\tlimit_again=-9223372036854775808\topened=-3\tproven=-1\n"
		"host\tkey=l\taddress=192.0.2.2\tport=25\tfailures=2"
		"\tretry=-9223372036854775808\tcode=-9223372036854775808\tdsn=4.4.4.4.4.4.4.4.4.4"
		"\twhen=9223372036854775807\twhy=\n"
		"plain\tkey=k\tname=a\tuntil=-9223372036854775808\n"
		"site\tkey=smtp mx.test\twindow=7\tat=9223372036854775807\n";
	(void)state;
	begin("");
	destdb_read(&q->db, line);
	const struct host *h = host_of("192.0.2.1"), *k = q->db.hosts;
	assert_string_equal(k->key, "k");
	assert_int_equal(k->failures, 0);
	assert_int_equal(k->depth, 1);
	assert_int_equal(host_mode(k, clock_steady_ms()), CONNECTION_FULL);
	assert_int_equal(k->speed.r_us + k->speed.s_us + k->speed.setup_us, 0);
	assert_int_equal(k->limit.n, 0);
	assert_false(k->proven);
	assert_null(k->plain);
	assert_false(host_out(k));
	assert_false(host_out(h));
	send_many(1);
	assert_int_equal(site_named("mx.test")->window.concurrency, 5);
}

static void a_line_that_is_there_twice_counts_once(void **state)
{
	static const char line[] = "host\tkey=k\taddress=192.0.2.1\tport=25\tfailures=3\tretry=1"
				   "\tcode=0\tdsn=4.4.1\tby=mx\tcalled=mx\twhen=1\twhy=refused\n"
				   "plain\tkey=k\tname=a\tuntil=1700000000000000\n"
				   "site\tkey=smtp x\twindow=7\tat=1700000000000\n"
				   "suspended\thost=b.test\n";
	(void)state;
	begin("");
	destdb_read(&q->db, line);
	destdb_read(&q->db, line);
	assert_int_equal(HASH_COUNT(q->db.hosts), 1);
	assert_int_equal(q->db.hosts->failures, 3);
	assert_null(q->db.hosts->plain->next);
	assert_int_equal(HASH_COUNT(q->db.remembered), 1);
	assert_int_equal(HASH_COUNT(q->db.suspended), 1);
}

/* A program from before both were one name has kept both. */
static void one_name_in_two_spellings_is_suspended_for_as_long_as_the_first_is(void **state)
{
	static const char lines[] = "suspended\tdomain=bücher.test\n"
				    "suspended\tdomain=xn--bcher-kva.test\tuntil=1700000000000\n";
	(void)state;
	begin("");
	destdb_read(&q->db, lines);
	assert_int_equal(HASH_COUNT(q->db.suspended), 1);
	assert_true(suspend_covers_domain(&q->db, "xn--bcher-kva.test"));
	assert_int_equal(suspend_domain_until_ms(&q->db, "xn--bcher-kva.test"), 0);
	assert_true(q->db.learnt);
}

/* A limit without its times is asked about again, and then believed as long as any. */
static void a_limit_without_its_times_is_believed_for_a_while_when_it_is_seen_again(void **state)
{
	static const char line[] =
		"host\tkey=k\taddress=192.0.2.1\tport=25\tproven=1\tlimit=5\tlimit_wait=-7\n";
	(void)state;
	begin("");
	destdb_read(&q->db, line);
	struct host *h = q->db.hosts;
	struct verdict *why = verdict_new(VERDICT_DEFERRED, 421, "4.7.0", "mx", "too many");
	h->ready = 5;
	host_turned_away(h, why, "mx", clock_steady_ms());
	verdict_unref(why);
	h->ready = 0;
	assert_in_range(h->limit.again_ms - clock_steady_ms(), HOST_LIMIT_CHANCE_MS,
			HOST_LIMIT_MOST_MS);
}

static void a_text_of_any_bytes_is_read(void **state)
{
	static const char sample[] =
		"host\tkey=k\taddress=192.0.2.1\tport=25\tfailures=3\tretry=1700000999999\tcode=421"
		"\tdsn=4.4.1\tby=mx\tcalled=mx\twhen=1\twhy=refused\tlimit=3\tlimit_wait=60000"
		"\tlimit_again=1700000999999\tmode=2\tsimple=1700000999999\tr=5\ts=6\tsetup=7\n"
		"plain\tkey=k\tname=a\tuntil=1700000999999\nsite\tkey=smtp x\twindow=9\tat=5\n"
		"suspended\tsite=a\n";
	(void)state;
	uint64_t seed = 1;
	for (int round = 0; round < 3000; round++) {
		char bad[sizeof sample];
		memcpy(bad, sample, sizeof sample);
		for (int i = 0; i < 1 + round % 9; i++) {
			seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			bad[(seed >> 40) % (sizeof sample - 1)] = (char)(1 + (seed >> 33) % 127);
		}
		begin("");
		destdb_read(&q->db, bad);
		finish(NULL);
	}
	begin("");
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_host_that_is_out_is_out_until_the_same_time_for_the_same_reason),
		TEST(one_whose_time_has_passed_meanwhile_is_probed_at_once),
		TEST(how_fast_it_is_is_kept),
		TEST(the_limit_that_it_was_seen_to_have_is_kept_with_its_times),
		TEST(depth_and_mode_are_kept),
		TEST(how_many_recipients_it_takes_is_kept_for_a_day),
		TEST(broken_tls_is_kept_by_name),
		TEST(a_window_is_kept_for_a_day),
		TEST(a_window_is_the_relays_or_that_of_hosts_of_its_name),
		TEST(a_relays_window_outlives_a_restart_and_is_forgotten_by_its_name),
		TEST(a_window_wider_than_it_may_be_now_is_forgotten),
		TEST(a_dead_window_and_one_as_at_first_are_not_kept),
		TEST(the_window_of_a_site_that_was_collected_is_known_to_its_successor),
		TEST(a_pace_however_slow_is_one),
		TEST(to_other_nodes_likewise),
		TEST(what_the_operator_has_suspended_stays_so),
		TEST(a_suspension_ends_when_it_was_to_whatever_is_restarted),
		TEST(a_host_that_nothing_is_known_of_is_not_written),
		TEST(what_is_read_is_written_again_as_it_was),
		TEST(after_a_step_of_the_clock_nothing_lasts_longer_than_it_may),
		TEST(a_line_that_makes_no_sense_is_passed_over),
		TEST(a_value_that_makes_no_sense_is_as_good_as_none),
		TEST(a_line_that_is_there_twice_counts_once),
		TEST(one_name_in_two_spellings_is_suspended_for_as_long_as_the_first_is),
		TEST(a_limit_without_its_times_is_believed_for_a_while_when_it_is_seen_again),
		TEST(a_text_of_any_bytes_is_read),
	};
	return RUN(tests);
}
