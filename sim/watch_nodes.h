/* watch_nodes.h - what is seen of a cluster: limits of hosts, who knows of an outage.
 *
 * THREAD     main.
 * ERRORS     None.
 */
#ifndef SIM_WATCH_NODES_H
#define SIM_WATCH_NODES_H

#include "sim/stage.h"

void watch_nodes_begin(struct world *);
void watch_nodes(struct world *, int64_t at_ms); /* at each sample */
void watch_knowing(struct stage *); /* after each wake-up: which hosts does it have for out? */
void watch_nodes_end(struct world *);

#endif
