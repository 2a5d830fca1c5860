/* flow_args.h - the arguments of `sluice flow`, which both client and relay parse.
 *
 * OWNERSHIP  Results point into argv.
 * THREAD     Any.
 * ERRORS     False, and what is wrong in error.
 */
#ifndef CMD_TEXT_FLOW_ARGS_H
#define CMD_TEXT_FLOW_ARGS_H

#include "cmd/text/order_args.h"

bool flow_args_parse(struct order_args *, int argc, char **argv, struct buf *error);
/* argv[0] is "flow". */

char *flow_args_question(const char *name); /* to all nodes; name may be NULL: of all flows */
bool flow_args_asked(const char *question, const char **name);
/* Is it such a question? The name lies in it. */

#endif
