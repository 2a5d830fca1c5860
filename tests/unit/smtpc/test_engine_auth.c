/* SPDX-License-Identifier: ISC */
/* The other side of each exchange is GNU SASL's server, or played by hand. */
#include "tests/unit/smtpc/script.h"

#include <gsasl.h>
#include <stdio.h>

#define BEARER "dXNlcj1hbm4BYXV0aD1CZWFyZXIgdG9rAQE=" /* user=ann^Aauth=Bearer tok^A^A */
#define OAUTH "bixhPWFubiwBYXV0aD1CZWFyZXIgdG9rAQE="  /* n,a=ann,^Aauth=Bearer tok^A^A */
#define PLAIN_ANN "AGFubgBzZWNyZXQ="		      /* ^@ann^@secret */

static struct engine_login as;
static Gsasl *context, *host;
static Gsasl_session *session;
static const char *known; /* the password that the host knows */
static struct sasl_binding binding;
static int rounds;
static bool proven = true;

static int supply(Gsasl *g, Gsasl_session *s, Gsasl_property p)
{
	char count[16];
	(void)g;
	switch (p) {
	case GSASL_PASSWORD:
		return gsasl_property_set(s, p, known);
	case GSASL_SCRAM_ITER:
		snprintf(count, sizeof count, "%d", rounds);
		return gsasl_property_set(s, p, count);
	case GSASL_CB_TLS_EXPORTER:
		return binding.exporter && *binding.text ? gsasl_property_set(s, p, binding.text)
							 : GSASL_NO_CALLBACK;
	case GSASL_CB_TLS_UNIQUE:
		return !binding.exporter && *binding.text ? gsasl_property_set(s, p, binding.text)
							  : GSASL_NO_CALLBACK;
	case GSASL_VALIDATE_SIMPLE:
		return strcmp(gsasl_property_fast(s, GSASL_AUTHID), "ann") == 0 &&
				       strcmp(gsasl_property_fast(s, GSASL_PASSWORD), known) == 0
			       ? GSASL_OK
			       : GSASL_AUTHENTICATION_ERROR;
	default:
		return GSASL_NO_CALLBACK;
	}
}

static void open_as(bool token, bool clear)
{
	tear_down(NULL);
	as = (struct engine_login){context, "ann", token ? "tok" : "secret", token, clear, false};
	login = &as;
	open_with(TRANSPORT_TLS_REQUIRED);
}

/* Up to AUTH, under TLS. */
static void greet_secure(const char *auth)
{
	char ehlo[300];
	says("220 mx.test\r\n");
	sent();
	says("250-mx.test\r\n250 STARTTLS\r\n");
	hears("STARTTLS\r\n");
	says("220 go\r\n");
	engine.sasl_setup.binding = binding;
	engine.proven = proven;
	engine_secured(&engine);
	sent();
	snprintf(ehlo, sizeof ehlo, "250-mx.test\r\n250 AUTH %s\r\n", auth);
	says(ehlo);
}

/* The exchange to its end, with the real server. */
static void play(const char *name)
{
	char line[4096], *answer = NULL;
	int how = GSASL_NEEDS_MORE;
	assert_int_equal(gsasl_server_start(host, name, &session), GSASL_OK);
	snprintf(line, sizeof line, "AUTH %s ", name);
	bool initial = strncmp(buf_cstr(&out), line, strlen(line)) == 0;
	const char *said = buf_cstr(&out) + (initial ? strlen(line) : 0);
	if (!initial)
		said = "";
	for (;;) {
		char response[4096];
		snprintf(response, sizeof response, "%.*s", (int)strcspn(said, "\r\n"), said);
		sent();
		how = gsasl_step64(session, response, &answer);
		if (how != GSASL_OK && how != GSASL_NEEDS_MORE)
			break;
		if (how == GSASL_OK && (!answer || !*answer)) {
			gsasl_free(answer);
			break;
		}
		snprintf(line, sizeof line, "334 %s\r\n", answer);
		gsasl_free(answer);
		answer = NULL;
		says(line);
		if (engine.state == ENGINE_CLOSED || how == GSASL_OK)
			break;
		said = buf_cstr(&out);
	}
	gsasl_finish(session);
	if (engine.state == ENGINE_CLOSED)
		return;
	says(how == GSASL_OK ? "235 2.7.0 welcome\r\n" : "535 5.7.8 wrong\r\n");
}

