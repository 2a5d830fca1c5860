/* shape_args.h - the arguments of `sluice shape`: what is counted, and how it is shown.
 *
 * Both sides read them: the operator's to refuse what is wrong, the relay's to do it.
 *
 * OWNERSHIP  Strings point into argv.
 * THREAD     Main: getopt keeps its place in globals.
 * ERRORS     False, and what is wrong in error.
 * SEE        POSTFIX QSHAPE_README, qshape(1).
 */
#ifndef CMD_TEXT_SHAPE_ARGS_H
#define CMD_TEXT_SHAPE_ARGS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum { SHAPE_MINUTES = 5 }; /* width of the first bucket, if not said */
enum { SHAPE_NAMES_MAX = 100, SHAPE_BATCH = 1000 };

struct shape_args {
	bool senders, parents, linear, json, color, help;
	bool top_set;
	bool redraw;   /* after each batch */
	bool maildrop; /* counted too */
	int batch;     /* messages; 0: not said */
	int nfrom;     /* patterns of senders; 0: all */
	const char *from[SHAPE_NAMES_MAX];
	int nflow; /* 0: all */
	const char *flow[SHAPE_NAMES_MAX];
	int subdomains_min, buckets, top, width; /* top 0: all rows */
	double minutes;				 /* width of the first bucket */
	uint32_t queues;			 /* bit 1 << enum spool_queue */
	const char *conf_file;			 /* of -c, or NULL */
};

bool shape_args_parse(struct shape_args *, int argc, char **argv, struct buf *error);
/* argv[0] is "shape". */

#endif
