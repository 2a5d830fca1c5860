/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/unit.h"

#include "qmgr/dest/site_domains.h"

#include <stdio.h>

static void add_some(struct site_domains **d, int first, int behind)
{
	char name[32];
	for (int i = first; i < behind; i++) {
		snprintf(name, sizeof name, "d%d.test", i);
		site_domains_add(d, name);
	}
}

static void each_domain_counts_once(void **state)
{
	(void)state;
	struct site_domains *d = NULL;
	site_domains_free(&d);
	for (int round = 0; round < 3; round++)
		add_some(&d, 0, 50);
	assert_int_equal(d->n, 50);
	assert_int_equal(d->nname, 50);
	assert_string_equal(d->name[0], "d0.test");
	site_domains_free(&d);
	assert_null(d);
}

static void of_many_some_are_named_and_more_are_told_apart_up_to_a_bound(void **state)
{
	(void)state;
	struct site_domains *d = NULL;
	add_some(&d, 0, 1000);
	add_some(&d, 500, 1200);
	assert_int_equal(d->n, 1200);
	assert_int_equal(d->nname, SITE_DOMAINS_NAMED);
	add_some(&d, 0, 3 * SITE_DOMAINS_MOST);
	assert_int_equal(d->n, SITE_DOMAINS_MOST);
	assert_true(d->room <= 2 * SITE_DOMAINS_MOST);
	site_domains_free(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_domain_counts_once),
		cmocka_unit_test(of_many_some_are_named_and_more_are_told_apart_up_to_a_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
