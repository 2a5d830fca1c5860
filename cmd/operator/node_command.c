/* SPDX-License-Identifier: ISC */
/* sluice node: the machines of a cluster, by the running relay; to leave them, in its absence. */
#include "cmd/operator/client.h"
#include "cmd/cmd.h"
#include "cmd/confine/privileges.h"
#include "cmd/options.h"
#include "replica/membership.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
	"usage: sluice node list [--json]\n"
	"       sluice node drain\n"
	"       sluice node adopt NAME\n"
	"       sluice node retire NAME\n"
	"       sluice node leave\n"
	"list:   the nodes that share an engine, whether they live, and who has whose queue.\n"
	"drain:  stop this relay, and have another node take its queue at once.\n"
	"adopt:  take the queue of a node that is dead, without waiting for adopt_after; of one\n"
	"        that may still be at work it is refused, unless its adopt_after is 0s.\n"
	"        This node itself, while it is in doubt: what lies in its folder is its queue.\n"
	"retire: this name never comes back; its queue must have been adopted.\n"
	"leave:  while the relay is stopped: the queue in its folder is this machine's alone, no\n"
	"        other node has it, nor will have it. It starts without replicate then.\n";

static const struct option longs[] = {{"json", no_argument, NULL, OPTION_JSON}, OPTIONS_COMMON};

static void check_words(const struct options *o, bool json, int argc, char **argv)
{
	int n = argc - optind;
	const char *verb = n > 0 ? argv[optind] : "";
	bool named = strcmp(verb, "adopt") == 0 || strcmp(verb, "retire") == 0;
	if (!named && strcmp(verb, "list") != 0 && strcmp(verb, "drain") != 0 &&
	    strcmp(verb, "leave") != 0)
		options_wrong(o, "node needs list, drain, adopt, retire or leave");
	if (json && strcmp(verb, "list") != 0)
		options_wrong(o, "--json goes with list");
	if (named && n != 2)
		options_wrong(o, "node %s needs the name of one node", verb);
	if (!named && n != 1)
		options_wrong(o, "node %s takes no argument %s", verb, argv[optind + 1]);
}

static int leave_others(const struct conf *conf)
{
	struct buf says = {0};
	bool done = privileges_become(conf->user, &says) && membership_leave(conf->spool, &says);
	fprintf(done ? stdout : stderr, "%s%s\n", done ? "" : "sluice: ", buf_cstr(&says));
	buf_fini(&says);
	return done ? STATUS_DONE : STATUS_REFUSED;
}

int cmd_node(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:", .longs = longs};
	bool json = false;
	while (options_next(&o, argc, argv) != -1)
		json = true; /* it is the only one of its own */
	check_words(&o, json, argc, argv);
	struct conf *conf = options_conf_to_ask(&o);
	if (!conf)
		return STATUS_REFUSED;
	char *words[5] = {"node"};
	int n = 1;
	while (optind < argc)
		words[n++] = argv[optind++];
	if (json)
		words[n++] = "--json";
	bool drain = strcmp(words[1], "drain") == 0;
	bool leave = strcmp(words[1], "leave") == 0;
	int status = leave ? leave_others(conf)
			   : client_ask(conf->spool, n, words, drain ? CLIENT_UNTIL_CLOSED : 0);
	conf_unref(conf);
	return status;
}
