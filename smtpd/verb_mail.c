/* SPDX-License-Identifier: ISC */
/*	mail	   = "MAIL FROM:" Reverse-path [SP Mail-parameters] CRLF	RFC 5321 4.1.1.2
 *	parameters = SIZE=digits		RFC 1870
 *		     BODY=7BIT / 8BITMIME	RFC 6152
 *		     SMTPUTF8			RFC 6531
 *		     RET=FULL / HDRS, ENVID=xtext	RFC 3461
 *		     AUTH=<> / xtext			RFC 4954 5
 *		     REQUIRETLS			RFC 8689 2
 *		     BY=seconds;N / R [T]	RFC 2852 4
 *		     MT-PRIORITY=[-]digit	RFC 6710 4
 *		     HOLDFOR=seconds		RFC 4865 4
 *		     HOLDUNTIL=date-time	the same; RFC 3339 5.6
 */
#include "smtpd/command.h"
#include "smtpd/reception.h"

#include "base/clock.h"
#include "base/date.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "smtpd/access.h"
#include "smtpd/addressing.h"
#include "smtpd/filtering.h"
#include "smtpd/limit_check.h"
#include "smtpd/param.h"
#include "smtpd/policy.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	SEEN_SIZE = 1,
	SEEN_BODY = 2,
	SEEN_UTF8 = 4,
	SEEN_RET = 8,
	SEEN_ENVID = 16,
	SEEN_AUTH = 32,
	SEEN_REQUIRETLS = 64,
	SEEN_BY = 128,
	SEEN_PRIORITY = 256,
	SEEN_HOLD = 512,
};

static bool take_envid(struct envelope *e, const char *value)
{
	if (e->envid || !param_envid(value))
		return false;
	e->envid = mem_strdup(value);
	return true;
}

/* Who submitted it at first. It goes only to next hops that we log in to, and as <> where we do not
 * trust the client, which amounts to leaving it out: it must be right all the same. */
static bool good_auth(const char *value)
{
	char decoded[MAILADDR_MAX];
	struct mailaddr a;
	if (!value || !xtext_decode(value, strlen(value), decoded, sizeof decoded))
		return false;
	return strcmp(decoded, "<>") == 0 ||
	       (mailaddr_mailbox(decoded, strlen(decoded), true, &a) == MAILADDR_OK &&
		a.text[a.at]);
}

static bool take_by(struct envelope *e, const char *value)
{
	int64_t seconds;
	if (!param_by(value, &seconds, &e->by))
		return false;
	e->by_ms = clock_wall_ms() + 1000 * seconds;
	return true;
}

/* A time that has passed is now. */
static enum response hold_until_then(const struct session *s, struct envelope *e, int64_t ms)
{
	if (ms > s->service->listener->future_release_limit)
		return RESPONSE_HOLD_TOO_LONG;
	e->not_before_ms = clock_wall_ms() + (ms > 0 ? ms : 0);
	return RESPONSE_OK;
}

static enum response take_hold(const struct session *s, struct envelope *e, const struct param *p)
{
	e->hold_for = param_is(p, "HOLDFOR");
	if (e->hold_for)
		return param_hold_for(p->value, &e->hold_asked)
			       ? hold_until_then(s, e, 1000 * e->hold_asked)
			       : RESPONSE_BAD_PARAMETER;
	return param_hold_until(p->value, &e->hold_asked)
		       ? hold_until_then(s, e, e->hold_asked - date_ms())
		       : RESPONSE_BAD_PARAMETER;
}

static bool is_hold(const struct session *s, const struct param *p)
{
	return (param_is(p, "HOLDFOR") || param_is(p, "HOLDUNTIL")) && policy_may_schedule(s);
}

static enum response take_parameter(const struct session *s, struct reception *t,
				    const struct param *p, unsigned *seen)
{
	bool good;
	if (is_hold(s, p))
		return param_once(seen, SEEN_HOLD) ? take_hold(s, t->envelope, p)
						   : RESPONSE_BAD_PARAMETER;
	if (param_is(p, "SIZE"))
		good = param_once(seen, SEEN_SIZE) && param_size(p->value, &t->announced);
	else if (param_is(p, "BODY"))
		good = param_once(seen, SEEN_BODY) && param_body(p->value, &t->envelope->body);
	else if (param_is(p, "SMTPUTF8"))
		good = param_once(seen, SEEN_UTF8) && !p->value;
	else if (param_is(p, "RET"))
		good = param_once(seen, SEEN_RET) && param_ret(p->value, &t->envelope->ret);
	else if (param_is(p, "ENVID"))
		good = param_once(seen, SEEN_ENVID) && take_envid(t->envelope, p->value);
	else if (param_is(p, "REQUIRETLS") && s->tls)
		good = param_once(seen, SEEN_REQUIRETLS) && !p->value;
	else if (param_is(p, "BY") && policy_may_defer(s))
		good = param_once(seen, SEEN_BY) && take_by(t->envelope, p->value);
	else if (param_is(p, "MT-PRIORITY") && policy_may_defer(s))
		good = param_once(seen, SEEN_PRIORITY) &&
		       param_priority(p->value, &t->envelope->priority);
	else if (param_is(p, "AUTH") && s->service->listener->auth)
		good = param_once(seen, SEEN_AUTH) && good_auth(p->value);
	else
		return RESPONSE_UNKNOWN_PARAMETER;
	return good ? RESPONSE_OK : RESPONSE_BAD_PARAMETER;
}