static void the_strongest_that_both_have_is_taken(void **state)
{
	static const struct {
		const char *offered, *taken;
		bool bound;
	} cases[] = {
		{"LOGIN PLAIN", "PLAIN", false},
		{"LOGIN", "LOGIN", false},
		{"PLAIN SCRAM-SHA-1 CRAM-MD5", "SCRAM-SHA-1", false},
		{"SCRAM-SHA-1 SCRAM-SHA-256 PLAIN", "SCRAM-SHA-256", false},
		{"SCRAM-SHA-256-PLUS SCRAM-SHA-256", "SCRAM-SHA-256", false},
		{"PLAIN SCRAM-SHA-256", "SCRAM-SHA-256", true},
		{"SCRAM-SHA-1-PLUS SCRAM-SHA-256", "SCRAM-SHA-1-PLUS", true},
		{"SCRAM-SHA-1-PLUS SCRAM-SHA-256-PLUS", "SCRAM-SHA-256-PLUS", true},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		open_as(false, false);
		binding = (struct sasl_binding){true, ""};
		if (cases[i].bound)
			snprintf(binding.text, sizeof binding.text, "YmluZGluZw==");
		greet_secure(cases[i].offered);
		play(cases[i].taken);
		assert_int_equal(engine.state, ENGINE_READY);
		assert_string_equal(sasl_client_name(engine.mechanism), cases[i].taken);
	}
}

static void a_binding_of_another_connection_does_not_do(void **state)
{
	(void)state;
	open_as(false, false);
	binding = (struct sasl_binding){true, "YmluZGluZw=="};
	greet_secure("SCRAM-SHA-256-PLUS");
	binding = (struct sasl_binding){true, "b3RoZXI="};
	play("SCRAM-SHA-256-PLUS");
	assert_closed(535, "4.7.8");
	assert_true(engine.login_refused);
}

static void a_wrong_password_is_the_logins_fault(void **state)
{
	(void)state;
	open_as(false, false);
	known = "other";
	greet_secure("SCRAM-SHA-256");
	play("SCRAM-SHA-256");
	known = "secret";
	assert_closed(535, "4.7.8");
	assert_true(engine.login_refused);
	assert_string_equal(engine.why->text, "5.7.8 wrong");
	hears("QUIT\r\n");
}

/* Whoever lets us in without the proof that it knows the password is somebody else. */
static void a_host_must_prove_that_it_knows_the_password(void **state)
{
	(void)state;
	open_as(false, false);
	greet_secure("SCRAM-SHA-256");
	says("235 2.7.0 come in\r\n");
	assert_closed(0, "4.7.0");
	assert_true(engine.login_refused);
}

static void a_host_that_wants_hashing_without_end_is_refused(void **state)
{
	(void)state;
	open_as(false, false);
	rounds = SASL_ITERATIONS_MAX + 1;
	greet_secure("SCRAM-SHA-256");
	play("SCRAM-SHA-256");
	rounds = 4096;
	assert_closed(0, "4.7.0");
	assert_true(engine.login_refused);
}

static void what_passes_is_no_fault_of_the_login(void **state)
{
	static const char *const replies[] = {"454 4.7.0 later\r\n", "421 4.3.2 bye\r\n"};
	(void)state;
	for (int i = 0; i < 2; i++) {
		open_as(false, false);
		greet_secure("PLAIN");
		hears("AUTH PLAIN " PLAIN_ANN "\r\n");
		says(replies[i]);
		assert_int_equal(engine.state, ENGINE_CLOSED);
		assert_false(engine.login_refused);
		assert_int_equal(engine.why->class, VERDICT_DEFERRED);
	}
}

static void nothing_is_said_in_clear(void **state)
{
	(void)state;
	open_as(false, false);
	says("220 mx.test\r\n");
	sent();
	says("250-mx.test\r\n250 AUTH PLAIN\r\n");
	hears("QUIT\r\n");
	assert_closed(0, "4.7.4");
	tear_down(NULL);
	open_with(TRANSPORT_TLS_NONE);
	says("220 mx.test\r\n");
	sent();
	says("250-mx.test\r\n250 AUTH PLAIN\r\n");
	hears("QUIT\r\n");
	assert_closed(0, "4.7.11");
	assert_true(engine.login_refused);
}

static void unless_the_credentials_say_so_or_nobody_listens(void **state)
{
	(void)state;
	for (int local = 0; local < 2; local++) {
		open_as(false, !local);
		tear_down(NULL);
		open_with(TRANSPORT_TLS_NONE);
		engine.setup.local = local;
		says("220 mx.test\r\n");
		sent();
		says("250-mx.test\r\n250 AUTH=PLAIN LOGIN\r\n");
		hears("AUTH PLAIN " PLAIN_ANN "\r\n");
		says("235 ok\r\n");
		assert_int_equal(engine.state, ENGINE_READY);
	}
}

static void nothing_is_said_to_who_has_not_proven_who_it_is(void **state)
{
	(void)state;
	for (int waived = 0; waived < 2; waived++) {
		open_as(false, false);
		as.unproven = waived;
		proven = false;
		greet_secure("PLAIN");
		proven = true;
		if (waived) {
			hears("AUTH PLAIN " PLAIN_ANN "\r\n");
			continue;
		}
		hears("QUIT\r\n");
		assert_closed(0, "4.7.5");
	}
}

