/* SPDX-License-Identifier: ISC */
#include "cmd/local/dkim_look.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/tls_keys.h"
#include "dkim/key_record.h"
#include "dns/dns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { ANSWER_MS = 60000 };

/* One section, and what the DNS says of it. */
struct look {
	const struct conf_dkim *of;
	const char *domain;
	char *name; /* of the record */
	struct resolve *answer;
};

struct looking {
	struct loop *loop;
	struct dns *dns;
	struct timer limit;
	struct look *look;
	int n, open;
};

static void answered(void *owner, struct note *note)
{
	struct looking *l = owner;
	struct resolve *r = (struct resolve *)note;
	l->look[r->order].answer = r;
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
	l->loop = loop_new("dkim", answered, NULL, l);
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

/* What a verifier would make of the records that there are: it tries one. */
static bool judge(const struct look *l, EVP_PKEY *key, struct buf *why)
{
	const struct resolve *r = l->answer;
	bool fits = false;
	if (!key) {
		buf_printf(why, "%s cannot be read, or holds no private key", l->of->key);
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

static void print(const struct look *l, EVP_PKEY *key, bool fits, const char *why)
{
	const char *kind = !key					       ? "none"
			   : EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA ? "rsa"
								       : "ed25519";
	printf("%s %s: %s, %s %d bits%s%s\n", l->domain, l->of->selector,
	       fits ? "good" : "NOT GOOD", kind, key ? EVP_PKEY_get_bits(key) : 0, *why ? ": " : "",
	       why);
}

static void print_json(const struct look *l, EVP_PKEY *key, bool fits, const char *why)
{
	struct buf to = {0};
	const char *kind = !key					       ? ""
			   : EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA ? "rsa"
								       : "ed25519";
	const char *const pair[][2] = {{"domain", l->domain}, {"selector", l->of->selector},
				       {"record", l->name},   {"key", l->of->key},
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

static bool tell(const struct look *l, bool json)
{
	struct buf why = {0};
	EVP_PKEY *key = tls_keys_private(l->of->key);
	bool fits = judge(l, key, &why);
	(json ? print_json : print)(l, key, fits, buf_cstr(&why));
	EVP_PKEY_free(key);
	buf_fini(&why);
	return fits;
}

static bool wanted(const char *domain, int n, char **given)
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
		fputs("sluice: the configuration has no section dkim\n", stderr);
	for (int i = 0; i < n; i++) {
		bool known = false;
		for (int k = 0; k < l->n; k++)
			known = known || strcasecmp(l->look[k].domain, given[i]) == 0;
		if (!known)
			fprintf(stderr, "sluice: no section dkim signs for %s\n", given[i]);
		all = all && known;
	}
	return all;
}

bool dkim_look(struct conf *conf, int n, char **given, bool json)
{
	struct looking l = {.look = mem_zalloc((size_t)(conf->ndkim + 1) * sizeof *l.look)};
	for (int i = 0; i < conf->ndkim; i++) {
		const struct conf_dkim *d = &conf->dkim[i];
		const char *domain = d->title + (d->title[0] == '.');
		if (!wanted(domain, n, given))
			continue;
		char *name = mem_printf("%s._domainkey.%s", d->selector, domain);
		l.look[l.n++] = (struct look){d, domain, name, NULL};
	}
	bool good = all_known(&l, n, given);
	if (l.n > 0)
		ask_all(&l, conf);
	for (int i = 0; i < l.n; i++) {
		good = tell(&l.look[i], json) && good;
		resolve_free(&l.look[i].answer);
		free(l.look[i].name);
	}
	free(l.look);
	return good;
}
