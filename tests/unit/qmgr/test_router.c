/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/world.h"

#include "qmgr/message.h"
#include "qmgr/router.h"
#include "qmgr/sched/share.h"

static void send_to_domains(uint64_t id, int from, int n)
{
	struct envelope *e = mail(id, "", NULL);
	for (int i = from; i < from + n; i++) {
		char to[40];
		snprintf(to, sizeof to, "x@d%d.test", i);
		envelope_add(e, to);
	}
	arrive(e);
}

/* The oldest question has its answer: there is no such domain. */
static void answer_first(void)
{
	char name[100];
	snprintf(name, sizeof name, "%s", ((struct resolve *)questions.note[0])->name);
	no_answer(name, VERDICT_FAILED, "5.1.2");
}

static int asked_for(const char *name)
{
	int n = 0;
	for (int i = 0; i < questions.n; i++)
		n += strcmp(((struct resolve *)questions.note[i])->name, name) == 0;
	return n;
}

static void a_message_may_have_what_is_free_by_the_scale_factor(void **state)
{
	(void)state;
	struct conf *c =
		conf_of("queue { max_message_concurrency = 5 scale_max_concurrency = 10 }");
	assert_true(share_allows(&c->queue, 4, 1));
	assert_false(share_allows(&c->queue, 4, 0));
	assert_true(share_allows(&c->queue, 9, 1));
	assert_false(share_allows(&c->queue, 10, 1));
	assert_true(share_allows(&c->queue, 909, 91));
	assert_false(share_allows(&c->queue, 910, 90));
	conf_unref(c);
}

static void one_message_has_ten_of_eleven_look_ups(void **state)
{
	(void)state;
	begin("queue { router_concurrency_limit = 110 }");
	send_to_domains(1, 0, 1000);
	assert_int_equal(questions.n, 100);
	send_to_domains(2, 5000, 100);
	assert_int_equal(questions.n, 110); /* max_message_concurrency for the second */
	send_to_domains(3, 7000, 1);
	assert_int_equal(asked_for("d7000.test"), 0); /* all are taken */
	answer_first();
	assert_int_equal(asked_for("d7000.test"), 1);
}

static void ten_thousand_domains_do_not_hold_up_a_message_to_one(void **state)
{
	(void)state;
	begin("");
	send_to_domains(1, 0, 10000);
	assert_in_range(questions.n, 900, 920);
	pass_time(60000); /* no name server answers */
	int before = questions.n;
	send_mail(2, "x@quick.test");
	assert_int_equal(questions.n, before + 1);
	answer("quick.test", "10 mx.test 192.0.2.1");
	ready(open_at(0), 1);
	assert_int_equal(given_at(0)->id, 2);
	done(given_at(0), VERDICT_SENT);
	is_delivered(2, 1, VERDICT_SENT);
	is_released(2);
}

static void look_ups_without_an_answer_for_a_second_leave_their_places_to_others(void **state)
{
	(void)state;
	begin("queue { router_concurrency_limit = 20 }");
	for (int i = 0; i < 70; i++)
		send_to_domains((uint64_t)i + 1, i, 1);
	arrive(mail(99, "", "x@quick.test"));
	assert_int_equal(questions.n, 20);
	pass_time(999);
	assert_int_equal(questions.n, 20);
	for (int asked = 40; asked <= 60; asked += 20) {
		pass_time(1000);
		assert_int_equal(questions.n, asked);
	}
	assert_int_equal(asked_for("quick.test"), 0);
	pass_time(1000);
	assert_int_equal(asked_for("quick.test"), 1);
	answer("quick.test", "10 mx.test 192.0.2.1");
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(99, 1, VERDICT_SENT);
	is_released(99);
	while (questions.n > 0)
		answer_first();
	assert_null(q->messages);
	assert_int_equal(q->lookups, 0);
	assert_int_equal(q->lagging, 0);
}

static void twenty_times_as_many_may_be_without_an_answer(void **state)
{
	(void)state;
	begin("queue { router_concurrency_limit = 2 }");
	for (int i = 0; i < 100; i++)
		send_to_domains((uint64_t)i + 1, i, 1);
	for (int i = 0; i < 60; i++)
		pass_time(1000);
	assert_int_equal(questions.n, 42);
	answer_first();
	assert_int_equal(questions.n, 42);
}

static void many_messages_to_many_domains_do_not_hold_up_one_to_one(void **state)
{
	(void)state;
	begin("queue { router_concurrency_limit = 20 }");
	for (int i = 0; i < 8; i++)
		send_to_domains((uint64_t)i + 1, 1000 * i, 100);
	assert_int_equal(questions.n, 20);
	send_mail(9, "x@quick.test");
	for (int i = 0; i < 8; i++)
		answer_first();
	assert_int_equal(asked_for("quick.test"), 1); /* each of the others had one turn at most */
}

