/* SPDX-License-Identifier: ISC */
#include "smtpd/rewrite.h"

#include "base/mailaddr.h"
#include "base/mem.h"
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
	const char *domain = mailaddr_domain(address);
	int local = *domain ? (int)(domain - address - 1) : (int)strlen(address);
	char *text =
		value[0] == '@' ? mem_printf("%.*s%s", local, address, value) : mem_strdup(value);
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
		if (!to || strcasecmp(to, now) == 0) {
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

/* Is it the domain, or in it? Both are in lower case but for what the operator wrote. */
static bool is_within(const char *domain, const char *parent)
{
	size_t len = strlen(domain), most = strlen(parent);
	if (len < most || strcasecmp(domain + len - most, parent) != 0)
		return false;
	return len == most || domain[len - most - 1] == '.';
}

static void masquerade_domain(const struct conf *c, const char *address, struct rewrite *r)
{
	struct table_origin origin = {c->file, 0};
	const char *now = rewrite_result(r, address), *domain = mailaddr_domain(now);
	size_t local = *domain ? (size_t)(domain - now - 1) : 0;
	if (!*domain || is_exception(c, now, local))
		return;
	for (int i = 0; i < c->masquerade.n; i++) {
		const char *parent = c->masquerade.item[i];
		bool left_alone = *parent == '!';
		if (!is_within(domain, parent + left_alone))
			continue;
		if (!left_alone && strcasecmp(domain, parent) != 0)
			add_step(r, "masquerade", &origin,
				 mem_printf("%.*s@%s", (int)local, now, parent));
		return;
	}
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
