/* SPDX-License-Identifier: ISC */
#include "dns/dns.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "tests/unit/dns/zone.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { ANSWERS_MAX = 3000 };

static struct nameserver server;
static struct conf conf, conf_after;
static struct conf_listener listener;
static char *server_item[] = {(char *)"127.0.0.1"};
static char *listener_item[] = {(char *)"127.0.0.1:2525"};
static struct dns *dns;

/* What came back, gathered by a loop of the test's own. */
static struct loop *asker;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;
static struct resolve *answers[ANSWERS_MAX];
static int nanswers;

static void on_answer(void *owner, struct note *note)
{
	(void)owner;
	pthread_mutex_lock(&lock);
	answers[nanswers++] = (struct resolve *)note;
	pthread_cond_signal(&came);
	pthread_mutex_unlock(&lock);
}

/* True when n answers came within the time. */
static bool wait_for(int n, int seconds)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	int rc = 0;
	pthread_mutex_lock(&lock);
	while (nanswers < n && rc == 0)
		rc = pthread_cond_timedwait(&came, &lock, &until);
	bool enough = nanswers >= n;
	pthread_mutex_unlock(&lock);
	return enough;
}

static void forget(void)
{
	pthread_mutex_lock(&lock);
	while (nanswers > 0)
		resolve_free(&answers[--nanswers]);
	pthread_mutex_unlock(&lock);
}

static void post(enum resolve_kind kind, const char *name, bool trusted)
{
	struct resolve *r = resolve_new(kind, name, asker, NULL);
	r->trusted = trusted;
	loop_post(dns_loop(dns), &r->note);
}

static struct resolve *ask(enum resolve_kind kind, const char *name, bool trusted)
{
	forget();
	post(kind, name, trusted);
	if (!wait_for(1, 20))
		fail_msg("no answer for %s", name);
	return answers[0];
}

static void expect(const char *name, enum verdict_class class, int code, const char *dsn)
{
	struct resolve *r = ask(RESOLVE_MX, name, false);
	assert_int_equal(r->note.type, RESOLVE_ANSWER);
	assert_non_null(r->failure);
	assert_string_equal(r->failure->dsn, dsn);
	assert_int_equal(r->failure->class, class);
	assert_int_equal(r->failure->code, code);
	assert_non_null(strstr(r->failure->text, name));
	assert_int_equal(r->nhost, 0);
}

static void expect_host(const char *domain, const char *host)
{
	struct resolve *r = ask(RESOLVE_MX, domain, false);
	if (r->failure)
		fail_msg("%s: %s", domain, r->failure->text);
	assert_int_equal(r->nhost, 1);
	assert_string_equal(r->host[0].name, host);
	assert_true(r->host[0].naddress > 0);
}

static int64_t timeout_ms;

/* All addresses of the zone that are nobody's. */
static char *books[] = {(char *)"192.0.2.0/24", (char *)"2001:db8::/32"};

static void make_conf(struct conf *c, const char *hostname)
{
	*c = (struct conf){.hostname = (char *)hostname, .nlistener = 1, .listener = &listener};
	atomic_init(&c->refs, 1);
	listener.address = (struct conf_list){1, listener_item};
	c->dns.server = (struct conf_list){1, server_item};
	c->dns.allow_private = (struct conf_list){2, books};
	c->dns.port = server.port;
	c->dns.dnssec = DNSSEC_OFF;
	c->dns.timeout = timeout_ms;
	c->dns.tries = 2;
	c->dns.maximal_ttl = 86400000;
	c->dns.negative_ttl = 300000;
}

static int set_up_with(int64_t timeout)
{
	timeout_ms = timeout;
	memset(&server, 0, sizeof server);
	zone_awake = false;
	zone_late_since_ms = 0;
	if (!nameserver_start(&server, zone_answer))
		return -1;
	make_conf(&conf, "relay.test");
	make_conf(&conf_after, "other.test");
	asker = loop_new("asker", on_answer, NULL, NULL);
	loop_start(asker);
	dns = dns_new(&conf);
	dns_start(dns);
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	return set_up_with(1000);
}

