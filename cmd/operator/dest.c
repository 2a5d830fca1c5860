/* SPDX-License-Identifier: ISC */
/* sluice dest: the words are checked here, and done by the running relay. */
#include "cmd/operator/client.h"
#include "cmd/cmd.h"
#include "cmd/text/dest_args.h"
#include "cmd/options.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
	"usage: sluice dest [list|show] [SITE|HOST|DOMAIN] [--json | --tabs]\n"
	"       sluice dest suspend|resume|reset SITE|HOST|DOMAIN [--cluster]\n"
	"list:    the sites that the relay knows, a line each, the worst first, and the hosts of "
	"each;\n"
	"         with --tabs sites only: name, transport, state, seconds until a host is tried,\n"
	"         window, connections, busy, waiting, deferred, replies so far, and the last "
	"failure,\n"
	"         parted by tabs.\n"
	"show:    the same in full.\n"
	"suspend: deliver nothing there until resume; what waits is deferred. It holds through\n"
	"         restarts, and may be said before there is any mail for it.\n"
	"resume:  deliver there again, at first what has waited.\n"
	"reset:   forget what is known: failures, times to try again, limits, broken TLS, the "
	"window.\n"
	"With --cluster it holds on all nodes of the cluster, also on those that start later.\n"
	"SITE is a name that list prints first in a line; HOST is the name of a host, its "
	"address,\n"
	"or ADDRESS:PORT. A name that both have is the site's; one that neither has is a "
	"domain's.\n";

static const char *usage_of(const struct dest_args *args)
{
	static const char change[] = "usage: sluice dest suspend|resume|reset SITE|HOST|DOMAIN "
				     "[--cluster]\n";
	return args->order == DEST_LIST ? usage : change;
}

static int run(const struct dest_args *args, int argc, char **argv)
{
	struct conf *conf = options_conf_at(args->conf_file);
	if (!conf)
		return STATUS_REFUSED;
	int status = client_ask(conf->spool, argc, argv, false);
	conf_unref(conf);
	return status;
}

int cmd_dest(int argc, char **argv)
{
	char name[] = "dest"; /* the relay's word for it */
	struct dest_args args;
	struct buf error;
	buf_init(&error);
	argv[0] = name;
	bool ok = dest_args_parse(&args, argc, argv, &error);
	int status;
	if (!options_said(args.help ? usage : usage_of(&args), args.help, ok, &error, &status))
		status = run(&args, argc, argv);
	buf_fini(&error);
	return status;
}
