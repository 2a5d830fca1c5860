/* SPDX-License-Identifier: ISC */
#include "dns/dns.h"

#include "base/mem.h"
#include "tests/unit/dns/signed_zone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct nameserver server;
static struct conf conf;
static char here[] = "127.0.0.1", afar[] = "192.0.2.53";
static char *server_item[] = {here, afar};
static char *book_item[] = {(char *)"192.0.2.0/24", (char *)"2001:db8::/32"};
static char anchor[] = "/tmp/sluice-anchor-XXXXXX";
static struct dns *dns;

static struct loop *asker;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;
static struct resolve *answer; /* the last, and how many have come */
static int answers;

static void on_answer(void *owner, struct note *note)
{
	(void)owner;
	pthread_mutex_lock(&lock);
	resolve_free(&answer);
	answer = (struct resolve *)note;
	answers++;
	pthread_cond_signal(&came);
	pthread_mutex_unlock(&lock);
}

/* The answer stays until the next question. */
static struct resolve *ask(enum resolve_kind kind, const char *name)
{
	resolve_free(&answer);
	struct resolve *r = resolve_new(kind, name, asker, NULL);
	r->port = 25;
	loop_post(dns_loop(dns), &r->note);
	pthread_mutex_lock(&lock);
	while (!answer)
		pthread_cond_wait(&came, &lock);
	pthread_mutex_unlock(&lock);
	return answer;
}

static void start(enum dnssec_mode mode, int nserver, enum signed_zone how, int64_t timeout)
{
	signed_zone = how;
	conf = (struct conf){.hostname = (char *)"relay.test"};
	atomic_init(&conf.refs, 1);
	conf.dns.server = (struct conf_list){nserver, server_item};
	conf.dns.allow_private = (struct conf_list){2, book_item};
	conf.workers = 3; /* threads that validate */
	conf.dns.port = server.port;
	conf.dns.timeout = timeout;
	conf.dns.tries = 1;
	conf.dns.maximal_ttl = 86400000;
	conf.dns.negative_ttl = 300000;
	conf.dns.dnssec = (int)mode;
	conf.dns.trust_anchor = anchor;
	dns = dns_new(&conf);
	dns_start(dns);
}

static int set_up(void **state)
{
	(void)state;
	memset(&server, 0, sizeof server);
	if (!nameserver_start(&server, signed_zone_answer))
		return -1;
	answers = 0;
	asker = loop_new("asker", on_answer, NULL, NULL);
	loop_start(asker);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	dns_stop(dns);
	dns_free(&dns);
	loop_stop(asker);
	loop_free(&asker);
	resolve_free(&answer);
	nameserver_stop(&server);
	return 0;
}

static void check_hosts(enum resolve_security security)
{
	struct resolve *r = ask(RESOLVE_MX, "good.test");
	if (r->failure)
		fail_msg("%s", r->failure->text);
	assert_int_equal(r->security, security);
	assert_int_equal(r->nhost, 1);
	assert_int_equal(r->host[0].security, security);
	assert_int_equal(r->host[0].naddress, 2);
}

static void what_is_signed_is_secure(void **state)
{
	(void)state;
	start(DNSSEC_VALIDATE, 1, SIGNED_ZONE_GOOD, 10000);
	check_hosts(RESOLVE_SECURE);
	check_hosts(RESOLVE_SECURE); /* from the cache */
	assert_int_equal(nameserver_count(&server, WIRE_MX, "good.test"), 1);
}

static void a_forged_address_is_bogus_and_no_host(void **state)
{
	(void)state;
	start(DNSSEC_VALIDATE, 1, SIGNED_ZONE_GOOD, 10000);
	struct resolve *r = ask(RESOLVE_MX, "evil.test");
	assert_non_null(r->failure);
	assert_int_equal(r->failure->class, VERDICT_DEFERRED);
	assert_string_equal(r->failure->dsn, "4.4.3");
	assert_non_null(strstr(r->failure->text, "forged.test, a mail host for evil.test"));
	assert_non_null(strstr(r->failure->text, "bogus, says DNSSEC: "));
	assert_int_equal(r->security, RESOLVE_SECURE); /* of the MX record */
	r = ask(RESOLVE_HOST, "forged.test");
	assert_non_null(r->failure);
	assert_int_equal(r->security, RESOLVE_BOGUS);
}

static void tlsa_records_come_with_their_verdict(void **state)
{
	(void)state;
	start(DNSSEC_VALIDATE, 1, SIGNED_ZONE_GOOD, 10000);
	struct resolve *r = ask(RESOLVE_TLSA, "mx.test");
	assert_null(r->failure);
	assert_int_equal(r->security, RESOLVE_SECURE);
	assert_int_equal(r->ntlsa, 2);
	struct resolve_tlsa *t = &r->tlsa[r->tlsa[0].usage == 3 ? 0 : 1];
	assert_int_equal(t->usage, 3);
	assert_int_equal(t->selector, 1);
	assert_int_equal(t->matching, 1);
	assert_int_equal(t->len, 32);
	for (size_t i = 0; i < t->len; i++)
		assert_int_equal(t->data[i], 1);
}

