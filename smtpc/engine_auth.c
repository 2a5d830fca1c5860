/* SPDX-License-Identifier: ISC */
/*	AUTH mechanism [initial response], then lines in answer to 334		RFC 4954 4
 *
 * No login goes to a host that has not proven who it is, unless the row of credentials waives that.
 *
 * A host at which we are to log in gets no mail before. What it refuses for good (5xx), or can't do as it
 * is set up, is the login's fault, not the mail's: closed, and said so (login_refused). 4xx passes.
 * A password or token that was put out is overwritten as soon as the host has answered.
 */
#include "smtpc/engine_impl.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <string.h>

/* RFC 4954 4: a longer line waits for the host to ask. */
enum { INITIAL_MAX = 500 };

static bool is_private(const struct engine *e)
{
	return e->secure || e->setup.local || e->setup.login->clear;
}

/* TLS with a stranger in the middle is as good as none. */
static bool is_meant(const struct engine *e)
{
	return e->proven || e->setup.local || e->setup.login->clear || e->setup.login->unproven;
}

static void give_up_login(struct engine *e, struct verdict *why)
{
	e->login_refused = true;
	engine_leave(e, why);
}

static struct verdict *without_proof(const struct engine *e)
{
	if (!is_private(e))
		return verdict_printf(VERDICT_DEFERRED, 0, "4.7.11", e->setup.peer,
				      "%s is without TLS, and the credentials are not for "
				      "sending in clear",
				      e->setup.peer);
	return verdict_printf(VERDICT_DEFERRED, 0, "4.7.5", e->setup.peer,
			      "%s has not proven who it is, and no login is sent without that",
			      e->setup.peer);
}

static bool choose_mechanism(struct engine *e)
{
	const struct engine_login *l = e->setup.login;
	bool binding = e->secure && e->sasl_setup.binding.text[0];
	enum sasl_mechanism m = sasl_client_choose(e->can.auth, l->token, binding);
	if (!is_private(e) || !is_meant(e)) {
		give_up_login(e, without_proof(e));
		return false;
	}
	if (m != SASL_NONE) {
		e->sasl_setup.context = l->context;
		e->sasl_setup.login = l->login;
		e->sasl_setup.secret = l->secret;
		e->sasl_setup.token = l->token;
		e->sasl = sasl_client_new(&e->sasl_setup, m);
		e->mechanism = m;
		return true;
	}
	give_up_login(e, verdict_printf(VERDICT_DEFERRED, 0, "4.7.4", e->setup.peer,
					"%s offers no way to log in with a %s", e->setup.peer,
					l->token ? "token" : "password"));
	return false;
}

/* Put the next line of the exchange. False: it has failed. */
static bool step_exchange(struct engine *e, const char *challenge)
{
	if (sasl_client_step(e->sasl, challenge, &e->response))
		return true;
	give_up_login(e,
		      verdict_printf(VERDICT_DEFERRED, 0, "4.7.0", e->setup.peer,
				     "%s: AUTH %s failed: %s", e->setup.peer,
				     sasl_client_name(e->mechanism), sasl_client_error(e->sasl)));
	return false;
}

static void say_line(struct engine *e, struct buf *line)
{
	assert(is_private(e) && is_meant(e));
	buf_reserve(e->out, buf_len(line) + 2);
	engine_say(e, buf_cstr(line), (struct expected){.kind = EXPECTED_AUTH});
	buf_wipe(line);
}

static void say_first(struct engine *e)
{
	struct buf line = {0};
	bool initial = buf_len(&e->response) > 0 && buf_len(&e->response) <= INITIAL_MAX;
	buf_reserve(&line, INITIAL_MAX + 64);
	buf_printf(&line, "AUTH %s", sasl_client_name(e->mechanism));
	if (initial) {
		buf_puts(&line, " ");
		buf_append(&line, buf_data(&e->response), buf_len(&e->response));
		buf_wipe(&e->response);
	}
	say_line(e, &line);
}

void engine_say_auth(struct engine *e)
{
	if (expected_first(&e->expected))
		return;
	if (e->sasl)
		say_line(e, &e->response);
	else if (choose_mechanism(e) && step_exchange(e, NULL))
		say_first(e);
}

/* The bytes behind the consumed part of out were a secret. */
static void wipe_secret(struct engine *e)
{
	if (buf_len(e->out) == 0 && e->out->data)
		OPENSSL_cleanse(e->out->data, e->out->cap);
}

void engine_end_auth(struct engine *e)
{
	sasl_client_free(&e->sasl);
	buf_wipe(&e->response);
}

static void refuse_login(struct engine *e)
{
	e->login_refused = e->reply.code / 100 == 5;
	engine_refused(e, e->login_refused ? "4.7.8" : "4.7.0");
}

static void answer_challenge(struct engine *e)
{
	char text[REPLY_TEXT_MAX + 1];
	reply_text(&e->reply, text);
	if (buf_len(&e->response) == 0) /* else it is the initial response that it waits for */
		step_exchange(e, text);
}

static void end_login(struct engine *e)
{
	if (!sasl_client_over(e->sasl)) {
		give_up_login(e,
			      verdict_printf(VERDICT_DEFERRED, 0, "4.7.0", e->setup.peer,
					     "%s lets us in, but has not shown that it knows the "
					     "password",
					     e->setup.peer));
		return;
	}
	engine_end_auth(e);
	engine_move(e, ENGINE_READY);
}

void engine_on_auth(struct engine *e, const struct expected *x)
{
	wipe_secret(e);
	if (e->reply.code == 334)
		answer_challenge(e);
	else if (e->reply.code == 235)
		end_login(e);
	else if (engine_negative(e->reply.code))
		refuse_login(e);
	else
		engine_unexpected(e, x);
}