/* For what a busy machine must not answer late. */
static int set_up_patient(void **state)
{
	(void)state;
	return set_up_with(2000);
}

static int tear_down(void **state)
{
	(void)state;
	dns_stop(dns);
	dns_free(&dns);
	loop_stop(asker);
	loop_free(&asker);
	forget();
	nameserver_stop(&server);
	return 0;
}

static void a_domain_with_mx_gets_its_hosts(void **state)
{
	(void)state;
	struct resolve *r = ask(RESOLVE_MX, "good.test", false);
	assert_null(r->failure);
	assert_int_equal(r->nhost, 1);
	assert_string_equal(r->host[0].name, "mx.test");
	assert_int_equal(r->host[0].preference, 10);
	assert_int_equal(r->host[0].naddress, 2);
	assert_int_equal(r->host[0].address[0].sa.sa_family, AF_INET6);
}

static void what_a_name_server_had_an_answer_to_is_told_from_the_rest(void **state)
{
	(void)state;
	assert_true(ask(RESOLVE_MX, "good.test", false)->heard);
	assert_false(ask(RESOLVE_MX, "good.test", false)->heard); /* from the cache */
	assert_true(ask(RESOLVE_MX, "nx.test", false)->heard);
	assert_false(ask(RESOLVE_MX, "servfail.test", false)->heard);
	assert_false(ask(RESOLVE_HOST, "localhost", true)->heard);
	assert_false(ask(RESOLVE_HOST, "192.0.2.7", true)->heard);
}

static void each_kind_of_failure_has_its_verdict(void **state)
{
	(void)state;
	expect("nx.test", VERDICT_FAILED, 550, "5.1.2");
	expect("nodata.test", VERDICT_FAILED, 550, "5.4.4");
	expect("lost.test", VERDICT_FAILED, 550, "5.4.4");
	expect("servfail.test", VERDICT_DEFERRED, 451, "4.4.3");
	expect("refused.test", VERDICT_DEFERRED, 451, "4.4.3");
	expect("unsure.test", VERDICT_DEFERRED, 451, "4.4.3");
	expect("torn.test", VERDICT_DEFERRED, 451, "4.4.3");
	expect("loop1.test", VERDICT_DEFERRED, 451, "4.4.3");
	expect("null.test", VERDICT_FAILED, 556, "5.1.10");
	expect("own.test", VERDICT_FAILED, 550, "5.4.6");
	expect("local.test", VERDICT_FAILED, 550, "5.4.6");
	expect("localhost", VERDICT_FAILED, 550, "5.4.6");
	expect("[127.0.0.1]", VERDICT_FAILED, 550, "5.4.6");
	expect("not a domain", VERDICT_FAILED, 550, "5.1.2");
}

static void silence_is_deferred_after_the_last_try(void **state)
{
	(void)state;
	int64_t begin = clock_steady_ms();
	expect("silent.test", VERDICT_DEFERRED, 451, "4.4.3");
	int64_t took = clock_steady_ms() - begin;
	assert_true(took >= 900);
	assert_int_equal(nameserver_count(&server, WIRE_MX, "silent.test"), 2);
}

static int asked_of(const char *name)
{
	return nameserver_count(&server, WIRE_A, name) + nameserver_count(&server, WIRE_AAAA, name);
}

/* Each message would wait for it as long as a name server may take. */
static void an_address_that_is_not_needed_is_waited_for_once(void **state)
{
	(void)state;
	expect_host("lame1.test", "mx.test");
	int silent = asked_of("silent.test"), failing = asked_of("servfail.test");
	assert_true(silent > 0 && failing > 0);
	expect_host("lame2.test", "mx.test");
	assert_int_equal(asked_of("silent.test"), silent);
	assert_int_equal(asked_of("servfail.test"), 2 * failing); /* which takes no time */
	/* Where it is needed, and when the settings are read again, it is asked for. */
	expect("silent.test", VERDICT_DEFERRED, 451, "4.4.3");
	zone_awake = true;
	dns_reload(dns, &conf);
	assert_int_equal(ask(RESOLVE_MX, "lame3.test", false)->nhost, 2);
}

