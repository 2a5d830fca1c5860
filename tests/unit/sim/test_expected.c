/* SPDX-License-Identifier: ISC */
/* What the scenarios in tests/sim are to show of the scheduler; and that without the setting which
 * each of them is about, it would not. */
#include "tests/unit/base/sanitized.h"
#include "tests/unit/sim/unit.h"

enum { ALONE, ABOVE_1000 = 4 }; /* classes of tally->by_recipients */

/* A sanitizer need not see ten thousand transactions of each kind. */
static void not_where_it_is_slow(void)
{
	if (SANITIZED)
		skip();
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
	assert_in_range(longest_ms(t, ALONE), 900, 1300);
	assert_in_range(longest_ms(t, ABOVE_1000), 90000, 110000); /* 91 look-ups of 100 */
	ran_of->conf->queue.max_message_concurrency = 100;
	/* Without its share messages only take turns, each for as many names as there are. */
	assert_in_range(longest_ms(again(), ALONE), 1800, 3600);
}

/* At most so long on the average, of all that went to this site. */
static void waits_at_most(struct tally *t, const char *key, int mean_ms)
{
	struct tally_site *s;
	HASH_FIND_STR(t->sites, key, s);
	assert_non_null(s);
	if (numbers_mean(&s->waits) > mean_ms)
		print_error("%s: %.0f ms\n", key, numbers_mean(&s->waits));
	assert_true(numbers_mean(&s->waits) <= mean_ms);
}

static void all_arrives(const struct tally *t, double deferred_percent)
{
	assert_int_equal(t->sent, t->recipients);
	if (tally_deferred_percent(t) > deferred_percent)
		print_error("%.2f %% deferred\n", tally_deferred_percent(t));
	assert_true(tally_deferred_percent(t) <= deferred_percent);
}

static void little_mail_is_not_put_off_by_a_host_that_refuses_now_and_then(void **state)
{
	(void)state;
	struct tally *t = run_named("low-volume");
	all_arrives(t, 1);
	assert_true(t->useless[CAUSE_REFUSED] > 50);
	waits_at_most(t, "smtp mx.dest.test", 500);
}

static void a_blink_costs_hardly_more_than_itself(void **state)
{
	(void)state;
	struct tally *t = run_named("flapping");
	all_arrives(t, 0.5);
	assert_int_equal(t->deferred, t->in_doubt); /* what was under way when it went */
	waits_at_most(t, "smtp mx.dest.test", 3000);
	ran_of->conf->transport[0].site_patience = 0;
	assert_true(again()->deferred > 200);
}

static void a_cold_host_is_asked_again_at_once(void **state)
{
	(void)state;
	struct tally *t = run_named("cold-limiter");
	all_arrives(t, 0);
	waits_at_most(t, "smtp mx.cold.test", 1000);
	waits_at_most(t, "smtp mx.closed.test", 1000);
}

static void one_connection_serves_all(void **state)
{
	(void)state;
	struct tally *t = run_named("one-connection");
	all_arrives(t, 0);
	waits_at_most(t, "smtp mx.dest.test", 2000);
	assert_true(t->useless[CAUSE_TOO_MANY] <= 8);
}

static void a_limit_that_moves_is_followed(void **state)
{
	(void)state;
	not_where_it_is_slow();
	struct tally *t = run_named("moving-limit");
	all_arrives(t, 0);
	assert_true(t->useless[CAUSE_TOO_MANY] <= 30);
	assert_int_equal(site(t, "smtp mx.dest.test")->busy_most, 10);
	assert_true(tally_bound_part(site(t, "smtp mx.dest.test"), CONSTRAINT_HOST_PAUSE) > 0.9);
}

static void a_host_that_works_on_each_message_gets_connections_for_them(void **state)
{
	(void)state;
	struct tally *t = run_named("slow-filter");
	all_arrives(t, 0);
	waits_at_most(t, "smtp mx.three.test", 1300);
	waits_at_most(t, "smtp mx.eight.test", 2000);
}

static void a_host_far_away_gets_deep_pipelines(void **state)
{
	(void)state;
	struct tally *t = run_named("far-away");
	all_arrives(t, 0);
	assert_true(t->ended_ms <= 1300);
	assert_true(t->connections <= 20);
	transport()->pipeline_depth = 1;
	assert_true(again()->ended_ms > 5 * 1300);
}