/* Seconds to deliver it in count from when it may be tried. */
static void count_from_release(struct envelope *e)
{
	int64_t ahead_ms = e->not_before_ms - clock_wall_ms();
	if (e->by && ahead_ms > 0)
		e->by_ms += ahead_ms;
}

static enum response take_parameters(struct session *s, struct reception *t, char *rest)
{
	struct param p;
	unsigned seen = 0;
	enum param_result result;
	param_init(&p, rest);
	while ((result = param_next(&p)) == PARAM_NEXT) {
		enum response why =
			s->esmtp ? take_parameter(s, t, &p, &seen) : RESPONSE_UNKNOWN_PARAMETER;
		if (why != RESPONSE_OK)
			return why;
	}
	count_from_release(t->envelope);
	t->prioritised = seen & SEEN_PRIORITY;
	t->envelope->smtputf8 = seen & SEEN_UTF8;
	t->envelope->tls = seen & SEEN_REQUIRETLS ? ENVELOPE_TLS_REQUIRED : ENVELOPE_TLS_USUAL;
	return result == PARAM_SYNTAX ? RESPONSE_BAD_PARAMETER : RESPONSE_OK;
}

static enum response judge_sender(struct session *s, const struct reception *t,
				  const struct mailaddr *from)
{
	uint64_t limit = (uint64_t)s->service->conf->message_size_limit;
	if (from->utf8 && !t->envelope->smtputf8)
		return RESPONSE_NOT_ASCII;
	if (limit && t->announced > limit)
		return RESPONSE_TOO_LARGE;
	if (reception_full(s))
		return RESPONSE_NO_MEMORY;
	return reception_room(s);
}

static void heard_filters(struct session *s, bool passed)
{
	if (passed) {
		session_reply(s, RESPONSE_SENDER_OK);
		session_move(s, SESSION_MAIL);
	} else if (s->state != SESSION_CLOSED) {
		reception_reset(s);
	}
}

static void ask_filters(struct session *s)
{
	filtering_mail(s, heard_filters);
}

static void heard_limits(struct session *s, void *answer)
{
	if (limit_check_pass(s, answer, NULL, &s->tx->envelope->held))
		ask_filters(s);
	else
		reception_reset(s);
}

static void ask_limits(struct session *s)
{
	static const struct wait_kind kind = {.text = "limits", .answered = heard_limits};
	struct limiter_question *q = mem_zalloc(sizeof *q);
	q->answer.free = limit_check_free;
	limit_check_ask(s, LIMIT_MESSAGES, q, &kind);
}

static void refuse_sender(struct session *s, enum response why)
{
	session_refuse(s, why, NULL);
	reception_reset(s);
}

static void learnt_limits(struct session *s, bool learnt)
{
	if (learnt)
		ask_limits(s);
	else
		refuse_sender(s, RESPONSE_LOOKUP_FAILED);
}

/* Of what is refused anyway no limit is used up. */
static void admit_sender(struct session *s)
{
	if (!access_refuses(s) && limit_check_due(s, LIMIT_MESSAGES))
		limit_check_learn(s, learnt_limits);
	else
		ask_filters(s);
}

static void rewrite_sender(struct session *s, const struct mailaddr *from)
{
	char *sender = NULL;
	enum response why = addressing_sender(s->worker->conf, from->text, &sender);
	if (why != RESPONSE_OK) {
		refuse_sender(s, why);
		return;
	}
	filtering_sender(s, from->text);
	reception_sender(s->tx, sender);
	free(sender);
	access_transaction(s, admit_sender);
}

static void found_logins(struct session *s, const struct consult_found *found)
{
	struct mailaddr from;
	const char *text = s->tx->mail_from;
	memset(&from, 0, sizeof from);
	if (*text)
		mailaddr_mailbox(text, strlen(text), true, &from);
	enum response why =
		found->failed ? RESPONSE_LOOKUP_FAILED : policy_sender(s, found->value, &from);
	s->tx->own = found->value && strcmp(from.text, text) == 0;
	if (why != RESPONSE_OK)
		refuse_sender(s, why);
	else
		rewrite_sender(s, &from);
}

static void ask_logins(struct session *s)
{
	struct consult_keys keys = {0};
	consult_keys_address(&keys, s->tx->mail_from);
	consult_begin(s, TABLE_SENDER_LOGINS, &keys, found_logins);
}

void verb_mail(struct session *s, char *argument)
{
	struct mailaddr from;
	if (strncasecmp(argument, "FROM:", 5) != 0) {
		session_refuse(s, RESPONSE_BAD_SENDER, NULL);
		return;
	}
	if (s->service->listener->auth == LISTENER_AUTH_REQUIRED && !s->login) {
		session_refuse(s, RESPONSE_NEEDS_LOGIN, NULL);
		return;
	}
	const char *at = argument + 5 + strspn(argument + 5, " ");
	enum mailaddr_result result = mailaddr_path(&at, s->esmtp, &from);
	if (result != MAILADDR_OK || (from.text[0] && !from.text[from.at])) {
		bool foreign = result == MAILADDR_NOT_ASCII;
		session_refuse(s, foreign ? RESPONSE_NOT_ASCII : RESPONSE_BAD_SENDER, NULL);
		return;
	}
	struct reception *t = reception_new(s->worker->spool, from.text);
	enum response why = take_parameters(s, t, argument + (at - argument));
	if (why == RESPONSE_OK)
		why = judge_sender(s, t, &from);
	s->tx = t;
	if (why != RESPONSE_OK)
		refuse_sender(s, why);
	else if (policy_sender_due(s))
		ask_logins(s);
	else
		rewrite_sender(s, &from);
}
