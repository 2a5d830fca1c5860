/* SPDX-License-Identifier: ISC */
#include "base/hint.h"
#include "dns/cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct answer *make(enum answer_status status, int64_t ttl_ms, int nrecord)
{
	struct answer *a = answer_failed("");
	a->status = status;
	a->ttl_ms = ttl_ms;
	a->nrecord = nrecord;
	a->record = calloc((size_t)nrecord + 1, sizeof *a->record);
	return a;
}

static void put(struct cache *c, const char *name, enum answer_status status, int64_t ttl_ms,
		int nrecord, int64_t now_ms)
{
	struct answer *a = make(status, ttl_ms, nrecord);
	cache_put(c, name, ANSWER_A, a, now_ms);
	answer_unref(a);
}

static bool has(struct cache *c, const char *name, enum answer_type type, int64_t now_ms)
{
	struct answer *a = cache_get(c, name, type, now_ms);
	answer_unref(a);
	return a != NULL;
}

static int set_up(void **state)
{
	struct cache *c = cache_new(3);
	cache_bounds(c, 10000, 500);
	*state = c;
	return 0;
}

static int tear_down(void **state)
{
	struct cache *c = *state;
	cache_free(&c);
	return 0;
}

static void an_answer_is_kept_until_its_ttl_is_over(void **state)
{
	put(*state, "a.test", ANSWER_RECORDS, 1000, 1, 100);
	assert_true(has(*state, "a.test", ANSWER_A, 1099));
	assert_false(has(*state, "a.test", ANSWER_A, 1100));
	assert_int_equal(cache_count(*state), 0);
}

static void name_and_type_are_the_key(void **state)
{
	put(*state, "a.test", ANSWER_RECORDS, 1000, 1, 0);
	assert_false(has(*state, "a.test", ANSWER_AAAA, 0));
	assert_false(has(*state, "a.tes", ANSWER_A, 0));
	assert_false(has(*state, "b.test", ANSWER_A, 0));
}

static void a_long_ttl_is_cut(void **state)
{
	put(*state, "a.test", ANSWER_RECORDS, INT64_MAX, 1, 0);
	assert_true(has(*state, "a.test", ANSWER_A, 9999));
	assert_false(has(*state, "a.test", ANSWER_A, 10000));
}

static void absence_is_kept_for_a_shorter_time(void **state)
{
	put(*state, "a.test", ANSWER_NXDOMAIN, 5000, 0, 0);
	put(*state, "b.test", ANSWER_NODATA, 100, 0, 0);
	assert_true(has(*state, "a.test", ANSWER_A, 499));
	assert_false(has(*state, "a.test", ANSWER_A, 500));
	assert_false(has(*state, "b.test", ANSWER_A, 100));
}

static void answers_without_lifetime_are_not_kept(void **state)
{
	put(*state, "b.test", ANSWER_RECORDS, 0, 1, 0);
	assert_int_equal(cache_count(*state), 0);
}

static void a_failure_is_kept_for_a_second(void **state)
{
	put(*state, "a.test", ANSWER_FAILED, 0, 0, 0);
	assert_true(has(*state, "a.test", ANSWER_A, CACHE_FAILURE_MS - 1));
	assert_false(has(*state, "a.test", ANSWER_A, CACHE_FAILURE_MS));
}

static void a_failure_takes_the_place_of_what_was_known(void **state)
{
	put(*state, "a.test", ANSWER_RECORDS, 1000, 1, 0);
	put(*state, "a.test", ANSWER_RECORDS, 0, 1, 0);
	assert_false(has(*state, "a.test", ANSWER_A, 0));
}

static void the_entry_used_longest_ago_goes_first(void **state)
{
	put(*state, "a.test", ANSWER_RECORDS, 1000, 1, 0);
	put(*state, "b.test", ANSWER_RECORDS, 1000, 1, 0);
	put(*state, "c.test", ANSWER_RECORDS, 1000, 1, 0);
	assert_true(has(*state, "a.test", ANSWER_A, 0));
	put(*state, "d.test", ANSWER_RECORDS, 1000, 1, 0);
	assert_int_equal(cache_count(*state), 3);
	assert_false(has(*state, "b.test", ANSWER_A, 0));
	assert_true(has(*state, "a.test", ANSWER_A, 0));
}

static void put_text(struct cache *c, const char *name, size_t len)
{
	struct answer *a = make(ANSWER_RECORDS, 1000, 1);
	a->record[0].txt = calloc(len + 1, 1);
	memset(a->record[0].txt, 'x', len);
	cache_put(c, name, ANSWER_TXT, a, 0);
	answer_unref(a);
}

