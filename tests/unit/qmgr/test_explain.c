/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/world.h"

#include "qmgr/dest/suspend.h"
#include "qmgr/explain.h"
#include "qmgr/message.h"
#include "qmgr/nexthop.h"

static struct explain_question *x;
static struct loop *asker;

static void receive(void *owner, struct note *note)
{
	(void)owner;
	assert_int_equal(note->type, QMGR_EXPLAIN);
	assert_ptr_equal(note, x);
}

static int let_go(void **state)
{
	explain_question_free(&x);
	return finish(state);
}

static void ask(uint64_t id, const char *site)
{
	explain_question_free(&x);
	if (!asker)
		asker = loop_new("asker", receive, NULL, NULL);
	x = explain_question_new(id, site, asker, NULL);
	post(&x->note);
	settle();
	mailbox_drain(&asker->mailbox);
}

/* The only row about this message. */
static const struct explain_row *why(uint64_t id)
{
	ask(id, NULL);
	assert_int_equal(x->nrow, 1);
	return &x->row[0];
}

static const struct explain_row *why_site(const char *site)
{
	ask(0, site);
	assert_int_equal(x->nrow, 1);
	return &x->row[0];
}

static void binds(uint64_t id, enum constraint c)
{
	const struct explain_row *row = why(id);
	if (row->constraint != c)
		print_error("%s, not %s\n", constraint_name(row->constraint), constraint_name(c));
	assert_int_equal(row->constraint, c);
}

static void send_to_two(uint64_t id, const char *a, const char *b)
{
	struct envelope *e = mail(id, "sender@here.test", a);
	envelope_add(e, b);
	arrive(e);
}

static void what_qmgr_does_not_have_is_not_explained(void **state)
{
	(void)state;
	begin("");
	ask(1, NULL);
	assert_int_equal(x->nrow, 0);
	ask(0, "a.test");
	assert_int_equal(x->nrow, 0);
}

static void recipients_wait_for_dns_each_next_hop_by_itself(void **state)
{
	(void)state;
	begin("");
	send_to_two(1, "x@a.test", "x@b.test");
	ask(1, NULL);
	assert_int_equal(x->nrow, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(x->row[i].constraint, CONSTRAINT_DNS);
		assert_int_equal(x->row[i].recipients, 1);
	}
	assert_string_not_equal(x->row[0].site, x->row[1].site);
	answer("b.test", one_host);
	ask(1, NULL);
	assert_int_equal(x->nrow, 2);
	assert_int_equal(x->row[0].constraint, CONSTRAINT_CONNECTING);
	assert_int_equal(x->row[1].constraint, CONSTRAINT_DNS);
}

static void a_recipient_waits_for_its_turn_to_be_looked_up(void **state)
{
	(void)state;
	begin("queue { router_concurrency_limit = 1 }");
	send_mail(1, "x@a.test");
	send_mail(2, "x@b.test");
	binds(1, CONSTRAINT_DNS);
	binds(2, CONSTRAINT_LOOKUP);
	assert_int_equal(x->row[0].limit, 1);
	answer("a.test", one_host);
	binds(2, CONSTRAINT_DNS);
}

static void an_entry_waits_for_the_connection_that_is_opened_for_it(void **state)
{
	(void)state;
	begin("");
	send_many(1);
	binds(1, CONSTRAINT_CONNECTING);
	assert_string_equal(x->row[0].site, "mx.test");
	assert_string_equal(x->row[0].transport, "smtp");
	assert_int_equal(x->row[0].connecting, 1);
	ready(open_at(0), 1);
	binds(1, CONSTRAINT_SENDING);
	assert_int_equal(x->row[0].sending, 1);
	assert_int_equal(x->row[0].recipients, 0);
}

/* Mail of another flow counts as far as its turns come first. */
static void how_much_comes_first_is_told_over_all_flows(void **state)
{
	(void)state;
	begin("transport smtp { destination_concurrency_limit = 1 "
	      "initial_destination_concurrency = 1 }\nflow \"two.test\" { weight = 2 }");
	for (uint64_t id = 1; id <= 100; id++)
		arrive(mail(id, "x@two.test", "x@a.test"));
	answer("a.test", one_host);
	ready(open_at(0), 1);
	for (uint64_t id = 201; id <= 203; id++)
		arrive(mail(id, "x@one.test", "x@a.test"));
	for (uint64_t id = 201; id <= 203; id++) {
		binds(id, CONSTRAINT_WINDOW);
		int64_t ahead = x->row[0].ahead, first = 0;
		for (; given_at(0)->id != id; first++)
			done(given_at(0), VERDICT_SENT);
		assert_true(ahead <= first &&
			    ahead >= first - 2); /* what is under way is not counted */
	}
}

