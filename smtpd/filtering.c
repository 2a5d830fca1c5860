/* SPDX-License-Identifier: ISC */
#include "smtpd/filtering.h"

#include "base/mem.h"
#include "smtpd/filter_macros.h"
#include "smtpd/filter_mail.h"
#include "smtpd/reception.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct filtering {
	struct session *session;
	struct filter_mail mail;
	filtering_resume *resume;
	bool connecting; /* the answer is a greeting */
	char *sender;	 /* as the client gave it */
	char *recipient; /* at work */
};

static const char *macro_of(void *owner, const char *name)
{
	const struct filtering *f = owner;
	const struct filter_macros m = {f->session, f->sender, f->recipient};
	return filter_macro(&m, name);
}

static void filters_are_done(void *owner)
{
	struct filtering *f = owner;
	wait_answered(f->session->worker, f->session->wait.cookie, f);
}

void filtering_open(struct session *s)
{
	const struct conf_listener *l = s->service->listener;
	assert(!s->filtering);
	if (l->npasses == 0)
		return;
	struct filtering *f = s->filtering = mem_zalloc(sizeof *f);
	const struct filter_owner owner = {.macro = macro_of,
					   .done = filters_are_done,
					   .owner = f,
					   .maps = s->worker->socketmaps};
	f->session = s;
	filter_mail_init(&f->mail, s->worker->milters, s->service->conf, &owner);
	f->mail.session = s->number;
	for (int i = 0; i < l->npasses; i++)
		milter_chain_add(f->mail.chain, l->passes[i]);
}

void filtering_free(struct filtering **fp)
{
	struct filtering *f = mem_take(fp);
	if (!f)
		return;
	filter_mail_fini(&f->mail);
	free(f->sender);
	free(f->recipient);
	free(f);
}

/* Without the end of the last line. A greeting may refuse by 554, or by 421 for now; RFC 5321 3.1 knows
 * no other. */
static char *reply_of(const struct milter_verdict *v, bool greeting)
{
	size_t len = strlen(v->reply);
	assert(len > 2);
	char *reply = mem_strndup(v->reply, len - 2), *at = reply;
	while (greeting && at) {
		memcpy(at, at[0] == '5' ? "554" : "421", 3);
		at = strchr(at, '\n');
		at += at != NULL;
	}
	return reply;
}

/* The filters have answered. What they want discarded goes on as if nothing were the matter. */
static void conclude_event(struct session *s)
{
	struct filtering *f = s->filtering;
	const struct milter_verdict *v = milter_chain_verdict(f->mail.chain);
	filtering_resume *resume = f->resume;
	assert(v->outcome != MILTER_REFUSE || v->reply);
	bool passed = v->outcome != MILTER_REFUSE;
	if (milter_chain_holds(f->mail.chain) && s->tx)
		s->tx->envelope->held = true;
	if (!passed) {
		char *reply = reply_of(v, f->connecting);
		session_refuse_by(s, reply, f->recipient);
		free(reply);
	}
	mem_free(&f->recipient);
	f->connecting = false;
	resume(s, passed);
}

static void heard_filters(struct session *s, void *answer)
{
	(void)answer;
	conclude_event(s);
}

/* The chain answers, sooner or later. */
static void ask_filters(struct session *s, filtering_resume *resume, bool there)
{
	static const struct wait_kind kind = {.text = "filter", .answered = heard_filters};
	assert(!s->wait.kind);
	s->filtering->resume = resume;
	if (there)
		conclude_event(s);
	else
		wait_begin(s, &kind, 0);
}

void filtering_connect(struct session *s, filtering_resume *resume)
{
	struct filtering *f = s->filtering;
	const char *name = s->client_name ? s->client_name : "unknown";
	if (!f) {
		resume(s, true);
		return;
	}
	f->connecting = true;
	ask_filters(s, resume, milter_chain_connect(f->mail.chain, name, &s->peer));
}

