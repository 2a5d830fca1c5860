/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpc/script.h"

static int set_up_may(void **state)
{
	(void)state;
	open_with(TRANSPORT_TLS_OPPORTUNISTIC);
	return 0;
}

static int set_up_must(void **state)
{
	(void)state;
	open_with(TRANSPORT_TLS_REQUIRED);
	return 0;
}

static int set_up_proven(void **state)
{
	(void)state;
	requiretls = true;
	open_with(TRANSPORT_TLS_VERIFY);
	requiretls = false;
	return 0;
}

static void says_hello(const char *ehlo)
{
	says("220 mx.test\r\n");
	hears("EHLO me.test\r\n");
	says(ehlo);
}

static void mail_that_must_be_handed_on_under_tls_needs_tls(void **state)
{
	(void)state;
	says_hello("250-mx\r\n250 REQUIRETLS\r\n");
	assert_closed(0, "4.7.10");
	assert_true(engine.unfit);
}

static void greet_and_begin_tls(void)
{
	says_hello("250-mx\r\n250-REQUIRETLS\r\n250 STARTTLS\r\n");
	hears("STARTTLS\r\n");
	says("220 go\r\n");
}

static void mail_that_must_be_handed_on_under_tls_needs_a_host_that_is_proven(void **state)
{
	(void)state;
	greet_and_begin_tls();
	engine_untrusted(&engine, "is somebody else");
	assert_closed(0, "4.7.10");
	assert_true(engine.unfit);
}

/* What it said before TLS does not count. */
static void mail_that_must_be_handed_on_under_tls_needs_a_host_that_does_so(void **state)
{
	(void)state;
	greet_and_begin_tls();
	engine_secured(&engine);
	hears("EHLO me.test\r\n");
	says("250-mx\r\n250 SIZE\r\n");
	assert_closed(0, "4.7.30");
	assert_true(engine.unfit);
}

static void mail_that_must_be_handed_on_under_tls_needs_a_starttls_that_works(void **state)
{
	(void)state;
	says_hello("250-mx\r\n250-REQUIRETLS\r\n250 STARTTLS\r\n");
	hears("STARTTLS\r\n");
	says("502 5.5.1 not today\r\n");
	assert_closed(0, "4.7.10");
	assert_true(engine.unfit);
	tear_down(state);
	set_up_proven(state);
	greet_and_begin_tls();
	engine_unshaken(&engine, "no version in common");
	assert_closed(0, "4.7.10");
	assert_true(engine.unfit);
	hears("");
}

static void a_starttls_that_fails_by_chance_is_tried_again(void **state)
{
	(void)state;
	says_hello("250-mx\r\n250-REQUIRETLS\r\n250 STARTTLS\r\n");
	hears("STARTTLS\r\n");
	says("454 4.7.0 no keys just now\r\n");
	assert_closed(454, "4.7.0");
	assert_false(engine.unfit);
	tear_down(state);
	set_up_proven(state);
	greet_and_begin_tls();
	engine_lost(&engine, "connection closed");
	assert_closed(0, "4.7.5");
	assert_false(engine.unfit);
}

static void a_host_that_hands_it_on_gets_it(void **state)
{
	(void)state;
	greet_and_begin_tls();
	engine_secured(&engine);
	hears("EHLO me.test\r\n");
	says("250-mx\r\n250 REQUIRETLS\r\n");
	assert_int_equal(engine.state, ENGINE_READY);
	assert_false(engine.unfit);
	struct delivery *d = mail("x", TO("a@test"));
	d->requiretls = true;
	give(d);
	hears("MAIL FROM:<s@test> REQUIRETLS\r\n");
}

static void a_refused_greeting_is_a_deferral_of_the_host(void **state)
{
	(void)state;
	says("554 5.3.2 not here\r\n");
	assert_closed(554, "4.3.2");
	hears("QUIT\r\n");
}

static void a_greeting_of_421_closes(void **state)
{
	(void)state;
	says("421 4.7.0 too many\r\n");
	assert_closed(421, "4.7.0");
}

static void a_greeting_that_is_none_closes(void **state)
{
	(void)state;
	static const char *const odd[] = {"221 x\r\n", "354 x\r\n", "999 x\r\n",   "abc\r\n",
					  "\r\n",      "250 x\r\n", "HTTP/1.1 200"};
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		says(odd[i]);
		assert_closed(0, "4.5.0");
		hears("");
		tear_down(state);
		set_up(state);
	}
}

