/* SPDX-License-Identifier: ISC */
/* Sources: where connections come from, and which of them transports and flows use. */
#include "base/conf_build.h"

#include "base/address.h"
#include "base/conf_value.h"
#include "base/keyed_hash.h"
#include "base/mailaddr.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { WEIGHT_DIGITS = 4 };

/* One of "a", "b=3" as it stands there. */
struct item {
	size_t name_len;
	int64_t weight; /* 0: it is none */
};

struct owned {
	UT_hash_handle hh;
	const struct conf_source *by;
	char where[ADDRESS_WHERE_MAX];
};

struct check {
	struct conf *conf;
	const struct conf_lines *lines;
	struct conf_faults *faults;
	struct owned *owned; /* addresses, by their texts */
};

#define FAULT(c, place, item, without, ...)                                                        \
	conf_fault((c)->faults, (c)->conf->file,                                                   \
		   conf_lines_find((c)->lines, (place), (item), (without)), __VA_ARGS__)

static int by_title(const void *a, const void *b)
{
	const struct conf_source *const *x = a, *const *y = b;
	return strcmp((*x)->title, (*y)->title);
}

static void sort_sources(struct conf *c)
{
	c->source_sorted = mem_alloc((size_t)(c->nsource + 1) * sizeof *c->source_sorted);
	for (int i = 0; i < c->nsource; i++)
		c->source_sorted[i] = &c->source[i];
	qsort(c->source_sorted, (size_t)c->nsource, sizeof *c->source_sorted, by_title);
}

const struct conf_source *conf_source_find(const struct conf *c, const char *name)
{
	const struct conf_source key = {.title = (char *)(size_t)name}, *wanted = &key;
	const struct conf_source **found =
		c->nsource == 0 ? NULL
				: bsearch(&wanted, c->source_sorted, (size_t)c->nsource,
					  sizeof *c->source_sorted, by_title);
	return found ? *found : NULL;
}

const union address *conf_source_address(const struct conf_source *s, int family)
{
	for (int i = 0; i < s->nbind; i++)
		if (s->bind[i].sa.sa_family == family)
			return &s->bind[i];
	return NULL;
}

const union address *conf_transport_from(const struct conf_transport *t,
					 const struct conf_source *source, int family,
					 union address own[2])
{
	if (source)
		return conf_source_address(source, family);
	int n = address_parse_sources(t->source_address, own);
	assert(n <= 2);
	for (int i = 0; i < n; i++)
		if (own[i].sa.sa_family == family)
			return &own[i];
	return NULL;
}

static struct item read_item(const char *text)
{
	const char *equals = strchr(text, '=');
	struct item it = {.name_len = strcspn(text, "="), .weight = 1};
	if (!equals)
		return it;
	size_t digits = strlen(equals + 1);
	bool good =
		digits > 0 && digits <= WEIGHT_DIGITS && strspn(equals + 1, "0123456789") == digits;
	it.weight = good ? atoi(equals + 1) : 0;
	return it;
}

/* Who has it already: one before this source, or itself. NULL: nobody, and now it is this one's. */
static const struct conf_source *who_has(struct check *c, const struct conf_source *s,
					 const union address *a)
{
	char where[ADDRESS_WHERE_MAX];
	struct owned *o;
	address_where(a, where);
	HASH_FIND_STR(c->owned, where, o);
	if (o)
		return o->by;
	o = mem_zalloc(sizeof *o);
	o->by = s;
	memcpy(o->where, where, sizeof where);
	HASH_ADD_STR(c->owned, where, o);
	return NULL;
}

static void forget_addresses(struct check *c)
{
	struct owned *o, *next;
	HASH_ITER(hh, c->owned, o, next)
	{
		HASH_DEL(c->owned, o);
		free(o);
	}
}