static void what_does_not_fit_the_window_waits_for_it_behind_the_others(void **state)
{
	(void)state;
	begin("");
	send_many(10);
	for (int i = 0; i < 5; i++)
		ready(open_at(i), 1);
	binds(10, CONSTRAINT_WINDOW);
	assert_int_equal(x->row[0].limit, 5);
	assert_int_equal(x->row[0].busy, 5);
	assert_int_equal(x->row[0].ahead, 4);
	assert_int_equal(x->row[0].first, 6);
	assert_int_equal(x->row[0].first_slots, 1);
	binds(6, CONSTRAINT_WINDOW);
	assert_int_equal(x->row[0].ahead, 0);
	assert_int_equal(x->row[0].first, 0);
	assert_int_equal(why_site("mx.test")->constraint, CONSTRAINT_WINDOW);
	assert_int_equal(x->row[0].recipients, 5);
	assert_int_equal(x->row[0].first, 6);
	done(given_at(0), VERDICT_SENT);
	binds(6, CONSTRAINT_SENDING);
}

static void a_rate_says_when_the_next_delivery_is_due(void **state)
{
	(void)state;
	begin("transport smtp { destination_rate = \"1/s\" }");
	send_many(3);
	ready(open_at(0), 10);
	done(given_at(0), VERDICT_SENT);
	binds(2, CONSTRAINT_RATE);
	assert_true(x->row[0].until_ms == clock_wall_ms() + 1000);
	pass_time(400);
	binds(2, CONSTRAINT_RATE);
	assert_true(x->row[0].until_ms == clock_wall_ms() + 600);
	pass_time(600);
	binds(2, CONSTRAINT_SENDING);
}

static void a_delay_holds_for_the_delivery_and_the_pause_after_it(void **state)
{
	(void)state;
	begin("transport smtp { destination_rate_delay = 2s }");
	send_many(2);
	ready(open_at(0), 10);
	binds(2, CONSTRAINT_RATE_DELAY);
	assert_true(x->row[0].until_ms == 0);
	done(delivery_of_mail(1), VERDICT_SENT);
	binds(2, CONSTRAINT_RATE_DELAY);
	assert_true(x->row[0].until_ms == clock_wall_ms() + 2000);
}

static void a_transport_with_all_its_connections_opens_no_other(void **state)
{
	(void)state;
	begin("transport smtp { connection_limit = 1 }");
	send_many(1);
	ready(open_at(0), 1);
	send_mail(2, "x@b.test");
	answer("b.test", "10 mx.b.test 192.0.2.2");
	binds(2, CONSTRAINT_CONNECTION_LIMIT);
	assert_int_equal(x->row[0].limit, 1);
	assert_string_equal(x->row[0].site, "mx.b.test");
}

static void a_host_with_all_its_connections_takes_no_other(void **state)
{
	(void)state;
	begin("transport smtp { host_connection_limit = 2 }");
	send_many(3);
	ready(open_at(0), 1);
	ready(open_at(1), 1);
	binds(3, CONSTRAINT_HOST_CONNECTION_LIMIT);
	assert_int_equal(x->row[0].limit, 2);
}

static void a_host_with_all_that_it_was_seen_to_take_is_asked_for_more_later(void **state)
{
	(void)state;
	begin("");
	send_many(4);
	ready(open_at(0), 1);
	lose(open_at(1), "too many");
	lose(open_at(1), "too many");
	lose(open_at(1), "too many");
	binds(4, CONSTRAINT_HOST_PAUSE);
	assert_true(x->row[0].until_ms == clock_wall_ms() + 1000);
	assert_string_equal(x->row[0].last->text, "too many");
}

static void with_its_host_out_a_message_may_still_go_by_what_is_being_opened(void **state)
{
	(void)state;
	begin("");
	send_many(3);
	lose(open_at(0), "no route");
	send_mail(4, "x@a.test");
	assert_int_equal(opened.n, 2);
	binds(4, CONSTRAINT_OUT);
	assert_true(x->row[0].until_ms == clock_wall_ms() + 1000);
	assert_string_equal(x->row[0].last->text, "no route");
	ready(open_at(0), 1);
	assert_int_equal(given.n, 1);
}

