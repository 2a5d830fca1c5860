/* SPDX-License-Identifier: ISC */
/* sluice flow: the words are checked here, and done by the running relay. */
#include "cmd/operator/client.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/text/flow_args.h"

static const char usage[] =
	"usage: sluice flow [list|show] [NAME] [--json]\n"
	"       sluice flow list [NAME] --cluster [--json]\n"
	"       sluice flow suspend NAME [--for TIME] [--cluster] [--json]\n"
	"       sluice flow resume|reset NAME [--cluster] [--json]\n"
	"list:    one line for each flow that has mail in work, or had some lately: messages, "
	"what\n"
	"         is being sent, its share of that; recipients sent, deferred, refused today\n"
	"         and in the last hour.\n"
	"         With --cluster: the sums of all nodes, and which nodes have not answered.\n"
	"show:    the same with all details.\n"
	"suspend: take its mail, and send none of it until resume. This stays in force over\n"
	"         restarts, and may be given before there is any mail of it. With --for it ends "
	"by\n"
	"         itself: 90s, 30m, 1h, 2d.\n"
	"resume:  send its mail again, first what has waited.\n"
	"reset:   count what is sent, deferred and refused from 0 again.\n"
	"With --cluster an order holds on all nodes of the cluster, also on those that start "
	"later.\n"
	"sluice queue list --flow NAME shows its messages.\n";

int cmd_flow(int argc, char **argv)
{
	char name[] = "flow"; /* the relay's word for it */
	struct order_args args;
	struct buf error = {0};
	argv[0] = name;
	bool ok = flow_args_parse(&args, argc, argv, &error);
	int status;
	if (!options_said(usage, args.help, ok, &error, &status))
		status = client_run(args.conf_file, argc, argv, 0);
	buf_fini(&error);
	return status;
}
