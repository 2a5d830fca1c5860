/* SPDX-License-Identifier: ISC */
#include "base/tables.h"

#include "base/access_value.h"
#include "base/alias_value.h"
#include "base/condition.h"
#include "base/conf_value.h"
#include "base/credential.h"
#include "base/dkim_rows.h"
#include "base/mailaddr.h"
#include "base/envelope.h"
#include "base/limit_value.h"
#include "base/mem.h"
#include "base/netlist.h"
#include "base/name_key.h"
#include "base/refs.h"
#include "base/route_value.h"
#include "base/tls_policy.h"
#include "base/users.h"
#include "base/words.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct role {
	int n;
	struct table **table;
};

struct tables {
	atomic_int refs;
	struct role of[TABLE_ROLES];
};

static const char *check_key(const char *key, const char *value, struct buf *why)
{
	if (conf_pattern_good(key))
		return NULL;
	buf_printf(why, "\"%s\" is not an address, a domain, a .parent of domains, or *", key);
	return value;
}

static const char *check_alias(const void *context, const char *key, const char *value,
			       struct buf *why)
{
	const struct conf *c = context;
	const struct conf_alias *section = conf_alias_find(c, key);
	if (section)
		buf_printf(why, "alias \"%s\" is already there, at %s:%d", key, c->file,
			   section->line);
	else if (!strchr(key, '@') && strcmp(key, "postmaster") != 0)
		buf_printf(why, "\"%s\" is not an address", key);
	else
		return alias_value_parse(value, key, NULL, why);
	return value;
}

static bool transport_exists(const struct conf *c, const char *title)
{
	for (int i = 0; i < c->ntransport; i++)
		if (strcmp(c->transport[i].title, title) == 0)
			return true;
	return false;
}

/* Recipients are asked about in the name of verify { sender }, whoever the sender is. */
static const char *check_way(const struct conf *c, bool may_verify, const char *value,
			     struct buf *why)
{
	struct route_value v;
	const char *bad = route_value_parse(value, &v, why);
	if (!bad && v.transport && !transport_exists(c, v.transport)) {
		buf_printf(why, "there is no transport \"%s\"", v.transport);
		bad = value;
	} else if (!bad && v.verify && !may_verify) {
		buf_puts(why, "verify is for routes of recipients");
		bad = value;
	}
	route_value_fini(&v);
	return bad;
}

static const char *check_route(const void *context, const char *key, const char *value,
			       struct buf *why)
{
	const char *bad = check_key(key, value, why);
	return bad ? bad : check_way(context, true, value, why);
}

static const char *check_sender_route(const void *context, const char *key, const char *value,
				      struct buf *why)
{
	const char *bad = strcmp(key, "<>") == 0 ? NULL : check_key(key, value, why);
	return bad ? bad : check_way(context, false, value, why);
}

static const char *check_mailbox(const char *text, const char *value, struct buf *why)
{
	struct mailaddr a;
	if (mailaddr_mailbox(text, strlen(text), true, &a) == MAILADDR_OK && a.text[a.at])
		return NULL;
	buf_printf(why, "\"%s\" is not an address", text);
	return value;
}

/* "@domain" keeps the local part. */
static const char *check_canonical(const void *context, const char *key, const char *value,
				   struct buf *why)
{
	(void)context;
	const char *bad = strcmp(key, "<>") == 0 ? NULL : check_key(key, value, why);
	if (bad || (value[0] == '@' && conf_host_good(value + 1)))
		return bad;
	return check_mailbox(value, value, why);
}

static const char *check_bcc(const void *context, const char *key, const char *value,
			     struct buf *why)
{
	(void)context;
	const char *bad = strcmp(key, "<>") == 0 ? NULL : check_key(key, value, why);
	return bad ? bad : check_mailbox(value, value, why);
}

static const char *check_archived(const void *context, const char *key, const char *value,
				  struct buf *why)
{
	(void)context;
	bool special = strcmp(key, "<>") == 0 || strncmp(key, "login:", 6) == 0;
	const char *bad = special ? NULL : check_key(key, value, why);
	return bad ? bad : check_mailbox(value, value, why);
}

