/* SPDX-License-Identifier: ISC */
#include "tests/unit/sim/unit.h"

#include "sim/stage.h"
#include "sim/watch.h"
#include "spool/spool.h"

#include "base/mem.h"
#include "qmgr/dest/site.h"
#include "qmgr/sched/selection.h"
#include "qmgr/qmgr_thread.h"

#define EARLY "simulation { binding = \"early\" retries = false }\n"

static void a_message_takes_as_long_as_its_parts(void **state)
{
	(void)state;
	struct tally *t = run_text(ONE_HOST("recipient = 100ms bandwidth = 1k")
					   ARRIVE("recipients = {\"3\"} sizes = {\"2k\"}"));
	/* dns 20, connect 10, greeting 10, transaction 1000, recipients 300, content 2000 */
	assert_int_equal(numbers_quantile(&t->by_recipients[1], 1), 3340);
	assert_int_equal(t->sent, 3);
	assert_int_equal(t->transactions, 1);
	assert_int_equal(t->connections, 1);
}

static void a_host_serves_no_more_than_its_limit(void **state)
{
	(void)state;
	struct tally *t =
		run_text("transport \"smtp\" { destination_recipient_limit = 1 }\n" ONE_HOST(
			"connection_limit = 2") ARRIVE("recipients = {\"40\"}"));
	assert_int_equal(t->sent, 40);
	assert_int_equal(t->deferred, 0);
	assert_true(t->useless[CAUSE_TOO_MANY] > 0);
	assert_int_equal(tally_largest(t)->busy_most, 2);
	assert_in_range(t->ended_ms, 20000, 22000);
}

static void early_bound_the_same_mail_is_deferred(void **state)
{
	(void)state;
	struct tally *t =
		run_text(EARLY "transport \"smtp\" { destination_recipient_limit = 1 }\n" ONE_HOST(
			"connection_limit = 2") ARRIVE("recipients = {\"40\"}"));
	assert_true(t->deferred > 5);
	assert_int_equal(t->deferrals[CAUSE_TOO_MANY], t->deferred);
	assert_int_equal(t->sent + t->deferred, 40);
}

static void who_waits_in_the_backlog_is_served_in_turn(void **state)
{
	(void)state;
	struct tally *t =
		run_text(EARLY "transport \"smtp\" { destination_recipient_limit = 1 }\n" ONE_HOST(
			"connection_limit = 1 backlog = 4") ARRIVE("recipients = {\"5\"}"));
	assert_int_equal(t->sent, 5);
	assert_int_equal(t->deferred, 0);
	assert_in_range(t->ended_ms, 5000, 5500); /* one after the other */
}

static void a_full_backlog_lets_connections_time_out(void **state)
{
	(void)state;
	static const char text[] =
		EARLY "transport \"smtp\" { destination_recipient_limit = 1 connect_timeout = 7s "
		      "greeting_timeout = 9s initial_destination_concurrency = 3 }\n" ONE_HOST_OF(
			      "20s", "connection_limit = 1 retransmit = 1s beyond = \"%s\"")
			      ARRIVE("recipients = {\"3\"}");
	char with[sizeof text + 10];
	snprintf(with, sizeof with, text, "drop");
	struct tally *t = run_text(with);
	assert_int_equal(t->deferrals[CAUSE_CONNECT_TIMEOUT], 2);
	forget_run(NULL);
	snprintf(with, sizeof with, text, "mute");
	t = run_text(with);
	assert_int_equal(t->deferrals[CAUSE_GREETING_TIMEOUT], 2);
}

static void a_connection_that_knocks_again_finds_a_place(void **state)
{
	(void)state;
	struct tally *t = run_text(
		EARLY "transport \"smtp\" { destination_recipient_limit = 1 }\n" ONE_HOST_OF(
			"5s", "connection_limit = 1 beyond = \"drop\" retransmit = 3s")
			ARRIVE("recipients = {\"2\"}"));
	assert_int_equal(t->sent, 2); /* the second knocks at 3 and at 9 seconds */
	assert_in_range(t->ended_ms, 14000, 14200);
}

static void an_outage_defers_and_ends(void **state)
{
	(void)state;
	struct tally *t =
		run_text("queue { minimal_backoff_time = 30s backoff_jitter = \"0\" }\n" ONE_HOST(
			"outages = {\"0s..1m\"}") ARRIVE(""));
	assert_int_equal(t->sent, 1);
	assert_int_equal(t->deferred, 1);
	assert_int_equal(t->deferrals[CAUSE_REFUSED], 2); /* at once, after 30 s */
	assert_in_range(t->ended_ms, 60000, 100000);
}