static void a_dead_site_says_when_it_is_probed_and_how_much_waits_for_it(void **state)
{
	(void)state;
	begin("transport smtp { initial_destination_concurrency = 1 }");
	send_many(1);
	lose(open_at(0), "no route");
	binds(1, CONSTRAINT_DEAD);
	assert_true(x->row[0].until_ms == clock_wall_ms() + 1000);
	for (int i = 0; i < 10; i++) {
		pass_time(1000);
		if (opened.n > 0)
			lose(open_at(0), "no route");
	}
	envelope_free(&(struct envelope *){is_parked(1)});
	assert_int_equal(why_site("mx.test")->constraint, CONSTRAINT_DEAD);
	assert_in_range(x->row[0].until_ms, clock_wall_ms() + 3000,
			clock_wall_ms() + 7000); /* 1, 3, about 7, about 15 */
	assert_string_equal(x->row[0].last->text, "no route");
	assert_int_equal(x->row[0].window, 0);
	assert_int_equal(x->row[0].parked, 1);
}

static void a_site_whose_hosts_are_all_suspended_says_by_which_name(void **state)
{
	(void)state;
	begin("");
	suspend_begin(&q->db, "192.0.2.1", SUSPEND_ANY, 0);
	send_mail(1, "x@a.test");
	answer("a.test", "10 mx1.test 192.0.2.1, 20 mx2.test 192.0.2.2");
	binds(1, CONSTRAINT_CONNECTING);
	assert_null(x->row[0].resume);
	suspend_begin(&q->db, "mx2.test", SUSPEND_HOST, 0);
	qmgr_thread_settle(q);
	while (opened.n > 0)
		close_orderly(open_at(0));
	binds(1, CONSTRAINT_OUT);
	assert_string_equal(x->row[0].resume, "mx2.test");
}

static void a_message_has_its_share_of_connections(void **state)
{
	(void)state;
	begin("transport smtp { connection_limit = 4 destination_recipient_limit = 1 }"
	      "queue { max_message_concurrency = 1 scale_max_concurrency = 0 }");
	struct envelope *e = mail(1, "sender@here.test", "x@a.test");
	for (int i = 0; i < 3; i++)
		envelope_add(e, "x@a.test");
	arrive(e);
	answer("a.test", one_host);
	assert_int_equal(opened.n, 1);
	ready(open_at(0), 1);
	binds(1, CONSTRAINT_SHARE);
	assert_int_equal(x->row[0].recipients, 3);
	assert_int_equal(x->row[0].sending, 1);
}

static void recipients_without_room_in_memory_are_unread(void **state)
{
	(void)state;
	begin("queue { message_recipient_limit = 2 message_recipient_minimum = 1 "
	      "message_active_limit = 1 }"
	      "transport smtp { recipient_limit = 1 extra_recipient_limit = 0 }");
	struct envelope *e = mail(1, "sender@here.test", "x@a.test");
	for (int i = 0; i < 9; i++)
		envelope_add(e, "x@a.test");
	arrive(e);
	ask(1, NULL);
	assert_int_equal(x->nrow, 2);
	assert_int_equal(x->row[0].constraint, CONSTRAINT_DNS);
	assert_int_equal(x->row[1].constraint, CONSTRAINT_MEMORY);
	assert_int_equal(x->row[0].recipients + x->row[1].recipients, 10);
}

static void what_slipped_past_is_counted(void **state)
{
	(void)state;
	begin("transport smtp { initial_destination_concurrency = 1 "
	      "destination_concurrency_limit = 1 destination_recipient_limit = 1 "
	      "delivery_slot_cost = 2 delivery_slot_discount = 0 delivery_slot_loan = 0 "
	      "minimum_delivery_slots = 1 }");
	struct envelope *e = mail(1, "sender@here.test", "x@a.test");
	for (int i = 0; i < 19; i++)
		envelope_add(e, "x@a.test");
	arrive(e);
	answer("a.test", one_host);
	ready(open_at(0), 1);
	send_mail(2, "x@a.test");
	send_mail(3, "x@a.test");
	binds(3, CONSTRAINT_WINDOW);
	assert_int_equal(x->row[0].first, 1);
	assert_int_equal(x->row[0].ahead, 20);
	for (int i = 0; delivery_of_mail(1) && i < 3; i++) {
		done(given_at(0), VERDICT_SENT);
		if (given_at(0)->id != 1)
			break;
	}
	assert_true(given_at(0)->id == 2);
	binds(3, CONSTRAINT_WINDOW);
	binds(1, CONSTRAINT_WINDOW);
	assert_int_equal(x->row[0].ahead, 0);
}

static void a_report_that_is_being_stored_is_waited_for(void **state)
{
	(void)state;
	begin("");
	send_many(1);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_FAILED);
	binds(1, CONSTRAINT_REPORTING);
	stored(next_told(SPOOL_STORE), true);
	ask(1, NULL);
	assert_int_equal(x->nrow, 0);
}

