/* SPDX-License-Identifier: ISC */
#include "dns/answer.h"
#include "base/tls_dane.h"

#include "tests/unit/dns/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct wire w;

static struct answer *parse(const char *name, enum answer_type type)
{
	/* A block of its own, so that a sanitizer sees a read beyond it. */
	uint8_t *bytes = malloc(w.len ? w.len : 1);
	memcpy(bytes, w.data, w.len);
	struct answer *a = answer_parse(bytes, w.len, name, type);
	free(bytes);
	return a;
}

static void expect(enum answer_status status, const char *name, enum answer_type type)
{
	struct answer *a = parse(name, type);
	assert_int_equal(a->status, status);
	answer_unref(a);
}

static void mx_records_come_out_by_preference(void **state)
{
	(void)state;
	wire_reply(&w, 1, 0, "A.test", WIRE_MX);
	wire_mx(&w, "a.test", 60, 20, "B.Mail.test");
	wire_mx(&w, "a.TEST", 30, 10, "a.mail.test");
	struct answer *a = parse("a.test", ANSWER_MX);
	assert_int_equal(a->status, ANSWER_RECORDS);
	assert_int_equal(a->nrecord, 2);
	assert_int_equal(a->record[0].preference, 10);
	assert_string_equal(a->record[0].target, "a.mail.test");
	assert_string_equal(a->record[1].target, "b.mail.test");
	assert_int_equal(a->ttl_ms, 30000);
	answer_unref(a);
}

static void addresses_of_the_other_family_are_not_taken(void **state)
{
	(void)state;
	wire_reply(&w, 1, 0, "a.test", WIRE_A);
	wire_address(&w, "a.test", 60, "192.0.2.1");
	wire_address(&w, "a.test", 60, "2001:db8::1");
	struct answer *a = parse("a.test", ANSWER_A);
	assert_int_equal(a->nrecord, 1);
	assert_int_equal(a->record[0].address.in.sin_addr.s_addr, inet_addr("192.0.2.1"));
	answer_unref(a);
}

static void a_record_of_another_owner_is_ignored(void **state)
{
	(void)state;
	wire_reply(&w, 1, 0, "a.test", WIRE_A);
	wire_address(&w, "b.test", 60, "192.0.2.2");
	wire_address(&w, "a.test", 60, "192.0.2.1");
	struct answer *a = parse("a.test", ANSWER_A);
	assert_int_equal(a->nrecord, 1);
	assert_int_equal(a->record[0].address.in.sin_addr.s_addr, inet_addr("192.0.2.1"));
	answer_unref(a);
}

static void records_of_another_owner_alone_are_no_proof_of_absence(void **state)
{
	(void)state;
	wire_reply(&w, 1, 0, "a.test", WIRE_A);
	wire_address(&w, "b.test", 60, "192.0.2.1");
	expect(ANSWER_FAILED, "a.test", ANSWER_A);
	wire_reply(&w, 1, 0, "a.test", WIRE_MX);
	wire_mx(&w, "b.test", 60, 10, "mx.test");
	expect(ANSWER_FAILED, "a.test", ANSWER_MX);
}

static void a_reply_to_another_question_is_refused(void **state)
{
	(void)state;
	wire_reply(&w, 1, 0, "b.test", WIRE_A);
	wire_address(&w, "b.test", 60, "192.0.2.1");
	expect(ANSWER_FAILED, "a.test", ANSWER_A);
	expect(ANSWER_FAILED, "b.test", ANSWER_AAAA);
}

static void a_question_sent_back_is_no_reply(void **state)
{
	(void)state;
	wire_reply(&w, 1, 0, "a.test", WIRE_A);
	w.data[2] &= 0x7f;
	expect(ANSWER_FAILED, "a.test", ANSWER_A);
}

static void no_bytes_or_part_of_a_reply_fail(void **state)
{
	(void)state;
	wire_reply(&w, 1, 0, "a.test", WIRE_MX);
	wire_mx(&w, "a.test", 60, 20, "mail.test");
	size_t whole = w.len;
	for (w.len = 0; w.len < whole; w.len++)
		expect(ANSWER_FAILED, "a.test", ANSWER_MX);
	expect(ANSWER_RECORDS, "a.test", ANSWER_MX);
}