static void a_dead_host_of_two_is_left_for_the_other(void **state)
{
	(void)state;
	struct tally *t = run_text(
		"host \"a\" { outages = {\"0s..1d\"} outage = \"silent\" }\n"
		"host \"b\" {}\n"
		"site \"s\" { domains = {\"dest.test\"} mx = {\"10 a\", \"20 b\"} }\n" ARRIVE(
			"messages = 20 rate = \"1/s\""));
	assert_int_equal(t->sent, 20);
	assert_int_equal(t->deferred, 0);
}

static void names_that_are_not_found_fail_or_wait(void **state)
{
	(void)state;
	struct tally *t =
		run_text("queue { maximal_queue_lifetime = 1h }\n"
			 "site \"no\" { domains = {\"no.test\"} failure = \"5.1.2\" }\n"
			 "site \"later\" { domains = {\"later.test\"} failure = \"4.4.3\" }\n"
			 "arrival \"a\" { messages = 20 rate = \"1/s\" "
			 "domains = {\"no.test\", \"later.test\"} }\n");
	assert_int_equal(t->sent, 0);
	assert_int_equal(t->failed, 20); /* the others when they are too old */
	assert_int_equal(t->reports, 20);
	assert_true(t->deferrals[CAUSE_NAMES] > t->deferred && t->deferred > 3);
}

static void a_broken_connection_puts_in_doubt_or_costs_nothing(void **state)
{
	(void)state;
	struct tally *t =
		run_text(ONE_HOST("broken = \"0.2\"") ARRIVE("messages = 200 rate = \"5/s\""));
	assert_int_equal(t->sent, 200);
	assert_in_range(t->in_doubt, 5, 60);
	assert_true(t->in_doubt <= t->deferrals[CAUSE_LOST]);
}

static void a_pipeline_saves_the_round_trips(void **state)
{
	(void)state;
	static const char text[] =
		"transport \"smtp\" { destination_concurrency_limit = 1 "
		"initial_destination_concurrency = 1 connection_max_age = 0s }\n"
		"host \"mx\" { noise = \"0\" round_trip = 100ms transaction = 1ms depth = %d }\n"
		"site \"s\" { domains = {\"dest.test\"} mx = {\"10 mx\"} }\n" ARRIVE(
			"messages = 500 distribution = \"bursts\" burst = 500");
	char with[sizeof text];
	snprintf(with, sizeof with, text, 1);
	int64_t alone = run_text(with)->ended_ms;
	forget_run(NULL);
	snprintf(with, sizeof with, text, 16);
	int64_t together = run_text(with)->ended_ms;
	assert_in_range(alone, 50000, 51500);
	assert_in_range(together, 500, 2000);
}

static void a_limit_may_move(void **state)
{
	(void)state;
	struct tally *t =
		run_text("transport \"smtp\" { destination_recipient_limit = 1 }\n" ONE_HOST(
			"limits = {\"0s 1\", \"10s 4\"}") ARRIVE("recipients = {\"200\"}"));
	assert_int_equal(t->sent, 200);
	assert_int_equal(t->deferred, 0);
	assert_int_equal(tally_largest(t)->busy_most, 4);
	assert_in_range(t->ended_ms, 55000, 120000);
}

static void an_outage_may_come_again_and_answer_421(void **state)
{
	(void)state;
	struct tally *t =
		run_text(ONE_HOST("outages = {\"0s..2s\"} outage_every = 10s "
				  "outage = \"421\"") ARRIVE("messages = 30 rate = \"1/s\""));
	assert_int_equal(t->sent, 30);
	assert_int_equal(t->deferred, t->in_doubt);
	assert_true(t->useless[CAUSE_TOO_MANY] >= 3);
}

static void connections_are_lost_when_an_outage_begins(void **state)
{
	(void)state;
	struct tally *t = run_text("transport \"smtp\" { connection_idle_timeout = 1m }\n" ONE_HOST(
		"outages = {\"5s..6s\"}") ARRIVE("messages = 2 rate = \"1/10s\""));
	assert_int_equal(t->sent, 2);
	assert_int_equal(t->connected, 2); /* the first was idle */
	assert_int_equal(t->in_doubt, 0);
}

static void who_greylists_takes_what_is_old_enough(void **state)
{
	(void)state;
	struct tally *t =
		run_text(ONE_HOST("greylisting = 4m") ARRIVE("messages = 5 rate = \"1/s\""));
	assert_int_equal(t->deferred, 5);
	assert_int_equal(t->sent, 5);
	assert_true(t->sent_at.value[0] > 240000);
}

