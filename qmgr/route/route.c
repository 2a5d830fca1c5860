/* SPDX-License-Identifier: ISC */
#include "qmgr/route/route.h"

#include "base/conf_rows.h"
#include "base/keyed_hash.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/tables.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PARSED_MAX = 10000 }; /* values of rows that are kept as routes */

struct row {
	const struct conf_route *section;
	struct route_value value; /* its error, parsed */
	struct route route;
	UT_hash_handle hh; /* by title */
};

/* A row's value, once for all rows that say the same. */
struct parsed {
	char *text;
	struct route_value value;
	struct route route;
	UT_hash_handle hh; /* by text */
};

struct route_table {
	const struct conf *conf;
	struct row *rows; /* an array; the hash lies over it */
	struct row *by_title;
	const struct row *of_all; /* the section "*", or NULL */
	uint64_t lengths; /* of titles, a bit each: most keys are of none, and need no look */
	bool by_address;  /* something besides "*" is asked of a recipient's */
	struct parsed *parsed;
	struct route rest;    /* where not even "*" is for this sender */
	struct route merged;  /* of a sender's row and "*" */
	struct route of_flow; /* one that was found, by the transport of a flow */
};

static const struct conf_list no_relay;

const struct conf_transport *route_transport(const struct conf *c, const char *title)
{
	const struct conf_transport *t = title ? conf_find(c, CONF_KIND_TRANSPORT, title) : NULL;
	return t ? t : &c->transport[0];
}

static void set_route(struct route *r, const struct route_value *v)
{
	r->action = v->action;
	r->dsn = v->dsn;
	r->text = v->text;
}

/* Those of 63 bytes and more share one. */
static uint64_t bit_of_length(const char *key)
{
	size_t len = strlen(key);
	return 1ULL << (len < 63 ? len : 63);
}

static void fill_row(const struct conf *c, struct row *row, const struct conf_route *section)
{
	struct buf why = {0};
	row->section = section;
	row->route = (struct route){.by = section->by,
				    .named = section->named || section->relay.n > 0,
				    .relay = &section->relay,
				    .tls = *section->tls ? section->tls : NULL,
				    .verify = section->verify,
				    .recipients =
					    section->recipients.n > 0 ? &section->recipients : NULL,
				    .setting = "route",
				    .origin = {section->line > 0 ? c->file : "", section->line}};
	if (*section->error)
		route_value_error(section->error, &row->value, &why);
	if (section->discard)
		row->value = (struct route_value){.action = ROUTE_DISCARD, .text = mem_strdup("")};
	set_route(&row->route, &row->value);
	buf_fini(&why);
}

struct route_table *route_table_new(const struct conf *conf)
{
	struct route_table *t = mem_zalloc(sizeof *t);
	t->conf = conf;
	t->rows = mem_zalloc((size_t)conf->nroute * sizeof *t->rows);
	t->rest = (struct route){.by = &conf->transport[0],
				 .relay = &no_relay,
				 .setting = "route",
				 .origin = {conf->file, 0}};
	for (int i = 0; i < conf->nroute; i++) {
		const struct conf_route *section = &conf->route[i];
		struct row *row = &t->rows[i];
		fill_row(conf, row, section);
		HASH_ADD_KEYPTR(hh, t->by_title, section->title, strlen(section->title), row);
		t->lengths |= bit_of_length(section->title);
		if (strcmp(section->title, "*") == 0)
			t->of_all = row;
		else
			t->by_address = true;
	}
	t->by_address |= tables_count(conf->tables, TABLE_ROUTES) > 0;
	return t;
}

static void forget_parsed(struct route_table *t)
{
	hash_each (struct parsed, p, t->parsed) {
		HASH_DEL(t->parsed, p);
		route_value_fini(&p->value);
		free(p->text);
		free(p);
	}
	assert(!t->parsed);
}

void route_table_free(struct route_table **tp)
{
	struct route_table *t = *tp;
	if (!t)
		return;
	HASH_CLEAR(hh, t->by_title);
	forget_parsed(t);
	for (int i = 0; i < t->conf->nroute; i++)
		route_value_fini(&t->rows[i].value);
	free(t->rows);
	free(t);
	*tp = NULL;
}

