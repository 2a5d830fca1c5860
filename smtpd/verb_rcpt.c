/* SPDX-License-Identifier: ISC */
/*	rcpt	   = "RCPT TO:" ( "<Postmaster>" / Forward-path ) [SP Rcpt-parameters] CRLF
 *							RFC 5321 4.1.1.3
 *	parameters = NOTIFY=NEVER / ( SUCCESS / FAILURE / DELAY ) *( "," ... )
 *		     ORCPT=addr-type ";" xtext		RFC 3461
 *		     ORCPT="utf-8;" UTF-8		RFC 6533 3, of other mail, too
 *		     ORCPT="rfc822;" UTF-8 in xtext	as Postfix has it
 */
#include "smtpd/command.h"
#include "smtpd/reception.h"

#include "base/mem.h"
#include "smtpd/access.h"
#include "smtpd/addressing.h"
#include "smtpd/alias_wait.h"
#include "smtpd/filtering.h"
#include "smtpd/limit_check.h"
#include "smtpd/param.h"
#include "smtpd/policy.h"
#include "smtpd/verify_check.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	OVERSHOOT_MAX = 1000, /* refusals of one message that are no errors of the client's */
};

enum { SEEN_NOTIFY = 1, SEEN_ORCPT = 2 };

static bool take_orcpt(struct rcpt_wanted *w, const char *value)
{
	bool beyond = param_orcpt_utf8(value, w->orcpt_ascii) ||
		      param_orcpt_octets(value, w->orcpt_ascii);
	w->orcpt = beyond ? w->orcpt_ascii : value;
	return param_orcpt(w->orcpt);
}

static enum response take_parameters(struct session *s, struct rcpt_wanted *w, char *rest)
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

static enum response judge_recipient(struct session *s, struct mailaddr *to)
{
	int64_t limit = s->service->listener->recipient_limit;
	if (to->utf8 && !s->tx->envelope->smtputf8)
		return RESPONSE_NOT_ASCII;
	enum response why = policy_recipient(s, to);
	if (why == RESPONSE_OK && limit && s->tx->envelope->nrcpt + s->tx->besides >= limit)
		return RESPONSE_TOO_MANY_RECIPIENTS;
	return why == RESPONSE_OK && reception_full(s) ? RESPONSE_NO_MEMORY : why;
}

/* The recipient was refused, but the client has done nothing wrong: who takes the code at its word comes again with it. */
static void forgive_error(struct session *s)
{
	assert(s->errors > 0);
	if (s->tx->overshoot++ < OVERSHOOT_MAX)
		s->errors--;
}

static void refuse_recipient(struct session *s, enum response why, const char *to)
{
	session_refuse(s, why, to);
	if (why == RESPONSE_TOO_MANY_RECIPIENTS || why == RESPONSE_NO_MEMORY ||
	    why == RESPONSE_LOOKUP_FAILED)
		forgive_error(s);
}

/* Somebody is asked about it. */
static struct rcpt_pending *set_pending(struct session *s, const struct mailaddr *to,
					const struct rcpt_wanted *w)
{
	assert(s->state == SESSION_MAIL || s->state == SESSION_RCPT);
	assert(!s->tx->pending);
	return s->tx->pending = rcpt_pending_new(to, w);
}

/* All have answered; the caller's to free. */
static struct rcpt_pending *take_pending(struct session *s)
{
	struct rcpt_pending *p = s->tx->pending;
	assert(p);
	s->tx->pending = NULL;
	return p;
}

/* The recipient is taken, and what was said of it holds for the message. */
static void mark_message(struct reception *t, const struct rcpt_wanted *w)
{
	t->postmaster |= w->postmaster;
	t->envelope->held |= w->held;
	if (w->flow && !t->flow_named)
		t->flow_named = mem_strdup(w->flow);
}

static void add_recipient(struct session *s, const struct mailaddr *to, const struct rcpt_wanted *w)
{
	struct alias_added added = {0};
	enum response why =
		addressing_recipient(s->worker->conf, &s->tx->aliases.heard, s->tx->envelope,
				     to->text, w->notify, w->orcpt, &added);
	alias_learn_end(&s->tx->aliases);
	reception_added(s, &added);
	if (why != RESPONSE_OK) {
		refuse_recipient(s, why, to->text);
		return;
	}
	filtering_added(s, to->text, &added);
	mark_message(s->tx, w);
	session_reply(s, RESPONSE_RECIPIENT_OK);
	session_move(s, SESSION_RCPT);
}

