/* SPDX-License-Identifier: ISC */
/*	rcpt	   = "RCPT TO:" ( "<Postmaster>" / Forward-path ) [SP Rcpt-parameters] CRLF
 *							RFC 5321 4.1.1.3
 *	parameters = NOTIFY=NEVER / ( SUCCESS / FAILURE / DELAY ) *( "," ... )
 *		     ORCPT=addr-type ";" xtext		RFC 3461
 */
#include "smtpd/command.h"
#include "smtpd/reception.h"

#include "base/log.h"
#include "base/mem.h"
#include "smtpd/addressing.h"
#include "smtpd/limit_check.h"
#include "smtpd/param.h"
#include "smtpd/policy.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	ORCPT_MAX = 500,
	OVERSHOOT_MAX = 1000, /* recipients beyond the limit that are no errors: they come again */
};

enum { SEEN_NOTIFY = 1, SEEN_ORCPT = 2 };

struct wanted {
	uint8_t notify;
	const char *orcpt;
	bool postmaster; /* <postmaster>, without a domain */
};

static bool take_orcpt(struct wanted *w, const char *value)
{
	char decoded[ORCPT_MAX + 1];
	const char *semicolon = value ? strchr(value, ';') : NULL;
	if (!semicolon || semicolon == value || strlen(value) > ORCPT_MAX)
		return false;
	for (const char *p = value; p < semicolon; p++)
		if (!isalnum((unsigned char)*p) && *p != '-')
			return false;
	semicolon++;
	w->orcpt = value;
	return *semicolon && xtext_decode(semicolon, strlen(semicolon), decoded, sizeof decoded);
}

static enum response take_all(struct session *s, struct wanted *w, char *rest)
{
	struct param p;
	unsigned seen = 0;
	enum param_result result;
	param_init(&p, rest);
	while ((result = param_next(&p)) == PARAM_NEXT) {
		bool good;
		if (s->esmtp && param_is(&p, "NOTIFY"))
			good = param_once(&seen, SEEN_NOTIFY) && param_notify(p.value, &w->notify);
		else if (s->esmtp && param_is(&p, "ORCPT"))
			good = param_once(&seen, SEEN_ORCPT) && take_orcpt(w, p.value);
		else
			return RESPONSE_UNKNOWN_PARAMETER;
		if (!good)
			return RESPONSE_BAD_PARAMETER;
	}
	return result == PARAM_SYNTAX ? RESPONSE_BAD_PARAMETER : RESPONSE_OK;
}

static enum response judge(struct session *s, struct mailaddr *to)
{
	int64_t limit = s->service->listener->recipient_limit;
	if (to->utf8 && !s->tx->envelope->smtputf8)
		return RESPONSE_NOT_ASCII;
	enum response why = policy_recipient(s, to);
	if (why == RESPONSE_OK && limit && s->tx->envelope->nrcpt + s->tx->repeats >= limit)
		return RESPONSE_TOO_MANY_RECIPIENTS;
	return why == RESPONSE_OK && reception_full(s) ? RESPONSE_NO_MEMORY : why;
}

/* It was refused, but whoever takes the code at its word comes again with it: no error. */
static void forgive(struct session *s)
{
	if (s->tx->overshoot++ < OVERSHOOT_MAX)
		s->errors--;
}

static void refuse(struct session *s, enum response why, const char *to)
{
	session_refuse(s, why, to);
	if (why == RESPONSE_TOO_MANY_RECIPIENTS || why == RESPONSE_NO_MEMORY)
		forgive(s);
}

/* What the table of access says is done here; true: it goes on. */
static bool pass(struct session *s, const struct mailaddr *to)
{
	struct access_value v;
	struct table_origin origin;
	addressing_access(s->worker->conf, to->text, &v, &origin);
	bool goes_on = v.action == ACCESS_ACCEPT || v.action == ACCESS_HOLD;
	if (v.action == ACCESS_HOLD) {
		s->tx->envelope->held = true;
	} else if (v.action == ACCESS_REFUSE) {
		session_refuse_as(s, &v, to->text);
	} else if (v.action == ACCESS_DISCARD) {
		log_event(LOG_LEVEL_INFO, "discard", "session", log_id(s->number), "from",
			  s->tx->sender, "to", to->text, "reason", "recipient_access", NULL);
		session_reply(s, RESPONSE_RECIPIENT_OK);
		session_move(s, SESSION_RCPT);
	}
	access_value_fini(&v);
	return goes_on;
}

