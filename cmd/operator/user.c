/* SPDX-License-Identifier: ISC */
/* sluice user: the words are checked here, and done by the running relay. */
#include "cmd/operator/client.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/text/user_args.h"

static const char usage[] =
	"usage: sluice user [list|show] [LOGIN] [--json]\n"
	"       sluice user suspend|resume|reset LOGIN [--cluster] [--json]\n"
	"list:    one line for each login that was seen: what it sent today, what its limits\n"
	"         still allow, what was refused, wrong passwords; messages sent yesterday.\n"
	"show:    the same with all details.\n"
	"suspend: accept nothing from this login until resume, even in open sessions. This stays "
	"in\n"
	"         force over restarts, and may be given before the login was seen.\n"
	"resume:  accept its mail again.\n"
	"reset:   forget what was counted today and yesterday: its limits start again.\n"
	"With --cluster it holds on all nodes of the cluster, also on those that start later.\n";

int cmd_user(int argc, char **argv)
{
	char name[] = "user"; /* the relay's word for it */
	struct user_args args;
	struct buf error = {0};
	argv[0] = name;
	bool ok = user_args_parse(&args, argc, argv, &error);
	int status;
	if (!options_said(usage, args.order.help, ok, &error, &status))
		status = client_run(args.order.conf_file, argc, argv, 0);
	buf_fini(&error);
	return status;
}
