/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpc/script.h"

#include <stdio.h>
#include <unistd.h>

static void parameters_are_given_as_announced(void **state)
{
	(void)state;
	greet("250-mx\r\n250-PIPELINING\r\n250-SIZE 1000\r\n250-8bitmime\r\n250-DSN\r\n250 "
	      "SMTPUTF8\r\n");
	struct delivery *d = mail("caf\xc3\xa9\r\n", TO("\xc3\xbc@test"));
	d->ret = RET_HDRS;
	d->envid = "e+3D1";
	d->rcpt[0].notify = NOTIFY_SUCCESS | NOTIFY_DELAY;
	d->rcpt[0].orcpt = "rfc822;x@test";
	give(d);
	hears("MAIL FROM:<s@test> SIZE=7 BODY=8BITMIME SMTPUTF8 RET=HDRS ENVID=e+3D1\r\n"
	      "RCPT TO:<\xc3\xbc@test> NOTIFY=SUCCESS,DELAY ORCPT=rfc822;x@test\r\nDATA\r\n");
}

static void parameters_not_announced_are_not_given(void **state)
{
	(void)state;
	greet(PIPELINED);
	struct delivery *d = mail("caf\xe9\r\n", TO("a@test"));
	d->ret = RET_FULL;
	d->envid = "e";
	d->rcpt[0].notify = NOTIFY_NEVER;
	d->body = BODY_8BITMIME;
	give(d);
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nDATA\r\n");
}

static void one_octet_of_8_bits_is_found_wherever_it_stands(void **state)
{
	for (int at = -1; at < 19; at++) {
		char text[] = "0123456789abcdefghi\r\n";
		greet("250-mx\r\n250 8BITMIME\r\n");
		if (at >= 0)
			text[at] = '\xe9';
		give(mail(text, TO("a@test")));
		hears(at < 0 ? "MAIL FROM:<s@test>\r\n" : "MAIL FROM:<s@test> BODY=8BITMIME\r\n");
		tear_down(state);
		set_up(state);
	}
}

/* As the log holds a message that comes back from the queue; an octet of 8 bits stands there, or none. */
static struct content *in_log(size_t size, int at)
{
	FILE *f = tmpfile();
	assert_non_null(f);
	for (size_t i = 0; i < size; i++)
		fputc((int)i == at ? 0xe9 : i % 40 == 38 ? '\r' : i % 40 == 39 ? '\n' : 'x', f);
	fflush(f);
	struct content_file *file = content_file_new(dup(fileno(f)));
	fclose(f);
	struct content *c = content_in_file(file, 0, size);
	content_file_unref(file);
	return c;
}

static void and_wherever_in_a_message_that_lies_in_the_log(void **state)
{
	enum { SIZE = 100000, LAST = SIZE - 3 };
	static const int at[] = {-1, 0, LAST};
	for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
		greet("250-mx\r\n250 8BITMIME\r\n");
		struct delivery *d = mail("", TO("a@test"));
		content_unref(d->content);
		d->content = in_log(SIZE, at[i]);
		give(d);
		hears(at[i] < 0 ? "MAIL FROM:<s@test>\r\n"
				: "MAIL FROM:<s@test> BODY=8BITMIME\r\n");
		tear_down(state);
		set_up(state);
	}
}

static void a_message_above_the_announced_size_is_not_sent(void **state)
{
	(void)state;
	greet("250-mx\r\n250 SIZE 3\r\n");
	give(mail("xxxx\r\n", TO("a@test")));
	hears("");
	const struct delivery *d = back();
	assert_verdict(d, 0, VERDICT_FAILED, 552);
	assert_string_equal(d->rcpt[0].verdict->dsn, "5.3.4");
	give(mail("x\r\n", TO("a@test")));
	hears("MAIL FROM:<s@test> SIZE=3\r\n");
}

static void a_size_of_nothing_is_no_limit_and_garbage_is_ignored(void **state)
{
	(void)state;
	greet("250-mx\r\n250-PIPELINING\r\n250-SIZE 0\r\n250-SIZE=9\r\n250-SIZE -1\r\n250 SIZE "
	      "1x\r\n");
	assert_true(engine.can.size);
	assert_int_equal(engine.can.size_max, 0);
}

static void smtputf8_is_never_sent_to_who_does_not_offer_it(void **state)
{
	(void)state;
	greet(PIPELINED);
	struct delivery *d = mail("Subject: \xc3\xbc\r\n\r\nx\r\n", TO("a@test"));
	d->smtputf8 = true;
	give(d);
	give(mail("x\r\n", TO("\xc3\xbc@test")));
	hears("");
	assert_string_equal(back()->rcpt[0].verdict->dsn, "5.6.9");
	assert_verdict(taken, 0, VERDICT_FAILED, 550);
	assert_string_equal(back()->rcpt[0].verdict->dsn, "5.6.7");
	assert_verdict(taken, 0, VERDICT_FAILED, 553);
	d = mail("x\r\n", TO("a@test"));
	d->sender = "\xc3\xbc@test";
	give(d);
	hears("");
	assert_string_equal(back()->rcpt[0].verdict->dsn, "5.6.7");
}