static void an_alias_is_told_of_a_host_and_by_itself(void **state)
{
	(void)state;
	start(DNSSEC_VALIDATE, 1, SIGNED_ZONE_GOOD, 10000);
	struct resolve *r = ask(RESOLVE_HOST, "alias.test");
	assert_null(r->failure);
	assert_int_equal(r->security, RESOLVE_SECURE);
	assert_string_equal(r->host[0].name, "alias.test");
	assert_string_equal(r->host[0].canonical, "mx.test");
	r = ask(RESOLVE_ALIAS, "alias.test");
	assert_null(r->failure);
	assert_int_equal(r->security, RESOLVE_SECURE);
	assert_string_equal(r->alias, "mx.test");
}

static void a_server_without_signatures_is_found_out_once(void **state)
{
	(void)state;
	start(DNSSEC_VALIDATE, 1, SIGNED_ZONE_STRIPPED, 10000);
	check_hosts(RESOLVE_INDETERMINATE);
	assert_null(ask(RESOLVE_HOST, "forged.test")->failure);
	assert_int_equal(nameserver_count(&server, LDNS_RR_TYPE_DNSKEY, ""), 1);
	assert_int_equal(nameserver_count(&server, WIRE_MX, "good.test"), 1);
	/* There may be no record, and the failure of that look-up is not one of the mail's. */
	struct resolve *r = ask(RESOLVE_TLSA, "nowhere.test");
	assert_null(r->failure);
	assert_int_equal(r->ntlsa, 0);
	assert_int_equal(r->security, RESOLVE_INDETERMINATE);
}

static void a_server_that_drops_edns_is_asked_without(void **state)
{
	(void)state;
	start(DNSSEC_VALIDATE, 1, SIGNED_ZONE_NO_EDNS, 900);
	check_hosts(RESOLVE_INDETERMINATE);
	assert_int_equal(nameserver_count(&server, WIRE_MX, "good.test"), 0);
	assert_int_equal(nameserver_count(&server, WIRE_MX, "good.test plain"), 1);
}

/* A failure is kept for a second, and a busy machine may let more attempts time out. */
static void ask_until_answered(void)
{
	for (int i = 0; i < 500 && ask(RESOLVE_MX, "good.test")->failure; i++)
		usleep(20000);
	assert_null(answer->failure);
}

static void what_a_silent_server_says_later_is_validated(void **state)
{
	(void)state;
	start(DNSSEC_VALIDATE, 1, SIGNED_ZONE_SILENT, 600);
	struct resolve *r = ask(RESOLVE_MX, "good.test");
	assert_non_null(r->failure);
	assert_string_equal(r->failure->dsn, "4.4.3");
	signed_zone = SIGNED_ZONE_GOOD;
	ask_until_answered();
	assert_int_equal(answer->security, RESOLVE_SECURE);
	assert_non_null(ask(RESOLVE_HOST, "forged.test")->failure);
}

static void what_a_failing_server_says_later_is_validated(void **state)
{
	(void)state;
	start(DNSSEC_VALIDATE, 1, SIGNED_ZONE_SERVFAIL, 10000);
	assert_string_equal(ask(RESOLVE_MX, "good.test")->failure->dsn, "4.4.3");
	signed_zone = SIGNED_ZONE_GOOD;
	ask_until_answered();
	check_hosts(RESOLVE_SECURE);
}

static void a_server_that_fails_for_the_root_only_is_used(void **state)
{
	(void)state;
	start(DNSSEC_VALIDATE, 1, SIGNED_ZONE_SERVFAIL_ROOT, 10000);
	check_hosts(RESOLVE_INDETERMINATE);
}

static void signatures_that_end_make_answers_bogus(void **state)
{
	(void)state;
	start(DNSSEC_VALIDATE, 1, SIGNED_ZONE_GOOD, 10000);
	assert_null(ask(RESOLVE_HOST, "mx.test")->failure);
	signed_zone = SIGNED_ZONE_STRIPPED;
	struct resolve *r = ask(RESOLVE_MX, "good.test");
	assert_non_null(r->failure);
	assert_non_null(strstr(r->failure->text, "bogus"));
	assert_int_equal(r->security, RESOLVE_BOGUS);
}

static void the_ad_bit_is_believed_of_this_machine(void **state)
{
	(void)state;
	start(DNSSEC_TRUST, 1, SIGNED_ZONE_AUTHENTIC, 10000);
	check_hosts(RESOLVE_SECURE);
	signed_zone = SIGNED_ZONE_STRIPPED;
	assert_int_equal(ask(RESOLVE_HOST, "forged.test")->security, RESOLVE_INDETERMINATE);
}

static void the_ad_bit_is_not_believed_of_others(void **state)
{
	(void)state;
	start(DNSSEC_TRUST, 2, SIGNED_ZONE_AUTHENTIC, 10000);
	check_hosts(RESOLVE_INDETERMINATE);
}

static void the_ad_bit_means_nothing_when_dnssec_is_off(void **state)
{
	(void)state;
	start(DNSSEC_OFF, 1, SIGNED_ZONE_AUTHENTIC, 10000);
	check_hosts(RESOLVE_INDETERMINATE);
}

