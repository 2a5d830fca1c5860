/* node_print.h - the nodes of the cluster, as text.
 *
 * THREAD     Any.
 */
#ifndef CMD_TEXT_NODE_PRINT_H
#define CMD_TEXT_NODE_PRINT_H

#include "base/buf.h"
#include "cmd/text/node_rows.h"

void node_print_list(struct buf *to, const struct node_rows *); /* one a line, and the sums */
void node_print_json(struct buf *to, const struct node_rows *); /* one object a line */

#endif
