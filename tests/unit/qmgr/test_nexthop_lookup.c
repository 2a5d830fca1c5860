/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/unit.h"

#include "base/mem.h"
#include "base/tls_dane.h"
#include "qmgr/route/nexthop_lookup.h"
#include "qmgr/route/nexthop_name.h"

#include <arpa/inet.h>
#include <string.h>

static struct conf *conf;
static struct route_table *table;
static struct nexthop_lookup lookup;
static struct resolve *asked[10];
static int nasked;

static void ask(void *context, struct note *note)
{
	(void)context;
	assert_true(nasked < 10);
	asked[nasked++] = (struct resolve *)note;
}

static struct sts_ask *asked_sts;

static void ask_sts(void *context, struct note *note)
{
	(void)context;
	assert_null(asked_sts);
	asked_sts = (struct sts_ask *)note;
}

static void begin_with(const char *text, const char *address, enum envelope_tls wish)
{
	conf = conf_of(text);
	table = route_table_new(conf);
	nasked = 0;
	nexthop_lookup_begin(
		&lookup, route_find(table, "from@sender.test", address), address,
		&(struct nexthop_edge){
			.ask = ask, .ask_sts = ask_sts, .wish = wish, .owner = &lookup});
}

static void begin(const char *text, const char *address)
{
	begin_with(text, address, ENVELOPE_TLS_USUAL);
}

static int end(void **state)
{
	(void)state;
	nexthop_lookup_clear(&lookup);
	route_table_free(&table);
	conf_unref(conf);
	return 0;
}

static void asks(int i, enum resolve_kind kind, const char *name, bool trusted)
{
	assert_true(i < nasked);
	assert_int_equal(asked[i]->kind, kind);
	assert_string_equal(asked[i]->name, name);
	assert_int_equal(asked[i]->trusted, trusted);
	assert_ptr_equal(asked[i]->owner, &lookup);
}

static void has(int i, const char *name, uint16_t preference, const char *address)
{
	struct resolve *r = asked[i];
	r->host = mem_realloc(r->host, (size_t)(r->nhost + 1) * sizeof *r->host);
	struct resolve_host *h = &r->host[r->nhost++];
	*h = (struct resolve_host){
		.name = mem_strdup(name), .preference = preference, .naddress = 1};
	h->address[0].in.sin_family = AF_INET;
	assert_int_equal(inet_pton(AF_INET, address, &h->address[0].in.sin_addr), 1);
}

static void has_none(int i, enum verdict_class class)
{
	asked[i]->failure = verdict_new(class, 0, NULL, NULL, "not found");
}

/* The answers come in the opposite order; true: with this one it is answered. */
static void all_answered(void)
{
	if (asked_sts)
		assert_false(nexthop_lookup_sts_answered(&lookup, asked_sts));
	asked_sts = NULL;
	for (int i = nasked - 1; i >= 0; i--)
		assert_int_equal(nexthop_lookup_answered(&lookup, asked[i]), i == 0);
}

static void fails(enum verdict_class class, const char *dsn)
{
	struct verdict *v = nexthop_lookup_failure(&lookup);
	assert_non_null(v);
	assert_int_equal(v->class, class);
	if (dsn)
		assert_string_equal(v->dsn, dsn);
	verdict_unref(v);
}

static void a_domain_is_asked_for_its_mail_hosts(void **state)
{
	(void)state;
	begin("", "a@example.test");
	assert_int_equal(nasked, 1);
	asks(0, RESOLVE_MX, "example.test", false);
	has(0, "mx1.test", 10, "192.0.2.1");
	has(0, "mx2.test", 20, "192.0.2.2");
	all_answered();
	assert_null(nexthop_lookup_failure(&lookup));
	struct nexthop_host *host;
	assert_int_equal(nexthop_lookup_hosts(&lookup, &host), 2);
	assert_string_equal(host[0].name, "mx1.test");
	assert_int_equal(host[0].preference, 10);
	assert_int_equal(ntohs(host[0].address.in.sin_port), 25);
	assert_int_equal(host[1].preference, 20);
	free(host);
}

static void an_address_literal_is_no_domain(void **state)
{
	(void)state;
	begin("", "a@[192.0.2.7]");
	assert_int_equal(nasked, 1);
	asks(0, RESOLVE_HOST, "192.0.2.7", false);
	has(0, "192.0.2.7", 0, "192.0.2.7");
	all_answered();
}

