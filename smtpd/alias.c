/* SPDX-License-Identifier: ISC */
#include "smtpd/alias.h"

#include "base/address_set.h"
#include "base/alias_value.h"
#include "base/conf_value.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/tables.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct expansion {
	const struct conf *conf;
	const char *above[ALIAS_DEPTH_MAX]; /* those being expanded, outermost first */
	int depth;
	char **member;
	int n;
	struct address_set *known; /* the same */
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

static bool find_row(const struct conf *conf, const char *key, struct conf_list *to,
		     struct table_origin *origin)
{
	char *value = tables_get(conf->tables, TABLE_ALIASES, key, origin);
	struct buf why = {0};
	bool found = value && !alias_value_parse(value, key, to, &why);
	free(value);
	buf_fini(&why);
	return found;
}

bool alias_find(const struct conf *conf, const char *address, struct conf_list *to,
		struct table_origin *origin)
{
	char *key = name_key(address);
	*to = (struct conf_list){0};
	bool found = find_section(conf, key, to, origin) || find_row(conf, key, to, origin);
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

static bool expand(struct expansion *x, const char *address);

static bool expand_all(struct expansion *x, const char *address, const struct conf_list *to)
{
	bool ok = x->depth < ALIAS_DEPTH_MAX && !is_above(x, address);
	if (!ok)
		return false;
	x->above[x->depth++] = address;
	for (int i = 0; ok && i < to->n; i++)
		ok = expand(x, to->item[i]);
	x->depth--;
	return ok;
}

/* An alias among its own members means the address itself: the usual way to keep a copy. */
static bool expand(struct expansion *x, const char *address)
{
	struct conf_list to;
	struct table_origin origin;
	if (x->depth > 0 && strcasecmp(x->above[x->depth - 1], address) == 0)
		return add_member(x, address);
	if (!alias_find(x->conf, address, &to, &origin))
		return add_member(x, address);
	bool ok = expand_all(x, address, &to);
	conf_list_free(&to);
	return ok;
}

/* What the sender called it goes with each member. */
static char *original(const char *address, const char *orcpt)
{
	char encoded[MAILADDR_MAX * 3];
	if (orcpt)
		return mem_strdup(orcpt);
	xtext_encode(address, encoded, sizeof encoded);
	return mem_printf("rfc822;%s", encoded);
}

static bool ascii(const char *s)
{
	while (*s && (unsigned char)*s < 128)
		s++;
	return !*s;
}

bool alias_add_recipient(const struct conf *conf, struct envelope *e, const char *address,
			 uint8_t notify, const char *said, const char *orcpt)
{
	struct expansion x = {.conf = conf};
	bool ok = expand(&x, address);
	bool same = ok && x.n == 1 && strcmp(x.member[0], said) == 0;
	for (int i = 0; i < x.n; i++) {
		if (ok) {
			struct recipient *r = envelope_add(e, x.member[i]);
			r->notify = notify;
			r->orcpt = same || !ascii(said) ? mem_strdup(orcpt) : original(said, orcpt);
		}
		free(x.member[i]);
	}
	free(x.member);
	address_set_free(&x.known);
	return ok;
}