void filtering_helo(struct session *s, const char *name, filtering_resume *resume)
{
	if (s->filtering)
		ask_filters(s, resume, milter_chain_helo(s->filtering->mail.chain, name));
	else
		resume(s, true);
}

void filtering_sender(struct session *s, const char *address)
{
	struct filtering *f = s->filtering;
	if (!f)
		return;
	free(f->sender);
	f->sender = mem_strdup(address);
}

void filtering_mail(struct session *s, filtering_resume *resume)
{
	struct filtering *f = s->filtering;
	if (!f) {
		resume(s, true);
		return;
	}
	const struct envelope *e = s->tx->envelope;
	struct buf parameters = {0};
	if (s->tx->announced)
		buf_printf(&parameters, " SIZE=%llu", (unsigned long long)s->tx->announced);
	if (e->body == BODY_8BITMIME)
		buf_puts(&parameters, " BODY=8BITMIME");
	if (e->smtputf8)
		buf_puts(&parameters, " SMTPUTF8");
	if (e->tls == ENVELOPE_TLS_REQUIRED)
		buf_puts(&parameters, " REQUIRETLS");
	if (e->ret)
		buf_printf(&parameters, " RET=%s", e->ret == RET_FULL ? "FULL" : "HDRS");
	if (e->envid)
		buf_printf(&parameters, " ENVID=%s", e->envid);
	char *path = mem_printf("<%s>", f->sender);
	ask_filters(s, resume, milter_chain_mail(f->mail.chain, path, buf_cstr(&parameters)));
	free(path);
	buf_fini(&parameters);
}

static void put_notify(struct buf *to, uint8_t notify)
{
	static const struct {
		uint8_t bit;
		const char *name;
	} words[] = {{NOTIFY_NEVER, "NEVER"},
		     {NOTIFY_SUCCESS, "SUCCESS"},
		     {NOTIFY_FAILURE, "FAILURE"},
		     {NOTIFY_DELAY, "DELAY"}};
	const char *between = " NOTIFY=";
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (!(notify & words[i].bit))
			continue;
		buf_printf(to, "%s%s", between, words[i].name);
		between = ",";
	}
}

void filtering_rcpt(struct session *s, const char *address, uint8_t notify, const char *orcpt,
		    filtering_resume *resume)
{
	struct filtering *f = s->filtering;
	if (!f) {
		resume(s, true);
		return;
	}
	struct buf parameters = {0};
	put_notify(&parameters, notify);
	if (orcpt)
		buf_printf(&parameters, " ORCPT=%s", orcpt);
	char *path = mem_printf("<%s>", address);
	assert(!f->recipient);
	f->recipient = mem_strdup(address);
	ask_filters(s, resume, milter_chain_rcpt(f->mail.chain, path, buf_cstr(&parameters)));
	free(path);
	buf_fini(&parameters);
}

void filtering_added(struct session *s, const char *address, struct alias_added *what)
{
	if (s->filtering)
		filter_changes_given(&s->filtering->mail.changes, address, what);
	alias_added_fini(what);
}

/* Recipients that a table throws away are none to filters, and libmilter leaves DATA without RCPT unanswered. */
void filtering_data(struct session *s, filtering_resume *resume)
{
	if (s->filtering && s->tx->envelope->nrcpt > 0)
		ask_filters(s, resume, milter_chain_data(s->filtering->mail.chain));
	else
		resume(s, true);
}

void filtering_unknown(struct session *s, const char *line, filtering_resume *resume)
{
	if (s->filtering)
		ask_filters(s, resume, milter_chain_unknown(s->filtering->mail.chain, line));
	else
		resume(s, true);
}

void filtering_reset(struct session *s)
{
	if (s->filtering)
		filter_mail_reset(&s->filtering->mail);
}

void filtering_stage(struct session *s, struct passage *p)
{
	if (s->filtering)
		filter_mail_stage(&s->filtering->mail, p);
}
