/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/envelope.h"
#include "base/mem.h"

#include <stdio.h>
#include <time.h>

static void recipients_are_kept_in_order_and_counted_while_open(void **state)
{
	(void)state;
	struct envelope *e = envelope_new();
	e->sender = mem_strdup("a@example.com");
	for (int i = 0; i < 100; i++) {
		char address[32];
		snprintf(address, sizeof address, "u%d@example.net", i);
		struct recipient *r = envelope_add(e, address);
		r->orcpt = mem_strdup("rfc822;x");
		r->last = verdict_new(VERDICT_DEFERRED, 451, NULL, NULL, "later");
	}
	assert_int_equal(e->nrcpt, 100);
	assert_string_equal(e->rcpt[99].address, "u99@example.net");
	assert_int_equal(envelope_open(e), 100);
	e->rcpt[5].done = true;
	assert_int_equal(envelope_open(e), 99);
	envelope_free(&e);
	assert_null(e);
	envelope_free(&e);
}

static void the_age_of_mail_that_was_to_be_sent_later_counts_from_then(void **state)
{
	(void)state;
	struct envelope e = {.arrived_ms = 5000};
	assert_int_equal(envelope_began_ms(&e), 5000);
	assert_false(envelope_is_scheduled(&e));
	e.not_before_ms = 4000;
	assert_int_equal(envelope_began_ms(&e), 5000);
	e.not_before_ms = e.due_ms = 9000;
	assert_int_equal(envelope_began_ms(&e), 9000);
	assert_true(envelope_is_scheduled(&e));
	e.by = ENVELOPE_BY_RETURN;
	e.by_ms = 10000;
	envelope_let_go(&e, 6000);
	assert_int_equal(envelope_began_ms(&e), 6000);
	assert_int_equal(e.by_ms, 7000);
}

static void one_piece_of_memory_says_the_same(void **state)
{
	(void)state;
	struct envelope *e = envelope_new();
	e->sender = mem_strdup("");
	e->envid = mem_strdup("QQ314159");
	e->size = 7;
	envelope_came_from(e, "anna", NULL);
	envelope_add(e, "a@example.net")->orcpt = mem_strdup("rfc822;x");
	envelope_add(e, "bb@example.net")->notify = NOTIFY_NEVER;
	envelope_add(e, "c@example.net");
	e = envelope_pack(e);
	assert_string_equal(e->sender, "");
	assert_string_equal(e->envid, "QQ314159");
	assert_string_equal(e->user, "anna");
	assert_null(e->client);
	assert_null(e->flow);
	assert_int_equal(e->size, 7);
	assert_int_equal(e->nrcpt, 3);
	assert_string_equal(e->rcpt[0].address, "a@example.net");
	assert_string_equal(e->rcpt[0].orcpt, "rfc822;x");
	assert_string_equal(e->rcpt[1].address, "bb@example.net");
	assert_int_equal(e->rcpt[1].notify, NOTIFY_NEVER);
	assert_null(e->rcpt[1].orcpt);
	assert_string_equal(e->rcpt[2].address, "c@example.net");
	e->rcpt[2].last = verdict_new(VERDICT_DEFERRED, 451, NULL, NULL, "later");
	envelope_remember(e);
	assert_int_equal(e->nhistory, 1);
	envelope_free(&e);
	assert_null(e);
}

static void put_recipients(struct envelope *e, const char *prefix, int n)
{
	char address[40];
	for (int i = 0; i < n; i++) {
		snprintf(address, sizeof address, "%s%d@example.net", prefix, i);
		if (!envelope_find(e, address))
			envelope_add(e, address);
	}
}

static void a_recipient_is_found_among_few_and_among_many(void **state)
{
	(void)state;
	for (int n = 1; n < 5000; n = 3 * n + 1) {
		struct envelope *e = envelope_new();
		assert_null(envelope_find(e, "u0@example.net"));
		put_recipients(e, "u", n);
		put_recipients(e, "u", n);
		assert_int_equal(e->nrcpt, n);
		put_recipients(e, "U", n); /* a local part is what its host takes it for */
		assert_int_equal(e->nrcpt, 2 * n);
		for (int i = 0; i < 2 * n; i++)
			assert_ptr_equal(envelope_find(e, e->rcpt[i].address), &e->rcpt[i]);
		assert_null(envelope_find(e, "u@example.net"));
		envelope_free(&e);
	}
}

static void who_is_removed_is_found_no_more_and_the_others_where_they_are_then(void **state)
{
	(void)state;
	enum { MANY = 300 };
	for (int n = 3; n <= MANY; n *= 10) {
		struct envelope *e = envelope_new();
		bool gone[MANY] = {true};
		char last[40];
		put_recipients(e, "u", n);
		snprintf(last, sizeof last, "u%d@example.net", n - 1);
		envelope_remove(e, gone);
		assert_int_equal(e->nrcpt, n - 1);
		assert_null(envelope_find(e, "u0@example.net"));
		assert_ptr_equal(envelope_find(e, "u1@example.net"), e->rcpt);
		assert_ptr_equal(envelope_find(e, last), &e->rcpt[n - 2]);
		put_recipients(e, "u", n);
		assert_int_equal(e->nrcpt, n);
		assert_string_equal(e->rcpt[n - 1].address, "u0@example.net");
		e = envelope_pack(e);
		assert_string_equal(e->rcpt[0].address, "u1@example.net");
		envelope_free(&e);
	}
}

static double processor_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The best of three: what else the machine does makes each slower, and none faster. */
static double put_quickly(int times, int n)
{
	double best = 1e9;
	for (int i = 0; i < 3; i++) {
		double before = processor_seconds();
		for (int k = 0; k < times; k++) {
			struct envelope *e = envelope_new();
			put_recipients(e, "recipient", n);
			envelope_free(&e);
		}
		double took = processor_seconds() - before;
		best = took < best ? took : best;
	}
	return best;
}

/* Each looked for among all others takes a hundred times as long; memory that no cache has, some times. */
static void each_of_many_recipients_costs_what_one_of_few_does(void **state)
{
	(void)state;
	double few = put_quickly(100, 1000), many = put_quickly(1, 100000);
	if (many > 20 * few)
		fail_msg("%g s for one of 100,000, %g s for a hundred of 1,000", many, few);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_recipient_is_found_among_few_and_among_many),
		cmocka_unit_test(
			who_is_removed_is_found_no_more_and_the_others_where_they_are_then),
		cmocka_unit_test(each_of_many_recipients_costs_what_one_of_few_does),
		cmocka_unit_test(one_piece_of_memory_says_the_same),
		cmocka_unit_test(recipients_are_kept_in_order_and_counted_while_open),
		cmocka_unit_test(the_age_of_mail_that_was_to_be_sent_later_counts_from_then),
	};
	return RUN(tests);
}
