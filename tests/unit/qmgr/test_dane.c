/* SPDX-License-Identifier: ISC */
/* Which TLS policy a host has when its TLSA records count, who shares its connections, and which hosts are left
 * out. */
#include "tests/unit/qmgr/world.h"

#include "base/tls_dane.h"

static uint8_t digest[32] = {1}, other_digest[32] = {2};
static const struct resolve_tlsa of_key = {3, 1, 1, 32, digest};
static const struct resolve_tlsa of_other_key = {3, 1, 1, 32, other_digest};
static const struct resolve_tlsa of_authority = {2, 1, 1, 32, digest};
static const struct resolve_tlsa of_the_web = {1, 1, 1, 32, digest};

/* What dns says of the TLSA records of a host. */
static void has_tlsa(struct resolve *r, int host, const struct resolve_tlsa *record)
{
	const char *const hop[] = {r->name};
	r->host[host].dane = tls_dane_new(r->host[host].name, hop, 1, record, 1);
}

static void has_no_answer(struct resolve *r, int host)
{
	r->host[host].unsure =
		verdict_new(VERDICT_DEFERRED, 451, "4.4.3", NULL, "look-up of TLSA failed");
}

/* The question for a domain, taken out, with these hosts. */
static struct resolve *asked(const char *domain, const char *first, const char *second)
{
	const char *const names[] = {first, second};
	struct resolve *r = take_question(domain);
	r->host = mem_zalloc(2 * sizeof *r->host);
	for (int i = 0; i < 2 && names[i]; i++) {
		struct resolve_host *h = &r->host[r->nhost++];
		*h = (struct resolve_host){
			.name = mem_strdup(names[i]), .preference = (uint16_t)i, .naddress = 1};
		h->address[0].in.sin_family = AF_INET;
		h->address[0].in.sin_addr.s_addr = htonl(0xc0000201u + (uint32_t)i);
	}
	return r;
}

static void answered(struct resolve *r)
{
	r->note.type = RESOLVE_ANSWER;
	post(&r->note);
	settle();
}

static bool asks_for_tlsa(const char *text, const char *to)
{
	begin(text);
	send_mail(1, to);
	struct resolve *r = questions.n > 0 ? (struct resolve *)questions.note[0] : NULL;
	assert_non_null(r);
	assert_true(!r->dane || r->port == 25);
	bool asks = r->dane;
	finish(NULL);
	return asks;
}

static void tlsa_records_are_asked_for_as_the_policy_says(void **state)
{
	(void)state;
	assert_true(asks_for_tlsa("", "x@a.test"));
	assert_true(asks_for_tlsa("transport smtp { tls = required }", "x@a.test"));
	assert_false(asks_for_tlsa("transport smtp { tls = none }", "x@a.test"));
	assert_false(asks_for_tlsa("transport smtp { tls = verify }", "x@a.test"));
	assert_false(asks_for_tlsa("tls { dane = false }", "x@a.test"));
	assert_true(
		asks_for_tlsa("tls { dane = false } transport smtp { tls = dane }", "x@a.test"));
	assert_true(
		asks_for_tlsa("tls { dane = false } route a.test { tls = dane-only }", "x@a.test"));
	assert_false(asks_for_tlsa("route a.test { relay = { \"unix:/a\" } tls = dane-only }",
				   "x@a.test"));
	assert_true(asks_for_tlsa("route a.test { relay = { \"[b.test]\" } }", "x@a.test"));
}

static void a_host_must_fit_its_records(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	struct resolve *r = asked("a.test", "mx.a.test", NULL);
	has_tlsa(r, 0, &of_key);
	answered(r);
	struct connection_open *o = open_at(0);
	assert_int_equal(strncmp(o->tls, "dane:mx.a.test,tlsa=", 20), 0);
	assert_non_null(o->dane);
	assert_string_equal(o->dane->policy, o->tls);
	assert_string_equal(o->site, "mx.a.test tls=dane");
	assert_false(o->plain);
}

static void without_a_usable_record_it_must_have_tls(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	struct resolve *r = asked("a.test", "mx.a.test", NULL);
	has_tlsa(r, 0, &of_the_web);
	answered(r);
	assert_string_equal(open_at(0)->tls, "required");
	assert_string_equal(open_at(0)->site, "mx.a.test tls=required");
}

