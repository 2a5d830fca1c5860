/* SPDX-License-Identifier: ISC */
#include "smtpd/consult.h"

#include "base/conf_value.h"
#include "base/log.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/netlist.h"
#include "smtpd/socketmap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct consult {
	struct conf *conf; /* a reference: its tables are looked through from begin to end */
	enum table_role role;
	struct conf_list among; /* the tables that count; none: all */
	struct consult_keys keys;
	int key, table; /* what is next */
	consult_done *done;
};

static void add_key(struct consult_keys *k, const char *text, bool files)
{
	k->key = mem_realloc(k->key, (size_t)(k->n + 1) * sizeof *k->key);
	k->key[k->n++] = (struct consult_key){mem_strdup(text), files};
}

void consult_keys_all(struct consult_keys *k)
{
	add_key(k, "*", true);
}

void consult_keys_exact(struct consult_keys *k, const char *text)
{
	add_key(k, text, false);
}

void consult_keys_login(struct consult_keys *k, const char *login)
{
	char *text = mem_printf("login:%s", login), *key = name_key(text);
	add_key(k, key, false);
	free(key);
	free(text);
}

/* The null sender is nobody's: "*" does not mean it. */
void consult_keys_address(struct consult_keys *k, const char *address)
{
	char room[MAILADDR_MAX];
	const char *key[TABLES_KEYS_MAX];
	int n = tables_keys(address, room, sizeof room, key);
	for (int i = 0; i < (*address ? n : 1); i++)
		add_key(k, key[i], strcmp(key[i], "*") == 0);
}

void consult_keys_name(struct consult_keys *k, const char *name)
{
	char *folded = name_key(name);
	add_key(k, folded, false);
	const char *dot = folded[0] == '[' ? NULL : strchr(folded, '.');
	for (; dot && dot[1] && k->n < 2 * TABLES_KEYS_MAX; dot = strchr(dot + 1, '.'))
		add_key(k, dot, false);
	free(folded);
}

void consult_keys_client(struct consult_keys *k, const union address *client, const char *name)
{
	struct net net;
	char text[NET_TEXT];
	bool around = false;
	net_of(client, &net);
	do
		add_key(k, net_text(&net, text), around);
	while ((around = net_up(&net)));
	if (name)
		consult_keys_name(k, name);
}

static void keys_fini(struct consult_keys *k)
{
	for (int i = 0; i < k->n; i++)
		free(k->key[i].text);
	free(k->key);
	*k = (struct consult_keys){0};
}

void consult_free(struct consult **lp)
{
	struct consult *l = mem_take(lp);
	if (!l)
		return;
	keys_fini(&l->keys);
	conf_list_free(&l->among);
	conf_unref(l->conf);
	free(l);
}

/* done() may begin another. */
static void finish_consult(struct session *s, const struct consult_found *found)
{
	struct consult *l = s->consult;
	assert(!s->wait.kind); /* done() may wait */
	s->consult = NULL;
	l->done(s, found);
	consult_free(&l);
}

static void step_on(struct consult *l)
{
	assert(l->key < l->keys.n);
	if (++l->table < tables_count(l->conf->tables, l->role))
		return;
	l->table = 0;
	l->key++;
}

static bool is_among(const struct consult *l)
{
	const char *file = tables_file(l->conf->tables, l->role, l->table);
	return l->among.n == 0 || conf_list_has(&l->among, file);
}

/* The settings may be newer than whoever has named the tables. */
static bool all_there(const struct consult *l)
{
	int there = 0;
	for (int i = 0; i < l->among.n; i++)
		for (int k = 0; k < tables_count(l->conf->tables, l->role); k++)
			if (strcmp(l->among.item[i], tables_file(l->conf->tables, l->role, k)) ==
			    0) {
				there++;
				break;
			}
	return there == l->among.n;
}

static void look_on(struct session *);

static void log_failure(const struct consult *l, const struct session *s, const char *reason)
{
	log_event(LOG_LEVEL_WARNING, "lookup", "session", log_id(s->number), "table",
		  tables_setting(l->role), "key", l->keys.key[l->key].text, "reason", reason, NULL);
}

static void heard_server(struct session *s, void *answer)
{
	const struct socketmap_answer *a = answer;
	struct consult *l = s->consult;
	struct consult_found found = {
		.origin = {tables_file(l->conf->tables, l->role, l->table), 0}};
	if (a->result == SOCKETMAP_NONE) {
		step_on(l);
		look_on(s);
		return;
	}
	found.failed = a->result == SOCKETMAP_FAILED;
	found.value = found.failed ? NULL : a->text;
	if (found.failed)
		log_failure(l, s, a->text);
	finish_consult(s, &found);
}

static void end_consult(struct session *s)
{
	socketmap_withdraw(s->worker->socketmaps, s->wait.cookie);
	consult_free(&s->consult);
}

static void ask_server(struct session *s, const struct socketmap_name *server, const char *key)
{
	static const struct wait_kind kind = {
		.text = "table", .answered = heard_server, .ended = end_consult};
	socketmap_ask(s->worker->socketmaps, server, key, wait_begin(s, &kind, 0));
}

static void look_on(struct session *s)
{
	struct consult *l = s->consult;
	struct consult_found found = {0};
	char *value = NULL;
	while (!value && l->key < l->keys.n) {
		if (!is_among(l)) {
			step_on(l);
			continue;
		}
		const struct consult_key *key = &l->keys.key[l->key];
		const struct socketmap_name *server;
		value = tables_get_at(l->conf->tables, l->role, l->table, key->text, &server,
				      &found.origin);
		if (server && !key->files) {
			if (!socketmap_known(s->worker->socketmaps, server, key->text, &value)) {
				ask_server(s, server, key->text);
				return;
			}
			found.origin = (struct table_origin){
				tables_file(l->conf->tables, l->role, l->table), 0};
		}
		if (!value)
			step_on(l);
	}
	found.value = value;
	finish_consult(s, &found);
	free(value);
}

/* Takes the keys. */
static struct consult *consult_new(struct session *s, enum table_role role,
				   struct consult_keys *keys, consult_done *done)
{
	struct consult *l = mem_zalloc(sizeof *l);
	assert(!s->consult);
	l->conf = conf_ref(s->worker->conf);
	l->role = role;
	l->keys = *keys;
	l->done = done;
	*keys = (struct consult_keys){0};
	s->consult = l;
	return l;
}

void consult_begin(struct session *s, enum table_role role, struct consult_keys *keys,
		   consult_done *done)
{
	assert(tables_count(s->worker->conf->tables, role) > 0);
	consult_new(s, role, keys, done);
	look_on(s);
}

void consult_among(struct session *s, enum table_role role, const struct conf_list *tables,
		   struct consult_keys *keys, consult_done *done)
{
	struct consult *l = consult_new(s, role, keys, done);
	for (int i = 0; i < tables->n; i++)
		conf_list_add(&l->among, tables->item[i]);
	if (all_there(l))
		look_on(s);
	else
		finish_consult(s, &(struct consult_found){.failed = true});
}
