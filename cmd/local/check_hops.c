/* SPDX-License-Identifier: ISC */
#include "cmd/local/check_hops.h"

#include "base/mem.h"
#include "base/near.h"
#include "base/tables.h"
#include "qmgr/route/route.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	MEANT_MOST = 100
}; /* rows of which it is said what they may mean: all relays are compared for each */

/* A relay of a route or transport. */
struct relay {
	struct conf_relay is;
	char *text; /* as it is written, without its weight */
	int place;  /* among all */
};

struct hops {
	const struct conf *conf;
	struct route_table *routes;
	struct relay *relay; /* by host; each once */
	int nrelay;
	int told;	  /* rows */
	const char *of;	  /* "credentials", "tls_policy" */
	const char *lost; /* what mail goes without, then */
	void (*tell)(void *context, int line, const char *text);
	void *context;
};

static void add_relay(struct hops *h, const char *item)
{
	const char *weight = strrchr(item, '=');
	struct relay r = {.text = weight ? mem_strndup(item, (size_t)(weight - item))
					 : mem_strdup(item),
			  .place = h->nrelay};
	if (!conf_relay_read(r.text, &r.is)) {
		free(r.text);
		return;
	}
	if ((h->nrelay & (h->nrelay - 1)) == 0) /* it doubles */
		h->relay = mem_realloc(h->relay,
				       (size_t)(h->nrelay ? h->nrelay * 2 : 1) * sizeof *h->relay);
	h->relay[h->nrelay++] = r;
}

static void free_relay(struct relay *r)
{
	free(r->is.host);
	free(r->text);
}

static void add_relays(struct hops *h, const struct conf_list *l)
{
	for (int i = 0; i < l->n; i++)
		add_relay(h, l->item[i]);
}

static void add_row(void *context, const char *key, const char *value)
{
	struct route_value v;
	struct buf why = {0};
	(void)key;
	if (!route_value_parse(value, &v, &why))
		add_relays(context, &v.relay);
	route_value_fini(&v);
	buf_fini(&why);
}

static int compare_relays(const struct relay *x, const struct relay *y)
{
	int hosts = strcasecmp(x->is.host, y->is.host);
	int ports = (x->is.port > y->is.port) - (x->is.port < y->is.port);
	return hosts ? hosts : ports ? ports : x->is.bracketed - y->is.bracketed;
}

static int by_host(const void *a, const void *b)
{
	const struct relay *x = a, *y = b;
	int order = compare_relays(x, y);
	return order ? order : (x->place > y->place) - (x->place < y->place);
}

/* Many a route has the same one. */
static void sort_relays(struct hops *h)
{
	int n = 0;
	if (h->nrelay > 0)
		qsort(h->relay, (size_t)h->nrelay, sizeof *h->relay, by_host);
	for (int i = 0; i < h->nrelay; i++) {
		if (n > 0 && compare_relays(&h->relay[n - 1], &h->relay[i]) == 0)
			free_relay(&h->relay[i]);
		else
			h->relay[n++] = h->relay[i];
	}
	h->nrelay = n;
}

static void add_all(struct hops *h)
{
	const struct conf *conf = h->conf;
	for (int i = 0; i < conf->nroute; i++)
		add_relays(h, &conf->route[i].relay);
	for (int i = 0; i < conf->ntransport; i++)
		add_relays(h, &conf->transport[i].fallback_relay);
	tables_each(conf->tables, TABLE_ROUTES, add_row, h);
	tables_each(conf->tables, TABLE_SENDER_ROUTES, add_row, h);
	sort_relays(h);
}

/* Does a row with this key hold for mail to that relay? Its port counts where the row has one, its brackets likewise. */
static bool fits_relay(const struct conf_relay *key, const struct conf_relay *relay)
{
	return strcasecmp(key->host, relay->host) == 0 && (!key->bracketed || relay->bracketed) &&
	       (key->port == 0 || (key->port == relay->port && key->bracketed == relay->bracketed));
}

