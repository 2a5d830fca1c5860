/* SPDX-License-Identifier: ISC */
/* sluice dest: the words are checked here, and done by the running relay. */
#include "cmd/operator/client.h"
#include "cmd/cmd.h"
#include "cmd/text/dest_args.h"
#include "cmd/options.h"

static const char usage[] =
	"usage: sluice dest [list|show] [SITE|HOST|DOMAIN|--provider NAME] [--flow NAME] [--json | "
	"--tabs]\n"
	"       sluice dest suspend SITE|HOST|DOMAIN|--provider NAME [--for TIME] [--cluster] "
	"[--json]\n"
	"       sluice dest resume|reset SITE|HOST|DOMAIN|--provider NAME [--cluster] [--json]\n"
	"list:    one line for each site that the relay knows, the worst first, with its hosts;\n"
	"         with --tabs sites only: name, transport, state, seconds until a host is tried,\n"
	"         window, connections, busy, waiting, deferred, replies so far, the last "
	"failure,\n"
	"         and a key that no other site has, separated by tabs.\n"
	"show:    the same with all details.\n"
	"suspend: deliver nothing there until resume; waiting mail is deferred. This stays in\n"
	"         force over restarts, and may be given before there is any mail for it.\n"
	"         With --for it ends by itself: 90s, 30m, 1h, 2d.\n"
	"resume:  deliver there again, first the mail that has waited.\n"
	"reset:   forget what was learnt: failures, retry times, limits, broken TLS, the window.\n"
	"With --cluster it holds on all nodes of the cluster, also on those that start later.\n"
	"--provider means all sites of this provider, --flow those where some of its mail waits\n"
	"in memory or is being sent.\n"
	"SITE is the first word of a line of list; HOST is the name of a host, its address,\n"
	"or ADDRESS:PORT. A name that both have means the site; one that neither has, a domain.\n";

static const char *usage_of(const struct order_args *args)
{
	static const char change[] =
		"usage: sluice dest suspend SITE|HOST|DOMAIN|--provider NAME [--for TIME] "
		"[--cluster]\n"
		"       sluice dest resume|reset SITE|HOST|DOMAIN|--provider NAME [--cluster]\n";
	return !args->help && order_changes(args->verb) ? change : usage;
}

int cmd_dest(int argc, char **argv)
{
	char name[] = "dest"; /* the relay's word for it */
	struct order_args args;
	struct buf error = {0};
	argv[0] = name;
	bool ok = dest_args_parse(&args, argc, argv, &error);
	int status;
	if (!options_said(usage_of(&args), args.help, ok, &error, &status))
		status = client_run(args.conf_file, argc, argv, 0);
	buf_fini(&error);
	return status;
}
