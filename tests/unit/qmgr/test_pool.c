/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/world.h"

#include "qmgr/message.h"
#include "qmgr/sched/job.h"

/* settle() asserts the two bounds after each step. */
#define SMALL                                                                                      \
	"connection_limit = 1 destination_recipient_limit = 1 recipient_limit = 30 "               \
	"extra_recipient_limit = 8 refill_limit = 5 refill_delay = 1h "
#define LIMITS                                                                                     \
	"queue { message_recipient_limit = 20 message_recipient_minimum = 3 "                      \
	"message_active_limit = 10 }\n"
#define RELAY "route \"*\" { relay = { \"[relay.test]\" } }\n"

static void send_many_to(uint64_t id, const char *domain, int n)
{
	struct envelope *e = mail(id, "", NULL);
	for (int i = 0; i < n; i++) {
		char to[64];
		snprintf(to, sizeof to, "x%d@%s", i, domain);
		envelope_add(e, to);
	}
	arrive(e);
	if (questions.n > 0)
		answer("relay.test", "0 relay.test 192.0.2.1");
}

static struct work *work_of(uint64_t id)
{
	struct message *m;
	HASH_FIND(hh, q->messages, &id, sizeof id, m);
	assert_non_null(m);
	return &m->work;
}

static struct job *job_of(uint64_t id)
{
	return list_entry(list_first(&work_of(id)->jobs), struct job, in_message);
}

static void hear(void)
{
	while (told.n > 0)
		forget(take(&told, 0));
}

static void the_first_batch_is_as_large_as_the_limit_of_all(void **state)
{
	(void)state;
	begin("transport smtp { " SMALL "}\n" LIMITS RELAY);
	send_many_to(1, "a.test", 12);
	assert_int_equal(work_of(1)->rcpt_count, 12);
	assert_int_equal(work_of(1)->unread, 0);
	send_many_to(2, "a.test", 100);
	assert_int_equal(work_of(2)->rcpt_count, 8); /* makes 20 */
	send_many_to(3, "a.test", 100);
	assert_int_equal(work_of(3)->rcpt_count, 3); /* the minimum */
	assert_int_equal(work_of(3)->unread, 97);
}

static void slots_are_lent_along_the_list(void **state)
{
	(void)state;
	begin("transport smtp { " SMALL "}\n" LIMITS RELAY);
	send_many_to(1, "a.test", 12);
	send_many_to(2, "a.test", 100);
	send_many_to(3, "a.test", 100);
	assert_int_equal(job_of(1)->rcpt_limit, 12); /* no more than it has in memory */
	assert_int_equal(job_of(2)->rcpt_limit, 18); /* all that are left */
	assert_int_equal(job_of(3)->rcpt_limit, 0);
	assert_ptr_equal(job_of(1)->transport->next_unread, job_of(2));
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	hear();
	assert_int_equal(job_of(1)->rcpt_limit, 11);
	assert_int_equal(job_of(2)->rcpt_limit, 19);
}

static void a_message_is_read_to_its_end_in_batches(void **state)
{
	(void)state;
	begin("transport smtp { " SMALL "}\n" LIMITS RELAY);
	send_many_to(1, "a.test", 1000);
	/* The first batch, and after the first selection as much as there are slots. */
	assert_int_equal(work_of(1)->rcpt_count, 33);
	ready(open_at(0), 1);
	bool seen[1000] = {false};
	int most = 0;
	for (int i = 0; i < 1000; i++) {
		most = q->sched.rcpt_count > most ? (int)q->sched.rcpt_count : most;
		int number = atoi(given_at(0)->rcpt[0].address + 1);
		assert_false(seen[number]);
		seen[number] = true;
		done(given_at(0), VERDICT_SENT);
		if (i < 999)
			hear();
	}
	assert_in_range(most, 20, 33); /* message_recipient_minimum and all slots */
	is_delivered(1, 1, VERDICT_SENT);
	is_released(1);
	assert_int_equal(q->sched.rcpt_count, 0);
}

static void a_list_in_no_order_is_read_as_transactions_of_each_domain_in_turn(void **state)
{
	(void)state;
	enum { DOMAINS = 40, TOGETHER = 5, TURNS = 5, ALL = DOMAINS * TOGETHER * TURNS };
	begin("transport smtp { connection_limit = 1 destination_recipient_limit = 5 "
	      "recipient_limit = 30 refill_limit = 5 }\n" LIMITS RELAY);
	struct envelope *e = mail(1, "", NULL);
	for (int i = 0; i < ALL; i++) {
		char to[64];
		snprintf(to, sizeof to, "x@d%d.test", i % DOMAINS);
		envelope_add(e, to);
	}
	arrive(e);
	answer("relay.test", "0 relay.test 192.0.2.1");
	ready(open_at(0), 1);
	for (uint32_t n = 0; n < ALL;) {
		const struct delivery *d = given_at(0);
		for (uint32_t i = 0; i < d->nrcpt; i++, n++) {
			char to[64];
			snprintf(to, sizeof to, "x@d%u.test", n / TOGETHER % DOMAINS);
			assert_string_equal(d->rcpt[i].address, to);
		}
		done(given_at(0), VERDICT_SENT);
		if (n < ALL)
			hear();
	}
	is_delivered(1, 5, VERDICT_SENT);
	is_released(1);
}

static void a_hundred_thousand_recipients_are_never_in_memory_at_once(void **state)
{
	(void)state;
	begin("transport smtp { connection_limit = 1 connection_max_messages = 0 "
	      "recipient_limit = 500 extra_recipient_limit = 0 }\n"
	      "queue { message_recipient_limit = 500 message_active_limit = 5 }\n" RELAY);
	send_many_to(1, "a.test", 100000);
	ready(open_at(0), 1);
	uint32_t n = 0;
	while (n < 100000) {
		assert_true(q->sched.rcpt_count <= 510);
		n += given_at(0)->nrcpt;
		done(given_at(0), VERDICT_SENT);
		if (n < 100000)
			hear();
	}
	assert_null(q->messages);
}

