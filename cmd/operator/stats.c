/* SPDX-License-Identifier: ISC */
/* sluice stats: what the relay has counted since it was started. */
#include "cmd/operator/client.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

#include <stddef.h>

static const char usage[] =
	"usage: sluice stats [-c FILE] [--json | --all]\n"
	"Print the counters since the start of the relay, how many messages are in each\n"
	"queue, and whether new mail is accepted, as NAME VALUE.\n"
	"  --json  one object\n"
	"  --all   with empty histograms and counters of 0\n";

enum { OPTION_ALL = OPTION_OWN };

static const struct option longs[] = {
	{"json", no_argument, NULL, OPTION_JSON},
	{"all", no_argument, NULL, OPTION_ALL},
	OPTIONS_COMMON,
};

int cmd_stats(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:", .longs = longs};
	static char stats[] = "stats", as_json[] = "--json", whole[] = "--all";
	char *words[] = {stats, NULL, NULL};
	for (int option; (option = options_next(&o, argc, argv)) != -1;)
		if (option == OPTION_JSON || !words[1]) /* JSON has all of it */
			words[1] = option == OPTION_JSON ? as_json : whole;
	if (optind < argc)
		options_wrong(&o, "stats takes no argument %s", argv[optind]);
	return client_run(o.conf_file, words[1] ? 2 : 1, words, 0);
}
