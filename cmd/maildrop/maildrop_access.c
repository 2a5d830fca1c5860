/* SPDX-License-Identifier: ISC */
#include "cmd/maildrop/maildrop_access.h"

#include "base/mem.h"
#include "base/tables.h"

#include <assert.h>
#include <stdlib.h>

/* Rows of files were looked at when they were read. */
static enum access_action take_word(struct maildrop_access *a, const struct conf *c,
				    enum table_role role, struct envelope *e, const char *address)
{
	struct table_origin origin;
	struct buf why = {0};
	struct access_value v = {.action = ACCESS_ACCEPT};
	char *row = tables_find(c->tables, role, address, &origin);
	if (row)
		access_value_parse(row, &v, &why);
	enum access_action action = v.action;
	if (action == ACCESS_HOLD)
		e->held = true;
	if (action == ACCESS_FLOW && !a->flow)
		a->flow = mem_strdup(v.text);
	if (action == ACCESS_REFUSE) {
		assert(a->refusal.action != ACCESS_REFUSE);
		a->refusal = v;
	} else {
		access_value_fini(&v);
	}
	buf_fini(&why);
	free(row);
	return action;
}

bool maildrop_access_sender(struct maildrop_access *a, const struct conf *c, struct envelope *e,
			    const char *sender)
{
	enum access_action action = take_word(a, c, TABLE_SENDER_ACCESS, e, sender);
	a->discards = action == ACCESS_DISCARD;
	return action != ACCESS_REFUSE;
}

bool maildrop_access_recipient(struct maildrop_access *a, const struct conf *c, struct envelope *e,
			       const char *recipient, bool *dropped)
{
	enum access_action action = a->discards
					    ? ACCESS_DISCARD
					    : take_word(a, c, TABLE_RECIPIENT_ACCESS, e, recipient);
	*dropped = action == ACCESS_DISCARD;
	if (*dropped)
		address_list_add(&a->dropped, recipient);
	return action != ACCESS_REFUSE;
}

void maildrop_access_fini(struct maildrop_access *a)
{
	access_value_fini(&a->refusal);
	address_list_free(&a->dropped);
	free(a->flow);
	*a = (struct maildrop_access){0};
}
