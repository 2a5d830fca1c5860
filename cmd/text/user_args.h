/* user_args.h - the arguments of `sluice user`, which both client and relay parse.
 *
 * OWNERSHIP  Results point into argv, but for the login.
 * THREAD     Any.
 * ERRORS     False, and what is wrong in error.
 */
#ifndef CMD_TEXT_USER_ARGS_H
#define CMD_TEXT_USER_ARGS_H

#include "base/users.h"
#include "cmd/text/order_args.h"

struct user_args {
	struct order_args order;
	char login[USERS_LOGIN_MAX + 1]; /* as it is kept; "": all */
};

bool user_args_parse(struct user_args *, int argc, char **argv, struct buf *error);
/* argv[0] is "user". */

#endif