static void and_once_more_after_negative_ttl_however_often_it_was_wanted(void **state)
{
	(void)state;
	conf_after.dns.negative_ttl = 300;
	dns_reload(dns, &conf_after);
	expect_host("lame1.test", "mx.test");
	int silent = asked_of("silent.test");
	for (int i = 0; i < 2000 && asked_of("silent.test") == silent; i++) {
		expect_host("lame2.test", "mx.test");
		usleep(10000);
	}
	assert_true(asked_of("silent.test") > silent);
}

/* However soon it has said what it knew before. */
static void a_name_that_the_resolver_must_look_for_has_the_time_of_the_settings(void **state)
{
	char name[40];
	(void)state;
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof name, "good%d.test", i);
		ask(RESOLVE_MX, name, false);
	}
	struct resolve *r = ask(RESOLVE_MX, "late.test", false);
	if (r->failure)
		fail_msg("%s", r->failure->text);
	assert_int_equal(r->nhost, 1);
}

static void a_dead_resolver_is_deferred(void **state)
{
	tear_down(state);
	set_up(state);
	dns_stop(dns);
	dns_free(&dns);
	server_item[0] = (char *)"127.0.0.99";
	dns = dns_new(&conf);
	server_item[0] = (char *)"127.0.0.1";
	dns_start(dns);
	expect("good.test", VERDICT_DEFERRED, 451, "4.4.3");
}

static int set_up_brief(void **state)
{
	(void)state;
	return set_up_with(300);
}

/* Which takes questions at the port of the name server, and answers none. */
static int open_silent_server(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)server.port)};
	inet_pton(AF_INET, "127.0.0.9", &a.sin_addr);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0);
	return fd;
}

static int count_packets(int fd)
{
	char packet[512];
	int n = 0;
	while (recv(fd, packet, sizeof packet, 0) > 0)
		n++;
	return n;
}

static bool is_asked(int fd, int number)
{
	char name[40];
	snprintf(name, sizeof name, "good%d.test", number);
	count_packets(fd);
	assert_null(ask(RESOLVE_MX, name, false)->failure);
	return count_packets(fd) > 0;
}

static void a_name_server_that_is_silent_is_asked_behind_one_that_answers(void **state)
{
	(void)state;
	static char *two[] = {(char *)"127.0.0.9", (char *)"127.0.0.1"};
	int silent = open_silent_server();
	dns_stop(dns);
	dns_free(&dns);
	conf.dns.server = (struct conf_list){2, two};
	dns = dns_new(&conf);
	dns_start(dns);
	assert_true(is_asked(silent, 0));
	int n = 1;
	while (n < 20 && is_asked(silent, n))
		n++;
	assert_in_range(n, 1, 19);
	close(silent);
}

static int set_up_to_wait(void **state)
{
	(void)state;
	return set_up_with(60000);
}

/* The addresses of a host are two questions at once. */
static void a_name_server_that_is_not_there_costs_no_question_its_time(void **state)
{
	(void)state;
	static char *two[] = {(char *)"127.0.0.99", (char *)"127.0.0.1"};
	dns_stop(dns);
	dns_free(&dns);
	conf.dns.server = (struct conf_list){2, two};
	dns = dns_new(&conf);
	dns_start(dns);
	expect_host("good.test", "mx.test");
}

static void without_mx_the_domain_is_its_own_host(void **state)
{
	(void)state;
	expect_host("implicit.test", "implicit.test");
}

static void we_and_worse_hosts_are_left_out(void **state)
{
	(void)state;
	expect_host("backup.test", "mx.test");
}