static void what_a_better_host_may_do_waits_for_that(void **state)
{
	(void)state;
	struct delivery *all[] = {mail("xxxxxx\r\n", TO("a@test")),
				  mail("x\r\n", TO("\xc3\xbc@test")), mail("x\r\n", TO("a@test"))};
	static const char *const dsn[] = {"4.3.4", "4.6.7", "4.6.7"};
	greet("250-mx\r\n250-PIPELINING\r\n250 SIZE 4\r\n");
	all[2]->sender = "\xc3\xbc@test";
	for (int i = 0; i < 3; i++) {
		all[i]->second = true;
		give(all[i]);
		hears("");
		assert_string_equal(back()->rcpt[0].verdict->dsn, dsn[i]);
		assert_verdict(taken, 0, VERDICT_DEFERRED, 0);
	}
}

static void an_address_that_needs_smtputf8_costs_the_others_nothing(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(mail("x\r\n", TO("a@test", "\xc3\xbc@test", "b@test")));
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nRCPT TO:<b@test>\r\nDATA\r\n");
	says("250 ok\r\n250 ok\r\n550 5.1.1 no\r\n354 go\r\n");
	sent();
	says("250 taken\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_verdict(taken, 1, VERDICT_FAILED, 553);
	assert_verdict(taken, 2, VERDICT_FAILED, 550);
}

/* The connection ends before anything is said of the others. */
static void an_address_that_needs_smtputf8_is_refused_whatever_comes_of_the_others(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(mail("x\r\n", TO("\xc3\xbc@test", "a@test")));
	sent();
	engine_lost(&engine, "connection lost");
	assert_verdict(back(), 0, VERDICT_FAILED, 553);
	assert_verdict(taken, 1, VERDICT_DEFERRED, 0);
}

static void nothing_that_leaves_its_command_is_sent(void **state)
{
	(void)state;
	static const char *const unsafe[] = {"a@test>\r\nDATA", "a\nb@test", "a\x01@test",
					     "a b@test",	"a>b@test",  "\"a@test",
					     "\"a\\\n\"@test",	""};
	greet(PIPELINED);
	for (size_t i = 0; i < sizeof unsafe / sizeof unsafe[0]; i++) {
		give(mail("x\r\n", TO(unsafe[i])));
		hears("");
		assert_string_equal(back()->rcpt[0].verdict->dsn, "5.6.0");
		assert_verdict(taken, 0, VERDICT_FAILED, 501);
	}
	struct delivery *d = mail("x\r\n", TO("a@test"));
	d->envid = "x\r\nRSET";
	give(d);
	hears("");
	back();
	give(mail("x\r\n", TO("\"a b>\\\"\"@test")));
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<\"a b>\\\"\"@test>\r\nDATA\r\n");
}

static void too_many_recipients_go_in_another_transaction(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(mail("x\r\n", TO("a@test", "b@test", "c@test")));
	says("250 ok\r\n250 ok\r\n452 4.5.3 too many\r\n452 4.2.2 full\r\n354 go\r\n");
	sent();
	says("250 kept\r\n");
	const struct delivery *d = back();
	assert_verdict(d, 0, VERDICT_SENT, 250);
	assert_null(d->rcpt[1].verdict);
	assert_verdict(d, 2, VERDICT_DEFERRED, 452);
}

static void so_do_those_that_are_too_many_in_other_words(void **state)
{
	static const struct {
		const char *reply;
		enum verdict_class class; /* SENT: in another transaction */
	} hosts[] = {
		{"552 5.5.3 Too many recipients", VERDICT_SENT},
		{"552 too many recipients", VERDICT_SENT},
		{"552 4.5.3 Too Many Recipients", VERDICT_SENT}, /* no code that counts */
		{"550 5.5.3 enough", VERDICT_SENT},
		{"451 4.5.3 enough", VERDICT_SENT},
		{"452 enough", VERDICT_SENT},
		{"550 Error: too many recipients", VERDICT_SENT},
		{"450 too many recipients", VERDICT_SENT},
		{"552 5.2.2 too many recipients have too much", VERDICT_FAILED},
		{"550 5.7.1 too many recipients", VERDICT_FAILED},
		{"552 mailbox full", VERDICT_FAILED},
	};
	for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
		char text[200];
		snprintf(text, sizeof text, "250 ok\r\n250 ok\r\n%s\r\n354 go\r\n", hosts[i].reply);
		greet(PIPELINED);
		give(mail("x\r\n", TO("a@test", "b@test")));
		says(text);
		sent();
		says("250 kept\r\n");
		const struct delivery *d = back();
		assert_verdict(d, 0, VERDICT_SENT, 250);
		if (hosts[i].class == VERDICT_SENT)
			assert_null(d->rcpt[1].verdict);
		else
			assert_verdict(d, 1, hosts[i].class, atoi(hosts[i].reply));
		tear_down(state);
		set_up(state);
	}
}

