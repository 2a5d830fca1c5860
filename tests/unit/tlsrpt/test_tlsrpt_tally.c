/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/mem.h"
#include "tlsrpt/tlsrpt_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DAY = 20779 };

static void add(struct tlsrpt_tally *t, const char *domain, enum tls_result_type type,
		const char *mx, const char *reason)
{
	struct sts_policy *p;
	struct buf why = {0};
	static const char text[] = "version: STSv1\nmode: enforce\nmax_age: 60\nmx: *.a.test\n";
	p = sts_policy_parse(text, strlen(text), &why);
	struct tls_subject *of = tls_subject_new(NULL, domain, p);
	struct tls_result *r = tls_result_new(of, type, reason);
	r->mx = mem_strdup(mx);
	r->address.in.sin_family = AF_INET;
	tlsrpt_tally_add(t, DAY, r);
	tls_result_free(&r);
	tls_subject_unref(of);
	sts_policy_unref(p);
}

static void results_are_counted_by_kind(void **state)
{
	struct tlsrpt_tally t = {0};
	(void)state;
	for (int i = 0; i < 3; i++)
		add(&t, "a.test", TLS_RESULT_SUCCESS, "mx.a.test", NULL);
	add(&t, "a.test", TLS_RESULT_EXPIRED, "mx.a.test", "old");
	add(&t, "a.test", TLS_RESULT_EXPIRED, "mx.a.test", "old");
	add(&t, "a.test", TLS_RESULT_EXPIRED, "mx2.a.test", "old");
	const struct tlsrpt_report *r = tlsrpt_tally_get(&t, DAY, "a.test");
	assert_int_equal(r->npolicy, 1);
	const struct tlsrpt_policy *p = r->policy;
	assert_int_equal(p->policy, TLS_RESULT_OF_STS);
	assert_int_equal(p->successes, 3);
	assert_int_equal(p->failures, 3);
	assert_int_equal(p->ndetail, 2);
	assert_int_equal(p->detail[0].count, 2);
	assert_string_equal(p->detail[0].address, "0.0.0.0");
	tlsrpt_tally_fini(&t);
}

static void each_level_is_bounded_and_nothing_is_lost(void **state)
{
	struct tlsrpt_tally t = {0};
	char mx[40];
	(void)state;
	for (int i = 0; i < 1000; i++) {
		snprintf(mx, sizeof mx, "mx%d.a.test", i);
		add(&t, "a.test", TLS_RESULT_NOT_TRUSTED, mx, NULL);
	}
	const struct tlsrpt_report *r = tlsrpt_tally_get(&t, DAY, "a.test");
	int64_t sum = 0;
	assert_int_equal(r->policy->ndetail, TLSRPT_DETAILS_MAX);
	for (int i = 0; i < r->policy->ndetail; i++)
		sum += r->policy->detail[i].count;
	assert_int_equal(sum, 1000);
	for (int i = 0; i < TLSRPT_REPORTS_MAX + 10; i++) {
		snprintf(mx, sizeof mx, "d%d.test", i);
		tlsrpt_tally_get(&t, DAY, mx);
	}
	assert_int_equal(HASH_COUNT(t.reports), TLSRPT_REPORTS_MAX);
	tlsrpt_tally_fini(&t);
}

static void what_is_written_is_read_again(void **state)
{
	struct tlsrpt_tally t = {0}, again = {0};
	struct buf first = {0}, second = {0};
	(void)state;
	add(&t, "a.test", TLS_RESULT_SUCCESS, NULL, NULL);
	add(&t, "a.test", TLS_RESULT_OTHER_NAME, "mx.a.test",
	    "is for b.test, not for mx.a.test\nx");
	add(&t, "a.test", TLS_RESULT_STS_FETCH, NULL, NULL);
	add(&t, "b.test", TLS_RESULT_FAILED, "mx.b.test", NULL);
	tlsrpt_report_add_sent(tlsrpt_tally_get(&t, DAY, "b.test"), "tls@b.test");
	tlsrpt_report_add_sent(tlsrpt_tally_get(&t, DAY, "b.test"), "https://b.test/tls");
	tlsrpt_text_write(&t, &first);
	tlsrpt_text_read(&again, buf_cstr(&first));
	tlsrpt_text_write(&again, &second);
	assert_string_equal(buf_cstr(&first), buf_cstr(&second));
	assert_non_null(strstr(buf_cstr(&first), "detail certificate-host-mismatch 1 mx.a.test "
						 "0.0.0.0 - is for b.test, not for mx.a.test\n"));
	assert_true(tlsrpt_report_went_to(tlsrpt_tally_get(&again, DAY, "b.test"),
					  "https://b.test/tls"));
	assert_false(tlsrpt_report_went_to(tlsrpt_tally_get(&again, DAY, "a.test"),
					   "https://b.test/tls"));
	tlsrpt_tally_fini(&t);
	tlsrpt_tally_fini(&again);
	buf_fini(&first);
	buf_fini(&second);
}

static void who_has_a_report_is_known_by_name_and_bounded(void **state)
{
	struct tlsrpt_tally t = {0};
	struct tlsrpt_report *r = tlsrpt_tally_get(&t, DAY, "a.test");
	char to[40];
	(void)state;
	for (int i = 0; i < 2 * (TLSRPT_SENT_MAX + 3); i++) {
		snprintf(to, sizeof to, "tls@d%d.test", i / 2);
		tlsrpt_report_add_sent(r, to);
	}
	assert_int_equal(r->nsent, TLSRPT_SENT_MAX);
	assert_false(tlsrpt_report_went_to(r, "tls@d2.test"));
	assert_true(tlsrpt_report_went_to(r, "tls@d3.test"));
	assert_true(tlsrpt_report_went_to(r, to));
	tlsrpt_tally_fini(&t);
}

static void lines_that_are_none_are_passed_over(void **state)
{
	struct tlsrpt_tally t = {0};
	struct buf text = {0};
	(void)state;
	tlsrpt_text_read(
		&t, "detail x\npolicy\nreport\nreport x y z\npolicy sts 1 1\ntext a\n"
		    "report 1 a.test 0\npolicy other 1 1\npolicy sts x\ndetail success 1 - - - \n"
		    "policy tlsa 2 1\ntext 3 1 1 00\ndetail nothing 1 - - - \ndetail\n\n");
	tlsrpt_text_write(&t, &text);
	assert_string_equal(buf_cstr(&text), "report 1 a.test 0\npolicy tlsa 2 1\ntext 3 1 1 00\n");
	tlsrpt_tally_fini(&t);
	buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_are_counted_by_kind),
		cmocka_unit_test(each_level_is_bounded_and_nothing_is_lost),
		cmocka_unit_test(what_is_written_is_read_again),
		cmocka_unit_test(who_has_a_report_is_known_by_name_and_bounded),
		cmocka_unit_test(lines_that_are_none_are_passed_over),
	};
	return RUN(tests);
}
