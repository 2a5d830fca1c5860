/* dest_args.h - the arguments of `sluice dest`, which both client and relay parse.
 *
 * OWNERSHIP  Results point into argv.
 * THREAD     Any.
 * ERRORS     False, and what is wrong in error.
 */
#ifndef CMD_TEXT_DEST_ARGS_H
#define CMD_TEXT_DEST_ARGS_H

#include "cmd/text/order_args.h"

bool dest_args_parse(struct order_args *, int argc, char **argv, struct buf *error);
/* argv[0] is "dest". */

#endif
