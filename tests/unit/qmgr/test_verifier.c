/* SPDX-License-Identifier: ISC */
/* Questions about recipients: who is asked, how many at once, and what is remembered. */
#include "tests/unit/qmgr/world.h"

#include "base/verification.h"

static struct loop *asker;
static struct box answers;

static void hear(void *owner, struct note *note)
{
	(void)owner;
	assert_int_equal(note->type, VERIFY_ANSWER);
	put(&answers, note);
}

static int set_up(void **state)
{
	(void)state;
	asker = loop_new("asker", hear, NULL, NULL);
	return 0;
}

static int tear_down(void **state)
{
	finish(state);
	loop_free(&asker);
	while (answers.n > 0) {
		struct verify *v = take(&answers, 0);
		verify_free(&v);
	}
	return 0;
}

static void ask_as(const char *address, const char *sender, bool fresh)
{
	struct verify *v = verify_new(address, sender, asker);
	v->fresh = fresh;
	post(&v->note);
	settle();
	mailbox_drain(&asker->mailbox);
}

static void ask(const char *address)
{
	ask_as(address, NULL, false);
}

/* The oldest answer. */
static enum verify_result answered(bool remembered)
{
	mailbox_drain(&asker->mailbox);
	assert_true(answers.n > 0);
	struct verify *v = take(&answers, 0);
	enum verify_result result = v->result;
	assert_int_equal(v->remembered, remembered);
	verify_free(&v);
	return result;
}

static void nothing_is_left(void)
{
	mailbox_drain(&asker->mailbox);
	assert_int_equal(answers.n, 0);
	assert_int_equal(q->sched.nactive, 0);
	assert_int_equal(q->sched.rcpt_count, 0);
	assert_int_equal(told.n, 0); /* the spool hears nothing of it */
}

static void one_question_answers_all_who_ask_and_is_remembered(void **state)
{
	(void)state;
	begin("verify { positive_time = 60s negative_time = 1s sender = \"probe@here.test\" }");
	ask("a@x.test");
	ask("a@x.test");
	answer("x.test", "10 mx.test 192.0.2.1");
	ready(open_to("mx.test"), 2);
	assert_int_equal(given.n, 1);
	assert_true(given_at(0)->verification);
	assert_int_equal(given_at(0)->nrcpt, 1);
	assert_string_equal(given_at(0)->sender, "probe@here.test");
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(answered(false), VERIFY_TAKES);
	assert_int_equal(answered(false), VERIFY_TAKES);
	nothing_is_left();
	ask("a@x.test");
	assert_int_equal(answered(true), VERIFY_TAKES);
	ask_as("a@x.test", NULL, true);
	done(given_at(0), VERDICT_FAILED);
	assert_int_equal(answered(false), VERIFY_REFUSES);
	ask("a@x.test");
	assert_int_equal(answered(true), VERIFY_REFUSES);
	pass_time(1000);
	ask("a@x.test");
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(answered(false), VERIFY_TAKES);
	ask_as("a@x.test", "b@here.test", false);
	assert_string_equal(given_at(0)->sender, "b@here.test");
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(answered(false), VERIFY_TAKES);
	nothing_is_left();
}

static void what_could_not_be_asked_is_unknown_and_not_remembered(void **state)
{
	(void)state;
	begin("");
	ask("a@x.test");
	no_answer("x.test", VERDICT_DEFERRED, "4.4.3");
	assert_int_equal(answered(false), VERIFY_UNKNOWN);
	ask("a@x.test");
	no_answer("x.test", VERDICT_FAILED, "5.1.2");
	assert_int_equal(answered(false), VERIFY_REFUSES);
	ask("a@x.test");
	assert_int_equal(answered(true), VERIFY_REFUSES);
	ask("b@y.test");
	answer("y.test", "10 mx.test 192.0.2.1");
	ready(open_to("mx.test"), 2);
	done(given_at(0), VERDICT_DEFERRED);
	assert_int_equal(answered(false), VERIFY_UNKNOWN);
	nothing_is_left();
}

static void so_many_are_under_way_half_of_them_of_one_domain_in_turn(void **state)
{
	(void)state;
	char to[40];
	begin("verify { concurrency_limit = 6 }\n"
	      "transport smtp { destination_recipient_limit = 1 initial_destination_concurrency = "
	      "20 }");
	for (int i = 0; i < 100; i++) {
		snprintf(to, sizeof to, "u%d@big.test", i);
		ask(to);
	}
	assert_int_equal(q->verifier.nunderway, 3);
	ask("a@one.test");
	ask("a@two.test");
	ask("a@three.test");
	ask("a@four.test");
	assert_int_equal(q->verifier.nunderway, 6);
	assert_int_equal(q->verifier.nwaiting, 98);
	no_answer("one.test", VERDICT_FAILED, "5.1.2");
	assert_int_equal(answered(false), VERIFY_REFUSES);
	put(&questions,
	    &take_question("four.test")->note); /* it had its turn before big.test again */
	no_answer("big.test", VERDICT_FAILED, "5.1.2");
	for (int i = 0; i < 3; i++)
		assert_int_equal(answered(false), VERIFY_REFUSES);
	assert_int_equal(q->verifier.nunderway, 6);
}

