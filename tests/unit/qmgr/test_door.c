/* SPDX-License-Identifier: ISC */
/* What is known against a recipient before it is taken, and how it comes to be known. */
#include "tests/unit/qmgr/world.h"

#include "base/date.h"
#include "base/hint.h"
#include "base/verification.h"

static struct loop *asker;
static struct box answers;
static bool listed; /* as whoever asks says */

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

static void drop_answers(void)
{
	while (answers.n > 0) {
		struct verify *v = take(&answers, 0);
		verify_free(&v);
	}
}

static int tear_down(void **state)
{
	finish(state);
	loop_free(&asker);
	drop_answers();
	return 0;
}

static void ask(const char *address, const char *from)
{
	struct verify *v = verify_new(address, NULL, asker);
	v->from = mem_strdup(from);
	v->only_routed = true;
	v->listed = listed;
	v->suppress_ms = q->sched.conf->suppress;
	drop_answers();
	post(&v->note);
	settle();
	mailbox_drain(&asker->mailbox);
}

/* The answer, which must be there. */
static const struct verify *said(void)
{
	mailbox_drain(&asker->mailbox);
	assert_int_equal(answers.n, 1);
	return (const struct verify *)answers.note[0];
}

static void is_free(const char *address)
{
	ask(address, "a@here.test");
	assert_int_equal(said()->result, VERIFY_UNWANTED);
	assert_false(said()->ours);
}

static void is_refused(const char *address, const char *from, const char *dsn, const char *text)
{
	ask(address, from);
	assert_int_equal(said()->result, *dsn == '5' ? VERIFY_REFUSES : VERIFY_UNKNOWN);
	assert_true(said()->ours);
	assert_string_equal(said()->verdict->dsn, dsn);
	assert_non_null(strstr(said()->verdict->text, text));
}

static void a_route_that_is_an_error_is_the_answer(void **state)
{
	(void)state;
	begin("route \"gone.test\" { error = \"5.1.2 gone\" }\n"
	      "route \"later.test\" { error = \"4.3.0 come back\" }\n"
	      "route \"some.test\" { error = \"5.7.1 not you\" from = { \"bad.test\" } }\n"
	      "route \"void.test\" { discard = true }");
	is_refused("x@gone.test", "a@here.test", "5.1.2", "gone");
	is_refused("x@later.test", "", "4.3.0", "come back");
	is_refused("x@some.test", "a@bad.test", "5.7.1", "not you");
	is_free("x@some.test");
	is_free("x@void.test");
	is_free("x@dest.test");
	assert_int_equal(questions.n, 0);
}

/* A transaction's end for its one recipient. */
static void end_with(struct delivery *d, int code, const char *dsn, enum verdict_stage stage)
{
	enum verdict_class class = code < 300	? VERDICT_SENT
				   : code < 500 ? VERDICT_DEFERRED
						: VERDICT_FAILED;
	d->rcpt[0].verdict =
		verdict_answering(stage, class, code, dsn, "mx.test[192.0.2.1]:25", "said");
	back(d);
}

static void send_to(uint64_t id, const char *to, int code, const char *dsn,
		    enum verdict_stage stage)
{
	send_mail(id, to);
	if (questions.n > 0)
		answer("x.test", "10 mx.test 192.0.2.1");
	if (given.n == 0)
		ready(open_to("mx.test"), 2);
	end_with(delivery_of_mail(id), code, dsn, stage);
}

static void whom_a_host_does_not_know_is_refused_until_it_does(void **state)
{
	(void)state;
	begin("suppress = 1d");
	is_free("dead@x.test");
	send_to(1, "dead@x.test", 550, "5.1.1", VERDICT_AT_RCPT);
	is_refused("DEAD@x.test", "", "5.1.1", "User unknown there since 2023-1");
	date_set(INT64_C(400) * 86400000);
	is_refused("DEAD@x.test", "", "5.1.1", "User unknown there since 2024-12");
	date_set(0);
	assert_int_equal(said()->verdict->code, 550);
	send_to(2, "policy@x.test", 550, "5.7.1", VERDICT_AT_RCPT);
	send_to(3, "later@x.test", 450, "4.1.1", VERDICT_AT_RCPT);
	send_to(4, "content@x.test", 550, "5.1.1", VERDICT_AT_END);
	send_to(5, "moved@x.test", 551, "5.1.6", VERDICT_AT_RCPT);
	is_free("policy@x.test");
	is_free("later@x.test");
	is_free("content@x.test");
	is_free("moved@x.test");
	send_to(6, "dead@x.test", 250, "2.0.0", VERDICT_AT_END);
	is_free("dead@x.test");
	send_to(7, "dead@x.test", 550, "5.1.1", VERDICT_AT_RCPT);
	reload("suppress = 0s");
	is_free("dead@x.test");
	send_to(8, "other@x.test", 550, "5.1.1", VERDICT_AT_RCPT);
	reload("suppress = 1d");
	is_free("other@x.test");
	is_refused("dead@x.test", "", "5.1.1", "unknown there");
	pass_time(86400000);
	is_free("dead@x.test");
	assert_false(hint_maybe(HINT_SUPPRESSED, "dead@x.test"));
}