static void an_mx_record_too_short_fails(void **state)
{
	(void)state;
	for (size_t len = 0; len <= 2; len++) {
		wire_reply(&w, 1, 0, "a.test", WIRE_MX);
		wire_record(&w, WIRE_ANSWER, "a.test", WIRE_MX, 60, "\0\5", len);
		expect(ANSWER_FAILED, "a.test", ANSWER_MX);
	}
}

static void an_address_that_is_cut_off_fails(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, 2, 3};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		wire_reply(&w, 1, 0, "a.test", WIRE_A);
		wire_record(&w, WIRE_ANSWER, "a.test", WIRE_A, 60, "0123456789abcdef", sizes[i]);
		expect(ANSWER_FAILED, "a.test", ANSWER_A);
	}
}

static void a_compression_loop_fails(void **state)
{
	(void)state;
	wire_reply(&w, 1, 0, "a.test", WIRE_MX);
	uint8_t rdata[] = {0, 10, 0xc0, (uint8_t)(w.len + 8 + 10 + 2)};
	wire_record(&w, WIRE_ANSWER, "a.test", WIRE_MX, 60, rdata, sizeof rdata);
	expect(ANSWER_FAILED, "a.test", ANSWER_MX);
}

static void a_pointer_beyond_the_packet_fails(void **state)
{
	(void)state;
	wire_reply(&w, 1, 0, "a.test", WIRE_MX);
	wire_record(&w, WIRE_ANSWER, "a.test", WIRE_MX, 60, "\0\12\xff\xff", 4);
	expect(ANSWER_FAILED, "a.test", ANSWER_MX);
}

static void a_label_of_64_bytes_fails(void **state)
{
	(void)state;
	uint8_t rdata[2 + 1 + 64 + 1] = {0, 10, 64};
	memset(rdata + 3, 'a', 64);
	wire_reply(&w, 1, 0, "a.test", WIRE_MX);
	wire_record(&w, WIRE_ANSWER, "a.test", WIRE_MX, 60, rdata, sizeof rdata);
	expect(ANSWER_FAILED, "a.test", ANSWER_MX);
}

static void a_target_that_is_no_host_name_is_kept_without_a_name(void **state)
{
	(void)state;
	static const char *const bad[] = {"\3a\0b", "\3a\nb", "\3a/b",	"\3a b",
					  "\3a.b",  "\1*",    "\2a\xe4"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		uint8_t rdata[10] = {0, 10};
		size_t label = 1 + (size_t)bad[i][0];
		memcpy(rdata + 2, bad[i], label);
		wire_reply(&w, 1, 0, "a.test", WIRE_MX);
		wire_record(&w, WIRE_ANSWER, "a.test", WIRE_MX, 60, rdata, 2 + label + 1);
		struct answer *a = parse("a.test", ANSWER_MX);
		assert_int_equal(a->status, ANSWER_RECORDS);
		assert_int_equal(a->nrecord, 1);
		assert_null(a->record[0].target);
		answer_unref(a);
	}
}

static void a_null_mx_has_the_root_as_target(void **state)
{
	(void)state;
	wire_reply(&w, 1, 0, "a.test", WIRE_MX);
	wire_mx(&w, "a.test", 60, 0, "");
	struct answer *a = parse("a.test", ANSWER_MX);
	assert_int_equal(a->nrecord, 1);
	assert_string_equal(a->record[0].target, "");
	answer_unref(a);
}

static void a_cname_chain_within_the_reply_is_followed_in_any_order(void **state)
{
	(void)state;
	wire_reply(&w, 1, 0, "a.test", WIRE_A);
	wire_address(&w, "c.test", 60, "192.0.2.1");
	wire_cname(&w, "b.test", 50, "c.test");
	wire_cname(&w, "a.test", 70, "b.test");
	struct answer *a = parse("a.test", ANSWER_A);
	assert_int_equal(a->status, ANSWER_RECORDS);
	assert_int_equal(a->nrecord, 1);
	assert_int_equal(a->chased, 2);
	assert_int_equal(a->ttl_ms, 50000);
	answer_unref(a);
}

