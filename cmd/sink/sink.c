/* SPDX-License-Identifier: ISC */
/* sluice sink: a receiver of mail, for tests. */
#include "cmd/cmd.h"
#include "cmd/sink/sink_options.h"
#include "cmd/sink/sink_server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

int cmd_sink(int argc, char **argv)
{
	static char output[1 << 16];
	struct sink_options options;
	struct sink sink;
	sink_options_parse(&options, argc, argv);
	setvbuf(stdout, output, _IOFBF, sizeof output);
	signal(SIGPIPE, SIG_IGN);
	bool opened = sink_open(&sink, &options);
	if (opened)
		sink_run(&sink);
	sink_close(&sink);
	free(options.refusal);
	free(options.login);
	return opened && fflush(stdout) == 0 ? STATUS_DONE : STATUS_REFUSED;
}
