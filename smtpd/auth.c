/* SPDX-License-Identifier: ISC */
#include "smtpd/auth.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "smtpd/auth_check.h"
#include "smtpd/command.h"
#include "smtpd/dovecot.h"
#include "smtpd/failures.h"
#include "smtpd/limit_check.h"
#include "smtpd/sasl.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct auth {
	enum mechanism mechanism;
	int64_t said_ms;   /* steady clock: when the client said its last word */
	struct sasl *sasl; /* of the users' file; or NULL, and then */
	struct dovecot *dovecot;
	uint32_t exchange; /* with it; 0: none yet */
	char *login;	   /* as it has named the user */
};

static const struct {
	const char *text;
	enum response response;
} outcomes[] = {
#define O(name, text, response) {text, RESPONSE_##response},
	AUTH_OUTCOMES(O)
#undef O
};

static const struct conf_auth *auth_settings(const struct session *s)
{
	return &s->service->conf->auth;
}

bool auth_in_clear(const struct session *s)
{
	bool required = s->service->listener->tls == LISTENER_TLS_REQUIRED;
	return !s->tls && (required || auth_settings(s)->require_tls);
}

static bool is_listed(const struct session *s, enum mechanism m)
{
	const struct conf_list *l = &auth_settings(s)->mechanisms;
	for (int i = 0; i < l->n; i++)
		if (mechanism_find(l->item[i]) == m)
			return true;
	return false;
}

static bool is_possible(const struct session *s, enum mechanism m)
{
	const struct mechanism_row *row = mechanism_row(m);
	if (*auth_settings(s)->dovecot)
		return dovecot_can(s->worker->dovecot, m);
	return !row->token && (!row->plus || (s->tls && sasl_can_bind(stream_ssl(s->stream))));
}

bool auth_offered(const struct session *s, enum mechanism m)
{
	return s->service->listener->auth && !auth_in_clear(s) && is_listed(s, m) &&
	       is_possible(s, m);
}

void auth_announce(const struct session *s, struct buf *to)
{
	const struct conf_list *l = &auth_settings(s)->mechanisms;
	bool any = false;
	for (int i = 0; s->service->listener->auth && !s->login && i < l->n; i++) {
		enum mechanism m = mechanism_find(l->item[i]);
		if (!auth_offered(s, m))
			continue;
		buf_printf(to, "%s %s", any ? "" : "250-AUTH", mechanism_row(m)->name);
		any = true;
	}
	if (any)
		buf_puts(to, "\r\n");
}

static void log_outcome(const struct session *s, enum auth_outcome o, const char *login,
			int failures)
{
	char client[64];
	const char *mechanism = mechanism_row(s->auth->mechanism)->name;
	metric_cell_add(metric_cell(FAMILY_auth, outcomes[o].text, mechanism), 1);
	log_event(LOG_LEVEL_INFO, "auth", "session", log_id(s->number), "client",
		  address_text(&s->peer, client), "login", login, "mechanism", mechanism, "result",
		  outcomes[o].text, "failures", failures ? log_number(failures) : NULL, NULL);
}

/* The exchange is over. */
static void end_exchange(struct session *s, enum response r)
{
	auth_free(&s->auth);
	session_reply(s, r, s->service->hostname);
	session_move(s, SESSION_READY);
}

static void tell_wrong(struct session *s)
{
	int64_t limit = auth_settings(s)->failure_limit;
	s->errors++;
	if (limit && ++s->auth_failures >= limit)
		session_close(s, RESPONSE_AUTH_LIMIT);
	else
		end_exchange(s, RESPONSE_AUTH_FAILED);
}

static void count_wrong(struct session *s, enum auth_outcome o, const char *login)
{
	static const struct wait_kind kind = {
		.text = "failure_delay", .expired = tell_wrong, .pause = true};
	int64_t now = clock_steady_ms();
	int failures = failures_note(s->worker->failures, &s->peer, login, now);
	int64_t until =
		s->auth->said_ms + failures_delay(auth_settings(s)->failure_delay, failures);
	log_outcome(s, o, login, failures);
	limit_check_event(s, LIMITER_FAILED, login, 0);
	if (until > now && !s->worker->closing)
		wait_begin(s, &kind, until - now);
	else
		tell_wrong(s);
}

