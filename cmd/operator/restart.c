/* SPDX-License-Identifier: ISC */
/* sluice restart: have the relay end and start again, and wait until it has. */
#include "cmd/operator/client.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

#include <stddef.h>
#include <stdio.h>

static const char usage[] =
	"usage: sluice restart [-c FILE]\n"
	"Replace the running relay by the program that is installed now, and wait until it "
	"accepts\n"
	"mail. No client is refused meanwhile: clients that connect wait. If the configuration\n"
	"has a fault, it is printed, the relay keeps running, and the status is 1.\n";

static const struct option longs[] = {OPTIONS_COMMON};

enum { READY_MS = 60000 };

int cmd_restart(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:", .longs = longs};
	options_only(&o, argc, argv);
	struct conf *conf = options_conf(&o);
	if (!conf)
		return STATUS_REFUSED;
	char *words[] = {"restart", NULL};
	int status = client_order(conf, 1, words, CLIENT_UNTIL_CLOSED);
	if (status == STATUS_DONE && !client_wait(conf->spool, READY_MS)) {
		fputs("sluice: the relay has ended, and does not come back\n", stderr);
		status = STATUS_UNREACHABLE;
	}
	conf_unref(conf);
	return status;
}
