/* sink_options.h - the options of `sluice sink`.
 *
 * OWNERSHIP  Strings point into argv; the lists stay to the end of the program.
 * THREAD     Main.
 * ERRORS     As options.h: told on stderr, status 2.
 */
#ifndef CMD_SINK_SINK_OPTIONS_H
#define CMD_SINK_SINK_OPTIONS_H

#include "base/conf.h"
#include "base/resolve.h"

#include <stdbool.h>
#include <stdint.h>

enum sink_stage { SINK_MAIL, SINK_RCPT, SINK_END };

struct sink_refusal {
	enum sink_stage stage;
	const char *pattern; /* of the shell, for the sender at MAIL, else for a recipient */
	int code;
};

/* More than that: this reply at this stage. */
struct sink_rate {
	struct conf_rate rate;
	enum sink_stage stage;
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
	const char *name;	       /* whose host it is: in replies and in its own certificate */
	bool starttls, tlsa;	       /* tlsa: print its record */
	const char *certificate, *key; /* NULL: it makes its own */
	int nlogin;
	const char **login;	/* "NAME:PASSWORD" */
	int64_t greylist_ms;	/* 0: none */
	int64_t per_connection; /* messages, then 421; 0: any number */
	struct sink_rate rate;
};

void sink_options_parse(struct sink_options *, int argc, char **argv);

#endif
