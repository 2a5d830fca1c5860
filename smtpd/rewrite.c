/* SPDX-License-Identifier: ISC */
#include "smtpd/rewrite.h"

#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/tables.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *rewrite_result(const struct rewrite *r, const char *address)
{
	return r->n > 0 ? r->step[r->n - 1].to : address;
}

void rewrite_fini(struct rewrite *r)
{
	while (r->n > 0)
		free(r->step[--r->n].to);
}

static void add_step(struct rewrite *r, const char *by, const struct table_origin *origin, char *to)
{
	r->step[r->n++] = (struct rewrite_step){by, *origin, to};
}

/* The address as an envelope keeps it; "@domain" keeps the local part. NULL: it is none. */
static char *apply_value(const char *value, const char *address)
{
	struct mailaddr a;
	char to[NAME_KEY_DOMAIN];
	const char *domain = mailaddr_domain(address);
	int local = *domain ? (int)(domain - address - 1) : (int)strlen(address);
	char *text = value[0] == '@' && name_key_domain(value + 1, to)
			     ? mem_printf("%.*s@%s", local, address, to)
			     : mem_strdup(value);
	bool good = mailaddr_mailbox(text, strlen(text), true, &a) == MAILADDR_OK;
	free(text);
	return good ? mem_strdup(a.text) : NULL;
}

static bool apply_canonical(const struct conf *c, enum table_role role, const char *name,
			    const char *address, struct rewrite *r)
{
	for (int i = 0; i < REWRITE_STEPS_MAX; i++) {
		struct table_origin origin;
		const char *now = rewrite_result(r, address);
		char *value = tables_find(c->tables, role, now, &origin);
		char *to = value ? apply_value(value, now) : NULL;
		free(value);
		if (!to || strcmp(to, now) == 0) {
			free(to);
			return true;
		}
		add_step(r, name, &origin, to);
	}
	return false;
}

static bool is_exception(const struct conf *c, const char *address, size_t local)
{
	for (int i = 0; i < c->masquerade_exceptions.n; i++) {
		const char *name = c->masquerade_exceptions.item[i];
		if (strlen(name) == local && strncasecmp(name, address, local) == 0)
			return true;
	}
	return false;
}

enum within { OUTSIDE, SELF, BELOW };

/* Where is a domain, seen from another? Both as name_key() has them. */
static enum within locate_domain(const char *domain, const char *from)
{
	size_t len = strlen(domain), most = strlen(from);
	if (strcmp(domain, from) == 0)
		return SELF;
	bool below = len > most && domain[len - most - 1] == '.' &&
		     strcmp(domain + len - most, from) == 0;
	return below ? BELOW : OUTSIDE;
}

/* True: no other setting counts. */
static bool masquerade_as(const struct conf *c, const char *setting, const char *address,
			  struct rewrite *r)
{
	struct table_origin origin = {c->file, 0};
	bool left_alone = *setting == '!';
	const char *now = rewrite_result(r, address), *domain = mailaddr_domain(now);
	char *key = name_key(domain), *parent = name_key(setting + left_alone);
	enum within is = locate_domain(key, parent);
	if (is == BELOW && !left_alone)
		add_step(r, "masquerade", &origin,
			 mem_printf("%.*s%s", (int)(domain - now), now, parent));
	free(parent);
	free(key);
	return is != OUTSIDE;
}

static void masquerade_domain(const struct conf *c, const char *address, struct rewrite *r)
{
	const char *now = rewrite_result(r, address), *domain = mailaddr_domain(now);
	size_t local = *domain ? (size_t)(domain - now - 1) : 0;
	if (!*domain || is_exception(c, now, local))
		return;
	for (int i = 0; i < c->masquerade.n; i++)
		if (masquerade_as(c, c->masquerade.item[i], address, r))
			return;
}

bool rewrite_sender(const struct conf *c, const char *address, struct rewrite *r)
{
	r->n = 0;
	if (!apply_canonical(c, TABLE_SENDER_CANONICAL, "sender_canonical", address, r) ||
	    !apply_canonical(c, TABLE_CANONICAL, "canonical", address, r))
		return false;
	masquerade_domain(c, address, r);
	return true;
}

bool rewrite_recipient(const struct conf *c, const char *address, struct rewrite *r)
{
	r->n = 0;
	return apply_canonical(c, TABLE_RECIPIENT_CANONICAL, "recipient_canonical", address, r) &&
	       apply_canonical(c, TABLE_CANONICAL, "canonical", address, r);
}