static const char *check_action(const char *value, bool may_verify, struct buf *why)
{
	struct access_value v = {.code = 0};
	const char *bad = access_value_parse(value, &v, why);
	if (!bad && v.action == ACCESS_VERIFY && !may_verify) {
		buf_puts(why, "verify is for recipients");
		bad = value;
	}
	access_value_fini(&v);
	return bad;
}

static const char *check_access(const void *context, const char *key, const char *value,
				struct buf *why)
{
	(void)context;
	const char *bad = check_key(key, value, why);
	return bad ? bad : check_action(value, true, why);
}

static const char *check_sender_access(const void *context, const char *key, const char *value,
				       struct buf *why)
{
	(void)context;
	const char *bad = strcmp(key, "<>") == 0 ? NULL : check_key(key, value, why);
	return bad ? bad : check_action(value, false, why);
}

/* A name that a client has, or gives itself. */
static const char *check_name(const char *key, const char *value, struct buf *why)
{
	if (conf_pattern_good(key) && !strchr(key, '@'))
		return NULL;
	buf_printf(why, "\"%s\" is not a name, a .parent of names, nor *", key);
	return value;
}

/* A network, in its one form, too. False: that is none. */
static bool is_network(const char *key, const char **bad, struct buf *why)
{
	struct net net;
	char text[NET_TEXT];
	if (!net_parse(key, &net))
		return false;
	*bad = strcmp(net_text(&net, text), key) == 0 ? NULL : key;
	if (*bad)
		buf_printf(why, "this network is to be written %s", text);
	return true;
}

static const char *check_client_access(const void *context, const char *key, const char *value,
				       struct buf *why)
{
	const char *bad = NULL;
	(void)context;
	if (!is_network(key, &bad, why) && check_name(key, value, why)) {
		buf_puts(why, ", nor an address or network");
		bad = value;
	}
	return bad ? bad : check_action(value, false, why);
}

/* Some name themselves by an address, "[192.0.2.1]". */
static const char *check_helo_access(const void *context, const char *key, const char *value,
				     struct buf *why)
{
	(void)context;
	const char *bad = mailaddr_domain_valid(key, false) ? NULL : check_name(key, value, why);
	return bad ? bad : check_action(value, false, why);
}

/* What Postfix wants behind the address is nothing to us. */
static const char *check_recipient(const void *context, const char *key, const char *value,
				   struct buf *why)
{
	(void)context;
	return check_key(key, value, why);
}

static const char *check_credential(const void *context, const char *key, const char *value,
				    struct buf *why)
{
	(void)context;
	size_t hop = strcspn(key, " ");
	char *relay = mem_strndup(key, hop);
	struct conf_relay r;
	bool good = conf_relay_read(relay, &r) && r.weight == 0;
	free(r.host);
	if (!good)
		buf_printf(why,
			   "\"%s\" is not a next hop: host, host:port, [host], [host]:port or "
			   "unix:/SOCKET",
			   relay);
	free(relay);
	if (!good)
		return value;
	const char *sender = key[hop] ? key + hop + 1 : "";
	if (*sender && strcmp(sender, "<>") != 0 && check_key(sender, value, why))
		return value;
	return credential_parse(value, NULL, why);
}

static const char *check_user(const void *context, const char *key, const char *value,
			      struct buf *why)
{
	struct user_value v;
	char login[USERS_LOGIN_MAX + 1];
	(void)context;
	if (strcmp(key, USERS_NOBODY) != 0 && !users_login(key, login, why))
		return value;
	const char *bad = user_value_parse(value, &v, why);
	user_value_fini(&v);
	return bad;
}

static const char *check_logins(const void *context, const char *key, const char *value,
				struct buf *why)
{
	(void)context;
	if (!conf_pattern_good(key) && strcmp(key, "<>") != 0) {
		buf_puts(why, "not an address, a domain, a .parent of domains, *, or <>");
		return key;
	}
	return users_listed(value, NULL, why) ? NULL : value;
}