static void a_bucket_may_be_of_each_address_of_ours(void **state)
{
	static const char text[] =
		"transport \"smtp\" { sources = {\"a\", \"b\"} }\n"
		"source \"a\" { address = {\"192.0.2.1\"} } source \"b\" { address = "
		"{\"192.0.2.2\"} }\n"
		"simulation { duration = 1m }\n" ONE_HOST(
			"bucket = \"1/h\" bucket_room = 10 bucket_by = \"%s\"")
			ARRIVE("messages = 100 rate = \"10/s\" flows = {\"f1..50\"}");
	static const struct {
		const char *by;
		int64_t sent;
	} rows[] = {{"all", 10}, {"source", 20}};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char whole[1000];
		snprintf(whole, sizeof whole, text, rows[i].by);
		assert_int_equal(run_text(whole)->sent, rows[i].sent);
		forget_run(NULL);
	}
}

static void domains_may_call_the_same_hosts_by_names_of_their_own(void **state)
{
	(void)state;
	struct tally *t =
		run_text("host \"a\" {} host \"b\" {}\n"
			 "site \"s\" { domains = {\".s.test\"} mx = {\"10 a\", \"10 b\"} own_names "
			 "= true }\n"
			 "arrival \"a\" { domains = {\"x.s.test\", \"y.s.test\"} messages = 40 "
			 "rate = \"4/s\" }\n");
	assert_int_equal(t->sent, 40);
	assert_int_equal(HASH_COUNT(t->sites), 2);
	assert_non_null(tally_site_of(t, "x.s.test"));
	assert_string_equal(tally_site_of(t, "x.s.test")->key, "smtp x.s.test.10.s");
	assert_true(t->connections <= 8); /* what one has idle the other may use */
}

static void what_a_site_waited_for_is_told(void **state)
{
	(void)state;
	struct tally *t = run_text("transport \"smtp\" { destination_rate = \"2/s\" }\n" ONE_HOST(
		"") ARRIVE("messages = 20 distribution = \"bursts\" burst = 20"));
	struct tally_site *s = tally_site_of(t, "dest.test");
	assert_int_equal(s->waits.n, 20);
	assert_true(tally_bound_part(s, CONSTRAINT_RATE) > 0.8);
	assert_int_equal(s->deferred, 0);
}

/* The witness must speak up: a scheduler that tells it nonsense. */
static struct world world;
static struct stage *stage;
static struct arrivals arrivals;
static struct tally *told;

static int begin_stage(void **state)
{
	(void)state;
	struct buf errors = {0};
	ran_of = scenario_of("simulation { patience = 1h }\n" ONE_HOST("")
				     ARRIVE("recipients = {\"2\"}"));
	assert_true(arrivals_make(&arrivals, ran_of, 1, &errors));
	told = tally_new();
	world_init(&world, ran_of, &arrivals, 1, false, told);
	stage = &world.stage[0];
	world_rest(&world, 5); /* the message is with qmgr, its domain asked for */
	assert_int_equal(told->nfault, 0);
	return 0;
}

static int end_stage(void **state)
{
	world_fini(&world);
	tally_free(&told);
	arrivals_fini(&arrivals);
	return forget_run(state);
}

static void speaks_of(const char *fault)
{
	assert_true(told->nfault > 0);
	if (!strstr(buf_cstr(&told->faults), fault))
		print_error("%s", buf_cstr(&told->faults));
	assert_non_null(strstr(buf_cstr(&told->faults), fault));
}

static void deliver(uint64_t id, uint32_t recipient)
{
	struct spool_delivered *d = mem_zalloc(sizeof *d + sizeof d->of[0]);
	d->note.type = SPOOL_DELIVERED;
	d->id = id;
	d->n = 1;
	d->of[0].recipient = recipient;
	d->of[0].verdict = verdict_new(VERDICT_SENT, 250, NULL, NULL, "ok");
	model_spool_note(stage, &d->note);
}

static void release_finished(uint64_t id)
{
	struct spool_release *r = mem_zalloc(sizeof *r);
	r->note.type = SPOOL_RELEASE;
	r->id = id;
	model_spool_note(stage, &r->note);
}

static void a_second_verdict_is_a_fault(void **state)
{
	(void)state;
	deliver(1, 0);
	assert_int_equal(told->nfault, 0);
	deliver(1, 0);
	speaks_of("a second final verdict");
}

static void a_message_released_with_recipients_left_is_a_fault(void **state)
{
	(void)state;
	deliver(1, 0);
	release_finished(1);
	speaks_of("recipient 1 of message 1 is lost");
}