static void finish_exchange(struct session *s, enum auth_outcome o)
{
	const char *login = s->auth->sasl ? sasl_login(s->auth->sasl) : s->auth->login;
	if (o == AUTH_OUTCOME_WRONG || o == AUTH_OUTCOME_DISABLED) {
		count_wrong(s, o, login);
		return;
	}
	log_outcome(s, o, login, 0);
	if (o == AUTH_OUTCOME_OK) {
		assert(!s->login);
		s->login = mem_strdup(login);
		s->mechanism = mechanism_row(s->auth->mechanism)->name;
		s->auth_failures = 0;
		limit_check_event(s, LIMITER_LOGGED_IN, login, 0);
		stream_secret(s->stream, false);
	} else {
		s->errors++;
	}
	end_exchange(s, outcomes[o].response);
}

static void heard_pool(struct session *s, void *answer)
{
	const struct auth_check *c = answer;
	if (!c->done)
		finish_exchange(s, AUTH_OUTCOME_AWAY);
	else
		finish_exchange(s, c->right ? AUTH_OUTCOME_OK : AUTH_OUTCOME_WRONG);
}

static void pool_is_late(struct session *s)
{
	finish_exchange(s, AUTH_OUTCOME_AWAY);
}

static void check_password(struct session *s)
{
	static const struct wait_kind kind = {
		.text = "password", .answered = heard_pool, .expired = pool_is_late};
	struct auth_check *c = auth_check_new(s->worker->loop);
	c->known = sasl_password(s->auth->sasl, &c->user, &c->password);
	uint64_t cookie = wait_begin(s, &kind, auth_settings(s)->timeout);
	c->answer.cookie = cookie;
	if (!auth_check_give(s->worker->pool, c)) {
		wait_cancel(s);
		finish_exchange(s, AUTH_OUTCOME_BUSY);
	}
}

static void send_challenge(struct session *s, const struct buf *text)
{
	struct buf *out = stream_out(s->stream);
	buf_puts(out, "334 ");
	if (buf_len(text) > 0)
		base64_encode(out, buf_data(text), buf_len(text));
	buf_puts(out, "\r\n");
	session_move(s, SESSION_AUTH);
}

static void act_on_mechanism(struct session *s, enum sasl_outcome outcome, const struct buf *said)
{
	switch (outcome) {
	case SASL_CHALLENGE:
		send_challenge(s, said);
		break;
	case SASL_PASSWORD:
		check_password(s);
		break;
	case SASL_DONE:
		finish_exchange(s, AUTH_OUTCOME_OK);
		break;
	case SASL_WRONG:
		finish_exchange(s, AUTH_OUTCOME_WRONG);
		break;
	case SASL_MALFORMED:
		finish_exchange(s, AUTH_OUTCOME_MALFORMED);
	}
}

static void cancel_dovecot(struct session *s)
{
	dovecot_cancel(s->auth->dovecot, s->auth->exchange);
}

static void dovecot_is_late(struct session *s)
{
	cancel_dovecot(s);
	finish_exchange(s, AUTH_OUTCOME_AWAY);
}

static void heard_dovecot(struct session *s, void *answer)
{
	static const enum auth_outcome means[] = {
		[DOVECOT_OK] = AUTH_OUTCOME_OK,
		[DOVECOT_WRONG] = AUTH_OUTCOME_WRONG,
		[DOVECOT_DISABLED] = AUTH_OUTCOME_DISABLED,
		[DOVECOT_EXPIRED] = AUTH_OUTCOME_EXPIRED,
		[DOVECOT_AWAY] = AUTH_OUTCOME_AWAY,
		[DOVECOT_SUSPENDED] = AUTH_OUTCOME_SUSPENDED,
	};
	const struct dovecot_answer *a = answer;
	if (a->user) {
		free(s->auth->login);
		s->auth->login = mem_strdup(a->user);
	}
	if (a->outcome == DOVECOT_CONTINUE) {
		buf_printf(stream_out(s->stream), "334 %s\r\n", a->challenge);
		session_move(s, SESSION_AUTH);
	} else {
		finish_exchange(s, means[a->outcome]);
	}
}

