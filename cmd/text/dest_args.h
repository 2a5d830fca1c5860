/* dest_args.h - the arguments of `sluice dest`, which both client and relay parse.
 *
 * OWNERSHIP  Results point into argv.
 * THREAD     Any.
 * ERRORS     False, and what is wrong in error.
 */
#ifndef CMD_TEXT_DEST_ARGS_H
#define CMD_TEXT_DEST_ARGS_H

#include "base/buf.h"
#include "qmgr/dest_command.h"

struct dest_args {
	enum dest_order order;
	bool full; /* show */
	bool json, tabs, help;
	bool cluster;	       /* suspend, resume, reset: on all nodes */
	const char *name;      /* or NULL: all */
	const char *conf_file; /* of -c, or NULL */
};

bool dest_args_parse(struct dest_args *, int argc, char **argv, struct buf *error);
/* argv[0] is "dest". Without a verb it is list. */

#endif
