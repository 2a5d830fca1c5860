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
#include "smtpd/access.h"
#include "smtpd/addressing.h"
#include "smtpd/alias_wait.h"
#include "smtpd/filtering.h"
#include "smtpd/limit_check.h"
#include "smtpd/param.h"
#include "smtpd/policy.h"
#include "smtpd/verify_check.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	OVERSHOOT_MAX = 1000, /* refusals of one message that are no errors of the client's */
};

enum { SEEN_NOTIFY = 1, SEEN_ORCPT = 2 };

struct wanted {
	uint8_t notify;
	const char *orcpt;
	bool postmaster; /* <postmaster>, without a domain */
};

static bool take_orcpt(struct wanted *w, const char *value)
{
	w->orcpt = value;
	return param_orcpt(value);
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

/* It was refused, but the client has done nothing wrong: who takes the code at its word comes again with it. */
static void forgive(struct session *s)
{
	if (s->tx->overshoot++ < OVERSHOOT_MAX)
		s->errors--;
}

static void refuse(struct session *s, enum response why, const char *to)
{
	session_refuse(s, why, to);
	if (why == RESPONSE_TOO_MANY_RECIPIENTS || why == RESPONSE_NO_MEMORY ||
	    why == RESPONSE_LOOKUP_FAILED)
		forgive(s);
}

/* What is known of the command while somebody is asked. */
struct rcpt_pending {
	struct mailaddr to;
	struct wanted wanted;
	char *orcpt; /* wanted's */
	char *asked; /* the address that was asked about, or NULL */
	bool verify; /* recipient_access wants the next hop asked */
};

void rcpt_pending_free(struct rcpt_pending **pp)
{
	if (*pp) {
		free((*pp)->orcpt);
		free((*pp)->asked);
	}
	free(*pp);
	*pp = NULL;
}

static void rcpt_pending_init(struct rcpt_pending *p, const struct mailaddr *to,
			      const struct wanted *w)
{
	p->to = *to;
	p->wanted = *w;
	p->orcpt = w->orcpt ? mem_strdup(w->orcpt) : NULL;
	p->asked = NULL;
	p->verify = false;
	p->wanted.orcpt = p->orcpt;
}

static void add(struct session *s, const struct mailaddr *to, const struct wanted *w)
{
	uint32_t before = s->tx->envelope->nrcpt;
	enum response why = addressing_recipient(s->worker->conf, &s->tx->aliases.heard,
						 s->tx->envelope, to->text, w->notify, w->orcpt);
	alias_learn_end(&s->tx->aliases);
	reception_added(s, before);
	if (why != RESPONSE_OK) {
		refuse(s, why, to->text);
		return;
	}
	filtering_added(s, to->text, before);
	s->tx->postmaster |= w->postmaster;
	session_reply(s, RESPONSE_RECIPIENT_OK);
	session_move(s, SESSION_RCPT);
}

static void filtered(struct session *s, bool passed)
{
	struct rcpt_pending *p = s->tx->pending;
	s->tx->pending = NULL;
	if (passed)
		add(s, &p->to, &p->wanted);
	rcpt_pending_free(&p);
}

/* Nothing is against it here: what do filters say? */
static void take(struct session *s, const struct mailaddr *to, const struct wanted *w)
{
	if (!s->filtering) {
		add(s, to, w);
		return;
	}
	s->tx->pending = mem_zalloc(sizeof *s->tx->pending);
	rcpt_pending_init(s->tx->pending, to, w);
	filtering_rcpt(s, to->text, w->notify, s->tx->pending->wanted.orcpt, filtered);
}

static void ask_door(struct session *, bool listed);

static void found_listed(struct session *s, const struct consult_found *found)
{
	struct rcpt_pending *p = s->tx->pending;
	if (verify_check_listed(s, found, p->to.text)) {
		ask_door(s, true);
		return;
	}
	s->tx->pending = NULL;
	if (found->failed)
		forgive(s);
	rcpt_pending_free(&p);
}

/* No file has it: the session asks the servers, which qmgr does not. */
static void ask_servers(struct session *s, const struct conf_list *servers)
{
	struct consult_keys keys = {0};
	consult_keys_address(&keys, s->tx->pending->asked);
	consult_among(s, TABLE_RECIPIENTS, servers, &keys, found_listed);
}

static void verified(struct session *s, void *answer)
{
	struct rcpt_pending *p = s->tx->pending;
	const struct verify *v = answer;
	if (v && v->result == VERIFY_UNLISTED) {
		ask_servers(s, &v->servers);
		return;
	}
	s->tx->pending = NULL;
	if (verify_check_pass(s, v, p->to.text))
		take(s, &p->to, &p->wanted);
	else if (v && v->learnt)
		forgive(s); /* a long list may have many such, and its other recipients want their mail */
	rcpt_pending_free(&p);
}

static void not_verified(struct session *s)
{
	verified(s, NULL);
}

/* About what is pending. */
static void ask_door(struct session *s, bool listed)
{
	static const struct wait_kind known = {.text = "what is known", .answered = verified},
				      of_host = {.text = "verification",
						 .answered = verified,
						 .expired = not_verified};
	const struct rcpt_pending *p = s->tx->pending;
	verify_check_ask(s, p->asked, p->verify, listed,
			 &(struct verify_check_kinds){.known = &known, .of_host = &of_host});
}

/* False: nobody need be asked. */
static bool ask_next_hop(struct session *s, const struct mailaddr *to, const struct wanted *w,
			 bool wanted)
{
	char *address = verify_check_address(s, to->text, wanted);
	if (!address)
		return false;
	struct rcpt_pending *p = s->tx->pending = mem_zalloc(sizeof *p);
	rcpt_pending_init(p, to, w);
	p->asked = address;
	p->verify = wanted;
	ask_door(s, false);
	return true;
}

/* Who must be taken is not asked about. */
static void go_on(struct session *s, const struct mailaddr *to, const struct wanted *w, bool verify)
{
	if (w->postmaster || !ask_next_hop(s, to, w, verify))
		take(s, to, w);
}

static bool knows_aliases(void *owner)
{
	struct session *s = owner;
	return addressing_recipient_known(s->worker->conf, &s->tx->aliases.heard,
					  s->tx->pending->to.text);
}

static void conclude_aliases(struct session *s, bool failed)
{
	struct rcpt_pending *p = s->tx->pending;
	s->tx->pending = NULL;
	if (failed)
		refuse(s, RESPONSE_LOOKUP_FAILED, p->to.text);
	else
		go_on(s, &p->to, &p->wanted, p->verify);
	rcpt_pending_free(&p);
}

static void learnt_aliases(struct session *s, void *answer)
{
	(void)answer;
	conclude_aliases(s, s->tx->aliases_failed);
}

/* Whoever comes next knows what is an alias. */
static void pass(struct session *s, const struct mailaddr *to, const struct wanted *w, bool verify)
{
	static const struct wait_kind kind = {
		.text = "aliases", .answered = learnt_aliases, .ended = alias_wait_ended};
	if (!tables_asked(s->worker->conf->tables, TABLE_ALIASES)) {
		go_on(s, to, w, verify);
		return;
	}
	s->tx->pending = mem_zalloc(sizeof *s->tx->pending);
	rcpt_pending_init(s->tx->pending, to, w);
	s->tx->pending->verify = verify;
	enum alias_learnt so_far = alias_wait(s, knows_aliases, &kind);
	if (so_far != ALIAS_WAITS)
		conclude_aliases(s, so_far == ALIAS_FAILED);
}

static void found_access(struct session *s, const struct consult_found *found)
{
	struct rcpt_pending *p = s->tx->pending;
	bool verify;
	s->tx->pending = NULL;
	if (access_recipient(s, p->to.text, found, &verify))
		pass(s, &p->to, &p->wanted, verify);
	rcpt_pending_free(&p);
}

static void ask_access(struct session *s, const struct mailaddr *to, const struct wanted *w)
{
	struct consult_keys keys = {0};
	if (tables_count(s->worker->conf->tables, TABLE_RECIPIENT_ACCESS) == 0) {
		pass(s, to, w, false);
		return;
	}
	s->tx->pending = mem_zalloc(sizeof *s->tx->pending);
	rcpt_pending_init(s->tx->pending, to, w);
	consult_keys_address(&keys, to->text);
	consult_begin(s, TABLE_RECIPIENT_ACCESS, &keys, found_access);
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
	ask_access(s, to, w);
}

/* It may be one, as far as limits and the address itself are concerned. */
static void admit(struct session *s, const struct mailaddr *to, struct wanted *w)
{
	if (w->postmaster)
		take_postmaster(s, to, w);
	else
		ask_access(s, to, w);
}

/* The limiter is asked. */
struct asked {
	struct limiter_question question; /* first */
	struct rcpt_pending pending;
};

static void asked_free(struct wait_answer *answer)
{
	struct asked *a = (struct asked *)answer;
	free(a->pending.orcpt);
	limiter_question_fini(&a->question);
	free(a);
}

static void judged(struct session *s, void *answer)
{
	struct asked *a = answer;
	if (limit_check_pass(s, &a->question, a->pending.to.text))
		admit(s, &a->pending.to, &a->pending.wanted);
	else
		forgive(s);
}

static void ask_limits(struct session *s, const struct mailaddr *to, const struct wanted *w)
{
	static const struct wait_kind kind = {.text = "limits", .answered = judged};
	struct asked *a = mem_zalloc(sizeof *a);
	a->question.answer.free = asked_free;
	rcpt_pending_init(&a->pending, to, w);
	limit_check_ask(s, LIMIT_RECIPIENTS, &a->question, &kind);
}

static void consider(struct session *s, struct mailaddr *to, struct wanted *w)
{
	enum response why = judge(s, to);
	if (why != RESPONSE_OK)
		refuse(s, why, to->text);
	else if (!access_admits(s, to->text))
		return;
	else if (limit_check_due(s, LIMIT_RECIPIENTS))
		ask_limits(s, to, w);
	else
		admit(s, to, w);
}

/* Is there an alias of that name? */
static bool knows_postmaster(void *owner)
{
	struct session *s = owner;
	struct mailaddr a = s->tx->pending->to;
	return policy_recipient(s, &a) != RESPONSE_LOOKUP_FAILED;
}

static void conclude_postmaster(struct session *s, bool failed)
{
	struct rcpt_pending *p = s->tx->pending;
	s->tx->pending = NULL;
	if (failed)
		refuse(s, RESPONSE_LOOKUP_FAILED, p->to.text);
	else
		consider(s, &p->to, &p->wanted);
	rcpt_pending_free(&p);
}

static void learnt_postmaster(struct session *s, void *answer)
{
	(void)answer;
	conclude_postmaster(s, s->tx->aliases_failed);
}

/* False: there is nothing that a server must be asked. */
static bool ask_postmaster(struct session *s, const struct mailaddr *to, const struct wanted *w)
{
	static const struct wait_kind kind = {
		.text = "aliases", .answered = learnt_postmaster, .ended = alias_wait_ended};
	if (!w->postmaster || !tables_asked(s->worker->conf->tables, TABLE_ALIASES))
		return false;
	s->tx->pending = mem_zalloc(sizeof *s->tx->pending);
	rcpt_pending_init(s->tx->pending, to, w);
	enum alias_learnt so_far = alias_wait(s, knows_postmaster, &kind);
	if (so_far != ALIAS_WAITS)
		conclude_postmaster(s, so_far == ALIAS_FAILED);
	return true;
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
	alias_learn_end(&s->tx->aliases);
	enum response why = take_all(s, &w, argument + (at - argument));
	if (why != RESPONSE_OK)
		refuse(s, why, to.text);
	else if (!ask_postmaster(s, &to, &w))
		consider(s, &to, &w);
}