static void nobody_is_told_no(const struct delivery *d)
{
	for (uint32_t i = 0; i < d->nrcpt; i++)
		assert_null(d->rcpt[i].verdict);
	assert_true(d->returned && d->rcpt_told);
	assert_int_equal(d->rcpt_taken, 2);
}

/* Exim's recipients_max_reject. */
static void a_message_refused_for_the_number_of_its_recipients_is_for_fewer(void **state)
{
	(void)state;
	greet(CHUNKED);
	give(mail("x\r\n", TO("a@test", "b@test", "c@test")));
	says("250 ok\r\n250 ok\r\n250 ok\r\n552 too many recipients\r\n");
	sent();
	says("554 Too many recipients\r\n");
	nobody_is_told_no(back());
}

static void so_is_one_that_is_refused_at_data(void **state)
{
	(void)state;
	greet(PLAIN);
	give(mail("x\r\n", TO("a@test", "b@test", "c@test")));
	for (int i = 0; i < 3; i++)
		says("250 ok\r\n");
	says("552 too many recipients\r\n");
	says("554 Too many recipients\r\n");
	nobody_is_told_no(back());
}

/* To the first two of three, the third being too many, and to their content. */
static void refuse_crowd(const char *to_second, const char *to_content)
{
	greet(PIPELINED);
	give(mail("x\r\n", TO("a@test", "b@test", "c@test")));
	says("250 ok\r\n250 ok\r\n");
	says(to_second);
	says("552 too many recipients\r\n354 go\r\n");
	sent();
	says(to_content);
}

static void so_is_one_that_is_refused_behind_its_dot(void **state)
{
	(void)state;
	refuse_crowd("250 ok\r\n", "550 5.5.3 enough\r\n");
	nobody_is_told_no(back());
}

static void so_is_one_with_a_recipient_who_is_unknown(void **state)
{
	(void)state;
	refuse_crowd("550 5.1.1 unknown\r\n", "554 too many recipients\r\n");
	const struct delivery *d = back();
	assert_false(d->returned);
	assert_null(d->rcpt[0].verdict);
	assert_verdict(d, 1, VERDICT_FAILED, 550);
	assert_null(d->rcpt[2].verdict);
}

/* The second was greylisted ahead of its turn, and is asked about once more. */
static void so_is_one_with_a_recipient_who_is_asked_about_again(void **state)
{
	(void)state;
	refuse_crowd("451 greylisted\r\n", "554 too many recipients\r\n");
	hears("RSET\r\n");
	says("250 ok\r\n");
	hears("MAIL FROM:<s@test>\r\n");
	says("250 ok\r\n");
	hears("RCPT TO:<b@test>\r\n");
	says("451 greylisted\r\n");
	const struct delivery *d = back();
	assert_null(d->rcpt[0].verdict);
	assert_verdict(d, 1, VERDICT_DEFERRED, 451);
	assert_null(d->rcpt[2].verdict);
}

static void one_that_is_refused_for_anything_else_is_refused(void **state)
{
	(void)state;
	refuse_crowd("250 ok\r\n", "554 5.7.1 no\r\n");
	const struct delivery *d = back();
	assert_verdict(d, 0, VERDICT_FAILED, 554);
	assert_verdict(d, 1, VERDICT_FAILED, 554);
	assert_null(d->rcpt[2].verdict);
}

static void too_many_recipients_of_whom_none_was_too_many_is_a_refusal(void **state)
{
	(void)state;
	greet(CHUNKED);
	give(mail("x\r\n", TO("a@test", "b@test")));
	says("250 ok\r\n250 ok\r\n250 ok\r\n");
	sent();
	says("554 Too many recipients\r\n");
	assert_verdict(back(), 0, VERDICT_FAILED, 554);
	assert_verdict(taken, 1, VERDICT_FAILED, 554);
}

static void a_first_recipient_that_is_too_many_has_its_verdict(void **state)
{
	(void)state;
	greet(PLAIN);
	give(mail("x\r\n", TO("a@test")));
	says("250 ok\r\n");
	says("552 5.5.3 too many recipients\r\n");
	assert_verdict(back(), 0, VERDICT_FAILED, 552);
}