static const char *check_flow(const void *context, const char *key, const char *value,
			      struct buf *why)
{
	const char *bad = NULL;
	(void)context;
	bool is_net = is_network(key, &bad, why);
	if (bad)
		return bad;
	if (!is_net && strncmp(key, "login:", 6) != 0 && !conf_pattern_good(key) &&
	    strcmp(key, "<>") != 0) {
		buf_puts(why, "not login:NAME, an address, a domain, a .parent of domains, *, <>, "
			      "nor a network");
		return key;
	}
	if (envelope_flow_good(value))
		return NULL;
	buf_puts(why,
		 "not the name of a flow: up to 64 letters, digits, dots, lines and underscores");
	return value;
}

static const char *check_limit(const void *context, const char *key, const char *value,
			       struct buf *why)
{
	struct limit_value v;
	char login[USERS_LOGIN_MAX + 1];
	(void)context;
	if (!users_login(key, login, why))
		return key;
	if (strcmp(key, login) != 0) {
		buf_printf(why, "this login is to be written %s", login);
		return key;
	}
	return limit_value_parse(value, &v, why);
}

static const char *check_dkim_keys(const void *context, const char *key, const char *value,
				   struct buf *why)
{
	struct dkim_rows rows = {.n = 0};
	(void)context;
	if (!conf_host_good(key + (key[0] == '.'))) {
		buf_puts(why, "not a domain, nor one with a dot in front");
		return key;
	}
	const char *bad = dkim_rows_parse(value, &rows, why);
	dkim_rows_fini(&rows);
	return bad;
}

static const char *check_certificate(const void *context, const char *key, const char *value,
				     struct buf *why)
{
	char login[USERS_LOGIN_MAX + 1];
	(void)context;
	if (strlen(key) != 64 || strspn(key, "0123456789abcdef") != 64) {
		buf_puts(why, "not a SHA-256 fingerprint, 64 hexadecimal digits");
		return key;
	}
	return users_login(value, login, why) ? NULL : value;
}

/* A domain, or a next hop as it is written. */
static const char *check_tls_policy(const void *context, const char *key, const char *value,
				    struct buf *why)
{
	(void)context;
	struct conf_relay r;
	bool hop = conf_relay_read(key, &r) && r.weight == 0;
	free(r.host);
	if (!hop && (!conf_pattern_good(key) || strchr(key, '@'))) {
		buf_printf(why, "\"%s\" is not a domain, a .parent of domains, a next hop, or *",
			   key);
		return value;
	}
	return tls_policy_good(value, why) ? NULL : value;
}

