/* user_args.h - the arguments of `sluice user`, which both client and relay parse.
 *
 * OWNERSHIP  conf_file points into argv.
 * THREAD     Any.
 * ERRORS     False, and what is wrong in error.
 */
#ifndef CMD_TEXT_USER_ARGS_H
#define CMD_TEXT_USER_ARGS_H

#include "base/buf.h"
#include "base/users.h"
#include "smtpd/limiter.h"

struct user_args {
	enum limiter_op op;
	bool full; /* show */
	bool json, help;
	bool cluster;			 /* suspend, resume, reset: on all nodes */
	const char *conf_file;		 /* of -c, or NULL */
	char login[USERS_LOGIN_MAX + 1]; /* as it is kept; "": all */
};

bool user_args_parse(struct user_args *, int argc, char **argv, struct buf *error);
/* argv[0] is "user". Without a verb it is list. */

#endif
