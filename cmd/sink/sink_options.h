/* sink_options.h - the options of `sluice sink`.
 *
 * OWNERSHIP  Strings point into argv; the refusals stay to the end of the program.
 * THREAD     Main.
 * ERRORS     As options.h: told on stderr, status 2.
 */
#ifndef CMD_SINK_SINK_OPTIONS_H
#define CMD_SINK_SINK_OPTIONS_H

#include "base/resolve.h"

#include <stdbool.h>
#include <stdint.h>

enum sink_stage { SINK_MAIL, SINK_RCPT, SINK_END };

struct sink_refusal {
	enum sink_stage stage;
	const char *pattern; /* of the shell, for the sender at MAIL, else for a recipient */
	int code;
};

struct sink_options {
	union address listen;
	const char *dir;  /* NULL: nothing is stored */
	int64_t delay_ms; /* of every reply */
	int64_t limit;	  /* connections at once; 0: any number */
	int64_t count;	  /* messages, then the end; 0: no end */
	int64_t size_max;
	bool pipelining, chunking, quiet, verbose;
	int nrefusal;
	struct sink_refusal *refusal;
};

void sink_options_parse(struct sink_options *, int argc, char **argv);

#endif