static void no_anchor_no_validation(void **state)
{
	(void)state;
	anchor[0] = '.';
	start(DNSSEC_VALIDATE, 1, SIGNED_ZONE_GOOD, 10000);
	anchor[0] = '/';
	check_hosts(RESOLVE_INDETERMINATE);
	assert_int_equal(nameserver_count(&server, LDNS_RR_TYPE_DNSKEY, ""), 0);
}

enum { BURST = 60 };

/* Of different domains, so that all threads have some of them. */
static void ask_in_a_burst(void)
{
	static const char *const names[] = {"good.test", "evil.test",	    "one.good.test",
					    "two.more",	 "three.good.test", "mx.test",
					    "four.less", "nowhere.test"};
	answers = 0;
	for (int i = 0; i < BURST; i++) {
		char name[40];
		snprintf(name, sizeof name, "n%d.%s", i,
			 names[(size_t)i % (sizeof names / sizeof *names)]);
		loop_post(dns_loop(dns), &resolve_new(RESOLVE_HOST, name, asker, NULL)->note);
	}
}

static void wait_for_answers(int n)
{
	pthread_mutex_lock(&lock);
	while (answers < n)
		pthread_cond_wait(&came, &lock);
	pthread_mutex_unlock(&lock);
}

static void threads_that_validate_answer_each_question_once(void **state)
{
	(void)state;
	start(DNSSEC_VALIDATE, 1, SIGNED_ZONE_GOOD, 10000);
	ask_in_a_burst();
	wait_for_answers(BURST);
	check_hosts(RESOLVE_SECURE);
	assert_int_equal(answers, BURST + 1);
}

/* Whatever they had to do then is given up, and asked anew. */
static void a_reload_while_proofs_are_made_loses_no_question(void **state)
{
	(void)state;
	start(DNSSEC_VALIDATE, 1, SIGNED_ZONE_GOOD, 10000);
	check_hosts(RESOLVE_SECURE);
	ask_in_a_burst();
	dns_reload(dns, &conf);
	wait_for_answers(BURST);
	dns_reload(dns, &conf);
	check_hosts(RESOLVE_SECURE);
	assert_int_equal(answers, BURST + 1);
}

static void an_end_while_proofs_are_made_frees_what_is_asked(void **state)
{
	(void)state;
	start(DNSSEC_VALIDATE, 1, SIGNED_ZONE_GOOD, 10000);
	check_hosts(RESOLVE_SECURE);
	ask_in_a_burst();
	loop_post(dns_loop(dns), &resolve_new(RESOLVE_HOST, "unix:/nowhere", asker, NULL)->note);
	wait_for_answers(1); /* it asks nobody, and those before it have been begun */
}

/* They are more than libunbound has sockets for, and it goes on asking about them for long. A datagram may be lost among so many. */
static void names_whose_servers_are_silent_keep_no_others_from_being_validated(void **state)
{
	(void)state;
	enum { SILENT = 1000 };
	start(DNSSEC_VALIDATE, 1, SIGNED_ZONE_GOOD, 1000);
	assert_null(ask(RESOLVE_HOST, "mx.test")->failure);
	for (int i = 0; i < SILENT; i++) {
		char name[40];
		snprintf(name, sizeof name, "silent%d.test", i);
		loop_post(dns_loop(dns), &resolve_new(RESOLVE_HOST, name, asker, NULL)->note);
	}
	wait_for_answers(1 + SILENT);
	for (int i = 0; i < 2 && ask(RESOLVE_MX, "good.test")->failure; i++)
		;
	assert_string_equal(answer->name, "good.test");
	assert_null(answer->failure);
	assert_int_equal(answer->security, RESOLVE_SECURE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_signed_is_secure),
		TEST(a_forged_address_is_bogus_and_no_host),
		TEST(tlsa_records_come_with_their_verdict),
		TEST(an_alias_is_told_of_a_host_and_by_itself),
		TEST(a_server_without_signatures_is_found_out_once),
		TEST(a_server_that_drops_edns_is_asked_without),
		TEST(what_a_silent_server_says_later_is_validated),
		TEST(what_a_failing_server_says_later_is_validated),
		TEST(a_server_that_fails_for_the_root_only_is_used),
		TEST(signatures_that_end_make_answers_bogus),
		TEST(the_ad_bit_is_believed_of_this_machine),
		TEST(the_ad_bit_is_not_believed_of_others),
		TEST(the_ad_bit_means_nothing_when_dnssec_is_off),
		TEST(no_anchor_no_validation),
		TEST(threads_that_validate_answer_each_question_once),
		TEST(a_reload_while_proofs_are_made_loses_no_question),
		TEST(an_end_while_proofs_are_made_frees_what_is_asked),
		TEST(names_whose_servers_are_silent_keep_no_others_from_being_validated),
	};
	int fd = mkstemp(anchor);
	if (fd < 0)
		return 1;
	close(fd);
	signed_zone_open(anchor);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	signed_zone_close();
	unlink(anchor);
	return failed;
}