static void a_greeting_may_have_no_text_and_many_lines(void **state)
{
	(void)state;
	says("220-\r\n220\r\n");
	hears("EHLO me.test\r\n");
}

static void who_does_not_know_ehlo_gets_helo(void **state)
{
	(void)state;
	says("220 mx\r\n");
	hears("EHLO me.test\r\n");
	says("502 what\r\n");
	hears("HELO me.test\r\n");
	says("250 hello\r\n");
	assert_int_equal(engine.state, ENGINE_READY);
	assert_int_equal(engine_depth(&engine), 1);
}

static void a_helo_refused_is_a_deferral_of_the_host(void **state)
{
	(void)state;
	says("220 mx\r\n");
	says("500 what\r\n");
	says("550 5.7.1 your name\r\n");
	assert_closed(550, "4.7.1");
}

static void an_ehlo_of_4xx_is_a_deferral(void **state)
{
	(void)state;
	says("220 mx\r\n");
	says("450 4.3.0 later\r\n");
	assert_closed(450, "4.3.0");
}

static void keywords_are_bounded(void **state)
{
	(void)state;
	says("220 mx\r\n");
	says("250-mx\r\n");
	for (int i = 0; i < 10000 && engine.state != ENGINE_CLOSED; i++)
		says("250-KEYWORD\r\n");
	assert_closed(0, "4.5.0");
}

static void early_replies_are_not_taken_for_answers(void **state)
{
	(void)state;
	if (script_piece == 1)
		return; /* one by one, they can't be told from answers */
	says("220 x\r\n250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n250 ok\r\n");
	assert_closed(0, "4.5.0");
}

static void tls_is_begun_when_offered(void **state)
{
	(void)state;
	says("220 mx\r\n");
	hears("EHLO me.test\r\n");
	says("250-mx\r\n250-PIPELINING\r\n250-SIZE 10\r\n250 STARTTLS\r\n");
	hears("STARTTLS\r\n");
	assert_int_equal(engine_timeout_ms(&engine), 4);
	says("220 go\r\n");
	assert_int_equal(engine.state, ENGINE_HANDSHAKE);
	assert_int_equal(engine_timeout_ms(&engine), 4);
	hears("");
	engine_secured(&engine);
	hears("EHLO me.test\r\n");
	/* What was announced in the clear is forgotten. */
	says("250 mx\r\n");
	assert_int_equal(engine.state, ENGINE_READY);
	assert_false(engine.can.pipelining);
	assert_int_equal(engine.can.size_max, 0);
}

static void tls_is_not_needed_where_it_is_only_wished_for(void **state)
{
	(void)state;
	says("220 mx\r\n");
	says(PIPELINED);
	assert_int_equal(engine.state, ENGINE_READY);
}

static void replies_injected_before_tls_close(void **state)
{
	(void)state;
	if (script_piece == 1)
		return;
	says("220 mx\r\n");
	says("250-mx\r\n250 STARTTLS\r\n");
	says("220 go\r\n250-x\r\n250 AUTH\r\n");
	assert_closed(0, "4.5.0");
	assert_false(engine.try_plain);
}

static void starttls_that_fails(const char *reply, bool try_plain, int code, const char *dsn)
{
	says("220 mx\r\n");
	says("250-mx\r\n250 STARTTLS\r\n");
	if (reply)
		says(reply);
	else
		engine_lost(&engine, "connection closed");
	assert_closed(code, dsn);
	assert_int_equal(engine.try_plain, try_plain);
}

static void a_starttls_that_fails_may_be_done_without(void **state)
{
	static const struct {
		const char *reply;
		int code;
		const char *dsn;
	} ways[] = {{"454 4.7.0 not now\r\n", 454, "4.7.0"},
		    {"501 no\r\n", 501, "4.7.4"},
		    {"what\r\n", 0, "4.5.0"},
		    {NULL, 0, "4.4.2"}};
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		starttls_that_fails(ways[i].reply, true, ways[i].code, ways[i].dsn);
		tear_down(state);
		set_up_may(state);
	}
}

static void a_starttls_that_fails_and_is_required_is_a_deferral(void **state)
{
	starttls_that_fails("454 not now\r\n", false, 454, "4.7.4");
	tear_down(state);
	set_up_must(state);
	starttls_that_fails(NULL, false, 0, "4.4.2");
}

