/* SPDX-License-Identifier: ISC */
/* sluice route: what would happen to mail for an address, and why. */
#include "base/mailaddr.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/local/route_print.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
	"usage: sluice route [-c FILE] [--from ADDRESS] [--flow NAME] [--json] ADDRESS...\n"
	"Show what would happen to mail for each address: rewriting, access, aliases, copies; the\n"
	"route, with file and line; transport, sources, next hops and their hosts from DNS. It "
	"reads\n"
	"the configuration and its tables, and needs no running relay.\n"
	"  --from ADDRESS  the sender; by default the null sender\n"
	"  --flow NAME     whose mail it is; by default what access, tables and the sender say\n"
	"  --json          one object for each resulting recipient\n";

enum { FROM = OPTION_OWN, FLOW };

static const struct option longs[] = {
	{"from", required_argument, NULL, FROM},
	{"flow", required_argument, NULL, FLOW},
	{"json", no_argument, NULL, OPTION_JSON},
	OPTIONS_COMMON,
};

static bool is_address(const char *text, struct mailaddr *a)
{
	if (mailaddr_mailbox(text, strlen(text), true, a) == MAILADDR_OK && a->text[a->at])
		return true;
	fprintf(stderr, "sluice: %s is not an address\n", text);
	return false;
}

/* Whether a copy arrives too is not what was asked. */
static bool is_delivered(const struct route_trace *t)
{
	bool delivered = t->nway > 0;
	for (uint32_t i = 0; i < t->nway; i++) {
		const struct route_way *w = &t->way[i];
		delivered &= w->copy || (w->action == ROUTE_DELIVER && !w->unlisted);
	}
	return delivered;
}

static bool tell_route(struct conf *conf, const char *from, const char *flow, const char *address,
		       bool json)
{
	struct mailaddr to;
	struct buf out = {0};
	if (!is_address(address, &to))
		return false;
	struct route_trace *t = route_trace_new(conf, from, flow, to.text);
	route_trace_ask(t, false);
	bool delivered = is_delivered(t);
	(json ? route_print_json : route_print_text)(&out, t, from, to.text);
	fwrite(buf_data(&out), 1, buf_len(&out), stdout);
	buf_fini(&out);
	route_trace_free(&t);
	return delivered;
}

int cmd_route(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:", .longs = longs};
	struct mailaddr from = {.text = ""};
	const char *flow = NULL;
	bool json = false, good = true;
	int option;
	while ((option = options_next(&o, argc, argv)) != -1) {
		if (option == OPTION_JSON)
			json = true;
		else if (option == FLOW)
			flow = optarg;
		else if (*optarg && strcmp(optarg, "<>") != 0 && !is_address(optarg, &from))
			return STATUS_USAGE;
	}
	if (optind == argc)
		options_wrong(&o, "route wants an address");
	struct conf *conf = options_conf_with(&o, CONF_WITH_TABLES);
	if (!conf)
		return STATUS_REFUSED;
	for (int i = optind; i < argc; i++)
		good &= tell_route(conf, from.text, flow, argv[i], json);
	conf_unref(conf);
	return good && fflush(stdout) == 0 ? STATUS_DONE : STATUS_REFUSED;
}