static void relays_are_groups_in_their_order_each_with_its_port(void **state)
{
	(void)state;
	begin("route \"*\" { relay = { \"[a.test]:2525\", \"b.test\" } }\n", "a@example.test");
	assert_int_equal(nasked, 2);
	asks(0, RESOLVE_HOST, "a.test", true);
	asks(1, RESOLVE_MX, "b.test", true);
	has(0, "a.test", 0, "192.0.2.1");
	has(1, "mx.b.test", 5, "192.0.2.2");
	all_answered();
	struct nexthop_host *host;
	assert_int_equal(nexthop_lookup_hosts(&lookup, &host), 2);
	assert_int_equal(ntohs(host[0].address.in.sin_port), 2525);
	assert_int_equal(ntohs(host[1].address.in.sin_port), 25);
	assert_true(host[0].preference < host[1].preference);
	assert_int_equal(host[1].preference & 0xffff, 5);
	free(host);
}

static void relays_with_weights_share_a_group(void **state)
{
	(void)state;
	begin("route \"*\" { relay = { \"[a.test]=3\", \"[b.test]=1\" } }\n", "a@example.test");
	has(0, "a.test", 0, "192.0.2.1");
	has(0, "a.test", 0, "192.0.2.3");
	has(1, "b.test", 0, "192.0.2.2");
	all_answered();
	struct nexthop_host *host;
	assert_int_equal(nexthop_lookup_hosts(&lookup, &host), 3);
	assert_int_equal(host[0].preference, host[2].preference);
	assert_true(host[0].weight == 1.5 && host[1].weight == 1.5 && host[2].weight == 1);
	free(host);
}

/* What the MX records of one domain prefer says nothing of those of another. */
static void so_do_domains_with_weights_whatever_their_records_say(void **state)
{
	(void)state;
	begin("route \"*\" { relay = { \"a.test=3\", \"b.test=1\" } }\n", "a@example.test");
	has(0, "mx1.a.test", 10, "192.0.2.1");
	has(0, "mx2.a.test", 20, "192.0.2.3");
	has(1, "mx.b.test", 30, "192.0.2.2");
	all_answered();
	struct nexthop_host *host;
	assert_int_equal(nexthop_lookup_hosts(&lookup, &host), 3);
	assert_string_equal(host[0].name, "mx1.a.test");
	assert_string_equal(host[1].name, "mx.b.test");
	assert_string_equal(host[2].name, "mx2.a.test");
	assert_int_equal(host[0].preference, host[1].preference);
	assert_true(host[1].preference < host[2].preference);
	assert_true(host[0].weight == 3 && host[1].weight == 1 && host[2].weight == 3);
	free(host);
}

static const char fallback[] = "transport \"smtp\" { fallback_relay = { \"[last.test]\" } }\n";

static void the_fallback_comes_last(void **state)
{
	(void)state;
	begin(fallback, "a@example.test");
	assert_int_equal(nasked, 2);
	has(0, "mx.test", 65535, "192.0.2.1");
	has(1, "last.test", 0, "192.0.2.9");
	all_answered();
	assert_string_equal(nexthop_lookup_best(&lookup)->host[0].name, "mx.test");
	struct nexthop_host *host;
	assert_int_equal(nexthop_lookup_hosts(&lookup, &host), 2);
	assert_true(host[0].preference < host[1].preference);
	free(host);
}

static void the_fallback_helps_where_the_domain_can_not_be_found_for_now(void **state)
{
	(void)state;
	begin(fallback, "a@example.test");
	has_none(0, VERDICT_DEFERRED);
	has(1, "last.test", 0, "192.0.2.9");
	all_answered();
	assert_null(nexthop_lookup_failure(&lookup));
	assert_string_equal(nexthop_lookup_best(&lookup)->host[0].name, "last.test");
}

static void the_fallback_does_not_help_where_there_is_no_such_domain(void **state)
{
	(void)state;
	begin(fallback, "a@example.test");
	has_none(0, VERDICT_FAILED);
	has(1, "last.test", 0, "192.0.2.9");
	all_answered();
	fails(VERDICT_FAILED, NULL);
}

static void policy(const char *mode, const char *mx)
{
	struct buf text = {0}, why = {0};
	assert_non_null(asked_sts);
	assert_string_equal(asked_sts->domain, "example.test");
	buf_printf(&text, "version: STSv1\nmode: %s\nmax_age: 60\nmx: %s\n", mode, mx);
	asked_sts->policy = sts_policy_parse(buf_data(&text), buf_len(&text), &why);
	buf_fini(&text);
}