/* Next hops that take the connection, and then do not answer. */
static void those_that_lag_keep_nobody_from_being_asked_about(void **state)
{
	(void)state;
	char to[40];
	begin("verify { concurrency_limit = 4 }");
	for (int i = 0; i < 6; i++) {
		snprintf(to, sizeof to, "u%d@silent%d.test", i, i % 2);
		ask(to);
	}
	answer("silent0.test", "10 mx0.test 192.0.2.1");
	answer("silent1.test", "10 mx1.test 192.0.2.2");
	ask("a@good.test");
	assert_int_equal(q->verifier.nunderway, 4);
	assert_int_equal(q->verifier.nwaiting, 3);
	pass_time(VERIFIER_LAG_MS);
	assert_int_equal(q->verifier.nlagging, 4);
	assert_int_equal(q->verifier.nunderway, 1);
	assert_int_equal(q->verifier.nwaiting, 2); /* their domains have had their halves */
	answer("good.test", "10 good.test 192.0.2.3");
	ready(open_to("good.test"), 2);
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(answered(false), VERIFY_TAKES);
	ready(open_to("mx0.test"), 1);
	while (given.n > 0)
		done(given_at(0), VERDICT_SENT);
	assert_int_equal(answered(false), VERIFY_TAKES);
}

static void too_many_who_wait_are_turned_away(void **state)
{
	(void)state;
	char to[40];
	begin("");
	for (int i = 0; i < VERIFIER_WAITING_MAX + 5; i++) {
		snprintf(to, sizeof to, "u%d@x.test", i);
		ask(to);
	}
	assert_int_equal(answers.n, 0);
	ask("one.more@x.test");
	assert_int_equal(answered(false), VERIFY_UNKNOWN);
	ask("u7@x.test");
	assert_int_equal(answers.n, 0); /* that is asked about already */
}

static void of_what_is_remembered_the_least_lately_used_goes(void **state)
{
	(void)state;
	begin("verify { cache_limit = 2 }");
	static const char *const names[] = {"a", "b", "a", "c", "a", "b"};
	static const bool remembered[] = {false, false, true, false, true, false};
	for (int i = 0; i < 6; i++) {
		char to[50], domain[40];
		snprintf(domain, sizeof domain, "%s.test", names[i]);
		snprintf(to, sizeof to, "x@%s", domain);
		ask(to);
		if (!remembered[i])
			no_answer(domain, VERDICT_FAILED, "5.1.2");
		assert_int_equal(answered(remembered[i]), VERIFY_REFUSES);
	}
	nothing_is_left();
}

/* It has said so of the same recipient before the reload, and may not be asked about him any more. */
static void a_host_answers_for_nobody_whose_mail_goes_elsewhere_since_a_reload(void **state)
{
	(void)state;
	begin("route x.test { relay = { \"[old.test]\" } }");
	ask("a@x.test");
	answer("old.test", "0 old.test 192.0.2.1");
	ready(open_to("old.test"), 1);
	done(given_at(0), VERDICT_FAILED);
	assert_int_equal(answered(false), VERIFY_REFUSES);
	reload("route x.test { relay = { \"[old.test]\" } } route y.test { }");
	ask("a@x.test");
	assert_int_equal(answered(true), VERIFY_REFUSES);
	reload("route x.test { relay = { \"[new.test]\" } }");
	ask("a@x.test");
	answer("new.test", "0 new.test 192.0.2.2");
	ready(open_to("new.test"), 1);
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(answered(false), VERIFY_TAKES);
	ask("a@x.test");
	assert_int_equal(answered(true), VERIFY_TAKES);
	nothing_is_left();
}

static void how_long_and_how_many_are_remembered_is_what_the_last_reload_says(void **state)
{
	(void)state;
	begin("");
	ask("a@x.test");
	no_answer("x.test", VERDICT_FAILED, "5.1.2");
	assert_int_equal(answered(false), VERIFY_REFUSES);
	reload("verify { negative_time = 1m }");
	pass_time(59000);
	ask("a@x.test");
	assert_int_equal(answered(true), VERIFY_REFUSES);
	pass_time(1000);
	ask("a@x.test");
	no_answer("x.test", VERDICT_FAILED, "5.1.2");
	assert_int_equal(answered(false), VERIFY_REFUSES);
	assert_int_equal(q->verifier.nremembered, 1);
	reload("verify { cache_limit = 0 }");
	assert_int_equal(q->verifier.nremembered, 0);
	nothing_is_left();
}

static void mail_and_questions_share_a_connection(void **state)
{
	(void)state;
	begin("transport smtp { destination_concurrency_limit = 1 }");
	send_mail(1, "m@x.test");
	answer("x.test", "10 mx.test 192.0.2.1");
	ready(open_to("mx.test"), 1);
	ask("a@x.test");
	assert_int_equal(given.n, 1);
	assert_false(given_at(0)->verification);
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(given.n, 1);
	assert_true(given_at(0)->verification);
	assert_int_equal(opened.n, 1);
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(answered(false), VERIFY_TAKES);
}

static void an_end_in_the_midst_leaves_nothing(void **state)
{
	(void)state;
	begin("verify { concurrency_limit = 2 }");
	ask("a@x.test");
	ask("b@x.test");
	ask("c@y.test");
	answer("x.test", "10 mx.test 192.0.2.1");
	ready(open_to("mx.test"), 2);
	assert_int_equal(given.n, 1);
}

#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(one_question_answers_all_who_ask_and_is_remembered),
		T(what_could_not_be_asked_is_unknown_and_not_remembered),
		T(so_many_are_under_way_half_of_them_of_one_domain_in_turn),
		T(those_that_lag_keep_nobody_from_being_asked_about),
		T(too_many_who_wait_are_turned_away),
		T(of_what_is_remembered_the_least_lately_used_goes),
		T(a_host_answers_for_nobody_whose_mail_goes_elsewhere_since_a_reload),
		T(how_long_and_how_many_are_remembered_is_what_the_last_reload_says),
		T(mail_and_questions_share_a_connection),
		T(an_end_in_the_midst_leaves_nothing),
	};
	return RUN(tests);
}