static void without_records_it_is_as_if_nobody_had_asked(void **state)
{
	(void)state;
	begin("transport smtp { tls = dane }");
	send_mail(1, "x@a.test");
	answered(asked("a.test", "mx.a.test", NULL));
	assert_string_equal(open_at(0)->tls, "opportunistic");
	assert_string_equal(open_at(0)->site, "mx.a.test");
}

/* The host of one domain is named by another, which can't prove that: even where the transport says dane. */
static void who_proves_nothing_shares_nothing_with_who_does(const char *text)
{
	begin(text);
	send_mail(1, "x@a.test");
	struct resolve *r = asked("a.test", "mx.a.test", NULL);
	has_tlsa(r, 0, &of_key);
	answered(r);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
	is_released(1);
	send_mail(2, "x@b.test");
	answered(asked("b.test", "mx.a.test", NULL));
	assert_int_equal(opened.n, 2);
	assert_int_equal(given.n, 0);
	send_mail(3, "y@a.test");
	assert_int_equal(given.n, 1);
	assert_int_equal(given_at(0)->connection, open_at(0)->connection);
	assert_int_equal(HASH_COUNT(q->db.sites), 2);
	assert_int_equal(HASH_COUNT(q->db.hosts), 2);
}

static void an_unproven_host_is_another_by_default(void **state)
{
	(void)state;
	who_proves_nothing_shares_nothing_with_who_does("");
}

static void an_unproven_host_is_another_with_dane(void **state)
{
	(void)state;
	who_proves_nothing_shares_nothing_with_who_does("transport smtp { tls = dane }");
}

/* Nor where the one who proves nothing has dane in his route. */
static void a_site_is_not_named_by_what_is_only_wished_for(void **state)
{
	(void)state;
	begin("route a.test { tls = dane }");
	send_mail(1, "x@a.test");
	answered(asked("a.test", "mx.a.test", NULL));
	assert_string_equal(open_at(0)->site, "mx.a.test");
}

static int opened_for_two(const struct resolve_tlsa *a, const struct resolve_tlsa *b)
{
	begin("");
	send_mail(1, "x@a.test");
	struct resolve *r = asked("a.test", "mx.a.test", NULL);
	has_tlsa(r, 0, a);
	answered(r);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
	is_released(1);
	send_mail(2, "x@b.test");
	r = asked("b.test", "mx.a.test", NULL);
	has_tlsa(r, 0, b);
	answered(r);
	int n = opened.n;
	finish(NULL);
	return n;
}

static void connections_are_for_whose_records_are_the_same(void **state)
{
	(void)state;
	assert_int_equal(opened_for_two(&of_key, &of_key), 1);
	assert_int_equal(opened_for_two(&of_key, &of_other_key), 2);
	assert_int_equal(opened_for_two(&of_authority, &of_authority),
			 2); /* another domain's name */
}

static void other_records_end_what_has_fitted_those_of_before(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	struct resolve *r = asked("a.test", "mx.a.test", NULL);
	has_tlsa(r, 0, &of_key);
	answered(r);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
	is_released(1);
	pass_time(6000);
	send_mail(2, "y@a.test");
	r = asked("a.test", "mx.a.test", NULL);
	has_tlsa(r, 0, &of_other_key);
	answered(r);
	assert_int_equal(ending.n, 1);
	assert_int_equal(opened.n, 2);
	assert_int_equal(given.n, 0);
}

static void a_host_that_nobody_can_be_sure_of_is_left_out(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	struct resolve *r = asked("a.test", "mx1.a.test", "mx2.a.test");
	has_no_answer(r, 0);
	answered(r);
	assert_int_equal(opened.n, 1);
	assert_string_equal(open_at(0)->host, "mx2.a.test");
	assert_string_equal(open_at(0)->site, "mx2.a.test");
}

static void with_no_other_host_the_mail_waits(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	struct resolve *r = asked("a.test", "mx1.a.test", NULL);
	has_no_answer(r, 0);
	answered(r);
	assert_int_equal(opened.n, 0);
	struct envelope *e = is_kept(1);
	assert_int_equal(e->rcpt[0].last->class, VERDICT_DEFERRED);
	assert_string_equal(e->rcpt[0].last->dsn, "4.4.3");
	envelope_free(&e);
}

