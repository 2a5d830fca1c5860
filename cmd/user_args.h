/* user_args.h - the words behind `sluice user`, which the client and the relay read.
 *
 * OWNERSHIP  Results point into argv.
 * THREAD     Any.
 * ERRORS     False, and what is wrong in error.
 */
#ifndef CMD_USER_ARGS_H
#define CMD_USER_ARGS_H

#include "base/buf.h"
#include "smtpd/limiter.h"

struct user_args {
	enum limiter_op op;
	bool full; /* show */
	bool json, help;
	const char *login;     /* or NULL: all */
	const char *conf_file; /* of -c, or NULL */
};

bool user_args_parse(struct user_args *, int argc, char **argv, struct buf *error);
/* argv[0] is "user". Without a verb it is list. */

#endif