static const struct table_form forms[] = {
#define T(role, setting, ends, form, good)                                                         \
	[TABLE_##role] = {.colon = ends,                                                           \
			  .shape = form,                                                           \
			  .check = good,                                                           \
			  .bare = TABLE_##role == TABLE_RECIPIENTS,                                \
			  .verbatim = TABLE_##role == TABLE_USERS ||                               \
				      TABLE_##role == TABLE_LIMITS ||                              \
				      TABLE_##role == TABLE_CLIENT_CERTIFICATES},
	TABLES(T)
#undef T
};

static const struct table_form *form_of(int role)
{
	static const struct table_form credentials = {.colon = false,
						      .shape = "NEXT-HOP [SENDER] LOGIN SECRET",
						      .check = check_credential,
						      .two = credential_has_sender};
	return role == TABLE_CREDENTIALS ? &credentials : &forms[role];
}

static const struct conf_list *files_of(const struct conf *c, enum table_role role)
{
	switch (role) {
#define T(name, setting, ...)                                                                      \
	case TABLE_##name:                                                                         \
		return &c->setting;
		TABLES(T)
#undef T
	default:
		return NULL;
	}
}

/* Whoever wants all mail signed does not want it unsigned for a mistake in a name. */
static void check_also(const struct conf *c, struct tables *t, struct conf_faults *faults)
{
	char own[NAME_KEY_DOMAIN];
	const struct conf_dkim *by[CONF_DKIM_MAX];
	struct dkim_rows rows = {.n = 0};
	if (!*c->dkim_also)
		return;
	name_key_domain(c->dkim_also, own);
	if (conf_dkim_find(c, own, by) == 0 && !dkim_rows_find(t, own, &rows))
		conf_fault(faults, c->file, 1,
			   "dkim_also: no section dkim, and no row of dkim_keys, signs for \"%s\"",
			   c->dkim_also);
	dkim_rows_fini(&rows);
}

struct tables *tables_read(const struct conf *c, struct conf_faults *faults)
{
	int before = faults->n;
	struct tables *t = mem_zalloc(sizeof *t);
	atomic_init(&t->refs, 1);
	for (int role = 0; role < TABLE_ROLES; role++) {
		const struct conf_list *files = files_of(c, (enum table_role)role);
		struct role *r = &t->of[role];
		r->table = mem_zalloc((size_t)files->n * sizeof(struct table *));
		for (; r->n < files->n; r->n++)
			r->table[r->n] = table_read(files->item[r->n], form_of(role), c, faults);
	}
	if (faults->n == before)
		check_also(c, t, faults);
	if (faults->n == before)
		return t;
	tables_unref(t);
	return NULL;
}

bool tables_stale(const struct tables *t)
{
	for (int role = 0; role < TABLE_ROLES; role++)
		for (int i = 0; i < t->of[role].n; i++)
			if (table_fresh(t->of[role].table[i]) == TABLE_STALE)
				return true;
	return false;
}

const char *tables_setting(enum table_role role)
{
	static const char *const settings[] = {
#define T(role, setting, ...) [TABLE_##role] = #setting,
		TABLES(T)
#undef T
	};
	return settings[role];
}

/* reason: the first of the faults that this file has. */
static void tell_of(const char *file, enum table_role role, const struct conf_fault *fault)
{
	char *subject = mem_printf("%s %s", tables_setting(role), file);
	char *reason = fault ? mem_printf("line %d: %s", fault->line, fault->text) : NULL;
	condition_turn(CONDITION_tables_stale, fault != NULL, subject, reason);
	free(subject);
	free(reason);
}

static struct table *renew(const struct conf *c, int role, int i, struct conf_faults *faults)
{
	struct table *old = c->tables->of[role].table[i];
	const char *file = files_of(c, (enum table_role)role)->item[i];
	int before = faults->n;
	if (table_fresh(old) != TABLE_STALE)
		return table_ref(old);
	struct table *new = table_read(file, form_of(role), c, faults);
	if (!new)
		table_faulty(old);
	tell_of(file, (enum table_role)role, new ? NULL : &faults->fault[before]);
	return new ? new : table_ref(old);
}

struct tables *tables_renew(const struct conf *c, struct conf_faults *faults)
{
	struct tables *t = mem_zalloc(sizeof *t);
	atomic_init(&t->refs, 1);
	for (int role = 0; role < TABLE_ROLES; role++) {
		struct role *r = &t->of[role];
		int n = c->tables->of[role].n;
		r->table = mem_zalloc((size_t)n * sizeof(struct table *));
		for (; r->n < n; r->n++)
			r->table[r->n] = renew(c, role, r->n, faults);
	}
	return t;
}

struct tables *tables_ref(struct tables *t)
{
	refs_take(&t->refs);
	return t;
}

void tables_unref(struct tables *t)
{
	if (!t || !refs_drop(&t->refs))
		return;
	for (int role = 0; role < TABLE_ROLES; role++) {
		for (int i = 0; i < t->of[role].n; i++)
			table_unref(t->of[role].table[i]);
		free(t->of[role].table);
	}
	free(t);
}

int tables_count(const struct tables *t, enum table_role role)
{
	return t ? t->of[role].n : 0;
}

const char *tables_file(const struct tables *t, enum table_role role, int i)
{
	return table_file(t->of[role].table[i]);
}

/* Those that a session looks up, which can wait, or the maildrop. */
bool tables_may_ask(enum table_role role)
{
	const unsigned sessions = 1U << TABLE_CLIENT_ACCESS | 1U << TABLE_HELO_ACCESS |
				  1U << TABLE_SENDER_ACCESS | 1U << TABLE_RECIPIENT_ACCESS |
				  1U << TABLE_SENDER_LOGINS | 1U << TABLE_RECIPIENTS |
				  1U << TABLE_FLOWS | 1U << TABLE_LIMITS | 1U << TABLE_ALIASES;
	return sessions >> role & 1;
}

bool tables_asked(const struct tables *t, enum table_role role)
{
	bool asked = false;
	for (int i = 0; t && i < t->of[role].n; i++)
		asked = asked || table_server(t->of[role].table[i]);
	return asked;
}

char *tables_get_at(const struct tables *t, enum table_role role, int i, const char *key,
		    const struct socketmap_name **server, struct table_origin *origin)
{
	const struct table *of = t->of[role].table[i];
	*server = table_server(of);
	return *server ? NULL : table_get(of, key, origin);
}

void tables_each(const struct tables *t, enum table_role role,
		 void (*row)(void *context, const char *key, const char *value), void *context)
{
	for (int i = 0; i < t->of[role].n; i++)
		table_each(t->of[role].table[i], row, context);
}

char *tables_get(const struct tables *t, enum table_role role, const char *key,
		 struct table_origin *origin)
{
	char *value = NULL;
	for (int i = 0; t && !value && i < t->of[role].n; i++)
		value = table_get(t->of[role].table[i], key, origin);
	return value;
}

char *tables_any(const struct tables *t, enum table_role role, const char *except, uint64_t choice)
{
	char *value = NULL;
	for (int i = 0; t && !value && i < t->of[role].n; i++)
		value = table_any(t->of[role].table[i], except, choice);
	return value;
}

int tables_keys(const char *address, char *room, size_t size, const char *key[TABLES_KEYS_MAX])
{
	int n = 0;
	bool fits = name_key_into(address, room, size);
	const char *domain = mailaddr_domain(fits ? room : address);
	if (*address == '\0')
		key[n++] = "<>";
	else if (fits)
		key[n++] = room;
	if (*domain)
		key[n++] = domain;
	for (const char *dot = strchr(domain, '.'); dot && n < TABLES_KEYS_MAX - 1;
	     dot = strchr(dot + 1, '.'))
		key[n++] = dot;
	key[n++] = "*";
	return n;
}

char *tables_find(const struct tables *t, enum table_role role, const char *address,
		  struct table_origin *origin)
{
	char room[MAILADDR_MAX];
	const char *key[TABLES_KEYS_MAX];
	char *value = NULL;
	if (!t || t->of[role].n == 0)
		return NULL;
	int n = tables_keys(address, room, sizeof room, key);
	/* The null sender is nobody's: "*" does not mean it. */
	for (int i = 0; !value && i < (*address ? n : 1); i++)
		value = tables_get(t, role, key[i], origin);
	return value;
}

static bool is_of(const struct table *t, const struct conf_list *files)
{
	for (int i = 0; i < files->n; i++)
		if (strcmp(files->item[i], table_file(t)) == 0)
			return true;
	return false;
}

static bool has_key(const struct table *t, const char *const *key, int n)
{
	struct table_origin origin;
	bool found = false;
	for (int i = 0; !found && i < n; i++) {
		char *value = table_get(t, key[i], &origin);
		found = value;
		free(value);
	}
	return found;
}

void tables_servers(const struct tables *t, enum table_role role, const struct conf_list *files,
		    struct conf_list *servers)
{
	for (int i = 0; t && i < t->of[role].n; i++)
		if (table_server(t->of[role].table[i]) && is_of(t->of[role].table[i], files))
			conf_list_add(servers, table_file(t->of[role].table[i]));
}

bool tables_list(const struct tables *t, enum table_role role, const struct conf_list *files,
		 const char *address)
{
	char room[MAILADDR_MAX];
	const char *key[TABLES_KEYS_MAX];
	int n = tables_keys(address, room, sizeof room, key);
	bool found = false;
	for (int i = 0; t && !found && i < t->of[role].n; i++)
		found = is_of(t->of[role].table[i], files) && has_key(t->of[role].table[i], key, n);
	return found;
}