static void the_operators_wish_waits_for_what_is_under_way(void **state)
{
	(void)state;
	begin("");
	send_many(1);
	ready(open_at(0), 1);
	cancel(1);
	ask(1, NULL);
	assert_int_equal(x->nrow, 2);
	assert_int_equal(x->row[0].constraint, CONSTRAINT_CANCELLED);
	assert_int_equal(x->row[1].constraint, CONSTRAINT_SENDING);
}

static void a_site_is_found_by_name_host_and_domain(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	answer("a.test", "10 mx1.test 192.0.2.1, 20 mx2.test 192.0.2.2");
	static const char *const name[] = {"mx1.test;mx2.test", "smtp mx1.test;mx2.test",
					   "MX2.test", "a.test"};
	for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
		why_site(name[i]);
		assert_string_equal(x->row[0].site, "mx1.test;mx2.test");
	}
	ready(open_at(0), 1);
	assert_int_equal(why_site("a.test")->constraint, CONSTRAINT_SENDING);
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(why_site("a.test")->constraint, CONSTRAINT_IDLE);
}

static void a_name_that_is_a_sites_own_is_not_taken_for_a_host(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	answer("a.test", "10 mx1.test 192.0.2.1, 20 mx2.test 192.0.2.2");
	assert_string_equal(why_site("mx1.test")->site, "mx1.test;mx2.test");
	send_mail(2, "x@b.test");
	answer("b.test", "10 mx1.test 192.0.2.1");
	assert_string_equal(why_site("mx1.test")->site, "mx1.test");
}

static void a_domain_with_relays_of_its_own_finds_their_site(void **state)
{
	(void)state;
	begin("route \"*\" { relay = { \"[r1.test]:25\", \"[r2.test]:25\" } }"
	      "route \"b.test\" { relay = { \"[r1.test]:25\" } }");
	send_mail(1, "x@a.test");
	answer("r1.test", one_host);
	answer("r2.test", one_host);
	send_mail(2, "x@b.test");
	answer("r1.test", one_host);
	assert_string_equal(why_site("a.test")->site, "[r1.test]:25,[r2.test]:25");
	assert_string_equal(why_site("b.test")->site, "[r1.test]:25");
}

static void mail_that_waits_by_the_route_of_its_sender_is_found_by_its_domain(void **state)
{
	(void)state;
	begin("route \"*\" { relay = { \"[r1.test]:25\" } }"
	      "route \"a.test\" { from = { \"sender@here.test\" } relay = { \"[r2.test]:25\" } }");
	send_mail(1, "x@a.test");
	answer("r2.test", one_host);
	assert_string_equal(why_site("a.test")->site, "[r2.test]:25");
	ask(0, "b.test");
	assert_int_equal(x->nrow, 0);
}

#define TEST(f) cmocka_unit_test_teardown(f, let_go)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_qmgr_does_not_have_is_not_explained),
		TEST(recipients_wait_for_dns_each_next_hop_by_itself),
		TEST(a_recipient_waits_for_its_turn_to_be_looked_up),
		TEST(an_entry_waits_for_the_connection_that_is_opened_for_it),
		TEST(how_much_comes_first_is_told_over_all_flows),
		TEST(what_does_not_fit_the_window_waits_for_it_behind_the_others),
		TEST(a_rate_says_when_the_next_delivery_is_due),
		TEST(a_delay_holds_for_the_delivery_and_the_pause_after_it),
		TEST(a_transport_with_all_its_connections_opens_no_other),
		TEST(a_host_with_all_its_connections_takes_no_other),
		TEST(a_host_with_all_that_it_was_seen_to_take_is_asked_for_more_later),
		TEST(with_its_host_out_a_message_may_still_go_by_what_is_being_opened),
		TEST(a_dead_site_says_when_it_is_probed_and_how_much_waits_for_it),
		TEST(a_site_whose_hosts_are_all_suspended_says_by_which_name),
		TEST(a_message_has_its_share_of_connections),
		TEST(recipients_without_room_in_memory_are_unread),
		TEST(what_slipped_past_is_counted),
		TEST(a_report_that_is_being_stored_is_waited_for),
		TEST(the_operators_wish_waits_for_what_is_under_way),
		TEST(a_site_is_found_by_name_host_and_domain),
		TEST(a_name_that_is_a_sites_own_is_not_taken_for_a_host),
		TEST(a_domain_with_relays_of_its_own_finds_their_site),
		TEST(mail_that_waits_by_the_route_of_its_sender_is_found_by_its_domain),
	};
	int failed = RUN(tests);
	loop_free(&asker);
	return failed;
}