static void a_cname_chain_that_leaves_the_reply_is_an_alias(void **state)
{
	(void)state;
	wire_reply(&w, 1, 0, "a.test", WIRE_A);
	wire_cname(&w, "a.test", 70, "b.test");
	struct answer *a = parse("a.test", ANSWER_A);
	assert_int_equal(a->status, ANSWER_ALIAS);
	assert_string_equal(a->alias, "b.test");
	answer_unref(a);
}

static void a_cname_chain_with_a_soa_ends_there(void **state)
{
	(void)state;
	wire_reply(&w, 1, 0, "a.test", WIRE_A);
	wire_cname(&w, "a.test", 70, "b.test");
	wire_soa(&w, "test", 60, 60);
	expect(ANSWER_NODATA, "a.test", ANSWER_A);
}

static void a_cname_loop_fails(void **state)
{
	(void)state;
	wire_reply(&w, 1, 0, "a.test", WIRE_A);
	wire_cname(&w, "a.test", 70, "b.test");
	wire_cname(&w, "b.test", 70, "a.test");
	expect(ANSWER_FAILED, "a.test", ANSWER_A);
	wire_reply(&w, 1, 0, "a.test", WIRE_A);
	wire_cname(&w, "a.test", 70, "a.test");
	expect(ANSWER_FAILED, "a.test", ANSWER_A);
}

static void chain(int links)
{
	char from[20], to[20];
	wire_reply(&w, 1, 0, "n0.test", WIRE_A);
	for (int i = 0; i < links; i++) {
		snprintf(from, sizeof from, "n%d.test", i);
		snprintf(to, sizeof to, "n%d.test", i + 1);
		wire_cname(&w, from, 70, to);
	}
	snprintf(to, sizeof to, "n%d.test", links);
	wire_address(&w, to, 60, "192.0.2.1");
}

static void ten_links_of_a_chain_are_followed_and_no_more(void **state)
{
	(void)state;
	chain(ANSWER_CHASE_MAX);
	expect(ANSWER_RECORDS, "n0.test", ANSWER_A);
	chain(ANSWER_CHASE_MAX + 1);
	expect(ANSWER_FAILED, "n0.test", ANSWER_A);
}

static void absence_lasts_as_long_as_the_soa_says(void **state)
{
	(void)state;
	wire_reply(&w, 1, WIRE_NXDOMAIN, "a.test", WIRE_MX);
	wire_soa(&w, "test", 600, 30);
	struct answer *a = parse("a.test", ANSWER_MX);
	assert_int_equal(a->status, ANSWER_NXDOMAIN);
	assert_int_equal(a->ttl_ms, 30000);
	answer_unref(a);
	wire_reply(&w, 1, 0, "a.test", WIRE_MX);
	wire_soa(&w, "test", 20, 3000);
	a = parse("a.test", ANSWER_MX);
	assert_int_equal(a->status, ANSWER_NODATA);
	assert_int_equal(a->ttl_ms, 20000);
	answer_unref(a);
}

static void absence_without_a_soa_is_not_kept(void **state)
{
	(void)state;
	wire_reply(&w, 1, WIRE_NXDOMAIN, "a.test", WIRE_MX);
	struct answer *a = parse("a.test", ANSWER_MX);
	assert_int_equal(a->status, ANSWER_NXDOMAIN);
	assert_int_equal(a->ttl_ms, 0);
	answer_unref(a);
}

static void a_referral_is_not_taken_for_absence(void **state)
{
	(void)state;
	uint8_t rdata[20];
	wire_reply(&w, 1, 0, "a.test", WIRE_MX);
	size_t len = wire_name_to(rdata, "ns.test");
	wire_record(&w, WIRE_AUTHORITY, "test", WIRE_NS, 60, rdata, len);
	expect(ANSWER_FAILED, "a.test", ANSWER_MX);
}