static void send_to_domain_as(uint64_t id, const char *sender, int domain)
{
	char to[40];
	snprintf(to, sizeof to, "x@d%d.test", domain);
	arrive(mail(id, sender, to));
}

/* The second of two has its turn behind one of the others. */
static void many_messages_of_one_flow_hold_up_none_of_another(void **state)
{
	(void)state;
	begin("queue { router_concurrency_limit = 2 }");
	for (int i = 1; i <= 50; i++)
		send_to_domain_as((uint64_t)i, "x@many.test", i);
	send_to_domain_as(98, "x@few.test", 98);
	send_to_domain_as(99, "x@few.test", 99);
	assert_int_equal(questions.n, 2);
	answer_first();
	answer_first();
	assert_int_equal(asked_for("d98.test"), 1);
	answer_first();
	answer_first();
	assert_int_equal(asked_for("d99.test"), 1);
	while (questions.n > 0) {
		assert_true(questions.n <= 2);
		answer_first();
	}
	assert_true(list_empty(&q->to_route));
}

static void all_are_asked_for_in_the_end(void **state)
{
	(void)state;
	begin("queue { router_concurrency_limit = 20 }");
	send_to_domains(1, 0, 500);
	send_to_domains(2, 300, 400); /* 200 of them are the same */
	int asked = 0;
	while (questions.n > 0) {
		assert_true(questions.n <= 20);
		answer_first();
		asked++;
	}
	/* A domain that was not found may be asked for again by the next who wants it. */
	assert_in_range(asked, 700, 900);
	assert_null(q->messages);
	assert_int_equal(q->lookups, 0);
}

static void recipients_that_wait_for_a_look_up_go_with_a_message_that_is_cancelled(void **state)
{
	(void)state;
	begin("queue { router_concurrency_limit = 10 }");
	send_to_domains(1, 0, 100);
	cancel(1);
	while (questions.n > 0)
		answer_first();
	is_released(1);
	assert_null(q->messages);
	assert_int_equal(q->sched.rcpt_count, 0);
}

/* The same with connections: one message has most of them, but not the last ones. */
static void one_message_has_ten_of_eleven_connections(void **state)
{
	(void)state;
	begin("transport smtp { connection_limit = 22 }\nqueue { max_message_concurrency = 2 }");
	send_to_domains(1, 0, 100);
	for (int i = 0; i < 100; i++) {
		char name[32], hosts[64];
		snprintf(name, sizeof name, "d%d.test", i);
		snprintf(hosts, sizeof hosts, "10 mx%d.test 192.0.2.%d", i, i + 1);
		answer(name, hosts);
	}
	assert_int_equal(opened.n, 20);
	send_mail(2, "x@other.test");
	answer("other.test", "10 other.test 198.51.100.1");
	assert_int_equal(opened_to("other.test"), 1);
	int delivered = 0;
	while (delivered < 100 && opened.n > 0) {
		struct connection_open *o = open_at(0);
		ready(o, 1);
		while (given.n > 0) {
			delivered++;
			done(given_at(0), VERDICT_SENT);
		}
		close_orderly(o);
	}
	assert_int_equal(delivered, 100);
}

static void what_one_site_makes_no_use_of_is_for_the_next(void **state)
{
	(void)state;
	begin("transport smtp { destination_by = domain }\n"
	      "queue { max_message_concurrency = 1 scale_max_concurrency = 0 }");
	send_to_domains(1, 0, 3);
	answer("d0.test", "10 mx1.test 192.0.2.1");
	answer("d1.test", "10 mx1.test 192.0.2.1");
	answer("d2.test", "10 mx2.test 192.0.2.2");
	assert_int_equal(opened.n, 1);
	lose(open_to("mx1.test"), "refused"); /* the host is out, for the second too */
	assert_int_equal(opened_to("mx2.test"), 1);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_may_have_what_is_free_by_the_scale_factor),
		TEST(one_message_has_ten_of_eleven_look_ups),
		TEST(ten_thousand_domains_do_not_hold_up_a_message_to_one),
		TEST(look_ups_without_an_answer_for_a_second_leave_their_places_to_others),
		TEST(twenty_times_as_many_may_be_without_an_answer),
		TEST(many_messages_to_many_domains_do_not_hold_up_one_to_one),
		TEST(many_messages_of_one_flow_hold_up_none_of_another),
		TEST(all_are_asked_for_in_the_end),
		TEST(recipients_that_wait_for_a_look_up_go_with_a_message_that_is_cancelled),
		TEST(one_message_has_ten_of_eleven_connections),
		TEST(what_one_site_makes_no_use_of_is_for_the_next),
	};
	return RUN(tests);
}