static void a_handshake_that_fails(void **state)
{
	for (int must = 0; must < 2; must++) {
		tear_down(state);
		open_with(must ? TRANSPORT_TLS_REQUIRED : TRANSPORT_TLS_OPPORTUNISTIC);
		says("220 mx\r\n");
		says("250-mx\r\n250 STARTTLS\r\n");
		says("220 go\r\n");
		engine_lost(&engine, "TLS: bad certificate");
		assert_closed(0, "4.7.5");
		assert_int_equal(engine.try_plain, !must);
	}
}

static void a_host_without_the_required_tls_gets_no_mail(void **state)
{
	(void)state;
	says("220 mx\r\n");
	hears("EHLO me.test\r\n");
	says(PIPELINED);
	assert_closed(0, "4.7.4");
	hears("QUIT\r\n");
}

static void a_greeting_that_never_comes_is_a_deferral(void **state)
{
	(void)state;
	says("220-slow");
	engine_expired(&engine);
	assert_closed(0, "4.4.2");
}

static void is_refused_without_tls(const char *ehlo, bool spared, enum verdict_class class)
{
	engine.setup.spared_tls = spared;
	says_hello(ehlo);
	give(mail("x\r\n", TO("a@test")));
	hears("MAIL FROM:<s@test>\r\n");
	says("530 5.7.0 Must issue a STARTTLS command first\r\n");
	assert_verdict(back(), 0, class, 530);
	assert_int_equal(taken->wants_tls, class == VERDICT_DEFERRED);
}

static void a_refusal_for_want_of_the_tls_that_failed_is_a_deferral(void **state)
{
	(void)state;
	is_refused_without_tls("250-mx\r\n250 STARTTLS\r\n", true, VERDICT_DEFERRED);
	assert_string_equal(taken->rcpt[0].verdict->dsn, "4.7.0");
	hears("QUIT\r\n");
}

static void a_refusal_for_want_of_tls_that_is_not_there_or_not_wanted_is_one(void **state)
{
	(void)state;
	is_refused_without_tls("250 mx\r\n", true, VERDICT_FAILED);
	tear_down(state);
	set_up(state);
	is_refused_without_tls("250-mx\r\n250 STARTTLS\r\n", false, VERDICT_FAILED);
}

#define T_PROVEN(name) cmocka_unit_test_setup_teardown(name, set_up_proven, tear_down)
#define T_MAY(test) cmocka_unit_test_setup_teardown(test, set_up_may, tear_down)
#define T_MUST(test) cmocka_unit_test_setup_teardown(test, set_up_must, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_refused_greeting_is_a_deferral_of_the_host),
		T(a_greeting_of_421_closes),
		T(a_greeting_that_is_none_closes),
		T(a_greeting_may_have_no_text_and_many_lines),
		T(who_does_not_know_ehlo_gets_helo),
		T(a_helo_refused_is_a_deferral_of_the_host),
		T(an_ehlo_of_4xx_is_a_deferral),
		T(keywords_are_bounded),
		T(early_replies_are_not_taken_for_answers),
		T_PROVEN(mail_that_must_be_handed_on_under_tls_needs_tls),
		T_PROVEN(mail_that_must_be_handed_on_under_tls_needs_a_host_that_is_proven),
		T_PROVEN(mail_that_must_be_handed_on_under_tls_needs_a_host_that_does_so),
		T_PROVEN(mail_that_must_be_handed_on_under_tls_needs_a_starttls_that_works),
		T_PROVEN(a_starttls_that_fails_by_chance_is_tried_again),
		T_PROVEN(a_host_that_hands_it_on_gets_it),
		T_MAY(tls_is_begun_when_offered),
		T_MAY(tls_is_not_needed_where_it_is_only_wished_for),
		T_MAY(replies_injected_before_tls_close),
		T_MAY(a_starttls_that_fails_may_be_done_without),
		T_MUST(a_starttls_that_fails_and_is_required_is_a_deferral),
		T_MAY(a_handshake_that_fails),
		T_MUST(a_host_without_the_required_tls_gets_no_mail),
		T(a_refusal_for_want_of_the_tls_that_failed_is_a_deferral),
		T(a_refusal_for_want_of_tls_that_is_not_there_or_not_wanted_is_one),
		T(a_greeting_that_never_comes_is_a_deferral),
	};
	return RUN_TWICE(tests);
}