static void result_codes_of_trouble_fail(void **state)
{
	(void)state;
	for (unsigned rcode = 1; rcode < 16; rcode++) {
		wire_reply(&w, 1, rcode, "a.test", WIRE_MX);
		wire_mx(&w, "a.test", 60, 20, "mail.test");
		struct answer *a = parse("a.test", ANSWER_MX);
		assert_int_equal(a->status,
				 rcode == WIRE_NXDOMAIN ? ANSWER_RECORDS : ANSWER_FAILED);
		assert_int_equal(a->choked, rcode == WIRE_FORMERR || rcode == WIRE_NOTIMP);
		answer_unref(a);
	}
}

static void a_truncated_reply_fails(void **state)
{
	(void)state;
	wire_reply(&w, 1, 0, "a.test", WIRE_MX);
	wire_mx(&w, "a.test", 60, 20, "mail.test");
	w.data[2] |= 0x02;
	expect(ANSWER_FAILED, "a.test", ANSWER_MX);
}

static void tlsa(const char *name, const char *rdata, size_t len)
{
	wire_record(&w, WIRE_ANSWER, name, ANSWER_TLSA, 60, rdata, len);
}

static void tlsa_records_are_read(void **state)
{
	(void)state;
	wire_reply(&w, 1, 0, "_25._tcp.a.test", ANSWER_TLSA);
	tlsa("_25._tcp.a.test", "\3\1\2abc", 6);
	tlsa("_25._tcp.b.test", "\2\0\1abc", 6);
	w.data[3] |= 0x20;
	struct answer *a = parse("_25._tcp.a.test", ANSWER_TLSA);
	assert_int_equal(a->nrecord, 1);
	assert_int_equal(a->record[0].tlsa.usage, 3);
	assert_int_equal(a->record[0].tlsa.selector, 1);
	assert_int_equal(a->record[0].tlsa.matching, 2);
	assert_int_equal(a->record[0].tlsa.len, 3);
	assert_memory_equal(a->record[0].tlsa.data, "abc", 3);
	assert_true(a->authentic);
	answer_unref(a);
}

/* A zone may hold them, and its signatures are good. */
static void a_torn_tlsa_record_is_one_that_is_of_no_use(void **state)
{
	(void)state;
	for (size_t len = 0; len <= 3; len++) {
		wire_reply(&w, 1, 0, "a.test", ANSWER_TLSA);
		tlsa("a.test", "\3\1\2abc", 6);
		tlsa("a.test", "\3\1\0", len);
		struct answer *a = parse("a.test", ANSWER_TLSA);
		assert_int_equal(a->status, ANSWER_RECORDS);
		assert_int_equal(a->nrecord, 2);
		assert_int_equal(a->record[0].tlsa.len, 3);
		assert_int_equal(a->record[1].tlsa.len, 0);
		assert_false(tls_dane_usable(&a->record[1].tlsa));
		answer_unref(a);
	}
}

static void thousands_of_tlsa_records_are_cut(void **state)
{
	(void)state;
	wire_reply(&w, 1, 0, "a.test", ANSWER_TLSA);
	for (int i = 0; i < 1000; i++)
		tlsa("a.test", "\3\1\2abc", 6);
	struct answer *a = parse("a.test", ANSWER_TLSA);
	assert_int_equal(a->nrecord, ANSWER_TLSA_MAX);
	answer_unref(a);
}

static void strings_of_a_txt_record_are_one_text(void **state)
{
	(void)state;
	wire_reply(&w, 1, 0, "_x.a.test", ANSWER_TXT);
	wire_record(&w, WIRE_ANSWER, "_x.a.test", ANSWER_TXT, 60, "\3v=S\0\4\n\xff;x", 10);
	wire_record(&w, WIRE_ANSWER, "_x.a.test", ANSWER_TXT, 60, "\0", 1);
	struct answer *a = parse("_x.a.test", ANSWER_TXT);
	assert_int_equal(a->nrecord, 2);
	assert_string_equal(a->record[0].txt, "v=S??;x");
	assert_string_equal(a->record[1].txt, "");
	answer_unref(a);
}

