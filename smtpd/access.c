/* SPDX-License-Identifier: ISC */
#include "smtpd/access.h"

#include "base/log.h"
#include "base/mem.h"
#include "smtpd/reception.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static const enum table_role order[] = {TABLE_CLIENT_ACCESS, TABLE_HELO_ACCESS, TABLE_SENDER_ACCESS,
					TABLE_FLOWS};

enum { ROLES = sizeof order / sizeof *order };

static void fail_lookup(struct access_value *v)
{
	const struct response_row *row = response_row(RESPONSE_LOOKUP_FAILED);
	access_value_fini(v);
	*v = (struct access_value){.action = ACCESS_REFUSE, .code = row->code};
	snprintf(v->dsn, sizeof v->dsn, "%s", row->dsn);
	v->text = mem_strdup(response_reason(RESPONSE_LOOKUP_FAILED));
}

/* Rows of files were looked at when they were read; what a server says was not. */
static void read_value(const struct session *s, enum table_role role,
		       const struct consult_found *found, struct access_value *v)
{
	struct buf why = {0};
	*v = (struct access_value){.action = ACCESS_ACCEPT};
	if (found->failed) {
		fail_lookup(v);
	} else if (found->value &&
		   (access_value_parse(found->value, v, &why) ||
		    (v->action == ACCESS_VERIFY && role != TABLE_RECIPIENT_ACCESS))) {
		log_event(LOG_LEVEL_WARNING, "lookup", "session", log_id(s->number), "table",
			  tables_setting(role), "reason",
			  log_text("\"%s\" is no action: %s", found->value, buf_cstr(&why)), NULL);
		fail_lookup(v);
	}
	buf_fini(&why);
}

static void hold_or_name(struct session *s, struct access_value *v)
{
	struct reception *t = s->tx;
	if (v->action == ACCESS_HOLD)
		t->envelope->held = true;
	if (v->action != ACCESS_FLOW || t->flow_named)
		return;
	t->flow_named = v->text;
	v->text = NULL;
}

static void ask_next(struct session *s);

/* A row of flows is no access: what it says is the flow, should nothing else name one. */
static void take_flow(struct session *s, const struct consult_found *found, struct access_value *v)
{
	struct reception *t = s->tx;
	*v = (struct access_value){.action = ACCESS_ACCEPT};
	if (found->failed) {
		fail_lookup(v);
	} else if (found->value && !envelope_flow_good(found->value)) {
		log_event(LOG_LEVEL_WARNING, "lookup", "session", log_id(s->number), "table",
			  tables_setting(TABLE_FLOWS), "reason",
			  log_text("\"%s\" is not the name of a flow", found->value), NULL);
		fail_lookup(v);
	} else {
		t->flow_asked = true;
		t->flow_row = mem_strdup(found->value);
	}
}

static void found_of_transaction(struct session *s, const struct consult_found *found)
{
	struct reception *t = s->tx;
	struct access_value v;
	t->access_by = order[t->access_step++];
	if (t->access_by == TABLE_FLOWS)
		take_flow(s, found, &v);
	else
		read_value(s, t->access_by, found, &v);
	if (v.action == ACCESS_REFUSE || v.action == ACCESS_DISCARD) {
		t->access = v;
		t->access_done(s);
		return;
	}
	hold_or_name(s, &v);
	access_value_fini(&v);
	ask_next(s);
}

static void make_keys(const struct session *s, enum table_role role, struct consult_keys *keys)
{
	if (role == TABLE_FLOWS) {
		if (s->login)
			consult_keys_login(keys, s->login);
		consult_keys_address(keys, s->tx->sender);
		consult_keys_client(keys, &s->peer, NULL);
		return;
	}
	if (role == TABLE_SENDER_ACCESS) {
		consult_keys_address(keys, s->tx->mail_from);
		return;
	}
	if (role == TABLE_CLIENT_ACCESS)
		consult_keys_client(keys, &s->peer, s->client_name);
	else
		consult_keys_name(keys, s->helo);
	consult_keys_all(keys);
}

/* Files of flows are looked at when the message has come: flow_name.h. */
static bool is_due(const struct session *s, enum table_role role)
{
	const struct tables *t = s->worker->conf->tables;
	return role == TABLE_FLOWS ? !s->tx->flow_named && tables_asked(t, role)
				   : tables_count(t, role) > 0;
}

static void ask_next(struct session *s)
{
	struct reception *t = s->tx;
	while (t->access_step < ROLES && !is_due(s, order[t->access_step]))
		t->access_step++;
	if (t->access_step == ROLES) {
		t->access_done(s);
		return;
	}
	struct consult_keys keys = {0};
	make_keys(s, order[t->access_step], &keys);
	consult_begin(s, order[t->access_step], &keys, found_of_transaction);
}

void access_transaction(struct session *s, void (*done)(struct session *))
{
	assert(s->tx && !s->tx->access_done);
	s->tx->access_done = done;
	ask_next(s);
}

bool access_refuses(const struct session *s)
{
	return s->tx->access.action == ACCESS_REFUSE || s->tx->access.action == ACCESS_DISCARD;
}

static void drop_recipient(struct session *s, enum table_role by, const char *to)
{
	char client[64];
	log_event(LOG_LEVEL_INFO, "discard", "session", log_id(s->number), "client",
		  address_text(&s->peer, client), "from", s->tx->sender, "to", to, "reason",
		  tables_setting(by), "helo", s->helo, "proto", session_protocol(s), NULL);
	s->tx->besides++;
	session_reply(s, RESPONSE_RECIPIENT_OK);
	session_move(s, SESSION_RCPT);
}

/* False: it is answered. */
static bool carry_out_value(struct session *s, enum table_role by, const struct access_value *v,
			    const char *to)
{
	if (v->action == ACCESS_REFUSE)
		session_refuse_as(s, v, to);
	else if (v->action == ACCESS_DISCARD)
		drop_recipient(s, by, to);
	return v->action != ACCESS_REFUSE && v->action != ACCESS_DISCARD;
}

bool access_admits(struct session *s, const char *to)
{
	return carry_out_value(s, s->tx->access_by, &s->tx->access, to);
}

bool access_recipient(struct session *s, const char *to, const struct consult_found *found,
		      struct access_value *v)
{
	read_value(s, TABLE_RECIPIENT_ACCESS, found, v);
	return carry_out_value(s, TABLE_RECIPIENT_ACCESS, v, to);
}