static void bytes_are_bounded_as_well_as_entries(void **state)
{
	put(*state, "a.test", ANSWER_RECORDS, 1000, 7, 0);
	put(*state, "b.test", ANSWER_RECORDS, 1000, 7, 0);
	put_text(*state, "c.test", 1000);
	assert_int_equal(cache_count(*state), 2);
	assert_true(has(*state, "b.test", ANSWER_A, 0));
	put_text(*state, "d.test", 60000);
	assert_int_equal(cache_count(*state), 0);
	put_text(*state, "e.test", 2000);
	put_text(*state, "f.test", 2000);
	assert_int_equal(cache_count(*state), 1);
}

static void an_answer_outlives_its_entry(void **state)
{
	put(*state, "a.test", ANSWER_RECORDS, 1000, 1, 0);
	struct answer *a = cache_get(*state, "a.test", ANSWER_A, 0);
	cache_clear(*state);
	assert_int_equal(a->status, ANSWER_RECORDS);
	answer_unref(a);
}

static void put_mx(struct cache *c, const char *name, enum answer_status status, const char *target,
		   int64_t now_ms)
{
	struct answer *a = make(status, 1000, target ? 1 : 0);
	if (target)
		a->record[0].target = strdup(target);
	cache_put(c, name, ANSWER_MX, a, now_ms);
	answer_unref(a);
}

static void of_domains_without_a_mail_host_there_is_a_hint_while_they_are_known(void **state)
{
	put_mx(*state, "null.test", ANSWER_RECORDS, "", 0);
	put_mx(*state, "gone.test", ANSWER_NXDOMAIN, NULL, 0);
	assert_true(hint_maybe(HINT_DEAD_DOMAIN, "null.test"));
	assert_true(hint_maybe(HINT_DEAD_DOMAIN, "gone.test"));
	put_mx(*state, "good.test", ANSWER_RECORDS, "mx.test", 0);
	assert_false(hint_maybe(HINT_DEAD_DOMAIN, "good.test"));
	put_mx(*state, "plain.test", ANSWER_NODATA, NULL,
	       0); /* and null.test goes: there are three */
	assert_false(hint_maybe(HINT_DEAD_DOMAIN, "plain.test"));
	assert_false(hint_maybe(HINT_DEAD_DOMAIN, "null.test"));
	put_mx(*state, "gone.test", ANSWER_RECORDS, "mx.test", 0);
	assert_false(hint_maybe(HINT_DEAD_DOMAIN, "gone.test"));
	put_mx(*state, "gone.test", ANSWER_NXDOMAIN, NULL, 0);
	assert_false(has(*state, "gone.test", ANSWER_MX, 500));
	assert_false(hint_maybe(HINT_DEAD_DOMAIN, "gone.test"));
	put(*state, "host.test", ANSWER_NXDOMAIN, 1000, 0, 0); /* of addresses */
	assert_false(hint_maybe(HINT_DEAD_DOMAIN, "host.test"));
	put_mx(*state, "gone.test", ANSWER_NXDOMAIN, NULL, 0);
	cache_clear(*state);
	assert_false(hint_maybe(HINT_DEAD_DOMAIN, "gone.test"));
}

static void a_failure_is_kept_where_that_is_asked_for(void **state)
{
	struct answer *a = answer_failed("timed out");
	cache_put_failure(*state, "silent.test", ANSWER_AAAA, a, 1000);
	answer_unref(a);
	assert_true(has(*state, "silent.test", ANSWER_AAAA, 1499));
	assert_false(has(*state, "silent.test", ANSWER_AAAA, 1500)); /* as absence */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_answer_is_kept_until_its_ttl_is_over),
		TEST(name_and_type_are_the_key),
		TEST(a_long_ttl_is_cut),
		TEST(absence_is_kept_for_a_shorter_time),
		TEST(answers_without_lifetime_are_not_kept),
		TEST(a_failure_is_kept_for_a_second),
		TEST(a_failure_takes_the_place_of_what_was_known),
		TEST(a_failure_is_kept_where_that_is_asked_for),
		TEST(the_entry_used_longest_ago_goes_first),
		TEST(bytes_are_bounded_as_well_as_entries),
		TEST(an_answer_outlives_its_entry),
		TEST(of_domains_without_a_mail_host_there_is_a_hint_while_they_are_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
