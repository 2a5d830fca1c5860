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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recipients_are_kept_in_order_and_counted_while_open),
	};
	return RUN(tests);
}