static void a_host_without_a_way_to_log_in_is_not_sent_to(void **state)
{
	(void)state;
	open_as(true, false);
	greet_secure("PLAIN SCRAM-SHA-256");
	hears("QUIT\r\n");
	assert_closed(0, "4.7.4");
	assert_true(engine.login_refused);
}

static void tokens_go_by_what_the_host_offers(void **state)
{
	(void)state;
	open_as(true, false);
	greet_secure("XOAUTH2 PLAIN");
	hears("AUTH XOAUTH2 " BEARER "\r\n");
	says("235 2.7.0 ok\r\n");
	assert_int_equal(engine.state, ENGINE_READY);
	open_as(true, false);
	greet_secure("XOAUTH2 OAUTHBEARER");
	hears("AUTH OAUTHBEARER " OAUTH "\r\n");
	says("235 2.7.0 ok\r\n");
	assert_int_equal(engine.state, ENGINE_READY);
}

static void a_refused_token_is_answered_before_it_is_refused(void **state)
{
	(void)state;
	open_as(true, false);
	greet_secure("OAUTHBEARER");
	sent();
	says("334 eyJzdGF0dXMiOiJpbnZhbGlkX3Rva2VuIn0=\r\n");
	hears("AQ==\r\n");
	says("535 5.7.8 expired\r\n");
	assert_true(engine.login_refused);
	open_as(true, false);
	greet_secure("XOAUTH2");
	sent();
	says("334 eyJzdGF0dXMiOiI0MDAifQ==\r\n");
	hears("\r\n");
	says("334 again\r\n");
	assert_int_equal(engine.state, ENGINE_CLOSED);
}

/* RFC 4954 4: the line would be too long. */
static void a_long_token_waits_to_be_asked_for(void **state)
{
	char token[2001];
	(void)state;
	memset(token, 't', sizeof token - 1);
	token[sizeof token - 1] = '\0';
	open_as(true, false);
	as.secret = token;
	greet_secure("XOAUTH2");
	hears("AUTH XOAUTH2\r\n");
	says("334 \r\n");
	assert_true(buf_len(&out) > 2600);
	sent();
	says("235 ok\r\n");
	assert_int_equal(engine.state, ENGINE_READY);
}

static void garbage_is_no_challenge(void **state)
{
	static const char *const replies[] = {"334 !!!\r\n", "334\r\n", "334 cj0xLHM9MQ==\r\n",
					      "354 go\r\n", "250 ok\r\n"};
	(void)state;
	for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
		open_as(false, false);
		greet_secure("SCRAM-SHA-1");
		sent();
		says(replies[i]);
		assert_int_equal(engine.state, ENGINE_CLOSED);
		assert_int_equal(engine.why->class, VERDICT_DEFERRED);
	}
}

static void who_asks_on_behind_the_end_is_given_up(void **state)
{
	(void)state;
	open_as(false, false);
	greet_secure("PLAIN");
	hears("AUTH PLAIN " PLAIN_ANN "\r\n");
	says("334 \r\n");
	hears("\r\n");
	says("334 \r\n");
	assert_int_equal(engine.state, ENGINE_CLOSED);
	assert_true(engine.login_refused);
	assert_non_null(strstr(engine.why->text, "it asks again for what was said"));
}

static int set_up_all(void **state)
{
	rounds = 4096;
	known = "secret";
	login = NULL;
	memset(&binding, 0, sizeof binding);
	context = sasl_client_context();
	gsasl_init(&host);
	gsasl_callback_set(host, supply);
	return set_up(state);
}

static int tear_down_all(void **state)
{
	int done = tear_down(state);
	login = NULL;
	sasl_client_context_free(context);
	gsasl_done(host);
	return done;
}

#define A(test) cmocka_unit_test_setup_teardown(test, set_up_all, tear_down_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		A(the_strongest_that_both_have_is_taken),
		A(a_binding_of_another_connection_does_not_do),
		A(a_wrong_password_is_the_logins_fault),
		A(a_host_must_prove_that_it_knows_the_password),
		A(a_host_that_wants_hashing_without_end_is_refused),
		A(what_passes_is_no_fault_of_the_login),
		A(nothing_is_said_in_clear),
		A(unless_the_credentials_say_so_or_nobody_listens),
		A(nothing_is_said_to_who_has_not_proven_who_it_is),
		A(a_host_without_a_way_to_log_in_is_not_sent_to),
		A(tokens_go_by_what_the_host_offers),
		A(a_refused_token_is_answered_before_it_is_refused),
		A(a_long_token_waits_to_be_asked_for),
		A(garbage_is_no_challenge),
		A(who_asks_on_behind_the_end_is_given_up),
	};
	return RUN_TWICE(tests);
}
