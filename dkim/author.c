/* SPDX-License-Identifier: ISC */
#include "dkim/author.h"

#include "base/mailaddr.h"
#include "base/name_key.h"
#include "base/mem.h"
#include "base/users.h"
#include "dkim/keyring.h"

#include <assert.h>
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

/* Is the login held to what sender_logins says? */
static bool is_held(const struct passage *p)
{
	const struct conf *c = p->conf;
	return p->login && c->sender_logins.n > 0 && c->sender_mismatch != MISMATCH_ALLOW;
}

/* May this login send as that address? As of senders in the envelope. */
static bool may_send_as(const struct passage *p, const char *address)
{
	if (!is_held(p))
		return true;
	/* The table may be a server that knows: it was asked of the sender. */
	if (p->own && strcmp(p->own, address) == 0)
		return true;
	return users_may_send(p->conf, p->login, address);
}

struct authors {
	const struct passage *passage;
	char domain[NAME_KEY_DOMAIN];
	char own[NAME_KEY_DOMAIN]; /* dkim_also; "": none */
	bool several, ours;
	bool feigned; /* our own signature would vouch for somebody who the login may not be */
	const char *denied;
};

static bool lies_within(const char *domain, const char *of)
{
	size_t len = strlen(domain), most = strlen(of);
	return most > 0 && len >= most && strcmp(domain + len - most, of) == 0 &&
	       (len == most || domain[len - most - 1] == '.');
}

/* To receivers a signature of the one is one of the other: RFC 7489 3.1.1. */
static bool is_akin(const char *domain, const char *other)
{
	return lies_within(domain, other) || lies_within(other, domain);
}

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
	if (may_send_as(a->passage, address->text))
		return;
	a->denied = text;
	a->feigned = a->feigned || is_akin(domain, a->own);
}

/* Text that is no address here may be one to others. */
static void distrust_author(struct authors *a, const char *text)
{
	a->several = true;
	a->feigned = a->feigned || (strchr(text, '@') && is_held(a->passage));
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
			distrust_author(a, from.item[i]);
	a->feigned = a->feigned || ((!read || from.n > AUTHORS_MAX) && is_held(p));
	if (!a->ours && !(a->feigned && *a->own))
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

/* Of whoever may relay, whoever its author is: it says who has sent it on. Feigned, it would say who has written it. */
static void add_own(struct signers *s, const struct authors *a, bool author_signs)
{
	const struct passage *p = a->passage;
	if (!*a->own || a->feigned || p->stranger || p->draft.broken)
		return;
	if (!author_signs || strcmp(a->own, a->domain) != 0)
		add_domain(s, p->conf, a->own);
}

void author_signers(const struct passage *p, struct signers *s, struct buf *why)
{
	struct authors a = {.passage = p};
	if (*p->conf->dkim_also)
		name_key_domain(p->conf->dkim_also, a.own);
	bool signs = find_author(&a, why);
	if (signs)
		add_domain(s, p->conf, a.domain);
	add_own(s, &a, signs);
}

bool signers_load(struct signers *s, struct buf *why)
{
	bool all = true;
	assert(s->n <= CONF_DKIM_MAX);
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
