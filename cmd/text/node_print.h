/* node_print.h - the nodes of the cluster, as text.
 *
 * THREAD     Any.
 */
#ifndef CMD_TEXT_NODE_PRINT_H
#define CMD_TEXT_NODE_PRINT_H

#include "cluster/cluster.h"

void node_print_list(struct buf *to, const struct cluster_view *); /* one a line */
void node_print_json(struct buf *to, const struct cluster_view *); /* one object a line */

#endif
