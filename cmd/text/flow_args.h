/* flow_args.h - the arguments of `sluice flow`, which both client and relay parse.
 *
 * OWNERSHIP  Results point into argv.
 * THREAD     Any.
 * ERRORS     False, and what is wrong in error.
 */
#ifndef CMD_TEXT_FLOW_ARGS_H
#define CMD_TEXT_FLOW_ARGS_H

#include "cmd/text/order_args.h"
#include "qmgr/flow_command.h"

bool flow_args_parse(struct order_args *, int argc, char **argv, struct buf *error);
/* argv[0] is "flow". */

enum flow_order flow_args_order(enum order_verb);

#endif
