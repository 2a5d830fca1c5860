/* SPDX-License-Identifier: ISC */
/* sluice login: get a token for a next hop; or: does it let us in? */
#include "base/address.h"
#include "base/mem.h"
#include "base/tls_dane.h"
#include "base/tls_policy.h"
#include "cmd/cmd.h"
#include "cmd/confine/privileges.h"
#include "cmd/local/login_device.h"
#include "cmd/local/login_try.h"
#include "cmd/local/route_trace.h"
#include "cmd/options.h"
#include "smtpc/token_store.h"

#include <assert.h>
#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"usage: sluice login [--from SENDER] [--test] NEXT-HOP\n"
	"Get a token for a next hop, [HOST]:PORT as in a route, or HOST or DOMAIN, whose row in\n"
	"credentials has refresh:FILE: print an address and a code, wait until somebody has "
	"entered\n"
	"the code there, and keep the token in the folder tokens of the queue, for the relay.\n"
	"  --test         log in there instead, with what credentials has for it: connect, TLS as\n"
	"                 the policy says, AUTH, QUIT. No mail is sent, and no password is "
	"printed\n"
	"  --from SENDER  with the login of that sender\n"
	"sluice login test NEXT-HOP is the same as --test. Neither needs a running relay, but the\n"
	"right to become its user, or to be it, and the keys of the configuration.\n"
	"Exit status: 0 done, it lets us in; 1 it does not, or there is no login for it; 75 not "
	"now.\n";

enum { OPTION_FROM = OPTION_OWN, OPTION_TEST };

static const struct option longs[] = {
	{"from", required_argument, NULL, OPTION_FROM},
	{"test", no_argument, NULL, OPTION_TEST},
	OPTIONS_COMMON,
};

static void print_result(const struct login_try *l, const char *peer)
{
	static const char *const words[] = {[LOGIN_DONE] = "logged in",
					    [LOGIN_REFUSED] = "refused",
					    [LOGIN_FAILED] = "not possible now"};
	assert((size_t)l->result < sizeof words / sizeof *words);
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
	print_result(&l, address_peer(at, host->name, peer));
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

static int test_login(struct conf *conf, struct credential *c, const char *hop)
{
	static const char *const kinds[] = {[CREDENTIAL_PASSWORD] = "password",
					    [CREDENTIAL_TOKEN] = "token",
					    [CREDENTIAL_REFRESH] = "token by way of"};
	assert((size_t)c->kind < sizeof kinds / sizeof *kinds);
	struct route_trace *t = route_trace_hop(conf, hop);
	int status = STATUS_REFUSED;
	if (!t || t->nway == 0 || t->way[0].nhop == 0) {
		fprintf(stderr, "sluice: %s is no next hop\n", hop);
	} else {
		printf("%s: as %s, with the %s %s\n", hop, c->login, kinds[c->kind], c->file);
		fflush(stdout);
		route_trace_ask(t, true);
		status = try_hop(conf, c, &t->way[0], &t->way[0].hop[0]);
	}
	route_trace_free(&t);
	return status;
}

static int get_token(const struct conf *conf, const struct credential *c, const char *hop)
{
	if (c->kind != CREDENTIAL_REFRESH) {
		fprintf(stderr,
			"sluice: %s: only for a login with refresh:FILE a token is got; "
			"credentials has %s for %s: did you mean --test?\n",
			hop, c->file, c->login);
		return STATUS_REFUSED;
	}
	if (!login_device(conf, c))
		return STATUS_REFUSED;
	char *kept = token_store_path(conf->spool, c->file);
	printf("%s: the token of %s is kept in %s\n"
	       "A running relay takes it with its next attempt; sluice dest reset makes that now, "
	       "and "
	       "sluice login --test %s tries it.\n",
	       hop, c->login, kept, hop);
	free(kept);
	return STATUS_DONE;
}

/* Files in the queue must be the relay's to read; and it shall see no more than the relay does. */
static bool become_user(const struct conf *conf)
{
	struct privileges p = {0};
	struct buf error = {0};
	if (geteuid() != 0 || !*conf->user || !getpwnam(conf->user))
		return true;
	bool good = privileges_find(&p, conf->user, &error) && privileges_drop(&p, &error);
	if (!good)
		fprintf(stderr, "sluice: %s\n", buf_cstr(&error));
	privileges_fini(&p);
	buf_fini(&error);
	return good;
}

/* A token that comes anew ends the old one: who can't keep it must not ask. */
static bool may_keep(const struct conf *conf, const struct credential *c)
{
	char *path = token_store_path(conf->spool, c->file);
	*strrchr(path, '/') = '\0';
	bool there = access(path, F_OK) == 0;
	const char *folder = there ? path : conf->spool;
	bool good = c->kind != CREDENTIAL_REFRESH || access(folder, R_OK | W_OK | X_OK) == 0;
	if (!good)
		fprintf(stderr, "sluice: %s: %s: a token could not be kept there\n", folder,
			strerror(errno));
	free(path);
	return good;
}

static int log_in(struct conf *conf, const char *hop, const char *sender, bool only_test)
{
	struct credential *c = credential_find(conf->tables, hop, sender);
	int status = STATUS_REFUSED;
	if (!c)
		fprintf(stderr, "sluice: credentials has no row for %s%s%s\n", hop,
			*sender ? " and " : "", sender);
	else if (become_user(conf) && may_keep(conf, c))
		status = only_test ? test_login(conf, c, hop) : get_token(conf, c, hop);
	credential_unref(c);
	return status;
}

int cmd_login(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:", .longs = longs};
	const char *sender = "";
	bool only_test = false;
	int option;
	while ((option = options_next(&o, argc, argv)) != -1) {
		if (option == OPTION_FROM)
			sender = optarg;
		else
			only_test = true;
	}
	if (optind < argc && strcmp(argv[optind], "test") == 0) {
		only_test = true;
		optind++;
	}
	if (optind + 1 != argc)
		options_wrong(&o, "login wants one next hop");
	struct conf *conf = options_conf_with(&o, CONF_WITH_TABLES | CONF_WITH_KEYS);
	if (!conf)
		return STATUS_REFUSED;
	signal(SIGPIPE, SIG_IGN); /* OpenSSL writes without MSG_NOSIGNAL */
	conf->workers = 1;
	int status = log_in(conf, argv[optind], sender, only_test);
	conf_unref(conf);
	return fflush(stdout) == 0 ? status : STATUS_REFUSED;
}
