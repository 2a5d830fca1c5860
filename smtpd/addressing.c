/* SPDX-License-Identifier: ISC */
#include "smtpd/addressing.h"

#include "base/address_set.h"
#include "base/log.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/tables.h"
#include "smtpd/alias.h"
#include "smtpd/rewrite.h"

#include <stdlib.h>

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

static void add_receiver(struct envelope *e, const char *address)
{
	struct recipient *r = envelope_add(e, address);
	r->notify = NOTIFY_NEVER;
	r->copy = true;
}

/* Who is a recipient already needs no copy; of a thousand recipients, most have the same one. */
static void add_once(struct envelope *e, const char *address)
{
	if (!envelope_has(e, address))
		add_receiver(e, address);
}

/* The same of many: each is looked for but once. */
static void add_all_once(struct envelope *e, const struct envelope *members)
{
	struct address_set *known = NULL;
	for (uint32_t i = 0; i < e->nrcpt; i++)
		address_set_add(&known, e->rcpt[i].address);
	for (uint32_t i = 0; i < members->nrcpt; i++)
		if (address_set_add(&known, members->rcpt[i].address))
			add_receiver(e, members->rcpt[i].address);
	address_set_free(&known);
}

static void add_copy(const struct conf *c, struct alias_heard *heard, struct envelope *e,
		     const char *address)
{
	struct envelope *members = envelope_new();
	if (alias_add_recipient(c, heard, members, address, NOTIFY_NEVER, address, NULL, NULL) !=
	    RESPONSE_OK)
		log_event(LOG_LEVEL_ERROR, "bcc", "to", address, "reason",
			  "this alias leads to itself, or to too many", NULL);
	if (members->nrcpt == 1)
		add_once(e, members->rcpt[0].address);
	else
		add_all_once(e, members);
	envelope_free(&members);
}

static void copy_to(const struct conf *c, struct alias_heard *heard, enum table_role role,
		    const char *address, struct envelope *e)
{
	struct table_origin origin;
	struct mailaddr a;
	char *copy = tables_find(c->tables, role, address, &origin);
	if (copy && mailaddr_kept(copy, &a))
		add_copy(c, heard, e, a.text);
	free(copy);
}

static bool is_known(const struct conf *c, struct alias_heard *heard, const char *address)
{
	struct envelope *members = envelope_new();
	bool known = alias_add_recipient(c, heard, members, address, 0, address, NULL, NULL) !=
		     RESPONSE_LOOKUP_FAILED;
	envelope_free(&members);
	return known;
}

static bool copy_known(const struct conf *c, struct alias_heard *heard, enum table_role role,
		       const char *address)
{
	struct table_origin origin;
	char *copy = tables_find(c->tables, role, address, &origin);
	bool known = !copy || is_known(c, heard, copy);
	free(copy);
	return known;
}

static bool is_asked(const struct conf *c, const struct alias_heard *heard)
{
	return heard && tables_asked(c->tables, TABLE_ALIASES);
}

/* Rewritten, that is. */
static bool recipient_known(const struct conf *c, struct alias_heard *heard, const char *to)
{
	if (!is_asked(c, heard))
		return true;
	bool of_it = is_known(c, heard, to);
	return copy_known(c, heard, TABLE_RECIPIENT_BCC, to) && of_it;
}

bool addressing_recipient_known(const struct conf *c, struct alias_heard *heard,
				const char *address)
{
	struct rewrite r;
	bool known = !rewrite_recipient(c, address, &r) ||
		     recipient_known(c, heard, rewrite_result(&r, address));
	rewrite_fini(&r);
	return known;
}

static enum response add_recipient(const struct conf *c, struct alias_heard *heard,
				   struct envelope *e, const char *to, uint8_t notify,
				   const char *said, const char *orcpt, struct alias_added *added)
{
	if (!recipient_known(c, heard, to))
		return RESPONSE_LOOKUP_FAILED;
	enum response why = alias_add_recipient(c, heard, e, to, notify, said, orcpt, added);
	if (why == RESPONSE_OK)
		copy_to(c, heard, TABLE_RECIPIENT_BCC, to, e);
	if (added)
		added->to = e->nrcpt;
	return why;
}

enum response addressing_recipient(const struct conf *c, struct alias_heard *heard,
				   struct envelope *e, const char *address, uint8_t notify,
				   const char *orcpt, struct alias_added *added)
{
	struct rewrite r;
	enum response why = RESPONSE_REWRITE_LOOP;
	if (rewrite_recipient(c, address, &r))
		why = add_recipient(c, heard, e, rewrite_result(&r, address), notify, address,
				    orcpt, added);
	rewrite_fini(&r);
	return why;
}

bool addressing_copies_known(const struct conf *c, struct alias_heard *heard, const char *sender)
{
	if (!is_asked(c, heard))
		return true;
	bool of_all = !*c->always_bcc || is_known(c, heard, c->always_bcc);
	return copy_known(c, heard, TABLE_SENDER_BCC, sender) && of_all;
}

enum response addressing_copies(const struct conf *c, struct alias_heard *heard, struct envelope *e)
{
	if (!addressing_copies_known(c, heard, e->sender))
		return RESPONSE_LOOKUP_FAILED;
	copy_to(c, heard, TABLE_SENDER_BCC, e->sender, e);
	if (*c->always_bcc)
		add_copy(c, heard, e, c->always_bcc);
	return RESPONSE_OK;
}