static void however_many_hosts_have_no_address_the_next_are_looked_up(void **state)
{
	(void)state;
	expect_host("crowd.test", "mx.test");
	expect("doubt.test", VERDICT_DEFERRED, 451, "4.4.3");
}

static void a_chain_of_aliases_is_followed_across_replies(void **state)
{
	(void)state;
	expect_host("alias1.test", "mx.test");
	assert_int_equal(nameserver_count(&server, WIRE_MX, "alias2.test"), 0);
	assert_int_equal(nameserver_count(&server, WIRE_MX, "alias3.test"), 1);
	expect_host("alias1.test", "mx.test");
	assert_int_equal(nameserver_count(&server, WIRE_MX, "alias1.test"), 1);
}

static void a_truncated_reply_is_asked_for_by_tcp(void **state)
{
	(void)state;
	struct resolve *r = ask(RESOLVE_MX, "big.test", false);
	assert_null(r->failure);
	assert_int_equal(r->nhost, RESOLVE_HOSTS_MAX);
	assert_string_equal(r->host[0].name, "host-with-a-long-name-0.test");
	assert_int_equal(nameserver_count(&server, WIRE_MX, "big.test tcp"), 1);
}

static void a_reply_longer_than_512_bytes_needs_no_tcp(void **state)
{
	(void)state;
	struct resolve *r = ask(RESOLVE_MX, "medium.test", false);
	assert_null(r->failure);
	assert_int_equal(r->nhost, 20);
	assert_int_equal(nameserver_count(&server, WIRE_MX, "medium.test"), 1);
	assert_int_equal(nameserver_count(&server, WIRE_MX, "medium.test tcp"), 0);
}

static void a_server_that_chokes_on_edns_is_asked_without(void **state)
{
	(void)state;
	expect_host("formerr1.test", "formerr1.test");
	expect_host("formerr2.test", "formerr2.test");
	expect_host("notimp.test", "notimp.test");
	assert_int_equal(nameserver_count(&server, WIRE_MX, "formerr2.test plain"), 1);
	assert_int_equal(nameserver_count(&server, WIRE_MX, "notimp.test plain"), 1);
}

static void equal_questions_are_asked_once(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++)
		post(RESOLVE_MX, i % 2 ? "zero.test" : "ZERO.test.", false);
	assert_true(wait_for(200, 20));
	for (int i = 0; i < 200; i++)
		assert_int_equal(answers[i]->nhost, 1);
	/* The mailbox may have been emptied in a few goes; a TTL of 0 is shared, not kept. */
	assert_in_range(nameserver_count(&server, WIRE_A, "zero.test"), 1, 20);
	assert_int_equal(nameserver_count(&server, WIRE_MX, "zero.test"), 1);
}

static void an_answer_is_asked_for_again_when_its_ttl_is_over(void **state)
{
	(void)state;
	int64_t hits = metrics_sum(METRIC_dns_cache_hits);
	expect_host("ttl.test", "ttl.test");
	expect_host("ttl.test", "ttl.test");
	assert_int_equal(nameserver_count(&server, WIRE_A, "ttl.test"), 1);
	assert_int_equal(metrics_sum(METRIC_dns_cache_hits) - hits, 3);
	usleep(3100000);
	expect_host("ttl.test", "ttl.test");
	assert_int_equal(nameserver_count(&server, WIRE_A, "ttl.test"), 2);
	assert_int_equal(nameserver_count(&server, WIRE_MX, "ttl.test"), 1);
}

static void absence_is_remembered(void **state)
{
	(void)state;
	expect("nx.test", VERDICT_FAILED, 550, "5.1.2");
	expect("nx.test", VERDICT_FAILED, 550, "5.1.2");
	assert_int_equal(nameserver_count(&server, WIRE_MX, "nx.test"), 1);
}

