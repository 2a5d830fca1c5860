/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/envelope.h"
#include "base/mem.h"

#include <stdio.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_piece_of_memory_says_the_same),
		cmocka_unit_test(recipients_are_kept_in_order_and_counted_while_open),
		cmocka_unit_test(the_age_of_mail_that_was_to_be_sent_later_counts_from_then),
	};
	return RUN(tests);
}
