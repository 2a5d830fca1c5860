/* SPDX-License-Identifier: ISC */
#include "base/table_forms.h"

#include "base/access_value.h"
#include "base/alias_value.h"
#include "base/conf_rows.h"
#include "base/credential.h"
#include "base/dkim_rows.h"
#include "base/envelope.h"
#include "base/limit_value.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/netlist.h"
#include "base/route_value.h"
#include "base/tls_policy.h"
#include "base/users.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	else if (!conf_alias_good(key))
		buf_printf(why, "\"%s\" is not an address", key);
	else
		return alias_value_parse(value, key, NULL, why);
	return value;
}

/* Recipients are asked about in the name of verify { sender }, whoever the sender is. */
static const char *check_way(const struct conf *c, bool may_verify, const char *value,
			     struct buf *why)
{
	struct route_value v;
	const char *bad = route_value_parse(value, &v, why);
	if (!bad && v.transport && !conf_find(c, CONF_KIND_TRANSPORT, v.transport)) {
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
	char domain[NAME_KEY_DOMAIN];
	if (bad ||
	    (value[0] == '@' && name_key_domain(value + 1, domain) && conf_host_good(domain)))
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
	if (conf_pattern_good(key) && !strpbrk(key, "@["))
		return NULL;
	buf_printf(why, "\"%s\" is not a name, a .parent of names, nor *", key);
	return value;
}

/* "192.168", as access(5) of Postfix has it for 192.168.0.0/16: a name to all that looks names up, and nobody's. */
static bool is_cut_address(const char *key, struct buf *why)
{
	unsigned octet[4] = {0}, n = 0;
	int end = 0;
	if (key[strspn(key, "0123456789.")] || !isdigit((unsigned char)*key))
		return false;
	for (const char *at = key; n < 4 && sscanf(at, "%3u%n", &octet[n], &end) == 1; n++)
		at += end + (at[end] == '.');
	buf_printf(why, "\"%s\" is no whole address", key);
	if (n < 4 && octet[0] < 256 && octet[1] < 256 && octet[2] < 256)
		buf_printf(why, ": a network is written %u.%u.%u.0/%u", octet[0], octet[1],
			   octet[2], n * 8);
	return true;
}

/* A network, in its one form, too. False: that is none, nor part of one. */
static bool is_network(const char *key, const char **bad, struct buf *why)
{
	struct net net;
	char text[NET_TEXT];
	if (!net_parse(key, &net)) {
		*bad = is_cut_address(key, why) ? key : NULL;
		return *bad != NULL;
	}
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
	const char *bad = mailaddr_domain_valid(key) ? NULL : check_name(key, value, why);
	return bad ? bad : check_action(value, false, why);
}

/* The value that Postfix wants behind the address is nothing to us. */
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
	if (!users_in_table(key, login, why))
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

/* Of credentials a sender may stand behind the next hop. */
static char *fold_hop(const char *key)
{
	size_t len = strcspn(key, " ");
	char *hop = mem_strndup(key, len), *folded = conf_relay_key(hop);
	char *all = folded ? mem_printf("%s%s", folded, key + len) : NULL;
	free(folded);
	free(hop);
	return all;
}

static const struct table_form forms[] = {
#define T(role, setting, ends, form, good)                                                         \
	[TABLE_##role] = {.colon = ends,                                                           \
			  .shape = form,                                                           \
			  .check = good,                                                           \
			  .fold = TABLE_##role == TABLE_TLS_POLICY ? fold_hop : NULL,              \
			  .bare = TABLE_##role == TABLE_RECIPIENTS,                                \
			  .verbatim = TABLE_##role == TABLE_USERS ||                               \
				      TABLE_##role == TABLE_LIMITS ||                              \
				      TABLE_##role == TABLE_CLIENT_CERTIFICATES},
	TABLES(T)
#undef T
};

const struct table_form *table_form_of(enum table_role role)
{
	assert(role < TABLE_ROLES);
	static const struct table_form credentials = {.colon = false,
						      .shape = "NEXT-HOP [SENDER] LOGIN SECRET",
						      .check = check_credential,
						      .fold = fold_hop,
						      .two = credential_has_sender};
	return role == TABLE_CREDENTIALS ? &credentials : &forms[role];
}