/* Takes the text. */
static struct parsed *get_parsed(struct route_table *t, char *text)
{
	struct parsed *p;
	struct buf why = {0};
	HASH_FIND_STR(t->parsed, text, p);
	if (p) {
		free(text);
		return p;
	}
	assert(HASH_COUNT(t->parsed) < PARSED_MAX);
	p = mem_zalloc(sizeof *p);
	p->text = text;
	const char *bad = route_value_parse(text, &p->value, &why);
	assert(!bad); /* it was checked when the table was read */
	(void)bad;
	buf_fini(&why);
	p->route.by = route_transport(t->conf, p->value.transport);
	p->route.relay = &p->value.relay;
	p->route.named = p->value.transport || p->value.relay.n > 0;
	p->route.verify = p->value.verify;
	set_route(&p->route, &p->value);
	HASH_ADD_KEYPTR(hh, t->parsed, p->text, strlen(p->text), p);
	return p;
}

static bool pattern_fits(const char *pattern, const char *const *key, int n)
{
	for (int i = 0; i < n; i++)
		if (strcasecmp(pattern, key[i]) == 0)
			return true;
	return false;
}

static bool is_from(const struct conf_route *section, const char *sender)
{
	char room[MAILADDR_MAX];
	const char *key[TABLES_KEYS_MAX];
	if (section->from.n == 0)
		return true;
	int n = *sender ? tables_keys(sender, room, sizeof room, key) : 1;
	if (!*sender)
		key[0] = "<>";
	bool fits = false;
	for (int i = 0; i < section->from.n && !fits; i++) {
		char *pattern = name_key(section->from.item[i]);
		fits = pattern_fits(pattern, key, n);
		free(pattern);
	}
	return fits;
}

static const struct route *route_of_row(const struct row *row, const char *sender)
{
	return row && is_from(row->section, sender) ? &row->route : NULL;
}

static const struct route *of_section(const struct route_table *t, const char *key,
				      const char *sender)
{
	struct row *row = NULL;
	if (t->lengths & bit_of_length(key))
		HASH_FIND_STR(t->by_title, key, row);
	return route_of_row(row, sender);
}

static const struct route *of_value(struct route_table *t, char *value, const char *setting,
				    const struct table_origin *origin)
{
	struct parsed *p = get_parsed(t, value);
	p->route.setting = setting;
	p->route.origin = *origin;
	return &p->route;
}

static const struct route *of_table(struct route_table *t, const char *key)
{
	struct table_origin origin;
	char *value = tables_get(t->conf->tables, TABLE_ROUTES, key, &origin);
	return value ? of_value(t, value, "routes", &origin) : NULL;
}

/* The section "*" that is there because there must be one stands behind a row of a table. */
static const struct route *find_rest(struct route_table *t, const char *sender)
{
	const struct route *section = route_of_row(t->of_all, sender);
	if (section && !t->conf->route_is_default)
		return section;
	const struct route *row = of_table(t, "*");
	return row ? row : section ? section : &t->rest;
}

/* Parts that the row does not name are as for all. */
static void inherit_rest(struct route *r, const struct route_value *said, const struct route *rest)
{
	if (!said->transport)
		r->by = rest->by;
	if (said->relay.n == 0 && !said->by_mx) {
		r->relay = rest->relay;
		r->tls = rest->tls;
	}
	r->verify |= rest->verify;
	r->recipients = rest->recipients;
}

static const struct route *last_way(struct route_table *t, const char *sender)
{
	struct table_origin origin;
	const struct route *rest = find_rest(t, sender);
	char *value = tables_find(t->conf->tables, TABLE_SENDER_ROUTES, sender, &origin);
	if (!value)
		return rest;
	const struct parsed *said = get_parsed(t, value);
	t->merged = said->route;
	t->merged.setting = "sender_routes";
	t->merged.origin = origin;
	if (said->value.action == ROUTE_DELIVER && rest->action == ROUTE_DELIVER)
		inherit_rest(&t->merged, &said->value, rest);
	return &t->merged;
}

const struct route *route_find(struct route_table *t, const char *sender, const char *address)
{
	char room[MAILADDR_MAX];
	const char *key[TABLES_KEYS_MAX];
	int n = t->by_address ? tables_keys(address, room, sizeof room, key) : 0;
	const struct route *route = NULL;
	if (HASH_COUNT(t->parsed) + 2 > PARSED_MAX)
		forget_parsed(t); /* and no more until this one is found, which may need two */
	for (int i = 0; !route && i < n - 1; i++) {
		route = of_section(t, key[i], sender);
		if (!route)
			route = of_table(t, key[i]);
	}
	return route ? route : last_way(t, sender);
}

const struct route *route_find_of_flow(struct route_table *t, const struct conf_flow *flow,
				       const char *sender, const char *address)
{
	const struct route *found = route_find(t, sender, address);
	if (!flow->by || found->by != &t->conf->transport[0])
		return found;
	t->of_flow = *found;
	t->of_flow.by = flow->by;
	t->of_flow.named = true;
	return &t->of_flow;
}
