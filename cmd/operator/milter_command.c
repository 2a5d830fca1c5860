/* SPDX-License-Identifier: ISC */
/* sluice milter: the filters of mail, by the running relay. */
#include "cmd/operator/client.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

#include <stddef.h>
#include <string.h>

static const char usage[] =
	"usage: sluice milter [list|show] [NAME] [--json]\n"
	"list: one line for each filter of the configuration: whether it answers, which is tried\n"
	"      now, its answers, their times, and what becomes of mail while it is away.\n"
	"show: the same with all details.\n";

static const struct option longs[] = {{"json", no_argument, NULL, OPTION_JSON}, OPTIONS_COMMON};

int cmd_milter(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:", .longs = longs};
	bool json = false;
	while (options_next(&o, argc, argv) != -1)
		json = true; /* it is the only one of its own */
	const char *verb = optind < argc ? argv[optind] : "";
	bool show = strcmp(verb, "show") == 0;
	optind += show || strcmp(verb, "list") == 0;
	if (optind + 1 < argc)
		options_wrong(&o, "milter takes no argument %s", argv[optind + 1]);
	char *words[4] = {"milter", json ? "--json" : show ? "show" : "list", NULL, NULL};
	words[2] = optind < argc ? argv[optind] : NULL;
	return client_run(o.conf_file, words[2] ? 3 : 2, words, CLIENT_CLEAN);
}
