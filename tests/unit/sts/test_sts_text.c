/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "sts/sts_text.h"

#include <stdio.h>
#include <string.h>

#define DAY INT64_C(86400000)

static struct sts_domain *domain_of(void *owner, const char *name)
{
	return sts_table_get(owner, name);
}

static struct sts_policy *policy(int hosts)
{
	struct buf text = {0}, why = {0};
	buf_puts(&text, "version: STSv1\nmode: enforce\nmax_age: 86400\n");
	for (int i = 0; i < hosts; i++)
		buf_printf(&text, "mx: mx%d.a-rather-long-name-of-a-domain.test\n", i);
	struct sts_policy *p = sts_policy_parse(buf_data(&text), buf_len(&text), &why);
	assert_non_null(p);
	buf_fini(&text);
	return p;
}

static struct sts_domain *know(struct sts_table *t, const char *name, int hosts)
{
	struct sts_domain *d = sts_table_get(t, name);
	sts_table_set(t, d, policy(hosts));
	strcpy(d->id, "20260101");
	d->fetched_ms = 10 * DAY;
	d->ends_ms = 11 * DAY;
	return d;
}

static void policies_outlive_the_relay_until_they_end(void **state)
{
	struct sts_table t, again, later;
	struct buf text = {0};
	(void)state;
	sts_table_init(&t);
	sts_table_init(&again);
	sts_table_init(&later);
	know(&t, "a.test", 2);
	know(&t, "b.test", 1)->ends_ms = 10 * DAY + 5;
	sts_table_get(&t, "none.test");
	sts_text_write(&t, 10 * DAY, &text);
	sts_text_read(buf_cstr(&text), 10 * DAY + 5, domain_of, &again, &again);
	assert_int_equal(again.nwith, 1);
	const struct sts_domain *d = sts_table_get(&again, "a.test");
	assert_int_equal(d->policy->nmx, 2);
	assert_string_equal(d->id, "20260101");
	assert_int_equal(d->fetched_ms, 10 * DAY);
	assert_int_equal(d->ends_ms, 11 * DAY);
	sts_text_read(buf_cstr(&text), 11 * DAY, domain_of, &later, &later);
	assert_int_equal(later.nwith, 0);
	sts_table_fini(&t);
	sts_table_fini(&again);
	sts_table_fini(&later);
	buf_fini(&text);
}

static void blocks_that_are_none_are_passed_over(void **state)
{
	static const char *const texts[] = {
		"",
		"\n\n",
		"domain\n\n",
		"domain a.test 1 5 99\nmode: enforce\n\n",
		"domain a/b 1 5 99\nversion: STSv1\nmode: none\nmax_age: 9\n\n",
		"domain a.test 1 5 9999999999999999\nversion: STSv1\nmode: none\nmax_age: 9\n\n",
		"domain a.test 1 5 99\nversion: STSv1\nmode: none\nmax_age: 9\n",
	};
	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct sts_table t;
		sts_table_init(&t);
		sts_text_read(texts[i], 10, domain_of, &t, &t);
		assert_int_equal(t.nwith, 0);
		sts_table_fini(&t);
	}
}

static void domains_without_a_policy_cost_none(void **state)
{
	struct sts_table t;
	char name[40];
	(void)state;
	sts_table_init(&t);
	know(&t, "a.test", 1);
	for (int i = 0; i < STS_WITHOUT_MAX + 100; i++) {
		snprintf(name, sizeof name, "d%d.test", i);
		sts_table_get(&t, name);
		sts_table_trim(&t);
	}
	assert_int_equal(t.nwithout, STS_WITHOUT_MAX);
	assert_int_equal(t.nwith, 1);
	sts_table_fini(&t);
}

static void policies_are_bounded_by_number_and_bytes(void **state)
{
	struct sts_table t;
	char name[40];
	(void)state;
	sts_table_init(&t);
	for (int i = 0; i < STS_POLICIES_MAX + 10; i++) {
		snprintf(name, sizeof name, "d%d.test", i);
		know(&t, name, 1);
		sts_table_trim(&t);
	}
	assert_int_equal(t.nwith, STS_POLICIES_MAX);
	struct sts_domain *d;
	HASH_FIND_STR(t.all, "d0.test", d);
	assert_null(d);
	for (int i = 0; i < STS_POLICIES_MAX; i++) {
		snprintf(name, sizeof name, "d%d.test", i + 10);
		know(&t, name, STS_MX_MAX);
		sts_table_trim(&t);
	}
	assert_true(t.bytes <= STS_POLICY_BYTES_MAX);
	assert_true(t.nwith > 1000);
	sts_table_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policies_outlive_the_relay_until_they_end),
		cmocka_unit_test(blocks_that_are_none_are_passed_over),
		cmocka_unit_test(domains_without_a_policy_cost_none),
		cmocka_unit_test(policies_are_bounded_by_number_and_bytes),
	};
	return RUN(tests);
}
