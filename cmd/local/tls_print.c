/* SPDX-License-Identifier: ISC */
#include "cmd/local/tls_print.h"

#include "base/address.h"
#include "base/tls_dane.h"
#include "base/utf8.h"
#include "cmd/local/route_print.h"
#include "cmd/local/sts_trace.h"
#include "cmd/text/json_put.h"
#include "cmd/text/moment.h"

#include <stdlib.h>

static const char *failure_of(const struct route_hop *h)
{
	return h->answer && h->answer->failure ? h->answer->failure->text : "no answer in time";
}

/* Put a host's words about itself on a terminal: clean, and not for ever. */
static void put_clean(struct buf *to, const char *text)
{
	utf8_put_most(to, text, 1000);
}

static void put_demand(struct buf *to, const struct route_demand *d, const struct route_hop *h)
{
	if (!d->policy)
		return;
	buf_printf(to, "    %s %-10s %s", d == h->held ? "*" : " ", d->setting, d->policy);
	if (d->origin.line > 0)
		buf_printf(to, ", %s:%d", d->origin.file, d->origin.line);
	buf_puts(to, "\n");
}

bool tls_print_left_out(const struct tls_told *t)
{
	const struct sts_policy *p = t->sts ? t->sts->policy : NULL;
	bool by_records = t->host->dane && t->host->dane->nusable > 0;
	return p && p->mode == STS_ENFORCE && !by_records && !sts_policy_has(p, t->host->name);
}

void tls_print_hop(struct buf *to, const struct tls_told *t)
{
	buf_printf(to, "%s: next hop %s, transport %s\n", t->asked, t->hop->text,
		   t->way->by->title);
	buf_printf(to, "  policy   %s\n", t->hop->tls);
	for (size_t i = 0; i < sizeof t->way->demand / sizeof *t->way->demand; i++)
		put_demand(to, &t->way->demand[i], t->hop);
	put_demand(to, &t->hop->row, t->hop);
	if (t->sts)
		sts_trace_print(to, t->sts);
	if (!t->hop->answer || t->hop->answer->nhost == 0)
		buf_printf(to, "  no host  %s\n", failure_of(t->hop));
}

static void put_certificate(struct buf *to, int n, const struct tls_probe_certificate *c)
{
	buf_printf(to, "    %d ", n);
	put_clean(to, c->subject);
	buf_puts(to, "\n      by ");
	put_clean(to, c->issuer);
	buf_printf(to, "\n      %s, until ", c->key);
	moment_put(to, c->until_ms, false);
	buf_printf(to, c->days < 0 ? ", expired\n" : ", %d days\n", c->days);
	if (*c->names) {
		buf_puts(to, "      names ");
		put_clean(to, c->names);
		buf_puts(to, "\n");
	}
	buf_printf(to, "      sha256=%s\n", c->fingerprint);
}

static void put_handshake(struct buf *to, const struct tls_probe *p)
{
	struct buf reason = p->reason;
	struct buf record = p->record;
	buf_printf(to, "    %s, %s, %s%s\n    %s: %s", p->version, p->cipher,
		   p->group ? p->group : "no group",
		   p->small ? " (a large ClientHello was not answered)" : "",
		   tls_probe_asks(p)	       ? "verified"
		   : tls_policy_sts(p->policy) ? "MTA-STS would say"
					       : "verify would say",
		   tls_verified_word(p->verified));
	if (buf_len(&record) > 0)
		buf_printf(to, ", by TLSA %s", buf_cstr(&record));
	if (buf_len(&reason) > 0) {
		buf_puts(to, ", ");
		put_clean(to, buf_cstr(&reason));
	}
	buf_puts(to, "\n");
	for (int i = 0; i < p->nchain; i++)
		put_certificate(to, i, &p->chain[i]);
}

/* RFC 7218's words are for those who know them already. */
static const char *use_of(const struct resolve_tlsa *t)
{
	bool key = t->selector == 1;
	if (!tls_dane_usable(t))
		return t->usage < 2 ? "not for mail" : "cannot be used";
	if (t->usage == 3)
		return key ? "its key" : "its certificate";
	return key ? "a chain to this key" : "a chain to this certificate";
}

/* The policy that was asked for, and what it comes to. */
static void put_tlsa(struct buf *to, const struct tls_told *t)
{
	const struct tls_dane *d = t->host->dane;
	if (t->hop->dane == TLS_DANE_IGNORED)
		return;
	if (t->host->unsure) {
		buf_puts(to, "    TLSA     not known, ");
		put_clean(to, t->host->unsure->text);
		buf_puts(to, "\n");
	} else if (!d) {
		bool forged = !t->hop->bracketed && t->hop->answer->security != RESOLVE_SECURE;
		buf_printf(to, "    TLSA     none that counts%s\n",
			   forged				 ? ": the MX records are not secure"
			   : t->host->security != RESOLVE_SECURE ? ": its addresses are not secure"
								 : "");
	}
	for (int i = 0; d && i < d->nrecord; i++) {
		buf_puts(to, i == 0 ? "    TLSA     " : "             ");
		tls_dane_put(to, &d->record[i]);
		buf_printf(to, ", %s\n", use_of(&d->record[i]));
	}
	if (d)
		buf_printf(to, "      of _%d._tcp.%s, DNSSEC secure%s\n", t->hop->port, d->base,
			   d->nusable > 0 ? "" : ", none usable: TLS with whoever it is");
}

