/* SPDX-License-Identifier: ISC */
/* sluice suppress: recipients that hosts do not know. */
#include "cmd/operator/client.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

#include <string.h>

static const char usage[] =
	"usage: sluice suppress [list] [ADDRESS|@DOMAIN] [--json]\n"
	"       sluice suppress add ADDRESS [--json]\n"
	"       sluice suppress forget ADDRESS|@DOMAIN [--json]\n"
	"Recipients that a host has called unknown (5.1.1), and that are refused therefore, with\n"
	"550 5.1.1, for as long as the setting suppress says.\n"
	"list:    since when, until when, and which host said so.\n"
	"add:     refuse this one, too.\n"
	"forget:  take mail for it again; @DOMAIN: for all in that domain.\n"
	"The status is 1 where none is suppressed that was named, or the setting is 0s at add.\n";

static const struct option longs[] = {
	{"json", no_argument, NULL, OPTION_JSON},
	OPTIONS_COMMON,
};

static bool is_order(const char *word)
{
	return strcmp(word, "list") == 0 || strcmp(word, "add") == 0 || strcmp(word, "forget") == 0;
}

int cmd_suppress(int argc, char **argv)
{
	static char name[] = "suppress", as_json[] = "--json", list[] = "list", all[] = "";
	struct options o = {.usage = usage, .shorts = "c:", .longs = longs};
	bool json = false;
	while (options_next(&o, argc, argv) != -1)
		json = true;
	bool ordered = optind < argc && is_order(argv[optind]);
	char *order = ordered ? argv[optind++] : list;
	char *address = optind < argc ? argv[optind++] : all;
	if (optind < argc)
		options_wrong(&o, "suppress wants no more than one address");
	if (order[0] != 'l' && !*address)
		options_wrong(&o, "%s wants an address", order);
	char *words[] = {name, order, address, json ? as_json : NULL, NULL};
	return client_run(o.conf_file, json ? 4 : 3, words, CLIENT_CLEAN);
}