static void dane_only_leaves_out_who_has_no_usable_record(void **state)
{
	(void)state;
	begin("transport smtp { tls = dane-only }");
	send_mail(1, "x@a.test");
	struct resolve *r = asked("a.test", "mx1.a.test", "mx2.a.test");
	has_tlsa(r, 0, &of_the_web);
	has_tlsa(r, 1, &of_key);
	answered(r);
	assert_int_equal(opened.n, 1);
	assert_string_equal(open_at(0)->host, "mx2.a.test");
	send_mail(2, "x@b.test");
	answered(asked("b.test", "mx.b.test", NULL));
	assert_int_equal(opened.n, 1);
	struct envelope *e = is_kept(2);
	assert_string_equal(e->rcpt[0].last->dsn, "4.7.5");
	envelope_free(&e);
}

/* Mail waits for a host that had no records. The question that another message has asked since. */
static struct resolve *asked_since(void)
{
	begin("");
	send_mail(1, "x@a.test");
	answered(asked("a.test", "mx.a.test", NULL));
	pass_time(6000);
	send_mail(2, "y@a.test");
	return asked("a.test", "mx.a.test", NULL);
}

static void what_waits_goes_by_the_records_that_there_are_since(void **state)
{
	(void)state;
	struct resolve *r = asked_since();
	has_tlsa(r, 0, &of_key);
	answered(r);
	assert_int_equal(site_named("mx.a.test tls=dane")->queue.waiting, 2);
	for (int i = 0; i < opened.n; i++)
		ready(open_at(i), 1);
	assert_int_equal(given.n, 2);
	for (int i = 0; i < opened.n; i++)
		if (given_at(0)->connection == open_at(i)->connection)
			assert_int_equal(strncmp(open_at(i)->tls, "dane:", 5), 0);
	assert_int_equal(given_at(0)->id, 1);
}

static void what_waits_does_so_for_longer_where_nobody_can_be_sure_any_more(void **state)
{
	(void)state;
	struct resolve *r = asked_since();
	has_no_answer(r, 0);
	answered(r);
	r = asked("a.test", "mx.a.test", NULL);
	has_no_answer(r, 0);
	answered(r);
	ready(open_at(0), 1);
	assert_int_equal(given.n, 0);
	for (int i = 2; i > 0; i--) {
		struct envelope *e = is_kept((uint64_t)i);
		assert_string_equal(e->rcpt[0].last->dsn, "4.4.3");
		envelope_free(&e);
	}
}

static const struct tls_dane *dane_of_newest(void)
{
	return open_at(opened.n - 1)->dane;
}

/* The policy of the host is the same text; what is reported to the domain is not. */
static void records_that_are_useless_are_spoken_of_as_long_as_there_are_some(void **state)
{
	(void)state;
	begin("transport smtp { tls = required }");
	send_mail(1, "x@a.test");
	struct resolve *r = asked("a.test", "mx.a.test", NULL);
	has_tlsa(r, 0, &of_the_web);
	answered(r);
	assert_non_null(dane_of_newest());
	int before = opened.n;
	pass_time(6000);
	send_mail(2, "x@a.test");
	answered(asked("a.test", "mx.a.test", NULL));
	assert_true(opened.n > before);
	assert_null(dane_of_newest());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tlsa_records_are_asked_for_as_the_policy_says),
		cmocka_unit_test_teardown(a_host_must_fit_its_records, finish),
		cmocka_unit_test_teardown(without_a_usable_record_it_must_have_tls, finish),
		cmocka_unit_test_teardown(without_records_it_is_as_if_nobody_had_asked, finish),
		cmocka_unit_test_teardown(an_unproven_host_is_another_by_default, finish),
		cmocka_unit_test_teardown(an_unproven_host_is_another_with_dane, finish),
		cmocka_unit_test_teardown(a_site_is_not_named_by_what_is_only_wished_for, finish),
		cmocka_unit_test_teardown(other_records_end_what_has_fitted_those_of_before,
					  finish),
		cmocka_unit_test(connections_are_for_whose_records_are_the_same),
		cmocka_unit_test_teardown(a_host_that_nobody_can_be_sure_of_is_left_out, finish),
		cmocka_unit_test_teardown(with_no_other_host_the_mail_waits, finish),
		cmocka_unit_test_teardown(dane_only_leaves_out_who_has_no_usable_record, finish),
		cmocka_unit_test_teardown(what_waits_goes_by_the_records_that_there_are_since,
					  finish),
		cmocka_unit_test_teardown(
			what_waits_does_so_for_longer_where_nobody_can_be_sure_any_more, finish),
		cmocka_unit_test_teardown(
			records_that_are_useless_are_spoken_of_as_long_as_there_are_some, finish),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
