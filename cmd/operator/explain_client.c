/* SPDX-License-Identifier: ISC */
/* sluice explain: why a message, or the mail for a site, is still here. */
#include "cmd/operator/client.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

#include <stddef.h>

static const char usage[] =
	"usage: sluice explain [-c FILE] [--json] ID|SITE\n"
	"Say what holds a message, or the mail for a site, back at this moment, when that is\n"
	"checked next, and what would let it go. A message has a line for each site.\n"
	"SITE is a site as in the log and in sluice dest, or one of its hosts, or a domain.\n"
	"  --json  one object on each line\n";

static const struct option longs[] = {
	{"json", no_argument, NULL, OPTION_JSON},
	OPTIONS_COMMON,
};

int cmd_explain(int argc, char **argv)
{
	static char name[] = "explain", as_json[] = "--json";
	struct options o = {.usage = usage, .shorts = "c:", .longs = longs};
	bool json = false;
	while (options_next(&o, argc, argv) != -1)
		json = true;
	if (optind + 1 != argc)
		options_wrong(&o, "explain wants one id or site");
	char *words[] = {name, json ? as_json : argv[optind], argv[optind], NULL};
	return client_run(o.conf_file, json ? 3 : 2, words, 0);
}
