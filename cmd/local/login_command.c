/* SPDX-License-Identifier: ISC */
/* sluice login test: does a next hop let us in? */
#include "base/address.h"
#include "base/mem.h"
#include "base/tls_dane.h"
#include "base/tls_policy.h"
#include "cmd/cmd.h"
#include "cmd/local/login_try.h"
#include "cmd/local/route_trace.h"
#include "cmd/options.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"usage: sluice login test [--from SENDER] NEXT-HOP\n"
	"Log in at a next hop, [HOST]:PORT as in a route, or HOST or DOMAIN, with what "
	"credentials\n"
	"has for it: connect, TLS as the policy says, AUTH, QUIT. No mail is sent, and no "
	"password\n"
	"is printed. It needs no running relay, but the right to read the password, and the keys\n"
	"of the configuration.\n"
	"  --from SENDER  with the login of that sender\n"
	"Exit status: 0 it lets us in, 1 it does not, or there is no login for it, 75 not now.\n";

enum { OPTION_FROM = OPTION_OWN };

static const struct option longs[] = {
	{"from", required_argument, NULL, OPTION_FROM},
	OPTIONS_COMMON,
};

static void say(const struct login_try *l, const char *peer)
{
	static const char *const words[] = {[LOGIN_DONE] = "logged in",
					    [LOGIN_REFUSED] = "refused",
					    [LOGIN_FAILED] = "not possible now"};
	printf("%s: %s%s%s%s\n", peer, words[l->result],
	       l->result != LOGIN_DONE ? ""
	       : l->tls		       ? ", under TLS"
				       : ", without TLS",
	       l->said ? ": " : "", l->said ? l->said : "");
}

static enum login_result try_address(struct conf *conf, struct credential *c,
				     const struct route_way *w, const struct route_hop *h,
				     const struct resolve_host *host, const union address *at)
{
	struct login_try l;
	char peer[ADDRESS_PEER_MAX];
	char *policy = host->dane ? mem_strdup(host->dane->policy)
				  : tls_policy_of_host(h->tls, host->name);
	struct login_host to = {.name = host->name,
				.address = at,
				.tls = policy,
				.dane = host->dane,
				.transport = w->by};
	login_try(&l, conf, c, &to);
	say(&l, address_peer(at, host->name, peer));
	enum login_result result = l.result;
	login_try_fini(&l);
	free(policy);
	return result;
}

/* The first host that can be asked decides. */
static int try_hop(struct conf *conf, struct credential *c, const struct route_way *w,
		   const struct route_hop *h)
{
	const struct resolve *r = h->answer;
	if (!r || r->nhost == 0) {
		fprintf(stderr, "sluice: %s: no host is found\n", h->text);
		return STATUS_UNREACHABLE;
	}
	for (int i = 0; i < r->nhost; i++)
		for (int k = 0; k < r->host[i].naddress; k++) {
			union address at = r->host[i].address[k];
			address_set_port(&at, h->port);
			enum login_result result = try_address(conf, c, w, h, &r->host[i], &at);
			if (result != LOGIN_FAILED)
				return result == LOGIN_DONE ? STATUS_DONE : STATUS_REFUSED;
		}
	return STATUS_UNREACHABLE;
}

static int test(struct conf *conf, const char *hop, const char *sender)
{
	struct credential *c = credential_find(conf->tables, hop, sender);
	struct route_trace *t = c ? route_trace_hop(conf, hop) : NULL;
	int status = STATUS_REFUSED;
	if (!c)
		fprintf(stderr, "sluice: credentials has no row for %s%s%s\n", hop,
			*sender ? " and " : "", sender);
	else if (!t || t->nway == 0 || t->way[0].nhop == 0)
		fprintf(stderr, "sluice: %s is no next hop\n", hop);
	else {
		static const char *const kinds[] = {[CREDENTIAL_PASSWORD] = "password",
						    [CREDENTIAL_TOKEN] = "token",
						    [CREDENTIAL_REFRESH] = "token by way of"};
		printf("%s: as %s, with the %s %s\n", hop, c->login, kinds[c->kind], c->file);
		fflush(stdout);
		route_trace_ask(t, true);
		status = try_hop(conf, c, &t->way[0], &t->way[0].hop[0]);
	}
	route_trace_free(&t);
	credential_unref(c);
	return status;
}

int cmd_login(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:", .longs = longs};
	const char *sender = "";
	while (options_next(&o, argc, argv) != -1)
		sender = optarg;
	if (optind == argc || strcmp(argv[optind], "test") != 0)
		options_wrong(&o, "login: say what to do: test");
	if (optind + 2 != argc)
		options_wrong(&o, "login test wants one next hop");
	struct conf *conf = options_conf_with(&o, CONF_WITH_TABLES | CONF_WITH_KEYS);
	if (!conf)
		return STATUS_REFUSED;
	signal(SIGPIPE, SIG_IGN); /* OpenSSL writes without MSG_NOSIGNAL */
	conf->workers = 1;
	int status = test(conf, argv[optind + 1], sender);
	conf_unref(conf);
	return fflush(stdout) == 0 ? status : STATUS_REFUSED;
}
