/* SPDX-License-Identifier: ISC */
/* sluice tls: what next hops must prove, why, and whether they do. */
#include "base/address.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/tls_dane.h"
#include "base/tls_policy.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/local/sts_trace.h"
#include "cmd/local/tls_print.h"
#include "qmgr/route/nexthop_lookup.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"usage: sluice tls [-c FILE] [--json] [-n] DOMAIN|ADDRESS|HOST...\n"
	"Show the TLS policy for mail to an address, to a domain, or to a next hop, [HOST] or\n"
	"[HOST]:PORT, and where it is set, with file and line. Then connect to each host to see\n"
	"what it proves, and what would happen to a message. It needs no running relay.\n"
	"The exit status is 1 if no host would get the message.\n"
	"  -n, --no-handshake  show only the configuration, and the hosts from DNS\n"
	"  --json              one object for each host\n";

static const struct option longs[] = {
	{"json", no_argument, NULL, OPTION_JSON},
	{"no-handshake", no_argument, NULL, 'n'},
	OPTIONS_COMMON,
};

struct asking {
	struct conf *conf;
	struct tls_authorities *authorities; /* NULL: nobody is trusted */
	bool json, quiet;
	struct buf out;
};

/* NULL: none, or the host's TLSA records take its place. */
static const struct sts_policy *policy_of(const struct tls_told *t)
{
	bool by_records = t->host->dane && t->host->dane->nusable > 0;
	return t->sts && !by_records ? t->sts->policy : NULL;
}

/* The relay's demand of this host, as nexthop_tls_of_host() has it. */
static char *demand_of(const struct tls_told *t)
{
	const struct sts_policy *p = policy_of(t);
	char *of_hop = tls_policy_add_sts(t->hop->tls, p);
	bool stranger = p && !sts_policy_has(p, t->host->name);
	char *of_host = tls_policy_of_host(of_hop, stranger ? "" : t->host->name);
	free(of_hop);
	return of_host;
}

static void show_output(struct asking *a)
{
	fwrite(buf_data(&a->out), 1, buf_len(&a->out), stdout);
	fflush(stdout);
	buf_clear(&a->out);
}

/* True: a message would be given to it. */
static bool try_host(struct asking *a, struct tls_told *t)
{
	struct tls_probe probe;
	char *demand = demand_of(t);
	struct tls_probe_host host = {.name = t->host->name,
				      .address = t->address,
				      .of_hop = demand,
				      .hop = t->hop->name,
				      .dane = t->host->dane,
				      .by = t->way->by};
	bool left_out = tls_print_left_out(t);
	t->barred = left_out ? NULL : nexthop_lookup_barred(t->host, t->hop->dane);
	bool handshake = !a->quiet && !left_out && !t->barred && !address_is_unix(t->address);
	if (handshake) {
		tls_probe_run(&probe, a->conf, a->authorities, &host);
		t->probe = &probe;
	}
	(a->json ? tls_print_json : tls_print_host)(&a->out, t);
	bool passes = !left_out && !t->barred && (!handshake || tls_probe_passes(&probe));
	t->probe = NULL;
	if (handshake)
		tls_probe_fini(&probe);
	verdict_unref(t->barred);
	free(demand);
	show_output(a);
	return passes;
}

static bool try_hop(struct asking *a, const char *asked, const struct route_way *w,
		    const struct route_hop *h)
{
	bool passes = false;
	struct sts_ask *sts = NULL;
	if (a->conf->tls.mta_sts && *a->conf->tls.ca && route_trace_by_domain(w, h))
		sts = sts_trace(a->conf, h->name);
	struct tls_told told = {.asked = asked, .way = w, .hop = h, .sts = sts};
	const struct resolve *r = h->answer;
	if (!a->json)
		tls_print_hop(&a->out, &told);
	else if (!r || r->nhost == 0)
		tls_print_json(&a->out, &told);
	for (int i = 0; r && i < r->nhost; i++)
		for (int k = 0; k < r->host[i].naddress; k++) {
			union address address = r->host[i].address[k];
			address_set_port(&address, h->port);
			told.host = &r->host[i];
			told.address = &address;
			passes |= try_host(a, &told);
		}
	show_output(a);
	sts_ask_free(&sts);
	return passes;
}

/* An address; a domain, which is one too; or a next hop. NULL: none of these. */
static struct route_trace *trace_of(struct asking *a, const char *text)
{
	struct mailaddr to;
	if (text[0] == '[' || strncmp(text, "unix:", 5) == 0)
		return route_trace_hop(a->conf, text);
	char *address = strchr(text, '@') ? mem_strdup(text) : mem_printf("postmaster@%s", text);
	bool good = mailaddr_mailbox(address, strlen(address), true, &to) == MAILADDR_OK &&
		    to.text[to.at];
	free(address);
	return good ? route_trace_new(a->conf, "", NULL, to.text) : route_trace_hop(a->conf, text);
}

static bool try_destination(struct asking *a, const char *text)
{
	bool passes = false;
	struct route_trace *t = trace_of(a, text);
	if (!t) {
		fprintf(stderr, "sluice: %s is no address, domain or next hop\n", text);
		return false;
	}
	route_trace_ask(t, true);
	for (uint32_t i = 0; i < t->nway; i++)
		for (int k = 0; k < t->way[i].nhop; k++)
			passes |= try_hop(a, text, &t->way[i], &t->way[i].hop[k]);
	if (t->nway == 0 || t->way[0].nhop == 0)
		fprintf(stderr, "sluice: mail for %s goes nowhere: see sluice route\n", text);
	route_trace_free(&t);
	return passes;
}

int cmd_tls(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:n", .longs = longs};
	struct asking a = {.conf = NULL};
	bool good = true;
	struct buf error = {0};
	int option;
	while ((option = options_next(&o, argc, argv)) != -1)
		*(option == OPTION_JSON ? &a.json : &a.quiet) = true;
	if (optind == argc)
		options_wrong(&o, "tls wants a domain, an address or a next hop");
	a.conf = options_conf_with(&o, CONF_WITH_TABLES);
	if (!a.conf)
		return STATUS_REFUSED;
	signal(SIGPIPE, SIG_IGN); /* OpenSSL writes without MSG_NOSIGNAL */
	if (*a.conf->tls.ca)
		a.authorities = tls_authorities_new(a.conf->tls.ca, &error);
	if (buf_len(&error) > 0)
		fprintf(stderr, "sluice: nobody is trusted: ca: %s\n", buf_cstr(&error));
	for (int i = optind; i < argc; i++)
		good &= try_destination(&a, argv[i]);
	buf_fini(&error);
	buf_fini(&a.out);
	tls_authorities_free(&a.authorities);
	conf_unref(a.conf);
	return good && fflush(stdout) == 0 ? STATUS_DONE : STATUS_REFUSED;
}
