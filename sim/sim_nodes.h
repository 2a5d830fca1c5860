/* sim_nodes.h - the results of a cluster: a line of a table for each run, and JSON.
 *
 * OWNERSHIP  Reads what sim_run() has made; quantiles are sorted in place.
 * THREAD     main.
 * ERRORS     None.
 * SEE        sluice-sim(5), REPORT.
 */
#ifndef SIM_SIM_NODES_H
#define SIM_SIM_NODES_H

#include "sim/sim.h"

bool sim_has_nodes(const struct sim *); /* in any run */
void sim_nodes_report(struct sim *, struct buf *to);
void sim_nodes_json(struct sim_run *, struct buf *to); /* members of the run's summary */

#endif