static bool ask_dovecot(struct session *s, uint64_t cookie, const char *text)
{
	union address local;
	struct auth *a = s->auth;
	if (a->exchange)
		return dovecot_go_on(a->dovecot, a->exchange, cookie, text ? text : "");
	stream_local(s->stream, &local);
	struct dovecot_question q = {.mechanism = a->mechanism,
				     .initial = text,
				     .secured = s->tls,
				     .client = &s->peer,
				     .local = &local,
				     .cookie = cookie};
	a->exchange = dovecot_ask(a->dovecot, &q);
	return a->exchange != 0;
}

static void step_dovecot(struct session *s, const char *text)
{
	static const struct wait_kind kind = {.text = "dovecot",
					      .answered = heard_dovecot,
					      .expired = dovecot_is_late,
					      .ended = cancel_dovecot};
	uint64_t cookie = wait_begin(s, &kind, auth_settings(s)->timeout);
	if (!ask_dovecot(s, cookie, text)) {
		wait_cancel(s);
		finish_exchange(s, AUTH_OUTCOME_AWAY);
	}
}

/* The client's words in base64; NULL: none were asked for yet. */
static void step_exchange(struct session *s, const char *text, size_t len)
{
	struct buf in = {0}, out = {0};
	buf_reserve(&in, COMMAND_AUTH_MAX);
	s->auth->said_ms = clock_steady_ms();
	if (!base64_decode(&in, text ? text : "", len))
		finish_exchange(s, AUTH_OUTCOME_MALFORMED);
	else if (s->auth->dovecot)
		step_dovecot(s, text);
	else
		act_on_mechanism(s, sasl_step(s->auth->sasl, buf_data(&in), buf_len(&in), &out),
				 &out);
	buf_wipe(&in);
	buf_wipe(&out);
}

/* With the first question, which is answered before it is asked, where that is LOGIN's. */
static bool begin_sasl(struct session *s, enum mechanism m, bool answered)
{
	struct buf unused = {0};
	bool plus = auth_offered(s, m == MECHANISM_SCRAM_SHA_1 ? MECHANISM_SCRAM_SHA_1_PLUS
							       : MECHANISM_SCRAM_SHA_256_PLUS);
	s->auth->sasl = sasl_new(&s->worker->gsasl, m, s->worker->conf->tables,
				 s->tls ? stream_ssl(s->stream) : NULL, plus);
	if (s->auth->sasl && answered && m == MECHANISM_LOGIN)
		sasl_step(s->auth->sasl, "", 0, &unused);
	buf_fini(&unused);
	return s->auth->sasl != NULL;
}

void auth_begin(struct session *s, enum mechanism m, const char *initial)
{
	assert(!s->auth);
	if (initial && strcmp(initial, "=") == 0)
		initial = "";
	s->auth = mem_zalloc(sizeof *s->auth);
	s->auth->mechanism = m;
	if (*auth_settings(s)->dovecot)
		s->auth->dovecot = s->worker->dovecot;
	else if (!begin_sasl(s, m, initial && *initial)) {
		finish_exchange(s, AUTH_OUTCOME_AWAY);
		return;
	}
	step_exchange(s, initial, initial ? strlen(initial) : 0);
}

void auth_line(struct session *s, const char *line, size_t len)
{
	assert(s->state == SESSION_AUTH && s->auth);
	if (len == 1 && line[0] == '*')
		finish_exchange(s, AUTH_OUTCOME_CANCELLED);
	else
		step_exchange(s, line, len);
}

void auth_too_long(struct session *s)
{
	finish_exchange(s, AUTH_OUTCOME_TOO_LONG);
}

void auth_free(struct auth **ap)
{
	struct auth *a = *ap;
	if (!a)
		return;
	sasl_free(&a->sasl);
	if (a->dovecot)
		dovecot_cancel(a->dovecot, a->exchange);
	free(a->login);
	free(a);
	*ap = NULL;
}