/* The first of this host or, where there is none, of the next one. */
static int first_of_host(const struct hops *h, const char *host)
{
	int low = 0, high = h->nrelay;
	while (low < high) {
		int middle = low + (high - low) / 2;
		if (strcasecmp(h->relay[middle].is.host, host) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool fits_any(const struct hops *h, const struct conf_relay *key)
{
	bool fits = false;
	for (int i = first_of_host(h, key->host); i < h->nrelay && !fits; i++) {
		if (strcasecmp(h->relay[i].is.host, key->host) != 0)
			break;
		fits = fits_relay(key, &h->relay[i].is);
	}
	return fits;
}

/* One of this host; else the first of those that were written nearly so. NULL: none is like it. */
static const char *find_meant(const struct hops *h, const struct conf_relay *key)
{
	const struct relay *meant = NULL;
	int same = first_of_host(h, key->host);
	if (same < h->nrelay && strcasecmp(h->relay[same].is.host, key->host) == 0)
		return h->relay[same].text;
	for (int i = 0; i < h->nrelay && h->told < MEANT_MOST; i++) {
		const struct relay *r = &h->relay[i];
		if ((!meant || r->place < meant->place) && near_is(key->host, r->is.host))
			meant = r;
	}
	return meant ? meant->text : NULL;
}

/* Mail for a domain goes to its own hosts, or to a relay. */
static const char *relay_of_domain(const struct hops *h, const char *domain)
{
	char *address = mem_printf("postmaster@%s", domain);
	const struct route *r = route_find(h->routes, "", address);
	free(address);
	return r->action == ROUTE_DELIVER && r->relay->n > 0 ? r->relay->item[0] : NULL;
}

static void tell_unused(struct hops *h, const char *key, const char *meant)
{
	char *text = mem_printf("%s of %s: no mail has this next hop, and none goes with %s%s%s%s",
				h->of, key, h->lost, meant ? "; did you mean " : "",
				meant ? meant : "", meant ? "?" : "");
	h->tell(h->context, 0, text);
	h->told++;
	free(text);
}

static void look_at_row(void *context, const char *key, const char *value)
{
	struct hops *h = context;
	struct conf_relay r;
	(void)value;
	char *hop = mem_strndup(key, strcspn(key, " "));
	if (*hop != '.' && strcmp(hop, "*") != 0 && conf_relay_read(hop, &r)) {
		bool domain = !r.bracketed && r.port == 0 && strchr(r.host, '/') == NULL;
		const char *relay = domain ? relay_of_domain(h, r.host) : NULL;
		if (!fits_any(h, &r) && (!domain || relay)) {
			const char *meant = find_meant(h, &r);
			tell_unused(h, hop, meant ? meant : relay);
		}
		free(r.host);
	}
	free(hop);
}

static bool is_hidden(const struct conf_list *files)
{
	for (int i = 0; i < files->n; i++) {
		size_t n = strlen(files->item[i]);
		if (n > 4 && strcmp(files->item[i] + n - 4, ".cdb") == 0)
			return true;
	}
	return false;
}

static void look_at_archive(const struct hops *h, const char *address)
{
	const struct route *r = route_find(h->routes, "", address);
	for (int i = 0; i < h->conf->nroute; i++) {
		if (strcmp(h->conf->route[i].title, "*") != 0 || r->relay->n == 0 ||
		    r->relay != &h->conf->route[i].relay)
			continue;
		char *text =
			mem_printf("archive: copies for %s, of internal mail, too, leave by the "
				   "route \"*\" to %s: give its domain a route of its own",
				   address, r->relay->item[0]);
		h->tell(h->context, h->conf->route[i].line, text);
		free(text);
	}
}

static void look_at_archived(void *context, const char *key, const char *value)
{
	const struct hops *h = context;
	(void)key;
	for (const char *at = value; *at;) {
		at += strspn(at, ", \t");
		char *address = mem_strndup(at, strcspn(at, ", \t"));
		at += strlen(address);
		if (strchr(address, '@'))
			look_at_archive(h, address);
		free(address);
	}
}

void check_hops(const struct conf *conf, void (*tell)(void *context, int line, const char *text),
		void *context)
{
	struct hops h = {.conf = conf, .tell = tell, .context = context};
	if (!conf->tables)
		return;
	h.routes = route_table_new(conf);
	add_all(&h);
	if (!is_hidden(&conf->routes) && !is_hidden(&conf->sender_routes)) {
		h.of = "credentials";
		h.lost = "this login";
		tables_each(conf->tables, TABLE_CREDENTIALS, look_at_row, &h);
		h.of = "tls_policy";
		h.lost = "this proof";
		tables_each(conf->tables, TABLE_TLS_POLICY, look_at_row, &h);
	}
	for (int i = 0; i < conf->archive.to.n; i++)
		look_at_archive(&h, conf->archive.to.item[i]);
	tables_each(conf->tables, TABLE_ARCHIVE, look_at_archived, &h);
	for (int i = 0; i < h.nrelay; i++)
		free_relay(&h.relay[i]);
	free(h.relay);
	route_table_free(&h.routes);
}