static void a_torn_txt_record_is_refused(void **state)
{
	(void)state;
	wire_reply(&w, 1, 0, "a.test", ANSWER_TXT);
	wire_record(&w, WIRE_ANSWER, "a.test", ANSWER_TXT, 60, "\1a\7b", 4);
	expect(ANSWER_FAILED, "a.test", ANSWER_TXT);
}

static void an_alias_that_is_asked_for_is_not_followed(void **state)
{
	(void)state;
	wire_reply(&w, 1, 0, "a.test", ANSWER_CNAME);
	wire_cname(&w, "a.test", 60, "b.test");
	wire_cname(&w, "b.test", 60, "c.test");
	struct answer *a = parse("a.test", ANSWER_CNAME);
	assert_int_equal(a->status, ANSWER_RECORDS);
	assert_int_equal(a->chased, 0);
	assert_null(a->canonical);
	assert_string_equal(a->record[0].target, "b.test");
	answer_unref(a);
	wire_reply(&w, 1, 0, "a.test", WIRE_A);
	wire_cname(&w, "a.test", 60, "b.test");
	wire_address(&w, "b.test", 60, "192.0.2.1");
	a = parse("a.test", ANSWER_A);
	assert_string_equal(a->canonical, "b.test");
	answer_unref(a);
}

static void a_thousand_records_are_cut_to_the_best(void **state)
{
	(void)state;
	char name[30];
	wire_reply(&w, 1, 0, "a.test", WIRE_MX);
	for (unsigned i = 1000; i > 0; i--) {
		snprintf(name, sizeof name, "m%u.test", i);
		wire_mx(&w, "a.test", 60, i, name);
	}
	struct answer *a = parse("a.test", ANSWER_MX);
	assert_int_equal(a->nrecord, ANSWER_MX_MAX);
	assert_string_equal(a->record[0].target, "m1.test");
	answer_unref(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mx_records_come_out_by_preference),
		cmocka_unit_test(addresses_of_the_other_family_are_not_taken),
		cmocka_unit_test(a_record_of_another_owner_is_ignored),
		cmocka_unit_test(records_of_another_owner_alone_are_no_proof_of_absence),
		cmocka_unit_test(a_reply_to_another_question_is_refused),
		cmocka_unit_test(a_question_sent_back_is_no_reply),
		cmocka_unit_test(no_bytes_or_part_of_a_reply_fail),
		cmocka_unit_test(an_mx_record_too_short_fails),
		cmocka_unit_test(an_address_that_is_cut_off_fails),
		cmocka_unit_test(a_compression_loop_fails),
		cmocka_unit_test(a_pointer_beyond_the_packet_fails),
		cmocka_unit_test(a_label_of_64_bytes_fails),
		cmocka_unit_test(a_target_that_is_no_host_name_is_kept_without_a_name),
		cmocka_unit_test(a_null_mx_has_the_root_as_target),
		cmocka_unit_test(a_cname_chain_within_the_reply_is_followed_in_any_order),
		cmocka_unit_test(a_cname_chain_that_leaves_the_reply_is_an_alias),
		cmocka_unit_test(a_cname_chain_with_a_soa_ends_there),
		cmocka_unit_test(a_cname_loop_fails),
		cmocka_unit_test(ten_links_of_a_chain_are_followed_and_no_more),
		cmocka_unit_test(absence_lasts_as_long_as_the_soa_says),
		cmocka_unit_test(absence_without_a_soa_is_not_kept),
		cmocka_unit_test(a_referral_is_not_taken_for_absence),
		cmocka_unit_test(result_codes_of_trouble_fail),
		cmocka_unit_test(a_truncated_reply_fails),
		cmocka_unit_test(tlsa_records_are_read),
		cmocka_unit_test(a_torn_tlsa_record_is_one_that_is_of_no_use),
		cmocka_unit_test(thousands_of_tlsa_records_are_cut),
		cmocka_unit_test(strings_of_a_txt_record_are_one_text),
		cmocka_unit_test(a_torn_txt_record_is_refused),
		cmocka_unit_test(an_alias_that_is_asked_for_is_not_followed),
		cmocka_unit_test(a_thousand_records_are_cut_to_the_best),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
