/* SPDX-License-Identifier: ISC */
/* sluice queue, mailq: the words are checked here, and done by the running relay;
 * all but `check`, which reads the queue of one that does not run. */
#include "base/mem.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/queue_args.h"
#include "cmd/queue_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"usage: sluice queue list   [FILTER] [--json] [ID...]\n"
	"       sluice queue show   ID [--envelope] [--headers] [--body] [--json]\n"
	"       sluice queue flush|hold|release|requeue|delete|bounce  ID...|FILTER|--all\n"
	"       sluice queue check  [--repair] [--json]\n"
	"list:   one line a message; with --json one object a line.\n"
	"show:   the envelope with the state of each recipient, then headers and body.\n"
	"flush:  try again now.\n"
	"hold:   keep, untried, until it is released.\n"
	"release: of what is held: try now.\n"
	"requeue: let go of it and try now, by the routes that hold now.\n"
	"delete: remove, without telling the sender.\n"
	"bounce: return to the sender, as undeliverable.\n"
	"What is being sent at this moment is sent; the order holds for what is left then.\n"
	"check:  read the whole queue while no relay has it, and say what is wrong in it; with\n"
	"        --repair put that aside in quarantine/, and make the queue whole.\n"
	"FILTER is any of these; a message must meet all that are given:\n"
	"  --queue Q      it is in incoming, active, deferred or hold\n"
	"  --from ADDR    its sender is ADDR, or <> for none\n"
	"  --to ADDR      a recipient still to be reached is ADDR\n"
	"  --domain D     a recipient still to be reached is at D\n"
	"  --older T      it came longer ago than T: 30s, 5m, 1h, 2d\n"
	"  --reason TEXT  the last reply for such a recipient holds TEXT\n";

static int run(const struct queue_args *args, int argc, char **argv)
{
	struct conf *conf = options_conf_at(args->conf_file);
	if (!conf)
		return STATUS_REFUSED;
	int status = args->verb == QUEUE_CHECK ? queue_check(conf, args)
					       : client_ask(conf->spool, argc, argv, false);
	conf_unref(conf);
	return status;
}

int cmd_queue(int argc, char **argv)
{
	char name[] = "queue"; /* the relay's word for it */
	struct queue_args args;
	struct buf error;
	buf_init(&error);
	argv[0] = name;
	bool ok = queue_args_parse(&args, argc, argv, &error);
	int status;
	if (!options_said(usage, args.help, ok, &error, &status))
		status = run(&args, argc, argv);
	buf_fini(&error);
	return status;
}

int cmd_mailq(int argc, char **argv)
{
	char list[] = "list", **words = mem_zalloc(((size_t)argc + 2) * sizeof *words);
	words[0] = argv[0];
	words[1] = list;
	memcpy(words + 2, argv + 1, (size_t)(argc - 1) * sizeof *words);
	int status = cmd_queue(argc + 1, words);
	free(words);
	return status;
}
