/* SPDX-License-Identifier: ISC */
#include "smtpd/limit_check.h"

#include "base/conf_units.h"
#include "base/limit_value.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/name_key.h"
#include "smtpd/consult.h"
#include "smtpd/policy.h"
#include "smtpd/reception.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static bool has_limit(const struct conf_limit *l, enum limit_of of)
{
	return l && (of == LIMIT_MESSAGES ? l->messages : l->recipients).events > 0;
}

/* Mail of a stranger counts against nobody but itself: it may name anybody. Of reports, which have no sender, there may
 * be many that nobody chose to send. */
static bool limited_by_sender(const struct session *s, enum limit_of of)
{
	return has_limit(s->worker->conf->limit_by[LIMIT_BY_SENDER], of) && *s->tx->sender &&
	       !policy_stranger(s);
}

bool limit_check_due(const struct session *s, enum limit_of of)
{
	const struct conf *c = s->worker->conf;
	bool by_login = has_limit(c->limit_by[LIMIT_BY_LOGIN], of) || c->limits.n > 0;
	bool due = s->login && (of == LIMIT_MESSAGES || by_login);
	due = due || has_limit(c->limit_by[LIMIT_BY_CLIENT], of) || limited_by_sender(s, of);
	return due && s->worker->limiter;
}

/* IPv4, or the /64 that one client has of IPv6. */
static char *client_name(const union address *a)
{
	char text[64];
	union address net = *a;
	if (net.sa.sa_family != AF_INET6)
		return mem_strdup(address_text(&net, text));
	memset(&net.in6.sin6_addr.s6_addr[8], 0, 8);
	return mem_printf("%s/64", address_text(&net, text));
}

static bool is_limit(const struct session *s, const char *row)
{
	struct limit_value v;
	struct buf why = {0};
	bool good = !row || !limit_value_parse(row, &v, &why);
	if (!good)
		log_event(LOG_LEVEL_WARNING, "lookup", "session", log_id(s->number), "table",
			  tables_setting(TABLE_LIMITS), "key", s->login, "reason",
			  log_text("\"%s\" is no limit: %s", row, buf_cstr(&why)), NULL);
	buf_fini(&why);
	return good;
}

static void found_limits(struct session *s, const struct consult_found *found)
{
	struct reception *t = s->tx;
	bool learnt = !found->failed && is_limit(s, found->value);
	if (learnt) {
		t->limits_asked = true;
		t->limits_row = mem_strdup(found->value);
	}
	t->limits_done(s, learnt);
}

void limit_check_learn(struct session *s, void (*done)(struct session *, bool learnt))
{
	struct consult_keys keys = {0};
	if (!s->login || !tables_asked(s->worker->conf->tables, TABLE_LIMITS)) {
		done(s, true);
		return;
	}
	s->tx->limits_done = done;
	consult_keys_exact(&keys, s->login);
	consult_begin(s, TABLE_LIMITS, &keys, found_limits);
}

void limit_check_ask(struct session *s, enum limit_of of, struct limiter_question *q,
		     const struct wait_kind *kind)
{
	const struct conf *c = s->worker->conf;
	assert(s->tx && s->worker->limiter);
	q->of = of;
	if (s->login)
		q->name[LIMIT_BY_LOGIN] = mem_strdup(s->login);
	q->asked = s->login && s->tx->limits_asked;
	q->row = q->asked ? mem_strdup(s->tx->limits_row) : NULL;
	if (has_limit(c->limit_by[LIMIT_BY_CLIENT], of))
		q->name[LIMIT_BY_CLIENT] = client_name(&s->peer);
	if (limited_by_sender(s, of))
		q->name[LIMIT_BY_SENDER] = name_key(s->tx->sender);
	q->answer.note.type = LIMITER_ASK;
	q->answer.reply_to = s->worker->loop;
	q->answer.cookie = wait_begin(s, kind, 0);
	loop_post(limiter_loop(s->worker->limiter), &q->answer.note);
}

static const char *const by_names[] = {
	[LIMIT_BY_LOGIN] = "login", [LIMIT_BY_CLIENT] = "client", [LIMIT_BY_SENDER] = "sender"};
static const char *const of_names[] = {
	[LIMIT_MESSAGES] = "messages", [LIMIT_RECIPIENTS] = "recipients"};
static const char *const action_names[] = {
	[LIMIT_DEFER] = "defer", [LIMIT_REJECT] = "reject", [LIMIT_HOLD] = "hold"};

static void log_limit(const struct session *s, const struct limiter_question *q)
{
	const struct limits_ruling *r = &q->ruling;
	struct buf rate = {0};
	conf_rate_print(&r->rate, &rate); /* in quotes */
	const char *limit =
		log_text("%s %.*s", of_names[q->of], (int)buf_len(&rate) - 2, buf_cstr(&rate) + 1);
	buf_fini(&rate);
	metric_cell_add(metric_cell(FAMILY_limits, by_names[r->by], action_names[r->action]), 1);
	log_event(LOG_LEVEL_INFO, "limit", "session", log_id(s->number), by_names[r->by],
		  q->name[r->by], "limit", limit, "action", action_names[r->action], NULL);
}

/* "40 seconds", "12 minutes", "3 hours": rounded up. */
static const char *duration_text(int64_t ms)
{
	static const struct {
		int64_t most_s, unit_s;
		const char *name;
	} unit[] = {{120, 1, "second"}, {7200, 60, "minute"}, {INT64_MAX, 3600, "hour"}};
	int64_t s = (ms + 999) / 1000;
	size_t u = 0;
	while (s > unit[u].most_s)
		u++;
	int64_t n = (s + unit[u].unit_s - 1) / unit[u].unit_s;
	return log_text("%lld %s%s", (long long)n, unit[u].name, n == 1 ? "" : "s");
}

bool limit_check_pass(struct session *s, const struct limiter_question *q, const char *to,
		      bool *held)
{
	const struct limits_ruling *r = &q->ruling;
	if (r->suspended) {
		session_refuse_with(s, RESPONSE_LOGIN_SUSPENDED, to);
		return false;
	}
	if (!r->over)
		return true;
	log_limit(s, q);
	if (r->action == LIMIT_DEFER)
		session_refuse_with(s, RESPONSE_LIMIT_DEFERRED, to, of_names[q->of],
				    by_names[r->by], duration_text(r->wait_ms));
	else if (r->action == LIMIT_REJECT)
		session_refuse_with(s, RESPONSE_LIMIT_REJECTED, to, of_names[q->of],
				    by_names[r->by]);
	else
		*held = true;
	return r->action == LIMIT_HOLD;
}

void limit_check_event(const struct session *s, enum limiter_note what, const char *login,
		       uint32_t nrcpt)
{
	if (login && s->worker->limiter)
		loop_post(limiter_loop(s->worker->limiter),
			  &limiter_event_new(what, login, nrcpt)->note);
}

void limit_check_free(struct wait_answer *a)
{
	limiter_question_fini((struct limiter_question *)a);
	free(a);
}