static const struct verdict *known(const char *name)
{
	forget();
	struct resolve *r = resolve_new(RESOLVE_MX, name, asker, NULL);
	r->known = true;
	loop_post(dns_loop(dns), &r->note);
	assert_true(wait_for(1, 20));
	assert_int_equal(answers[0]->nhost, 0);
	return answers[0]->failure;
}

static void what_is_known_is_said_without_a_question(void **state)
{
	(void)state;
	assert_null(known("nx.test"));
	assert_null(known("null.test"));
	assert_null(known("not a domain"));
	assert_int_equal(nameserver_count(&server, WIRE_MX, "nx.test"), 0);
	expect("nx.test", VERDICT_FAILED, 550, "5.1.2");
	expect("null.test", VERDICT_FAILED, 556, "5.1.10");
	expect("nodata.test", VERDICT_FAILED, 550, "5.4.4");
	expect("own.test", VERDICT_FAILED, 550, "5.4.6");
	assert_string_equal(known("NX.test")->dsn, "5.1.2");
	assert_int_equal(known("null.test")->code, 556);
	assert_null(known("nodata.test"));
	assert_null(known("own.test"));
	assert_int_equal(nameserver_count(&server, WIRE_MX, "nx.test"), 1);
	assert_int_equal(nameserver_count(&server, WIRE_MX, "null.test"), 1);
}

static void a_host_in_brackets_has_no_mx_question(void **state)
{
	(void)state;
	struct resolve *r = ask(RESOLVE_HOST, "good.test", true);
	assert_null(r->failure);
	assert_string_equal(r->host[0].name, "good.test");
	assert_int_equal(nameserver_count(&server, WIRE_MX, "good.test"), 0);
}

static void a_literal_is_answered_without_a_question(void **state)
{
	(void)state;
	static const char *const literals[] = {"127.0.0.1", "[127.0.0.1]", "::1",
					       "IPv6:::1",  "[IPv6:::1]",  "localhost"};
	int64_t sent = metrics_sum(METRIC_dns_queries);
	for (size_t i = 0; i < sizeof literals / sizeof *literals; i++) {
		struct resolve *r = ask(RESOLVE_HOST, literals[i], true);
		assert_null(r->failure);
		assert_int_equal(r->nhost, 1);
	}
	assert_int_equal(metrics_sum(METRIC_dns_queries), sent);
}

/* Nobody who can only choose a recipient's domain has us connect to a socket of this machine. */
static void a_unix_socket_is_for_the_configuration_to_name(void **state)
{
	(void)state;
	struct resolve *r = ask(RESOLVE_HOST, "unix:/run/Dovecot/lmtp", true);
	assert_int_equal(r->nhost, 1);
	assert_null(r->failure);
	assert_string_equal(r->host[0].name, "unix:/run/Dovecot/lmtp");
	assert_int_equal(r->host[0].address[0].sa.sa_family, AF_UNIX);
	assert_string_equal(r->host[0].address[0].un.sun_path, "/run/Dovecot/lmtp");
	for (int kind = RESOLVE_MX; kind <= RESOLVE_HOST; kind++) {
		r = ask((enum resolve_kind)kind, "unix:/run/dovecot/lmtp", false);
		assert_int_equal(r->nhost, 0);
		assert_non_null(r->failure);
	}
}

static void a_trusted_host_may_have_a_local_address(void **state)
{
	(void)state;
	struct resolve *r = ask(RESOLVE_HOST, "local.test", true);
	assert_null(r->failure);
	assert_int_equal(r->nhost, 1);
}

static void in_a_laboratory_local_addresses_are_hosts(void **state)
{
	(void)state;
	conf_after.dns.allow_loopback = true;
	dns_reload(dns, &conf_after);
	expect_host("local.test", "local.test");
}

static void what_is_under_way_at_a_reload_is_asked_again(void **state)
{
	(void)state;
	forget();
	post(RESOLVE_MX, "silent.test", false);
	for (int i = 0; i < 3000 && nameserver_count(&server, WIRE_MX, "silent.test") == 0; i++)
		usleep(10000);
	zone_awake = true;
	dns_reload(dns, &conf_after);
	assert_true(wait_for(1, 20));
	assert_null(answers[0]->failure);
	expect_host("own.test", "relay.test");
}

