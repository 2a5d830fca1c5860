/* SPDX-License-Identifier: ISC */
/* sluice verify: would the next hop take it? */
#include "cmd/operator/client.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

static const char usage[] =
	"usage: sluice verify [-c FILE] [--from SENDER] [--json] ADDRESS\n"
	"Ask the next hop of ADDRESS whether it takes the recipient, by MAIL, RCPT and RSET, now,\n"
	"whatever is remembered. No mail is sent.\n"
	"  --from SENDER  the sender in MAIL; <> is the null sender\n"
	"  --json         an object\n"
	"The status is 0 if it is accepted, 1 if it is refused, 75 if that is unknown for now.\n";

enum { OPTION_FROM = OPTION_OWN };

static const struct option longs[] = {
	{"from", required_argument, NULL, OPTION_FROM},
	{"json", no_argument, NULL, OPTION_JSON},
	OPTIONS_COMMON,
};

int cmd_verify(int argc, char **argv)
{
	static char name[] = "verify", as_json[] = "--json", nobody[] = "", from_word[] = "--from";
	struct options o = {.usage = usage, .shorts = "c:", .longs = longs};
	char *from = nobody;
	bool json = false;
	int c;
	while ((c = options_next(&o, argc, argv)) != -1) {
		if (c == OPTION_FROM)
			from = optarg;
		else
			json = true;
	}
	if (optind + 1 != argc)
		options_wrong(&o, "verify wants one address");
	char *words[] = {name, argv[optind], from_word, from, as_json, NULL};
	words[4] = json ? as_json : NULL;
	return client_run(o.conf_file, json ? 5 : 4, words, 0);
}