/* True: there is one recipient more. */
static bool take(struct session *s, const struct mailaddr *to, const struct wanted *w)
{
	if (!pass(s, to))
		return false;
	uint32_t before = s->tx->envelope->nrcpt;
	enum response why = addressing_recipient(s->worker->conf, s->tx->envelope, to->text,
						 w->notify, w->orcpt);
	reception_added(s, before);
	if (why != RESPONSE_OK) {
		refuse(s, why, to->text);
		return false;
	}
	session_reply(s, RESPONSE_RECIPIENT_OK);
	session_move(s, SESSION_RCPT);
	return true;
}

/* Whom anybody may write to. The sender that a stranger names may be a third party's address, which
 * is not to be told of each success; and one copy is enough, however often they ask. */
static void take_postmaster(struct session *s, const struct mailaddr *to, struct wanted *w)
{
	if (s->tx->postmaster) {
		s->tx->repeats++;
		session_reply(s, RESPONSE_RECIPIENT_OK);
		return;
	}
	if (policy_stranger(s) && (w->notify & NOTIFY_SUCCESS)) {
		w->notify &= (uint8_t)~NOTIFY_SUCCESS;
		if (!w->notify)
			w->notify = NOTIFY_NEVER;
	}
	s->tx->postmaster = take(s, to, w);
}

/* It may be one, as far as the address itself is concerned. */
static void admit(struct session *s, const struct mailaddr *to, struct wanted *w)
{
	if (w->postmaster)
		take_postmaster(s, to, w);
	else
		take(s, to, w);
}

/* What is known of the command while the limiter is asked. */
struct asked {
	struct limiter_question question; /* first */
	struct mailaddr to;
	struct wanted wanted;
	char *orcpt; /* wanted's */
};

static void asked_free(struct wait_answer *answer)
{
	struct asked *a = (struct asked *)answer;
	free(a->orcpt);
	limiter_question_fini(&a->question);
	free(a);
}

static void judged(struct session *s, void *answer)
{
	struct asked *a = answer;
	if (limit_check_pass(s, &a->question, a->to.text))
		admit(s, &a->to, &a->wanted);
	else
		forgive(s);
}

static void ask_limits(struct session *s, const struct mailaddr *to, const struct wanted *w)
{
	static const struct wait_kind kind = {.text = "limits", .answered = judged};
	struct asked *a = mem_zalloc(sizeof *a);
	a->question.answer.free = asked_free;
	a->to = *to;
	a->wanted = *w;
	a->orcpt = w->orcpt ? mem_strdup(w->orcpt) : NULL;
	a->wanted.orcpt = a->orcpt;
	limit_check_ask(s, LIMIT_RECIPIENTS, &a->question, &kind);
}

void verb_rcpt(struct session *s, char *argument)
{
	struct mailaddr to;
	struct wanted w = {0};
	if (strncasecmp(argument, "TO:", 3) != 0) {
		session_refuse(s, RESPONSE_BAD_RECIPIENT, NULL);
		return;
	}
	const char *at = argument + 3 + strspn(argument + 3, " ");
	enum mailaddr_result result = mailaddr_path(&at, s->esmtp, &to);
	if (result != MAILADDR_OK || to.text[0] == '\0') {
		bool foreign = result == MAILADDR_NOT_ASCII;
		session_refuse(s, foreign ? RESPONSE_NOT_ASCII : RESPONSE_BAD_RECIPIENT,
			       argument + 3);
		return;
	}
	w.postmaster = !to.text[to.at];
	enum response why = take_all(s, &w, argument + (at - argument));
	if (why == RESPONSE_OK)
		why = judge(s, &to);
	if (why != RESPONSE_OK) {
		refuse(s, why, to.text);
	} else if (limit_check_due(s, LIMIT_RECIPIENTS)) {
		ask_limits(s, &to, &w);
	} else {
		admit(s, &to, &w);
	}
}
