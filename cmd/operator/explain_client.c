/* SPDX-License-Identifier: ISC */
/* sluice explain: why a message, or the mail for a site, is still here. */
#include "cmd/operator/client.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

#include <stddef.h>

static const char usage[] =
	"usage: sluice explain [-c FILE] [--json] [--flow NAME] ID|SITE\n"
	"       sluice explain [-c FILE] [--json] --flow NAME\n"
	"Say what holds a message, or the mail for a site, back at this moment, when that is\n"
	"checked next, and what would let it go. A message has a line for each site.\n"
	"SITE is a site as in the log and in sluice dest, or one of its hosts, or a domain.\n"
	"  --flow NAME  only mail of this flow: that message, or what is being worked on for SITE, "
	"or\n"
	"               for all sites\n"
	"  --json       one object on each line\n";

enum { FLOW = OPTION_OWN };

static const struct option longs[] = {
	{"flow", required_argument, NULL, FLOW},
	{"json", no_argument, NULL, OPTION_JSON},
	OPTIONS_COMMON,
};

int cmd_explain(int argc, char **argv)
{
	static char name[] = "explain", as_json[] = "--json", of_flow[] = "--flow";
	struct options o = {.usage = usage, .shorts = "c:", .longs = longs};
	char *words[6] = {name}, *flow = NULL;
	int n = 1;
	for (int option; (option = options_next(&o, argc, argv)) != -1;) {
		if (option == FLOW)
			flow = optarg;
		else if (n == 1)
			words[n++] = as_json;
	}
	if (optind + 1 != argc && !(flow && optind == argc))
		options_wrong(&o, "explain wants one id or site");
	if (flow && !*flow)
		options_wrong(&o, "--flow wants the name of a flow");
	if (flow) {
		words[n++] = of_flow;
		words[n++] = flow;
	}
	if (optind < argc)
		words[n++] = argv[optind];
	return client_run(o.conf_file, n, words, 0);
}
