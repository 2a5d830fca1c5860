/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/unit.h"

#include "qmgr/reading_order.h"

static struct envelope *list_of(int recipients, int domains)
{
	struct envelope *e = envelope_new();
	for (int i = 0; i < recipients; i++) {
		char to[64];
		snprintf(to, sizeof to, "r%d@d%d.test", i, i % domains);
		envelope_add(e, to);
	}
	return e;
}

static void domains_come_in_the_order_of_their_first_recipients(void **state)
{
	(void)state;
	static const uint32_t by_domain[] = {0, 3, 6, 1, 4, 2, 5};
	struct envelope *e = list_of(7, 3);
	uint32_t *order = reading_order(e, UINT32_MAX);
	assert_memory_equal(order, by_domain, sizeof by_domain);
	free(order);
	envelope_free(&e);
}

static void what_fits_into_one_transaction_comes_where_its_first_recipient_stands(void **state)
{
	(void)state;
	/* d0: 0 3 6 9, d1: 1 4 7 10 11, d2: 2 5 8 */
	static const uint32_t pieces[] = {0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11};
	struct envelope *e = list_of(10, 3);
	envelope_add(e, "r@d1.test");
	envelope_add(e, "r@d1.test");
	uint32_t *order = reading_order(e, 2);
	assert_memory_equal(order, pieces, sizeof pieces);
	free(order);
	envelope_free(&e);
}

static void every_recipient_comes_once_and_each_domain_in_one_piece(void **state)
{
	(void)state;
	enum { RECIPIENTS = 10007, DOMAINS = 311 };
	static bool seen[RECIPIENTS];
	struct envelope *e = list_of(RECIPIENTS, DOMAINS);
	uint32_t *order = reading_order(e, UINT32_MAX);
	int pieces = 1;
	for (int i = 0; i < RECIPIENTS; i++) {
		assert_in_range(order[i], 0, RECIPIENTS - 1);
		assert_false(seen[order[i]]);
		seen[order[i]] = true;
		pieces += i > 0 && order[i] % DOMAINS != order[i - 1] % DOMAINS;
	}
	assert_int_equal(pieces, DOMAINS);
	free(order);
	envelope_free(&e);
}

static void addresses_without_a_domain_belong_together(void **state)
{
	(void)state;
	struct envelope *e = envelope_new();
	envelope_add(e, "postmaster");
	envelope_add(e, "a@d.test");
	envelope_add(e, "root");
	static const uint32_t together[] = {0, 2, 1};
	uint32_t *order = reading_order(e, UINT32_MAX);
	assert_memory_equal(order, together, sizeof together);
	free(order);
	envelope_free(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(domains_come_in_the_order_of_their_first_recipients),
		cmocka_unit_test(
			what_fits_into_one_transaction_comes_where_its_first_recipient_stands),
		cmocka_unit_test(every_recipient_comes_once_and_each_domain_in_one_piece),
		cmocka_unit_test(addresses_without_a_domain_belong_together),
	};
	return RUN(tests);
}