static void hosts_that_an_enforced_policy_does_not_have_are_left_out(void **state)
{
	struct nexthop_host *host;
	(void)state;
	begin("", "a@example.test");
	policy("enforce", "*.good.test");
	has(0, "mx.bad.test", 10, "192.0.2.1");
	has(0, "mx.good.test", 20, "192.0.2.2");
	has(0, "mx2.bad.test", 30, "192.0.2.3");
	all_answered();
	assert_int_equal(nexthop_lookup_hosts(&lookup, &host), 1);
	assert_string_equal(host[0].name, "mx.good.test");
	assert_int_equal(host[0].sts->mode, STS_ENFORCE);
	assert_int_equal(lookup.fault, TLS_RESULT_SUCCESS);
	free(host);
}

static void mail_waits_where_an_enforced_policy_has_no_host(void **state)
{
	(void)state;
	begin("", "a@example.test");
	policy("enforce", "mx.good.test");
	has(0, "mx.bad.test", 10, "192.0.2.1");
	all_answered();
	fails(VERDICT_DEFERRED, "4.7.0");
	assert_int_equal(lookup.fault, TLS_RESULT_FAILED);
}

static void hosts_with_tlsa_records_are_none_of_the_policys_business(void **state)
{
	struct resolve_tlsa record = {
		.usage = 3, .selector = 1, .matching = 1, .len = 32, .data = (uint8_t[32]){0}};
	struct nexthop_host *host;
	(void)state;
	begin("", "a@example.test");
	policy("enforce", "mx.good.test");
	has(0, "mx.bad.test", 10, "192.0.2.1");
	has(0, "mx.good.test", 20, "192.0.2.2");
	asked[0]->host[0].dane = tls_dane_new("mx.bad.test", NULL, 0, &record, 1);
	all_answered();
	assert_int_equal(nexthop_lookup_hosts(&lookup, &host), 2);
	assert_string_equal(host[0].name, "mx.bad.test");
	assert_null(host[0].sts);
	assert_non_null(host[1].sts);
	char *tls = nexthop_tls_of_host("verify:mta-sts=hostname", &host[0]);
	assert_int_equal(tls_policy_level(tls), TRANSPORT_TLS_DANE);
	free(tls);
	tls = nexthop_tls_of_host("verify:mta-sts=hostname", &host[1]);
	assert_string_equal(tls, "verify:mta-sts=mx.good.test");
	free(tls);
	free(host);
}

static void records_that_can_not_be_used_change_nothing_of_a_policy(void **state)
{
	struct resolve_tlsa record = {.usage = 9, .len = 1, .data = (uint8_t[1]){0}};
	struct nexthop_host *host;
	(void)state;
	begin("", "a@example.test");
	policy("enforce", "mx.good.test");
	has(0, "mx.bad.test", 10, "192.0.2.1");
	has(0, "mx.good.test", 20, "192.0.2.2");
	for (int i = 0; i < 2; i++)
		asked[0]->host[i].dane = tls_dane_new("mx.test", NULL, 0, &record, 1);
	all_answered();
	assert_int_equal(nexthop_lookup_hosts(&lookup, &host), 1);
	char *tls = nexthop_tls_of_host("unused", &host[0]);
	assert_string_equal(tls, "verify:mta-sts=mx.good.test");
	free(tls);
	free(host);
}

static void requiretls_is_met_by_hosts_of_an_enforced_policy(void **state)
{
	(void)state;
	begin_with("", "a@example.test", ENVELOPE_TLS_REQUIRED);
	policy("enforce", "mx.good.test");
	has(0, "mx.good.test", 20, "192.0.2.2");
	all_answered();
	assert_null(nexthop_lookup_failure(&lookup));
	end(NULL);
	begin_with("", "a@example.test", ENVELOPE_TLS_REQUIRED);
	policy("testing", "mx.good.test");
	has(0, "mx.good.test", 20, "192.0.2.2");
	all_answered();
	fails(VERDICT_FAILED, "5.7.10");
}

