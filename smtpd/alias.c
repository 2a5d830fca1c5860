/* SPDX-License-Identifier: ISC */
#include "smtpd/alias.h"

#include "base/address_set.h"
#include "base/alias_value.h"
#include "base/conf_value.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/tables.h"
#include "base/utf8.h"
#include "smtpd/param.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct expansion {
	const struct conf *conf;
	struct alias_heard *heard;
	const char *above[ALIAS_DEPTH_MAX]; /* those being expanded, outermost first */
	int depth;
	char **member;
	int n;
	struct address_set *known; /* the same */
	struct address_set *met;   /* all that was looked up */
	bool asks;		   /* servers have aliases */
	bool unheard;		   /* of some of them nobody has said anything so far */
	int questions;
	size_t bytes; /* of their rows */
};

static bool find_section(const struct conf *conf, const char *key, struct conf_list *to,
			 struct table_origin *origin)
{
	const struct conf_alias *section = conf_alias_find(conf, key);
	if (!section)
		return false;
	for (int i = 0; i < section->to.n; i++)
		conf_list_add(to, section->to.item[i]);
	*origin = (struct table_origin){conf->file, section->line};
	return true;
}

static bool read_row(const char *value, const char *key, struct conf_list *to)
{
	struct buf why = {0};
	bool found = value && !alias_value_parse(value, key, to, &why);
	buf_fini(&why);
	return found;
}

static bool find_row(const struct conf *conf, const char *key, struct conf_list *to,
		     struct table_origin *origin)
{
	char *value = tables_get(conf->tables, TABLE_ALIASES, key, origin);
	bool found = read_row(value, key, to);
	free(value);
	return found;
}

static enum alias_found find_heard(struct alias_heard *heard, const char *key, struct conf_list *to,
				   struct table_origin *origin)
{
	const char *value;
	*origin = (struct table_origin){0};
	if (!alias_heard_get(heard, key, &value))
		return ALIAS_UNHEARD;
	return read_row(value, key, to) ? ALIAS_IS_ONE : ALIAS_IS_NONE;
}

enum alias_found alias_find(const struct conf *conf, struct alias_heard *heard, const char *address,
			    struct conf_list *to, struct table_origin *origin)
{
	char *key = name_key(address);
	enum alias_found found = ALIAS_IS_NONE;
	*to = (struct conf_list){0};
	if (find_section(conf, key, to, origin))
		found = ALIAS_IS_ONE;
	else if (heard && tables_asked(conf->tables, TABLE_ALIASES))
		found = find_heard(heard, key, to, origin);
	else if (find_row(conf, key, to, origin))
		found = ALIAS_IS_ONE;
	free(key);
	return found;
}

static bool is_above(const struct expansion *x, const char *address)
{
	for (int i = 0; i < x->depth; i++)
		if (strcasecmp(x->above[i], address) == 0)
			return true;
	return false;
}

static bool add_member(struct expansion *x, const char *address)
{
	if (!address_set_add(&x->known, address))
		return true;
	if (x->n == ALIAS_MEMBERS_MAX)
		return false;
	if ((x->n & (x->n - 1)) == 0) /* it doubles */
		x->member =
			mem_realloc(x->member, (size_t)(x->n ? x->n * 2 : 1) * sizeof *x->member);
	x->member[x->n++] = mem_strdup(address);
	return true;
}

static bool expand_address(struct expansion *x, const char *address);

static bool expand_all(struct expansion *x, const char *address, const struct conf_list *to)
{
	bool ok = x->depth < ALIAS_DEPTH_MAX;
	if (!ok)
		return false;
	x->above[x->depth++] = address;
	for (int i = 0; ok && i < to->n; i++)
		ok = expand_address(x, to->item[i]);
	assert(x->depth > 0);
	x->depth--;
	return ok;
}

/* A server's rows are bounded: it is believed no further than it must be. */
static bool count_question(struct expansion *x, const struct conf_list *to)
{
	for (int i = 0; i < to->n; i++)
		x->bytes += strlen(to->item[i]);
	return !x->asks || (++x->questions <= ALIAS_QUESTIONS_MAX && x->bytes <= ALIAS_BYTES_MAX);
}

