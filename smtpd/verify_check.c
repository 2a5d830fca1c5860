/* SPDX-License-Identifier: ISC */
#include "smtpd/verify_check.h"

#include "base/conf_value.h"
#include "base/hint.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/name_key.h"
#include "base/route_value.h"
#include "base/tables.h"
#include "smtpd/alias.h"
#include "smtpd/reception.h"
#include "smtpd/rewrite.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_alias(const struct session *s, const char *address)
{
	struct conf_list to = {0};
	struct table_origin origin;
	enum alias_found found =
		alias_find(s->worker->conf, &s->tx->aliases.heard, address, &to, &origin);
	conf_list_free(&to);
	return found == ALIAS_IS_ONE;
}

/* The row that would count, were there no section: what does count, qmgr knows. */
static void read_row(const struct conf *c, enum table_role role, const char *address,
		     bool *verifies, bool *refuses)
{
	struct table_origin origin;
	struct route_value v;
	struct buf why = {0};
	char *value = tables_find(c->tables, role, address, &origin);
	bool good = value && !route_value_parse(value, &v, &why);
	*verifies = good && v.verify;
	*refuses = good && v.action == ROUTE_ERROR;
	if (value)
		route_value_fini(&v);
	free(value);
	buf_fini(&why);
}

static bool may_verify(const struct conf *c, const char *address, bool wanted)
{
	bool verifies, refuses;
	if (wanted || c->routes_verify)
		return true;
	read_row(c, TABLE_ROUTES, address, &verifies, &refuses);
	return verifies;
}

/* By one of the routes that it may have. */
static bool may_refuse(const struct conf *c, const char *sender, const char *address)
{
	bool verifies, refuses = c->routes_refuse;
	if (!refuses)
		read_row(c, TABLE_ROUTES, address, &verifies, &refuses);
	if (!refuses)
		read_row(c, TABLE_SENDER_ROUTES, sender, &verifies, &refuses);
	return refuses;
}

static int64_t suppress_of_flow(const struct session *s)
{
	const struct conf *c = s->worker->conf;
	if (!c->flows_suppress)
		return 0;
	char *name = reception_flow(s, NULL);
	int64_t time_ms = conf_flow_find(c, name)->suppress;
	free(name);
	return time_ms;
}

/* As the flow says, or the listener, or all of it. */
static int64_t suppress_ms(const struct session *s)
{
	int64_t of_flow = suppress_of_flow(s), of_listener = s->service->listener->suppress;
	return of_flow ? of_flow : of_listener ? of_listener : s->worker->conf->suppress;
}

static bool is_hinted(const struct session *s, const char *address)
{
	char *key = name_key(address);
	bool hinted = hint_maybe(HINT_DEAD_DOMAIN, mailaddr_domain(key)) ||
		      (hint_maybe(HINT_SUPPRESSED, key) && suppress_ms(s) > 0);
	free(key);
	return hinted;
}

static bool is_due(const struct session *s, const char *address, bool wanted)
{
	const struct conf *c = s->worker->conf;
	return (may_verify(c, address, wanted) || may_refuse(c, s->tx->envelope->sender, address) ||
		is_hinted(s, address)) &&
	       !is_alias(s, address);
}

char *verify_check_address(const struct session *s, const char *recipient, bool wanted)
{
	struct rewrite r;
	char *address = NULL;
	if (!s->worker->qmgr)
		return NULL;
	bool good = rewrite_recipient(s->worker->conf, recipient, &r);
	const char *to = rewrite_result(&r, recipient);
	if (good && is_due(s, to, wanted))
		address = mem_strdup(to);
	rewrite_fini(&r);
	return address;
}

/* A known recipient is answered at once; a next hop may take its time. */
void verify_check_ask(struct session *s, const char *address, bool wanted, bool listed,
		      const struct verify_check_kinds *kinds)
{
	const struct conf *c = s->worker->conf;
	assert(s->tx && s->worker->qmgr);
	bool of_host = may_verify(c, address, wanted);
	struct verify *v = verify_new(address, NULL, s->worker->loop);
	v->from = mem_strdup(s->tx->envelope->sender);
	v->only_routed = !wanted;
	v->listed = listed;
	v->suppress_ms = suppress_ms(s);
	v->cookie = of_host ? wait_begin(s, kinds->of_host, c->verify.timeout)
			    : wait_begin(s, kinds->known, 0);
	loop_post(s->worker->qmgr, &v->note);
}

/* The next hop's code, but none that would end the session here; its words are for the log. */
static void refuse_for_host(struct session *s, const struct verify *v, const char *to)
{
	char text[] = "the next host does not take this recipient";
	int code = v->verdict->code;
	assert(v->result == VERIFY_REFUSES && !v->ours);
	struct access_value said = {.action = ACCESS_REFUSE, .text = text};
	said.code = code >= 550 && code <= 559 ? code : 550;
	snprintf(said.dsn, sizeof said.dsn, "%s",
		 v->verdict->dsn[0] == '5' && strcmp(v->verdict->dsn, "5.0.0") != 0
			 ? v->verdict->dsn
			 : "5.1.1");
	session_refuse_as(s, &said, to);
}

/* The operator's words, or what everybody can look up. */
static void refuse_ourselves(struct session *s, const struct verify *v, const char *to)
{
	struct access_value said = {.action = ACCESS_REFUSE, .text = mem_strdup(v->verdict->text)};
	int usual = v->verdict->class == VERDICT_FAILED ? 550 : 450;
	said.code = v->verdict->code ? v->verdict->code : usual;
	snprintf(said.dsn, sizeof said.dsn, "%s", v->verdict->dsn);
	session_refuse_as(s, &said, to);
	access_value_fini(&said);
}

bool verify_check_listed(struct session *s, const struct consult_found *found, const char *to)
{
	char text[] = "User unknown";
	struct access_value said = {
		.action = ACCESS_REFUSE, .code = 550, .dsn = "5.1.1", .text = text};
	if (found->failed) {
		session_refuse(s, RESPONSE_LOOKUP_FAILED, to);
	} else if (!found->value) {
		metric_cell_add(metric_cell(FAMILY_known_refusals, "recipients", NULL), 1);
		session_refuse_as(s, &said, to);
	}
	return !found->failed && found->value;
}

bool verify_check_pass(struct session *s, const struct verify *v, const char *to)
{
	enum verify_result result = v ? v->result : VERIFY_UNKNOWN;
	if (v && v->ours) {
		refuse_ourselves(s, v, to);
		return false;
	}
	if (result == VERIFY_REFUSES) {
		refuse_for_host(s, v, to);
		return false;
	}
	if (result == VERIFY_UNKNOWN && s->worker->conf->verify.unavailable == VERIFY_DEFER) {
		session_refuse(s, RESPONSE_NOT_VERIFIED, to);
		return false;
	}
	return true;
}