static void more_questions_than_places_are_all_answered(void **state)
{
	(void)state;
	char name[40];
	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof name, "many%d.test", i);
		post(RESOLVE_HOST, name, false);
	}
	assert_true(wait_for(2000, 60));
	int failed = 0;
	for (int i = 0; i < 2000; i++)
		failed += answers[i]->failure != NULL;
	/* Datagrams may be lost more often than is tried: how many, the machine decides. */
	assert_in_range(failed, 0, 1000);
}

/* They have no answer for six seconds, and fill all places. Few come behind them, so that no datagram is lost among many. */
static void names_whose_servers_are_silent_hold_up_no_others(void **state)
{
	(void)state;
	char name[40];
	for (int i = 0; i < 510; i++) {
		snprintf(name, sizeof name, "silent%d.test", i);
		post(RESOLVE_HOST, name, false);
	}
	struct resolve *r = ask(RESOLVE_HOST, "mx1.own.test", false);
	assert_string_equal(r->name, "mx1.own.test");
	assert_null(r->failure);
}

static void what_still_waits_at_the_end_is_freed(void **state)
{
	(void)state;
	post(RESOLVE_MX, "silent1.test", false);
	post(RESOLVE_MX, "good.test", false);
	usleep(20000);
	post(RESOLVE_MX, "silent2.test", false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_domain_with_mx_gets_its_hosts),
		TEST(what_a_name_server_had_an_answer_to_is_told_from_the_rest),
		TEST(each_kind_of_failure_has_its_verdict),
		TEST(silence_is_deferred_after_the_last_try),
		TEST(an_address_that_is_not_needed_is_waited_for_once),
		TEST(and_once_more_after_negative_ttl_however_often_it_was_wanted),
		cmocka_unit_test_setup_teardown(
			a_name_that_the_resolver_must_look_for_has_the_time_of_the_settings,
			set_up_patient, tear_down),
		TEST(a_dead_resolver_is_deferred),
		cmocka_unit_test_setup_teardown(
			a_name_server_that_is_not_there_costs_no_question_its_time, set_up_to_wait,
			tear_down),
		cmocka_unit_test_setup_teardown(
			a_name_server_that_is_silent_is_asked_behind_one_that_answers, set_up_brief,
			tear_down),
		TEST(without_mx_the_domain_is_its_own_host),
		TEST(we_and_worse_hosts_are_left_out),
		TEST(however_many_hosts_have_no_address_the_next_are_looked_up),
		TEST(a_chain_of_aliases_is_followed_across_replies),
		TEST(a_truncated_reply_is_asked_for_by_tcp),
		TEST(a_reply_longer_than_512_bytes_needs_no_tcp),
		TEST(a_server_that_chokes_on_edns_is_asked_without),
		TEST(equal_questions_are_asked_once),
		TEST(an_answer_is_asked_for_again_when_its_ttl_is_over),
		TEST(absence_is_remembered),
		TEST(what_is_known_is_said_without_a_question),
		TEST(a_host_in_brackets_has_no_mx_question),
		TEST(a_literal_is_answered_without_a_question),
		TEST(a_unix_socket_is_for_the_configuration_to_name),
		TEST(a_trusted_host_may_have_a_local_address),
		TEST(in_a_laboratory_local_addresses_are_hosts),
		TEST(what_is_under_way_at_a_reload_is_asked_again),
		cmocka_unit_test_setup_teardown(more_questions_than_places_are_all_answered,
						set_up_patient, tear_down),
		cmocka_unit_test_setup_teardown(names_whose_servers_are_silent_hold_up_no_others,
						set_up_patient, tear_down),
		TEST(what_still_waits_at_the_end_is_freed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