static struct resolve *known_question(const char *name)
{
	struct resolve *r = take_question(name);
	assert_true(r->known);
	assert_int_equal(questions.n, 0);
	return r;
}

static void answer_known(const char *name, const char *dsn)
{
	struct resolve *r = known_question(name);
	if (dsn)
		r->failure = verdict_new(VERDICT_FAILED, 556, dsn, NULL, "takes no mail");
	r->note.type = RESOLVE_ANSWER;
	post(&r->note);
	settle();
}

static void where_there_is_a_hint_dns_says_what_it_knows(void **state)
{
	(void)state;
	begin("route \"relayed.test\" { relay = { \"[192.0.2.9]\" } }");
	hint_add(HINT_DEAD_DOMAIN, "null.test");
	hint_add(HINT_DEAD_DOMAIN, "relayed.test");
	is_free("x@other.test");
	is_free("x@relayed.test");
	assert_int_equal(questions.n, 0);
	ask("x@null.test", "");
	answer_known("null.test", "5.1.10");
	assert_int_equal(said()->result, VERIFY_REFUSES);
	assert_int_equal(said()->verdict->code, 556);
	ask("y@null.test", "");
	answer_known("null.test", NULL);
	assert_int_equal(said()->result, VERIFY_UNWANTED);
	hint_drop(HINT_DEAD_DOMAIN, "null.test");
	hint_drop(HINT_DEAD_DOMAIN, "relayed.test");
}

static void what_waits_for_dns_at_the_end_is_freed_whether_it_answers_or_not(void **state)
{
	(void)state;
	begin("");
	hint_add(HINT_DEAD_DOMAIN, "null.test");
	ask("x@null.test", "");
	ask("y@null.test", "");
	hint_drop(HINT_DEAD_DOMAIN, "null.test");
	struct resolve *r = take_question("null.test");
	door_close(&q->door);
	r->note.type = RESOLVE_ANSWER;
	post(&r->note);
	settle();
	mailbox_drain(&asker->mailbox);
	assert_int_equal(answers.n, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void who_is_in_no_file_may_be_a_server_s(void **state)
{
	(void)state;
	begin("route \"x.test\" { recipients = { \"socketmap:unix:/run/map:m\" } }\n"
	      "route \"y.test\" { recipients = { \"socketmap:unix:/run/map:m\", "
	      "\"socketmap:unix:/run/other:m\" } }");
	ask("a@x.test", "a@here.test");
	assert_int_equal(said()->result, VERIFY_UNLISTED);
	assert_false(said()->ours);
	assert_int_equal(said()->servers.n, 1);
	assert_string_equal(said()->servers.item[0], "socketmap:unix:/run/map:m");
	ask("a@y.test", "a@here.test");
	assert_int_equal(said()->servers.n, 2);
	listed = true;
	is_free("a@x.test");
	listed = false;
}

static void whom_a_server_has_may_be_suppressed_all_the_same(void **state)
{
	(void)state;
	begin("suppress = 1d\nroute \"x.test\" { recipients = { \"socketmap:unix:/run/map:m\" } }");
	send_to(1, "dead@x.test", 550, "5.1.1", VERDICT_AT_RCPT);
	listed = true;
	is_refused("dead@x.test", "", "5.1.1", "User unknown there since 2023-1");
	listed = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_route_that_is_an_error_is_the_answer),
		TEST(whom_a_host_does_not_know_is_refused_until_it_does),
		TEST(who_is_in_no_file_may_be_a_server_s),
		TEST(whom_a_server_has_may_be_suppressed_all_the_same),
		TEST(where_there_is_a_hint_dns_says_what_it_knows),
		TEST(what_waits_for_dns_at_the_end_is_freed_whether_it_answers_or_not),
	};
	return RUN(tests);
}