/* False: it is one of those that are being expanded, or there is too much of it. */
static bool expand_new(struct expansion *x, const char *address)
{
	struct conf_list to;
	struct table_origin origin;
	enum alias_found found = alias_find(x->conf, x->heard, address, &to, &origin);
	bool ok = count_question(x, &to);
	x->unheard = x->unheard || found == ALIAS_UNHEARD;
	if (ok && found == ALIAS_IS_ONE)
		ok = expand_all(x, address, &to);
	else if (ok && found == ALIAS_IS_NONE)
		ok = add_member(x, address);
	conf_list_free(&to);
	return ok;
}

/* An alias among its own members means the address itself: the usual way to keep a copy. Whatever was
 * expanded before has added all its members then. */
static bool expand_address(struct expansion *x, const char *address)
{
	if (x->depth > 0 && strcasecmp(x->above[x->depth - 1], address) == 0)
		return add_member(x, address);
	if (is_above(x, address))
		return false;
	return !address_set_add(&x->met, address) || expand_new(x, address);
}

/* The sender's name for it goes with each member. */
static char *original_recipient(const char *address, const char *orcpt)
{
	char encoded[MAILADDR_MAX * 3], ascii[PARAM_ORCPT_MAX + 1];
	if (orcpt)
		return mem_strdup(orcpt);
	if (!utf8_is_ascii(address))
		return param_orcpt_of(address, ascii) ? mem_strdup(ascii) : NULL;
	xtext_encode(address, encoded, sizeof encoded);
	return mem_printf("rfc822;%s", encoded);
}

static enum response outcome_of(const struct expansion *x, bool ok)
{
	if (!ok)
		return RESPONSE_ALIAS_LOOP;
	return x->unheard ? RESPONSE_LOOKUP_FAILED : RESPONSE_OK;
}

void alias_added_fini(struct alias_added *a)
{
	free(a->again);
	*a = (struct alias_added){0};
}

static void note_again(struct alias_added *a, uint32_t place)
{
	if (!a)
		return;
	if ((a->nagain & (a->nagain - 1)) == 0) /* it doubles */
		a->again =
			mem_realloc(a->again, (a->nagain ? a->nagain * 2 : 1) * sizeof *a->again);
	a->again[a->nagain++] = place;
}

/* Named twice: the sender hears all that is wanted of either. A copy is reported to nobody, but its recipient may be named, too. */
static uint8_t both_wishes(uint8_t a, uint8_t b)
{
	const uint8_t usual = NOTIFY_FAILURE | NOTIFY_DELAY;
	if (a == b || b == NOTIFY_NEVER)
		return a;
	if (a == NOTIFY_NEVER)
		return b;
	return (a ? a : usual) | (b ? b : usual);
}

/* True: the recipient is new. */
static bool add_or_merge(struct envelope *e, const char *address, uint8_t notify,
			 struct alias_added *added)
{
	struct recipient *there = envelope_find(e, address);
	if (there) {
		if (!added || !added->unsaid || there->copy)
			there->notify = both_wishes(there->notify, notify);
		there->copy = false;
		note_again(added, (uint32_t)(there - e->rcpt));
		return false;
	}
	envelope_add(e, address)->notify = notify;
	return true;
}

static void add_members(const struct expansion *x, struct envelope *e, uint8_t notify,
			const char *said, const char *orcpt, struct alias_added *added)
{
	bool same = x->n == 1 && strcmp(x->member[0], said) == 0;
	for (int i = 0; i < x->n; i++)
		if (add_or_merge(e, x->member[i], notify, added))
			e->rcpt[e->nrcpt - 1].orcpt =
				same ? mem_strdup(orcpt) : original_recipient(said, orcpt);
}

enum response alias_add_recipient(const struct conf *conf, struct alias_heard *heard,
				  struct envelope *e, const char *address, uint8_t notify,
				  const char *said, const char *orcpt, struct alias_added *added)
{
	uint32_t before = e->nrcpt;
	struct expansion x = {.conf = conf, .heard = heard};
	x.asks = heard && tables_asked(conf->tables, TABLE_ALIASES);
	enum response is = outcome_of(&x, expand_address(&x, address));
	if (is == RESPONSE_OK)
		add_members(&x, e, notify, said, orcpt, added);
	if (added) {
		added->from = before;
		added->to = e->nrcpt;
	}
	assert(x.depth == 0);
	for (int i = 0; i < x.n; i++)
		free(x.member[i]);
	free(x.member);
	address_set_free(&x.known);
	address_set_free(&x.met);
	return is;
}
