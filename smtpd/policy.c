/* SPDX-License-Identifier: ISC */
#include "smtpd/policy.h"

#include "base/conf_value.h"
#include "base/tables.h"
#include "base/users.h"
#include "smtpd/alias.h"
#include "smtpd/reception.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* "[127.0.0.1]" and its like: nobody's mail host but our own, or none at all. */
static bool literal_leads_here(const char *literal)
{
	char text[64];
	struct in6_addr six;
	struct in_addr four;
	snprintf(text, sizeof text, "%s", literal + 1);
	text[strcspn(text, "]")] = '\0';
	if (strncmp(text, "ipv6:", 5) == 0) {
		if (inet_pton(AF_INET6, text + 5, &six) != 1)
			return true;
		if (!IN6_IS_ADDR_V4MAPPED(&six) && !IN6_IS_ADDR_V4COMPAT(&six))
			return IN6_IS_ADDR_LOOPBACK(&six) || IN6_IS_ADDR_UNSPECIFIED(&six);
		memcpy(&four, &six.s6_addr[12], 4);
	} else if (inet_pton(AF_INET, text, &four) != 1) {
		return true;
	}
	uint32_t first = ntohl(four.s_addr) >> 24;
	return first == 0 || first == 127;
}

bool policy_leads_here(const struct mailaddr *a)
{
	return a->literal && literal_leads_here(a->text + a->at + 1);
}

/* An alias of this name stays as it is: it is expanded later. */
static enum response name_postmaster(const struct session *s, struct mailaddr *a)
{
	char own[MAILADDR_MAX];
	struct conf_list to;
	struct table_origin origin;
	const char *address = s->service->conf->postmaster;
	if (!*address) {
		enum alias_found found = alias_find(s->worker->conf, &s->tx->aliases.heard,
						    "postmaster", &to, &origin);
		conf_list_free(&to);
		if (found != ALIAS_IS_NONE)
			return found == ALIAS_IS_ONE ? RESPONSE_OK : RESPONSE_LOOKUP_FAILED;
	}
	if (!*address) {
		snprintf(own, sizeof own, "postmaster@%s", s->service->hostname);
		address = own;
	}
	return mailaddr_mailbox(address, strlen(address), true, a) == MAILADDR_OK
		       ? RESPONSE_OK
		       : RESPONSE_NO_POSTMASTER;
}

bool policy_stranger(const struct session *s)
{
	return !s->login && !netlist_match(&s->service->networks, &s->peer);
}

bool policy_may_defer(const struct session *s)
{
	return s->service->listener->auth || !policy_stranger(s);
}

/* RFC 4865 3: the time that is announced, and any that is asked for, is one second at least. */
bool policy_may_schedule(const struct session *s)
{
	return s->service->listener->future_release_limit >= 1000 && policy_may_defer(s);
}

enum response policy_recipient(const struct session *s, struct mailaddr *a)
{
	if (a->text[a->at] == '\0')
		return name_postmaster(s, a);
	if (policy_stranger(s))
		return RESPONSE_NO_RELAY;
	if (policy_leads_here(a))
		return RESPONSE_LOOPBACK;
	return RESPONSE_OK;
}

/* The address of a login that is none itself is one at our hostname. */
static enum response rewrite_to_login(const struct session *s, struct mailaddr *a)
{
	char own[MAILADDR_MAX];
	bool whole = strchr(s->login, '@') != NULL;
	int len = snprintf(own, sizeof own, "%s%s%s", s->login, whole ? "" : "@",
			   whole ? "" : s->service->hostname);
	return len < (int)sizeof own && mailaddr_mailbox(own, (size_t)len, true, a) == MAILADDR_OK
		       ? RESPONSE_OK
		       : RESPONSE_NOT_YOUR_ADDRESS;
}

bool policy_sender_due(const struct session *s)
{
	const struct conf *c = s->worker->conf;
	return s->login && tables_count(c->tables, TABLE_SENDER_LOGINS) > 0 &&
	       c->sender_mismatch != MISMATCH_ALLOW;
}

enum response policy_sender(const struct session *s, const char *logins, struct mailaddr *a)
{
	bool listed = logins ? users_listed(logins, s->login, NULL) : !*a->text;
	if (listed)
		return RESPONSE_OK;
	return s->worker->conf->sender_mismatch == MISMATCH_REWRITE ? rewrite_to_login(s, a)
								    : RESPONSE_NOT_YOUR_ADDRESS;
}