static void heard_filters(struct session *s, bool passed)
{
	struct rcpt_pending *p = take_pending(s);
	if (passed)
		add_recipient(s, &p->to, &p->wanted);
	rcpt_pending_free(&p);
}

/* Nothing is against it here: what do filters say? */
static void ask_filters(struct session *s, const struct mailaddr *to, const struct rcpt_wanted *w)
{
	if (!s->filtering) {
		add_recipient(s, to, w);
		return;
	}
	const struct rcpt_pending *p = set_pending(s, to, w);
	filtering_rcpt(s, to->text, w->notify, p->wanted.orcpt, heard_filters);
}

static void ask_door(struct session *, bool listed);

static void found_listed(struct session *s, const struct consult_found *found)
{
	struct rcpt_pending *p = s->tx->pending;
	if (verify_check_listed(s, found, p->to.text)) {
		ask_door(s, true);
		return;
	}
	take_pending(s);
	if (found->failed)
		forgive_error(s);
	rcpt_pending_free(&p);
}

/* No file has it: the session asks the servers, which qmgr does not. */
static void ask_servers(struct session *s, const struct conf_list *servers)
{
	struct consult_keys keys = {0};
	consult_keys_address(&keys, s->tx->pending->asked);
	consult_among(s, TABLE_RECIPIENTS, servers, &keys, found_listed);
}

static void heard_door(struct session *s, void *answer)
{
	struct rcpt_pending *p = s->tx->pending;
	const struct verify *v = answer;
	if (v && v->result == VERIFY_UNLISTED) {
		ask_servers(s, &v->servers);
		return;
	}
	take_pending(s);
	if (verify_check_pass(s, v, p->to.text))
		ask_filters(s, &p->to, &p->wanted);
	else if (v && v->learnt)
		forgive_error(
			s); /* a long list may have many such, and its other recipients want their mail */
	rcpt_pending_free(&p);
}

static void heard_nothing(struct session *s)
{
	heard_door(s, NULL);
}

/* About what is pending. */
static void ask_door(struct session *s, bool listed)
{
	static const struct wait_kind known = {.text = "what is known", .answered = heard_door},
				      of_host = {.text = "verification",
						 .answered = heard_door,
						 .expired = heard_nothing};
	const struct rcpt_pending *p = s->tx->pending;
	verify_check_ask(s, p->asked, p->verify, listed,
			 &(struct verify_check_kinds){.known = &known, .of_host = &of_host});
}

/* False: nobody need be asked. */
static bool ask_next_hop(struct session *s, const struct mailaddr *to, const struct rcpt_wanted *w,
			 bool wanted)
{
	char *address = verify_check_address(s, to->text, wanted);
	if (!address)
		return false;
	struct rcpt_pending *p = set_pending(s, to, w);
	p->asked = address;
	p->verify = wanted;
	ask_door(s, false);
	return true;
}

/* Who must be taken is not asked about. */
static void verify_recipient(struct session *s, const struct mailaddr *to,
			     const struct rcpt_wanted *w, bool verify)
{
	if (w->postmaster || !ask_next_hop(s, to, w, verify))
		ask_filters(s, to, w);
}

static bool knows_aliases(void *owner)
{
	struct session *s = owner;
	return addressing_recipient_known(s->worker->conf, &s->tx->aliases.heard,
					  s->tx->pending->to.text);
}

static void conclude_aliases(struct session *s, bool failed)
{
	struct rcpt_pending *p = take_pending(s);
	if (failed)
		refuse_recipient(s, RESPONSE_LOOKUP_FAILED, p->to.text);
	else
		verify_recipient(s, &p->to, &p->wanted, p->verify);
	rcpt_pending_free(&p);
}

static void learnt_aliases(struct session *s, void *answer)
{
	(void)answer;
	conclude_aliases(s, s->tx->aliases_failed);
}

/* Whoever comes next knows what is an alias. */
static void ask_aliases(struct session *s, const struct mailaddr *to, const struct rcpt_wanted *w,
			bool verify)
{
	static const struct wait_kind kind = {
		.text = "aliases", .answered = learnt_aliases, .ended = alias_wait_ended};
	if (!tables_asked(s->worker->conf->tables, TABLE_ALIASES)) {
		verify_recipient(s, to, w, verify);
		return;
	}
	set_pending(s, to, w)->verify = verify;
	enum alias_learnt so_far = alias_wait(s, knows_aliases, &kind);
	if (so_far != ALIAS_WAITS)
		conclude_aliases(s, so_far == ALIAS_FAILED);
}