void tls_print_host(struct buf *to, const struct tls_told *t)
{
	char peer[ADDRESS_PEER_MAX];
	struct buf says = {0};
	const struct tls_probe *p = t->probe;
	buf_printf(to, "  host     %s, preference %d",
		   address_peer(t->address, t->host->name, peer), t->host->preference);
	route_print_security(to, t->host->security);
	if (t->sts && t->sts->policy && t->sts->policy->mode != STS_NONE)
		buf_puts(to, sts_policy_has(t->sts->policy, t->host->name)
				     ? ", in the MTA-STS policy"
				     : ", not in the MTA-STS policy");
	buf_puts(to, "\n");
	if (tls_print_left_out(t))
		buf_puts(to, "    it would get no message\n");
	put_tlsa(to, t);
	if (t->barred) {
		buf_printf(to, "    a message would be deferred, %s: ", t->barred->dsn);
		put_clean(to, t->barred->text);
		buf_puts(to, "\n");
	}
	if (!p)
		return;
	if (p->shaken)
		put_handshake(to, p);
	else if (p->failure) {
		buf_puts(to, "    ");
		put_clean(to, p->failure);
		buf_puts(to, "\n");
	}
	tls_probe_says(p, &says);
	buf_puts(to, "    a message would be ");
	put_clean(to, buf_cstr(&says));
	buf_puts(to, "\n");
	buf_fini(&says);
}

static void json_certificates(struct buf *to, const struct tls_probe *p)
{
	buf_puts(to, "\"chain\":[");
	for (int i = 0; i < p->nchain; i++) {
		const struct tls_probe_certificate *c = &p->chain[i];
		buf_puts(to, "{");
		json_put_number(to, "days", c->days);
		json_put_text(to, "subject", c->subject);
		json_put_text(to, "issuer", c->issuer);
		json_put_text(to, "names", c->names);
		json_put_text(to, "key", c->key);
		moment_put_json(to, "until", c->until_ms);
		json_put_text(to, "sha256", c->fingerprint);
		json_put_end(to, '}');
	}
	json_put_end(to, ']');
}

static void json_tlsa(struct buf *to, const struct resolve_host *h)
{
	const struct tls_dane *d = h->dane;
	json_put_text(to, "tlsa_base", d ? d->base : NULL);
	json_put_text(to, "tlsa_failure", h->unsure ? h->unsure->text : NULL);
	buf_puts(to, "\"tlsa\":[");
	for (int i = 0; d && i < d->nrecord; i++) {
		struct buf text = {0};
		tls_dane_put(&text, &d->record[i]);
		buf_puts(to, "{");
		json_put_flag(to, "usable", tls_dane_usable(&d->record[i]));
		json_put_text(to, "record", buf_cstr(&text));
		json_put_text(to, "use", use_of(&d->record[i]));
		json_put_end(to, '}');
		buf_fini(&text);
	}
	json_put_end(to, ']');
}

static void json_barred(struct buf *to, const char *why)
{
	json_put_text(to, "outcome", "deferred");
	json_put_text(to, "reason", why);
}

static void json_probe(struct buf *to, const struct tls_probe *p)
{
	struct buf says = {0}, reason = p->reason;
	tls_probe_says(p, &says);
	json_put_flag(to, "starttls", p->offered);
	json_put_text(to, "version", p->version);
	json_put_text(to, "cipher", p->cipher);
	json_put_text(to, "group", p->group);
	json_put_flag(to, "small_hello", p->small);
	struct buf record = p->record;
	json_put_text(to, "fits", buf_len(&record) ? buf_cstr(&record) : NULL);
	json_put_text(to, "verified", p->shaken ? tls_verified_word(p->verified) : NULL);
	json_put_text(to, "reason", buf_len(&reason) ? buf_cstr(&reason) : p->failure);
	json_put_text(to, "outcome", tls_probe_passes(p) ? "sent" : "deferred");
	json_put_text(to, "says", buf_cstr(&says));
	json_certificates(to, p);
	buf_fini(&says);
}

void tls_print_json(struct buf *to, const struct tls_told *t)
{
	char where[ADDRESS_WHERE_MAX];
	const struct route_demand *held = t->hop->held;
	buf_puts(to, "{");
	json_put_text(to, "asked", t->asked);
	json_put_text(to, "transport", t->way->by->title);
	json_put_text(to, "next_hop", t->hop->text);
	json_put_text(to, "policy", t->probe ? t->probe->policy : t->hop->tls);
	json_put_text(to, "by", held->setting);
	json_put_text(to, "file", held->origin.file);
	json_put_number(to, "line", held->origin.line);
	if (t->host) {
		json_put_text(to, "host", t->host->name);
		json_put_text(to, "address", address_where(t->address, where));
		json_put_number(to, "port", address_port(t->address));
		json_put_number(to, "preference", t->host->preference);
		json_put_text(to, "dnssec", resolve_security_text(t->host->security));
		json_tlsa(to, t->host);
	} else {
		json_put_text(to, "failure", failure_of(t->hop));
	}
	if (t->sts)
		sts_trace_json(to, t->sts);
	if (t->sts && t->sts->policy && t->host)
		json_put_flag(to, "mta_sts_match", sts_policy_has(t->sts->policy, t->host->name));
	if (t->barred)
		json_barred(to, t->barred->text);
	else if (t->host && tls_print_left_out(t))
		json_barred(to, "it is not in the MTA-STS policy");
	else if (t->probe)
		json_probe(to, t->probe);
	json_put_line(to);
}
