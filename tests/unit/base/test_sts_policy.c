/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/sts_policy.h"

#include <stdio.h>
#include <string.h>

static struct sts_policy *parse(const char *text)
{
	struct buf why = {0};
	struct sts_policy *p = sts_policy_parse(text, strlen(text), &why);
	assert_int_equal(p == NULL, buf_len(&why) > 0);
	buf_fini(&why);
	return p;
}

static void a_policy_has_mode_age_and_hosts(void **state)
{
	(void)state;
	struct sts_policy *p = parse("version: STSv1\r\nmode: enforce\r\nmx: MX.a.test\r\n"
				     "mx: *.b.test\r\nmax_age: 604800\r\n");
	assert_int_equal(p->mode, STS_ENFORCE);
	assert_int_equal(p->max_age_s, 604800);
	assert_int_equal(p->nmx, 2);
	assert_true(sts_policy_has(p, "mx.a.test"));
	assert_true(sts_policy_has(p, "Mx.A.test"));
	assert_false(sts_policy_has(p, "x.mx.a.test"));
	assert_true(sts_policy_has(p, "any.b.test"));
	sts_policy_unref(p);
}

static void a_star_is_one_whole_label(void **state)
{
	(void)state;
	struct sts_policy *p = parse("version:STSv1\nmode:testing\nmax_age:1\nmx:*.b.test");
	assert_true(sts_policy_has(p, "a.b.test"));
	assert_false(sts_policy_has(p, "b.test"));
	assert_false(sts_policy_has(p, ".b.test"));
	assert_false(sts_policy_has(p, "a.a.b.test"));
	assert_false(sts_policy_has(p, "ab.test"));
	sts_policy_unref(p);
}

static void a_host_may_be_written_with_its_final_dot(void **state)
{
	(void)state;
	struct sts_policy *p =
		parse("version:STSv1\nmode:enforce\nmax_age:1\nmx: mx.a.test.\nmx: *.b.test. \n");
	assert_true(sts_policy_has(p, "mx.a.test"));
	assert_true(sts_policy_has(p, "mx.b.test"));
	assert_false(sts_policy_has(p, "b.test"));
	sts_policy_unref(p);
}

static void unknown_fields_and_repetitions_are_passed_over(void **state)
{
	(void)state;
	struct sts_policy *p =
		parse("mx: a.test\nfuture: thing\nmode: none\nmode: enforce\nmax_age: 7\n"
		      "max_age: 8\n\nversion: STSv1\nversion: STSv2\n  \n");
	assert_int_equal(p->mode, STS_NONE);
	assert_int_equal(p->max_age_s, 7);
	sts_policy_unref(p);
	p = parse("version: STSv1\nmode: none\nmax_age: 0\n");
	assert_int_equal(p->nmx, 0);
	sts_policy_unref(p);
}

static void nothing_is_kept_for_longer_than_a_year(void **state)
{
	static const char *const ages[] = {"31557600", "31557601", "1000000000000",
					   "99999999999999999999999999999999"};
	(void)state;
	for (size_t i = 0; i < sizeof ages / sizeof *ages; i++) {
		char text[200];
		snprintf(text, sizeof text, "version: STSv1\nmode: none\nmax_age: %s\n", ages[i]);
		struct sts_policy *p = parse(text);
		assert_int_equal(p->max_age_s, 31557600);
		sts_policy_unref(p);
	}
}

static void what_is_no_policy_is_said(void **state)
{
	static const char *const texts[] = {
		"",
		"<html>\n",
		"mode: enforce\nmax_age: 1\nmx: a.test\n",
		"version: STSv2\nmode: enforce\nmax_age: 1\nmx: a.test\n",
		"version: STSv1\nmax_age: 1\nmx: a.test\n",
		"version: STSv1\nmode: strict\nmax_age: 1\nmx: a.test\n",
		"version: STSv1\nmode: enforce\nmx: a.test\n",
		"version: STSv1\nmode: enforce\nmax_age: -1\nmx: a.test\n",
		"version: STSv1\nmode: enforce\nmax_age:\nmx: a.test\n",
		"version: STSv1\nmode: enforce\nmax_age: 1\n",
		"version: STSv1\nmode: testing\nmax_age: 1\n",
		"version: STSv1\nmode: enforce\nmax_age: 1\nmx: a test\n",
		"version: STSv1\nmode: enforce\nmax_age: 1\nmx: *\n",
		"version: STSv1\nmode: enforce\nmax_age: 1\nmx: a.*.test\n",
		"version: STSv1\nmode: enforce\nmax_age: 1\nmx: a.test\nwords\n",
	};
	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_null(parse(texts[i]));
}

