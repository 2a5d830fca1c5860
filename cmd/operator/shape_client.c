/* SPDX-License-Identifier: ISC */
/* sluice shape: Postfix's qshape. The words are checked here, and done by the running relay. */
#include "base/mem.h"
#include "cmd/operator/client.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/text/shape_args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"usage: sluice shape [-s] [-p] [-m MIN] [-l] [-b N] [-t MINUTES] [-n TOP] [-N COUNT] [-w "
	"WIDTH] [--from ADDR] [--flow NAME] [--json] [--color] [--redraw] [-c FILE] "
	"[QUEUE...]\n"
	"Show how many recipients wait, by domain and by the age of the message.\n"
	"QUEUE is any of maildrop, incoming, active, deferred, hold; by default incoming and "
	"active.\n"
	"  -s          count messages by the domain of their sender; MAILER-DAEMON has none\n"
	"  -p          count parent domains too, with a dot in front\n"
	"  -m MIN      only parent domains with at least MIN subdomains (5)\n"
	"  -l          all columns cover the same time; else each covers twice the last\n"
	"  -b N        number of columns (10)\n"
	"  -t MINUTES  time of the first column (5)\n"
	"  -n TOP      number of lines, with the total (20 on a terminal, else all: 0)\n"
	"  -N COUNT    on a terminal, draw the table again after so many messages, until all\n"
	"              are counted; mail is delivered meanwhile\n"
	"  -w WIDTH    width of a line (80)\n"
	"  --from ADDR only mail from this sender, or from senders like '*@shop.example' or "
	".example.com; may\n"
	"              be repeated\n"
	"  --flow NAME only mail of this flow; may be repeated\n"
	"  --json      one object on each line\n"
	"  --color     use colours, as on a terminal if NO_COLOR is not set\n"
	"  --redraw    with -N, do as on a terminal\n";

/* Options for a terminal go in front, so that the operator's own words overrule it. */
static int ask_relay(struct conf *conf, const struct shape_args *args, int argc, char **argv)
{
	static char color[] = "--color", top[] = "--top=20", redraw[] = "--redraw",
		    name[] = "shape";
	const char *no_color = getenv("NO_COLOR");
	bool terminal = isatty(STDOUT_FILENO) && !args->json;
	char **words = mem_zalloc(((size_t)argc + 4) * sizeof *words);
	int n = 0;
	words[n++] = name;
	if (terminal && !(no_color && *no_color))
		words[n++] = color;
	if (terminal && !args->top_set)
		words[n++] = top;
	if (terminal && args->batch > 0)
		words[n++] = redraw;
	memcpy(words + n, argv + 1, (size_t)(argc - 1) * sizeof *words);
	int status = client_ask_queue(conf, n + argc - 1, words, CLIENT_CLEAN);
	free(words);
	return status;
}

static int run_shape(const struct shape_args *args, int argc, char **argv)
{
	struct conf *conf = options_conf_to_ask_at(args->conf_file);
	if (!conf)
		return STATUS_REFUSED;
	int status = ask_relay(conf, args, argc, argv);
	conf_unref(conf);
	return status;
}

int cmd_shape(int argc, char **argv)
{
	struct shape_args args;
	struct buf error = {0};
	bool ok = shape_args_parse(&args, argc, argv, &error);
	int status;
	if (!options_said(usage, args.help, ok, &error, &status))
		status = run_shape(&args, argc, argv);
	buf_fini(&error);
	return status;
}