static void domains_with_names_of_their_own_share_what_leads_to_the_same_hosts(void **state)
{
	(void)state;
	struct tally *t = run_named("shared-hosts");
	all_arrives(t, 0);
	assert_int_equal(HASH_COUNT(t->sites), 30);
	waits_at_most(t, "smtp d01.tenants.test.10.provider", 1000);
	assert_true(t->connections < 100);
}

static void a_receiver_with_300_names_gets_what_it_takes(void **state)
{
	(void)state;
	struct tally *t = run_named("provider");
	all_arrives(t, 0);
	assert_int_equal(HASH_COUNT(t->sites), 300);
	assert_in_range(t->paced, 1, 6000 / 20);
	assert_in_range(t->ended_ms, 297000, 297000 * 110 / 100);
	assert_true(t->connections < 100);
}

static void buckets_are_found_whatever_they_count_by(void **state)
{
	(void)state;
	not_where_it_is_slow();
	struct tally *t = run_named("buckets");
	assert_int_equal(t->sent, 13200);
	assert_true(t->paced < 13200 / 10);
	assert_true(t->useless[CAUSE_TOO_MANY] < 100);
}

static void silent_hosts_keep_nothing_from_a_healthy_one(void **state)
{
	(void)state;
	struct tally *t = run_named("silent-hosts");
	assert_int_equal(t->sent, 120);
	waits_at_most(t, "smtp mx.healthy.test", 200);
	assert_int_equal(site(t, "smtp mx.healthy.test")->deferred, 0);
}

static void five_connections_are_kept_busy_and_hardly_more_are_asked_for(void **state)
{
	(void)state;
	not_where_it_is_slow();
	struct tally *t = run_named("five-connections");
	all_arrives(t, 0);
	assert_true(tally_busy_mean(site(t, "smtp mx.dest.test")) > 4.95);
	assert_true(t->useless[CAUSE_TOO_MANY] <= 5 + 60);
	assert_true(t->ended_ms < 3620000);
}

#define TEST(name) cmocka_unit_test_teardown(name, forget_run)

static bool is_stolen(const struct tally_flow *f)
{
	return strcmp(f->name, "stolen") == 0;
}

static int64_t tenants_longest_ms(struct tally *t)
{
	int64_t most = 0;
	for (struct tally_flow *f = t->flows; f; f = f->hh.next)
		if (!is_stolen(f) && numbers_quantile(&f->waits, 1) > most)
			most = numbers_quantile(&f->waits, 1);
	return most;
}

static void no_tenant_waits_for_a_spam_run(void **state)
{
	(void)state;
	not_where_it_is_slow();
	struct tally *t = run_named("tenants");
	all_arrives(t, 0);
	assert_int_equal(HASH_COUNT(t->flows), 201);
	assert_true(tenants_longest_ms(t) < 3000);
	assert_true(numbers_mean(&tally_flow(t, "stolen")->waits) > 30000);
	/* All of it one flow, all wait for it. */
	for (int i = 0; i < ran_of->narrival; i++)
		spread_fini(&ran_of->arrival[i].flow_spread);
	t = again();
	assert_true(numbers_quantile(&t->by_recipients[ALONE], 0.5) > 20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_single_mail_leaves_within_five_slots),
		TEST(who_is_slipped_past_pays_no_more_than_agreed),
		TEST(rates_are_kept_and_made_use_of),
		TEST(a_huge_message_is_read_as_there_is_room),
		TEST(many_names_do_not_hold_up_one),
		TEST(little_mail_is_not_put_off_by_a_host_that_refuses_now_and_then),
		TEST(a_blink_costs_hardly_more_than_itself),
		TEST(a_cold_host_is_asked_again_at_once),
		TEST(one_connection_serves_all),
		TEST(a_limit_that_moves_is_followed),
		TEST(a_host_that_works_on_each_message_gets_connections_for_them),
		TEST(a_host_far_away_gets_deep_pipelines),
		TEST(domains_with_names_of_their_own_share_what_leads_to_the_same_hosts),
		TEST(a_receiver_with_300_names_gets_what_it_takes),
		TEST(buckets_are_found_whatever_they_count_by),
		TEST(silent_hosts_keep_nothing_from_a_healthy_one),
		TEST(five_connections_are_kept_busy_and_hardly_more_are_asked_for),
		TEST(no_tenant_waits_for_a_spam_run),
	};
	return RUN(tests);
}
