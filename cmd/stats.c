/* SPDX-License-Identifier: ISC */
/* sluice stats: what the relay has counted since it was started. */
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

#include <stddef.h>

static const char usage[] =
	"usage: sluice stats [-c FILE] [--json]\n"
	"Print what was counted since the relay was started, how many messages\n"
	"each queue holds, and whether new mail is accepted: NAME VALUE a line.\n"
	"  --json  one object\n";

static const struct option longs[] = {
	{"json", no_argument, NULL, OPTION_JSON},
	OPTIONS_COMMON,
};

int cmd_stats(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:", .longs = longs};
	bool json = false;
	while (options_next(&o, argc, argv) != -1)
		json = true;
	if (optind < argc)
		options_wrong(&o, "stats takes no argument %s", argv[optind]);
	struct conf *conf = options_conf(&o);
	if (!conf)
		return STATUS_REFUSED;
	char *words[] = {"stats", "--json", NULL};
	int status = client_ask(conf->spool, json ? 2 : 1, words, false);
	conf_unref(conf);
	return status;
}