static void a_452_before_any_was_accepted_is_a_deferral(void **state)
{
	(void)state;
	greet(PIPELINED);
	give(mail("x\r\n", TO("a@test")));
	says("250 ok\r\n452 too many\r\n554 none\r\n");
	assert_verdict(back(), 0, VERDICT_DEFERRED, 452);
}

static void limits_are_read_and_nonsense_is_none(void **state)
{
	(void)state;
	greet("250-mx\r\n250 limits MAILMAX=5 X=1 rcptmax=20 RCPTDOMAINMAX=1\r\n");
	assert_int_equal(engine.can.mail_max, 5);
	assert_int_equal(engine.can.rcpt_max, 20);
	assert_int_equal(engine.can.domain_max, 1);
	tear_down(state);
	set_up(state);
	greet("250-mx\r\n250 LIMITS MAILMAX=0 RCPTMAX=1234567 RCPTDOMAINMAX=1x\r\n");
	assert_int_equal(engine.can.mail_max + engine.can.rcpt_max + engine.can.domain_max, 0);
}

static void recipients_beyond_the_limit_go_in_another_transaction(void **state)
{
	(void)state;
	greet("250-mx\r\n250-PIPELINING\r\n250 LIMITS RCPTMAX=2\r\n");
	give(mail("x\r\n", TO("a@test", "b@test", "c@test")));
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nRCPT TO:<b@test>\r\nDATA\r\n");
	says("250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n");
	sent();
	says("250 kept\r\n");
	assert_verdict(back(), 1, VERDICT_SENT, 250);
	assert_null(taken->rcpt[2].verdict);
}

static void recipients_beyond_what_is_known_go_in_another_transaction(void **state)
{
	(void)state;
	struct delivery *d = mail("x\r\n", TO("a@test", "b@test", "c@test"));
	d->rcpt_most = 1;
	greet("250-mx\r\n250-PIPELINING\r\n250 LIMITS RCPTMAX=2\r\n");
	give(d);
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nDATA\r\n");
	says("250 ok\r\n250 ok\r\n354 go\r\n");
	sent();
	says("250 kept\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_null(taken->rcpt[1].verdict);
	assert_null(taken->rcpt[2].verdict);
}

static void a_domain_beyond_the_limit_goes_on_another_connection(void **state)
{
	(void)state;
	greet("250-mx\r\n250-PIPELINING\r\n250 LIMITS RCPTDOMAINMAX=1\r\n");
	give(mail("x\r\n", TO("a@one.test", "b@two.test", "c@ONE.test")));
	give(mail("x\r\n", TO("d@one.test")));
	give(mail("x\r\n", TO("b@two.test")));
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@one.test>\r\nRCPT TO:<c@ONE.test>\r\nDATA\r\n");
	says("250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n");
	sent();
	says("250 kept\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_null(taken->rcpt[1].verdict);
	says("250 ok\r\n250 ok\r\n354 go\r\n");
	sent();
	says("250 kept\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
	assert_returned(back());
	assert_true(engine.renew);
	assert_int_equal(engine.enough, 0);
	assert_closed_orderly();
	hears("QUIT\r\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(parameters_are_given_as_announced),
		T(parameters_not_announced_are_not_given),
		T(one_octet_of_8_bits_is_found_wherever_it_stands),
		T(and_wherever_in_a_message_that_lies_in_the_log),
		T(a_message_above_the_announced_size_is_not_sent),
		T(a_size_of_nothing_is_no_limit_and_garbage_is_ignored),
		T(smtputf8_is_never_sent_to_who_does_not_offer_it),
		T(what_a_better_host_may_do_waits_for_that),
		T(an_address_that_needs_smtputf8_costs_the_others_nothing),
		T(an_address_that_needs_smtputf8_is_refused_whatever_comes_of_the_others),
		T(nothing_that_leaves_its_command_is_sent),
		T(too_many_recipients_go_in_another_transaction),
		T(so_do_those_that_are_too_many_in_other_words),
		T(a_message_refused_for_the_number_of_its_recipients_is_for_fewer),
		T(so_is_one_that_is_refused_at_data),
		T(so_is_one_that_is_refused_behind_its_dot),
		T(so_is_one_with_a_recipient_who_is_unknown),
		T(so_is_one_with_a_recipient_who_is_asked_about_again),
		T(one_that_is_refused_for_anything_else_is_refused),
		T(too_many_recipients_of_whom_none_was_too_many_is_a_refusal),
		T(a_first_recipient_that_is_too_many_has_its_verdict),
		T(a_452_before_any_was_accepted_is_a_deferral),
		T(limits_are_read_and_nonsense_is_none),
		T(recipients_beyond_the_limit_go_in_another_transaction),
		T(recipients_beyond_what_is_known_go_in_another_transaction),
		T(a_domain_beyond_the_limit_goes_on_another_connection),
	};
	return RUN_TWICE(tests);
}