/* Back to the queue, untried: why, or NULL. */
static void put_off_untried(uint64_t id, const char *why)
{
	struct spool_release *r = mem_zalloc(sizeof *r);
	r->note.type = SPOOL_RELEASE;
	r->id = id;
	r->envelope = envelope_new();
	for (int i = 0; i < 2; i++) {
		struct recipient *to = envelope_add(r->envelope, "r@dest.test");
		if (why)
			to->last = verdict_new(VERDICT_DEFERRED, 0, "4.4.1", "mx.test", why);
	}
	model_spool_note(stage, &r->note);
}

static void what_was_put_off_untried_needs_a_verdict(void **state)
{
	(void)state;
	put_off_untried(1, "connection refused");
	assert_int_equal(told->nfault, 0);
	assert_int_equal(told->deferred, 2);
	assert_int_equal(told->deferrals[CAUSE_REFUSED], 2);
}

static void what_was_put_off_without_a_verdict_is_a_fault(void **state)
{
	(void)state;
	put_off_untried(1, NULL);
	speaks_of("recipient 0 of message 1 was put off without a verdict");
}

static void a_message_that_is_not_worked_on_is_a_fault(void **state)
{
	(void)state;
	deliver(7, 0);
	speaks_of("message 7, which is not being worked on");
}

static void windows_and_connections_beyond_their_limits_are_faults(void **state)
{
	(void)state;
	world_rest(&world, 50);
	struct site *s = stage->q->db.sites;
	assert_non_null(s);
	s->window.concurrency = 21;
	world_run(&world);
	speaks_of("the window of smtp mx.test are 21");
}

static void a_delivery_before_its_time_is_a_fault(void **state)
{
	(void)state;
	struct conf_transport t = {.destination_rate = {1, 60000}, .destination_rate_delay = 5000};
	watch_begun(stage, "smtp mx.test", &t);
	watch_ended(stage, "smtp mx.test");
	assert_int_equal(told->nfault, 0);
	world_rest(&world, 4000);
	watch_begun(stage, "smtp mx.test", &t);
	speaks_of("after another began, not 60000000");
	speaks_of("after another ended, not 5000000");
}

static void nobody(void *context, struct peer *p)
{
	(void)context;
	selection_set(p->queue, QUEUE_QUIET);
}

static void a_scheduler_that_forgets_its_mail_is_a_fault(void **state)
{
	(void)state;
	qmgr_bind_early(stage->q, nobody);
	world_run(&world);
	speaks_of("1 entries at smtp mx.test wait for nothing");
	speaks_of("the scheduler has stopped: 1 messages wait for nothing");
	speaks_of("recipient 0 of message 1 had no verdict for");
}

#define TEST(name) cmocka_unit_test_teardown(name, forget_run)
#define WITNESS(name) cmocka_unit_test_setup_teardown(name, begin_stage, end_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_message_takes_as_long_as_its_parts),
		TEST(a_host_serves_no_more_than_its_limit),
		TEST(early_bound_the_same_mail_is_deferred),
		TEST(who_waits_in_the_backlog_is_served_in_turn),
		TEST(a_full_backlog_lets_connections_time_out),
		TEST(a_connection_that_knocks_again_finds_a_place),
		TEST(an_outage_defers_and_ends),
		TEST(a_dead_host_of_two_is_left_for_the_other),
		TEST(names_that_are_not_found_fail_or_wait),
		TEST(a_broken_connection_puts_in_doubt_or_costs_nothing),
		TEST(a_pipeline_saves_the_round_trips),
		TEST(a_limit_may_move),
		TEST(an_outage_may_come_again_and_answer_421),
		TEST(connections_are_lost_when_an_outage_begins),
		TEST(who_greylists_takes_what_is_old_enough),
		TEST(a_bucket_may_be_of_each_address_of_ours),
		TEST(domains_may_call_the_same_hosts_by_names_of_their_own),
		TEST(what_a_site_waited_for_is_told),
		WITNESS(a_second_verdict_is_a_fault),
		WITNESS(a_message_released_with_recipients_left_is_a_fault),
		WITNESS(what_was_put_off_untried_needs_a_verdict),
		WITNESS(what_was_put_off_without_a_verdict_is_a_fault),
		WITNESS(a_message_that_is_not_worked_on_is_a_fault),
		WITNESS(windows_and_connections_beyond_their_limits_are_faults),
		WITNESS(a_delivery_before_its_time_is_a_fault),
		WITNESS(a_scheduler_that_forgets_its_mail_is_a_fault),
	};
	return RUN(tests);
}
