/* SPDX-License-Identifier: ISC */
#include "dkim/author.h"

#include "base/mailaddr.h"
#include "base/name_key.h"
#include "base/users.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AUTHORS_MAX = 100 }; /* that are looked at: each is looked up */

/* False: some From can't be read. */
static bool read_from(const struct draft *d, struct address_list *to, struct buf *why)
{
	bool ok = true;
	for (int i = 0; ok && i < d->nfield; i++)
		if (draft_field_is(&d->field[i], "From"))
			ok = draft_addresses(&d->field[i], to, why);
	return ok;
}

/* May this login send as that address? As of senders in the envelope. */
static bool may(const struct passage *p, const char *address)
{
	const struct conf *c = p->conf;
	if (!p->login || c->sender_logins.n == 0 || c->sender_mismatch == MISMATCH_ALLOW)
		return true;
	/* It may be a server that knows: it was asked of the sender. */
	if (p->own && strcmp(p->own, address) == 0)
		return true;
	return users_may_send(c, p->login, address);
}

struct authors {
	const struct passage *passage;
	char domain[NAME_KEY_DOMAIN];
	const struct conf_dkim **by;
	int n;
	bool several, ours;
	const char *denied;
};

static void look_at(struct authors *a, const struct mailaddr *address, const char *text)
{
	char domain[NAME_KEY_DOMAIN];
	const struct conf_dkim *by[CONF_DKIM_MAX];
	name_key_domain(address->text + address->at + 1, domain);
	int n = conf_dkim_find(a->passage->conf, domain, by);
	a->ours = a->ours || n > 0;
	if (*a->domain && strcmp(a->domain, domain) != 0)
		a->several = true;
	snprintf(a->domain, sizeof a->domain, "%s", domain);
	memcpy(a->by, by, (size_t)n * sizeof *by);
	a->n = n;
	if (!may(a->passage, address->text))
		a->denied = text;
}

bool author_signs(const struct passage *p, const struct conf_dkim *by[CONF_DKIM_MAX], int *n,
		  struct buf *why)
{
	struct authors a = {.passage = p, .by = by};
	struct address_list from = {0};
	struct mailaddr address;
	bool read = read_from(&p->draft, &from, why);
	if (from.n > AUTHORS_MAX)
		a.several = true;
	for (int i = 0; i < from.n && i < AUTHORS_MAX; i++)
		if (mailaddr_mailbox(from.item[i], strlen(from.item[i]), true, &address) ==
			    MAILADDR_OK &&
		    address.text[address.at])
			look_at(&a, &address, from.item[i]);
		else
			a.several = true;
	if (!a.ours)
		buf_clear(why);
	else if (!read)
		buf_puts(why, ": From cannot be read");
	else if (a.several)
		buf_puts(why, "From names others than authors of one domain");
	else if (p->draft.broken)
		buf_puts(why, "a line of the header is no field");
	else if (p->stranger)
		buf_puts(why, "the client may not relay");
	else if (a.denied)
		buf_printf(why, "the login %s may not send as %s", p->login, a.denied);
	*n = a.n;
	address_list_free(&from);
	return a.ours && buf_len(why) == 0;
}