static void a_nul_is_no_end(void **state)
{
	static const char text[] =
		"version: STSv1\nmode: enforce\nmax_age: 1\nmx: a.test\0.b.test\n";
	struct buf why = {0};
	(void)state;
	assert_null(sts_policy_parse(text, sizeof text - 1, &why));
	buf_fini(&why);
}

static void hosts_are_bounded(void **state)
{
	struct buf text = {0}, why = {0};
	(void)state;
	buf_puts(&text, "version: STSv1\nmode: enforce\nmax_age: 1\n");
	for (int i = 0; i < STS_MX_MAX; i++)
		buf_printf(&text, "mx: mx%d.a.test\n", i);
	struct sts_policy *p = sts_policy_parse(buf_data(&text), buf_len(&text), &why);
	assert_int_equal(p->nmx, STS_MX_MAX);
	sts_policy_unref(p);
	buf_puts(&text, "mx: one.more.test\n");
	assert_null(sts_policy_parse(buf_data(&text), buf_len(&text), &why));
	buf_fini(&text);
	buf_fini(&why);
}

static void what_is_written_is_read_again(void **state)
{
	struct buf text = {0};
	(void)state;
	struct sts_policy *p = parse("version: STSv1\nmode: testing\nmax_age: 86400\nmx: a.test\n"
				     "mx: *.b.test\n");
	sts_policy_write(p, &text);
	struct sts_policy *again = parse(buf_cstr(&text));
	assert_int_equal(again->mode, p->mode);
	assert_int_equal(again->max_age_s, p->max_age_s);
	assert_int_equal(again->nmx, 2);
	assert_string_equal(again->mx[1], "*.b.test");
	sts_policy_unref(again);
	sts_policy_unref(p);
	buf_fini(&text);
}

static void record(const char *txt, bool is_one, const char *expected)
{
	char id[STS_ID_SIZE];
	assert_int_equal(sts_record_parse(txt, id), is_one);
	assert_string_equal(id, expected);
}

static void a_record_has_a_version_and_an_id(void **state)
{
	(void)state;
	record("v=STSv1; id=20160831085700Z;", true, "20160831085700Z");
	record("v=STSv1;id=1", true, "1");
	record("v=STSv1 ; x=y; id = a1 ; id=b", true, "a1");
	record("v=STSv1; id=12345678901234567890123456789012", true,
	       "12345678901234567890123456789012");
	record("v=STSv1; id=123456789012345678901234567890123", true, "");
	record("v=STSv1; id=a-b", true, "");
	record("v=STSv1; id=; id=1", true, "");
	record("v=STSv1;", true, "");
	record("v=STSv1", false, "");
	record("v=STSv10; id=1", false, "");
	record("V=STSv1; id=1", false, "");
	record("v=spf1 -all", false, "");
	record("", false, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_policy_has_mode_age_and_hosts),
		cmocka_unit_test(a_star_is_one_whole_label),
		cmocka_unit_test(a_host_may_be_written_with_its_final_dot),
		cmocka_unit_test(unknown_fields_and_repetitions_are_passed_over),
		cmocka_unit_test(nothing_is_kept_for_longer_than_a_year),
		cmocka_unit_test(what_is_no_policy_is_said),
		cmocka_unit_test(a_nul_is_no_end),
		cmocka_unit_test(hosts_are_bounded),
		cmocka_unit_test(what_is_written_is_read_again),
		cmocka_unit_test(a_record_has_a_version_and_an_id),
	};
	return RUN(tests);
}
