/* SPDX-License-Identifier: ISC */
/* What the scenarios in tests/sim are to show of the scheduler; and that without the setting which
 * each of them is about, it would not. */
#include "tests/unit/sim/unit.h"

enum { ALONE, ABOVE_1000 = 4 }; /* classes of tally->by_recipients */

/* One thread is all there is: the slow sanitizer for threads need not see ten thousand
 * transactions of each kind. */
static void not_where_it_is_slow(void)
{
#ifdef __SANITIZE_THREAD__
	skip();
#endif
}

static struct tally *again(void)
{
	sim_free(&ran);
	ran = run(ran_of);
	return ran->run[0].tally;
}

static struct tally *run_named(const char *name)
{
	ran_of = scenario_named(name);
	return again();
}

static struct conf_transport *transport(void)
{
	return &ran_of->conf->transport[0];
}

static int64_t longest_ms(struct tally *t, int class)
{
	return numbers_quantile(&t->by_recipients[class], 1);
}

static void a_single_mail_leaves_within_five_slots(void **state)
{
	(void)state;
	not_where_it_is_slow();
	struct tally *t = run_named("slots");
	assert_int_equal(t->sent, 10030);
	assert_int_equal(t->by_recipients[ALONE].n, 30);
	assert_in_range(longest_ms(t, ALONE), 100, 620); /* a look-up, and up to six slots */
	transport()->delivery_slot_cost = 0;
	t = again();
	assert_true(numbers_quantile(&t->by_recipients[ALONE], 0.5) > 400000);
}

static void who_is_slipped_past_pays_no_more_than_agreed(void **state)
{
	(void)state;
	not_where_it_is_slow();
	struct tally *t = run_named("slots-flood");
	assert_int_equal(t->sent, 16000);
	/* Alone 1000 s; not above k/(k-1) of that, with a cost of 5. */
	assert_in_range(longest_ms(t, ABOVE_1000), 1190000, 1250000);
	transport()->delivery_slot_cost = 2;
	t = again();
	assert_in_range(longest_ms(t, ABOVE_1000), 1490000, 1600000);
}

static const struct tally_site *site(const struct tally *t, const char *key)
{
	struct tally_site *s;
	HASH_FIND_STR(t->sites, key, s);
	assert_non_null(s);
	return s;
}

static void has_rate(const struct tally *t, const char *key, double least, double most, int gap_ms)
{
	const struct tally_site *s = site(t, key);
	if (tally_rate(s) < least || tally_rate(s) > most)
		print_error("%s: %.3f a second\n", key, tally_rate(s));
	assert_true(tally_rate(s) >= least && tally_rate(s) <= most);
	assert_true(s->gap_least_us >= (int64_t)gap_ms * 1000);
}

static void rates_are_kept_and_made_use_of(void **state)
{
	(void)state;
	struct tally *t = run_named("rates");
	assert_int_equal(t->sent, 320);
	has_rate(t, "tens mx.tens.test", 9.9, 10.01, 100);
	has_rate(t, "fraction mx.fraction.test", 0.399, 0.4001, 2500);
	has_rate(t, "minute mx.minute.test", 0.0166, 0.01667, 60000);
	has_rate(t, "pause mx.pause.test", 0.41, 0.4168, 2400);
	assert_true(site(t, "tens mx.tens.test")->busy_most >= 4);
	assert_int_equal(site(t, "pause mx.pause.test")->busy_most, 1);
}

static void a_huge_message_is_read_as_there_is_room(void **state)
{
	(void)state;
	struct tally *t = run_named("recipient-limits");
	assert_int_equal(t->sent, 100300);
	assert_in_range(t->rcpt_most, 1000, 10 * 50 + 1000 + 200);
	assert_true(longest_ms(t, ALONE) < 2000);
	assert_in_range(t->transactions, 2000, 3500); /* batches are whole transactions */
	int64_t limited_ms = longest_ms(t, ABOVE_1000);
	not_where_it_is_slow();
	ran_of->conf->queue.message_recipient_limit = 200000;
	t = again();
	assert_true(t->rcpt_most >= 100000);
	assert_in_range(limited_ms, 1, longest_ms(t, ABOVE_1000) * 13 / 10);
}

static void many_names_do_not_hold_up_one(void **state)
{
	(void)state;
	not_where_it_is_slow();
	struct tally *t = run_named("slow-names");
	assert_int_equal(t->sent, 10010);
	assert_in_range(longest_ms(t, ALONE), 2000, 2500);
	assert_in_range(longest_ms(t, ABOVE_1000), 200000, 240000); /* 91 look-ups of 100 */
	ran_of->conf->queue.max_message_concurrency = 100;
	assert_true(longest_ms(again(), ALONE) > 60000);
}

#define TEST(name) cmocka_unit_test_teardown(name, forget_run)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_single_mail_leaves_within_five_slots),
		TEST(who_is_slipped_past_pays_no_more_than_agreed),
		TEST(rates_are_kept_and_made_use_of),
		TEST(a_huge_message_is_read_as_there_is_room),
		TEST(many_names_do_not_hold_up_one),
	};
	return RUN(tests);
}