static void found_access(struct session *s, const struct consult_found *found)
{
	struct rcpt_pending *p = take_pending(s);
	struct access_value v;
	if (access_recipient(s, p->to.text, found, &v)) {
		p->wanted.held |= v.action == ACCESS_HOLD;
		p->wanted.flow = v.action == ACCESS_FLOW ? v.text : NULL;
		ask_aliases(s, &p->to, &p->wanted, v.action == ACCESS_VERIFY);
	}
	access_value_fini(&v);
	rcpt_pending_free(&p);
}

static void ask_access(struct session *s, const struct mailaddr *to, const struct rcpt_wanted *w)
{
	struct consult_keys keys = {0};
	if (tables_count(s->worker->conf->tables, TABLE_RECIPIENT_ACCESS) == 0) {
		ask_aliases(s, to, w, false);
		return;
	}
	set_pending(s, to, w);
	consult_keys_address(&keys, to->text);
	consult_begin(s, TABLE_RECIPIENT_ACCESS, &keys, found_access);
}

/* Whom anybody may write to. The sender that a stranger names may be a third party's address, which
 * is not to be told of each success; and one copy is enough, however often they ask. */
static void take_postmaster(struct session *s, const struct mailaddr *to, struct rcpt_wanted *w)
{
	if (s->tx->postmaster) {
		s->tx->besides++;
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

/* The recipient may be taken, as far as limits and the address itself are concerned. */
static void admit_recipient(struct session *s, const struct mailaddr *to, struct rcpt_wanted *w)
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

static void free_asked(struct wait_answer *answer)
{
	struct asked *a = (struct asked *)answer;
	rcpt_pending_fini(&a->pending);
	limiter_question_fini(&a->question);
	free(a);
}

static void heard_limits(struct session *s, void *answer)
{
	struct asked *a = answer;
	struct rcpt_wanted *w = &a->pending.wanted;
	if (limit_check_pass(s, &a->question, a->pending.to.text, &w->held))
		admit_recipient(s, &a->pending.to, w);
	else
		forgive_error(s);
}

static void ask_limits(struct session *s, const struct mailaddr *to, const struct rcpt_wanted *w)
{
	static const struct wait_kind kind = {.text = "limits", .answered = heard_limits};
	struct asked *a = mem_zalloc(sizeof *a);
	a->question.answer.free = free_asked;
	rcpt_pending_init(&a->pending, to, w);
	limit_check_ask(s, LIMIT_RECIPIENTS, &a->question, &kind);
}

static void consider_recipient(struct session *s, struct mailaddr *to, struct rcpt_wanted *w)
{
	enum response why = judge_recipient(s, to);
	if (why != RESPONSE_OK)
		refuse_recipient(s, why, to->text);
	else if (!access_admits(s, to->text))
		return;
	else if (limit_check_due(s, LIMIT_RECIPIENTS))
		ask_limits(s, to, w);
	else
		admit_recipient(s, to, w);
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
	struct rcpt_pending *p = take_pending(s);
	if (failed)
		refuse_recipient(s, RESPONSE_LOOKUP_FAILED, p->to.text);
	else
		consider_recipient(s, &p->to, &p->wanted);
	rcpt_pending_free(&p);
}

static void learnt_postmaster(struct session *s, void *answer)
{
	(void)answer;
	conclude_postmaster(s, s->tx->aliases_failed);
}

/* False: there is nothing that a server must be asked. */
static bool ask_postmaster(struct session *s, const struct mailaddr *to,
			   const struct rcpt_wanted *w)
{
	static const struct wait_kind kind = {
		.text = "aliases", .answered = learnt_postmaster, .ended = alias_wait_ended};
	if (!w->postmaster || !tables_asked(s->worker->conf->tables, TABLE_ALIASES))
		return false;
	set_pending(s, to, w);
	enum alias_learnt so_far = alias_wait(s, knows_postmaster, &kind);
	if (so_far != ALIAS_WAITS)
		conclude_postmaster(s, so_far == ALIAS_FAILED);
	return true;
}

void verb_rcpt(struct session *s, char *argument)
{
	struct mailaddr to;
	struct rcpt_wanted w = {0};
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
	enum response why = take_parameters(s, &w, argument + (at - argument));
	if (why != RESPONSE_OK)
		refuse_recipient(s, why, to.text);
	else if (!ask_postmaster(s, &to, &w))
		consider_recipient(s, &to, &w);
}
