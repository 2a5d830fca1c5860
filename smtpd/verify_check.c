/* SPDX-License-Identifier: ISC */
#include "smtpd/verify_check.h"

#include "base/conf_value.h"
#include "base/mem.h"
#include "base/route_value.h"
#include "base/tables.h"
#include "smtpd/alias.h"
#include "smtpd/rewrite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_alias(const struct conf *c, const char *address)
{
	struct conf_list to = {0};
	struct table_origin origin;
	bool found = alias_find(c, address, &to, &origin);
	conf_list_free(&to);
	return found;
}

/* The row that would count, were there no section: what does count, qmgr knows. */
static bool row_verifies(const struct conf *c, const char *address)
{
	struct table_origin origin;
	struct route_value v;
	struct buf why = {0};
	char *value = tables_find(c->tables, TABLE_ROUTES, address, &origin);
	bool verifies = value && !route_value_parse(value, &v, &why) && v.verify;
	if (value)
		route_value_fini(&v);
	free(value);
	buf_fini(&why);
	return verifies;
}

char *verify_check_address(const struct session *s, const char *recipient, bool wanted)
{
	const struct conf *c = s->worker->conf;
	struct rewrite r;
	char *address = NULL;
	if (!s->worker->qmgr || (!wanted && !c->routes_verify && c->routes.n == 0))
		return NULL;
	bool good = rewrite_recipient(c, recipient, &r);
	const char *to = rewrite_result(&r, recipient);
	if (good && !is_alias(c, to) && (wanted || c->routes_verify || row_verifies(c, to)))
		address = mem_strdup(to);
	rewrite_fini(&r);
	return address;
}

void verify_check_ask(struct session *s, const char *address, bool wanted,
		      const struct wait_kind *kind)
{
	struct verify *v = verify_new(address, NULL, s->worker->loop);
	v->only_routed = !wanted;
	v->ticket = wait_begin(s, kind, s->worker->conf->verify.timeout);
	loop_post(s->worker->qmgr, &v->note);
}

/* The next hop's code, but none that would end the session here; its words are for the log. */
static void refuse(struct session *s, const struct verify *v, const char *to)
{
	char text[] = "the next host does not take this recipient";
	int code = v->verdict->code;
	struct access_value said = {.action = ACCESS_REFUSE, .text = text};
	said.code = code >= 550 && code <= 559 ? code : 550;
	snprintf(said.dsn, sizeof said.dsn, "%s",
		 v->verdict->dsn[0] == '5' && strcmp(v->verdict->dsn, "5.0.0") != 0
			 ? v->verdict->dsn
			 : "5.1.1");
	session_refuse_as(s, &said, to);
}

bool verify_check_pass(struct session *s, const struct verify *v, const char *to)
{
	enum verify_result result = v ? v->result : VERIFY_UNKNOWN;
	if (result == VERIFY_REFUSES) {
		refuse(s, v, to);
		return false;
	}
	if (result == VERIFY_UNKNOWN && s->worker->conf->verify.unavailable == VERIFY_DEFER) {
		session_refuse(s, RESPONSE_NOT_VERIFIED, to);
		return false;
	}
	return true;
}
