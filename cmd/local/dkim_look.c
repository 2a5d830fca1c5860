/* SPDX-License-Identifier: ISC */
#include "cmd/local/dkim_look.h"

#include "base/dkim_rows.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/tables.h"
#include "base/tls_keys.h"
#include "dkim/key_record.h"
#include "dns/dns.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { ANSWER_MS = 60000 };

/* One key, and what the DNS says of it. */
struct look {
	char *domain, *selector, *key; /* key: its file */
	char *name;		       /* of the record */
	struct resolve *answer;
};

struct looking {
	struct loop *loop;
	struct dns *dns;
	struct timer limit;
	struct look *look;
	int n, open;
	int ngiven;
	char **given; /* domains; none: all */
};

static void take_answer(void *owner, struct note *note)
{
	struct looking *l = owner;
	struct resolve *r = (struct resolve *)note;
	assert(r->order >= 0 && r->order < l->n && !l->look[r->order].answer);
	l->look[r->order].answer = r;
	assert(l->open > 0);
	if (--l->open == 0)
		ev_break(l->loop->ev, EVBREAK_ALL);
}

static void too_long(void *owner)
{
	struct looking *l = owner;
	ev_break(l->loop->ev, EVBREAK_ALL);
}

static void ask_all(struct looking *l, struct conf *conf)
{
	l->dns = dns_new(conf);
	l->loop = loop_new("dkim", take_answer, NULL, l);
	dns_start(l->dns);
	timer_init(&l->limit, too_long, l);
	loop_timer_in(l->loop, &l->limit, ANSWER_MS);
	for (int i = 0; i < l->n; i++, l->open++) {
		struct resolve *r = resolve_new(RESOLVE_TXT, l->look[i].name, l->loop, l);
		r->order = i;
		loop_post(dns_loop(l->dns), &r->note);
	}
	if (l->open > 0)
		ev_run(l->loop->ev, 0);
	timer_stop(&l->loop->timers, &l->limit);
	dns_stop(l->dns);
	dns_free(&l->dns);
	loop_free(&l->loop);
}

/* Judge the records that there are as a verifier would: it tries one. */
static bool judge_records(const struct look *l, EVP_PKEY *key, struct buf *why)
{
	const struct resolve *r = l->answer;
	bool fits = false;
	if (!key) {
		buf_printf(why, "%s cannot be read, or holds no private key", l->key);
	} else if (!r) {
		buf_puts(why, "the name servers do not answer");
	} else if (r->failure) {
		buf_printf(why, "the DNS says: %s", r->failure->text);
	} else if (r->ntxt == 0) {
		buf_printf(why, "there is no record %s", l->name);
	} else {
		fits = key_record_fits(r->txt[0], key, why);
		if (r->ntxt > 1)
			buf_printf(why, "%sthere are %d records %s, and only one is looked at",
				   buf_len(why) > 0 ? "; " : "", r->ntxt, l->name);
		fits = fits && r->ntxt == 1;
	}
	return fits;
}

static void print_text(const struct look *l, EVP_PKEY *key, bool fits, const char *why)
{
	const char *kind = !key					       ? "none"
			   : EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA ? "rsa"
								       : "ed25519";
	printf("%s %s: %s, %s %d bits%s%s\n", l->domain, l->selector, fits ? "good" : "NOT GOOD",
	       kind, key ? EVP_PKEY_get_bits(key) : 0, *why ? ": " : "", why);
}

static void print_json(const struct look *l, EVP_PKEY *key, bool fits, const char *why)
{
	struct buf to = {0};
	const char *kind = !key					       ? ""
			   : EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA ? "rsa"
								       : "ed25519";
	const char *const pair[][2] = {{"domain", l->domain}, {"selector", l->selector},
				       {"record", l->name},   {"key", l->key},
				       {"algorithm", kind},   {"result", fits ? "good" : "bad"},
				       {"reason", why}};
	for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
		buf_printf(&to, "%s\"%s\": ", i ? ", " : "{", pair[i][0]);
		log_json_string(&to, pair[i][1]);
	}
	buf_printf(&to, ", \"bits\": %d}\n", key ? EVP_PKEY_get_bits(key) : 0);
	fputs(buf_cstr(&to), stdout);
	buf_fini(&to);
}

static bool check_look(const struct look *l, bool json)
{
	struct buf why = {0};
	EVP_PKEY *key = tls_keys_private(l->key);
	bool fits = judge_records(l, key, &why);
	(json ? print_json : print_text)(l, key, fits, buf_cstr(&why));
	EVP_PKEY_free(key);
	buf_fini(&why);
	return fits;
}

static bool is_wanted(const char *domain, int n, char **given)
{
	for (int i = 0; i < n; i++)
		if (strcasecmp(domain, given[i]) == 0)
			return true;
	return n == 0;
}

static bool all_known(const struct looking *l, int n, char **given)
{
	bool all = l->n > 0 || n > 0;
	if (!all)
		fputs("sluice: the configuration has no section dkim, and no row of dkim_keys\n",
		      stderr);
	for (int i = 0; i < n; i++) {
		bool known = false;
		for (int k = 0; k < l->n; k++)
			known = known || strcasecmp(l->look[k].domain, given[i]) == 0;
		if (!known)
			fprintf(stderr,
				"sluice: no section dkim or row of dkim_keys signs for %s\n",
				given[i]);
		all = all && known;
	}
	return all;
}

static void add_look(struct looking *l, const char *title, const char *selector, const char *key)
{
	const char *domain = title + (title[0] == '.');
	if (!is_wanted(domain, l->ngiven, l->given))
		return;
	l->look = mem_realloc(l->look, (size_t)(l->n + 1) * sizeof *l->look);
	l->look[l->n++] = (struct look){.domain = mem_strdup(domain),
					.selector = mem_strdup(selector),
					.key = mem_strdup(key),
					.name = mem_printf("%s._domainkey.%s", selector, domain)};
}

static void add_rows(void *context, const char *key, const char *value)
{
	struct dkim_rows rows;
	struct buf why = {0};
	dkim_rows_parse(value, &rows, &why);
	for (int i = 0; i < rows.n; i++)
		add_look(context, key, rows.row[i].selector, rows.row[i].file);
	dkim_rows_fini(&rows);
	buf_fini(&why);
}

static void look_fini(struct look *l)
{
	resolve_free(&l->answer);
	free(l->domain);
	free(l->selector);
	free(l->key);
	free(l->name);
}

bool dkim_look(struct conf *conf, int n, char **given, bool json)
{
	struct looking l = {.ngiven = n, .given = given};
	for (int i = 0; i < conf->ndkim; i++)
		add_look(&l, conf->dkim[i].title, conf->dkim[i].selector, conf->dkim[i].key);
	if (conf->tables)
		tables_each(conf->tables, TABLE_DKIM_KEYS, add_rows, &l);
	bool good = all_known(&l, n, given);
	if (l.n > 0)
		ask_all(&l, conf);
	for (int i = 0; i < l.n; i++) {
		good = check_look(&l.look[i], json) && good;
		look_fini(&l.look[i]);
	}
	free(l.look);
	return good;
}
