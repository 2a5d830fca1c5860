/* SPDX-License-Identifier: ISC */
#include "dkim/author.h"

#include "base/mailaddr.h"
#include "base/name_key.h"
#include "base/mem.h"
#include "base/users.h"
#include "dkim/keyring.h"

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
static bool may_send_as(const struct passage *p, const char *address)
{
	const struct conf *c = p->conf;
	if (!p->login || c->sender_logins.n == 0 || c->sender_mismatch == MISMATCH_ALLOW)
		return true;
	/* The table may be a server that knows: it was asked of the sender. */
	if (p->own && strcmp(p->own, address) == 0)
		return true;
	return users_may_send(c, p->login, address);
}

struct authors {
	const struct passage *passage;
	char domain[NAME_KEY_DOMAIN];
	bool several, ours;
	const char *denied;
};

static bool has_keys(const struct conf *c, const char *domain)
{
	const struct conf_dkim *by[CONF_DKIM_MAX];
	struct dkim_rows rows;
	bool has = conf_dkim_find(c, domain, by) > 0;
	if (!has && c->dkim_keys.n > 0) {
		has = dkim_rows_find(c->tables, domain, &rows);
		dkim_rows_fini(&rows);
	}
	return has;
}

static void look_at(struct authors *a, const struct mailaddr *address, const char *text)
{
	char domain[NAME_KEY_DOMAIN];
	name_key_domain(address->text + address->at + 1, domain);
	if (*a->domain && strcmp(a->domain, domain) != 0)
		a->several = true;
	if (strcmp(a->domain, domain) != 0)
		a->ours = has_keys(a->passage->conf, domain) || a->ours;
	snprintf(a->domain, sizeof a->domain, "%s", domain);
	if (!may_send_as(a->passage, address->text))
		a->denied = text;
}

/* False: no domain in From is ours, or why. */
static bool find_author(struct authors *a, struct buf *why)
{
	const struct passage *p = a->passage;
	struct address_list from = {0};
	struct mailaddr address;
	bool read = read_from(&p->draft, &from, why);
	if (from.n > AUTHORS_MAX)
		a->several = true;
	for (int i = 0; i < from.n && i < AUTHORS_MAX; i++)
		if (mailaddr_mailbox(from.item[i], strlen(from.item[i]), true, &address) ==
			    MAILADDR_OK &&
		    address.text[address.at])
			look_at(a, &address, from.item[i]);
		else
			a->several = true;
	if (!a->ours)
		buf_clear(why);
	else if (!read)
		buf_puts(why, ": From cannot be read");
	else if (a->several)
		buf_puts(why, "From names others than authors of one domain");
	else if (p->draft.broken)
		buf_puts(why, "a line of the header is no field");
	else if (p->stranger)
		buf_puts(why, "the client may not relay");
	else if (a->denied)
		buf_printf(why, "the login %s may not send as %s", p->login, a->denied);
	address_list_free(&from);
	return a->ours && buf_len(why) == 0;
}

static void add_domain(struct signers *s, const struct conf *c, const char *domain)
{
	const struct conf_dkim *by[CONF_DKIM_MAX];
	struct dkim_rows rows = {0};
	int n = conf_dkim_find(c, domain, by);
	for (int i = 0; i < n && s->n < CONF_DKIM_MAX; i++)
		s->of[s->n++] = (struct signer){.by = by[i]};
	if (n > 0 || c->dkim_keys.n == 0)
		return;
	dkim_rows_find(c->tables, domain, &rows);
	for (int i = 0; i < rows.n && s->n < CONF_DKIM_MAX; i++)
		s->of[s->n++] = (struct signer){.domain = mem_strdup(rows.domain),
						.selector = mem_strdup(rows.row[i].selector),
						.file = mem_strdup(rows.row[i].file)};
	dkim_rows_fini(&rows);
}

/* Of whoever may relay, whoever its author is: it says who has sent it on. */
static void add_own(struct signers *s, const struct passage *p, const char *author)
{
	char own[NAME_KEY_DOMAIN];
	if (!*p->conf->dkim_also || p->stranger || p->draft.broken)
		return;
	name_key_domain(p->conf->dkim_also, own);
	if (strcmp(own, author) != 0)
		add_domain(s, p->conf, own);
}

void author_signers(const struct passage *p, struct signers *s, struct buf *why)
{
	struct authors a = {.passage = p};
	bool signs = find_author(&a, why);
	if (signs)
		add_domain(s, p->conf, a.domain);
	add_own(s, p, signs ? a.domain : "");
}

bool signers_load(struct signers *s, struct buf *why)
{
	bool all = true;
	for (int i = 0; i < s->n; i++) {
		struct signer *of = &s->of[i];
		if (!of->by)
			of->by = keyring_take(of->domain, of->selector, of->file, why);
		all = all && of->by;
	}
	return all;
}

void signers_fini(struct signers *s)
{
	for (int i = 0; i < s->n; i++) {
		struct signer *of = &s->of[i];
		if (of->domain)
			keyring_give(of->by);
		free(of->domain);
		free(of->selector);
		free(of->file);
	}
	s->n = 0;
}