/* Without it nobody tells that the host is one of the domain's. */
static void requiretls_waits_for_a_policy_that_can_not_be_had_for_now(void **state)
{
	static const enum sts_outcome may_pass[] = {STS_RECORD_UNKNOWN, STS_FETCH_ERROR,
						    STS_UNTRUSTED, STS_INVALID};
	static const enum sts_outcome none[] = {STS_NO_RECORD, STS_BAD_RECORD};
	(void)state;
	for (size_t i = 0; i < 6; i++) {
		begin_with("", "a@example.test", ENVELOPE_TLS_REQUIRED);
		asked_sts->outcome = i < 4 ? may_pass[i] : none[i - 4];
		has(0, "mx.good.test", 20, "192.0.2.2");
		all_answered();
		fails(i < 4 ? VERDICT_DEFERRED : VERDICT_FAILED, i < 4 ? "4.7.10" : "5.7.10");
		assert_int_equal(lookup.fault, TLS_RESULT_SUCCESS);
		end(NULL);
	}
	begin("", "a@example.test");
	all_answered();
}

static void a_policy_that_is_tested_leaves_nobody_out(void **state)
{
	struct nexthop_host *host;
	(void)state;
	begin("", "a@example.test");
	policy("testing", "mx.good.test");
	has(0, "mx.bad.test", 10, "192.0.2.1");
	all_answered();
	assert_null(nexthop_lookup_failure(&lookup));
	assert_int_equal(nexthop_lookup_hosts(&lookup, &host), 1);
	assert_int_equal(host[0].sts->mode, STS_TESTING);
	free(host);
}

static void no_policy_is_asked_for_relays_and_literals(void **state)
{
	(void)state;
	begin("route \"*\" { relay = { \"a.test\" } }\n", "a@example.test");
	assert_null(asked_sts);
	has(0, "mx.a.test", 0, "192.0.2.1");
	all_answered();
	end(NULL);
	begin("", "a@[192.0.2.7]");
	assert_null(asked_sts);
	has(0, "192.0.2.7", 0, "192.0.2.7");
	all_answered();
}

static void the_policy_is_the_domains_not_the_fallbacks(void **state)
{
	struct nexthop_host *host;
	(void)state;
	begin("transport \"smtp\" { fallback_relay = { \"[last.test]\" } }\n", "a@example.test");
	policy("enforce", "mx.good.test");
	has(0, "mx.bad.test", 10, "192.0.2.1");
	has(1, "last.test", 0, "192.0.2.2");
	all_answered();
	assert_null(nexthop_lookup_failure(&lookup));
	assert_int_equal(nexthop_lookup_hosts(&lookup, &host), 1);
	assert_string_equal(host[0].name, "last.test");
	assert_null(host[0].sts);
	free(host);
}

static void a_relay_that_is_not_found_is_not_the_senders_fault(void **state)
{
	(void)state;
	begin("route \"*\" { relay = { \"a.test\" } }\n", "a@example.test");
	has_none(0, VERDICT_FAILED);
	all_answered();
	fails(VERDICT_DEFERRED, "4.4.4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_domain_is_asked_for_its_mail_hosts, end),
		cmocka_unit_test_teardown(an_address_literal_is_no_domain, end),
		cmocka_unit_test_teardown(relays_are_groups_in_their_order_each_with_its_port, end),
		cmocka_unit_test_teardown(relays_with_weights_share_a_group, end),
		cmocka_unit_test_teardown(so_do_domains_with_weights_whatever_their_records_say,
					  end),
		cmocka_unit_test_teardown(the_fallback_comes_last, end),
		cmocka_unit_test_teardown(
			the_fallback_helps_where_the_domain_can_not_be_found_for_now, end),
		cmocka_unit_test_teardown(the_fallback_does_not_help_where_there_is_no_such_domain,
					  end),
		cmocka_unit_test_teardown(hosts_that_an_enforced_policy_does_not_have_are_left_out,
					  end),
		cmocka_unit_test_teardown(mail_waits_where_an_enforced_policy_has_no_host, end),
		cmocka_unit_test_teardown(hosts_with_tlsa_records_are_none_of_the_policys_business,
					  end),
		cmocka_unit_test_teardown(records_that_can_not_be_used_change_nothing_of_a_policy,
					  end),
		cmocka_unit_test_teardown(requiretls_is_met_by_hosts_of_an_enforced_policy, end),
		cmocka_unit_test_teardown(requiretls_waits_for_a_policy_that_can_not_be_had_for_now,
					  end),
		cmocka_unit_test_teardown(a_policy_that_is_tested_leaves_nobody_out, end),
		cmocka_unit_test_teardown(no_policy_is_asked_for_relays_and_literals, end),
		cmocka_unit_test_teardown(the_policy_is_the_domains_not_the_fallbacks, end),
		cmocka_unit_test_teardown(a_relay_that_is_not_found_is_not_the_senders_fault, end),
	};
	return RUN(tests);
}