static void further_recipients_are_read_when_there_is_room_for_refill_limit(void **state)
{
	(void)state;
	names_stay = true;
	begin("transport smtp { " SMALL "}\n" LIMITS RELAY);
	send_many_to(1, "a.test", 1000);
	ready(open_at(0), 1);
	int64_t unread = work_of(1)->unread;
	assert_int_equal(work_of(1)->rcpt_count, 33);
	for (int i = 0; i < 4; i++)
		done(given_at(0), VERDICT_SENT);
	assert_int_equal(work_of(1)->unread, unread);
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(work_of(1)->unread, unread - 5);
	assert_int_equal(work_of(1)->rcpt_count, 33);
	unread = work_of(1)->unread;
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(work_of(1)->unread, unread);
	pass_time(3600000); /* refill_delay */
	done(given_at(0), VERDICT_SENT);
	assert_true(work_of(1)->unread < unread);
}

static void a_message_that_slips_past_unread_gets_half_of_the_extra_pool(void **state)
{
	(void)state;
	begin("transport smtp { " SMALL "delivery_slot_cost = 2 minimum_delivery_slots = 0 "
	      "delivery_slot_discount = 100 }\n"
	      "queue { message_recipient_limit = 30 message_recipient_minimum = 3 "
	      "message_active_limit = 10 }\n" RELAY);
	send_many_to(1, "a.test", 1000);
	send_many_to(2, "a.test", 5);
	assert_int_equal(work_of(2)->unread, 2);
	assert_int_equal(job_of(2)->rcpt_limit, 0);
	ready(open_at(0), 1);
	while (given_at(0)->id == 1) {
		assert_int_equal(job_of(2)->rcpt_limit, 0);
		done(given_at(0), VERDICT_SENT);
	}
	assert_true(job_of(2)->stack.level == 1);
	assert_int_equal(work_of(2)->rcpt_limit - 3, 4);
	int slots = 0;
	while (given_at(0)->id == 2) {
		done(given_at(0), VERDICT_SENT);
		slots++;
	}
	assert_int_equal(slots, 5);
	assert_int_equal(job_of(1)->stack.level, 0);
}

/* Recipients of one transport may not fill the memory that another's slots stand for. */
static void sponsored_recipients_keep_to_the_bound_of_their_transport(void **state)
{
	(void)state;
	begin("transport small { like = smtp recipient_limit = 2 extra_recipient_limit = 0 "
	      "connection_limit = 1 destination_recipient_limit = 1 }\n"
	      "route \"small.test\" { transport = small relay = { \"[relay.test]\" } }\n" RELAY
	      "queue { message_recipient_limit = 4 message_recipient_minimum = 1 "
	      "message_active_limit = 2 }");
	struct envelope *e = mail(1, "", NULL);
	for (int i = 0; i < 300; i++) {
		char to[64];
		snprintf(to, sizeof to, "x%d@%s", i, i < 3 ? "a.test" : "small.test");
		envelope_add(e, to);
	}
	arrive(e);
	for (int turns = 0; q->messages && turns < 5000; turns++) {
		while (questions.n > 0)
			answer("relay.test", "0 relay.test 192.0.2.1");
		for (int i = 0; i < opened.n; i++)
			if (!open_at(i)->was_ready) {
				open_at(i)->was_ready = true;
				ready(open_at(i), 1);
			}
		if (given.n > 0)
			done(given_at(0), VERDICT_SENT);
		hear();
	}
	assert_null(q->messages);
}

static void unread_recipients_go_with_a_message_that_is_cancelled(void **state)
{
	(void)state;
	begin("transport smtp { " SMALL "}\n" LIMITS RELAY);
	send_many_to(1, "a.test", 1000);
	send_many_to(2, "a.test", 100);
	ready(open_at(0), 1);
	cancel(1);
	assert_int_equal(told.n, 0);
	put_back(given_at(0));
	is_released(1);
	assert_int_equal(given_at(0)->id, 2);
	assert_ptr_equal(job_of(2)->transport->next_unread, job_of(2));
	assert_int_equal(job_of(2)->rcpt_limit, 30);
}

static void a_site_that_is_out_parks_unread_recipients_too(void **state)
{
	(void)state;
	begin("transport smtp { " SMALL "site_patience = 0 }\n" LIMITS RELAY);
	send_many_to(1, "a.test", 1000);
	lose(open_at(0), "refused");
	struct envelope *e = is_parked(1);
	for (uint32_t i = 0; i < e->nrcpt; i++) {
		assert_int_equal(e->rcpt[i].tries, 0);
		assert_string_equal(e->rcpt[i].last->text, "refused");
	}
	envelope_free(&e);
	assert_int_equal(q->sched.rcpt_count, 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_batch_is_as_large_as_the_limit_of_all),
		TEST(slots_are_lent_along_the_list),
		TEST(a_message_is_read_to_its_end_in_batches),
		TEST(a_list_in_no_order_is_read_as_transactions_of_each_domain_in_turn),
		TEST(a_hundred_thousand_recipients_are_never_in_memory_at_once),
		TEST(further_recipients_are_read_when_there_is_room_for_refill_limit),
		TEST(a_message_that_slips_past_unread_gets_half_of_the_extra_pool),
		TEST(sponsored_recipients_keep_to_the_bound_of_their_transport),
		TEST(unread_recipients_go_with_a_message_that_is_cancelled),
		TEST(a_site_that_is_out_parks_unread_recipients_too),
	};
	return RUN(tests);
}
