/* SPDX-License-Identifier: ISC */
#include "smtpd/addressing.h"

#include "base/address_set.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/tables.h"
#include "smtpd/alias.h"
#include "smtpd/rewrite.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum response addressing_sender(const struct conf *c, const char *address, char **rewritten)
{
	struct rewrite r;
	bool ok = rewrite_sender(c, address, &r);
	if (ok)
		*rewritten = mem_strdup(rewrite_result(&r, address));
	rewrite_fini(&r);
	return ok ? RESPONSE_OK : RESPONSE_REWRITE_LOOP;
}

bool addressing_access(const struct conf *c, const char *recipient, struct access_value *v,
		       struct table_origin *origin)
{
	struct buf why = {0};
	char *value = tables_find(c->tables, TABLE_RECIPIENT_ACCESS, recipient, origin);
	bool found = value != NULL;
	*v = (struct access_value){.action = ACCESS_ACCEPT};
	if (found)
		access_value_parse(value, v, &why);
	free(value);
	buf_fini(&why);
	return found;
}

static bool has_recipient(const struct envelope *e, const char *address)
{
	for (uint32_t i = 0; i < e->nrcpt; i++)
		if (strcasecmp(e->rcpt[i].address, address) == 0)
			return true;
	return false;
}

/* Who is a recipient already needs no copy; of a thousand recipients, most have the same one. */
static void add_once(struct envelope *e, const char *address)
{
	if (!has_recipient(e, address))
		envelope_add(e, address)->notify = NOTIFY_NEVER;
}

/* The same of many: each is looked for but once. */
static void add_all_once(struct envelope *e, const struct envelope *members)
{
	struct address_set *known = NULL;
	for (uint32_t i = 0; i < e->nrcpt; i++)
		address_set_add(&known, e->rcpt[i].address);
	for (uint32_t i = 0; i < members->nrcpt; i++)
		if (address_set_add(&known, members->rcpt[i].address))
			envelope_add(e, members->rcpt[i].address)->notify = NOTIFY_NEVER;
	address_set_free(&known);
}

static void add_copy(const struct conf *c, struct envelope *e, const char *address)
{
	struct envelope *members = envelope_new();
	if (!alias_add_recipient(c, members, address, NOTIFY_NEVER, address, NULL))
		log_event(LOG_LEVEL_ERROR, "bcc", "to", address, "reason",
			  "this alias leads to itself, or to too many", NULL);
	if (members->nrcpt == 1)
		add_once(e, members->rcpt[0].address);
	else
		add_all_once(e, members);
	envelope_free(&members);
}

static void copy_to(const struct conf *c, enum table_role role, const char *address,
		    struct envelope *e)
{
	struct table_origin origin;
	char *copy = tables_find(c->tables, role, address, &origin);
	if (copy)
		add_copy(c, e, copy);
	free(copy);
}

enum response addressing_recipient(const struct conf *c, struct envelope *e, const char *address,
				   uint8_t notify, const char *orcpt)
{
	struct rewrite r;
	enum response why = RESPONSE_REWRITE_LOOP;
	if (rewrite_recipient(c, address, &r)) {
		const char *to = rewrite_result(&r, address);
		why = alias_add_recipient(c, e, to, notify, address, orcpt) ? RESPONSE_OK
									    : RESPONSE_ALIAS_LOOP;
		if (why == RESPONSE_OK)
			copy_to(c, TABLE_RECIPIENT_BCC, to, e);
	}
	rewrite_fini(&r);
	return why;
}

void addressing_copies(const struct conf *c, struct envelope *e)
{
	copy_to(c, TABLE_SENDER_BCC, e->sender, e);
	if (*c->always_bcc)
		add_copy(c, e, c->always_bcc);
}