static void take_address(struct check *c, struct conf_source *s, int i)
{
	union address a;
	const char *text = s->address.item[i];
	const struct conf_source *other;
	assert(s->nbind <= 2 && s->nbind <= i);
	bool good = address_parse(text, 0, &a);
	address_unmask(&a);
	if (!good)
		FAULT(c, &s->address, i, s->line, "source \"%s\": \"%s\" is no IP address",
		      s->title, text);
	else if ((other = who_has(c, s, &a)) != NULL)
		FAULT(c, &s->address, i, s->line,
		      "source \"%s\": %s is an address of source \"%s\" already", s->title, text,
		      other->title);
	else if (conf_source_address(s, a.sa.sa_family))
		FAULT(c, &s->address, i, s->line,
		      "source \"%s\": one address for IPv4, and one for IPv6; %s is another",
		      s->title, text);
	else
		s->bind[s->nbind++] = a;
}

static void check_source(struct check *c, struct conf_source *s)
{
	if (!conf_title_good(s->title))
		FAULT(c, s, -1, s->line,
		      "source \"%s\": a name has letters, digits and . _ -, at most %d", s->title,
		      CONF_TITLE_MAX);
	if (conf_source_find(c->conf, s->title) != s)
		FAULT(c, s, -1, s->line, "source \"%s\" is already there", s->title);
	if (s->address.n == 0)
		FAULT(c, s, -1, s->line, "source \"%s\" has no address", s->title);
	conf_value_keep_name(&s->helo);
	if (*s->helo && !mailaddr_domain_valid(s->helo))
		FAULT(c, &s->helo, -1, s->line,
		      "helo \"%s\" is not the name of a host, nor an address literal like "
		      "[192.0.2.1]",
		      s->helo);
	for (int i = 0; i < s->address.n; i++)
		take_address(c, s, i);
}

const char *conf_hello(const struct conf *conf, const struct conf_transport *by,
		       const struct conf_source *from)
{
	const char *helo = from && *from->helo ? from->helo : by->helo;
	return *helo ? helo : conf ? conf->own_name : "localhost";
}

static bool uses_source(const struct conf_uses *u, const struct conf_source *s)
{
	for (int i = 0; i < u->n; i++)
		if (u->of[i].source == s)
			return true;
	return false;
}

static void take_use(struct check *c, struct conf_uses *u, const struct conf_list *l, int i,
		     int line)
{
	const char *text = l->item[i];
	struct item it = read_item(text);
	assert(u->n <= i);
	char *name = mem_strndup(text, it.name_len);
	const struct conf_source *s = conf_source_find(c->conf, name);
	free(name);
	if (it.weight == 0)
		FAULT(c, l, i, line, "sources: the weight in \"%s\" is not a number from 1 to 9999",
		      text);
	else if (!s)
		FAULT(c, l, i, line, "sources: there is no source \"%.*s\"", (int)it.name_len,
		      text);
	else if (uses_source(u, s))
		FAULT(c, l, i, line, "sources: \"%s\" is there twice", s->title);
	else
		u->of[u->n++] = (struct conf_use){s, it.weight};
}

static void take_uses(struct check *c, struct conf_uses *u, const struct conf_list *l, int line)
{
	u->of = mem_zalloc((size_t)(l->n + 1) * sizeof *u->of);
	for (int i = 0; i < l->n; i++)
		take_use(c, u, l, i, line);
}

void conf_source_check(struct conf *f, const struct conf_lines *lines, struct conf_faults *faults)
{
	struct check c = {f, lines, faults, NULL};
	sort_sources(f);
	for (int i = 0; i < f->nsource; i++)
		check_source(&c, &f->source[i]);
	forget_addresses(&c);
	for (int i = 0; i < f->ntransport; i++) {
		struct conf_transport *t = &f->transport[i];
		take_uses(&c, &t->uses, &t->sources, t->line);
		if (*t->source_address && t->sources.n > 0)
			FAULT(&c, &t->sources, -1, t->line,
			      "transport \"%s\": sources and source_address exclude each other",
			      t->title);
	}
	for (int i = 0; i < f->nflow; i++) {
		take_uses(&c, &f->flow[i].uses, &f->flow[i].sources, f->flow[i].line);
		f->flows_have_sources |= f->flow[i].uses.n > 0;
	}
}

void conf_source_free(struct conf *c)
{
	for (int i = 0; i < c->ntransport; i++)
		free(c->transport[i].uses.of);
	for (int i = 0; i < c->nflow; i++)
		free(c->flow[i].uses.of);
	free(c->source_sorted);
	free(c->source);
}
